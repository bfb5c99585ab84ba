"""The configuration in the console: an edit that is refused, with its lines, and the same mended."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from pegboard import Pegboard

from .browser import findings, opened
from .programs import Program, program, serving
from .running import running

GOOD = """\
store: "memory:"
tokens:
  ada: {token: ada-ada-ada-ada-ada-ada, agents: ["*"], console: true}
servers:
  web: {url: https://example.invalid/mcp, headers: {Authorization: "Bearer v3ry-secret", X-Key: "${ABSENT_KEY}"}}
agents: {ada: {discoverable: ["*"]}}  # <b>all</b> \u202e of it
"""
BROKEN = GOOD.replace("discoverable", "discovreable")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    path.write_text(GOOD)
    return path


def write(path: Path, text: str) -> None:
    path.write_text(text)


async def test_a_broken_edit_shows_at_once_and_so_does_its_mending(
    browser: Browser, config: Path, axe_core: str
) -> None:
    """F5: file, line, column, what would be right and the lines around it; the last good one stays meanwhile."""
    async with running(config) as console, opened(browser, console.origin, theme="dark", width=400) as page:
        await console.sign_in(page, "ada-ada-ada-ada-ada-ada")
        await page.goto("/console/settings")
        part = page.locator("#configuration")
        await expect(part).to_contain_text("The newest edit is in use, with 1 warning")
        await expect(part).to_contain_text("the environment variable ABSENT_KEY is not set")
        assert await findings(page, axe_core) == []
        write(config, BROKEN)
        await expect(part).to_contain_text("The newest edit is refused; the last good configuration is in use.")
        first = page.locator("#problem-1")
        await expect(first).to_contain_text("line 6, column 16")
        await expect(first).to_contain_text("Did you mean 'discoverable'?")
        await expect(first.locator("mark")).to_have_text("…")
        await expect(first.locator("pre")).to_contain_text("… url … headers …")
        assert "v3ry-secret" not in await page.content()
        assert await findings(page, axe_core) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        write(config, "agents: [")
        await expect(first.locator("pre")).to_contain_text("agents …")
        write(config, GOOD)
        await expect(part).to_contain_text("The newest edit is in use, with 1 warning")


async def test_lines_are_those_of_files_of_the_configuration_and_without_secrets(config: Path) -> None:
    """X5: also as JSON; a file of a loadout counts, and a value that became a secret with this edit is hidden."""
    loadouts = config.parent / "loadouts"
    async with Pegboard.open(config) as board:
        loadouts.mkdir()
        write(loadouts / "small.yaml", "toolz: [web]\napi_key: fr3sh-secret\n")
        write(config, GOOD.replace("v3ry-secret", "n3w-secret").replace("mcp,", "mcp/n3w-secret,"))
        await board.reload()
        async with serving(board) as (app, _), program(app, "ada-ada-ada-ada-ada-ada") as ada:
            state = await ada.ask("GET", "/api/configuration")
            page = (await ada.client.get("/console/settings")).text
    excerpts: dict[str, list[dict[str, str]]] = {}
    for problem in state["problems"]:
        excerpts.setdefault(problem["file"].rpartition("/")[2], problem["excerpt"])
    assert state["refused"]
    assert [line["before"] for line in excerpts["small.yaml"]] == ["", "…", ""]
    assert excerpts["small.yaml"][0]["marked"] == "…"
    for secret in ("fr3sh-secret", "n3w-secret", "v3ry-secret", "ada-ada-ada"):
        assert secret not in str(state)
        assert secret not in page


async def test_a_configuration_of_code_has_no_lines() -> None:
    """A mapping has no file: what is wrong is told by its path."""
    config = {"store": "memory:", "servers": {"a": {"command": "x", "env": {"K": "${ABSENT_KEY}"}}}}
    async with Pegboard.open(config, env={}) as board:
        (problem,) = board.configuration_state.problems
        assert (problem.path, problem.excerpt) == ("servers.a.env.K", ())


WAITS = """\
store: "memory:"
reload: ask
tokens:
  ada: {token: ada-ada-ada-ada-ada-ada, agents: ["*"], console: [see, configure]}
  bob: {token: bob-bob-bob-bob-bob-bob, agents: ["*"], console: [see]}
agents: {a: {tools: [calculator], permissions: {calculator: false}}}
"""


async def test_what_waits_is_shown_and_accepted_as_it_was_shown_by_who_may(config: Path) -> None:
    """P10, A5: whoever lacks the right has no button, and is refused; an edit meanwhile has to be seen first."""
    write(config, WAITS)
    async with Pegboard.open(config) as board, serving(board) as (app, _):
        write(config, WAITS.replace("calculator: false", ""))
        await board.reload()
        address = "/console/settings"
        async with program(app, "bob-bob-bob-bob-bob-bob") as bob:
            page = (await bob.client.get(address)).text.replace("<wbr>", "")
            assert ("1 change waits for acceptance" in page, "Accept this change" in page) == (True, False)
            assert "agents.a.permissions.calculator: false → absent" in page
        async with program(app, "ada-ada-ada-ada-ada-ada") as ada:
            assert "Accept this change" in (await ada.client.get(address)).text
            assert await accepted(ada, "0" * 64) == 409
            assert board.waiting
            seen = re.findall(r'name="seen" value="(\w+)"', (await ada.client.get(address)).text)[0]
        async with program(app, "bob-bob-bob-bob-bob-bob") as bob:
            assert await accepted(bob, seen) == 403
            assert board.waiting
        async with program(app, "ada-ada-ada-ada-ada-ada") as ada:
            assert await accepted(ada, seen) == 303
        assert board.waiting == ()
        record = (await board.services.store.entries(kind="permission"))[0]
        assert (record.subject, record.by) == ("agents.a.permissions.calculator", "ada")


async def accepted(operator: Program, seen: str) -> int:
    """Return the status of the answer to the form."""
    return (await operator.client.post("/console/settings/accept", data={"seen": seen})).status_code
