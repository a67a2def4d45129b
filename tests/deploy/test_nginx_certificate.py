"""What the pages say of nginx's certificate: new files alone change nothing for clients, a reload does."""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path

from hairmesh import certs
from hairmesh.stack import LOOPBACK
from tests.deploy.proxy import Nginx


def shown(port: int) -> str:
    """By its digest: the certificate that the port shows now."""
    return digest(ssl.get_server_certificate((LOOPBACK, port), timeout=30))


def digest(pem: str) -> str:
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()


def on_disk(nginx: Nginx) -> str:
    return digest((nginx.folder / "tls" / "edge.pem").read_text())


async def test_a_renewed_certificate_is_shown_after_a_reload_and_not_before(tmp_path: Path) -> None:
    async with Nginx(tmp_path / "nginx", "127.0.0.1:1") as nginx:
        former = on_disk(nginx)
        certs.write_dev(nginx.folder / "tls", force=True)
        assert on_disk(nginx) != former
        assert shown(nginx.port) == former
        await nginx.reload()
        assert shown(nginx.port) == on_disk(nginx)
