"""The browser of the tests: what a page does is seen, and what it must not do fails the test."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from PIL import Image
from playwright.async_api import Browser, Error, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from .browser import Theme, findings, opened, shot, tab_to
from .sites import site

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'"
PAGE = """<!doctype html><html lang="en"><head><title>Switch</title><link rel="stylesheet" href="/style.css">
<script src="/script.js" defer></script></head><body><main><h1>Switch</h1><a href="#live">Live</a>
<button role="switch" aria-checked="false">mail</button> <p id="live"></p></main></body></html>"""
SCRIPT = """
const button = document.querySelector("button");
button.addEventListener("click", () => button.setAttribute("aria-checked", String(button.ariaChecked !== "true")));
const live = document.querySelector("#live");
new EventSource("/events").onmessage = (event) => { live.textContent += event.data; };
"""
STYLE = """
body { color: #111; background: #eee; font: 16px system-ui; }
a { color: inherit; }
@media (prefers-color-scheme: dark) { body { color: #eee; background: #111; } }
"""
BAD = """<!doctype html><html><head><title>Bad</title></head><body><main><h1>Bad</h1>
<input><script>document.title = "ran"</script></main></body></html>"""


def sent(text: str, media_type: str = "text/html") -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        return Response(text, media_type=media_type, headers={"content-security-policy": POLICY})

    return answer


async def events(request: Request) -> Response:
    async def numbers() -> AsyncIterator[str]:
        for number in range(3):
            yield f"data: {number}\n\n"
        await asyncio.Event().wait()

    return StreamingResponse(numbers(), media_type="text/event-stream")


APP = Starlette(
    routes=[
        Route("/", sent(PAGE)),
        Route("/bad", sent(BAD)),
        Route("/script.js", sent(SCRIPT, "text/javascript")),
        Route("/style.css", sent(STYLE, "text/css")),
        Route("/events", events),
    ]
)


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_a_switch_and_an_event_stream_work_by_keyboard(browser: Browser, axe_core: str, theme: Theme) -> None:
    async with site(APP) as origin, opened(browser, origin, theme=theme, width=400) as page:
        await page.goto("/")
        switch = page.get_by_role("switch", name="mail")
        await tab_to(page, switch)
        await page.keyboard.press("Space")
        await expect(switch).to_be_checked()
        await expect(page.locator("#live")).to_have_text("012")
        assert await page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") == (theme == "dark")
        assert await findings(page, axe_core) == []


async def test_what_axe_core_finds_under_a_strict_policy_is_readable(browser: Browser, axe_core: str) -> None:
    async with site(APP) as origin, opened(browser, origin, expected="Content Security Policy") as page:
        await page.goto("/bad")
        assert await page.title() == "Bad"
        found = await findings(page, axe_core)
        assert "label (critical): Form elements must have labels: <input>" in found
        assert any(line.startswith("html-has-lang (serious)") for line in found)


async def visit(browser: Browser, origin: str, does: str, event: str = "console") -> None:
    async with opened(browser, origin) as page:
        await page.goto("/")
        async with page.expect_event(event):  # type: ignore[call-overload]
            await page.evaluate(f"() => {{ {does} }}")


@pytest.mark.parametrize(
    ("does", "problem"),
    [
        ("console.log('loud')", "console: log: loud"),
        ("setTimeout('broken')", "console: error: .*Content Security Policy"),
        ("document.body.append(Object.assign(document.createElement('style'), {textContent: 'a{}'}))", "Policy"),
        ("fetch('/nowhere')", "console: error: .*404"),
        ("fetch('http://127.0.0.1:9/')", "Policy"),
    ],
)
async def test_what_a_page_writes_to_the_console_fails_the_test(browser: Browser, does: str, problem: str) -> None:
    async with site(APP) as origin:
        with pytest.raises(AssertionError, match=problem):
            await visit(browser, origin, does)


async def test_what_a_script_raises_fails_the_test(browser: Browser) -> None:
    async with site(APP) as origin:
        with pytest.raises(AssertionError, match=r"error: .*broken"):
            await visit(browser, origin, "setTimeout(() => { throw new Error('broken') })", "pageerror")


async def test_a_request_to_another_origin_fails_the_test(browser: Browser) -> None:
    async with site(APP) as origin, site(APP) as other:
        with pytest.raises(AssertionError, match=f"request to another origin: {other}/"):
            await visit(browser, origin, f"location.assign('{other}')", "framenavigated")


async def test_names_are_not_looked_up(browser: Browser) -> None:
    async with opened(browser, "http://example.com") as page:
        with pytest.raises(Error, match="ERR_NAME_NOT_RESOLVED"):
            await page.goto("/")


async def fail(browser: Browser) -> None:
    async with opened(browser, "http://127.0.0.1") as page:
        async with page.expect_console_message():
            await page.evaluate("console.warn('seen')")
        raise ValueError("its own")


async def test_a_failing_test_says_what_the_browser_saw(browser: Browser) -> None:
    with pytest.raises(ValueError, match="its own") as failed:
        await fail(browser)
    assert failed.value.__notes__ == ["The browser:\nconsole: warning: seen"]


async def test_a_screenshot_is_small_and_has_the_fonts_that_come_with_the_browser(
    browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "folder" / "page.png"
    async with site(APP) as origin, opened(browser, origin, width=1600) as page:
        await page.goto("/")
        await shot(page, path)
        devtools = await page.context.new_cdp_session(page)
        await devtools.send("DOM.enable")
        await devtools.send("CSS.enable")
        root = await devtools.send("DOM.getDocument")
        heading = await devtools.send("DOM.querySelector", {"nodeId": root["root"]["nodeId"], "selector": "h1"})
        used = await devtools.send("CSS.getPlatformFontsForNode", heading)
    assert [font["familyName"] for font in used["fonts"]] == ["Open Sans"]
    assert Image.open(path).width == 1600
