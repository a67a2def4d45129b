"""`/metrics` as real servers send it: every version's names, several engines and processes, strangers in between."""

from __future__ import annotations

import pytest

from tests.fakes.vllm_engine import VllmServer
from tests.fakes.vllm_metrics import Flavour, render
from worker.health.probes.vllm import read_metrics
from worker.health.verdict import Reading
from worker.health.watchdog.looks import Answer, Look

START_EPOCH_S = 1_790_000_000.0


def look(text: str) -> Look:
    return read_metrics(text, at_s=7.0, now_epoch_s=START_EPOCH_S + 600.0, grace_s=60.0)


def only(seen: Look) -> Reading:
    (reading,) = seen.engines.values()
    return reading


def at_work(engines: int = 1) -> VllmServer:
    """After 10 s of steps of 50 ms: 2 run and 1 waits on each engine."""
    server = VllmServer(engines=engines)
    for _ in range(3 * engines):
        server.submit(1_000.0)
    server.advance(10.0)
    return server


@pytest.mark.parametrize("flavour", list(Flavour))
def test_every_version_tells_what_runs_what_waits_and_how_far_it_is(flavour: Flavour) -> None:
    seen = look(render(at_work().engines, flavour, START_EPOCH_S))
    reading = only(seen)
    assert seen.answer is Answer.READ
    assert (reading.in_flight, reading.waiting) == (2, 1)
    assert reading.counter == (400 if flavour is Flavour.V04 else 200)  # two tokens a step, or steps
    assert seen.tokens == 400
    if flavour is Flavour.MULTI_PROCESS:
        assert (reading.start_time_s, seen.age_s) == (None, None)
    else:
        assert (reading.start_time_s, seen.age_s) == (START_EPOCH_S, 600.0)


def test_without_the_step_counter_tokens_are_a_weak_one_and_what_is_missing_is_named() -> None:
    seen = look(render(at_work().engines, Flavour.V04, START_EPOCH_S))
    assert seen.weak == {""}
    assert only(seen).stall_after_s == 300.0
    assert seen.problem == "metrics: vllm:iteration_tokens_total_count missing"
    assert look(render(at_work().engines, Flavour.V1, START_EPOCH_S)).problem == ""


def test_engines_are_told_apart() -> None:
    server = at_work(engines=2)
    server.engines[1].hung = True
    server.advance(20.0)
    readings = look(render(server.engines, Flavour.V1, START_EPOCH_S)).engines
    assert {name: reading.counter for name, reading in readings.items()} == {"0": 400, "1": 200}
    assert {name: reading.in_flight for name, reading in readings.items()} == {"0": 2, "1": 2}


def test_several_engines_with_ranks_can_be_asked_by_name() -> None:
    text = render(at_work(engines=2).engines, Flavour.V1, START_EPOCH_S)
    nobody = look(text).nobody
    assert nobody not in {"", "0", "1"}
    assert look(text.replace('engine="1"', 'engine="decode"')).nobody == ""
    assert look(render(at_work().engines, Flavour.V1, START_EPOCH_S)).nobody == ""


def test_b83_series_of_several_processes_are_summed_by_engine() -> None:
    lines = [f'vllm:num_requests_running{{engine="0",model_name="m",pid="{pid}"}} 0.0' for pid in range(8)]
    lines[5] = 'vllm:num_requests_running{engine="0",model_name="m",pid="5"} 3.0'
    counters = [f'vllm:iteration_tokens_total_count{{engine="0",model_name="m",pid="{pid}"}} 10.0' for pid in range(8)]
    reading = only(look("\n".join([*lines, 'vllm:num_requests_waiting{engine="0"} 0', *counters])))
    assert (reading.in_flight, reading.counter) == (3, 80)


def test_swapped_requests_wait() -> None:
    text = (
        "vllm:num_requests_running 1\nvllm:num_requests_waiting 2\nvllm:num_requests_swapped 3\nvllm:prompt_tokens 4\n"
    )
    assert only(look(text)).waiting == 5


def test_a_filling_cache_is_a_sign_of_movement() -> None:
    server = at_work()
    before = only(look(render(server.engines, Flavour.V1, START_EPOCH_S)))
    server.advance(11.0)
    assert only(look(render(server.engines, Flavour.V1, START_EPOCH_S))).signs != before.signs


def test_running_missing_makes_the_counter_worthless() -> None:
    seen = look("vllm:iteration_tokens_total_count 5\n")
    assert only(seen).counter is None
    assert "vllm:num_requests_running, vllm:num_requests_waiting missing" in seen.problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "metrics: no series of vllm"),
        ("# HELP x y\nprocess_start_time_seconds 1.0\npython_info 1\n", "metrics: no series of vllm"),
        ("<!doctype html><title>Sign in</title>", "metrics: a web page"),
        ("  <html>vllm:num_requests_running 1", "metrics: a web page"),
        ("\x00\xff\n\n{}", "metrics: no series of vllm"),
    ],
)
def test_what_is_no_metrics_is_unreadable_and_named(text: str, problem: str) -> None:
    seen = look(text)
    assert (seen.answer, seen.problem, seen.engines) == (Answer.UNREADABLE, problem, {})


@pytest.mark.parametrize("value", ["NaN", "+Inf", "1e308", "-1e16", "", "many"])
def test_damaged_lines_of_ours_are_left_out_and_counted(value: str) -> None:
    text = f"vllm:num_requests_running 1\nvllm:num_requests_waiting 0\nvllm:iteration_tokens_total_count {value}\n"
    seen = look(text)
    assert "iteration_tokens_total_count missing" in seen.problem
    assert "metrics: 1 lines damaged" in seen.problem
    assert only(seen).counter is None


def test_a_clock_that_is_behind_makes_nothing_older_than_now() -> None:
    text = render(at_work().engines, Flavour.V1, START_EPOCH_S + 9_999.0)
    assert look(text).age_s == 0.0


def test_numbers_that_only_together_are_too_large_do_no_harm() -> None:
    many = "vllm:num_requests_running 1e308\nvllm:generation_tokens_total 1e308\nvllm:prompt_tokens_total 1e308\n" * 2
    seen = look(f"{many}vllm:num_requests_waiting 1\n")
    assert (only(seen).in_flight, only(seen).waiting) == (0, 1)
    assert "6 lines damaged" in seen.problem
