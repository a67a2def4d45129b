"""`python -m bench.many_workers PORT…`: as many idle workers as there are ports, in one process, which counts.

The password comes from FAKE_WORKER_PASSWORD. Each serves `Check`, `Watch` and `WatchStatus` as an idle worker does: its
streams bring one message and are silent. On SIGUSR1 one JSON line says how many of each were answered so far.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, NoReturn

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from hair.worker.v1 import worker_service_pb2 as pb
from hair.worker.v1 import worker_service_pb2_grpc
from typing_extensions import override

from hairmesh import wire

Context = grpc.aio.ServicerContext[Any, Any]
_SERVING = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)


class Idle(health_pb2_grpc.HealthServicer, worker_service_pb2_grpc.WorkerServiceServicer):
    """Every one of the workers."""

    def __init__(self, password: str) -> None:
        self._password = password
        self.asked: Counter[str] = Counter()

    @override
    async def Check(self, request: health_pb2.HealthCheckRequest, context: Context) -> health_pb2.HealthCheckResponse:
        await self._admit(context)
        self.asked["Check"] += 1
        return _SERVING

    @override
    async def Watch(
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> AsyncIterator[health_pb2.HealthCheckResponse]:
        await self._admit(context)
        self.asked["Watch message"] += 1
        yield _SERVING
        await asyncio.Event().wait()

    @override
    async def WatchStatus(
        self, request: pb.WatchStatusRequest, context: Context
    ) -> AsyncIterator[pb.WatchStatusResponse]:
        await self._admit(context)
        self.asked["WatchStatus message"] += 1
        yield pb.WatchStatusResponse(status=_status())
        await asyncio.Event().wait()

    @override
    async def GetStatus(self, request: pb.GetStatusRequest, context: Context) -> pb.GetStatusResponse:
        await self._admit(context)
        self.asked["GetStatus"] += 1
        return pb.GetStatusResponse(status=_status())

    @override
    async def Drain(self, request: pb.DrainRequest, context: Context) -> NoReturn:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "")

    async def _admit(self, context: Context) -> None:
        if dict(context.invocation_metadata() or ()).get(wire.TOKEN_KEY) != self._password:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "")


def _status() -> pb.WorkerStatus:
    status = pb.WorkerStatus(boot_id="idle", live=True, device="cpu", state=pb.SERVING_STATE_SERVING)
    status.slot.state = pb.SLOT_STATE_FREE
    return status


async def serve(ports: list[int]) -> None:
    """Until killed."""
    idle = Idle(os.environ["FAKE_WORKER_PASSWORD"])
    server = grpc.aio.server(options=wire.SERVER_OPTIONS)
    health_pb2_grpc.add_HealthServicer_to_server(idle, server)
    worker_service_pb2_grpc.add_WorkerServiceServicer_to_server(idle, server)
    for port in ports:
        server.add_insecure_port(f"127.0.0.1:{port}")
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: _say("asked", **idle.asked))
    await server.start()
    _say("listening")
    await asyncio.Event().wait()


def _say(event: str, **fields: int) -> None:
    print(json.dumps({"event": event, **fields}), flush=True)


if __name__ == "__main__":
    asyncio.run(serve([int(port) for port in sys.argv[1:]]))
