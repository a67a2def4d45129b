"""Periods, limits and counts that decide something and are not configuration. One table; tests pass a quicker one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Units stand in the names: `_s` seconds."""

    gil_switch_s: float = 0.001
    """After so long a thread that computes in pure Python lets the event loop have a turn. With Python's own 5 ms a
    health check, which needs several turns, took 30 ms at p99 beside such a thread; with 1 ms 9 ms, at no cost seen."""

    beat_s: float = 0.25
    """How often the checks are weighed and watchers of the step counter are told."""

    late_beat_s: float = 1.5
    """A beat that comes later than this after the one before means that the process slept: evidence did not age
    meanwhile."""

    progress_period_s: float = 1.0
    """Between two readings of the progress counter. Two readings over the limit prove a stall."""

    disk_free_period_s: float = 0.25
    disk_write_period_s: float = 15.0
    """Free bytes and a real write are read this often, each in a thread of its own that may hang."""

    disk_stale_floor_s: float = 3.0
    """Evidence older than three of its intervals counts as failed, but never before this age: on a busy machine a
    thread gets its turn late without any disk being at fault."""

    disk_out_min_s: float = 10.0
    """The disk has to be good for so long without a break before it counts as good again."""

    dep_timeout_s: float = 7.0
    """How long one probe of a dependency may take: a saturated server answers after five."""

    dep_retry_s: float = 1.0
    """Until the next probe after a bad one, and after the first good one that follows; else `deps_cache_seconds`."""

    dep_failures_to_leave: int = 2
    dep_timeouts_to_leave: int = 3
    dep_goods_to_return: int = 2
    """So many probes in a row that were refused or answered wrongly take a dependency down; so many bad ones when they
    ran out of time; so many good ones bring it back. The first good one in this process counts at once."""

    growth_failure_memory_s: float = 60.0
    """A growth call that went without its picture costs `capability/growth` for so long, unless one succeeds before:
    edges that prefer other workers would never find out."""

    growth_queue_patience_s: float = 10.0
    """A growth call that waits in the diffusion server's queue for so long costs `capability/growth` until it leaves
    the queue: that server has more work than it gets done, and workers with another one may be quicker."""

    load_retry_s: float = 10.0
    """After models could not be loaded: files put in place later are found without a restart."""

    canary_retry_s: float = 5.0
    """Between two canaries while they fail."""

    refusals_for_canary: int = 8
    """So many photo refusals in a row force a canary: a broken accelerator finds no face in anything."""

    failed_inputs_limit: int = 3
    failed_inputs_window_s: float = 60.0
    """So many different inputs that made a stage raise, within this time, are the worker's fault after all."""

    service_time_window_s: float = 300.0
    """Service times older than this are forgotten."""

    default_service_time_s: float = 1.0
    default_growth_times_s: Mapping[str, float] = field(default_factory=lambda: {"GrowStyles": 18.0, "GrowRegion": 6.0})
    """How long a call is thought to take before anything was measured; the second, by RPC, on a diffusion server."""

    deadline_slack_s: float = 0.1
    """A caller that leaves so shortly before its deadline ran out of time: what travels is a duration, so that its
    clock rings before ours."""

    min_retry_s: float = 0.05
    overdue_retry_share: float = 0.1
    """Least time a refused caller is told to wait, and its share of the age of a call that takes longer than usual:
    nobody knows how long that will be, and nobody should ask twenty times a second."""

    progress_gap_s: float = 0.2
    """Least time between two progress messages of one call, unless a result comes between them."""

    most_unread_bytes: int = 128 * 2**20
    """While callers have not taken so much of their answers, no call is admitted: a worker's memory is bounded by this
    and one call more. An answer of four grown styles has 40 MB."""

    unread_retry_s: float = 1.0
    """What a caller is told to wait meanwhile."""

    unread_s: float = 60.0
    """Who does not take a message for so long, be it an answer or one of a stream, is disconnected. Pictures pass in a
    second; a frozen machine is found out by pings before."""

    watch_gap_s: float = 0.05
    """Least time between two messages of one `WatchStatus` stream."""

    check_prompt_s: float = 0.1
    check_late_s: float = 5.0
    """How long the message of a health check without a password may take behind its head; the latter one at a time."""

    turned_away_log_s: float = 10.0
    """Between two log lines on calls without a password, or with a wrong one, however many there are."""

    config_poll_s: float = 1.0
    """How often the configuration file is looked at for changed passwords."""

    notify_extend_s: float = 30.0
    notify_extend_every_s: float = 10.0
    """While it starts and while it stops, systemd is asked every so often for so much more time."""

    close_s: float = 2.0
    """What is left to answer, to close and to log after the last call."""

    thread_end_s: float = 12.0
    """What the compute thread may take to end after its call was cut off. It removes what its job has left on a
    diffusion server: a patient's face is not left behind because a worker stops."""
