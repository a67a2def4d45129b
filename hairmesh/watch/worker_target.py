"""A worker of this project over gRPC."""

from __future__ import annotations

import time

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from hair.worker.v1.worker_service_pb2 import GetStatusRequest
from hair.worker.v1.worker_service_pb2_grpc import WorkerServiceStub

from hairmesh import wire
from hairmesh.watch.target import LOOK_TIMEOUT_S, TargetError, failed_to_connect, place
from worker.health.probes.worker import read_liveness, read_status
from worker.health.watchdog.looks import Answer, Look

WRONG_PASSWORD = "it refuses the password: --secret-file has to hold one of its accept_passwords"  # noqa: S105  (advice)
LIVENESS = "liveness"
"""The health service's name for "restarting would not help"."""


class WorkerTarget:
    """One worker at `host:port`. Without `secret`, its password, it tells no more than its liveness."""

    canary = None  # it runs its own, and GetStatus says how that went

    def __init__(
        self, address: str, *, grace_s: float | None, secret: str, credentials: grpc.ChannelCredentials | None
    ) -> None:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise TargetError("the target of a worker is host:port")
        self.name = f"worker {address}"
        self.place = place("worker", host.strip("[]"), int(port))
        self._grace_s = grace_s
        self._metadata = ((wire.TOKEN_KEY, secret),) if secret else ()
        options = (*wire.CLIENT_OPTIONS, ("grpc.enable_http_proxy", 0))
        if credentials is None:
            self._channel = grpc.aio.insecure_channel(address, options=options)
        else:
            self._channel = grpc.aio.secure_channel(address, credentials, options=options)

    async def close(self) -> None:
        """See `Target`."""
        await self._channel.close()

    async def look(self, at_s: float) -> Look:
        """See `Target`."""
        try:
            return await (self._status(at_s) if self._metadata else self._liveness(at_s))
        except grpc.aio.AioRpcError as error:
            return await self._failed(error.code(), at_s)

    async def _status(self, at_s: float) -> Look:
        stub = WorkerServiceStub(self._channel)
        answer = await stub.GetStatus(GetStatusRequest(), metadata=self._metadata, timeout=LOOK_TIMEOUT_S)
        return read_status(answer.status, at_s=at_s, now_epoch_s=time.time(), grace_s=self._grace_s)

    async def _liveness(self, at_s: float) -> Look:
        check = self._channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=HealthCheckRequest.SerializeToString,
            response_deserializer=HealthCheckResponse.FromString,
        )
        answer: HealthCheckResponse = await check(HealthCheckRequest(service=LIVENESS), timeout=LOOK_TIMEOUT_S)
        return read_liveness(live=answer.status == HealthCheckResponse.SERVING, at_s=at_s)

    async def _failed(self, code: grpc.StatusCode, at_s: float) -> Look:
        match code:
            case grpc.StatusCode.UNAVAILABLE:
                return await failed_to_connect(self.place.host, self.place.port, at_s)
            case grpc.StatusCode.DEADLINE_EXCEEDED:
                return Look(at_s, Answer.SLOW, problem=f"no answer within {LOOK_TIMEOUT_S:.0f} s")
            case grpc.StatusCode.UNAUTHENTICATED:
                return Look(at_s, Answer.UNREADABLE, problem=WRONG_PASSWORD)
            case _:
                return Look(at_s, Answer.UNREADABLE, problem=f"status: {code.name}")
