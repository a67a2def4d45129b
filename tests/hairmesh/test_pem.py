"""What gRPC would not say of certificates and keys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from hairmesh import certs, pem


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pairs of different authorities, the second key also behind a passphrase, and a file that is no PEM."""
    made = tmp_path_factory.mktemp("pem")
    for name in ("a", "b"):
        signed = certs.Authority(certs.LOCAL_HOSTS).sign("worker")
        (made / f"{name}.pem").write_bytes(signed.certificate)
        (made / f"{name}.key").write_bytes(signed.key)
    private = serialization.load_pem_private_key((made / "b.key").read_bytes(), password=None)
    locked = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"SENTINEL"),
    )
    (made / "locked.key").write_bytes(locked)
    (made / "junk.pem").write_text("SENTINEL")
    return made


def test_a_pair_and_an_authority_are_handed_on_as_they_are(folder: Path) -> None:
    key, certificate = pem.key_and_certificate(folder / "a.key", folder / "a.pem")
    assert key == (folder / "a.key").read_bytes()
    assert certificate == pem.authority(folder / "a.pem") == (folder / "a.pem").read_bytes()


@pytest.mark.parametrize(
    ("key", "certificate", "named"),
    [
        ("b.key", "a.pem", "b.key are no certificate and its private key"),
        ("junk.pem", "a.pem", "junk.pem holds no private key"),
        ("a.pem", "a.pem", "a.pem holds no private key"),
        ("a.key", "junk.pem", "junk.pem holds no certificate"),
        ("a.key", "b.key", "b.key holds no certificate"),
        ("locked.key", "b.pem", "locked.key holds no private key, PEM without a passphrase"),
        ("gone.key", "a.pem", "gone.key: No such file or directory"),
    ],
)
def test_what_does_not_belong_together_is_named_and_not_told(
    folder: Path, key: str, certificate: str, named: str
) -> None:
    with pytest.raises(pem.PemError) as caught:
        pem.key_and_certificate(folder / key, folder / certificate)
    assert named in str(caught.value)
    assert "SENTINEL" not in str(caught.value)


@pytest.mark.parametrize("name", ["junk.pem", "a.key", "gone.pem"])
def test_an_authority_that_is_none_is_named(folder: Path, name: str) -> None:
    with pytest.raises(pem.PemError, match=name.replace(".", r"\.")):
        pem.authority(folder / name)


def test_a_chain_expires_with_its_first_certificate_to_do_so() -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    authority = certs.Authority(certs.LOCAL_HOSTS, days=30, now=now)
    lasting = authority.sign("worker").certificate
    short = authority.sign("worker", valid=(now, now + timedelta(hours=1))).certificate
    assert pem.validity(lasting).expires_at == now + timedelta(days=30)
    assert pem.validity(lasting + short).expires_at == pem.validity(short + lasting).expires_at
    assert pem.validity(lasting + short).expires_at == now + timedelta(hours=1)


@pytest.mark.parametrize(("days", "left_days"), [(365, 14), (90, 14), (8, 2)])
def test_a_certificate_is_to_be_replaced_two_weeks_before_its_end_or_a_quarter_of_a_short_life(
    days: int, left_days: int
) -> None:
    now = datetime.now(UTC)
    validity = pem.Validity(now, now + timedelta(days=days))
    assert validity.expires_at - validity.replace_by == timedelta(days=left_days)


@pytest.mark.parametrize(
    ("mode", "told"),
    [(0o600, ""), (0o400, ""), (0o640, ""), (0o644, "0644"), (0o660, "0660"), (0o602, "0602"), (0o604, "0604")],
)
def test_a_file_open_to_others_is_told_of_by_its_mode(tmp_path: Path, mode: int, told: str) -> None:
    path = tmp_path / "key"
    path.touch()
    path.chmod(mode)
    assert pem.loose_permissions(path) == told
    assert pem.loose_permissions(tmp_path / "gone") == ""
