"""`hairmesh certs dev`: what it makes is what real TLS peers take, and nobody else's to read."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509

from hairmesh import certs, pem

PROGRAM = Path(sys.executable).with_name("hairmesh")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, "certs", "dev", *arguments], capture_output=True, text=True, check=False)


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> None:
    """One in memory; raises `ssl.SSLError` as either side does."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=name)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)

    def step(act: Callable[[], None]) -> bool:
        try:
            act()
        except ssl.SSLWantReadError:
            return False
        return True

    done = [False, False]
    while not all(done):
        done = [done[0] or step(ours.do_handshake), done[1] or step(theirs.do_handshake)]


def contexts(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A worker that wants a certificate of its clients, and the edge as its client."""
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=folder / "ca.pem")
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_cert_chain(folder / "worker.pem", folder / "worker.key")
    client = ssl.create_default_context(cafile=folder / "ca.pem")
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    client.load_cert_chain(folder / "client.pem", folder / "client.key")
    return server, client


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1", "workers.test", "10.0.0.7"])
def test_what_it_makes_is_good_for_mutual_tls_with_every_named_host(tmp_path: Path, name: str) -> None:
    certs.write_dev(tmp_path, ["workers.test", "10.0.0.7"])
    handshake(*contexts(tmp_path), name)


def test_a_host_that_was_not_named_and_a_servers_certificate_as_clients_are_refused(tmp_path: Path) -> None:
    certs.write_dev(tmp_path)
    server, client = contexts(tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(server, client, "workers.test")
    client.load_cert_chain(tmp_path / "edge.pem", tmp_path / "edge.key")
    with pytest.raises(ssl.SSLCertVerificationError, match="unsuitable certificate purpose"):
        handshake(server, client, "localhost")


def test_it_says_what_it_wrote_and_the_lines_it_shows_are_configuration(tmp_path: Path) -> None:
    result = run("--out", str(tmp_path / "a" / "b"), "--host", "workers.test", "--days", "2")
    assert (result.returncode, result.stderr) == (0, "")
    folder = tmp_path / "a" / "b"
    written = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert set(written) == {"ca.pem", *(f"{role}{end}" for role in certs.ROLES for end in (".pem", ".key"))}
    for name, mode in written.items():
        assert name in result.stdout
        assert mode == (0o600 if name.endswith(".key") else 0o644), name
    for line in re.findall(r"^  (\"(?:worker_)?tls\": .*\}),?$", result.stdout, re.MULTILINE):
        (section,) = json.loads(f"{{{line}}}").values()
        pem.key_and_certificate(Path(section["key"]), Path(section["cert"]))
        for name in ("ca", "client_ca"):
            if name in section:
                assert pem.authority(Path(section[name])) == (folder / "ca.pem").read_bytes()
    assert max(len(line.replace(str(folder), "")) for line in result.stdout.splitlines()) <= 120


def test_no_key_that_could_sign_more_is_kept(tmp_path: Path) -> None:
    certs.write_dev(tmp_path)
    authority = x509.load_pem_x509_certificate((tmp_path / "ca.pem").read_bytes())
    for path in tmp_path.glob("*.key"):
        with pytest.raises(pem.PemError):
            pem.key_and_certificate(path, tmp_path / "ca.pem")
    constraints = authority.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert (constraints.ca, constraints.path_length) == (True, 0)


def test_nothing_is_overwritten_unless_it_is_forced(tmp_path: Path) -> None:
    assert run("--out", str(tmp_path)).returncode == 0
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "edge.pem").unlink()
    refused = run("--out", str(tmp_path))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "ca.pem" in refused.stderr
    assert "--force" in refused.stderr
    assert not (tmp_path / "edge.pem").exists()
    assert run("--out", str(tmp_path), "--force").returncode == 0
    assert {path: path.read_bytes() for path in tmp_path.iterdir()}.keys() == before.keys()
    assert all(path.read_bytes() != content for path, content in before.items())


@pytest.mark.parametrize("host", ["a b", "https://x", "x:1", ""])
def test_what_is_no_host_is_refused_and_nothing_is_written(tmp_path: Path, host: str) -> None:
    result = run("--out", str(tmp_path / "certs"), "--host", host)
    assert result.returncode == 1
    assert "neither a host name nor an address" in result.stderr
    assert not (tmp_path / "certs").exists()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run("--out", str(tmp_path / "file" / "certs"))
    assert result.returncode == 1
    assert "cannot write in" in result.stderr


def test_keys_are_never_shown() -> None:
    signed = certs.Authority(certs.LOCAL_HOSTS).sign("edge")
    assert "PRIVATE" in signed.key.decode()
    assert "PRIVATE" not in repr(signed)
