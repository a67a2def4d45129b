"""`grpc.health.v1`: Check, Watch and List over the present report. Answers at once, whatever computes.

Own servicer on the generated stubs: grpc's starts `""` as SERVING and has no List.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import grpc
from grpc import aio
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthServicer
from typing_extensions import override

from hairmesh.wire import HEALTH_REASON_KEY, WorkerReason
from worker.health.monitor import HealthMonitor
from worker.health.report import LIVENESS, OVERALL, one_line
from worker.news import News
from worker.passwords import Credential, Passwords
from worker.refusals import Refusal, to_status

Context = aio.ServicerContext[Any, Any]

if TYPE_CHECKING:  # the published stubs are older than List
    ListRequest = Any
    ListResponse = Any
else:
    ListRequest = health_pb2.HealthListRequest
    ListResponse = health_pb2.HealthListResponse

OPEN_NAMES = frozenset({OVERALL, LIVENESS})
"""Checked without a password, by orchestrators; they learn the status alone."""
REASON_CHARACTERS = 1024
"""What is longer is cut off in metadata; `GetStatus` tells the whole of it."""


class HealthReporter(HealthServicer):
    """Names are those of `Report.why_not`; their meaning stands in `worker.health.report`."""

    def __init__(self, monitor: HealthMonitor, passwords: Passwords, news: News) -> None:
        self._monitor = monitor
        self._passwords = passwords
        self._news = news

    @override
    async def Check(self, request: health_pb2.HealthCheckRequest, context: Context) -> health_pb2.HealthCheckResponse:
        """Status of one name; with the password also why, in trailing metadata."""
        known = self._passwords.judge(tuple(context.invocation_metadata() or ())) is Credential.GOOD
        if not known and request.service not in OPEN_NAMES:
            await context.abort_with_status(to_status(Refusal(WorkerReason.WRONG_PASSWORD)))
        why_not = self._monitor.report().why_not.get(request.service)
        if why_not is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown health name")
        if why_not and known:
            context.set_trailing_metadata(((HEALTH_REASON_KEY, one_line(why_not, REASON_CHARACTERS)),))
        return _response(why_not)

    async def List(self, request: ListRequest, context: Context) -> ListResponse:  # noqa: N802  (name of the RPC)
        """Status of every name."""
        why_not = self._monitor.report().why_not
        return ListResponse(statuses={name: _response(reason) for name, reason in why_not.items()})

    @override
    async def Watch(
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> AsyncIterator[health_pb2.HealthCheckResponse]:
        """Status of one name, at once and on every change."""
        told: health_pb2.HealthCheckResponse | None = None
        try:
            while True:
                version = self._news.version
                response = _response(self._monitor.report().why_not.get(request.service))
                if response != told:
                    yield response
                    told = response
                if self._news.closed:
                    return
                await self._news.newer_than(version)
        except asyncio.CancelledError:
            return  # the watcher left


def _response(why_not: str | None) -> health_pb2.HealthCheckResponse:
    if why_not is None:
        return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)
    if why_not:
        return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.NOT_SERVING)
    return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)
