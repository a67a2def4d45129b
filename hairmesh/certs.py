"""`hairmesh certs dev`: a certificate authority of one's own for development and the demo, and all it signs.

The authority's key is never written: nobody can make it sign more, so that a browser may trust it without a risk. What
it signed holds for the named hosts alone, and not for long.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
VALID_DAYS = 30
CLOCK_SLACK = timedelta(minutes=5)
"""How much the clock of another machine may be behind."""

ROLES: Mapping[str, tuple[x509.ObjectIdentifier, str]] = {
    "edge": (ExtendedKeyUsageOID.SERVER_AUTH, "the edge's, for HTTPS: tls.cert and tls.key of its configuration"),
    "worker": (ExtendedKeyUsageOID.SERVER_AUTH, "every worker's: tls.cert and tls.key of its configuration"),
    "client": (
        ExtendedKeyUsageOID.CLIENT_AUTH,
        "the edge's, as a client of workers: worker_tls.cert and worker_tls.key",
    ),
}
"""What is made: whom a certificate is good for, and who is to have it."""
AUTHORITY = "ca.pem"


class CertsError(Exception):
    """Nothing was written. The message is for people."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A certificate and its key, PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        """Never the key."""
        return "<Signed>"


class Authority:
    """Signs while it lives; only its certificate can be kept."""

    def __init__(self, hosts: Sequence[str], *, days: float = VALID_DAYS, now: datetime | None = None) -> None:
        self._now = now or datetime.now(UTC)
        self._until = self._now + timedelta(days=days)
        self._names = [_name_of(host) for host in hosts]
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "HairMesh development CA")])
        identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        self._identifier = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
        self._certificate = (
            self._builder(self._name, self._key, self._now, self._until)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(identifier, critical=False)
            .sign(self._key, SHA256())
        )

    @property
    def certificate(self) -> bytes:
        """What others need to trust it, PEM."""
        return self._certificate.public_bytes(Encoding.PEM)

    def sign(
        self,
        role: str,
        *,
        hosts: Sequence[str] | None = None,
        valid: tuple[datetime, datetime] | None = None,
    ) -> Signed:
        """A new key with its certificate, for a role of `ROLES`.

        `hosts`: whom it is for; by default all that the authority was made for. A client's names no host. `valid`: from
        when to when; by default as long as the authority.
        """
        purpose, _whose = ROLES[role]
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"HairMesh development {role}")])
        builder = (
            self._builder(subject, key, *(valid or (self._now, self._until)))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(self._identifier, critical=False)
        )
        if purpose == ExtendedKeyUsageOID.SERVER_AUTH:
            names = self._names if hosts is None else [_name_of(host) for host in hosts]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, SHA256()).public_bytes(Encoding.PEM)
        return Signed(certificate, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, valid_from: datetime, valid_until: datetime
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(valid_from - CLOCK_SLACK)
            .not_valid_after(valid_until)
        )


def write_dev(folder: Path, hosts: Sequence[str] = (), *, days: float = VALID_DAYS, force: bool = False) -> datetime:
    """Make an authority and one pair per role in `folder`, keys for this user alone; until when they hold.

    `hosts`: names and addresses beside this machine's own. Raises `CertsError` for what is no host, for a folder that
    cannot be written, and, unless `force`, for files that are there already.
    """
    names = [f"{role}{suffix}" for role in ROLES for suffix in (".pem", ".key")]
    present = [name for name in (AUTHORITY, *names) if (folder / name).exists()]
    if present and not force:
        raise CertsError(f"{folder} already holds {', '.join(present)}: --force replaces them")
    now = datetime.now(UTC)
    authority = Authority(tuple(dict.fromkeys((*LOCAL_HOSTS, *hosts))), days=days, now=now)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / AUTHORITY, authority.certificate, 0o644)
        for role in ROLES:
            signed = authority.sign(role)
            _write(folder / f"{role}.key", signed.key, 0o600)
            _write(folder / f"{role}.pem", signed.certificate, 0o644)
    except OSError as error:
        raise CertsError(f"cannot write in {folder}: {error.strerror}") from None
    return now + timedelta(days=days)


def instructions(folder: Path, until: datetime) -> str:
    """What was written, and how to use it."""
    where = folder.absolute()
    pair = '"cert": "{0}/{1}.pem", "key": "{0}/{1}.key"'
    lines = [
        f"Valid until {until:%Y-%m-%d %H:%M} UTC, for development alone. In {where}:",
        "",
        f"  {AUTHORITY:<24}the authority's certificate, for whoever is to trust the others; its key was not kept",
        *(f"  {f'{role}.pem, {role}.key':<24}{whose}" for role, (_purpose, whose) in ROLES.items()),
        "",
        "In the edge's configuration (HTTPS for clients; TLS to workers, with a certificate of its own):",
        "",
        f'  "tls": {{{pair.format(where, "edge")}}},',
        f'  "worker_tls": {{"ca": "{where}/{AUTHORITY}", {pair.format(where, "client")}}},',
        "",
        "In each worker's:",
        "",
        f'  "tls": {{{pair.format(where, "worker")}, "client_ca": "{where}/{AUTHORITY}"}},',
        "",
        f"Clients: curl --cacert {where}/{AUTHORITY} https://localhost:8080/monitor",
        "Running processes take new files over by themselves: run this again with --force before they expire.",
    ]
    return "\n".join(lines)


def _write(path: Path, content: bytes, mode: int) -> None:
    """A file that is whole from the moment it has its name, and never was anybody else's to read."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    part.replace(path)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name_of(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        pass
    try:
        name = host.encode("idna").decode()
        if name and " " not in name and ":" not in name and "/" not in name:
            return x509.DNSName(name)
    except UnicodeError:
        pass
    raise CertsError(f"{host!r} is neither a host name nor an address")
