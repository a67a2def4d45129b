"""What the checks mean together."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hairmesh.wire import ANALYZE_SERVICE
from worker.health.checks import GROWTH, Cause, CheckResult, CheckState
from worker.health.report import Report, ServingState, report

CAUSES = {"disk": Cause.DISK, "models": Cause.MODELS, "accelerator": Cause.ACCELERATOR, "progress": Cause.STALLED}

NOTHING_BAD: Mapping[str, CheckState] = {}


def checks(states: Mapping[str, CheckState]) -> list[CheckResult]:
    made = []
    for name, cause in CAUSES.items():
        state = states.get(name, CheckState.PASSING)
        made.append(CheckResult(name, state, cause, f"{name}_bad" if state is CheckState.FAILING else ""))
    return [*made, GROWTH]


def weigh(states: Mapping[str, CheckState] = NOTHING_BAD, *, warm: bool = True, draining: bool = False) -> Report:
    return report(checks(states), warm=warm, draining=draining)


def test_all_good_serves_although_growth_is_not_there() -> None:
    health = weigh()
    assert (health.state, health.reasons, health.cause, health.live) == (ServingState.SERVING, (), None, True)
    assert [name for name, why in health.why_not.items() if why] == ["capability/growth"]


@pytest.mark.parametrize(
    ("name", "live"), [("disk", True), ("models", True), ("accelerator", False), ("progress", False)]
)
def test_one_bad_check_takes_the_worker_out_and_some_end_its_life(name: str, live: bool) -> None:
    health = weigh({name: CheckState.FAILING})
    assert (health.state, health.reasons, health.cause) == (
        ServingState.NOT_SERVING,
        (f"{name}_bad",),
        CAUSES[name],
    )
    assert health.live is live
    assert {other for other, why in health.why_not.items() if why} == {
        "",
        ANALYZE_SERVICE,
        name,
        "capability/growth",
        *([] if live else ["liveness"]),
    }


def test_gravest_cause_wins_and_all_reasons_are_told() -> None:
    health = weigh({"disk": CheckState.FAILING, "progress": CheckState.FAILING})
    assert health.cause is Cause.STALLED
    assert health.why_not[""] == "disk_bad,progress_bad"


def test_before_the_first_canary_all_but_liveness_and_disk_are_starting() -> None:
    health = weigh({"models": CheckState.UNKNOWN}, warm=False)
    assert (health.state, health.cause, health.reasons) == (ServingState.STARTING, Cause.STARTING, ("starting",))
    assert {name for name, why in health.why_not.items() if not why} == {"liveness", "disk"}


def test_draining_is_said_first_and_is_no_cause_for_refusing() -> None:
    health = weigh(draining=True)
    assert (health.state, health.reasons, health.cause, health.live) == (
        ServingState.DRAINING,
        ("draining",),
        None,
        True,
    )
    assert health.why_not["models"] == ""


@given(
    states=st.dictionaries(st.sampled_from(sorted(CAUSES)), st.sampled_from(CheckState)),
    warm=st.booleans(),
    draining=st.booleans(),
)
def test_serving_means_every_required_check_is_good(states: dict[str, CheckState], warm: bool, draining: bool) -> None:
    health = weigh(states, warm=warm, draining=draining)
    good = all(state in {CheckState.PASSING, CheckState.OFF} for state in states.values())
    assert (health.state is ServingState.SERVING) == (good and warm and not draining)
    assert (health.why_not[ANALYZE_SERVICE] == "") == (health.state is ServingState.SERVING)
    assert health.why_not[""] == health.why_not[ANALYZE_SERVICE]
    assert health.live == (health.why_not["liveness"] == "")
    if warm and health.why_not[ANALYZE_SERVICE] == "":
        assert not any(health.why_not[name] for name in CAUSES)
