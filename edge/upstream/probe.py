"""One active check of a worker: the health of what calls need, asked with the password."""

from __future__ import annotations

from collections.abc import Callable

import grpc
from grpc_health.v1 import health_pb2

from edge.pool.events import ProbeResult
from edge.upstream import transport
from edge.upstream.channel import Link
from edge.upstream.passwords import Key
from hairmesh import wire
from hairmesh.plain import printable

RESULTS = {
    grpc.StatusCode.UNAVAILABLE: ProbeResult.UNREACHABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED: ProbeResult.TIMEOUT,
    grpc.StatusCode.UNAUTHENTICATED: ProbeResult.AUTH,
}
"""What a failed `Check` means; every other code is an ERROR."""

_REQUEST = health_pb2.HealthCheckRequest(service=wire.ANALYZE_SERVICE)
_SERVING = health_pb2.HealthCheckResponse.SERVING
_STATUS_NAMES = {number: name for name, number in health_pb2.HealthCheckResponse.ServingStatus.items()}


async def check(link: Callable[[], Link], key: Key, timeout_s: float) -> tuple[ProbeResult, str]:
    """What the answer means, and what it was. A refused password is not the end while there is another.

    The newest password comes first, so that a worker that has learnt it is spoken to with it from then on. `link` is
    looked up for each: it may be another channel by then.
    """
    verdict = ProbeResult.AUTH, grpc.StatusCode.UNAUTHENTICATED.name
    for token in key.newest_first():
        rpc = link().check(_REQUEST, timeout=timeout_s, metadata=(token,))
        try:
            answer = await rpc
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNAUTHENTICATED:
                continue
            result, said = RESULTS.get(error.code(), ProbeResult.ERROR), transport.said(error)
            hint = f" ({link().closed_hint})" if said == transport.CLOSED else ""
            return result, f"{error.code().name} {said}{hint}".rstrip()
        if answer is None:
            return ProbeResult.ERROR, "no health answer"
        key.worked(token)
        if answer.status == _SERVING:
            return ProbeResult.GOOD, "SERVING"
        state = _STATUS_NAMES.get(answer.status, f"unknown status {answer.status}")
        why = (await rpc.trailing_metadata()).get(wire.HEALTH_REASON_KEY)
        return ProbeResult.NOT_SERVING, f"{state} {printable(why)}" if isinstance(why, str) else state
    return verdict
