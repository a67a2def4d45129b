"""Settings the pool refuses, by name, with what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from edge.pool.config import (
    ConcurrencyError,
    DispatchConfig,
    DuplicateWorkerError,
    HealthCheckConfig,
    NotATargetError,
    OutOfRangeError,
    PoolConfig,
    PoolConfigError,
    Target,
    UnknownPrimaryError,
)


def test_the_defaults_are_those_of_the_design() -> None:
    config = PoolConfig(workers=("10.0.0.11:28187",))
    assert (config.health.interval_seconds, config.health.timeout_seconds) == (8, 3)
    assert (config.health.unhealthy_threshold, config.health.healthy_threshold) == (2, 1)
    assert (config.health.cooldown_seconds, config.health.cooldown_max_seconds) == (60, 300)
    dispatch = config.dispatch
    assert (dispatch.per_worker_concurrency, dispatch.queue_wait_seconds, dispatch.max_in_flight) == (1, 30, 64)
    assert (dispatch.max_queue_wait_seconds, dispatch.max_queued_bytes) == (590, 268_435_456)
    assert (dispatch.request_timeout_seconds, dispatch.growth_timeout_seconds) == (60, 180)
    assert (dispatch.retry_on_failure, dispatch.max_retries) == (True, 1)


def test_without_a_timeout_of_its_own_a_client_gets_both_queues_and_every_attempt() -> None:
    assert DispatchConfig().default_timeout_s(slow=False) == 590 + 30 + 2 * 60
    assert DispatchConfig().default_timeout_s(slow=True) == 590 + 30 + 2 * 180
    assert DispatchConfig(retry_on_failure=False).default_timeout_s(slow=False) == 590 + 30 + 60


@pytest.mark.parametrize(
    "target", ["127.0.0.1:28187", "localhost:1", "[::1]:28187", "worker-1.hair.svc.cluster.local:28187", "w_1:65535"]
)
def test_targets_are_host_and_port(target: str) -> None:
    assert PoolConfig(workers=(target,)).workers == (target,)


@pytest.mark.parametrize(
    "target", ["user:SENTINEL@10.0.0.11:28187", "grpc://user:SENTINEL@a:1", "dns://u:SENTINEL@a:1"]
)
def test_a_password_that_stands_in_a_target_is_not_repeated(target: str) -> None:
    with pytest.raises(NotATargetError, match="without a user") as caught:
        PoolConfig(workers=(target,))
    assert "SENTINEL" not in str(caught.value)


@pytest.mark.parametrize(
    "target", ["", "localhost", "localhost:", "localhost:0", "localhost:65536", ":1", "a b:1", "h:1\n"]
)
def test_anything_else_is_not_a_target(target: str) -> None:
    with pytest.raises(NotATargetError, match="host:port"):
        PoolConfig(workers=(target,))


@pytest.mark.parametrize("prefix", ["http://", "https://", "HTTP://", "grpc://"])
def test_a_url_is_refused_with_what_to_write_instead(prefix: str) -> None:
    with pytest.raises(NotATargetError, match=r"^workers: .*; write 10\.0\.0\.11:28187$"):
        PoolConfig(workers=(f"{prefix}10.0.0.11:28187/",))


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"workers": ()}, PoolConfigError, "workers: at least one"),
        ({"workers": ("a:1", "b:1", "a:1")}, DuplicateWorkerError, "workers: a:1 stands there 2 times"),
        ({"workers": ("a:1",), "primary_workers": ("a:1", "a:1")}, DuplicateWorkerError, "primary_workers: a:1"),
        (
            {"workers": ("a:1",), "primary_workers": ("b:1",)},
            UnknownPrimaryError,
            "primary_workers: b:1 is not in workers",
        ),
        ({"workers": ("a:1",), "primary_workers": ("http://a:1",)}, NotATargetError, "primary_workers: http://a:1"),
    ],
)
def test_lists_that_contradict_themselves_are_refused(
    settings: dict[str, Any], error: type[PoolConfigError], says: str
) -> None:
    with pytest.raises(error, match=says):
        PoolConfig(**settings)


@pytest.mark.parametrize("value", [0, 2, 4])
def test_a_worker_computes_one_call_at_a_time(value: int) -> None:
    with pytest.raises(ConcurrencyError, match=r"per_worker_concurrency.*start more workers"):
        DispatchConfig(per_worker_concurrency=value)


@pytest.mark.parametrize(
    ("section", "settings", "names"),
    [
        (HealthCheckConfig, {"interval_seconds": 0}, "health_check.interval_seconds"),
        (HealthCheckConfig, {"timeout_seconds": -1}, "health_check.timeout_seconds"),
        (HealthCheckConfig, {"unhealthy_threshold": 0}, "health_check.unhealthy_threshold"),
        (HealthCheckConfig, {"healthy_threshold": 0}, "health_check.healthy_threshold"),
        (HealthCheckConfig, {"cooldown_seconds": -1}, "health_check.cooldown_seconds"),
        (HealthCheckConfig, {"cooldown_seconds": 400}, "health_check.cooldown_max_seconds"),
        (HealthCheckConfig, {"interval_seconds": float("nan")}, "health_check.interval_seconds"),
        (HealthCheckConfig, {"interval_seconds": 8000}, "health_check.interval_seconds: 8000 must be at most 3600"),
        (HealthCheckConfig, {"timeout_seconds": 3000}, "health_check.timeout_seconds: 3000 must be at most 60"),
        (DispatchConfig, {"queue_wait_seconds": 30_000}, "dispatch.queue_wait_seconds: 30000 must be at most 3600"),
        (DispatchConfig, {"max_in_flight": 0}, "dispatch.max_in_flight"),
        (DispatchConfig, {"request_timeout_seconds": 0}, "dispatch.request_timeout_seconds"),
        (DispatchConfig, {"growth_timeout_seconds": 0}, "dispatch.growth_timeout_seconds"),
        (DispatchConfig, {"queue_wait_seconds": -1}, "dispatch.queue_wait_seconds"),
        (DispatchConfig, {"max_queue_wait_seconds": -1}, "dispatch.max_queue_wait_seconds"),
        (DispatchConfig, {"max_queued_bytes": -1}, "dispatch.max_queued_bytes"),
        (DispatchConfig, {"max_retries": -1}, "dispatch.max_retries"),
    ],
)
def test_numbers_that_cannot_be_meant_are_refused_by_name(section: Any, settings: dict[str, float], names: str) -> None:
    with pytest.raises(OutOfRangeError, match=names):
        section(**settings)


def test_a_cooldown_of_zero_is_the_emergency_switch_not_an_error() -> None:
    assert HealthCheckConfig(cooldown_seconds=0).cooldown_seconds == 0


def test_without_primaries_every_worker_is_one() -> None:
    assert PoolConfig(workers=("a:1", "b:1")).is_primary("b:1")
    named = PoolConfig(workers=("a:1", "b:1"), primary_workers=("a:1",))
    assert named.is_primary("a:1")
    assert not named.is_primary("b:1")


@pytest.mark.parametrize("name", ["dns:///workers.example:28187", "dns:///worker-headless:1"])
def test_a_worker_may_be_a_name_with_any_number_of_addresses(name: str) -> None:
    config = PoolConfig(workers=("a:1", name, "b:1"), primary_workers=(name, "b:1"))
    assert config.is_primary(name)
    assert config.targets() == (Target("a:1", primary=False), Target("b:1", primary=True))


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("dns:workers:1", "write dns:///workers:1"),
        ("dns://workers:1", "write dns:///name:port"),
        ("dns://8.8.8.8/workers:1", "write dns:///workers:1"),
        ("DNS:///workers:1", "write dns:///workers:1"),
        ("dns:///workers", "host:port"),
        ("dns:///dns:///workers:1", "host:port"),
    ],
)
def test_a_name_written_otherwise_is_refused_with_what_to_write(written: str, hint: str) -> None:
    with pytest.raises(NotATargetError, match=hint):
        PoolConfig(workers=(written,))


def test_a_name_belongs_to_one_priority_and_stands_there_once() -> None:
    with pytest.raises(DuplicateWorkerError, match="dns:///w:1 stands there 2 times"):
        PoolConfig(workers=("dns:///w:1", "dns:///W:1"))
    with pytest.raises(UnknownPrimaryError):
        PoolConfig(workers=("w:1",), primary_workers=("dns:///w:1",))


@pytest.mark.parametrize("after_s", [-1.0, float("nan")])
def test_spilling_after_no_time_that_can_be_meant_is_refused(after_s: float) -> None:
    with pytest.raises(OutOfRangeError, match=r"dispatch\.spill_after_seconds"):
        DispatchConfig(spill_after_seconds=after_s)


def test_spilling_is_off_unless_set() -> None:
    assert DispatchConfig().spill_after_seconds is None
    assert DispatchConfig(spill_after_seconds=0).spill_after_seconds == 0
