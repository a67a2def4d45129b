"""Reads metrics as Prometheus does."""

from __future__ import annotations

import asyncio
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families


class Scrape:
    """What one reading has found. Raises `ValueError` for a text that Prometheus would not take."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._values = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    @classmethod
    async def of_port(cls, port: int) -> Scrape:
        """From a port of its own on loopback."""

        def read() -> str:
            with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as response:
                text: str = response.read().decode()
            return text

        return cls(await asyncio.to_thread(read))

    @property
    def names(self) -> set[str]:
        """Of every sample."""
        return {name for name, _labels in self._values}

    def value(self, name: str, /, **labels: str) -> float | None:
        """The sample with exactly these labels; None where there is none. `class_` stands for `class`."""
        return self._values.get((name, frozenset((key.rstrip("_"), value) for key, value in labels.items())))
