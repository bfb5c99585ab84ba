"""A real browser: what it is started with, what is watched while a page is open, axe-core, keys and screenshots."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import urlsplit

from PIL import Image
from playwright.async_api import Browser, BrowserContext, Locator, Page, async_playwright

PATIENCE = 30_000  # milliseconds until a state that does not come about is a failure, on a busy machine
OPTIONS = (
    "--disable-gpu",
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
"""Beside those of playwright, which turn off updates, reports, synchronisation and every other request of its own."""
MOST_BYTES = 150_000  # of a screenshot

Theme = Literal["light", "dark"]


@asynccontextmanager
async def started(chromium: Path) -> AsyncIterator[Browser]:
    """Start the browser with the libraries and fonts beside it, whatever the machine has, and end it."""
    folder = chromium.parent
    env: dict[str, str | float | bool] = {
        "HOME": str(folder / "home"),
        "LD_LIBRARY_PATH": str(folder / "lib"),
        "FONTCONFIG_FILE": str(folder / "fonts.conf"),
    }
    async with async_playwright() as playwright:
        # Containers and root have no sandbox; it opens pages of the tests only.
        browser = await playwright.chromium.launch(
            executable_path=chromium, args=OPTIONS, env=env, chromium_sandbox=False, timeout=PATIENCE
        )
        try:
            yield browser
        finally:
            await browser.close()


# What the browser reports where the visitor was quicker than `autofocus`: the focus stays where they put it.
FOCUSED_FIRST = "console: info: Autofocus processing was blocked because a document already has a focused element."


@dataclass
class Watch:
    """What a page must not do: write to the console, fail, break its policy, or ask another origin."""

    origins: tuple[str, ...]
    expected: re.Pattern[str] | None
    problems: list[str] = field(default_factory=list)

    def over(self, context: BrowserContext) -> None:
        """Note what happens in every page and frame of a context."""
        context.on("console", lambda one: self.note(f"console: {one.type}: {one.text} {one.location['url']}".rstrip()))
        context.on("weberror", lambda error: self.note(f"error: {error.error}"))
        context.on("request", lambda request: self.asked(request.url))

    def asked(self, url: str) -> None:
        """Note a request that leaves the origins."""
        parts = urlsplit(url)
        if parts.scheme in {"http", "https", "ws", "wss"} and f"{parts.scheme}://{parts.netloc}" not in self.origins:
            self.note(f"request to another origin: {url}")

    def note(self, problem: str) -> None:
        """Keep a problem, unless it is expected."""
        if not (FOCUSED_FIRST in problem or (self.expected and self.expected.search(problem))):
            self.problems.append(problem)


@asynccontextmanager
async def opened(
    browser: Browser,
    *origins: str,
    theme: Theme = "light",
    width: int = 1280,
    height: int = 800,
    expected: str | None = None,
) -> AsyncIterator[Page]:
    """Open a page of a visitor of its own, with no cookies; the test fails where the page did what it must not.

    Args:
        browser: The browser.
        origins: What may be asked, the console's first: paths given to `goto` are relative to that.
        theme: What the visitor's system prefers.
        width: Of the window, in pixels.
        height: Of the window, in pixels.
        expected: A pattern of problems that the test is about.
    """
    context = await browser.new_context(
        base_url=origins[0],
        color_scheme=theme,
        viewport={"width": width, "height": height},
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
        service_workers="block",
    )
    context.set_default_timeout(PATIENCE)
    watch = Watch(origins, re.compile(expected) if expected else None)
    watch.over(context)
    try:
        yield await context.new_page()
    except BaseException as error:
        error.add_note("\n".join(["The browser:", *watch.problems]))
        raise
    finally:
        await context.close()
    if watch.problems:
        raise AssertionError("\n".join(["The browser:", *watch.problems]))


async def looks(page: Page) -> AsyncIterator[str]:
    """Show an open page in both themes, narrow and wide, and yield the name of each look.

    Only styles know of themes and widths, so the page need not be loaded again.
    """
    for theme in get_args(Theme):
        for width in (400, 1600):
            await page.emulate_media(color_scheme=theme)
            await page.set_viewport_size({"width": width, "height": 800})
            yield f"{theme} {width}"


async def findings(page: Page, axe_core: str, *, only: Sequence[str] = ()) -> list[str]:
    """Return what axe-core finds on a page as it is now, a line each.

    Its source runs through the debugger, which no content policy binds; once in a document is enough.

    Args:
        page: The page.
        axe_core: The source of axe-core.
        only: The rules that are looked at; without any, all.
    """
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(axe_core)
    options = {"resultTypes": ["violations"], **({"runOnly": list(only)} if only else {})}
    result = await page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{rule['id']} ({rule['impact']}): {rule['help']}: {node['html'][:160]}"
        for rule in result["violations"]
        for node in rule["nodes"]
    ]


BROKEN = r"""[...document.querySelectorAll("bdi, th, dt")].flatMap((element) => {
  const found = [], texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    for (const word of texts.currentNode.data.matchAll(/(?<!\S)\S{2,16}(?!\S)/g)) {
      for (const part of word[0].matchAll(/[^-]+/g)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, word.index + part.index);
        range.setEnd(texts.currentNode, word.index + part.index + part[0].length);
        if (new Set([...range.getClientRects()].map((one) => Math.round(one.top))).size > 1) found.push(word[0]);
      }
    }
  }
  return found;
})"""


async def broken_words(page: Page) -> list[str]:
    """Return the short words of names and texts that stand on two lines; between hyphens any text may be broken."""
    return await page.evaluate(BROKEN)


async def tab_to(page: Page, target: Locator, most: int = 200) -> None:
    """Press the tabulator until an element has the focus, as someone without a mouse does."""
    for _ in range(most):
        await page.keyboard.press("Tab")
        if await target.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"{target} is not reached with {most} tabulators")


async def shot(page: Page, path: Path, *, whole: bool = False) -> None:
    """Write a screenshot of what the window shows, or of the whole page, small enough to be kept."""
    keep(await page.screenshot(full_page=whole, animations="disabled"), path)


def keep(screenshot: bytes, path: Path) -> None:
    """Write a screenshot with as many colours as a palette has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    colours = Image.open(BytesIO(screenshot)).convert("RGB")
    colours.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    if (size := path.stat().st_size) > MOST_BYTES:
        raise AssertionError(f"{path.name} has {size} bytes")
