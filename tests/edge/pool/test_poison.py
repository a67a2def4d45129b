"""Inputs and clients that break workers, and outages that only look like it."""

from __future__ import annotations

from typing import Any

import pytest

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.clients import Clients
from edge.pool.config import DispatchConfig, HealthCheckConfig
from edge.pool.poison import Break, PoisonMemory
from tests.edge.pool.bench import A, B, Bench, C

D = "d:1"
FAILED = (ev.Code.INTERNAL, "WORKER_FAILED")
DIED = (ev.Code.UNAVAILABLE, "")


def breaks(bench: Bench, photo: str, now_s: float, how: tuple[ev.Code, str] = FAILED, client: str = "") -> str:
    """A call with this photo, each attempt of which breaks its worker after 0.1 s."""
    call_id = bench.call(now_s, photo=photo, client=client)
    while bench.runs_on(call_id) and not bench.failed(call_id):
        now_s += 0.1
        bench.ended(call_id, now_s, *how)
    return call_id


def touched(bench: Bench, *calls: str) -> set[str]:
    return {start.endpoint for call_id in calls for start in bench.of(ev.Start, call_id)}


def four(**settings: Any) -> Bench:
    """A pool that works and answers."""
    bench = Bench(A, B, C, D, **settings).online()
    bench.answered(1.0)
    return bench


# Inputs


@pytest.mark.parametrize("how", [FAILED, DIED, (ev.Code.UNKNOWN, ""), (ev.Code.DATA_LOSS, "")])
def test_27_an_input_that_breaks_two_workers_meets_no_third_and_is_refused(how: tuple[ev.Code, str]) -> None:
    bench = four(dispatch=DispatchConfig(max_retries=3))
    first = breaks(bench, "poison", 2.0, how)
    assert (bench.reason(first), len(touched(bench, first))) == ("WORKER_FAILED", 2)
    assert bench.logs("attempt_failed")[-1]["because"] == "its input broke two workers"
    assert bench.pool.minds_inputs
    again = bench.failed(bench.call(3.0, photo="poison", client="somebody else"))
    assert again is not None
    assert (again.reason, again.attempts) == ("POISON_INPUT", 0)
    assert again.retry_after_s == pytest.approx(599.2)
    assert bench.logs("input_refused") == [{"input": "input-1", "call_id": again.call_id}]
    bench.answered(3.1, photo="another")


def test_it_is_remembered_for_ten_minutes() -> None:
    bench = four()
    breaks(bench, "poison", 2.0)
    assert bench.reason(bench.call(602.1, photo="poison")) == "POISON_INPUT"
    assert bench.reason(bench.call(602.3, photo="poison")) == ""
    assert not bench.pool.minds_inputs


@pytest.mark.parametrize(
    "how",
    [
        (ev.Code.ABORTED, ""),
        (ev.Code.UNIMPLEMENTED, "NOT_BUILT"),
        (ev.Code.PERMISSION_DENIED, ""),
        (ev.Code.CANCELLED, ""),
        (ev.Code.UNAVAILABLE, "DISK"),
        (ev.Code.UNAUTHENTICATED, ""),
    ],
)
def test_no_input_is_blamed_for_what_it_cannot_have_done(how: tuple[ev.Code, str]) -> None:
    bench = four()
    breaks(bench, "photo", 2.0, how)
    assert not bench.pool.minds_inputs


def test_a_full_attempts_time_is_no_break() -> None:
    bench = four()
    call_id = bench.call(2.0, photo="photo")
    bench.ended(call_id, 62.0, ev.Code.DEADLINE_EXCEEDED)
    assert not bench.pool.minds_inputs


def test_an_input_that_is_answered_well_elsewhere_is_no_poison() -> None:
    bench = four()
    call_id = bench.call(2.0, photo="photo")
    bench.ended(call_id, 2.1, *FAILED)
    assert bench.pool.minds_inputs
    bench.ended(call_id, 2.2, ev.Code.OK)
    assert not bench.pool.minds_inputs


def test_a_worker_that_was_only_cut_off_has_not_died_of_it() -> None:
    bench = four()
    for target in (A, B, C, D):
        bench.status(target, 1.5)
    poison = breaks(bench, "photo", 2.0, DIED)
    assert bench.reason(bench.call(2.3, photo="photo")) == "POISON_INPUT"
    cut_off = bench.runs_on(poison)
    bench.status(cut_off, 2.4, asked_s=2.0)
    assert bench.logs("input_cleared") == [], "said before it is supposed to have died"
    bench.status(cut_off, 2.5)
    assert bench.logs("input_cleared") == [{"input": "input-1", "worker": cut_off, "boot_id": "boot-1"}]
    assert bench.reason(bench.call(2.6, photo="photo")) == ""


def test_a_worker_that_is_another_process_afterwards_has() -> None:
    bench = four()
    for target in (A, B, C, D):
        bench.status(target, 1.5)
    breaks(bench, "photo", 2.0, DIED)
    for target in (A, B, C, D):
        bench.status(target, 3.0, boot_id="boot-2")
        bench.status(target, 3.1, boot_id="boot-2")
    assert bench.reason(bench.call(3.2, photo="photo")) == "POISON_INPUT"


def test_workers_that_die_together_with_the_same_photo_are_not_its_doing() -> None:
    bench = four()
    one, two = bench.call(2.0, photo="photo"), bench.call(2.0, photo="photo")
    bench.ended(one, 3.0, *DIED)
    bench.ended(two, 3.0, *DIED)
    assert {bench.runs_on(one), bench.runs_on(two)} & touched(bench, one) == {bench.runs_on(one)}
    for call_id in (one, two):
        bench.ended(call_id, 4.0, ev.Code.OK)
        assert bench.finished(call_id)


def test_an_outage_is_blamed_on_nobodys_input() -> None:
    bench = four(health=HealthCheckConfig(cooldown_seconds=0))
    first, second = bench.call(2.0, photo="one"), bench.call(2.0, photo="two")
    bench.ended(first, 2.1, *FAILED)
    bench.ended(first, 2.2, *FAILED)
    assert bench.reason(bench.call(2.25, photo="one")) == "POISON_INPUT", "nobody can know yet"
    bench.ended(second, 2.3, *FAILED)
    assert bench.reason(bench.call(2.4, photo="one")) != "POISON_INPUT"
    bench.ended(second, 2.5, *FAILED)
    assert bench.reason(bench.call(2.6, photo="two")) != "POISON_INPUT"


def test_and_still_no_request_touches_a_third_worker_in_it() -> None:
    bench = Bench(A, B, C, D, dispatch=DispatchConfig(max_retries=3)).online()
    other, call_id = bench.call(2.0), bench.call(2.0)
    bench.ended(call_id, 2.1, *FAILED)
    bench.ended(other, 2.2, *FAILED)
    bench.ended(call_id, 2.3, *FAILED)
    assert (bench.reason(call_id), len(touched(bench, call_id))) == ("WORKER_FAILED", 2)


def test_where_others_succeed_in_between_it_is_no_outage() -> None:
    bench = four(health=HealthCheckConfig(cooldown_seconds=0))
    breaks(bench, "poison", 2.0)
    for target in (A, B, C, D):
        bench.back(target, 3.0)
    bench.answered(4.0)
    breaks(bench, "another poison", 5.0)
    assert bench.reason(bench.call(6.0, photo="poison")) == "POISON_INPUT"
    assert bench.reason(bench.call(6.0, photo="another poison")) == "POISON_INPUT"


def test_one_who_waits_with_an_input_that_is_condemned_meanwhile_is_refused() -> None:
    bench = Bench(A, B, C).online()
    first, _, other = bench.call(2.0, photo="poison"), bench.call(2.0), bench.call(2.0)
    bench.ended(first, 2.1, *FAILED)
    second, sound = bench.call(2.2, photo="poison"), bench.call(2.2)
    bench.ended(other, 2.3, ev.Code.OK)
    assert touched(bench, first, second) == {A, C}
    bench.ended(first, 2.4, *FAILED)
    assert bench.reason(second) == "POISON_INPUT"
    assert bench.logs("input_refused") == [{"input": "input-1", "call_id": second}]
    assert bench.reason(sound) == ""


def test_but_when_the_next_one_dies_of_it_the_first_two_are_believed() -> None:
    bench = Bench(A, B, C, D, dispatch=DispatchConfig(max_retries=0)).online()
    for target in (A, B, C, D):
        bench.status(target, 1.0)
    together = [bench.call(2.0, photo="poison"), bench.call(2.0, photo="poison")]
    for call_id in together:
        bench.ended(call_id, 3.0, *DIED)
    bench.answered(3.1)
    for target in (A, B, C, D):
        bench.status(target, 65.0, boot_id="boot-2")
        bench.back(target, 70.0)
    breaks(bench, "poison", 71.0, DIED)
    assert bench.reason(bench.call(72.0, photo="poison")) == "POISON_INPUT"


def memory_with(*broken: Break) -> PoisonMemory:
    memory = PoisonMemory()
    for each in broken:
        memory.broke(each)
        memory.succeeded("")
    return memory


def a_break(at_s: float, input_key: str, worker: str = A, *, died: bool = False, client: str = "c") -> Break:
    return Break(at_s, at_s, input_key, client, worker, "boot-1", died)


def test_the_memory_is_bounded() -> None:
    memory = memory_with(*(a_break(n / 1e3, str(n), died=True) for n in range(fixed.POISON_INPUTS_MAX + 10)))
    assert len(memory) == fixed.POISON_INPUTS_MAX
    assert repr(memory) == f"<PoisonMemory {fixed.POISON_INPUTS_MAX} (0)>"
    assert len(memory.seen(A, "boot-1", 2.0)) == fixed.POISON_INPUTS_MAX, "what is forgotten is not asked about"
    assert len(memory) == 0


def test_breaks_that_are_long_ago_are_not_of_one_outage() -> None:
    memory = PoisonMemory()
    assert memory.broke(a_break(0.0, "one", client="c"))
    assert memory.broke(a_break(fixed.STREAK_S + 1, "two", client="d"))


def test_a_death_that_turned_into_a_failure_of_its_own_stays() -> None:
    memory = memory_with(a_break(1.0, "x", died=True), a_break(2.0, "x"))
    assert memory.seen(A, "boot-1", 3.0) == []
    assert len(memory) == 1


def test_a_process_that_was_never_heard_of_may_have_been_the_same() -> None:
    memory = memory_with(Break(1.0, 0.5, "x", "c", A, "", died=True))
    assert [tag for tag, _ in memory.seen(A, "boot-7", 2.0)] == ["input-1"]


# Clients


def test_29_who_uploads_variant_after_variant_is_held_to_one_worker_and_the_pool_stays_whole() -> None:
    bench = Bench(A, B, C).online()
    uploads = []
    for number in range(20):
        now_s = 2.0 + number
        uploads.append(bench.call(now_s, photo=f"variant {number}", client="uploader"))
        for step in range(1 + number % 2):
            bench.answered(now_s + step / 10)
        bench.ended(uploads[-1], now_s + 0.5, ev.Code.FAILED_PRECONDITION, "INPUT_FAILED")
    assert len(touched(bench, *uploads)) == 2
    assert [endpoint.online for endpoint in bench.pool.endpoints()] == [True, True, True]
    held = bench.logs("client_held")
    assert [(line["client"], line["for_s"]) for line in held] == [("client-2", 600.0)]
    assert "uploader" not in repr(held)


def test_29_and_so_it_is_when_the_worker_itself_takes_the_blame() -> None:
    bench = Bench(A, B, C).online()
    bench.answered(1.0)
    first = breaks(bench, "variant 1", 2.0, FAILED, "uploader")
    assert len(touched(bench, first)) == 2
    last_one = next(endpoint.target for endpoint in bench.pool.endpoints() if endpoint.online)
    for number in range(2, 20):
        now_s = 2.0 + number
        upload = breaks(bench, f"variant {number}", now_s, FAILED, "uploader")
        assert (touched(bench, upload), bench.reason(upload)) == ({last_one}, "WORKER_FAILED")
        bench.answered(now_s + 0.5)
    assert bench[last_one].online
    assert bench.logs("attempt_failed")[-1]["because"] == "its client is held to one worker"
    assert bench.history(last_one)[0] == "spared: edge-37 of a held client failed on it"


def test_a_worker_that_fails_on_everything_is_not_spared_for_long() -> None:
    bench = Bench(A, B, C).online()
    breaks(bench, "variant 1", 2.0, FAILED, "all behind one proxy")
    breaks(bench, "variant 2", 3.0, FAILED, "all behind one proxy")
    assert sum(endpoint.online for endpoint in bench.pool.endpoints()) == 1
    breaks(bench, "variant 3", 63.0, FAILED, "all behind one proxy")
    assert sum(endpoint.online for endpoint in bench.pool.endpoints()) == 1
    breaks(bench, "variant 4", 63.2, FAILED, "all behind one proxy")
    assert not any(endpoint.online for endpoint in bench.pool.endpoints())
    assert [endpoint.cooldown_left_s(63.3) > 0 for endpoint in bench.pool.endpoints()] == [False, False, True]


def held_to_c(bench: Bench, how: tuple[ev.Code, str] = FAILED) -> Bench:
    """`uploader` has broken A and B with one input and C with another."""
    for number, _ in enumerate(bench.pool.endpoints()):
        bench.answered(1.0 + number / 10)
    breaks(bench, "variant 1", 2.0, FAILED, "uploader")
    breaks(bench, "variant 2", 3.0, how, "uploader")
    assert bench.logs("client_held")[-1]["worker"] == C
    return bench


def test_held_it_waits_for_its_worker_though_another_is_free() -> None:
    bench = held_to_c(Bench(A, B, C).online())
    for target in (A, B):
        bench.back(target, 70.0)
    first = bench.call(71.0, client="uploader")
    second = bench.call(71.0, client="uploader")
    assert [bench.runs_on(each) for each in (first, second)] == [C, ""]
    bench.answered(71.2)
    bench.ended(first, 71.5, ev.Code.OK)
    assert bench.runs_on(second) == C


def test_held_to_one_that_is_out_it_hears_when_that_is_back() -> None:
    bench = held_to_c(Bench(A, B, C, D).online(), DIED)
    failed = bench.failed(bench.call(4.0, client="uploader"))
    assert failed is not None
    assert failed.reason == "BUSY", "others are online, and it must not have them"
    assert failed.retry_after_s == 8.0, "its next probe: the worker is pardoned"
    bench.answered(4.1)


def test_held_to_one_that_dies_of_its_inputs_and_answers_nothing_it_waits_for_the_cooldown() -> None:
    bench = Bench(A, B, C, D).online()
    bench.status(C, 0.9)
    held_to_c(bench, DIED)
    bench.back(C, 5.0)
    bench.status(C, 5.0, boot_id="boot-2")
    breaks(bench, "variant 3", 64.0, DIED, "uploader")
    assert bench[C].cooldown_left_s(64.1) > 60
    failed = bench.failed(bench.call(65.0, client="uploader"))
    assert failed is not None
    assert (failed.reason, failed.retry_after_s) == ("BUSY", bench[C].cooldown_left_s(65.0))


@pytest.mark.parametrize("how", [FAILED, DIED])
def test_held_to_one_that_is_down_for_another_reason_it_gets_another_one(how: tuple[ev.Code, str]) -> None:
    bench = held_to_c(Bench(A, B, C, D).online(), how)
    bench.back(C, 3.5)
    bench.tell(ev.HealthTold(4.0, C, serving=False))
    assert bench.runs_on(bench.call(4.1, client="uploader")) == D


def test_two_broken_workers_do_not_lock_a_lonely_client_out() -> None:
    bench = Bench(A, B, C, D, "e:1").online()
    for photo, broken in (("one", 2.0), ("two", 3.0)):
        call_id = bench.call(broken, photo=photo, client="the only one")
        bench.ended(call_id, broken + 0.1, *FAILED)
        bench.ended(call_id, broken + 0.2, ev.Code.OK)
    assert not bench.logs("client_held"), "their inputs were answered well elsewhere"
    assert bench[A].cooldown_left_s(3.3) > 0
    assert len({bench.runs_on(bench.call(4.0, client="the only one")) for _ in range(3)}) == 3


def test_one_is_released_when_what_it_is_held_for_has_not_happened() -> None:
    bench = four()
    for target in (A, B, C, D):
        bench.status(target, 1.5)
    breaks(bench, "variant 1", 2.0, DIED, "uploader")
    breaks(bench, "variant 2", 3.0, DIED, "uploader")
    assert bench.logs("client_held")
    bench.status(bench.logs("client_held")[0]["worker"], 4.0)
    bench.status(bench.logs("attempt_failed")[0]["worker"], 4.0)
    assert not bench.pool._blame.clients.held


def test_or_when_an_input_it_is_held_for_is_answered_well() -> None:
    bench = held_to_c(Bench(A, B, C, D).online())
    bench.answered(4.0, photo="variant 2", client="uploader")
    assert not bench.pool._blame.clients.held


def test_the_queue_of_one_that_is_held_takes_nobody_elses_places() -> None:
    bench = held_to_c(Bench(A, B, C, D, dispatch=DispatchConfig(max_in_flight=8)).online())
    flood = [bench.call(4.0, client="uploader") for _ in range(40)]
    assert sum(bench.reason(call_id) == "" for call_id in flood) == 3, "one runs, two wait"
    assert {bench.reason(call_id) for call_id in flood} == {"", "BUSY"}
    assert bench.runs_on(bench.call(4.1)) == D


def test_nor_does_what_waits_when_it_becomes_held() -> None:
    bench = Bench(A, B, C, dispatch=DispatchConfig(max_in_flight=8)).online()
    bad = [bench.call(1.0, client="uploader") for _ in range(2)]
    rest = [bench.call(1.1, client="uploader") for _ in range(20)]
    sound = bench.call(1.2)
    for call_id in bad:
        bench.ended(call_id, 1.3, ev.Code.FAILED_PRECONDITION, "INPUT_FAILED")
    assert bench.logs("client_held")
    assert sum(bench.reason(call_id) == "BUSY" for call_id in rest) == 16
    bench.ended(rest[0], 1.4, ev.Code.OK)
    assert bench.runs_on(sound) == C


def test_held_a_request_does_not_go_back_to_the_worker_that_failed_it() -> None:
    bench = Bench(A, B, C, health=HealthCheckConfig(cooldown_seconds=0)).online()
    bench.ended(bench.call(1.0, client="u"), 1.01, ev.Code.FAILED_PRECONDITION, "INPUT_FAILED")
    for client in ("u", "u", "u", "another"):
        bench.answered(1.1, client=client)
    for _ in range(2):
        bench.call(1.2)
    waits = bench.call(1.3, client="u")
    bench.ended(waits, 1.4, *FAILED)
    bench.back(B, 1.5)
    last = bench.call(1.6, client="u")
    assert (bench.runs_on(waits), bench.runs_on(last)) == (B, B)
    bench.ended(last, 1.7, *FAILED)
    assert bench.logs("client_held")[0]["worker"] == B
    assert bench[B].online
    assert bench.reason(waits) == "WORKER_FAILED"
    assert len(bench.of(ev.Start, waits)) == 1


def test_held_to_one_that_has_left_it_gets_another_one_and_keeps_it() -> None:
    bench = held_to_c(Bench(A, B, C, D).online())
    bench.configure(4.0, A, B, D)
    assert bench.runs_on(bench.call(5.0, client="uploader")) == D
    bench.back(A, 70.0)
    assert bench.runs_on(bench.call(71.0, client="uploader")) == ""


def test_held_to_one_that_is_just_leaving_it_does_not_wait_for_that() -> None:
    bench = held_to_c(Bench(A, B, C, D).online())
    assert bench.runs_on(bench.call(4.0, client="uploader")) == C
    bench.configure(5.0, A, B, D)
    assert bench.runs_on(bench.call(6.0, client="uploader")) == D


def test_it_is_released_as_soon_as_its_calls_go_well_again() -> None:
    bench = held_to_c(Bench(A, B, C).online())
    for target in (A, B):
        bench.back(target, 70.0)
    went_well = [bench.answered(71.0 + number, client="uploader") for number in range(14)]
    assert touched(bench, *went_well[:9]) == {C}
    assert touched(bench, *went_well[10:]) == {A, B, C}


def test_or_after_ten_minutes() -> None:
    bench = held_to_c(Bench(A, B, C).online())
    for target in (A, B):
        bench.back(target, 70.0)
    calls = [bench.call(603.3, client="uploader") for _ in range(3)]
    assert touched(bench, *calls) == {A, B, C}


def test_one_among_many_behind_the_same_address_does_not_hold_the_others() -> None:
    bench = Bench(A, B, C).online()
    for number in range(8):
        bench.answered(1.0 + number / 100, client="proxy")
    breaks(bench, "variant 1", 2.0, FAILED, "proxy")
    bench.answered(2.5, client="proxy")
    breaks(bench, "variant 2", 3.0, FAILED, "proxy")
    assert not bench.logs("client_held")


def test_one_input_alone_holds_nobody() -> None:
    bench = four()
    breaks(bench, "poison", 2.0, FAILED, "uploader")
    assert not bench.logs("client_held"), "the input is remembered: that is enough"


def test_an_outage_holds_nobody() -> None:
    bench = Bench(A, B, C, D, health=HealthCheckConfig(cooldown_seconds=0)).online()
    one, other = bench.call(2.0, client="one"), bench.call(2.0, client="other")
    bench.ended(one, 2.1, *FAILED)
    bench.ended(other, 2.2, *FAILED)
    for call_id in (one, other):
        bench.ended(call_id, 2.3, *FAILED)
    for target in (A, B, C, D):
        bench.back(target, 4.0)
    breaks(bench, "next", 5.0, FAILED, "one")
    assert not bench.logs("client_held")


def test_workers_that_die_together_hold_nobody() -> None:
    bench = four()
    one, two = bench.call(2.0, client="c"), bench.call(2.0, client="c")
    bench.ended(one, 3.0, *DIED)
    bench.ended(two, 3.0, *DIED)
    assert not bench.logs("client_held")


def test_of_clients_unknown_nothing_is_remembered() -> None:
    clients = Clients()
    assert not any(clients.broke(a_break(float(n), str(n), f"w{n}", client="")) for n in range(9))


def test_clients_are_forgotten_the_one_unheard_of_for_longest_first() -> None:
    clients = Clients()
    clients.broke(a_break(0.0, "1", A))
    assert clients.broke(a_break(1.0, "2", B))
    assert clients.holds("c", 2.0)
    for number in range(fixed.CLIENTS_MAX):
        clients.went_well(str(number), "")
    assert not clients.holds("c", 2.0)
    clients.release("c")  # unknown by now


def test_breaks_of_long_ago_hold_nobody() -> None:
    clients = Clients()
    clients.broke(a_break(0.0, "1", A))
    assert not clients.broke(a_break(fixed.POISON_S, "2", B))


def test_whoever_is_let_go_is_held_no_longer_in_any_book() -> None:
    clients = Clients()
    for number, worker in enumerate((A, B)):
        clients.broke(a_break(float(number), str(number), worker))
    for _ in range(fixed.CLIENT_CALLS):
        clients.went_well("c", "")
    assert not clients.holds("c", 2.0)
    assert not clients.held
    clients.strike(a_break(0.0, "0", client="unknown by now"))
