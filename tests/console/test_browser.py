"""The browser of the tests: what a page does is seen, and what it must not do fails the test."""

import pytest
from playwright.async_api import Browser
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .browser import opened
from .sites import site

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'"
PAGE = '<!doctype html><html lang="en"><head><title>Page</title></head><body><main><h1>Page</h1></main></body></html>'


async def page(request: Request) -> Response:
    return Response(PAGE, media_type="text/html", headers={"content-security-policy": POLICY})


APP = Starlette(routes=[Route("/", page)])


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
