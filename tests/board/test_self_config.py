"""An agent that looks at its own settings and changes what its operator allows."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client

from pegboard import Pegboard, Session
from pegboard.gateway import serving

TOOLS = '''
def look(what: str) -> str:
    """Look."""
    return what


def change(what: str) -> str:
    """Change."""
    return what
'''
EVERYTHING = ["switches", "loadout", "initial_toolkits", "lease"]


@asynccontextmanager
async def opened(folder: Path, allow: list[str] | None = None, **more: Any) -> AsyncIterator[Pegboard]:
    (folder / "things.py").write_text(TOOLS)
    (folder / "extras.py").write_text(TOOLS.replace("look", "peek").replace("change", "poke"))
    agent = {
        "tools": ["self_config", "look"],
        "allowed_toolkits": ["writing", "extra"],
        "permissions": {"poke": False},
        **({} if allow is None else {"self_config": {"allow": allow}}),
        **more,
    }
    document = {
        "store": "sqlite:///state.db",
        "plugins": {"things": {"python": "things", "category": "Git"}, "extras": {"python": "extras"}},
        "toolkits": {"writing": {"tools": ["change"]}, "extra": {"tools": ["extras"]}},
        "loadouts": {"only_things": {"plugins": ["things"]}, "nothing": {}},
        "agents": {"sea": agent, "other": {"tools": ["look"]}},
    }
    (folder / "pegboard.yaml").write_text(json.dumps(document))
    async with Pegboard.open(folder / "pegboard.yaml") as board:
        yield board


async def begun(board: Pegboard, agent: str = "sea", session_id: str = "thread") -> Session:
    return await board.session(agent=agent, session_id=session_id)


async def ask(session: Session, action: str, name: Any = None, value: Any = None) -> tuple[str, str]:
    given = {"action": action, "name": name, "value": value}
    answer = await session.call("self_config", {key: part for key, part in given.items() if part is not None})
    return answer.status, answer.result.content[0]["text"]


async def shown(session: Session) -> Any:
    return json.loads((await ask(session, "show"))[1])


async def test_only_an_agent_that_lists_it_has_it_and_without_leave_it_may_only_look(tmp_path: Path) -> None:
    """T3: `tools: [self_config]`; what the operator does not allow is refused."""
    async with opened(tmp_path) as board:
        sea, other = await begun(board), await begun(board, "other")
        assert "self_config" in (await sea.surface()).names
        assert "self_config" not in (await other.surface()).names
        assert (await other.call("self_config", {"action": "show"})).status == "not_found"
        assert (await shown(sea))["may_change"] == []
        for name, value in (("writing", False), ("loadout", "nothing"), ("initial_toolkits", []), ("lease", {})):
            assert await ask(sea, "set", name, value) == ("refused", f"'{name}' cannot be changed by you.")
            assert (await ask(sea, "unset", name))[0] == "refused"


async def test_a_switch_of_its_own_takes_away_and_gives_back_and_grants_nothing(tmp_path: Path) -> None:
    """P2, X4, P4: at once, in every session of the agent, on record; an operator's word stands above it."""
    async with opened(tmp_path, EVERYTHING) as board:
        sea = await begun(board)
        assert (await sea.load("writing")).status == "ok"
        await sea.end_turn()
        assert await ask(sea, "set", "change", False) == ("ok", "'change' is off.")
        assert (await sea.call("change", {"what": "x"})).status == "not_found"
        assert (await shown(sea))["set_by_yourself"] == {"change": False}
        assert (await board.permissions.show())["sea"] == {"poke": False}
        assert (await board.permissions.show("local"))["sea"] == {"poke": False, "change": False}
        record = (await board.services.store.entries(kind="permission"))[0]
        assert (record.by, record.session, record.decision) == ("agent sea", "thread", "off")
        assert await ask(sea, "unset", "change") == ("ok", "'change' is unchanged.")
        assert (await sea.call("change", {"what": "x"})).status == "ok"
        assert (await ask(sea, "set", "poke", True))[0] == "not_found", "an operator has switched it off"
        assert (await ask(sea, "set", "nonsense", True))[0] == "not_found"
        await board.permissions.set("sea", "change", False, by="ada")
        assert (await ask(sea, "set", "change", True))[0] == "not_found"
        await board.permissions.set("sea", "change", None)
        await ask(sea, "set", "change", False)
        await board.permissions.set("sea", "change", True)
        assert (await sea.call("change", {"what": "x"})).status == "not_found"
        await board.permissions.set("sea", "change", None, principal="local")
        assert (await sea.call("change", {"what": "x"})).status == "ok"


async def test_its_initial_toolkits_and_lease_are_within_its_file(tmp_path: Path) -> None:
    """T2, S5: only allowed toolkits; over a restart; undone by unset."""
    async with opened(tmp_path, EVERYTHING) as board:
        sea = await begun(board)
        assert (await ask(sea, "set", "initial_toolkits", ["writing"]))[0] == "ok"
        assert (await ask(sea, "set", "initial_toolkits", ["extra"]))[0] == "ok"
        assert "peek" in (await sea.surface()).names
        assert (await ask(sea, "set", "lease", {"kind": "idle", "turns": 2}))[0] == "ok"
        await sea.load("writing")
        assert str((await sea.snapshot()).state.leases[0].until) == "idle(2)"
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        sea = await begun(board)
        found = await shown(sea)
        assert found["initial_toolkits"] == ["extra"]
        assert found["set_by_yourself"] == {"initial_toolkits": ["extra"], "lease": {"kind": "idle", "turns": 2}}
        for name in ("initial_toolkits", "lease"):
            assert (await ask(sea, "unset", name))[0] == "ok"
        assert (await shown(sea))["set_by_yourself"] == {}
        assert "peek" not in (await sea.surface()).names


MEANT_BY_NOBODY: list[tuple[Any, Any]] = [
    ("initial_toolkits", ["writing", "nope"]), ("initial_toolkits", "writing"), ("initial_toolkits", [["writing"]]),
    ("lease", {"kind": "always"}), ("lease", {"kind": "idle"}), ("lease", {"kind": "idle", "turns": True}),
    ("lease", {"kind": "idle", "turns": -1}), ("lease", "idle"), ("lease", {"kind": "turn", "more": 1}),
    ("change", "false"), ("change", 0), ("", False), ("x" * 600, False), (3, False),
]  # fmt: skip


async def test_what_cannot_be_meant_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    """X2: one sentence, nothing stored."""
    async with opened(tmp_path, EVERYTHING) as board:
        sea = await begun(board)
        for name, value in MEANT_BY_NOBODY:
            status, message = await ask(sea, "set", name, value)
            assert (status, "\n" in message) == ("invalid_arguments", False), (name, value)
        assert (await board.services.store.stored_permissions()).switches == {}


async def test_its_loadout_only_narrows_and_never_undoes_what_another_has_set(tmp_path: Path) -> None:
    """L7, P8: nor does a child get wider than its kind."""
    async with opened(tmp_path, EVERYTHING, discoverable=["*"]) as board:
        sea = await begun(board)
        assert (await ask(sea, "set", "loadout", "nope"))[0] == "not_found"
        assert (await ask(sea, "set", "loadout", "nothing"))[0] == "ok"
        assert (await sea.call("look", {"what": "x"})).is_error
        assert (await ask(sea, "unset", "loadout"))[0] == "ok"
        assert (await sea.call("look", {"what": "x"})).status == "ok"
        await sea.use_loadout("nothing")
        for action, value in (("set", "only_things"), ("unset", None)):
            assert (await ask(sea, action, "loadout", value))[0] == "refused"
        await sea.use_loadout(None)
        child = await sea.child("task")
        status, message = await ask(child, "set", "loadout", "full")
        assert (status, "is wider than" in message) == ("refused", True)


async def test_a_client_of_the_gateway_changes_itself(tmp_path: Path) -> None:
    """G4: the tool is listed, and what it takes away is gone for that client."""
    async with (
        opened(tmp_path, ["switches"]) as board,
        serving(board, port=0, agent="sea") as url,
        Client(url) as client,
    ):
        assert "self_config" in [tool.name for tool in (await client.list_tools()).tools]
        assert not (await client.call_tool("look", {"what": "x"})).is_error
        await client.call_tool("self_config", {"action": "set", "name": "look", "value": False})
        assert "look" not in [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]


async def test_what_it_sets_counts_for_its_own_principal_and_agent_alone(tmp_path: Path) -> None:
    """P10, X4: switches, values and their taking back; over a restart; the record names the principal."""
    async with opened(tmp_path, EVERYTHING) as board:
        await board.ready()
        ada = await board.session(agent="sea", session_id="thread", principal="ada")
        bob = await board.session(agent="sea", session_id="thread", principal="bob")
        assert await ask(ada, "set", "look", False) == ("ok", "'look' is off.")
        assert (await ask(ada, "set", "lease", {"kind": "turn"}))[0] == "ok"
        assert (await ask(ada, "set", "initial_toolkits", ["extra"]))[0] == "ok"
        assert (await ada.call("look", {"what": "x"})).status == "not_found"
        assert (await bob.call("look", {"what": "x"})).status == "ok"
        assert (await shown(bob))["set_by_yourself"] == {}
        assert (await shown(bob))["initial_toolkits"] == []
        record = (await board.services.store.entries(kind="permission", limit=1))[0]
        assert (record.principal, record.agent) == ("ada", "sea")
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        ada = await board.session(agent="sea", session_id="other", principal="ada")
        bob = await board.session(agent="sea", session_id="other", principal="bob")
        assert (await shown(ada))["initial_toolkits"] == ["extra"]
        assert (await ask(bob, "unset", "look"))[1].endswith("nothing was changed.")
        assert (await ada.call("look", {"what": "x"})).status == "not_found"
        assert (await ask(ada, "unset", "look"))[0] == "ok"
        assert (await ada.call("look", {"what": "x"})).status == "ok"


async def test_what_a_child_sets_counts_for_it_alone_and_ends_with_it(tmp_path: Path) -> None:
    """P8, P10: neither its parent nor another child, a restart or the store knows of it; its own children are bound."""
    async with opened(tmp_path, EVERYTHING) as board:
        sea = await begun(board)
        child, other = await sea.child("general"), await sea.child("general")
        assert (await child.call("look", {"what": "x"})).status == "ok"
        assert await ask(child, "set", "look", False) == ("ok", "'look' is off.")
        assert (await child.call("look", {"what": "x"})).status == "not_found"
        assert (await (await child.child("general")).call("look", {"what": "x"})).status == "not_found"
        for free in (sea, other, await sea.child("general")):
            assert (await free.call("look", {"what": "x"})).status == "ok"
        store = board.services.store
        assert (await store.stored_permissions())[1:3] == ({}, {})
        assert (await store.entries(kind="permission", limit=1))[0].session.startswith("thread/general/")
        assert await ask(child, "unset", "look") == ("ok", "'look' is unchanged.")
        assert (await child.call("look", {"what": "x"})).status == "ok"
        await ask(sea, "set", "look", False)
        assert (await ask(child, "unset", "look"))[1].endswith("nothing was changed.")
        assert (await child.call("look", {"what": "x"})).status == "not_found"


async def test_an_operators_switch_for_a_principal_takes_the_place_of_the_agents_own(tmp_path: Path) -> None:
    """P2, P10: for that principal alone; the values that it has set stay."""
    async with opened(tmp_path, EVERYTHING) as board:
        await board.ready()
        ada, bob = [await board.session(agent="sea", session_id="t", principal=name) for name in ("ada", "bob")]
        for session in (ada, bob):
            await ask(session, "set", "look", False)
        await ask(ada, "set", "lease", {"kind": "turn"})
        await board.permissions.set("sea", "look", True, principal="ada")
        assert (await shown(ada))["set_by_yourself"] == {"lease": {"kind": "turn"}}
        assert (await ada.call("look", {"what": "x"})).status == "ok"
        assert (await bob.call("look", {"what": "x"})).status == "not_found"


async def test_a_switch_for_one_principal_counts_beside_the_agents_and_false_of_either_denies(tmp_path: Path) -> None:
    """P2: on grants to that principal alone; it is unset by itself."""
    async with opened(tmp_path) as board:
        await board.ready()
        ada = await board.session(agent="other", session_id="thread", principal="ada")
        bob = await board.session(agent="other", session_id="thread", principal="bob")
        await board.permissions.set("other", "peek", True, principal="ada", by="root")
        assert [(await one.call("peek", {"what": "x"})).status for one in (ada, bob)] == ["ok", "not_found"]
        await board.permissions.set("other", "look", False, principal="ada")
        assert [(await one.call("look", {"what": "x"})).status for one in (ada, bob)] == ["not_found", "ok"]
        await board.permissions.set("other", "look", True)
        assert (await ada.call("look", {"what": "x"})).status == "not_found"
        await board.permissions.set("other", "peek", False)
        assert (await ada.call("peek", {"what": "x"})).status == "not_found"
        assert await board.permissions.show("ada") == {
            "sea": {"poke": False}, "other": {"look": False, "peek": False},
        }  # fmt: skip
        assert (await board.permissions.show())["other"] == {"look": True, "peek": False}
        await board.permissions.set("other", "look", None, principal="ada")
        assert (await ada.call("look", {"what": "x"})).status == "ok"
