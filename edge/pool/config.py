"""What the pool is told, and what it holds fixed: every number with its unit and default, in one place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, get_args, get_type_hints

from annotated_types import Ge, Gt, Le

from hairmesh.wire import PING_TIMEOUT_MS

NAME_PREFIX = "dns:///"
"""Begins a worker that is a name with any number of addresses behind it, instead of one address."""

_TARGET = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})")
_DNS = re.compile(r"dns:(?://[^/]*)?/?(?P<rest>[^/]*)", re.IGNORECASE)
_SCHEME = re.compile(r"(?P<scheme>https?|grpcs?|tcp)://(?P<rest>[^/]*)", re.IGNORECASE)


class PoolConfigError(ValueError):
    """A setting the pool refuses. The message begins with the setting's name and says what to write instead."""


class NotATargetError(PoolConfigError):
    """A worker is written neither `host:port` nor `dns:///name:port`."""


class DuplicateWorkerError(PoolConfigError):
    """A worker stands in a list twice."""


class UnknownPrimaryError(PoolConfigError):
    """`primary_workers` names something that is not in `workers`."""


class OutOfRangeError(PoolConfigError):
    """A number is outside what makes sense."""


class ConcurrencyError(PoolConfigError):
    """`per_worker_concurrency` is not 1."""


LONGEST_S = 3600.0
"""Whoever asks for more means milliseconds."""
Seconds = Annotated[float, Gt(0), Le(LONGEST_S)]
Wait = Annotated[float, Ge(0), Le(LONGEST_S)]
"""So many seconds; 0: not at all."""
ProbeSeconds = Annotated[float, Gt(0), Le(60.0)]
"""A probe that takes longer finds nothing out in time."""


def _check_bounds(section: str, config: HealthCheckConfig | DispatchConfig) -> None:
    """Raise `OutOfRangeError` for a number that is not within what its annotation says."""
    for name, bound in _bounds(type(config)):
        value = getattr(config, name)
        where = f"{section}.{name}"
        if isinstance(bound, Gt):
            _require(value is None or value > bound.gt, where, value, f"must be above {bound.gt}")
        elif isinstance(bound, Ge):
            _require(value is None or value >= bound.ge, where, value, f"must be at least {bound.ge}")
        else:
            _require(value is None or value <= bound.le, where, value, f"must be at most {bound.le}")


def _bounds(kind: type) -> Iterator[tuple[str, Gt | Ge | Le]]:
    """Name and bound of each number of a section."""
    for name, hint in get_type_hints(kind, include_extras=True).items():
        for alternative in (hint, *get_args(hint)):
            for bound in getattr(alternative, "__metadata__", ()):
                if isinstance(bound, Gt | Ge | Le):
                    yield name, bound


def _require(holds: bool, setting: str, value: object, rule: str) -> None:
    if not holds:
        raise OutOfRangeError(f"{setting}: {value!r} {rule}")


@dataclass(frozen=True, slots=True)
class HealthCheckConfig:
    """Probes, thresholds, cooldown."""

    interval_seconds: Seconds = 8.0
    """Between two probes of one worker, in s; every wait is moved by ± `PROBE_JITTER`."""
    timeout_seconds: ProbeSeconds = 3.0
    """How long one probe may take, in s."""
    unhealthy_threshold: Annotated[int, Ge(1)] = 2
    """Bad probes in a row that take a worker offline."""
    healthy_threshold: Annotated[int, Ge(1)] = 1
    """Good probes in a row that bring it online."""
    cooldown_seconds: Wait = 60.0
    """Shortest time a worker stays ejected after a failed call, in s. 0 is the emergency switch: running cooldowns end,
    and an ejected worker is back with its next good probe."""
    cooldown_max_seconds: Wait = 300.0
    """Longest such time after several ejections, in s."""

    def __post_init__(self) -> None:
        """Raise `OutOfRangeError` for what cannot be meant."""
        _check_bounds("health_check", self)
        cooldown_s = self.cooldown_seconds
        _require(
            self.cooldown_max_seconds >= cooldown_s,
            "health_check.cooldown_max_seconds",
            self.cooldown_max_seconds,
            f"must be at least cooldown_seconds, {cooldown_s!r}",
        )


@dataclass(frozen=True, slots=True)
class DispatchConfig:
    """Queue, attempts, retries."""

    per_worker_concurrency: int = 1
    """Calls on one worker at a time. Workers compute one call at a time: nothing else is accepted."""
    queue_wait_seconds: Wait = 30.0
    """How long an admitted request waits for a worker, in s."""
    max_in_flight: Annotated[int, Ge(1)] = 64
    """Requests inside: running, or waiting for a worker."""
    max_queue_wait_seconds: Wait = 590.0
    """How long a request beyond that waits to get in, in s."""
    max_queued_bytes: Annotated[int, Ge(0)] = 256 * 1024 * 1024
    """Bodies of the requests that wait to get in, all together, in bytes."""
    request_timeout_seconds: Seconds = 60.0
    """One attempt of a fast call, in s."""
    growth_timeout_seconds: Seconds = 180.0
    """One attempt of a slow call, in s."""
    retry_on_failure: bool = True
    """Whether a failed attempt is tried again on another worker."""
    max_retries: Annotated[int, Ge(0)] = 1
    """How often at most, beside the first attempt."""
    spill_after_seconds: Wait | None = None
    """How long a request waits for a primary before a free backup may help, in s; null: never while a primary is
    online."""

    def __post_init__(self) -> None:
        """Raise `ConcurrencyError` or `OutOfRangeError` for what cannot be meant."""
        if self.per_worker_concurrency != 1:
            raise ConcurrencyError(
                f"dispatch.per_worker_concurrency: {self.per_worker_concurrency!r} must be 1: a worker computes one"
                " call at a time; start more workers instead"
            )
        _check_bounds("dispatch", self)

    def attempt_timeout_s(self, *, slow: bool) -> float:
        """Longest time of one attempt, in s."""
        return self.growth_timeout_seconds if slow else self.request_timeout_seconds

    def default_timeout_s(self, *, slow: bool) -> float:
        """Total patience for a client that states none, in s: both queues, then every attempt."""
        attempts = 1 + (self.max_retries if self.retry_on_failure else 0)
        return self.max_queue_wait_seconds + self.queue_wait_seconds + attempts * self.attempt_timeout_s(slow=slow)


@dataclass(frozen=True, slots=True)
class Target:
    """One address to be an endpoint."""

    address: str
    """`host:port`; IPv6 as `[::1]:port`."""
    primary: bool = True
    """Whether it belongs to the first priority."""
    name: str = ""
    """The `dns:///name:port` that led to it; empty when it stands in the configuration itself."""


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """Everything the pool is told. Raises `PoolConfigError` for what it refuses."""

    workers: tuple[str, ...]
    """Addresses, `host:port` (IPv6 as `[::1]:port`), and names, `dns:///name:port`."""
    primary_workers: tuple[str, ...] = ()
    """Those that get the calls while any of them is online; empty: all. A name belongs there with all its addresses."""
    health: HealthCheckConfig = field(default_factory=HealthCheckConfig)
    dispatch: DispatchConfig = field(default_factory=DispatchConfig)

    def __post_init__(self) -> None:
        """Check targets and lists."""
        if not self.workers:
            raise PoolConfigError("workers: at least one is needed, written host:port")
        for setting, targets in (("workers", self.workers), ("primary_workers", self.primary_workers)):
            for target in targets:
                _check_target(setting, target)
            for target, times in Counter(target.lower() for target in targets).items():
                if times > 1:
                    raise DuplicateWorkerError(f"{setting}: {target} stands there {times} times")
        for target in self.primary_workers:
            if target not in self.workers:
                raise UnknownPrimaryError(f"primary_workers: {target} is not in workers")

    def is_primary(self, worker: str) -> bool:
        """Whether one of `workers`, address or name, belongs to the first priority: it is named so, or nobody is."""
        return not self.primary_workers or worker in self.primary_workers

    def targets(self) -> tuple[Target, ...]:
        """The endpoints that are known without resolving a name."""
        return tuple(
            Target(worker, self.is_primary(worker)) for worker in self.workers if not worker.startswith(NAME_PREFIX)
        )


def _check_target(setting: str, target: str) -> None:
    if "@" in target:  # not repeated: what stands before it may be a password
        raise NotATargetError(f"{setting}: write host:port, without a user or password before it (@)")
    if scheme := _SCHEME.match(target):
        raise NotATargetError(
            f"{setting}: {target}: gRPC targets have no {scheme['scheme']}:// in front;"
            f" write {scheme['rest'] or 'host:port'}"
        )
    address = target.removeprefix(NAME_PREFIX)
    if address == target and (name := _DNS.match(target)):
        raise NotATargetError(f"{setting}: {target}: write {NAME_PREFIX}{name['rest'] or 'name:port'}")
    parts = _TARGET.fullmatch(address)
    if parts is None or not 1 <= int(parts["port"]) <= 65_535:
        raise NotATargetError(f"{setting}: {target!r} is not host:port (port 1 to 65535)")


# What no operator needs to set.

PROBE_JITTER = 0.1
"""Share by which each wait between probes is lengthened or shortened, so that probes of many edges never march."""
REPROBE_S = 1.0
"""Wait after a bad probe, and between the good ones that bring a worker back, in s."""
START_STEP_S = 0.01
"""Distance of two workers' first probes, in s."""
START_SPREAD_S = 0.5
"""Within which all first probes have begun, however many workers there are, in s."""

SIMULTANEOUS_S = 1.0
"""Two reports of one happening may come in either order, and so far apart, in s: a call that fails as its worker begins
to drain is the drain's doing, one that fails as a new process answers may be that of either process."""

REPLACE_WAIT_S = 10.0
"""How long workers that are to leave go on serving when nobody else is online, in s."""
LEAVING_MAX_S = 180.0
"""How long a worker that has left is listened to for the end of a call that nobody waits for any more, in s."""
FORMER_MAX = 1024
"""Workers that have left whose cooldowns, doublings and slots are remembered, for `cooldown_max_seconds`; beyond that
the one that left longest ago is forgotten."""
LEFT_BEHIND_WARN_S = 60.0
"""After which a slot that no status gave back is named in the log, in s."""
ALARMS_OFF_MAX = 64
"""Alarms of what has happened otherwise that may wait to be cleared away, if they are not half of all."""
HISTORY = 8
"""Changes and decisions that are remembered of each worker."""

EXPIRED_SHARE = 0.9
"""A worker that says that an attempt's time is over before this share of it has failed: nobody else saw it pass."""
EXPIRED_SLACK_S = 0.05
"""So long before an attempt's end its time counts as over in any case, in s: clocks are coarse, and what is left to the
last attempt of a request may be next to nothing.
"""
LATE_S = 2.0
"""An attempt that comes back so long after its time says nothing of its worker: the edge itself stood still, in s."""
SLEPT_S = PING_TIMEOUT_MS / 1000 - 1.0
"""The edge's process stood still for longer: its connections may be lost by that, in s. Workers close one on which a
ping is not answered in time; it may have been sent a moment before, and the standstill is not measured to the ms."""
WAKING_S = PING_TIMEOUT_MS / 1000 + SIMULTANEOUS_S
"""How long after that such a loss may show, in s: when the edge's own next ping is not answered, at the latest."""
PROGRESS_SHARE = 0.5
"""An attempt that ran out of its time was moving if something moved after this share of it: a worker that enters a
stage and hangs there must not pass for one that works."""

COOLDOWN_JITTER = 0.1
"""Share by which a cooldown may be longer than promised, never shorter, so that workers do not come back as a herd."""
DECAY_GOOD_CALLS = 10
"""Good calls that make a worker's next cooldown one doubling shorter."""

POISON_WORKERS = 2
"""Workers that an input must break to be refused, and a client to be held to one."""
POISON_S = 600.0
"""How long it is refused, or held, after the last one, in s."""
POISON_INPUTS_MAX = 1024
"""Inputs that are remembered; beyond that the oldest is forgotten."""
STREAK_S = 60.0
"""How far apart breaks may be that nothing succeeded between, to be taken together, in s."""
STREAK_MAX = 64
"""How many of them are looked at."""
SHARED_INPUTS = 3
"""Different inputs that show, where nothing else succeeds, that the cause is none of them."""
CLIENTS_MAX = 1024
"""Clients whose calls are remembered; beyond that the one unheard of for longest is forgotten."""
CLIENT_CALLS = 16
"""Last calls of a client that count."""
CLIENT_HELD_SHARE = 0.5
"""Share of them that must have broken workers for the client to be held."""
CLIENT_RELEASE_SHARE = 0.25
"""Share below which it is released before its time."""
HELD_SHARE_INSIDE = 0.25
"""Share of `max_in_flight` that waiting requests of held clients may take, all together: their one worker must not
become everybody's queue."""
WITNESS_S = 60.0
"""How long a worker may fail on a held client's inputs, and answer nothing well, before it is its own fault, in s."""

BRAKE_WINDOW_S = 5.0
"""Within which workers must go out for the same cause for it to be shared, in s."""
BRAKE_WORKERS_MIN = 3
"""In smaller pools no cause counts as shared."""
BRAKE_SHARE = 0.5
"""More than this share of all workers must go out."""
BRAKE_COOLDOWN_S = 10.0
"""Longest cooldown while a cause is shared, in s."""
BRAKE_TRIAL_S = 2.0
"""From one trial call to the next, in s."""
BRAKE_MAX_S = 300.0
"""How long workers that share a cause are treated so while others serve well, tried or not, in s."""

BUSY_WAIT_S = 0.25
"""How long a worker is left alone that refused as busy without saying how long, in s."""
BUSY_WAIT_MAX_S = 30.0
"""Longest such wait whatever it said, in s; its status ends it earlier."""
BUSY_WAIT_MIN_S = 0.01
"""Shortest such wait whatever it said, in s: no hot loop."""

RETRY_SHARE = 0.2
"""Retries per request that the budget allows."""
RETRY_FLOOR_PER_S = 1.0
"""Retries it allows however few requests there are, per s."""
RETRY_BURST = 10.0
"""Retries it allows at once after a quiet time: a whole group of primaries may die together."""

SLOW_SHARE_INSIDE = 0.5
"""Share of `max_in_flight` that slow calls may take: a fast one is never kept outside by them."""

SERVICE_SAMPLES = 32
"""Good calls whose median service time counts, per class."""
SERVICE_SAMPLES_MIN = 5
"""Fewer say nothing."""
SERVICE_SAMPLE_AGE_S = 60.0
"""Older ones say nothing, in s: a slow spell must not refuse the calls that would show its end."""

RETRY_AFTER_MIN_S = 1.0
"""Shortest `Retry-After` ever told to a client, in s."""
