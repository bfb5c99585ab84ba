"""Servers, their restart, and the configuration, as a program reads them."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.clients import until
from pegboard import Pegboard

from .programs import Program, program, serving

SERVER = Path(__file__).resolve().parent.parent / "servers" / "plain_server.py"
CONFIG = """
store: "memory:"
servers:
  "odd/näme": {{command: {python}, args: [{server}]}}
  gone: {{command: no-such-command-anywhere}}
agents: {{one: {{discoverable: ["*"]}}, two: {{}}}}
tokens:
  ada: {{token: ada-ada-ada-ada-ada-ada, agents: ["*"], console: true}}
  bob: {{token: bob-bob-bob-bob-bob-bob, agents: [one], console: true}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG.format(python=sys.executable, server=SERVER))
    return path


@pytest.fixture
async def board(config: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(config, watch=True) as board:
        yield board


@pytest.fixture
async def ada(board: Pegboard) -> AsyncIterator[Program]:
    async with serving(board) as (app, _), program(app, "ada-ada-ada-ada-ada-ada") as ada:
        yield ada


@pytest.fixture
async def bob(board: Pegboard) -> AsyncIterator[Program]:
    async with serving(board) as (app, _), program(app, "bob-bob-bob-bob-bob-bob") as bob:
        yield bob


async def test_a_server_is_restarted_by_its_name_whatever_that_holds(ada: Program, board: Pegboard) -> None:
    """X4: it runs in a new process, and the audit trail has who wanted that."""
    await board.ready()
    name = next(state["name"] for state in await ada.ask("GET", "/api/servers") if state["name"] != "gone")
    address = f"/api/servers/{name.replace('/', '%2F')}"
    before = await ada.ask("GET", address)
    assert (before["state"], before["restarts"]) == ("up", 0)
    after = await ada.ask("POST", f"{address}/restart")
    assert (after["state"], after["restarts"]) == ("up", 1)
    assert after["pid"] != before["pid"]
    assert (await ada.ask("GET", f"{address}/log"))["name"] == name
    (record,) = (await ada.ask("GET", "/api/audit?kind=server"))["lines"]
    assert (record["subject"], record["decision"], record["by"]) == (name, "restarted", "ada")


async def test_a_server_that_cannot_start_says_why(ada: Program, board: Pegboard) -> None:
    await board.ready()
    gone = await ada.ask("GET", "/api/servers/gone")
    assert gone["unavailable"]
    code, message, hint = await ada.refused("GET", "/api/servers/gnoe", 404)
    assert (code, message, hint) == ("unknown_name", "There is no server or plugin 'gnoe'.", "Did you mean 'gone'?")


async def test_servers_and_configuration_are_for_operators_of_every_agent(bob: Program) -> None:
    """G2: what all agents share is not shown or restarted with a token of some."""
    for method, address in (
        ("GET", "/api/servers"),
        ("GET", "/api/servers/gone"),
        ("GET", "/api/servers/gone/log"),
        ("POST", "/api/servers/gone/restart"),
        ("GET", "/api/configuration"),
    ):
        assert (await bob.refused(method, address, 403))[0] == "every_agent_required"


async def test_a_broken_edit_is_reported_with_its_place_and_a_suggestion(ada: Program, config: Path) -> None:
    state = await ada.ask("GET", "/api/configuration")
    assert (state["refused"], state["file"]) == (False, str(config))
    text = config.read_text()  # noqa: ASYNC240
    config.write_text(text.replace("discoverable:", "discovreable:"))  # noqa: ASYNC240

    async def refused() -> bool:
        return (await ada.ask("GET", "/api/configuration"))["refused"]

    await until(refused)
    problem = (await ada.ask("GET", "/api/configuration"))["problems"][0]
    assert (problem["line"], problem["hint"]) == (6, "Did you mean 'discoverable'?")
    config.write_text(text)  # noqa: ASYNC240

    async def mended() -> bool:
        return not await refused()

    await until(mended)
