"""Whom to trust for a server's certificate, by what the system has."""

from __future__ import annotations

import ast
import ssl
from pathlib import Path

import httpx
import pytest

from hairmesh import certs
from hairmesh.trust import authorities

CA, FOLDER = "SSL_CERT_FILE", "SSL_CERT_DIR"


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """The PEM file of an authority that nobody knows."""
    certs.write_dev(tmp_path / "certs", (), days=1)
    return tmp_path / "certs/ca.pem"


def known(context: ssl.SSLContext) -> set[str]:
    """The authorities' certificates, of those that were read already."""
    return {certificate.hex() for certificate in context.get_ca_certs(binary_form=True)}


def of(path: Path) -> set[str]:
    return {ssl.PEM_cert_to_DER_cert(path.read_text()).hex()}


MOZILLAS = known(httpx.create_ssl_context(trust_env=False))


def system_with(monkeypatch: pytest.MonkeyPatch, *, file: Path, folder: Path) -> None:
    """As if OpenSSL had been built for these places."""

    def read(context: ssl.SSLContext, _purpose: object = None) -> None:
        context.load_verify_locations(file if file.exists() else None, folder)

    paths = ssl.DefaultVerifyPaths("", "", CA, str(file), FOLDER, str(folder))
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", read)


@pytest.fixture
def silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has said whom to trust."""
    for name in (CA, FOLDER):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("silence")
def test_the_systems_where_there_are_some(monkeypatch: pytest.MonkeyPatch, authority: Path, tmp_path: Path) -> None:
    system_with(monkeypatch, file=authority, folder=tmp_path / "none")
    assert known(authorities()) == of(authority)


@pytest.mark.usefixtures("silence")
def test_the_systems_where_they_lie_in_a_folder(
    monkeypatch: pytest.MonkeyPatch, authority: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "0123abcd.0").write_bytes(authority.read_bytes())
    system_with(monkeypatch, file=tmp_path / "none.pem", folder=folder)
    assert known(authorities()) == set(), "they are read as they are needed"


@pytest.mark.usefixtures("silence")
def test_mozillas_where_the_system_has_none(monkeypatch: pytest.MonkeyPatch, authority: Path, tmp_path: Path) -> None:
    system_with(monkeypatch, file=tmp_path / "none.pem", folder=tmp_path / "certs")
    assert known(authorities()) == MOZILLAS
    assert known(authorities(authority)) == of(authority)


def test_what_the_environment_names_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch, authority: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setenv(CA, str(authority))
    assert known(authorities()) == of(authority)
    monkeypatch.setenv(CA, str(tmp_path / "none.pem"))
    assert known(authorities()) == set()
    with pytest.raises(OSError, match="No such file"):
        authorities(tmp_path / "none.pem")


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("package", ["hairmesh", "edge", "worker"])
def test_whoever_asks_over_https_says_whom_it_trusts(package: str) -> None:
    """Left alone, and without the environment, httpx trusts Mozilla's and does not ask the system."""
    silent = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"httpx.Client", "httpx.AsyncClient"}
        and not {None, "verify"} & {keyword.arg for keyword in node.keywords}  # None: of `client.transport`
    ]
    assert silent == []
