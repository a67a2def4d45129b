"""Health checks straight to a real worker whose slot works without a break: how long each takes."""

from __future__ import annotations

import io
import sys
import threading
import time

import grpc
import pillow_heif
from grpc_health.v1 import health_pb2
from hair.analysis.v1 import analyze_service_pb2_grpc, common_pb2, measure_pb2
from PIL import Image

from bench.harness import BenchError
from bench.memory import portrait
from hairmesh.child import console_script
from hairmesh.wire import ANALYZE_SERVICE, CLIENT_OPTIONS, TOKEN_KEY
from tests.e2e.breakable_worker import photo
from tests.e2e.service import Service, Worker

CHECK_EVERY_S = 0.01
TWELVE_MP_SIDE_PX, FORTY_MP_SIDE_PX = 3464, 6324


def heic(side_px: int) -> bytes:
    """The studio portrait as a phone sends it."""
    buffer = io.BytesIO()
    pillow_heif.from_pillow(Image.open(io.BytesIO(portrait(side_px)))).save(buffer, quality=40)
    return buffer.getvalue()


def add_burners(service: Service) -> dict[str, tuple[Worker, bytes]]:
    """Workers that compute on purpose, by load: whom to call, and with which photo."""
    burner = (sys.executable, "-m", "bench.busy_worker")
    return {
        name: (service.add_worker(*burner, load), photo(seconds=0.5))
        for name, load in (("torch", "torch"), ("pure Python", "python"))
    }


def add_real(service: Service) -> dict[str, tuple[Worker, bytes]]:
    """A worker with the real models, for photos that are much work; needs the models."""
    real = service.add_worker(str(console_script("hairmesh-worker")), "--config")
    return {"HEIC, 12 MP": (real, heic(TWELVE_MP_SIDE_PX)), "JPEG, 40 MP": (real, portrait(FORTY_MP_SIDE_PX))}


class Busy:
    """Keeps one worker's slot taken by one call after the other, in a thread, until closed."""

    def __init__(self, address: str, token: str, image: bytes) -> None:
        self._channel = grpc.insecure_channel(address, options=CLIENT_OPTIONS)
        self._measure = analyze_service_pb2_grpc.AnalyzeServiceStub(self._channel).Measure
        self._metadata = ((TOKEN_KEY, token),)
        self._request = measure_pb2.MeasureRequest(photo=common_pb2.Image(data=image), annotate=True)
        self._stop = threading.Event()
        self._failure: grpc.RpcError | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        """End after the running call; raises `BenchError` when a call failed."""
        self._stop.set()
        self._thread.join()
        self._channel.close()
        if self._failure is not None:
            raise BenchError(f"a call failed: {self._failure}")

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._measure(self._request, metadata=self._metadata, timeout=60)
        except grpc.RpcError as error:
            self._failure = error


def check_times_ms(worker: Worker, token: str, image: bytes, count: int) -> list[float]:
    """How long each of `count` checks took while the slot works on `image`, again and again."""
    taken_ms = []
    request, metadata = health_pb2.HealthCheckRequest(service=ANALYZE_SERVICE), ((TOKEN_KEY, token),)
    with grpc.insecure_channel(worker.address, options=CLIENT_OPTIONS) as channel:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        busy = Busy(worker.address, token, image)
        try:
            for _ in range(count):
                begun_s = time.perf_counter()
                answer = check(request, metadata=metadata, timeout=10)
                taken_ms.append((time.perf_counter() - begun_s) * 1000)
                if answer.status != health_pb2.HealthCheckResponse.SERVING:
                    raise BenchError("a busy worker said that it does not serve")
                time.sleep(CHECK_EVERY_S)
        finally:
            busy.close()
    return taken_ms
