"""Alarms that nobody needs any more: they keep nothing, and do not pile up."""

from __future__ import annotations

import gc
import weakref

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.admission import Request
from edge.pool.agenda import Agenda, look_again
from edge.pool.config import DispatchConfig
from edge.pool.outbox import Outbox
from edge.pool.requests import Requests
from tests.edge.pool.bench import A, Bench


def test_what_is_taken_off_is_not_done_and_what_it_knew_is_let_go() -> None:
    class Known:
        def at(self, now_s: float) -> None:
            rung.append(now_s)

    rung: list[float] = []
    agenda, known = Agenda(Outbox()), Known()
    gone = weakref.ref(known)
    alarm, other = agenda.at(1.0, known.at), agenda.at(2.0, rung.append)
    agenda.take_off(alarm)
    agenda.take_off(alarm)
    del known
    gc.collect()
    assert gone() is None
    agenda.run(3.0)
    assert rung == [3.0], "the moment in which it was done"
    agenda.take_off(other)  # it has been done
    assert len(agenda) == 0


def test_those_taken_off_do_not_pile_up() -> None:
    agenda = Agenda(Outbox())
    stays = agenda.at(1e6, look_again)
    for number in range(10_000):
        agenda.take_off(agenda.at(1e3 + number, look_again))
        assert len(agenda) <= 2 + fixed.ALARMS_OFF_MAX
    agenda.run(1e5)
    assert len(agenda) == 1
    agenda.take_off(stays)
    agenda.woken(1e6)
    assert len(agenda) == 0


def test_calls_that_waited_and_are_over_leave_nothing_behind() -> None:
    bench = Bench(A, dispatch=DispatchConfig(queue_wait_seconds=300, max_in_flight=4, spill_after_seconds=200)).online()
    requests: Requests = bench.pool._requests
    before = len(requests._agenda)
    for number in range(300):
        now_s = 1.0 + number / 10
        running, leaves, outside = (bench.call(now_s) for _ in range(3))
        bench.tell(ev.CallGone(now_s + 0.01, leaves))
        for call_id in (running, outside):
            bench.ended(call_id, now_s + 0.02, ev.Code.OK)
    gc.collect()
    assert not [each for each in gc.get_objects() if type(each) is Request]  # isinstance asks strangers for their class
    assert len(requests._agenda) <= before + fixed.ALARMS_OFF_MAX + 1


def test_one_let_in_as_its_wait_outside_ends_has_its_whole_wait_inside() -> None:
    settings = DispatchConfig(max_in_flight=2, max_queue_wait_seconds=5, queue_wait_seconds=30)
    bench = Bench(A, dispatch=settings).online()
    first, _, outside = (bench.call(1.0) for _ in range(3))
    bench.ended(first, 6.0, ev.Code.OK)
    assert bench.reason(outside) == ""
    bench.tell(ev.Tick(35.9))
    assert bench.reason(outside) == ""
    bench.tell(ev.Tick(36.0))
    assert bench.reason(outside) == "BUSY"
