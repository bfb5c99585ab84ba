"""An operator of some agents sees the catalog of these agents: on every page, in every answer, by every name (G2)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Pegboard
from pegboard.console.app import ConsoleApp

from .addresses import ADDRESSES, Address, label
from .programs import Program, program

TOOLS = '''
def launch_zebra(to: str) -> str:
    """Start a striped rocket."""
    return to


def land_softly() -> str:
    """Come down."""
    return "down"
'''
CONFIG = """
store: sqlite:///state.db
plugins: {mail: {python: mail_tools}, zebracloud: {python: zebra_tools}, half: {python: zebra_tools, prefix: half}}
toolkits:
  post: {tools: [mail]}
  zebrakit: {label: Zebra affairs, description: Striped., tools: [zebracloud]}
agents:
  mailer: {allowed_toolkits: [post], tools: [half__land_softly]}
  pilot: {allowed_toolkits: [post, zebrakit], tools: [half]}
tokens:
  sam: {token: sam-sam-sam-sam, agents: [mailer], console: [see, approve, switch, configure]}
  pat: {token: pat-pat-pat-pat, agents: ["*"], console: [see, approve, switch, configure]}
"""
NAMES = ("zebracloud", "zebrakit", "launch_zebra", "zebracloud/launch_zebra", "half__launch_zebra", "striped rocket")
TAKES_A_NAME = ("name", "tool", "q", "query", "text", "names", "server")
OF_OTHERS = ("zebracloud", "zebrakit", "launch_zebra", "Zebra affairs", "striped rocket", "Striped.")


@pytest.fixture
def mailer_config(mailer_config: Path) -> Path:
    (mailer_config.parent / "zebra_tools.py").write_text(TOOLS)
    mailer_config.write_text(CONFIG)
    return mailer_config


@pytest.fixture
async def sam(app: ConsoleApp, mailer: Pegboard) -> AsyncIterator[Program]:
    """Return the program of an operator of `mailer`, once the pilot has been at work."""
    session = await mailer.session(agent="pilot", session_id="s", principal="carl")
    await session.call("launch_zebra", {"to": "the moon"})
    await mailer.permissions.set("pilot", "zebrakit", False)
    async with program(app, "sam-sam-sam-sam") as sam:
        yield sam


async def test_no_address_shows_what_other_agents_have(sam: Program) -> None:
    """G2, A5: whatever is asked for, but for what the request itself names."""
    shown: list[tuple[str, dict[str, str], str]] = []
    for address in sorted(ADDRESSES, key=lambda one: one.method != "GET"):  # what is changed names what was asked
        for given in _requests(address):
            text = (await sam.client.request(**address.request(**given))).text
            asked = " ".join(given.values() if address.method == "GET" else NAMES)
            shown += [(label(address), given, one) for one in OF_OTHERS if one in text and one not in asked]
    assert shown == []


def _requests(address: Address) -> list[dict[str, str]]:
    """Return what an address is asked for: as it is, and by every name of others in what takes a name."""
    takes = [name for name in address.names if name in TAKES_A_NAME]
    return [{}, *({one: name} for one in takes for name in NAMES)]


async def test_their_own_catalog_is_complete(sam: Program, app: ConsoleApp) -> None:
    """G2: of a plugin that only a part belongs to, that part; what is switched off stays in sight."""
    matrix = await sam.ask("GET", "/api/matrix")
    assert [one["name"] for one in matrix["toolkits"]] == ["post"]
    assert [one["name"] for one in matrix["plugins"]] == ["mail", "half"]
    await sam.ask("PUT", "/api/agents/mailer/switches", json={"name": "post", "value": False})
    rows = (await sam.ask("GET", "/api/agents/mailer/switches"))["rows"]
    assert [(one["name"], one["on"]) for one in rows] == [("post", False), ("half", True)]
    members = await sam.ask("GET", "/api/agents/mailer/switches/members?kind=plugin&name=half")
    assert [one["name"] for one in members["rows"]] == ["half__land_softly"]
    explained = await sam.ask("GET", "/api/explain?agent=mailer&name=send_mail")
    assert (explained["known"], explained["permitted"]) == (True, False)
    async with program(app, "pat-pat-pat-pat") as pat:
        everything = await pat.ask("GET", "/api/matrix")
        assert [one["name"] for one in everything["toolkits"]] == ["post", "zebrakit"]
        await pat.ask("PUT", "/api/agents/mailer/switches", json={"name": "zebrakit", "value": True})
    rows = (await sam.ask("GET", "/api/agents/mailer/switches"))["rows"]
    assert [one["name"] for one in rows] == ["post", "zebrakit", "half"]


async def test_what_other_agents_have_is_explained_as_what_does_not_exist(sam: Program) -> None:
    """G2, P9: not even a suggestion names it."""
    for name, unknown in (("launch_zebra", "launch_cobra"), ("zebracloud", "cobracloud"), ("zebrakit", "cobrakit")):
        found = await sam.ask("GET", f"/api/explain?agent=mailer&name={name}")
        other = await sam.ask("GET", f"/api/explain?agent=mailer&name={unknown}")
        assert str(found).replace(name, unknown) == str(other)
