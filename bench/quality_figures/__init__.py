"""The figures of `bench/quality.py`, one module each; each prints its tables and gives its figures by name."""

Figures = dict[str, float | int | None]
