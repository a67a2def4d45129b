"""The console in a real browser: what people see and do, without one complaint of the browser's."""

from __future__ import annotations

import asyncio
import hashlib
import shlex
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from hair.analysis.v1 import growth_pb2
from playwright.async_api import Browser, FilePayload, expect

from edge.calls import OnlineCounts
from tests.edge.console.visitor import TOKEN, corners_of, visiting
from tests.edge.rest import ANNOTATED, EJECTED, FakeMesh, Rest, endpoint, failed, grown_region, picture, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")

NEARBY = endpoint(target="10.0.0.12:28187", primary=False)
ALL = OnlineCounts(total=2, healthy=2, primary_total=1, primary_healthy=1)
PHOTO: FilePayload = {"name": "my photo; of 'me'.jpg", "mimeType": "image/jpeg", "buffer": picture(size=(600, 800))}


@pytest_asyncio.fixture(loop_scope="session")
async def mesh() -> FakeMesh:
    return FakeMesh(counts=ALL, endpoints=(endpoint(), NEARBY))


@pytest_asyncio.fixture(loop_scope="session")
async def rest(tmp_path: Path, mesh: FakeMesh) -> AsyncIterator[Rest]:
    async with serving(tmp_path, mesh, admin_tokens=[TOKEN]) as running:
        yield running


async def test_a_token_opens_the_console_and_leaving_shuts_it(browser: Browser, rest: Rest) -> None:
    async with visiting(browser, rest) as visitor:
        page = visitor.page
        await visitor.enter("a-token-that-nobody-knows")
        await expect(page.get_by_role("alert")).to_contain_text("not accepted")
        visitor.provoked.append("401")
        await visitor.enter()
        await expect(page.locator("h1")).to_have_text("All online")
        assert await page.evaluate("document.cookie") == ""
        (cookie,) = await visitor.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/console")
        await page.reload()
        await expect(page.locator("h1")).to_have_text("All online")
        await page.get_by_role("button", name="Leave").click()
        await expect(page.get_by_label("Admin token")).to_be_visible()
        await page.reload()
        await expect(page.get_by_label("Admin token")).to_be_visible()
        assert TOKEN not in await page.content()
        assert not any(TOKEN in url for url in visitor.asked)


async def test_a_worker_that_dies_is_seen_without_touching_anything(
    browser: Browser, rest: Rest, mesh: FakeMesh
) -> None:
    hostile = "call: <img src=x onerror=alert(1)>"
    async with visiting(browser, rest) as visitor:
        page = visitor.page
        await visitor.enter()
        worker = page.locator(f'[data-key="{NEARBY.target}"]')
        await expect(worker).to_have_attribute("data-state", "SERVING")
        await worker.get_by_text("Details and history").click()
        mesh.endpoints = (endpoint(), replace(EJECTED, target=NEARBY.target, evidence=hostile))
        mesh.counts = OnlineCounts(total=2, healthy=1, primary_total=1, primary_healthy=1)
        await expect(worker).to_have_attribute("data-state", "EJECTED")
        await expect(worker).to_contain_text("ejected")
        await expect(worker).to_contain_text("a call failed on it")
        await expect(worker).to_contain_text("47 s left")
        await expect(worker).to_contain_text(hostile)  # as it is written, never as markup
        await expect(worker).to_contain_text("parsing · call for 93 s")
        await expect(worker.get_by_text("History, newest first")).to_be_visible()  # what was opened stays open
        await expect(page.locator("h1")).to_have_text("Some are out")
        await expect(page.locator("#verdict")).to_contain_text(f"Out: {NEARBY.target} (a call failed on it)")
        await expect(page.locator("#announcer")).to_have_text(f"{NEARBY.target}: ejected")
        await expect(worker).to_contain_text("46 s left")  # it ticks between two answers
        mesh.counts = replace(mesh.counts, healthy=0, primary_healthy=0)
        await expect(page.locator("h1")).to_have_text("None online")
        await expect(page.locator("#verdict")).to_contain_text("/monitor answers 503")


async def test_a_figure_without_data_is_a_dash_and_a_unit_is_said_once(browser: Browser, rest: Rest) -> None:
    async with visiting(browser, rest) as visitor:
        page = visitor.page
        await visitor.enter()
        latency = page.locator(".chart", has_text="Latency p50 / p95").locator("strong")
        await expect(latency).to_have_text("— / —")
        told = await page.evaluate(
            """async () => {
              const { chart } = await import("/console/chart.js");
              const line = (value) => ({ tone: "plain", points: [{ age_s: 0, value }] });
              const inWords = { span_s: 1, span: "", text: (ms) => `${ms} ms` };
              const now = (pair) => chart("", pair.map(line), inWords).querySelector("strong").textContent;
              return [[150, 480], [null, 480], [150, null]].map(now);
            }"""
        )
        assert told == ["150 / 480 ms", "— / 480 ms", "150 ms / —"]


async def test_a_drill_takes_a_second_word_and_ends_with_one(browser: Browser, rest: Rest) -> None:
    async with visiting(browser, rest) as visitor:
        page = visitor.page
        await visitor.enter()
        await page.get_by_role("button", name="Start the drill …").click()
        await page.get_by_role("button", name="Cancel").click()
        await expect(page.get_by_role("dialog")).to_be_hidden()
        assert (await rest.client.get("/monitor")).status_code == 200
        await page.get_by_role("button", name="Start the drill …").click()
        await page.get_by_role("dialog").get_by_role("button", name="Start the drill").click()
        await expect(page.locator("#drill-state")).to_have_text("The drill is on")
        await visitor.sees("Alert drill on")
        assert (await rest.client.get("/monitor")).json()["simulated"] is True
        await page.get_by_role("button", name="End the drill").click()
        await expect(page.locator("#drill-state")).to_have_text("No drill")
        assert (await rest.client.get("/monitor")).status_code == 200


async def test_a_photo_is_measured_and_the_curl_beside_it_does_the_same(
    browser: Browser, rest: Rest, mesh: FakeMesh, tmp_path: Path
) -> None:
    async with visiting(browser, rest, "#try") as visitor:
        page = visitor.page
        await visitor.enter()
        await page.set_input_files("#photo-file", PHOTO)
        await visitor.sees("600 × 800 px")
        await page.get_by_label("Pupillary distance").fill("63.5")
        await page.get_by_role("button", name="Send").click()
        answer = page.locator("#answer")
        await expect(answer.get_by_text("Good")).to_be_visible()
        drawn = answer.get_by_role("img", name="annotated")
        await expect(drawn).to_be_visible()
        assert await drawn.evaluate("picture => picture.decode().then(() => picture.naturalWidth)") == 64
        await expect(answer.get_by_role("row", name="face height")).to_contain_text("925")
        assert mesh.request.pupillary_distance_mm == 63.5
        assert mesh.request.photo.data == PHOTO["buffer"]
        line = await page.locator("#curl").inner_text()
        assert TOKEN not in line
        (tmp_path / PHOTO["name"]).write_bytes(PHOTO["buffer"])
        curl = await asyncio.create_subprocess_exec(
            *shlex.split(line), "--noproxy", "*", cwd=tmp_path, stdout=asyncio.subprocess.PIPE
        )
        told, _ = await curl.communicate()
        assert b'"code":0' in told
        assert mesh.calls[0].message == mesh.calls[1].message


RECORD = """() => {
  window.sent = [];
  window.fetch = async (_, { body }) => {
    window.sent.push([...body].map(([name, value]) => [name, value instanceof File ? "a file" : value]));
    return new Response(JSON.stringify({ code: 0, message: "ok", request_id: `call ${window.sent.length}`, data: {} }));
  };
}"""
"""Answers every call by itself and keeps what it was to send."""
FILL_IN = """() => {
  for (const field of document.querySelectorAll("#try fieldset :is(input, select, textarea)")) {
    if (field.type === "file") continue;
    if (field.type === "checkbox") { field.click(); continue; }
    const values = { select: field.options?.[1].value, textarea: "[[1,2],[3,4],[5,6]]", input: field.min || "7" };
    field.value = values[field.localName];
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}"""
"""Gives every parameter of the call that is shown another value than it has by itself."""


async def test_the_curl_is_what_the_form_sends_whichever_call_was_shown_before(browser: Browser, rest: Rest) -> None:
    async with visiting(browser, rest, "#try") as visitor:
        page = visitor.page
        await visitor.enter()
        await page.set_input_files("#photo-file", PHOTO)
        await page.evaluate(RECORD)
        sent: list[list[list[str]]] = []

        async def agrees(where: str) -> None:
            words = shlex.split(await page.locator("#curl").inner_text())
            printed = [
                [word.partition("=")[0], "a file" if flag == "-F" else word.partition("=")[2]]
                for flag, word in pairwise(words)
                if flag in {"-F", "--form-string"}
            ]
            await page.locator("#send").click()
            await page.wait_for_function("seen => window.sent.length > seen", arg=len(sent))
            sent.append(await page.evaluate("window.sent.at(-1)"))
            assert printed == sent[-1], where

        routes = await page.locator("#call option").evaluate_all("options => options.map(({ value }) => value)")
        assert len(routes) == 7
        filled_in = set()
        for before, after in permutations(routes, 2):
            await page.select_option("#call", before)
            await page.evaluate(FILL_IN)
            for file in await page.locator("#try fieldset input[type=file]").all():
                await file.set_input_files(PHOTO)
            if before not in filled_in:
                await agrees(f"{before}, filled in")
                assert len(sent[-1]) > 1
                filled_in.add(before)
            await page.select_option("#call", after)
            await agrees(f"{after} after {before}")


async def test_a_region_stays_with_its_photo_while_other_calls_are_tried(browser: Browser, rest: Rest) -> None:
    async with visiting(browser, rest, "#try") as visitor:
        page = visitor.page
        await visitor.enter()
        await page.set_input_files("#photo-file", PHOTO)
        call = page.get_by_label("Call", exact=True)
        await call.select_option(label="Grow hair in a region")
        for _ in range(3):
            await page.locator("#region").press("Enter")
        corners = await corners_of(page)
        await call.select_option(label="Masks of parts")
        await expect(page.locator("#curl")).not_to_contain_text("region=")
        await call.select_option(label="Grow hair in a region")
        await expect(page.locator("#corners")).to_have_text("3 corners")
        assert await corners_of(page) == corners
        await expect(page.locator("#curl")).to_contain_text("region=")


async def test_where_keys_are_asked_for_the_page_asks_too_and_keeps_none(browser: Browser, rest: Rest) -> None:
    key = "an-api-key-of-the-test"
    await rest.configure(api_keys=[{"name": "somebody", "sha256": hashlib.sha256(key.encode()).hexdigest()}])
    async with visiting(browser, rest, "#try") as visitor:
        page = visitor.page
        await visitor.enter()
        await page.set_input_files("#photo-file", PHOTO)
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator("#answer")).to_contain_text("1008 UNAUTHORIZED")
        visitor.provoked.append("401")
        await page.get_by_label("API key").fill(key)
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator("#answer").get_by_text("Good")).to_be_visible()
        assert key not in await page.locator("#curl").inner_text()
        assert key not in str(await page.evaluate("[{...localStorage}, {...sessionStorage}, location.href]"))


async def test_a_refusal_says_what_to_do(browser: Browser, rest: Rest, mesh: FakeMesh) -> None:
    mesh.failure = failed("YAW", details={"yaw_deg": 31.5, "max": 20.0})
    async with visiting(browser, rest, "#try") as visitor:
        await visitor.enter()
        await visitor.page.set_input_files("#photo-file", PHOTO)
        await visitor.page.get_by_role("button", name="Send").click()
        answer = visitor.page.locator("#answer")
        for text in ("too far to the side", "1003 YAW", "31.5", "to your right"):
            await expect(answer).to_contain_text(text)
        visitor.provoked.append("400")
        await visitor.page.get_by_role("link", name="Workers").click()
        await visitor.sees("None since the edge started.")  # a photo's fault is no error of the system


async def test_a_region_is_drawn_by_mouse_and_keyboard_and_its_progress_told(
    browser: Browser, rest: Rest, mesh: FakeMesh
) -> None:
    result = growth_pb2.RegionResult(grown_reason="NOT_CONVINCING")
    result.marked_image.data = ANNOTATED
    mesh.results, mesh.gate = grown_region(result), asyncio.Event()
    async with visiting(browser, rest, "#try") as visitor:
        page = visitor.page
        await visitor.enter()
        await page.set_input_files("#photo-file", PHOTO)
        await page.get_by_label("Call").select_option(label="Grow hair in a region")
        region = page.locator("#region")
        box = await region.bounding_box()
        assert box is not None
        for across, down in ((0.25, 0.1), (0.75, 0.1)):
            await region.click(position={"x": box["width"] * across, "y": box["height"] * down})
        for key in ("ArrowDown", "Enter", "Enter", "Backspace"):
            await region.press(key)
        await expect(page.locator("#corners")).to_have_text("3 corners")
        corners = await corners_of(page)
        for corner, wanted in zip(corners, ([150, 80], [450, 80], [300, 275]), strict=True):
            assert corner == pytest.approx(wanted, abs=3)
        await page.get_by_role("button", name="Send").click()
        await visitor.sees("In the queue, 0 before it")
        mesh.gate.set()
        await expect(page.locator("#answer")).to_contain_text("does not look real enough")
        asked = mesh.asked(growth_pb2.GrowRegionRequest)
        assert [[point.x_px, point.y_px] for point in asked.region.points] == corners


@pytest.mark.parametrize("before", [True, False], ids=["set before", "set while the page is open"])
async def test_a_photo_beyond_the_limit_can_be_made_smaller_here(
    browser: Browser, rest: Rest, mesh: FakeMesh, before: bool
) -> None:
    limits = {"max_body_bytes": 70_000}
    if before:
        await rest.configure(limits=limits)
    large: FilePayload = {
        "name": "large.png",
        "mimeType": "image/png",
        "buffer": picture("PNG", (2400, 1200)) + bytes(70_000),
    }
    async with visiting(browser, rest, "#try") as visitor:
        page = visitor.page
        await visitor.enter()
        await page.set_input_files("#photo-file", large)
        if not before:
            await visitor.sees("2,400 × 1,200 px")
            await rest.configure(limits=limits)
            await page.get_by_role("button", name="Send").click()
            await expect(page.locator("#answer")).to_contain_text("BODY_TOO_LARGE")
            visitor.provoked.append("413")
        await expect(page.get_by_role("alert").filter(has_text="the limit is 70 kB")).to_be_visible()
        await page.get_by_role("button", name="Reduce it").click()
        await visitor.sees("2,048 × 1,024 px")
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator("#answer").get_by_text("Good")).to_be_visible()
        assert len(mesh.request.photo.data) < 60_000


async def test_both_languages_and_both_lights(browser: Browser, rest: Rest) -> None:
    async def ground() -> str:
        found: str = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        return found

    async with visiting(browser, rest, locale="zh-CN", color_scheme="dark") as visitor:
        page = visitor.page
        await visitor.enter()
        await expect(page.locator("h1")).to_have_text("全部在线")
        assert await page.get_attribute("html", "lang") == "zh"
        dark = await ground()
        await page.emulate_media(color_scheme="light")
        light = await ground()
        assert light != dark
        for said, wanted in (("浅色", light), ("深色", dark)):
            await page.locator("#theme").click()
            await expect(page.locator("#theme")).to_have_text(said)
            assert await ground() == wanted
        await page.get_by_role("button", name="切换为英文").click()
        await expect(page.locator("h1")).to_have_text("All online")
        await page.reload()
        await expect(page.locator("h1")).to_have_text("All online")  # both are remembered
        assert await ground() == dark


async def test_an_edge_that_falls_silent_and_a_token_that_is_taken_away(browser: Browser, rest: Rest) -> None:
    async with visiting(browser, rest) as visitor:
        await visitor.enter()
        await expect(visitor.page.locator("h1")).to_have_text("All online")
        await visitor.context.set_offline(True)
        await visitor.sees("The edge has not answered for")
        await visitor.context.set_offline(False)
        await expect(visitor.page.get_by_text("The edge has not answered for")).to_be_hidden()
        visitor.provoked.append("ERR_INTERNET_DISCONNECTED")
        await rest.configure(admin_tokens=["another-admin-token-of-the-test"])
        await visitor.sees("The session is over. Enter again.")
        visitor.provoked.append("401")


@pytest.mark.parametrize("light", ["light", "dark"])
async def test_everybody_can_use_it_on_every_screen(browser: Browser, rest: Rest, mesh: FakeMesh, light: Any) -> None:
    mesh.endpoints = (endpoint(stage="growing", in_flight_s=3.0, lacks={"growth": "dep_down:comfyui"}), EJECTED)
    mesh.failure, mesh.braked = failed("BUSY"), True
    await rest.measure()
    async with visiting(browser, rest, color_scheme=light, viewport={"width": 390, "height": 844}) as visitor:
        page = visitor.page

        async def is_usable(where: str) -> None:
            told = (await Axe().run(page)).response["violations"]
            assert [(each["id"], [node["target"] for node in each["nodes"]]) for each in told] == [], where
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), where

        await expect(page.get_by_role("textbox")).to_be_visible()
        await is_usable("entrance")
        await visitor.enter()
        await expect(page.locator("code", has_text="BUSY")).to_be_visible()
        await is_usable("pool")
        await page.get_by_role("link", name="Try a call").click()
        await page.set_input_files("#photo-file", PHOTO)
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator("#answer")).to_contain_text("1007 BUSY")
        visitor.provoked.append("503")
        await page.get_by_label("Call", exact=True).select_option(label="Grow hair in a region")
        await expect(page.locator("#region")).to_be_visible()
        await is_usable("try")


STICK_OUT = """() => {
  const told = [];
  if (document.documentElement.scrollWidth > innerWidth) told.push("the page scrolls sideways");
  for (const part of document.querySelectorAll(".card :is(input, select, textarea, button, .button, p, img, svg)")) {
    if (part.closest(".scroll, .unseen, table") || part.matches(".unseen")) continue;
    const card = part.closest(".card").getBoundingClientRect();
    const { left, right, width } = part.getBoundingClientRect();
    if (width && (left < card.left || right > card.right)) told.push(part.id || part.className || part.localName);
  }
  return told;
}"""
"""What is wider than its place; tables and lines to copy scroll inside themselves."""


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
async def test_nothing_sticks_out_on_the_smallest_screen(
    browser: Browser, rest: Rest, mesh: FakeMesh, locale: str
) -> None:
    mesh.endpoints = (endpoint(stage="growing", in_flight_s=3.0, lacks={"growth": "dep_down:comfyui"}), EJECTED)
    async with visiting(browser, rest, locale=locale, viewport={"width": 360, "height": 740}) as visitor:
        page = visitor.page

        async def fits(where: str) -> None:
            for light in ("light", "dark"):
                await page.emulate_media(color_scheme=light)
                assert await page.evaluate(STICK_OUT) == [], (where, light)

        await expect(page.get_by_role("textbox")).to_be_visible()
        await fits("entrance")
        await visitor.enter()
        await expect(page.locator(f'[data-key="{EJECTED.target}"]')).to_be_visible()
        await page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        await fits("pool")
        await page.locator("#drill-start").click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        await fits("drill")
        await page.goto(f"{visitor.origin}console#try")
        await page.set_input_files("#photo-file", PHOTO)
        await page.locator("#send").click()
        await expect(page.locator("#answer").get_by_role("img")).to_be_visible()
        for route in await page.locator("#call option").evaluate_all("options => options.map(({ value }) => value)"):
            await page.select_option("#call", route)
            await expect(page.locator("#curl")).to_contain_text(route)
            await fits(route)
