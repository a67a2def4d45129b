"""Behaviours that can be taken away by changing one text, and the test that must notice each."""

from __future__ import annotations

from dataclasses import dataclass

from tests.scenarios.table.files import (
    CALLS,
    CHECKS,
    CLOCKS,
    COOLDOWNS,
    DECISIONS,
    DISK,
    DISPATCH,
    DRIVER,
    ENGINES,
    EVENTS,
    HEALTH,
    LEAVING,
    NO_FAULT,
    PASSWORDS,
    POISON,
    REAL,
    RESTARTS,
    SHARED,
    VERDICT,
    WATCHDOG_TESTS,
)


@dataclass(frozen=True, slots=True)
class Mutation:
    """One behaviour removed."""

    name: str
    """What the broken system does."""
    file: str
    text: str
    """As it stands there, exactly once."""
    broken: str
    test: str
    """Node id of the test that must fail."""


POOL = (
    Mutation(
        "a-good-probe-lifts-a-cooldown",
        "edge/pool/endpoint.py",
        "        cooling = self.cooldown_left_s(now_s) > 0\n",
        "        if result is ProbeResult.GOOD:\n            self.cooldown.pardon()\n"
        "        cooling = self.cooldown_left_s(now_s) > 0\n",
        f"{COOLDOWNS}test_1_probes_inside_a_cooldown_lift_nothing_and_the_first_good_one_after_it_does",
    ),
    Mutation(
        "cooldowns-never-double",
        "edge/pool/cooldown.py",
        "shortest_s * 2**self._doublings * (",
        "shortest_s * (",
        f"{COOLDOWNS}test_2_b65_passing_probes_bring_no_traffic_to_a_worker_that_fails_every_call",
    ),
    Mutation(
        "unavailable-is-nobodys-fault",
        "edge/pool/passive.py",
        "    Code.UNAVAILABLE: Meaning.FAILED,\n",
        "    Code.UNAVAILABLE: Meaning.PASSED_ON,\n",
        f"{COOLDOWNS}test_9_a_worker_whose_health_says_serving_and_whose_calls_are_refused_is_down",
    ),
    Mutation(
        "busy-counts-as-a-strike",
        "edge/pool/passive.py",
        "WorkerReason.BUSY): Meaning.BUSY",
        "WorkerReason.BUSY): Meaning.FAILED",
        f"{DRIVER}test_two_edges_share_workers_without_knowing_of_each_other",
    ),
    Mutation(
        "draining-counts-as-a-strike",
        "edge/pool/passive.py",
        "WorkerReason.DRAINING): Meaning.DRAINING",
        "WorkerReason.DRAINING): Meaning.FAILED",
        f"{EVENTS}test_a_refusal_as_draining_is_the_first_word_of_it",
    ),
    Mutation(
        "a-full-disk-costs-a-cooldown",
        "edge/pool/passive.py",
        "WorkerReason.DISK): Meaning.TOOK_ITSELF_OUT",
        "WorkerReason.DISK): Meaning.FAILED",
        f"{DISK}test_33_whether_watch_or_a_failed_call_comes_first_the_end_is_the_same",
    ),
    Mutation(
        "a-photo-without-a-face-is-the-workers-fault",
        "edge/pool/passive.py",
        "    Code.FAILED_PRECONDITION: Meaning.PASSED_ON,\n",
        "    Code.FAILED_PRECONDITION: Meaning.FAILED,\n",
        f"{NO_FAULT}test_b68_ten_of_each_in_a_row_and_no_strike",
    ),
    Mutation(
        "an-impatient-client-is-the-workers-fault",
        "edge/pool/passive.py",
        "    if code is Code.DEADLINE_EXCEEDED and expired and not full_time:\n        return Meaning.OUT_OF_TIME\n",
        "",
        f"{NO_FAULT}test_b68_ten_of_each_in_a_row_and_no_strike",
    ),
    Mutation(
        "all-first-probes-at-once",
        "edge/pool/config.py",
        "START_SPREAD_S = 0.5\n",
        "START_SPREAD_S = 0.0\n",
        f"{DISPATCH}test_8_fifty_workers_are_not_asked_all_at_once",
    ),
    Mutation(
        "a-lease-ends-by-hope",
        "edge/pool/leases.py",
        "        lease.left_s = now_s\n        return lease\n",
        "        del self._held[target]\n        return None\n",
        f"{LEAVING}test_18_a_client_of_the_edge_leaves_and_the_worker_hears_of_it",
    ),
    Mutation(
        "a-retry-may-meet-the-same-worker",
        "edge/pool/attempts.py",
        "request.tried = (*request.tried, request.endpoint)",
        "request.tried = ()",
        f"{EVENTS}test_a_retry_waits_for_another_worker_never_for_the_same",
    ),
    Mutation(
        "slow-calls-take-every-worker",
        "edge/pool/dispatch.py",
        "return len(at_work.online) > 1 and len(at_work.slow) + 1 >= len(at_work.online)",
        "return False",
        f"{DISPATCH}test_35_growth_is_busy_everywhere_and_a_measurement_gets_the_next_slot",
    ),
    Mutation(
        "watch-is-ignored",
        "edge/pool/fleet.py",
        "        if not event.serving:\n            endpoint.told_down(",
        "        if event is None:\n            endpoint.told_down(",
        f"{EVENTS}test_watch_takes_offline_at_once_and_its_serving_only_causes_a_probe",
    ),
    Mutation(
        "no-input-is-ever-refused",
        "edge/pool/config.py",
        "POISON_WORKERS = 2\n",
        "POISON_WORKERS = 1_000\n",
        f"{POISON}test_27_an_input_that_kills_its_worker_meets_two_of_them_and_is_then_refused",
    ),
    Mutation(
        "no-cause-is-ever-shared",
        "edge/pool/config.py",
        "BRAKE_WORKERS_MIN = 3\n",
        "BRAKE_WORKERS_MIN = 1_000\n",
        f"{SHARED}test_3_five_workers_fail_together_and_are_back_within_seconds_of_the_causes_end",
    ),
    Mutation(
        "trials-come-all-at-once",
        "edge/pool/brake.py",
        "return self.on and not self._trial and now_s >= self._next_trial_s",
        "return self.on",
        f"{SHARED}test_3_five_workers_fail_together_and_are_back_within_seconds_of_the_causes_end",
    ),
)

UPSTREAM = (
    Mutation(
        "the-edge-does-not-notice-clients-that-leave",
        "edge/exchange.py",
        "            await self._exchange.receive()\n        self._task.cancel()\n",
        "            await self._exchange.receive()\n",
        f"{LEAVING}test_18_a_client_of_the_edge_leaves_and_the_worker_hears_of_it",
    ),
    Mutation(
        "the-edge-does-not-know-that-it-slept",
        "edge/upstream/heart.py",
        "        if slept_s > SLEPT_S:\n",
        "        if False:\n",
        "tests/scenarios/test_suspension.py::"
        "test_32_the_edge_alone_sleeps_and_nobody_is_out_for_the_connections_it_lost",
    ),
    Mutation(
        "nobody-reads-what-workers-say-of-their-slot",
        "edge/upstream/watch.py",
        "            self._emit(_told(target, asked_s, answer.status))\n",
        "            _told(target, asked_s, answer.status)\n",
        f"{LEAVING}test_31_a_hundred_clients_of_three_edges_leave_and_every_slot_is_used_again_at_once",
    ),
)

WORKER = (
    Mutation(
        "three-bad-inputs-make-a-worker-doubt-itself-whatever-others-get",
        "worker/doubt.py",
        "return failed >= self._thresholds.failed_inputs_limit and failed > len(self._answered_at_s)",
        "return failed >= self._thresholds.failed_inputs_limit",
        f"{DECISIONS}test_one_uploader_of_bad_inputs_does_not_make_a_worker_guilty_that_answers_others",
    ),
    Mutation(
        "the-canary-is-left-out-under-load",
        "worker/runner.py",
        "            in_doubt = canary_forced or overdue or self._suspected or not self._models.good\n",
        "            in_doubt = False\n",
        f"{REAL}test_30_models_that_find_nothing_any_more_are_found_out_under_full_load",
    ),
    Mutation(
        "the-slot-is-free-when-the-caller-leaves",
        "worker/runner.py",
        "                self.slot.abandon(occupation.epoch)\n",
        "                self.slot.release(occupation.epoch)\n",
        f"{CALLS}test_call_that_runs_out_of_time_keeps_the_slot_until_its_thread_ends",
    ),
    Mutation(
        "liveness-follows-the-disk",
        "worker/health/report.py",
        "dead_for_good = {Cause.STALLED, Cause.ACCELERATOR}",
        "dead_for_good = {Cause.STALLED, Cause.ACCELERATOR, Cause.DISK}",
        f"{HEALTH}test_full_disk_takes_out_the_worker_but_not_its_life",
    ),
    Mutation(
        "one-watermark-for-the-disk",
        "worker/health/checks.py",
        "limit_gib = self._resume_free_gib if coming_back else self._min_free_gib",
        "limit_gib = self._min_free_gib",
        f"{CHECKS}test_out_at_once_below_the_lower_mark_back_only_above_the_upper_one",
    ),
    Mutation(
        "a-lost-accelerator-heals-by-itself",
        "worker/health/checks.py",
        "and not self._accelerator_reason\n",
        "\n",
        f"{REAL}test_14_b64_a_lost_accelerator_costs_one_retry_and_never_comes_back",
    ),
    Mutation(
        "one-reading-proves-a-stall",
        "worker/health/verdict.py",
        "elif over_limit and before is not None and before.over_limit:",
        "elif over_limit:",
        f"{VERDICT}test_still_counter_is_stalled_after_two_readings_over_the_limit",
    ),
    Mutation(
        "a-sleeping-machine-is-a-stall",
        "worker/health/verdict.py",
        "fresh = other or slept",
        "fresh = other",
        f"{VERDICT}test_late_reading_starts_anew",
    ),
    Mutation(
        "a-slow-machine-never-stalls",
        "worker/health/verdict.py",
        "slept = late and before is not None and (not before.excused or late_s > reading.stall_after_s)",
        "slept = late",
        f"{VERDICT}test_a_machine_that_is_always_late_sees_a_stall_all_the_same",
    ),
    Mutation(
        "a-password-fits-by-its-beginning",
        "hairmesh/secret.py",
        "hmac.compare_digest(shown, each) for each in accepted",
        "each.startswith(shown) for each in accepted",
        f"{PASSWORDS}test_only_the_exact_bytes_fit",
    ),
)

WATCHDOG = (
    Mutation(
        "an-http-error-proves-that-a-server-is-dead",
        "worker/health/watchdog/server.py",
        "                return self._unreadable(look)\n",
        "                return _finding(Verdict.DEAD, look.problem, conclusive=True)\n",
        f"{WATCHDOG_TESTS}test_b87_without_counters_a_silent_canary_is_no_proof",
    ),
    Mutation(
        "requests-that-wait-are-no-work",
        "worker/health/verdict.py",
        "working = reading.in_flight > 0 or reading.waiting > 0",
        "working = reading.in_flight > 0",
        f"{WATCHDOG_TESTS}test_b80_waiting_without_running_is_a_stuck_engine_and_not_an_idle_one",
    ),
    Mutation(
        "who-waits-in-another-servers-queue-is-stuck",
        "worker/health/probes/worker.py",
        "waiting_for=printable(slot.call.waiting_for, NAME_CHARACTERS)",
        'waiting_for=""',
        "tests/hairmesh/test_watch_worker.py::test_a_worker_whose_call_waits_in_comfyuis_queue_is_well_and_left_alone",
    ),
    Mutation(
        "a-stall-needs-no-canary",
        "worker/health/watchdog/server.py",
        "not self._possible or self._canaries.confirm(",
        "True or self._canaries.confirm(",
        f"{WATCHDOG_TESTS}test_a_canary_that_gets_an_error_proves_nothing",
    ),
    Mutation(
        "a-canary-answers-for-every-engine",
        "worker/health/watchdog/canary.py",
        "others = () if self._names_are_heeded else counters",
        "others = ()",
        f"{ENGINES}test_a_canary_that_waits_behind_another_engines_work_proves_nothing",
    ),
    Mutation(
        "an-answered-canary-proves-a-stall",
        "worker/health/watchdog/canary.py",
        "return self.waits or self.result is CanaryResult.TIMED_OUT",
        "return self._sent_s is not None",
        f"{WATCHDOG_TESTS}test_counters_that_never_move_though_canaries_pass_are_no_stall",
    ),
    Mutation(
        "a-lost-look-is-a-sleeping-machine",
        "worker/health/watchdog/server.py",
        "replace(memory, due_s=due_s)",
        "memory",
        f"{CLOCKS}test_looks_that_bring_nothing_do_not_save_a_stuck_server",
    ),
    Mutation(
        "an-age-counts-at-every-look",
        "worker/health/watchdog/policy.py",
        "if last is not None and last.names == names:",
        "if last is None and names == frozenset():",
        f"{CLOCKS}test_a_stuck_server_is_restarted_though_clocks_differ",
    ),
    Mutation(
        "no-refusal-counts-on-a-machine-without-ipv6",
        "hairmesh/watch/target.py",
        "[address for address in found if _is_spoken(address[0])]",
        "found",
        "tests/hairmesh/test_watch_refused.py::test_refused_is_who_refuses_at_every_address_that_this_machine_can_have",
    ),
    Mutation(
        "slow-is-dead",
        "worker/health/watchdog/server.py",
        "return _finding(Verdict.SATURATED, look.problem)",
        "return _finding(Verdict.DEAD, look.problem)",
        f"{WATCHDOG_TESTS}test_b85_slow_is_saturated_and_never_restarted",
    ),
    Mutation(
        "no-grace-after-a-start",
        "worker/health/watchdog/policy.py",
        "self._started_s + limits.start_grace_s",
        "self._started_s",
        f"{RESTARTS}test_b86_a_first_request_that_takes_long_after_a_start_is_given_the_time",
    ),
)

MUTATIONS = (*POOL, *UPSTREAM, *WORKER, *WATCHDOG)
