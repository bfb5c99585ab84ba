"""A switch restores what the file grants; what it does not grant takes the right to configure."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Pegboard
from pegboard.console.app import ConsoleApp
from pegboard.errors import UsageError

from .programs import Program, program

CONFIG = """
store: sqlite:///state.db
plugins: {cloud: {python: mail_tools}, clock: {python: pegboard.quickstart.clock}}
agents:
  support: {tools: [clock], permissions: {clock: true}}
  platform: {tools: [clock, cloud]}
tokens:
  sam: {token: sam-sam-sam-sam, agents: ["*"], console: true}
  tim: {token: tim-tim-tim-tim, agents: [support], console: [see, switch, configure]}
  pat: {token: pat-pat-pat-pat, agents: ["*"], console: [see, switch, configure]}
"""
BEYOND = (
    "'cloud' is not granted to support by the file, so to switch it on takes the right 'configure', which sam does not "
    "have."
)


@pytest.fixture
def mailer_config(mailer_config: Path) -> Path:
    mailer_config.write_text(CONFIG)
    return mailer_config


@pytest.fixture
async def sam(app: ConsoleApp) -> AsyncIterator[Program]:
    """Return the program of an operator of every agent, with `console: true`."""
    async with program(app, "sam-sam-sam-sam") as sam:
        yield sam


@pytest.fixture
async def pat(app: ConsoleApp) -> AsyncIterator[Program]:
    """Return the program of an operator of every agent who may configure."""
    async with program(app, "pat-pat-pat-pat") as pat:
        yield pat


async def used(board: Pegboard, tool: str, agent: str = "support") -> str:
    return (await (await board.session(agent=agent, session_id="s")).call(tool, {})).status


async def test_switching_on_what_only_another_agent_has_takes_the_right_to_configure(
    sam: Program, pat: Program, mailer: Pegboard
) -> None:
    """P2, A5: by any of its names, for one agent or together; the preview says so, and nothing is changed."""
    address = "/api/agents/support/switches"
    assert await used(mailer, "read_mail", "platform") == "ok"
    for name in ("cloud", "read_mail", "cloud/read_mail"):
        assert (await sam.ask("GET", f"{address}/preview?name={name}&value=true"))["grants"]
        code, message, _ = await sam.refused("PUT", address, 403, json={"name": name, "value": True})
        assert (code, message) == ("right_required", BEYOND.replace("'cloud'", f"'{name}'"))
        together = {"kind": "switch", "name": name, "value": True, "agent": "support"}
        assert (await sam.ask("GET", f"/api/matrix/preview?kind=switch&name={name}&value=true&agent=support"))["grants"]
        assert (await sam.refused("POST", "/api/matrix", 403, json=together))[0] == "right_required"
    assert (await mailer.services.store.stored_permissions()).switches == {}
    assert await used(mailer, "read_mail") == "not_found"
    await pat.ask("PUT", address, json={"name": "cloud", "value": True})
    assert await used(mailer, "read_mail") == "ok"
    (record,) = (await pat.ask("GET", "/api/audit?kind=permission"))["lines"]
    assert "It grants more than the file does." in str(record)


async def test_what_only_another_agent_has_is_unknown_to_an_operator_of_some_agents(
    app: ConsoleApp, mailer: Pegboard
) -> None:
    """G2, P2: also to one who may configure; it is answered as a name that nothing has."""
    address = "/api/agents/support/switches"
    async with program(app, "tim-tim-tim-tim") as tim:
        for name in ("cloud", "read_mail", "cloud/read_mail", "nothing_has_it"):
            assert (await tim.refused("GET", f"{address}/preview?name={name}&value=true", 404))[0] == "unknown_name"
            code, message, _ = await tim.refused("PUT", address, 404, json={"name": name, "value": True})
            assert (code, message) == ("unknown_name", f"'{name}' is not a toolkit, plugin or tool.")
            together = {"kind": "switch", "name": name, "value": True}
            assert (await tim.refused("POST", "/api/matrix", 404, json=together))[0] == "unknown_name"
    assert (await mailer.services.store.stored_permissions()).switches == {}


async def test_what_the_file_grants_is_switched_off_and_on_with_the_right_to_switch(
    sam: Program, mailer: Pegboard
) -> None:
    """P2, A5: also back by undo, together, and by a pause and its end."""
    address = "/api/agents/support/switches"
    for value in (False, True, False, None):
        assert not (
            await sam.ask("GET", f"{address}/preview?name=clock&value={str(value).lower()}".replace("none", "null"))
        )["grants"]
        await sam.ask("PUT", address, json={"name": "clock", "value": value})
        assert (await used(mailer, "current_time") == "ok") is (value is not False)
    off = await sam.ask(
        "POST", "/api/matrix", json={"kind": "switch", "name": "clock", "value": False, "agent": "support"}
    )
    await sam.ask("POST", "/api/matrix/undo", json={"mark": off["mark"]})
    for value in (True, False):
        await sam.ask("POST", "/api/matrix", json={"kind": "pause", "value": value, "agent": "support"})
    assert await used(mailer, "current_time") == "ok"


async def test_what_was_granted_and_taken_away_is_not_given_back_with_the_right_to_switch(
    sam: Program, pat: Program, mailer: Pegboard
) -> None:
    """P2, A5: nor by undo, by taking a switch back, while the agent is paused, or for one principal."""
    address = "/api/agents/support/switches"
    await pat.ask("PUT", address, json={"name": "cloud", "value": True})
    off = await sam.ask(
        "POST", "/api/matrix", json={"kind": "switch", "name": "cloud", "value": False, "agent": "support"}
    )
    assert (await sam.refused("POST", "/api/matrix/undo", 403, json={"mark": off["mark"]}))[0] == "right_required"
    await sam.ask("POST", "/api/matrix", json={"kind": "pause", "value": True, "agent": "support"})
    assert (await sam.refused("PUT", address, 403, json={"name": "cloud", "value": True}))[0] == "right_required"
    await sam.ask("POST", "/api/matrix", json={"kind": "pause", "value": False, "agent": "support"})
    await sam.ask("PUT", address, json={"name": "cloud", "value": None})
    await mailer.permissions.set("support", "cloud", False, by="sam")
    await mailer.permissions.set("support", "cloud", True, by="sam", principal="carl")  # denied all the same
    assert (await sam.refused("PUT", address, 403, json={"name": "cloud", "value": None}))[0] == "right_required"
    assert await used(mailer, "read_mail") == "not_found"


async def test_in_the_library_the_token_of_who_sets_a_switch_says_whether_it_may_grant(mailer: Pegboard) -> None:
    """P2, A5: `by=` asks no one, but the principal of a token has no more than that token."""
    with pytest.raises(UsageError, match="which sam does not have") as refused:
        await mailer.permissions.set("support", "cloud", True, by="sam")
    assert refused.value.code == "right_required"
    with pytest.raises(UsageError, match="which sam does not have"):
        await mailer.permissions.set("support", "cloud", True, by="sam", principal="carl")
    await mailer.permissions.set("support", "cloud", True, by="pat")
    await mailer.permissions.set("support", "cloud", False, by="sam")
    await mailer.permissions.set("support", "cloud", True, by="a host's own code")
    assert await used(mailer, "read_mail") == "ok"


async def test_a_tool_of_a_server_that_was_not_seen_yet_is_not_granted_by_its_name(tmp_path: Path) -> None:
    """P2, A5: by its id, its wire name, and by a toolkit that names it alone."""
    (tmp_path / "pegboard.yaml").write_text(
        """
store: sqlite:///state.db
servers: {s: {command: no-such-command}}
plugins: {clock: {python: pegboard.quickstart.clock}}
toolkits: {kit: {tools: [s/purge]}}
agents:
  support: {tools: [clock]}
  platform: {tools: [clock, s]}
tokens: {sam: {token: sam-sam-sam-sam, agents: [support], console: true}}
"""
    )
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        for name in ("s/purge", "s__purge", "kit", "s"):
            with pytest.raises(UsageError, match="takes the right"):
                await board.permissions.set("support", name, True, by="sam")
        await board.permissions.set("support", "clock", False, by="sam")
        await board.permissions.set("support", "clock", True, by="sam")
        assert (await board.services.store.stored_permissions()).switches == {"support": {"clock": True}}
