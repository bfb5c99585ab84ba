"""A page of another origin, opened by someone who is signed in: it learns nothing and can do nothing."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from .browser import opened
from .running import running
from .sites import site

CONFIG = """
agents:
  default: {}
"""
FETCH = "fetch(url, {credentials: 'include', ...options}).then((answer) => answer.text(), () => 'refused')"
READS = {
    "fetch": ("/console/access", f"([url, options]) => {FETCH}"),
    "stream": (
        "/console/events",
        """([url]) => new Promise((settle) => {
            const source = new EventSource(url, {withCredentials: true});
            const end = (word) => { source.close(); settle(word); };
            source.onopen = () => end('open');
            source.onerror = () => end('refused');
        })""",
    ),
    "script": ("/console/static/console.js", "([url]) => element('script', url)"),
    "image": ("/console/static/icon.svg", "([url]) => element('img', url)"),
}
"""What a script of the page itself may do, and one of another origin must not: what is asked for, and how."""
ELEMENT = """() => { window.element = (name, url) => new Promise((settle) => {
    const made = document.createElement(name);
    made.onload = () => settle('loaded');
    made.onerror = () => settle('refused');
    made.src = url;
    document.body.append(made);
}); }"""


async def elsewhere(request: Request) -> Response:
    return HTMLResponse('<!doctype html><html lang="en"><title>Elsewhere</title><body></body></html>')


ELSEWHERE = Starlette(routes=[Route("/", elsewhere)])


async def tried(page: Page, origin: str) -> dict[str, str]:
    """Return the beginning of what a script of a page learns of an origin."""
    await page.evaluate(ELEMENT)
    return {name: (await page.evaluate(how, [f"{origin}{path}", {}]))[:9] for name, (path, how) in READS.items()}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


async def test_another_origin_reads_nothing(browser: Browser, config: Path) -> None:
    """G2: an operator's browser sends the cookie along to every port of the host; the answer is a refusal."""
    async with (
        running(config) as console,
        site(ELSEWHERE) as other,
        opened(browser, console.origin, other, expected=f"CORS|ERR_|403|{other}") as page,
    ):
        await console.sign_in(page)
        own = {"fetch": "<!doctype", "stream": "open", "script": "loaded", "image": "loaded"}
        assert await tried(page, console.origin) == own
        await page.goto(other)
        assert await tried(page, console.origin) == dict.fromkeys(READS, "refused")


@pytest.mark.parametrize("mode", ["cors", "no-cors"])
async def test_another_origin_sends_nothing(browser: Browser, config: Path, mode: str) -> None:
    """G2: nothing that a script sends counts, whatever it looks like; the operator stays signed in."""
    async with (
        running(config) as console,
        site(ELSEWHERE) as other,
        opened(browser, console.origin, other, expected="CORS|ERR_|403") as page,
    ):
        await console.sign_in(page)
        await page.goto(other)
        for path in ("/console/sign-out", "/console/sign-in", "/console/codes"):
            for headers in ({}, {"Content-Type": "text/plain"}, {"Authorization": "Bearer x"}):
                options = {"method": "POST", "mode": mode, "headers": headers, "body": "csrf=x&secret=x"}
                assert await page.evaluate(READS["fetch"][1], [f"{console.origin}{path}", options]) == "refused"
        await page.goto("/console/access")
        await expect(page.get_by_role("navigation", name="Pages", exact=True)).to_be_visible()


async def test_a_form_of_another_origin_is_refused(browser: Browser, config: Path) -> None:
    """G2: whoever is lured into sending it sees that nothing was done."""
    async with (
        running(config) as console,
        site(ELSEWHERE) as other,
        opened(browser, console.origin, other, expected="403") as page,
    ):
        await console.sign_in(page)
        await page.goto(other)
        async with page.expect_navigation() as answered:
            await page.evaluate(
                """(url) => {
                    document.body.innerHTML = '<form method="post"><input name="csrf" value="x"></form>';
                    document.forms[0].action = url;
                    document.forms[0].submit();
                }""",
                f"{console.origin}/console/sign-out",
            )
        answer = await answered.value
        assert (answer.url, answer.status) == (f"{console.origin}/console/sign-out", 403)
        await page.goto("/console/access")
        await expect(page.get_by_role("navigation", name="Pages", exact=True)).to_be_visible()


async def test_another_origin_cannot_show_the_console_in_a_frame(browser: Browser, config: Path) -> None:
    async with (
        running(config) as console,
        site(ELSEWHERE) as other,
        opened(browser, console.origin, other, expected="frame|403") as page,
    ):
        await console.sign_in(page)
        await page.goto(other)
        await page.evaluate(ELEMENT)
        assert await page.evaluate("(url) => element('iframe', url)", f"{console.origin}/console/access") == "loaded"
        (frame,) = page.main_frame.child_frames
        assert "Access" not in await frame.content()
        assert await page.evaluate("document.querySelector('iframe').contentDocument") is None


async def test_another_origin_loses_the_window_that_it_opens(browser: Browser, config: Path) -> None:
    """G2: a link from elsewhere opens the page for the operator, and the other page has no hold of it."""
    async with (
        running(config) as console,
        site(ELSEWHERE) as other,
        opened(browser, console.origin, other) as page,
    ):
        await console.sign_in(page)
        await page.goto(other)
        async with page.context.expect_page() as opening:
            await page.evaluate("(url) => { window.console_ = open(url); }", f"{console.origin}/console/access")
        window = await opening.value
        await expect(window.get_by_role("heading", level=1)).to_have_text("Access")
        assert await page.evaluate("console_.closed")
        assert await window.evaluate("opener") is None
