"""`hairmesh health`: one question to a worker or an edge whether it is well, for whoever starts containers.

Without any secret: of a worker the two health names that need none, of an edge its probes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import grpc
import httpx
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from hairmesh import pem, wire
from hairmesh.plain import printable
from hairmesh.trust import authorities
from hairmesh.usage import USAGE_STATUS

TIMEOUT_S = 4.0
"""Of the whole question. Whoever asks by this command gives it 5 s and more: Python has to start."""
LIVENESS = "liveness"
"""The worker's health name for "restarting would not help"; the empty one means "takes calls now"."""
WELL, NOT_WELL, NOT_SEEN = 0, 1, 3
"""Exit status; the last as that of `hairmesh status`."""


class HealthError(Exception):
    """There was no answer. The message says why."""


class UsageError(Exception):
    """Nothing was asked. The message says why."""


def run(target: str, *, ready: bool, ca: Path | None, cert: Path | None, key: Path | None) -> int:
    """Ask, say it on standard output; the exit status."""
    try:
        said = _of_edge(target, ready, ca) if "://" in target else _of_worker(target, ready, ca, cert, key)
    except UsageError as error:
        return _complain(error, USAGE_STATUS)
    except HealthError as error:
        return _complain(error, NOT_SEEN)
    sys.stdout.write(f"{said}\n")
    return WELL if said in {"SERVING", "200"} else NOT_WELL


def _complain(error: Exception, status: int) -> int:
    sys.stderr.write(f"health: {printable(str(error))}\n")
    return status


def _of_worker(address: str, ready: bool, ca: Path | None, cert: Path | None, key: Path | None) -> str:
    """Name of the status of `grpc.health.v1`."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError("a worker is host:port, an edge http(s)://host:port")
    options = (*wire.CLIENT_OPTIONS, ("grpc.enable_http_proxy", 0))
    credentials = _credentials(ca, cert, key)
    name = "" if ready else LIVENESS
    with (
        grpc.insecure_channel(address, options=options)
        if credentials is None
        else grpc.secure_channel(address, credentials, options=options)
    ) as channel:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=HealthCheckRequest.SerializeToString,
            response_deserializer=HealthCheckResponse.FromString,
        )
        try:
            answer: HealthCheckResponse = check(HealthCheckRequest(service=name), timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            raise HealthError(f"{address}: {error.code().name}") from None
    return HealthCheckResponse.ServingStatus.Name(answer.status)


def _credentials(ca: Path | None, cert: Path | None, key: Path | None) -> grpc.ChannelCredentials | None:
    if (cert is None) != (key is None) or (cert and not ca):
        raise UsageError("--cert and --key belong together, and to --ca")
    if ca is None:
        return None
    try:
        private, chain = pem.key_and_certificate(key, cert) if key and cert else (None, None)
        return grpc.ssl_channel_credentials(pem.authority(ca), private, chain)
    except pem.PemError as error:
        raise UsageError(str(error)) from None


def _of_edge(url: str, ready: bool, ca: Path | None) -> str:
    """The HTTP status, as text."""
    try:
        if ca is not None:
            pem.authority(ca)
        with httpx.Client(trust_env=False, timeout=TIMEOUT_S, verify=authorities(ca)) as client:
            return str(client.get(f"{url.rstrip('/')}/{'readyz' if ready else 'livez'}").status_code)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, pem.PemError) as error:
        raise UsageError(str(error)) from None
    except httpx.HTTPError as error:
        raise HealthError(f"{url}: {error}") from None
