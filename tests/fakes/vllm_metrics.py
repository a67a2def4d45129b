"""`/metrics` as vLLM of several versions writes it, and as collectors pass it on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

from tests.fakes.vllm_engine import Engine

MODEL = "qwen3-8b"


class Flavour(StrEnum):
    """Which server writes it."""

    V04 = "0.4"
    """Label `model_name` alone, no step counter."""
    V08 = "0.8"
    """Plus the histogram of engine steps."""
    V1 = "v1"
    """Label `engine`, the KV cache under its new name, `_created` beside counters."""
    MULTI_PROCESS = "multi-process"
    """Several API servers: gauges by pid, all but one 0; no `process_*` at all."""
    COLLECTOR = "collector"
    """Prefix `vllm_`, counters without `_total`, other exporters in between."""
    BARE = "bare"
    """No labels."""


_Label = Callable[[int], str]


def render(engines: Sequence[Engine], flavour: Flavour, start_epoch_s: float) -> str:
    """The text of all `engines`, of a process that started at `start_epoch_s`."""
    lines: list[str] = []
    prefix = "vllm_" if flavour is Flavour.COLLECTOR else "vllm:"
    total = "" if flavour is Flavour.COLLECTOR else "_total"
    label = _label(flavour)

    def write(name: str, kind: str, values: Sequence[float], suffix: str = "") -> None:
        lines.append(f"# HELP {prefix}{name} As in the documentation.")
        lines.append(f"# TYPE {prefix}{name} {kind}")
        lines.extend(f"{prefix}{name}{suffix}{label(n)} {float(value)}" for n, value in enumerate(values))

    def gauge(name: str, values: Sequence[float]) -> None:
        write(name, "gauge", values)
        if flavour is Flavour.MULTI_PROCESS:
            lines.extend(
                f'{prefix}{name}{{engine="0",model_name="{MODEL}",pid="{pid}"}} 0.0' for pid in range(101, 108)
            )

    if flavour is not Flavour.MULTI_PROCESS:
        lines.append("# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.")
        lines.append("# TYPE process_start_time_seconds gauge")
        lines.append(f"process_start_time_seconds {start_epoch_s!r}")
    gauge("num_requests_running", [engine.shown_running for engine in engines])
    gauge("num_requests_waiting", [engine.shown_waiting for engine in engines])
    if flavour is Flavour.COLLECTOR:
        lines.append('node_cpu_seconds_total{cpu="0",mode="idle"} 8123.4')
        lines.append('DCGM_FI_DEV_GPU_UTIL{gpu="0",modelName="NVIDIA H200"} 97')
        lines.append("some exporter that writes nonsense")
    if flavour in {Flavour.V04, Flavour.V08}:
        gauge("num_requests_swapped", [0 for _ in engines])
        gauge("gpu_cache_usage_perc", [engine.shown_fill for engine in engines])
        gauge("cpu_cache_usage_perc", [0 for _ in engines])
    elif flavour is not Flavour.BARE:
        gauge("kv_cache_usage_perc", [engine.shown_fill for engine in engines])
    write(f"prompt_tokens{total}", "counter", [int(engine.prompted) for engine in engines])
    write(f"generation_tokens{total}", "counter", [int(engine.generated) for engine in engines])
    if flavour is Flavour.V1:
        write("generation_tokens_created", "gauge", [start_epoch_s for _ in engines])
    if flavour is not Flavour.V04:
        steps = [int(engine.steps) for engine in engines]
        for bound in ("1.0", "8.0", "16.0", "+Inf"):
            buckets = [_with(label(n), f'le="{bound}"') for n in range(len(engines))]
            lines.extend(
                f"{prefix}iteration_tokens_total_bucket{b} {float(v)}" for b, v in zip(buckets, steps, strict=True)
            )
        write("iteration_tokens_total", "histogram", steps, suffix="_count")
        lines.extend(f"{prefix}iteration_tokens_total_sum{label(n)} {float(v)}" for n, v in enumerate(steps))
    stopped = _with(label(0), 'finished_reason="stop"')
    lines.append(f"{prefix}request_success_total{stopped} 12.0")
    return "\n".join(lines) + "\n"


def _label(flavour: Flavour) -> _Label:
    match flavour:
        case Flavour.V04 | Flavour.V08:
            return lambda _engine: f'{{model_name="{MODEL}"}}'
        case Flavour.BARE:
            return lambda _engine: ""
        case Flavour.MULTI_PROCESS:
            return lambda engine: f'{{engine="{engine}",model_name="{MODEL}",pid="100"}}'
        case _:
            return lambda engine: f'{{engine="{engine}",model_name="{MODEL}"}}'


def _with(labels: str, more: str) -> str:
    return f"{{{more}}}" if not labels else f"{labels[:-1]},{more}}}"
