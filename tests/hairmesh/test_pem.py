"""What gRPC would not say of certificates and keys."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hairmesh import pem

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make certificates")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two self-signed pairs, the second key also behind a passphrase, and a file that is no PEM."""
    made = tmp_path_factory.mktemp("pem")

    def openssl(command: str) -> None:
        subprocess.run(["openssl", *command.split()], cwd=made, check=True, capture_output=True)

    for name in ("a", "b"):
        new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
        openssl(f"{new} -keyout {name}.key -out {name}.pem")
    openssl("pkcs8 -topk8 -in b.key -out locked.key -passout pass:SENTINEL")
    (made / "junk.pem").write_text("SENTINEL")
    return made


def test_a_pair_and_an_authority_are_handed_on_as_they_are(folder: Path) -> None:
    key, certificate = pem.key_and_certificate(folder / "a.key", folder / "a.pem")
    assert key == (folder / "a.key").read_bytes()
    assert certificate == pem.authority(folder / "a.pem") == (folder / "a.pem").read_bytes()


@pytest.mark.parametrize(
    ("key", "certificate"),
    [("b.key", "a.pem"), ("junk.pem", "a.pem"), ("a.key", "junk.pem"), ("locked.key", "b.pem"), ("gone.key", "a.pem")],
)
def test_what_does_not_belong_together_is_named_and_not_told(folder: Path, key: str, certificate: str) -> None:
    with pytest.raises(pem.PemError, match=key.replace(".", r"\.")) as caught:
        pem.key_and_certificate(folder / key, folder / certificate)
    assert "SENTINEL" not in str(caught.value)


@pytest.mark.parametrize("name", ["junk.pem", "a.key", "gone.pem"])
def test_an_authority_that_is_none_is_named(folder: Path, name: str) -> None:
    with pytest.raises(pem.PemError, match=name.replace(".", r"\.")):
        pem.authority(folder / name)
