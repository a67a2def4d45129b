"""What the edge costs: the REST call against the same call by gRPC directly, and against two peers.

    python bench/edge_overhead.py [--rounds N] [--calls N]

A worker that answers at once, a photo of 200 kB in, a picture of 300 kB out, readable at its URL in the moment the
answer arrives. Peers on the same work: gRPC directly, with a blocking stub; the design HairMesh replaces
(`bench/peers`: FastAPI and httpx, base64 in JSON); Envoy's gRPC-JSON transcoder (which keeps no picture). All clients
are blocking and send requests prepared in advance, over one kept connection each. Every round measures every peer, in
turn; the figures are medians over the rounds of ours over theirs (latency: below 1 is faster than the peer;
throughput: above 1 is more).
"""

from __future__ import annotations

import argparse
import base64
import http.client
import io
import json
import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import grpc
import numpy as np
from hair.analysis.v1 import analyze_service_pb2_grpc, common_pb2, measure_pb2
from PIL import Image
from rich.progress import track

from bench.harness import BenchError, console, emit, median_ratio, process, seconds, table, wait_for_port
from hairmesh.stack import LOOPBACK, free_ports, write_private
from hairmesh.wire import CLIENT_OPTIONS, TOKEN_KEY

PHOTO_BYTES = 200_000
PICTURE_BYTES = 300_000
CLIENTS = 4
BOUNDARY = secrets.token_hex(16)
"""As the usual clients make it."""
ROUTE = "/api/v1/face/measure"


def photo() -> bytes:
    """A JPEG of noise of about `PHOTO_BYTES`."""
    noise = np.random.default_rng(1).integers(0, 256, (400, 400, 3), dtype=np.uint8)
    for quality in range(95, 20, -1):
        buffer = io.BytesIO()
        Image.fromarray(noise).save(buffer, "JPEG", quality=quality)
        if buffer.tell() <= PHOTO_BYTES:
            break
    return buffer.getvalue()


class HttpPeer:
    """One blocking client on one kept connection that posts the same body again and again."""

    def __init__(self, port: int, route: str, body: bytes, headers: dict[str, str]) -> None:
        self._connection = http.client.HTTPConnection(LOOPBACK, port, timeout=30)
        self._route, self._body, self._headers = route, body, headers

    def call(self) -> bytes:
        """One call; the answer's body. Raises `BenchError` unless it is a 200."""
        return self._request("POST", self._route, self._body)

    def call_and_get(self) -> bytes:
        """One call, then the picture it names."""
        url = json.loads(self.call())["data"]["annotated_image_url"]
        return self._request("GET", "/" + url.split("/", 3)[3] if "://" in url else url, None)

    def _request(self, method: str, route: str, body: bytes | None) -> bytes:
        self._connection.request(method, route, body, self._headers if body is not None else {})
        response = self._connection.getresponse()
        answer = response.read()
        if response.status != http.HTTPStatus.OK:
            raise BenchError(f"{method} {route}: HTTP {response.status} {answer[:200]!r}")
        return answer


def multipart(data: bytes) -> tuple[bytes, dict[str, str]]:
    """The photo as a form, as apps send it."""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="image"; filename="p.jpg"\r\n'
    body = f"{head}Content-Type: image/jpeg\r\n\r\n".encode() + data + f"\r\n--{BOUNDARY}--\r\n".encode()
    return body, {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def direct_peer(port: int, token: str, data: bytes) -> Callable[[], object]:
    """The same call by gRPC: a blocking stub."""
    channel = grpc.insecure_channel(f"{LOOPBACK}:{port}", options=CLIENT_OPTIONS)
    stub = analyze_service_pb2_grpc.AnalyzeServiceStub(channel)
    request = measure_pb2.MeasureRequest(photo=common_pb2.Image(data=data, media_type="image/jpeg"))
    metadata = ((TOKEN_KEY, token),)

    def call() -> object:
        answer = stub.Measure(request, metadata=metadata, timeout=30)
        if len(answer.annotated_image.data) < PICTURE_BYTES // 2:
            raise BenchError("the worker sent no picture")
        return answer

    return call


def edge_config(folder: Path, listen: int, workers: Sequence[int], token: str) -> str:
    """Our edge in front of the workers, as an operator would configure it."""
    return json.dumps(
        {
            "listen": f"{LOOPBACK}:{listen}",
            "public_base_url": f"http://{LOOPBACK}:{listen}",
            "workers": [f"{LOOPBACK}:{port}" for port in workers],
            "shared_password": token,
            "admin_tokens": [secrets.token_urlsafe(24)],
            "static": {"dir": str(folder / "static")},
            "request_log": {"path": str(folder / "request_log.jsonl")},
        }
    )


def envoy_config(folder: Path, listen: int, workers: Sequence[int]) -> Path:
    """Envoy's transcoder in front of the workers, fed with our own descriptors."""
    descriptors = folder / "descriptors.pb"
    buf = Path(sys.executable).with_name("buf")
    subprocess.run([buf, "build", "--as-file-descriptor-set", "-o", descriptors], check=True)

    def address(port: int) -> dict[str, object]:
        return {"socket_address": {"address": LOOPBACK, "port_value": port}}

    extension = "type.googleapis.com/envoy.extensions"
    transcoder = {
        "@type": f"{extension}.filters.http.grpc_json_transcoder.v3.GrpcJsonTranscoder",
        "proto_descriptor": str(descriptors),
        "services": ["hair.analysis.v1.AnalyzeService"],
        "auto_mapping": True,
        "max_request_body_size": 8 << 20,
        "max_response_body_size": 8 << 20,
    }
    manager = {
        "@type": f"{extension}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "bench",
        "route_config": {
            "virtual_hosts": [
                {"name": "v", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "w"}}]}
            ]
        },
        "http_filters": [
            {"name": "transcoder", "typed_config": transcoder},
            {"name": "router", "typed_config": {"@type": f"{extension}.filters.http.router.v3.Router"}},
        ],
    }
    http2 = {
        "@type": f"{extension}.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {}},
    }
    endpoints = [{"endpoint": {"address": address(port)}} for port in workers]
    cluster = {
        "name": "w",
        "type": "STATIC",
        "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": http2},
        "load_assignment": {"cluster_name": "w", "endpoints": [{"lb_endpoints": endpoints}]},
    }
    listener = {"address": address(listen), "filter_chains": [{"filters": [{"name": "m", "typed_config": manager}]}]}
    path = folder / "envoy.json"
    path.write_text(json.dumps({"static_resources": {"listeners": [listener], "clusters": [cluster]}}))
    return path


def throughput(calls: Sequence[Callable[[], object]], per_client: int) -> float:
    """Calls per second of several clients at once, each in a thread of its own."""
    failures: list[BaseException] = []

    def client(call: Callable[[], object]) -> None:
        try:
            for _ in range(per_client):
                call()
        except BaseException as error:  # noqa: BLE001  (carried to the main thread below)
            failures.append(error)

    threads = [threading.Thread(target=client, args=(call,)) for call in calls]
    begun_s = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return len(calls) * per_client / (time.perf_counter() - begun_s)


def latency_ms(call: Callable[[], object], count: int) -> float:
    """Median time of one call, in ms."""
    return statistics.median(seconds(call) for _ in range(count)) * 1000


def main() -> None:
    """Start the peers, measure in rounds, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=150, help="calls per peer and round")
    args = parser.parse_args()
    token = secrets.token_urlsafe(24)
    data = photo()
    edge_port, wide_port, proxy_port, proxy_worker_port, envoy_port, *ports = free_ports(5 + CLIENTS)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        python = sys.executable
        size = ["--picture-bytes", str(PICTURE_BYTES)]
        fake = [python, "-m", "tests.fakes.worker", "--png-bytes", str(PICTURE_BYTES)]
        environment = {"FAKE_WORKER_PASSWORD": token}
        for number, port in enumerate(ports, start=1):
            stack.enter_context(process(f"worker{number}", [*fake, "--port", str(port)], folder, environment))
            wait_for_port(port)
        # One client meets one worker, whoever stands between them; several clients meet as many workers.
        for label, port, behind in (("edge", edge_port, ports[:1]), ("edge4", wide_port, ports)):
            write_private(folder / f"{label}.json", edge_config(folder / label, port, behind, token))
            program = str(Path(python).with_name("hairmesh-edge"))
            stack.enter_context(process(label, [program, "--config", str(folder / f"{label}.json")], folder))
        proxy = [python, "-m", "bench.peers.proxy_design"]
        worker_arguments = [*proxy, "worker", *size, "--port", str(proxy_worker_port)]
        stack.enter_context(process("proxy-worker", worker_arguments, folder))
        worker_url = f"http://{LOOPBACK}:{proxy_worker_port}"
        edge_arguments = [*proxy, "edge", "--port", str(proxy_port), "--worker", worker_url]
        stack.enter_context(process("proxy", [*edge_arguments, "--static", str(folder / "proxy")], folder))
        envoy = str(Path(python).with_name("envoy"))
        arguments = [envoy, "-c", str(envoy_config(folder, envoy_port, ports[:1])), "--concurrency", "2", "-l", "error"]
        stack.enter_context(process("envoy", [*arguments, "--use-dynamic-base-id"], folder))
        for port in (edge_port, wide_port, proxy_port, proxy_worker_port, envoy_port):
            wait_for_port(port)

        form, form_headers = multipart(data)
        transcoded = json.dumps({"photo": {"data": base64.b64encode(data).decode(), "mediaType": "image/jpeg"}})
        envoy_headers = {"Content-Type": "application/json", TOKEN_KEY: token}
        envoy_route = "/hair.analysis.v1.AnalyzeService/Measure"
        edge = HttpPeer(edge_port, ROUTE, form, form_headers)
        edges = [HttpPeer(wide_port, ROUTE, form, form_headers) for _ in range(CLIENTS)]
        directs = [direct_peer(port, token, data) for port in ports]
        peers: dict[str, Callable[[], object]] = {
            "direct": directs[0],
            "edge": edge.call,
            "edge and GET": edge.call_and_get,
            "proxy design": HttpPeer(proxy_port, ROUTE, form, form_headers).call,
            "envoy transcoder": HttpPeer(envoy_port, envoy_route, transcoded.encode(), envoy_headers).call,
        }
        if len(edge.call_and_get()) < PICTURE_BYTES // 2:
            raise BenchError("the picture was not readable when the answer arrived")
        for call in (*peers.values(), *(peer.call for peer in edges)):  # warm-up
            latency_ms(call, args.calls // 3)
        times: dict[str, list[float]] = {name: [] for name in peers}
        rates: dict[str, list[float]] = {"direct": [], "edge": []}
        for _ in track(range(args.rounds), "measuring", console=console, transient=True):
            for peer, call in peers.items():
                times[peer].append(latency_ms(call, args.calls))
            rates["direct"].append(throughput(directs, args.calls // 2))
            rates["edge"].append(throughput([peer.call for peer in edges], args.calls // 2))

    rows = [
        [peer, f"{statistics.median(taken):.2f}", f"{median_ratio(taken, times['direct']):.2f}"]
        for peer, taken in times.items()
    ]
    table("One client: latency of a call", ["peer", "median ms", "over direct"], rows)
    rows = [[peer, f"{statistics.median(rate):.0f}"] for peer, rate in rates.items()]
    table(f"{CLIENTS} clients, {CLIENTS} workers: throughput", ["peer", "calls/s"], rows)
    ours = times["edge"]
    emit(
        {
            "vs_direct_c1": median_ratio(ours, times["direct"]),
            "vs_direct_c4_throughput": median_ratio(rates["edge"], rates["direct"]),
            "vs_proxy_c1": median_ratio(ours, times["proxy design"]),
            "vs_envoy_c1": median_ratio(ours, times["envoy transcoder"]),
            "with_get_vs_direct_c1": median_ratio(times["edge and GET"], times["direct"]),
        }
    )


if __name__ == "__main__":
    main()
