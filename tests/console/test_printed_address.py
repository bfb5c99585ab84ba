"""`pegboard serve` as an operator runs it: the address that it prints opens the console."""

from pathlib import Path

from playwright.async_api import Browser, expect

from gateway.clients import Gateway, process

from .browser import findings, opened

CONFIG = """
agents:
  default: {}
"""


async def printed(gateway: Gateway) -> str:
    """Return the address of the console that a gateway prints at its start."""
    assert gateway.process.stderr is not None
    async for line in gateway.process.stderr:
        if line.startswith(b"Console: "):
            return line.decode().removeprefix("Console: ").strip()
    raise AssertionError("no address is printed")


async def test_the_printed_address_opens_the_console_once(browser: Browser, tmp_path: Path, axe_core: str) -> None:
    """G2: its code signs one browser in, and a second one with the same address is asked for another."""
    config = tmp_path / "pegboard.yaml"
    config.write_text(CONFIG)
    async with process(config) as gateway:
        address = await printed(gateway)
        async with opened(browser, gateway.base) as page:
            await page.goto(address)
            await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
            assert "code" not in page.url
            await page.reload()
            await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        async with opened(browser, gateway.base, expected="401") as page:
            await page.goto(address)
            await expect(page.get_by_role("alert").first).to_contain_text("This code was used already")
            assert await findings(page, axe_core) == []
