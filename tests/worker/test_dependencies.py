"""A worker that relies on other servers: what their going and coming does to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest
from hair.worker.v1 import worker_service_pb2 as pb

from hairmesh.wire import ANALYZE_SERVICE
from tests.worker.fakes import OK, FakePipeline
from tests.worker.harness import NOT_SERVING, SERVING, refused, running
from tests.worker.web import Web, listening


class Dependency(Web):
    """A diffusion server that a worker relies on."""

    def __init__(self, name: str, *, required: bool, wait_s: float = 0.0) -> None:
        super().__init__(wait_s=wait_s)
        self.name = name
        self.required = required

    def config(self) -> dict[str, object]:
        return {"name": self.name, "kind": "comfyui", "target": self.target, "required": self.required}


@asynccontextmanager
async def up(*dependencies: Dependency) -> AsyncIterator[dict[str, object]]:
    """The `health` section of a worker that relies on them; all of them answer."""
    with listening(*dependencies):
        deps = [dependency.config() for dependency in dependencies]
        yield {"min_free_gb": 0, "deps_cache_seconds": 0.05, "deps": deps}


def check(status: pb.WorkerStatus, name: str) -> pb.Check:
    return next(check for check in status.checks if check.name == name)


async def test_required_ones_take_the_worker_out_with_one_reason_and_bring_it_back(pipeline: FakePipeline) -> None:
    comfyui, change_hair = Dependency("comfyui", required=True), Dependency("change_hair", required=True)
    async with up(comfyui, change_hair) as health, running(pipeline.load, health=health) as (_worker, client):
        assert check(await client.status(), "dep/comfyui").required
        comfyui.go()
        change_hair.go()
        both = ["dep_down:comfyui,change_hair"]
        status = await client.until(lambda status: list(status.reasons) == both)
        assert (status.state, status.cause, status.live) == (pb.SERVING_STATE_NOT_SERVING, "dependency", True)
        assert list(status.capabilities) == []
        assert check(status, "dep/comfyui").reason == "ECONNREFUSED"
        assert check(status, "dep/comfyui").evidence["bad_in_a_row"] >= 2
        assert await client.reason() == both[0]
        for name in ("", ANALYZE_SERVICE, "dep/comfyui", "dep/change_hair"):
            assert await client.check(name) == NOT_SERVING
        for name in ("liveness", "models", "progress"):  # B71: a restart would not help
            assert await client.check(name) == SERVING
        code, info, _details = await refused(client.measure(OK))
        assert (code, info.reason) == (grpc.StatusCode.UNAVAILABLE, "DEPENDENCY")
        comfyui.come()
        await client.until(lambda status: list(status.reasons) == ["dep_down:change_hair"])
        change_hair.come()
        await client.until_serving()
        await client.measure(OK)


@pytest.mark.parametrize("backend", ["local", "none"])
async def test_an_optional_one_costs_growth_alone(pipeline: FakePipeline, backend: str) -> None:
    """Scenario 25: shared by all workers, its end is no outage."""
    comfyui = Dependency("comfyui", required=False)
    grows = backend != "none"
    async with (
        up(comfyui) as health,
        running(pipeline.load, health=health, growth={"backend": backend}) as (_w, client),
    ):
        whole = ["measure", "growth"] if grows else ["measure"]
        await client.until(lambda status: list(status.capabilities) == whole)
        assert await client.check("capability/growth") == (SERVING if grows else NOT_SERVING)
        comfyui.go()
        status = await client.until(lambda status: check(status, "dep/comfyui").reason != "")
        assert (status.state, list(status.reasons)) == (pb.SERVING_STATE_SERVING, [])
        assert not check(status, "dep/comfyui").required
        assert list(status.capabilities) == ["measure"]
        assert await client.reason("capability/growth") == ("dep_down:comfyui" if grows else "backend_none")
        assert await client.check("dep/comfyui") == NOT_SERVING
        assert await client.check() == SERVING
        await client.measure(OK)
        comfyui.come()
        await client.until(lambda status: list(status.capabilities) == whole)


async def test_slow_is_not_down(pipeline: FakePipeline) -> None:
    """B71: two seconds late on every answer for a while, and nobody is restarted or taken out."""
    slow = Dependency("comfyui", required=True, wait_s=0.3)
    async with up(slow) as health, running(pipeline.load, health=health) as (_worker, client):
        status = await client.until(lambda status: check(status, "dep/comfyui").evidence.get("answer_ms", 0) >= 300)
        assert status.state == pb.SERVING_STATE_SERVING
        assert check(status, "dep/comfyui").state == pb.CHECK_STATE_PASSING


async def test_dependencies_speak_before_the_models_are_loaded(pipeline: FakePipeline) -> None:
    up_one, down_one = Dependency("up", required=True), Dependency("down", required=True)
    async with up(up_one, down_one) as health:
        down_one.go()

        def load(_progress: object) -> FakePipeline:
            pipeline.release.wait()
            return pipeline

        async with running(load, warm=False, health=health) as (_worker, client):
            status = await client.until(lambda status: status.cause == "dependency")
            assert list(status.reasons) == ["dep_down:down", "starting"]
            await client.until(lambda status: check(status, "dep/up").state == pb.CHECK_STATE_PASSING)
            assert [await client.check(name) for name in ("dep/up", "dep/down")] == [SERVING, NOT_SERVING]
            pipeline.release.set()
            await client.until(lambda status: list(status.reasons) == ["dep_down:down"])


async def test_a_required_one_that_never_answered_keeps_the_worker_starting(pipeline: FakePipeline) -> None:
    """Nothing is claimed before the first answer."""
    silent = Dependency("silent", required=True, wait_s=3600)
    async with up(silent) as health, running(pipeline.load, warm=False, health=health) as (_worker, client):
        status = await client.until(lambda status: check(status, "models").state == pb.CHECK_STATE_PASSING)
        assert (status.state, list(status.reasons)) == (pb.SERVING_STATE_STARTING, ["starting"])
        assert await client.reason("dep/silent") == "starting"


async def test_switched_off_none_is_asked_and_all_count_as_good(pipeline: FakePipeline) -> None:
    gone = Dependency("comfyui", required=True)
    async with up(gone) as health:
        gone.go()
        health["check_deps"] = False
        async with running(pipeline.load, health=health) as (_worker, client):
            assert check(await client.status(), "dep/comfyui").state == pb.CHECK_STATE_OFF
            assert await client.check("dep/comfyui") == SERVING
            await client.measure(OK)
