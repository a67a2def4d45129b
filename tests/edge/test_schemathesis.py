"""Requests made from the OpenAPI document, good and bad ones: each is answered as the document says."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.edge.documented import ADMIN_TOKEN, talkative_edge
from tests.edge.rest import PASSWORD, Rest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LONG_S = 1800


async def findings(rest: Rest, *options: str) -> str | None:
    """What schemathesis has to say against the edge; None when it has nothing."""
    arguments = [
        *("--config-file", str(HERE / "schemathesis.toml"), "run", f"http://127.0.0.1:{rest.port}/openapi.json"),
        *("--header", f"X-Admin-Token: {ADMIN_TOKEN}", "--header", f"X-Internal-Token: {PASSWORD}"),
        *("--checks", "all", "--generation-database", "none", "--continue-on-failure", "--no-color", *options),
    ]
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("schemathesis")),
        *arguments,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said = (await process.communicate())[0].decode()
    return None if process.returncode == 0 else said


async def test_requests_made_from_the_document_are_answered_by_it(tmp_path: Path) -> None:
    async with talkative_edge(tmp_path) as rest:
        said = await findings(rest, "--seed", "1", "--max-examples", "15")
        calls = (await rest.client.get("/openapi.json")).json()["paths"]
        await rest.stop()
        answered = {(line["route"], line["http_status"]) for line in rest.log_lines()}
    assert said is None, said
    calls_with_photos = [
        path for path, operations in calls.items() if path.startswith("/api/") and "post" in operations
    ]
    assert len(calls_with_photos) == 7
    assert {(path, status) for path in calls_with_photos for status in (200, 400)} <= answered, "good and bad ones"


@pytest.mark.long
@pytest.mark.timeout(LONG_S + 600)
async def test_half_an_hour_of_them_finds_nothing_either(tmp_path: Path) -> None:
    async with talkative_edge(tmp_path) as rest:
        said = await findings(rest, "--max-time", str(LONG_S))
    assert said is None, said
