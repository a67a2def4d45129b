"""What the checks mean together."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hairmesh.wire import ANALYZE_SERVICE
from worker.health.checks import Cause, CheckResult, CheckState
from worker.health.report import Report, ServingState, report

CAUSES = {
    "disk": Cause.DISK,
    "dep/comfyui": Cause.DEPENDENCY,
    "dep/change_hair": Cause.DEPENDENCY,
    "models": Cause.MODELS,
    "accelerator": Cause.ACCELERATOR,
    "progress": Cause.STALLED,
}

NO_GROWTH = CheckResult("capability/growth", CheckState.FAILING, None, "backend_none")
NOTHING_BAD: Mapping[str, CheckState] = {}


def checks(states: Mapping[str, CheckState]) -> list[CheckResult]:
    made = []
    for name, cause in CAUSES.items():
        state = states.get(name, CheckState.PASSING)
        made.append(CheckResult(name, state, cause, f"{name}_bad" if state is CheckState.FAILING else ""))
    return [*made, NO_GROWTH]


def weigh(states: Mapping[str, CheckState] = NOTHING_BAD, *, warm: bool = True, draining: bool = False) -> Report:
    return report(checks(states), warm=warm, draining=draining)


def test_all_good_serves_although_growth_is_not_there() -> None:
    health = weigh()
    assert (health.state, health.reasons, health.cause, health.live) == (ServingState.SERVING, (), None, True)
    assert [name for name, why in health.why_not.items() if why] == ["capability/growth"]


@pytest.mark.parametrize(
    ("name", "live"),
    [("disk", True), ("dep/comfyui", True), ("models", True), ("accelerator", False), ("progress", False)],
)
def test_one_bad_check_takes_the_worker_out_and_some_end_its_life(name: str, live: bool) -> None:
    health = weigh({name: CheckState.FAILING})
    assert (health.state, health.reasons, health.cause) == (
        ServingState.NOT_SERVING,
        ("dep_down:comfyui" if name == "dep/comfyui" else f"{name}_bad",),
        CAUSES[name],
    )
    assert health.live is live
    assert health.capabilities == ()
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


def test_all_dependencies_that_are_down_stand_in_one_reason() -> None:
    health = weigh(dict.fromkeys(("dep/comfyui", "dep/change_hair"), CheckState.FAILING))
    assert (health.reasons, health.cause) == (("dep_down:comfyui,change_hair",), Cause.DEPENDENCY)
    assert health.why_not["dep/comfyui"] == "dep/comfyui_bad"


def test_capabilities_are_what_calls_can_succeed_in_now() -> None:
    grown = [*checks(NOTHING_BAD)[:-1], CheckResult("capability/growth", CheckState.PASSING)]
    assert weigh().capabilities == ("measure",)
    assert report(grown, warm=True, draining=False).capabilities == ("measure", "growth")
    assert report(grown, warm=True, draining=True).capabilities == ("measure", "growth")  # still finishes calls
    assert report(grown, warm=False, draining=False).capabilities == ()


def test_before_the_first_canary_all_but_liveness_disk_and_dependencies_are_starting() -> None:
    health = weigh({"models": CheckState.UNKNOWN}, warm=False)
    assert (health.state, health.cause, health.reasons) == (ServingState.STARTING, Cause.STARTING, ("starting",))
    assert {name for name, why in health.why_not.items() if not why} == {
        "liveness",
        "disk",
        "dep/comfyui",
        "dep/change_hair",
    }
    down = weigh({"models": CheckState.UNKNOWN, "dep/comfyui": CheckState.FAILING}, warm=False)
    assert (down.why_not["dep/comfyui"], down.why_not["models"]) == ("dep/comfyui_bad", "starting")
    assert (down.cause, down.reasons) == (Cause.DEPENDENCY, ("dep_down:comfyui", "starting"))


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
