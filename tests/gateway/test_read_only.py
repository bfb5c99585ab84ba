"""What `call_read_only_tool` runs, while servers change their minds."""

import json
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from pegboard.assembly import Pegboard

from .clients import ERAS, HANDSHAKE, HERE, Connected, connected, edit, gateway, until
from .conftest import ECHO

SERVER = HERE.parent / "servers" / "listed_server.py"


class Listed:
    """A configuration with one trusted server, and what that server lists."""

    def __init__(self, folder: Path) -> None:
        self.config = folder / "pegboard.yaml"
        self._list = folder / "list.json"
        server = {"command": sys.executable, "args": [str(SERVER), str(self._list)], "trust": "annotations"}
        server["pins"] = "trust"  # what changes runs on, and only its own description is not believed
        document = {
            "store": "sqlite:///state.db",
            "servers": {"up": server},
            "plugins": {"spare": {"python": "spare_tools"}},
            "agents": {"default": {"tools": ["up"], "discoverable": ["spare"]}},
        }
        self.config.write_text(json.dumps(document))
        (folder / "spare_tools.py").write_text(ECHO)
        self.now(announce=False, look=True, wipe=False)

    def now(self, **hints: bool) -> None:
        self._list.write_text(json.dumps(hints))

    async def later(self, client: Connected, **hints: bool) -> None:
        """Let the server list something else, and say so."""
        self.now(**hints)
        await client.text("up__announce")

    async def accept(self) -> list[str]:
        """Accept in another store, as another process does."""
        async with Pegboard.open(self.config) as board:
            return [tool.wire for tool in await board.permissions.accept_claims()]

    async def entries(self) -> list[Any]:
        async with Pegboard.open(self.config) as board:
            return list(await board.services.store.entries(limit=1000))


@pytest.fixture
def listed(tmp_path: Path) -> Listed:
    return Listed(tmp_path)


async def reads(client: Connected, name: str) -> str:
    return await client.text("call_read_only_tool", name=name)


async def test_a_hint_that_turns_while_the_gateway_runs_counts_once_it_is_accepted(listed: Listed) -> None:
    """G6: the next call is bound by what another process accepted; refusals name the real tool."""
    async with gateway(listed.config) as running, connected(running.url, HANDSHAKE) as client:
        assert await reads(client, "up__look") == "ran look"
        assert await reads(client, "up__wipe") == "'up__wipe' may change things: call it through call_tool."
        await listed.later(client, announce=False, look=True, wipe=True, tidy=True)
        await until(lambda: _says(client, "up__tidy", "may change things"))
        assert "may change things" in await reads(client, "up__wipe")
        assert await client.text("call_tool", name="up__wipe") == "ran wipe"
        assert await listed.accept() == ["up__wipe", "up__tidy"]
        assert await reads(client, "up__wipe") == "ran wipe"
        assert await reads(client, "up__tidy") == "ran tidy"
        assert await listed.accept() == []
    entries = await listed.entries()
    accepted = [entry.subject for entry in entries if (entry.kind, entry.decision) == ("pin", "accepted")]
    assert sorted(accepted) == ["up/tidy", "up/wipe"]
    refused = {entry.subject for entry in entries if entry.outcome == "not_read_only"}
    assert refused == {"up/wipe", "up/tidy"}


async def _says(client: Connected, name: str, words: str) -> bool:
    """Return whether a call is answered so; no call equals another, since a third equal failure is not carried out."""
    answered = await client.text("call_read_only_tool", name=name, arguments={"moment": time.monotonic_ns()})
    return words in answered


async def test_a_claim_that_was_taken_back_needs_to_be_accepted_again(listed: Listed) -> None:
    """G6: first sight is no licence for ever."""
    async with gateway(listed.config) as running, connected(running.url, ERAS[0]) as client:
        await listed.later(client, announce=False, look=False)
        await until(lambda: _says(client, "up__look", "may change things"))
        await listed.later(client, announce=False, look=True, mark=False)
        await until(lambda: _says(client, "up__mark", "may change things"))
        assert "may change things" in await reads(client, "up__look")
        assert await listed.accept() == ["up__look"]
        assert await reads(client, "up__look") == "ran look"


async def test_another_command_line_of_the_same_server_brings_no_trust(listed: Listed) -> None:
    """G6: what was first seen is under the name of the server, whatever is started for it."""
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(gateway(listed.config))
        client = await stack.enter_async_context(connected(running.url, ERAS[0]))
        assert await reads(client, "up__look") == "ran look"
        listed.now(announce=False, look=True, wipe=True)
        edit(listed.config, '"trust":', '"env": {"VERSION": "2"}, "trust":')
    async with Pegboard.open(listed.config) as board:
        assert [change.name for change in await board.accept()] == ["plugins.up"]
    async with gateway(listed.config) as running, connected(running.url, ERAS[0]) as client:
        assert await reads(client, "up__look") == "ran look"
        assert "may change things" in await reads(client, "up__wipe")
        assert await client.text("call_tool", name="up__wipe") == "ran wipe"


async def test_trust_that_is_given_later_believes_what_was_first_seen(listed: Listed) -> None:
    """G6: a server is seen from its first list on, trusted or not."""
    edit(listed.config, '"trust": "annotations"', '"shared": true')
    async with gateway(listed.config) as running, connected(running.url, ERAS[0]) as client:
        assert "may change things" in await reads(client, "up__look")
        await listed.later(client, announce=False, look=True, wipe=True, tidy=False)
        await until(lambda: _says(client, "up__tidy", "may change things"))
    assert await listed.accept() == []
    edit(listed.config, '"shared": true', '"trust": "annotations"')
    async with gateway(listed.config) as running, connected(running.url, ERAS[0]) as client:
        assert await reads(client, "up__look") == "ran look"
        assert "may change things" in await reads(client, "up__wipe")
