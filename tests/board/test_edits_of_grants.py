"""Edits of a configuration: each is on record, and one that widens can wait for a person, over a restart too."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from pegboard import Pegboard, assembly
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.specs import Confinement, PythonSpec
from pegboard.errors import StoreError
from pegboard.support import user_folders

TOOLS = '''
def {name}(what: str = "") -> str:
    """Do {name}."""
    return "{name}"


def {name}_more(what: str = "") -> str:
    """Do more."""
    return "more"
'''
NAMES = ("look", "write", "send", "wipe")
BY_OPERATOR = {"when": "always", "by": "operator"}
BASE: dict[str, Any] = {
    "reload": "ask",
    "store": "sqlite:///state.db",
    "approvals": {"by": "operator"},
    "plugins": {
        **{name: {"python": f"p_{name}"} for name in ("look", "write", "send")},
        "wipe": {
            "python": "p_wipe", "guards": {"wipe": {"what": {"deny": ["all"]}}},
            "approve": {"wipe_more": "always", "wipe": BY_OPERATOR},
            "category": "Security", "default_on": True,
        },
    },
    "toolkits": {"kit": {"tools": ["write"]}, "apart": {"tools": ["send"]}},
    "loadouts": {"mine": {"plugins": ["look"], "disabled": ["send"]}},
    "sub_apps": {"app": {"tool_names": ["look"]}},
    "tokens": {"ada": {"token": "ada-ada-ada-ada-ada", "agents": ["a"], "console": ["see"]}},
    "agents": {
        "a": {
            "tools": ["look", {"wipe": {"include_tools": ["wipe"]}}], "allowed_toolkits": ["kit"],
            "permissions": {"write_more": False, "send": False}, "sub_apps": ["app"],
        },
        "b": {"loadout": "mine", "worker_scope": "user", "discoverable": ["look"]},
    },
}  # fmt: skip
GONE = object()


def edited(*path_and_value: Any, base: dict[str, Any] = BASE) -> dict[str, Any]:
    """Return the base with one value set at a path; GONE removes it."""
    *path, last, value = path_and_value
    document = json.loads(json.dumps(base))
    part = document
    for name in path:
        part = part.setdefault(name, {})
    if value is GONE:
        del part[last]
    else:
        part[last] = value
    return document


WIDER = {
    "an address that is sent messages": edited("notify", [{"url": "https://hooks.example/x"}]),
    "a static tool": edited("agents", "a", "tools", ["look", "send", {"wipe": {"include_tools": ["wipe"]}}]),
    "an essential tool": edited("agents", "a", "essential", ["send"]),
    "a toolkit": edited("agents", "a", "allowed_toolkits", ["kit", "apart"]),
    "a member of a toolkit": edited("toolkits", "kit", "tools", ["write", "send"]),
    "a wider filter": edited("agents", "a", "tools", ["look", {"wipe": {"include_tools": ["wipe", "wipe_more"]}}]),
    "no filter": edited("agents", "a", "tools", ["look", "wipe"]),
    "a switch that is gone": edited("agents", "a", "permissions", {"send": False}),
    "a switch that is on": edited("agents", "a", "permissions", {"write_more": True, "send": False}),
    "a new switch": edited("agents", "b", "permissions", {"write": True}),
    "a pattern": edited("agents", "b", "discoverable", ["*"]),
    "a loadout": edited("agents", "b", "loadout", "full"),
    "a plugin in a loadout": edited("loadouts", "mine", "plugins", ["look", "write"]),
    "a category in a loadout": edited("loadouts", "mine", "categories", ["Security"]),
    "a parent of a loadout": edited("loadouts", "mine", "extends", "full"),
    "what a loadout disables": edited("loadouts", "mine", "disabled", []),
    "a plugin's category": edited("plugins", "write", "category", "Security"),
    "a plugin's prefix": edited("plugins", "write", "prefix", "other"),
    "another module": edited("plugins", "look", "python", "p_send"),
    "a guard that is gone": edited("plugins", "wipe", "guards", GONE),
    "a weaker guard": edited("plugins", "wipe", "guards", {"wipe": {"what": {"deny": ["everything"]}}}),
    "an approval that is gone": edited("plugins", "wipe", "approve", GONE),
    "a weaker approval": edited("plugins", "wipe", "approve", {"wipe_more": "destructive", "wipe": BY_OPERATOR}),
    "who may answer": edited("approvals", {"by": "client"}),
    "who may answer a rule": edited("plugins", "wipe", "approve", {"wipe_more": "always", "wipe": "always"}),
    "a predicate": edited("plugins", "look", "needs", {"": {"when": "p_send:send"}}),
    "a policy hook": edited("toolkits", "kit", "policy", {"python": "p_send:send"}),
    "a wider scope": edited("agents", "b", "worker_scope", "shared"),
    "an agent": edited("agents", "c", {"tools": ["send"]}),
    "an agent to delegate to": edited("agents", "a", "may_delegate", ["b"]),
    "its own settings": edited("agents", "a", "self_config", {"allow": ["switches"]}),
    "a sub-app": edited("sub_apps", "app", "tool_names", ["look", "send"]),
    "a token": edited("tokens", "eve", {"token": "eve-eve-eve-eve-eve", "agents": ["*"], "console": True}),
    "a token's agents": edited("tokens", "ada", "agents", ["*"]),
    "a token's rights": edited("tokens", "ada", "console", ["see", "configure"]),
    "another token": edited("tokens", "ada", "token", "eve-eve-eve-eve-eve"),
    "no tokens": edited("tokens", GONE),
    "live": edited("reload", "live"),
    "a toolkit that takes a switch's name": edited("toolkits", "send", {"tools": ["look"]}),
    "a plugin that takes a switch's name": edited("plugins", "write_more", {"python": "p_look"}),
}
NARROWER = {
    "fewer tools": edited("agents", "a", "tools", ["look"]),
    "a narrower filter": edited("agents", "a", "tools", ["look", {"wipe": {"include_tools": []}}]),
    "no toolkit": edited("agents", "a", "allowed_toolkits", []),
    "a switch": edited("agents", "a", "permissions", {"write_more": False, "send": False, "look": False}),
    "one more guard": edited("plugins", "look", "guards", {"look": {"what": {"deny": ["x"]}}}),
    "a stricter guard": edited("plugins", "wipe", "guards", {"wipe": {"what": {"deny": ["all", "most"]}}}),
    "one more approval": edited("plugins", "look", "approve", {"look": "always"}),
    "what a loadout disables": edited("loadouts", "mine", "disabled", ["send", "look"]),
    "a narrower scope": edited("agents", "a", "worker_scope", "user_agent"),
    "no such agent": edited("agents", "b", GONE),
    "fewer rights": edited("tokens", "ada", "console", False),
}


LOST: dict[str, set[tuple[object, ...]]] = {
    "another module": {
        ("runs", "look", "p_look"), ("unguarded", "look"), ("unapproved", "look", "look"),
        ("unapproved", "look", "wipe_more"),
    } | {("tool", agent, f"look/{name}", name) for agent in "ab" for name in ("look", "look_more")},
    "another token": {("enters", "ada-ada-ada-ada-ada", "a"), ("operates", "ada-ada-ada-ada-ada", "see")},
    "no tokens": {("enters", "ada-ada-ada-ada-ada", "a"), ("operates", "ada-ada-ada-ada-ada", "see")},
}  # fmt: skip
"""What is not there while an edit waits: of the code and tokens of before, the store has digests only."""


COMES_BACK = {"no tokens": ["tokens.ada", "tokens.ada.agents.a", "tokens.ada.console.see"]}
"""What narrowed with an edit, so that it waits to take that back."""


def of(document: dict[str, Any], *path_and_value: Any) -> dict[str, Any]:
    """Return another document with one value set at a path; GONE removes it."""
    return edited(*path_and_value, base=document)


INHERITS = {"top": {"disabled": ["send"]}, "mine": {"extends": "top", "plugins": ["look", "send"]}}
SHADOWS = {"minimal": {"disabled": ["send"]}, "mine": {"extends": "minimal", "plugins": ["send"]}}
DANGER = of(edited("toolkits", "danger", {"tools": ["send", "write"]}), "agents", "a", {
    "tools": ["look", "send", "write"], "permissions": {"danger": False},
})  # fmt: skip
SET_APART = of(DANGER, "toolkits", "danger", "tools", [{"send": {"where": "here"}}, "write"])
DISABLED = of(edited("loadouts", "mine", {"disabled": ["send"]}), "agents", "a", {"tools": ["send"], "loadout": "mine"})
TAKEN = of(edited("plugins", "shell", {"python": "p_look"}), "agents", "a", "tools", ["look", "shell"])
SERVER = of(edited("servers", "shell", {"command": "nowhere"}), "agents", "a", "tools", ["look", "shell"])
SHARED = of(
    edited("plugins", "calculator", {"shared_only": True}),
    "agents",
    "b",
    {"worker_scope": "user", "discoverable": ["calc*"]},
)
AWAITED = edited("agents", "b", "discoverable", ["sh*"])
BUILT_IN = edited("agents", "b", "loadout", "developer")
TOGETHER = {
    "a loadout that inherits no denial": (edited("loadouts", INHERITS), edited("loadouts", {
        **INHERITS, "mine": {"plugins": ["look", "send"]},
    })),
    "a loadout whose parent is gone too": (
        edited("loadouts", INHERITS), edited("loadouts", {"mine": {"plugins": ["look", "send"]}}),
    ),
    "a loadout in the place of a built-in one that is gone": (
        edited("loadouts", SHADOWS), edited("loadouts", {"mine": SHADOWS["mine"]}),
    ),
    "no loadout": (DISABLED, of(DISABLED, "agents", "a", "loadout", GONE)),
    "an entry that stands twice": (
        BASE, edited("agents", "a", "tools", ["look", "wipe", {"wipe": {"include_tools": ["wipe"]}}]),
    ),
    "a member that is not switched off any more": (DANGER, of(DANGER, "toolkits", "danger", "tools", ["write"])),
    "a part of a member that is not": (
        DANGER, of(DANGER, "toolkits", "danger", "tools", ["write", {"send": {"include_tools": ["send_more"]}}]),
    ),
    "a toolkit that was switched off and is gone": (DANGER, of(DANGER, "toolkits", "danger", GONE)),
    "one whose member has settings": (SET_APART, of(SET_APART, "toolkits", "danger", GONE)),
    "code that gives its name to an installed plugin": (TAKEN, of(TAKEN, "plugins", "shell", GONE)),
    "a server that gives its name to one": (SERVER, of(SERVER, "servers", GONE)),
    "an installed plugin that works apart for each user": (
        SHARED, of(SHARED, "plugins", "calculator", {"shared_only": False}),
    ),
    "a plugin that a pattern waits for": (AWAITED, of(AWAITED, "plugins", "shell", {"category": "Security"})),
    "one that a built-in one waits for": (BUILT_IN, of(BUILT_IN, "plugins", "calculator", {"category": "Security"})),
}  # fmt: skip


@pytest.fixture
def config(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / f"p_{name}.py").write_text(TOOLS.format(name=name))
    write(tmp_path / "pegboard.yaml", BASE)
    return tmp_path / "pegboard.yaml"


def write(path: Path, document: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(document))


async def powers(board: Pegboard) -> set[tuple[object, ...]]:
    """Return what someone may, by every part of a configuration that says so."""
    await board.ready()
    found: set[tuple[object, ...]] = set()
    for agent in board.world.agents.values():
        plain = CompiledPermissions(board.world, agent)
        found |= {("tool", agent.name, tool.id, tool.wire) for tool in plain.permitted}
        found |= {("delegates", agent.name, name) for name in agent.may_delegate}
        found |= {("sets", agent.name, name) for name in agent.self_config}
        found |= {("client answers", agent.name)} if agent.approvals_by == "client" else set()
        found |= {("shared", agent.name)} if agent.worker_scope == "shared" else set()
        for app in agent.sub_apps:
            found |= {("sub-app", app, member.name) for member in board.world.sub_apps[app]}
    for spec in (one for one in board.configuration.specs.values() if isinstance(one, PythonSpec)):
        denied: list[str] = spec.guards.get("wipe", {}).get("what", {}).get("deny", [])
        found |= {("runs", spec.name, spec.target)} | ({("unguarded", spec.name)} if "all" not in denied else set())
        found |= {("unapproved", spec.name, tool) for tool in ("look", "wipe_more") if tool not in spec.approve}
        found |= {("asks by chance", spec.name, tool) for tool, rule in spec.approve.items() if "destructive" in rule}
        found |= {
            ("anybody answers", spec.name) for tool, rule in spec.approve.items() if (tool, rule) == ("wipe", "always")
        }
        found |= {("asks", predicate) for predicate in spec.when.values()}
    found |= {("hook", kit.policy_hook) for kit in board.world.toolkits.values() if kit.policy_hook}
    for token in board.configuration.tokens:
        if token.principal:
            found |= {("enters", token.value, agent) for agent in ("*",) if token.agents is None}
            found |= {("enters", token.value, agent) for agent in token.agents or ()}
            found |= {("operates", token.value, right) for right in token.rights}
    found |= {("anybody",)} if not board.configuration.tokens else set()
    found |= {("live",)} if board.configuration.reload == "live" else set()
    return found


async def test_nothing_that_widens_counts_before_a_person_accepts_it(config: Path) -> None:
    """P10: whatever part of a file is edited; the same file again is as it was."""
    async with Pegboard.open(config) as board:
        before = await powers(board)
        for name, document in WIDER.items():
            write(config, document)
            problems = await board.reload()
            assert [problem.severity for problem in problems if problem.code == "waits"], name
            after = await powers(board)
            assert after <= before, (name, after - before)
            write(config, BASE)
            await board.reload()
            assert [change.name for change in board.waiting] == COMES_BACK.get(name, []), name
            await board.accept(by="ada")
            assert await powers(board) == before, name
            assert before - after <= LOST.get(name, set()), (name, before - after)


async def test_what_widens_by_what_parts_of_a_file_say_together_waits(config: Path) -> None:
    """P10: a part that looks like less may have taken something away, or given its place to something else."""
    async with Pegboard.open(config) as board:
        for name, (was, document) in TOGETHER.items():
            write(config, was)
            await board.reload()
            await board.accept(by="ada")
            before = await powers(board)
            write(config, document)
            assert [problem for problem in await board.reload() if problem.code == "waits"], name
            assert await powers(board) <= before, (name, await powers(board) - before)
            await board.accept(by="ada")
            assert board.waiting == (), name
            assert await powers(board) - before, name


async def test_a_toolkit_that_is_switched_off_at_run_time_goes_on_denying_what_it_held(config: Path) -> None:
    """P10, P2: until a person accepts that it holds less, over a restart too."""
    was = edited("toolkits", "danger", {"tools": ["look"]})
    write(config, was)
    async with Pegboard.open(config) as board:
        assert (await (await board.session(agent="a", session_id="s")).call("look", {})).status == "ok"
        await board.permissions.set("a", "danger", False)
        write(config, of(was, "toolkits", "danger", GONE))
    async with Pegboard.open(config) as board:
        assert [change.name for change in board.waiting] == ["toolkits.danger", "toolkits.danger.tools.look"]
        assert (await (await board.session(agent="a", session_id="s")).call("look", {})).status == "not_found"


@pytest.mark.parametrize("name", ["no filter", "a guard that is gone", "live"])
async def test_what_widens_waits_over_a_restart_until_it_is_accepted(config: Path, name: str) -> None:
    """P10, X4: then the file counts, as a first start takes it, and the records name who accepted it."""
    async with Pegboard.open(config) as board:
        before = await powers(board)
    write(config, WIDER[name])
    async with Pegboard.open(config) as board:
        shown = board.waiting
        assert shown
        assert await powers(board) <= before
    async with Pegboard.open(config) as board:
        assert board.waiting == shown
        assert await board.accept(by="ada") == shown
        assert board.waiting == ()
        records = await board.services.store.entries(kind="permission", limit=50)
        assert {record.subject for record in records if record.by == "ada"} == {change.name for change in shown}
        accepted = await powers(board)
    (config.parent / "state.db").unlink()
    async with Pegboard.open(config) as board:
        assert await powers(board) == accepted > before


@pytest.mark.parametrize("store", ["sqlite:///other.db", "memory:", "sqlite:///before.db"])
async def test_no_other_store_lets_count_what_nobody_accepted(config: Path, store: str) -> None:
    """P10: neither one that knows nothing nor one that knows what was accepted long ago; the records are there."""
    write(config, of(WIDER["a pattern"], "store", "sqlite:///before.db"))
    async with Pegboard.open(config) as board:
        wide = await powers(board)
    write(config, BASE)
    async with Pegboard.open(config) as board:
        before = await powers(board)
        write(config, of(WIDER["a pattern"], "store", store))
        await board.reload()
        assert board.waiting
    both = of(of(WIDER["a pattern"], "store", store), "agents", "a", "allowed_toolkits", [])
    write(config, both)
    async with Pegboard.open(config) as board:
        waiting = [change.name for change in board.waiting]
        assert waiting == ["agents.b.discoverable.*", "agents.b.discoverable.look"]
        assert await powers(board) < before < wide
        records = await board.services.store.entries(kind="permission", limit=50)
        assert "agents.a.allowed_toolkits.kit" in {record.subject for record in records}
        await board.accept(by="ada")
    async with Pegboard.open(config) as board:
        assert board.waiting == ()
        assert await powers(board) - before


async def test_what_was_accepted_is_kept_for_this_user_alone_and_a_damaged_copy_is_one_clear_error(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P10, X5: no start takes a damaged copy for a first start; with `live` there is none."""
    monkeypatch.setenv("XDG_STATE_HOME", str(config.parent / "state"))
    async with Pegboard.open(config):
        pass
    (kept,) = (config.parent / "state" / "pegboard" / "accepted").iterdir()
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert "ada-ada" not in kept.read_text()
    content = kept.read_text()
    (config.parent / "state.db").unlink()
    for damaged in ("", "[]", "{}", "null", '{"store": "", "accepted": "{}"}', content[:-9], "\ud800"):
        kept.write_bytes(damaged.encode(errors="surrogatepass"))
        with pytest.raises(StoreError, match="cannot be read") as raised:
            async with Pegboard.open(config):
                pass
        assert (raised.value.code, str(kept) in raised.value.hint) == ("state_damaged", True)
    kept.write_text(content)
    write(config, WIDER["live"])
    async with Pegboard.open(config) as board:
        await board.accept(by="ada")
    assert '[["reload"],' not in kept.read_text().replace("\\", "")


async def test_one_file_is_one_configuration_however_its_path_is_written(config: Path) -> None:
    """P10: dots in a path make no first start of it."""
    async with Pegboard.open(config):
        write(config, WIDER["no filter"])
    (config.parent / "sub").mkdir()
    async with Pegboard.open(config.parent / "sub" / ".." / config.name) as board:
        assert board.waiting


async def test_what_narrows_counts_at_once(config: Path) -> None:
    """P10: under `ask` too, and no one is asked; to take it back widens."""
    async with Pegboard.open(config) as board:
        before = await powers(board)
        for name, document in NARROWER.items():
            write(config, document)
            assert not [problem for problem in await board.reload() if problem.code == "waits"], name
            after = await powers(board)
            assert after <= before, name
            assert board.configuration.agents.keys() == document["agents"].keys()
            write(config, BASE)
            await board.reload()
            assert board.waiting, name
            assert await powers(board) == after, name
            await board.accept(by="ada")
            assert await powers(board) == before, name


async def test_of_an_edit_that_widens_and_narrows_at_once_the_narrowing_counts(config: Path) -> None:
    """P10, X4: the records have what was before and what is after; what waits has none yet."""
    both = edited("agents", "a", "tools", ["send"])
    both["agents"]["a"]["permissions"] = {"write_more": False}
    async with Pegboard.open(config) as board:
        write(config, both)
        await board.reload()
        ada = await board.session(agent="a", session_id="thread")
        assert (await ada.call("look", {})).status == "not_found"
        assert (await ada.call("send", {})).status == "not_found"
        assert sorted(change.name for change in board.waiting) == ["agents.a.permissions.send", "agents.a.tools.send"]
        records = await board.services.store.entries(kind="permission")
        assert {record.decision for record in records} == {"changed"}
        assert {(record.agent, record.subject, record.reason, record.outcome) for record in records} == {
            ("a", "agents.a.tools.look", "agents.a.tools.look: granted → absent", "narrower"),
            (
                "a", "agents.a.tools.wipe", 'agents.a.tools.wipe: {"include": ["wipe"]} → absent', "narrower",
            ),
        }  # fmt: skip
        write(config, BASE)
        await board.reload()
        assert sorted(change.name for change in board.waiting) == ["agents.a.tools.look", "agents.a.tools.wipe"]


async def test_under_live_every_edit_counts_and_leaves_a_record_of_each_grant(config: Path) -> None:
    """P10, X4: while it runs, and while it did not; equal files leave none."""
    live = edited("reload", GONE)
    write(config, live)
    async with Pegboard.open(config) as board:
        assert await board.services.store.entries(kind="permission") == []
        write(config, {**live, "agents": {**live["agents"], "a": {"tools": ["look", "send"]}}})
        await board.reload()
        await board.reload()
        first = await board.services.store.entries(kind="permission")
        assert {record.subject: record.outcome for record in first} == {
            "agents.a.tools.send": "wider", "agents.a.permissions.send": "wider",
            "agents.a.permissions.write_more": "wider", "agents.a.tools.wipe": "narrower",
            "agents.a.allowed_toolkits.kit": "narrower", "agents.a.sub_apps.app": "narrower",
        }  # fmt: skip
        assert len(first) == 6
    write(config, live)
    async with Pegboard.open(config) as board:
        assert len(await board.services.store.entries(kind="permission")) == 12
    async with Pegboard.open(config) as board:
        assert len(await board.services.store.entries(kind="permission")) == 12


async def test_only_what_was_shown_is_accepted(config: Path) -> None:
    """P10: what is edited meanwhile waits on."""
    async with Pegboard.open(config) as board:
        wider = edited("agents", "a", "essential", ["send"])
        write(config, wider)
        await board.reload()
        shown = board.waiting
        wider["agents"]["a"]["tools"] = ["look", "wipe"]
        write(config, wider)
        assert [change.name for change in await board.accept(shown, by="ada")] == ["agents.a.essential.send"]
        assert [change.name for change in board.waiting] == ["agents.a.tools.wipe"]


@pytest.mark.parametrize("store", ["sqlite:///state.db", "memory:"])
async def test_what_another_process_accepts_counts_here(config: Path, store: str) -> None:
    """P10: they share the store, or the user's state folder where each has a store of its own."""
    write(config, edited("store", store))
    async with Pegboard.open(config, watch=True) as serving:
        write(config, of(WIDER["no filter"], "store", store))
        await serving.reload()
        counts = asyncio.Event()
        serving.on("configuration_changed", lambda _: None if serving.waiting else counts.set())
        async with Pegboard.open(config) as command:
            await command.accept(by="ada")
        await asyncio.wait_for(counts.wait(), 10)
        assert "wipe_more" in (await (await serving.session(agent="a", session_id="s")).surface()).names


async def test_a_switch_that_another_process_sets_is_no_edit_of_what_waits(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: asyncio.Queue[int] = asyncio.Queue()
    monkeypatch.setattr(assembly, "WATCH_SECONDS", 0.01)
    async with Pegboard.open(config, watch=True) as serving, Pegboard.open(config) as command:
        edits: list[object] = []
        edited, look = asyncio.Event(), serving.services.store.accepted
        serving.on("configuration_changed", lambda _: (edits.append(_), edited.set()))
        write(config, WIDER["no filter"])
        await asyncio.wait_for(edited.wait(), 60)
        edits.clear()

        async def seen(name: str) -> str | None:
            looks.put_nowait(len(edits))
            return await look(name)

        monkeypatch.setattr(serving.services.store, "accepted", seen)
        await asyncio.wait_for(looks.get(), 60)
        await command.permissions.set("a", "look", False)
        assert await asyncio.wait_for(looks.get(), 60) == 0


async def test_no_secret_is_in_what_is_kept_or_recorded(config: Path) -> None:
    """X5: settings, tokens and environments are told apart by keyed digests."""
    document = edited("agents", "a", "tools", ["look"])
    document["servers"] = {"up": {"command": "nowhere", "env": {"KEY": "s3cr3t-one"}}}
    write(config, document)
    async with Pegboard.open(config) as board:
        document["servers"]["up"]["env"]["KEY"] = "s3cr3t-two"
        document["tokens"]["ada"]["token"] = "s3cr3t-three-three"
        write(config, document)
        problems = await board.reload()
        assert {change.name for change in board.waiting} == {"plugins.up", "tokens.ada"}
        assert "s3cr3t" not in str(problems)
        assert not [p for p in config.parent.iterdir() if p.name.startswith("state") and b"s3cr3t" in p.read_bytes()]
        tools = await board.session(agent="a", session_id="thread")
        assert "up" not in {tool.plugin for tool in (await tools.snapshot()).permissions.permitted}


@pytest.mark.parametrize(
    ("before", "after", "waits"),
    [
        ("additions", "trust", True),
        ("ask", "additions", True),
        ("ask", "trust", True),
        ("trust", "additions", False),
        ("additions", "ask", False),
        ("trust", "ask", False),
    ],
)
async def test_pins_that_let_more_pass_wait_for_a_person(tmp_path: Path, before: str, after: str, waits: bool) -> None:
    """P10, A4: for a server or for all of them; fewer count at once."""
    server = {"url": "http://127.0.0.1:9/mcp"}
    for where in ("server", "defaults"):
        file = tmp_path / where / "pegboard.yaml"
        file.parent.mkdir()
        in_force: list[str] = []
        for policy in (before, after):
            own = {"pins": policy} if where == "server" else {}
            rest = {"defaults": {"pins": policy}} if where == "defaults" else {}
            document = {"reload": "ask", "store": "sqlite:///state.db", "servers": {"up": {**server, **own}}, **rest}
            await asyncio.to_thread(file.write_text, json.dumps(document))
            async with Pegboard.open(file) as board:
                in_force.append(board.services.loader.specs["up"].pins)  # type: ignore[union-attr]
                assert bool(board.waiting) == (waits and policy == after)
        assert in_force == [before, before if waits else after]


CONFINED: list[tuple[str, Any, Any, bool]] = [
    ("not confined any more", {"write": ["data"]}, None, True),
    ("nor by one that says more", {"write": [], "network": "none"}, False, True),
    ("a folder to write", {"write": ["data"]}, {"write": ["data", "more"]}, True),
    ("its own folder to write", {"write": []}, True, True),
    ("a file to read", {"write": []}, {"write": [], "read": ["more"]}, True),
    ("some of the network for none", {"write": [], "network": "none"}, {"write": [], "network": [443]}, True),
    ("one more port", {"write": [], "network": [443]}, {"write": [], "network": [443, 53]}, True),
    ("the whole network for some", {"write": [], "network": [443]}, {"write": []}, True),
    ("it may run unconfined", {"write": []}, {"write": [], "if_possible": True}, True),
    ("less to write and more to read", {"write": ["data"]}, {"write": [], "read": ["more"]}, True),
    ("a part of what it wrote: a link of its own, maybe", {"write": ["data", "data/x"]}, {"write": ["data/x"]}, True),
    ("what it reads of that", {"write": ["data"], "read": ["data/x"]}, {"write": [], "read": ["data/x"]}, True),
    ("confined", None, {"write": ["data"]}, False),
    ("nothing to write", {"write": ["data"]}, {"write": []}, False),
    ("less to write", {"write": ["data", "more"]}, {"write": ["more"]}, False),
    ("what it wrote to read", {"write": ["data", "more"]}, {"write": ["more"], "read": ["data"]}, False),
    ("nothing to read", {"write": [], "read": ["more"]}, {"write": []}, False),
    ("some of the network", {"write": []}, {"write": [], "network": [443, 53]}, False),
    ("less of it", {"write": [], "network": [443, 53]}, {"write": [], "network": [443]}, False),
    ("none of it", {"write": [], "network": [443]}, {"write": [], "network": "none"}, False),
    ("never unconfined", {"write": [], "if_possible": True}, {"write": []}, False),
]  # fmt: skip
"""Of these none writes before the folder in which the configuration lies."""
CONFINED_PARTS = {
    ("servers", "up"): {"command": "nowhere"},
    ("plugins", "look"): {"python": "p_look"},
    ("plugins", "calculator"): {},
}
CONFINEMENTS = sorted(f"plugins.{name}.confine" for _, name in CONFINED_PARTS)


def confined(confine: Any) -> dict[str, Any]:
    """Return a document in which a server, code of the project and an installed plugin are confined."""
    found = edited("agents", "a", "tools", ["look", "up", "calculator"])
    for (section, name), part in CONFINED_PARTS.items():
        found = of(found, section, name, part if confine is None else {**part, "confine": confine})
    return found


def confinements(board: Pegboard) -> list[Confinement | None]:
    return [board.configuration.specs[name].confine for _, name in CONFINED_PARTS]


@pytest.mark.parametrize(
    ("before", "after", "waits"), [case[1:] for case in CONFINED], ids=[case[0] for case in CONFINED]
)
async def test_a_confinement_that_lets_more_through_waits_for_a_person(
    config: Path, before: Any, after: Any, waits: bool
) -> None:
    """P10, A7: of servers and of plugins, in a file's own code or installed; what lets less through counts at once."""
    write(config, confined(before))
    async with Pegboard.open(config) as board:
        was = confinements(board)
    write(config, confined(after))
    async with Pegboard.open(config) as board:
        assert [change.name for change in board.waiting] == (CONFINEMENTS if waits else [])
        assert (confinements(board) == was) == waits
        await board.accept(by="ada")
        accepted = confinements(board)
        records = await board.services.store.entries(kind="permission", limit=50)
        assert {(record.subject, record.outcome, record.by) for record in records} == {
            (name, "wider" if waits else "narrower", "ada" if waits else "") for name in CONFINEMENTS
        }
        write(config, confined(before))
        await board.reload()
        assert waits or [change.name for change in board.waiting] == CONFINEMENTS
        write(config, confined(after))
        await board.reload()
    (config.parent / "state.db").unlink()
    shutil.rmtree(user_folders.state() / "accepted")
    async with Pegboard.open(config) as board:
        assert accepted == confinements(board) != was


@pytest.mark.parametrize("after", [None, {"write": ["."]}, {"write": ["data"]}, {"write": []}])
async def test_where_its_folder_has_the_configuration_a_confinement_waits_with_the_file(
    config: Path, after: Any
) -> None:
    """P10, A7: also one that lets less through, since the plugin may have written it; `.` gives a home folder, too."""
    write(config, confined(True))
    async with Pegboard.open(config) as board:
        was = confinements(board)
        write(config, confined(after))
        await board.reload()
        assert [change.name for change in board.waiting] == [config.name]
        assert confinements(board) == was
    async with Pegboard.open(config) as board:
        assert [change.name for change in board.waiting] == [config.name]
        assert confinements(board) == was
        await board.accept(by="ada")
        assert board.waiting == ()
        assert confinements(board) != was
        records = await board.services.store.entries(kind="permission", limit=50)
        assert {(record.subject, record.by) for record in records} == {
            (name, "ada") for name in (config.name, *CONFINEMENTS)
        }


async def test_the_record_says_what_a_plugin_was_and_is_confined_to(config: Path) -> None:
    """P10, X4, A7: also under `live`, where it holds until a person accepts that it is gone."""
    live = edited("reload", GONE)
    write(config, of(live, "plugins", "look", "confine", {"write": [], "network": [443]}))
    async with Pegboard.open(config) as board:
        write(config, live)
        await board.reload()
        assert [change.name for change in board.waiting] == ["plugins.look.confine"]
        assert board.configuration.specs["look"].confine is not None
        await board.accept(by="ada")
        assert board.configuration.specs["look"].confine is None
        (record,) = await board.services.store.entries(kind="permission")
    was = f'{{"folder": "{config.parent}", "network": [443], "write": []}}'
    assert record.reason == f"plugins.look.confine: {was} → absent"
    assert (record.outcome, record.by) == ("wider", "ada")


@pytest.mark.parametrize(
    ("plugin", "agent"), [("calculator", {"tools": ["calculator"]}), ("shell", {"loadout": "full"})]
)
async def test_an_installed_plugin_stays_confined_once_the_file_says_nothing_of_it(
    config: Path, plugin: str, agent: dict[str, Any]
) -> None:
    """P10, A7: an agent's entry or a loadout brings it in still."""
    bare = edited("agents", "b", agent)
    write(config, of(bare, "plugins", plugin, {"confine": {"write": []}}))
    async with Pegboard.open(config) as board:
        write(config, bare)
        await board.reload()
        assert [change.name for change in board.waiting] == [f"plugins.{plugin}.confine"]
        assert board.configuration.specs[plugin].confine is not None
        await board.accept(by="ada")
        assert board.configuration.specs[plugin].confine is None


async def test_an_installed_plugin_that_a_pattern_reaches_does_not_come_back_unconfined(config: Path) -> None:
    """P10, A7: it is gone once the file says nothing of it, and to be there again is granted again."""
    bare = edited("agents", "b", {"discoverable": ["calc*"]})
    write(config, of(bare, "plugins", "calculator", {"confine": {"write": []}}))
    async with Pegboard.open(config) as board:
        write(config, bare)
        await board.reload()
        assert (board.waiting, "calculator" in board.configuration.specs) == ((), False)
        write(config, of(bare, "plugins", "calculator", {}))
        await board.reload()
        assert [change.name for change in board.waiting] == ["plugins.calculator"]
        assert "calculator" not in board.configuration.specs
