"""History: yesterday's edit is undone, what changed is one list, and of two who restore one is told (P10, X4)."""

from pathlib import Path

from playwright.async_api import Browser, expect

from pegboard import Pegboard
from pegboard.console.app import ConsoleApp

from .browser import broken_words, findings, opened, tab_to
from .programs import Program, program, serving
from .running import running
from .test_editing_page import ADA, EVE, app, config, eve, text_of, write

__all__ = ["app", "config", "eve"]


async def edited(operator: Program, role: str) -> None:
    """Save another role of an agent."""
    change = {"path": ["agents", "helper", "role"], "value": role}
    proposed = await operator.ask("POST", "/api/configuration/edits", json={"changes": [change]})
    await operator.ask("POST", f"/api/configuration/edits/{proposed['id']}/save")


async def test_an_edit_of_before_is_undone_in_a_browser(browser: Browser, config: Path, axe_core: str) -> None:
    """P10: with mouse and keyboard, after a restart too; secrets are marks in all of it."""
    write(config, text_of(config).replace('store: "memory:"', "store: sqlite:///state.db"))
    async with Pegboard.open(config) as board, serving(board) as (app, _), program(app, EVE) as eve:
        await edited(eve, "adds")
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page, EVE)
        changed = text_of(config)
        write(config, changed.replace("role: adds", "role: counts"))
        await page.goto("/console/history")
        rows = page.get_by_role("table", name="Versions of the configuration").get_by_role("row")
        await expect(rows).to_have_count(4)
        await expect(rows.nth(1)).to_contain_text("now")
        assert await findings(page, axe_core) == []
        assert await broken_words(page) == []
        assert "eve-eve" not in await page.content()
        await tab_to(page, page.get_by_role("button", name="Restore Edit"))
        await page.keyboard.press("Enter")
        await expect(page.locator(".diff .added")).to_contain_text("role: adds")
        assert await findings(page, axe_core) == []
        await page.keyboard.press("Enter")
        await expect(page.locator(".notice")).to_contain_text("Saved: Restore the configuration of")
        assert text_of(config) == changed
        await expect(page.get_by_role("table", name="What people changed")).to_contain_text("eve")
        await page.get_by_role("link", name="Restore the configuration of").first.click()
        await expect(page.get_by_role("heading", name="What it changed")).to_be_visible()
        assert await findings(page, axe_core) == []


async def test_of_two_who_restore_different_versions_the_second_is_told(eve: Program, config: Path) -> None:
    """P10: nothing is overwritten; what was wanted can be put into what the file is by then."""
    before = text_of(config)
    for role in ("one", "two"):
        await edited(eve, role)
    versions = await eve.ask("GET", "/api/configuration/history")
    assert [(one["by"], one["now"]) for one in versions] == [("eve", True), ("eve", False), ("", False)]
    addresses = [f"/api/configuration/history/{versions[at]['number']}" for at in (2, 1)]
    first, second = [(await eve.ask("POST", f"{address}/restore"))["id"] for address in addresses]
    await eve.ask("POST", f"/api/configuration/edits/{first}/save")
    assert text_of(config) == before
    code, message, _ = await eve.refused("POST", f"/api/configuration/edits/{second}/save", 409)
    assert (code, message.endswith("was changed in the meantime, so it was not overwritten.")) == ("file_changed", True)
    assert text_of(config) == before
    assert (await eve.ask("GET", "/api/configuration/history"))[0]["what"].startswith("Restore the configuration of")
    assert any(line["kind"] == "added" for line in (await eve.ask("GET", addresses[1]))["since"])


async def test_a_version_whose_secret_is_gone_is_not_restored(config: Path) -> None:
    """X5: the store keeps marks, and a mark whose secret is not known is refused."""
    write(config, text_of(config).replace('store: "memory:"', "store: sqlite:///state.db"))
    for secret in ("bob-bob-bob-bob-bob-bob", "another-secret-of-bob"):
        write(config, text_of(config).replace("bob-bob-bob-bob-bob-bob", secret))
        async with Pegboard.open(config) as board, serving(board) as (app, _), program(app, EVE) as eve:
            *_, first = await eve.ask("GET", "/api/configuration/history")
            address = f"/api/configuration/history/{first['number']}/restore"
            if secret == "another-secret-of-bob":
                assert (await eve.refused("POST", address, 400))[0] == "unknown_mark"
            else:
                await eve.ask("POST", address)


async def test_versions_are_not_for_operators_of_some_agents(app: ConsoleApp, eve: Program) -> None:
    """A5: changes of their own agents are."""
    async with program(app, ADA) as ada:
        assert (await ada.refused("GET", "/api/configuration/history", 403))[0] == "every_agent_required"
        assert (await ada.ask("GET", "/api/changes?since=2026-11-01T00:00:00Z"))["lines"] == []
    for number in ("x", "999"):
        assert (await eve.refused("GET", f"/api/configuration/history/{number}", 404))[0] == "unknown_version"
