"""From options to a target and its limits."""

from __future__ import annotations

import os
import re
import ssl
from pathlib import Path

import httpx

from hairmesh import pem, wire
from hairmesh.loopback import is_loopback
from hairmesh.watch.http_targets import ComfyTarget, ProxyTarget, VllmTarget
from hairmesh.watch.options import SECRET_VARIABLE, Kind, Options
from hairmesh.watch.target import Target, TargetError
from worker.health.probes import comfyui
from worker.health.watchdog.limits import Limits

_SCHEME = re.compile(r"[a-z]+://", re.IGNORECASE)

GRACES_S = {Kind.VLLM: Limits().grace_s, Kind.COMFYUI: comfyui.GRACE_S, Kind.WORKER: Limits().grace_s}
"""How long work in flight may be still, unless the command line says otherwise or a worker's stage does."""


def limits(options: Options) -> Limits:
    """Raises `TargetError` when a stall could never be seen in two looks."""
    grace_s = _grace_s(options)
    if options.interval_s * 2 > grace_s:
        raise TargetError("--interval is too long for --grace: at least two looks have to fall into one")
    return Limits(
        interval_s=options.interval_s,
        grace_s=grace_s,
        start_grace_s=options.start_grace_s,
        dead_grace_s=options.start_grace_s if options.dead_grace_s is None else options.dead_grace_s,
    )


def target(options: Options) -> Target:
    """Connect to nothing yet; raises `TargetError` for what cannot work or would give the secret away."""
    if options.proxy and options.kind is not Kind.VLLM:
        raise TargetError("--proxy goes with vllm")
    secret = _secret(options.secret_file)
    if secret and (problem := wire.password_problem(secret)):
        raise TargetError(f"the secret: {problem}")
    try:
        if options.kind is Kind.WORKER:
            return _worker(options, secret)
        tls = _tls(options)
    except pem.PemError as error:
        raise TargetError(str(error)) from None
    if secret and not options.insecure and options.target.startswith("http://"):
        _check_plaintext(httpx.URL(options.target).host)
    if options.proxy:
        return ProxyTarget(options.target, secret=secret, tls=tls)
    if options.kind is Kind.COMFYUI:
        return ComfyTarget(options.target, grace_s=_grace_s(options), secret=secret, tls=tls)
    return VllmTarget(options.target, grace_s=_grace_s(options), secret=secret, tls=tls)


def _grace_s(options: Options) -> float:
    return GRACES_S[options.kind] if options.grace_s is None else options.grace_s


def _worker(options: Options, secret: str) -> Target:
    import grpc  # noqa: PLC0415  (only workers need it)

    from hairmesh.watch.worker_target import WorkerTarget  # noqa: PLC0415

    if scheme := _SCHEME.match(options.target):
        raise TargetError(f"a worker is host:port, without {scheme[0]}")
    credentials = None
    if options.ca is not None:
        key, chain = None, None
        if options.key is not None and options.cert is not None:
            key, chain = pem.key_and_certificate(options.key, options.cert)
        credentials = grpc.ssl_channel_credentials(pem.authority(options.ca), key, chain)
    elif secret and not options.insecure:
        _check_plaintext(options.target.rpartition(":")[0].strip("[]"))
    return WorkerTarget(options.target, grace_s=options.grace_s, secret=secret, credentials=credentials)


def _tls(options: Options) -> ssl.SSLContext | None:
    if options.ca is None:
        return None
    pem.authority(options.ca)
    context = ssl.create_default_context(cafile=str(options.ca))
    if options.key is not None and options.cert is not None:
        pem.key_and_certificate(options.key, options.cert)
        context.load_cert_chain(options.cert, options.key)
    return context


def _secret(path: Path | None) -> str:
    """From the file, else from the environment; empty when there is none. Never in a message."""
    if path is None:
        return os.environ.get(SECRET_VARIABLE, "").strip()
    try:
        secret = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise TargetError(f"--secret-file {path}: {getattr(error, 'strerror', None) or 'no text'}") from None
    if not secret:
        raise TargetError(f"--secret-file {path}: is empty")
    return secret


def _check_plaintext(host: str) -> None:
    """Raise `TargetError` when a secret would go over a network in plain text."""
    if not is_loopback(host):
        raise TargetError("the secret would go over the network in plain text: use TLS, or allow it with --insecure")
