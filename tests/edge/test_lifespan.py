"""The application's end: every part of it is closed, whatever becomes of the others."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from edge.app import create_app
from edge.certificates import Certificates
from edge.images.local import LocalStore
from edge.local.calls import LocalCalls
from edge.request_log import RequestLog
from edge.settings import Settings, parse
from edge.tracing import Tracing
from hairmesh.metrics import Exposition
from tests.edge.rest import FakeMesh
from tests.fakes.worker import PASSWORD

PARTS = (Exposition, Certificates, FakeMesh, LocalCalls, LocalStore, RequestLog, Tracing)
"""In the order in which they are closed: who may still be asked ends first, who is still told something last."""


def settings(folder: Path, **sections: object) -> Settings:
    content = {
        "listen": "127.0.0.1:1",
        "workers": ["127.0.0.1:1"],
        "shared_password": PASSWORD,
        "static": {"dir": str(folder / "pictures")},
        "request_log": {"path": str(folder / "request_log.jsonl")},
        **sections,
    }
    return parse(json.dumps(content).encode())


def broken_after(part: type[Any], closed: list[type[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every `close` of it do what it does, and fail then."""
    close = part.close

    async def close_and_fail(self: Any) -> None:
        await close(self)
        closed.append(part)
        raise OSError(part.__name__)

    def close_and_fail_at_once(self: Any) -> None:
        close(self)
        closed.append(part)
        raise OSError(part.__name__)

    replaced = close_and_fail if inspect.iscoroutinefunction(close) else close_and_fail_at_once
    monkeypatch.setattr(part, "close", replaced)


async def test_each_part_is_closed_though_every_other_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[type[Any]] = []
    for part in PARTS:
        broken_after(part, closed, monkeypatch)
    app = create_app(settings(tmp_path, tracing={"otlp_endpoint": "http://127.0.0.1:1/v1/traces"}), FakeMesh())
    with pytest.raises(OSError, match="Tracing") as raised:
        async with app.router.lifespan_context(app):
            assert closed == []
    assert closed == list(PARTS)
    told = [raised.value]
    while isinstance(told[-1].__context__, OSError):
        told.append(told[-1].__context__)
    assert {str(error) for error in told} == {part.__name__ for part in PARTS}, "none of them is swallowed"


async def test_what_was_begun_is_closed_when_the_start_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = FakeMesh()
    closed: list[object] = []

    async def refuse() -> None:
        raise OSError("no such network")

    async def close() -> None:
        closed.append(mesh)

    monkeypatch.setattr(mesh, "start", refuse)
    monkeypatch.setattr(mesh, "close", close)
    app = create_app(settings(tmp_path), mesh)
    with pytest.raises(OSError, match="no such network"):
        async with app.router.lifespan_context(app):
            pytest.fail("it has not started")
    assert closed == [mesh]
