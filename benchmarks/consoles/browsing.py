"""How long a change takes to a page that is open in a real browser."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
from playwright.async_api import Page, async_playwright

from benchmarks.consoles.answers_timed import PAGES, Row, switched
from benchmarks.consoles.crowds import connected
from benchmarks.consoles.site import FULL, Gateway
from benchmarks.consoles.visitors import Visitor
from pegboard import Pegboard

TARGET = 500
PATIENCE = 30_000
OPTIONS = ("--disable-gpu", "--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
SEEN = """
([text, there]) => new Promise((resolve) => {
  const main = document.getElementById("main");
  const look = () => {
    if (main.textContent.includes(text) !== there) return;
    observer.disconnect();
    resolve(performance.timeOrigin + performance.now());
  };
  const observer = new MutationObserver(look);
  observer.observe(main, {subtree: true, childList: true, characterData: true, attributes: true});
  look();
})
"""
"""Resolves as soon as a text is in the page, or is not; with the time."""
Act = Callable[[bool], Awaitable[object]]


def browser_here() -> Path | None:
    """Return the browser of the tests, if there is one."""
    chromium = Path(os.environ.get("PEGBOARD_BROWSER") or ".browser/chromium")
    return chromium if chromium.exists() else None


async def measured(gateway: Gateway, visitor: Visitor, config: Path, rounds: int) -> list[Row]:
    """Return how long changes take, from just before they are asked for until they are in the page."""
    chromium = browser_here()
    if chromium is None:
        return [{"change": "not measured: there is no browser; `make pytest` installs it, PEGBOARD_BROWSER names it"}]
    folder = chromium.parent
    env: dict[str, str | float | bool] = {
        "HOME": str(folder / "home"),
        "LD_LIBRARY_PATH": str(folder / "lib"),
        "FONTCONFIG_FILE": str(folder / "fonts.conf"),
    }
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=OPTIONS, env=env, timeout=PATIENCE)
        try:
            context = await browser.new_context(base_url=gateway.origin)
            context.set_default_timeout(PATIENCE)
            name, _, value = visitor.cookie.partition("=")
            await context.add_cookies([{"name": name, "value": value, "url": gateway.origin}])
            return await _rows(await context.new_page(), gateway, visitor, config, rounds)
        finally:
            await browser.close()


async def _rows(page: Page, gateway: Gateway, visitor: Visitor, config: Path, rounds: int) -> list[Row]:
    client = await connected(gateway, FULL, "watched")
    async with Pegboard.open(config) as board:
        await board.ready()
        other = await board.session(agent=FULL, session_id="watched")
        toolkit, tool = "kit-s7", next(tool.wire for tool in board.world.catalog if tool.plugin == "s7")

        async def by_client(on: bool) -> None:
            await client.call("load_tools" if on else "unload_tools", {"names": [tool]})

        async def elsewhere(on: bool) -> None:
            await (other.load(tool) if on else other.unload(tool))

        async def by_switch(on: bool) -> None:
            await switched(visitor, on=not on, name=toolkit)

        async def switch_elsewhere(on: bool) -> None:
            await board.permissions.set(FULL, toolkit, value=False if on else None, by="bench")

        await by_client(True)
        session = f"/console/session?principal=local&agent={FULL}&session=watched"
        panel = f"{PAGES['switches']}&q={toolkit}"
        found: list[Row] = []
        for what, address, text, act in (
            ("a load by a client", session, tool, by_client),
            ("a load by another process", session, tool, elsewhere),
            ("a switch", panel, "Remove the switch", by_switch),
            ("a switch by another process", panel, "Remove the switch", switch_elsewhere),
        ):
            await act(False)
            times = await _watched(page, address, text, act, rounds)
            found.append(
                {
                    "change": what,
                    "count": len(times),
                    "ms p50": round(float(np.percentile(times, 50))),
                    "ms p95": round(float(np.percentile(times, 95))),
                    "target p95": TARGET,
                }
            )
    await client.close()
    return found


async def _watched(page: Page, address: str, text: str, act: Act, rounds: int) -> list[float]:
    """Open a page, change something there and back, and return the milliseconds until it shows each."""
    await page.goto(address)
    times: list[float] = []
    for number in range(rounds):
        on = number % 2 == 0
        seen = asyncio.create_task(page.evaluate(SEEN, [text, on]))
        await asyncio.sleep(1)  # the page is quiet, as between the changes of people
        began = time.time()
        await act(on)
        async with asyncio.timeout(PATIENCE / 1000):
            times.append(await seen - 1000 * began)
    return times
