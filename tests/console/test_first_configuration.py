"""From an empty folder to a server with a secret that an agent may use, in a browser (P11, G13)."""

import json
import sys
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from pegboard import Pegboard
from pegboard.console.app import ConsoleApp
from pegboard.console.entry.operator_access import OperatorAccess
from pegboard.console.served_console import PREFIXES
from pegboard.gateway import serving
from pegboard.gateway.http.mounts import Mount

from .browser import findings, opened
from .running import Console

SERVER = Path(__file__).resolve().parents[1] / "servers" / "plain_server.py"
SECRET = "ghp_s3cr3tS3cr3tS3cr3t99"
PASTED = json.dumps(
    {"mcpServers": {"plain": {"command": sys.executable, "args": [str(SERVER)], "env": {"PLAIN_TOKEN": SECRET}}}}
)


async def pressed(page: Page, name: str, presses: list[str]) -> None:
    """Press a button, and count it."""
    presses.append(name)
    await page.get_by_role("button", name=name).last.click()


async def test_an_empty_folder_has_a_running_server_with_a_secret_after_six_clicks(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, axe_core: str
) -> None:
    """P11, G13: and the next start has it, too; the secret is in no file."""
    monkeypatch.setattr("pegboard.kept_secrets.usable", lambda: False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    clicks: list[str] = []
    async with Pegboard.open(watch=True) as board:
        access = OperatorAccess(lambda: board.configuration.tokens)
        mount = Mount(prefixes=PREFIXES, build=lambda: ConsoleApp(board, access))
        async with serving(board, port=0, mounts=[mount]) as url, opened(browser, url.removesuffix("/mcp")) as page:
            await Console(origin=url.removesuffix("/mcp"), board=board, access=access).sign_in(page)
            await pressed(page, "Create pegboard.yaml here", clicks)
            await expect(page.locator(".notice")).to_contain_text("pegboard.yaml is created")
            assert await findings(page, axe_core) == []
            await page.get_by_label("Configuration of the server").fill(PASTED)
            await pressed(page, "Continue", clicks)
            await expect(page.get_by_label("default")).to_be_checked()
            await pressed(page, "Test connection", clicks)
            await expect(page.locator("#trial-0")).to_contain_text("tools,")
            await pressed(page, "Review changes", clicks)
            await expect(page.locator(".diff")).to_contain_text("${secret:PLAIN_TOKEN}")
            await pressed(page, "Save", clicks)
            await expect(page.locator(".notice")).to_contain_text("Saved: Add server plain")
            assert SECRET not in await page.content()
        assert len(clicks) <= 6
        await used(board)
    async with Pegboard.open() as board:
        assert not board.quickstart
        await used(board)
    assert [file for file in files(tmp_path) if SECRET.encode() in file.read_bytes()] == []


async def used(board: Pegboard) -> None:
    """Call the server as an agent, which gets the secret in its environment."""
    session = await board.session(session_id="s")
    await session.call("load_tools", {"names": ["plain"]})
    answer = await session.call("plain__environment", {"name": "PLAIN_TOKEN"})
    assert (answer.status, SECRET in str(answer)) == ("ok", True), answer


def files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]
