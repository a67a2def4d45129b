"""What a process shows to Prometheus: a table of metrics, and a port of its own where they are read.

Nothing is counted here. Whoever owns a number keeps it in a form of its own, on its own thread; it is asked when
somebody reads, and only then does a number become a sample. So the table is all that has to be kept in step.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import TypeVar
from urllib.parse import urlsplit

import structlog
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from typing_extensions import override

from hairmesh import __version__
from hairmesh.histogram import Histogram

T = TypeVar("T")

log = structlog.get_logger()

CONTENT_TYPE: str = CONTENT_TYPE_PLAIN_0_0_4
"""Of what `Exposition.text` gives: the form that every version of Prometheus reads."""
IDLE_S = 10.0
"""A reader that says nothing for so long is cut off."""
ANSWER_S = 5.0
"""How long the event loop may take to say how things stand; then the scrape fails, which is what the alert on a process
that hangs looks at."""


class Kind(StrEnum):
    """What Prometheus does with it."""

    COUNTER = "counter"
    """Only ever grows; its name ends in `_total`."""
    GAUGE = "gauge"
    """A value of this moment."""
    HISTOGRAM = "histogram"
    """Many values in buckets."""


Value = float | Histogram
Values = Mapping[tuple[str, ...], Value]
"""By the values of the labels, in the order of the table: a histogram for those of that kind, else a number."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of a table."""

    name: str
    """The unit stands in it."""
    kind: Kind
    meaning: str
    """One sentence, for people."""
    labels: tuple[str, ...] = ()
    """Each with a bounded set of values: nothing that a client or another process may invent."""

    def family(self, values: Values) -> Family:
        """Samples of this metric."""
        if self.kind is Kind.HISTOGRAM:
            histogram = HistogramMetricFamily(self.name, self.meaning, labels=self.labels)
            for labels, value in values.items():
                assert isinstance(value, Histogram)  # noqa: S101  (whoever fills a table row knows its kind)
                rows = [("+Inf" if bound == float("inf") else str(bound), n) for bound, n in value.cumulative()]
                histogram.add_metric(labels, rows, value.total)
            return histogram
        make = CounterMetricFamily if self.kind is Kind.COUNTER else GaugeMetricFamily
        family = make(self.name, self.meaning, labels=self.labels)
        for labels, value in values.items():
            assert not isinstance(value, Histogram)  # noqa: S101  (likewise)
            family.add_metric(labels, value)
        return family


def table(*metrics: Metric) -> Mapping[str, Metric]:
    """By name."""
    return {metric.name: metric for metric in metrics}


BUILD_INFO = Metric(
    "hairmesh_build_info", Kind.GAUGE, "Always 1: which program this is, of which version.", ("service", "version")
)
"""Every process has this one, and what the Prometheus client tells of any Python process."""


class _Asked:
    """A collector that asks for the numbers when they are read."""

    def __init__(self, service: str, rows: Mapping[str, Metric], ask: Callable[[], Mapping[str, Values]]) -> None:
        self._service = service
        self._rows = rows
        self._ask = ask

    def collect(self) -> Iterable[Family]:
        """See `prometheus_client.registry.Collector`."""
        told = self._ask()
        yield BUILD_INFO.family({(self._service, __version__): 1.0})
        for name, row in self._rows.items():
            yield row.family(told[name])


class Exposition:
    """Everything one process shows.

    `ask` gives the values of every row of `rows`, by name. It is called on the event loop, whatever thread reads, so
    that it may look at what belongs to that loop. It is not to hand out what goes on changing.
    """

    def __init__(self, service: str, rows: Mapping[str, Metric], ask: Callable[[], Mapping[str, Values]]) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._registry = CollectorRegistry()
        collector: Collector = _Asked(service, rows, lambda: self._on_loop(ask))
        self._registry.register(collector)
        for theirs in (ProcessCollector, PlatformCollector, GCCollector):
            theirs(registry=self._registry)
        self._server: _Server | None = None

    async def text(self) -> bytes:
        """All of it in Prometheus' text form, made in a thread: with a thousand workers it takes a while."""
        self._loop = asyncio.get_running_loop()
        return await asyncio.to_thread(generate_latest, self._registry)

    def serve(self, listen: str) -> int:
        """Answer at `listen` (host:port, port 0 takes a free one) in threads of its own; the port.

        The loop that runs now is asked. Raises `OSError` when the address cannot be had.
        """
        self._loop = asyncio.get_running_loop()
        address = urlsplit(f"//{listen}")
        self._server = _Server((address.hostname or "", address.port or 0), partial(generate_latest, self._registry))
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()
        return self._server.server_port

    async def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            server, self._server = self._server, None
            await asyncio.to_thread(server.shutdown)
            server.server_close()

    def _on_loop(self, work: Callable[[], T]) -> T:
        assert self._loop is not None  # noqa: S101  (nobody reads before `text` or `serve`)
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        self._loop.call_soon_threadsafe(partial(_settle, future, work))
        return future.result(ANSWER_S)


def _settle(future: concurrent.futures.Future[T], work: Callable[[], T]) -> None:
    """Do `work` for somebody in another thread, who may have given up meanwhile."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except Exception as error:  # noqa: BLE001  (carried to the one who asked)
        future.set_exception(error)


class _Server(ThreadingHTTPServer):
    """Answers `GET /metrics` with what `render` gives. Raises `OSError` when the address cannot be had."""

    def __init__(self, address: tuple[str, int], render: Callable[[], bytes]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.render = render
        super().__init__(address, _Handler)

    @override
    def server_bind(self) -> None:
        """Without asking a name server who we are, as the standard library does."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    @override
    def handle_error(self, request: object, client_address: object) -> None:
        """A reader that has gone: nobody's trouble."""


class _Handler(BaseHTTPRequestHandler):
    """One reader."""

    server: _Server
    timeout = IDLE_S

    def do_GET(self) -> None:
        """Everything; 503 while the loop does not answer."""
        if urlsplit(self.path).path != "/metrics":
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        try:
            text = self.server.render()
        except TimeoutError:
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE)
            return
        except Exception:  # a fault of ours
            log.exception("metrics_failed")
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Scrapes are not logged."""
