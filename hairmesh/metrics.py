"""What a process shows to Prometheus: a table of metrics, and a port of its own where they are read.

Nothing is counted here. Whoever owns a number keeps it in a form of its own, on its own thread; it is asked when
somebody reads, and only then does a number become a sample. So the table is all that has to be kept in step.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit
from wsgiref.simple_server import WSGIServer

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from hairmesh import __version__
from hairmesh.histogram import Histogram

T = TypeVar("T")

CONTENT_TYPE: str = CONTENT_TYPE_PLAIN_0_0_4
"""Of what `Exposition.text` gives: the form that every version of Prometheus reads."""
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

    `ask` gives the values of every row of `rows`, by name. It is called on the event loop that runs when this is made,
    whatever thread reads, so that it may look at what belongs to that loop.
    """

    def __init__(self, service: str, rows: Mapping[str, Metric], ask: Callable[[], Mapping[str, Values]]) -> None:
        self._loop = asyncio.get_running_loop()
        self._registry = CollectorRegistry()
        collector: Collector = _Asked(service, rows, lambda: self._on_loop(ask))
        self._registry.register(collector)
        for theirs in (ProcessCollector, PlatformCollector, GCCollector):
            theirs(registry=self._registry)
        self._server: WSGIServer | None = None

    def text(self) -> bytes:
        """All of it in Prometheus' text form. To be called off the loop: with a thousand workers it takes a while.

        Raises `TimeoutError` when the loop does not answer.
        """
        return generate_latest(self._registry)

    def serve(self, listen: str) -> int:
        """Answer at `listen` (host:port, port 0 takes a free one) in threads of its own; the port.

        Raises `OSError` when the address cannot be had.
        """
        address = urlsplit(f"//{listen}")
        self._server, _thread = start_http_server(address.port or 0, address.hostname or "", self._registry)
        return self._server.server_port

    def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _on_loop(self, work: Callable[[], T]) -> T:
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
