"""`/metrics` of vLLM's OpenAI-compatible server, versions 0.4 to V1, read into a look.

Progress is the number of engine steps: `vllm:iteration_tokens_total` is a histogram of the tokens of one step, its
`_count` counts the steps that put something out. A long prompt that is read in pieces puts nothing out for a while; the
fill of the KV cache tells that those pieces move. Versions without the histogram leave only tokens, which stand still
longer: a weak counter. Only the lines that are wanted are parsed, one by one: other exporters' lines and damaged
ones do no harm.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from hairmesh.plain import NAME_CHARACTERS, printable
from worker.health.verdict import Reading
from worker.health.watchdog.looks import Answer, Look

RUNNING = "num_requests_running"
WAITING = "num_requests_waiting"
SWAPPED = "num_requests_swapped"
STEPS = "iteration_tokens_total_count"
GENERATED = "generation_tokens"
PROMPTED = "prompt_tokens"
CACHE_FILLS = ("kv_cache_usage_perc", "gpu_cache_usage_perc")
TOTAL = "_total"
"""End of a counter's name, which some collectors drop."""

WANTED = frozenset(
    {RUNNING, WAITING, SWAPPED, STEPS, *CACHE_FILLS, *(n + t for n in (GENERATED, PROMPTED) for t in ("", TOTAL))}
)
ENGINE_LABEL = "engine"
NOBODY = "1000000"
"""No server has so many engines."""
BELIEVABLE = 1e15
"""No counter, gauge or time is larger; sums of these are still exact enough and finite."""

WEAK_PATIENCE = 5.0
"""Graces that an engine may be still when only its tokens are counted: a long prompt is read without any."""

_LINE = re.compile(r"(?:vllm[:_](?P<name>[a-z_]+)|process_start_time_seconds)[{ ]")

Series = Mapping[str, float]
"""Sum over processes and models, by engine."""


def read_metrics(text: str, *, at_s: float, now_epoch_s: float, grace_s: float) -> Look:
    """The look that `text`, the body of `GET /metrics`, amounts to.

    `at_s` is the reader's monotonic clock, `now_epoch_s` seconds since the epoch, `grace_s` how long steps may stand.
    """
    series, start_time_s, damaged = _series(text)
    if not series:
        what = "a web page" if text.lstrip()[:1] == "<" else "no series of vllm"
        return Look(at_s, Answer.UNREADABLE, problem=f"metrics: {what}")
    missing = [name for name in (RUNNING, WAITING, STEPS) if name not in series]
    names = sorted({engine for by_engine in series.values() for engine in by_engine})
    steps_known = STEPS in series
    engines = {
        name: Reading(
            at_s=at_s,
            boot_id="",
            start_time_s=start_time_s,
            counter=_counter(series, name),
            in_flight=_whole(series, RUNNING, name),
            waiting=_whole(series, WAITING, name) + _whole(series, SWAPPED, name),
            stage="steps" if steps_known else "tokens",
            stall_after_s=grace_s if steps_known else WEAK_PATIENCE * grace_s,
            signs=tuple(series[fill][name] for fill in CACHE_FILLS if name in series.get(fill, {})),
        )
        for name in names
    }
    return Look(
        at_s,
        Answer.READ,
        engines,
        weak=frozenset() if steps_known else frozenset(names),
        nobody=NOBODY if len(names) > 1 and all(name.isdecimal() for name in names) else "",
        age_s=None if start_time_s is None else max(0.0, now_epoch_s - start_time_s),
        tokens=sum(series[GENERATED].values()) if GENERATED in series else None,
        problem=_problem(missing, damaged),
    )


def _series(text: str) -> tuple[dict[str, Series], float | None, int]:
    """Wanted series by name without prefix and `_total`, the start time, and how many wanted lines are damaged."""
    series: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    start_time_s: float | None = None
    damaged = 0
    for line in text.splitlines():
        found = _LINE.match(line)
        if not found or (found["name"] is not None and found["name"] not in WANTED):
            continue
        try:
            samples = list(_samples(line))
        except ValueError:
            damaged += 1
            continue
        for sample in samples:
            if found["name"] is None:
                start_time_s = sample.value
            else:
                name = found["name"] if found["name"] == STEPS else found["name"].removesuffix(TOTAL)
                engine = printable(sample.labels.get(ENGINE_LABEL, ""), NAME_CHARACTERS)
                series[name][engine] += sample.value
    return dict(series), start_time_s, damaged


def _samples(line: str) -> Iterator[Sample]:
    for family in text_string_to_metric_families(line):
        for sample in family.samples:
            if not abs(sample.value) <= BELIEVABLE:  # nor is it a number
                raise ValueError(sample.name)
            yield sample


def _counter(series: Mapping[str, Series], engine: str) -> int | None:
    """Steps; where nobody counts them, tokens read and put out. None too when nothing tells what is in flight."""
    if RUNNING not in series and WAITING not in series:
        return None
    names = [STEPS] if STEPS in series else [GENERATED, PROMPTED]
    known = [series[name][engine] for name in names if engine in series.get(name, {})]
    return round(sum(known)) if known else None


def _whole(series: Mapping[str, Series], name: str, engine: str) -> int:
    return round(series.get(name, {}).get(engine, 0.0))


def _problem(missing: list[str], damaged: int) -> str:
    words = [f"metrics: vllm:{', vllm:'.join(missing)} missing"] if missing else []
    if damaged:
        words.append(f"metrics: {damaged} lines damaged")
    return "; ".join(words)
