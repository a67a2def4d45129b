"""Somebody before the console, who notices whatever a browser complains of."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from tests.edge.rest import Rest, eventually

TOKEN = "an-admin-token-of-the-test"
PATIENCE_MS = 20_000
"""For anything that is awaited: a busy machine is no reason to fail."""
OWN = {"blob", "data"}
"""Schemes that ask nobody."""

expect.set_options(timeout=PATIENCE_MS)


@dataclass
class Visitor:
    """One browser profile with one page."""

    page: Page
    context: BrowserContext
    origin: str
    asked: list[str] = field(default_factory=list)
    """Every address that the page asked for."""
    complaints: list[str] = field(default_factory=list)
    """Warnings, errors and exceptions: violations of the policy are among them."""
    provoked: list[str] = field(default_factory=list)
    """What the test made the browser complain of: each of these texts is in a complaint, sooner or later."""

    async def enter(self, token: str = TOKEN) -> None:
        """Show a token."""
        await self.page.get_by_role("textbox").fill(token)
        await self.page.keyboard.press("Enter")

    async def sees(self, text: str) -> None:
        """Wait until this can be read somewhere."""
        await expect(self.page.get_by_text(text).first).to_be_visible()

    def strangers(self) -> set[str]:
        """Addresses beyond the edge."""
        return {url for url in self.asked if urlsplit(url).scheme not in OWN and not url.startswith(self.origin)}


@asynccontextmanager
async def visiting(browser: Browser, rest: Rest, page: str = "", **options: Any) -> AsyncIterator[Visitor]:
    """Open the console; leaving finds fault with every complaint and with every request that left the edge."""
    wanted = {"locale": "en-US", "color_scheme": "light", "viewport": {"width": 1280, "height": 900}} | options
    context = await browser.new_context(**wanted)
    context.set_default_timeout(PATIENCE_MS)
    tab = await context.new_page()
    visitor = Visitor(tab, context, f"http://127.0.0.1:{rest.port}/")

    def heard(message: ConsoleMessage) -> None:
        if message.type in {"warning", "error"}:
            visitor.complaints.append(message.text)

    context.on("request", lambda request: visitor.asked.append(request.url))
    tab.on("console", heard)
    tab.on("pageerror", lambda error: visitor.complaints.append(str(error)))
    try:
        await tab.goto(f"{visitor.origin}console{page}")
        yield visitor
        await eventually(lambda: all(any(text in told for told in visitor.complaints) for text in visitor.provoked))
        assert [told for told in visitor.complaints if not any(text in told for text in visitor.provoked)] == []
        assert visitor.strangers() == set()
    finally:
        await context.close()


async def corners_of(page: Page) -> list[list[float]]:
    """What stands in the region's field."""
    found: list[list[float]] = json.loads(await page.locator("#param-region").input_value())
    return found
