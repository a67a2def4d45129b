"""The slot's transitions, all of them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.slot import TRANSITIONS, CallIdentity, IllegalTransitionError, Slot, SlotEvent, SlotState

CALL = CallIdentity("Measure", "r", "c")


def slot_in(state: SlotState) -> Slot:
    slot = Slot()
    if state is not SlotState.FREE:
        slot.occupy(CALL, 1.0)
    if state is SlotState.ABANDONED:
        slot.abandon(1)
    return slot


def apply(slot: Slot, event: SlotEvent, epoch: int) -> None:
    if event is SlotEvent.OCCUPY:
        slot.occupy(CALL, 2.0)
    elif event is SlotEvent.ABANDON:
        slot.abandon(epoch)
    else:
        slot.release(epoch)


@pytest.mark.parametrize(("state", "event"), list(itertools.product(SlotState, SlotEvent)))
def test_every_event_in_every_state(state: SlotState, event: SlotEvent) -> None:
    slot = slot_in(state)
    before = repr(slot)
    following = TRANSITIONS.get((state, event))
    if following is None:
        with pytest.raises(IllegalTransitionError):
            apply(slot, event, slot.epoch)
        assert repr(slot) == before
    else:
        apply(slot, event, slot.epoch)
        assert slot.state is following


def test_event_of_an_earlier_occupation_changes_nothing() -> None:
    slot = slot_in(SlotState.BUSY)
    slot.release(1)
    slot.occupy(CALL, 3.0)
    for late in (slot.abandon, slot.release):
        with pytest.raises(IllegalTransitionError):
            late(1)
    assert repr(slot) == "<Slot busy epoch=2 call_id='c'>"


@given(st.lists(st.tuples(st.sampled_from(SlotEvent), st.integers(0, 3))))
def test_epoch_only_rises_and_a_taken_slot_has_an_occupant(events: list[tuple[SlotEvent, int]]) -> None:
    slot = Slot()
    for event, epochs_back in events:
        epoch = slot.epoch
        try:
            apply(slot, event, epoch - epochs_back)
        except IllegalTransitionError:
            assert slot.epoch == epoch
        assert slot.epoch == epoch + (event is SlotEvent.OCCUPY and slot.epoch != epoch)
        assert (slot.occupation is None) == (slot.state is SlotState.FREE)
        assert slot.occupation is None or slot.occupation.epoch == slot.epoch
