"""A real browser: Debian's Chromium, started once. Where it is missing, what needs it is skipped."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

CHROMIUM = shutil.which("chromium")
SWITCHES = ("--no-sandbox", "--disable-background-networking", "--disable-component-update", "--no-first-run")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """The browser itself; each test opens a profile of its own in it."""
    if CHROMIUM is None:
        pytest.skip("needs chromium: scripts/setup.sh installs it")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=[*SWITCHES])
        yield browser
        await browser.close()
