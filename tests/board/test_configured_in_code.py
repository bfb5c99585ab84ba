"""Configurations, toolkits and loadouts in code: checked like a file, in use at the next request."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pegboard import ConfigError, Loadout, LoadoutBuilder, Pegboard, Session, UsageError

MANAGED = {"list_toolkits", "load_tools", "unload_tools", "search_tools"}
PLUGINS = {"git": {"python": "git_tools"}, "web": {"python": "web_tools"}, "notes": {"python": "notes_tools"}}
TOOLS = {"git": "log", "web": "fetch", "notes": "add"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a module for each plugin."""
    for name, tool in TOOLS.items():
        (tmp_path / f"{name}_tools.py").write_text(f'def {tool}() -> str:\n    """Do {tool}."""\n    return "{tool}"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config(**agent: Any) -> dict[str, Any]:
    return {"store": "memory:", "plugins": PLUGINS, "agents": {"assistant": agent}}


async def names(session: Session) -> set[str]:
    return set((await session.surface()).names) - MANAGED


# -- a mapping -------------------------------------------------------------------------------------


async def test_a_mapping_is_a_configuration(folder: Path) -> None:
    """T11: what a file says, as if it lay in the working folder; variables are filled in, nothing is written."""
    said: dict[str, Any] = {**config(tools=["git"], role="${ROLE}"), "store": "sqlite:///state.db"}
    async with Pegboard.open(said, env={"ROLE": "reads"}) as board:
        session = await board.session(session_id="s")
        assert await names(session) == {"log"}
        assert board.agent("assistant").role == "reads"
        await session.end_turn()
        assert await board.reload() == []
    assert (folder / "state.db").is_file()
    assert said["agents"]["assistant"]["role"] == "${ROLE}"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (
            config(tools=["gti"]),
            "configuration: agents.assistant.tools[0]: 'gti' is not a known plugin or tool. Did you mean 'git'?",
        ),
        (config(tols=[]), "configuration: agents.assistant: the key 'tols' is not known here. Did you mean 'tools'?"),
        (
            config(tools={"git"}),
            "configuration: agents.assistant.tools: cannot contain a value of the type set. Give text, numbers, true",
        ),
        ({"agents": {1: {}}}, "configuration: agents: the key 1 is not text. Write it in quotes."),
        ({"agents": []}, "configuration: agents: expected a mapping, found a list. Write it as `key: value`."),
        (config(budget={"tools": "many"}), "configuration: agents.assistant.budget.tools: expected a whole number"),
    ],
)
async def test_a_mapping_is_checked_like_a_file(said: dict[Any, Any], problem: str) -> None:
    """T11, T1: one error says everything; a place is the path in the mapping."""
    with pytest.raises(ConfigError) as refused:
        async with Pegboard.open(said):
            pass
    assert str(refused.value).startswith("configuration cannot be used, one problem:\n")
    assert problem in str(refused.value)


async def test_a_mapping_that_holds_itself_is_refused() -> None:
    """T11: it has no end, the reading has."""
    endless: dict[str, Any] = {}
    endless["agents"] = endless
    with pytest.raises(ConfigError, match="is nested more than 64 levels deep"):
        async with Pegboard.open(endless):
            pass


async def test_what_is_neither_path_nor_mapping_is_refused() -> None:
    """T11: the type is named."""
    with pytest.raises(UsageError, match="cannot be a value of the type int"):
        async with Pegboard.open(3):  # type: ignore
            pass


# -- toolkits --------------------------------------------------------------------------------------

RESEARCH: Mapping[str, Any] = {
    "name": "research",
    "description": "Look things up",
    "tools": ["web", "notes/add"],
    "policy": "Prefer {tools}.",
    "focus": {"when": "look up"},
    "label": "Research",
    "icon": "book",
}


async def test_a_toolkit_in_code_counts_like_one_of_the_file() -> None:
    """T11, T6: agents name it; it carries policy, focus and what people see."""
    said = config(allowed_toolkits=["research"], initial_toolkits=["research"])
    async with Pegboard.open(said, toolkits=[RESEARCH]) as board:
        session = await board.session(session_id="s")
        surface = await session.surface(message="please look up")
        assert set(surface.names) - MANAGED == {"fetch", "add"}
        assert "Prefer fetch, add." in surface.policy
        assert surface.focus is not None
        shown = next(one for one in await board.permissions.panel("assistant") if one["name"] == "research")
        assert (shown["label"], shown["icon"]) == ("Research", "book")


@pytest.mark.parametrize(
    ("toolkit", "problem"),
    [
        ({"name": "x", "tools": ["gti"]}, "code: toolkits.x.tools[0]: 'gti' is not a known plugin or tool."),
        ({"name": "x", "tools": ["delegate"]}, "code: toolkits.x.tools[0]: 'delegate' is reserved"),
        ({"name": "x", "tools": ["git", "git"]}, "code: toolkits.x.tools[1]: 'git' is listed twice in this toolkit."),
        ({"name": "x", "tools": 5}, "code: toolkits.x.tools: expected a list of names"),
        ({"name": "x", "focus": {"when": "("}}, "code: toolkits.x.focus"),
        ({"tools": ["git"]}, "code: toolkits[0]: 'name' is missing, or no text."),
        ("git", "code: toolkits[0]: expected a mapping, found a value of the type str."),
    ],
)
async def test_toolkits_in_code_are_checked_like_those_of_a_file(toolkit: Any, problem: str) -> None:
    """T11, T1, T3: at the start, and at once where they are registered; nothing changes then."""
    with pytest.raises(ConfigError) as refused:
        async with Pegboard.open(config(), toolkits=[toolkit]):
            pass
    assert problem in str(refused.value)
    if isinstance(toolkit, dict):
        async with Pegboard.open(config()) as board:
            with pytest.raises(ConfigError) as refused:
                board.toolkits.register(toolkit)
            assert problem in str(refused.value)
            assert board.toolkits.all() == ()


async def test_on_one_name_the_file_counts_and_the_clash_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """T11: file, then code; whoever gave it in code is told."""
    named = config(allowed_toolkits=["research"], initial_toolkits=["research"])
    said = {**named, "toolkits": {"research": {"tools": ["git"]}}}
    async with Pegboard.open(said, toolkits=[RESEARCH]) as board:
        clash = "toolkit 'research' is also given by code; the one in the file is used."
        assert f"configuration: toolkits.research: {clash}" in caplog.text
        assert [problem.code for problem in board.configuration.problems] == ["shadowed"]
        assert await names(await board.session(session_id="s")) == {"log"}


async def test_a_registered_toolkit_reaches_live_sessions_at_their_next_request() -> None:
    """T11: of an agent that may load it by a switch; a later one of its name replaces it."""
    async with Pegboard.open(config(tools=["git"])) as board:
        session = await board.session(session_id="s")
        assert await names(session) == {"log"}
        board.toolkits.register({"name": "research", "tools": ["web"]})
        await board.permissions.set("assistant", "research", value=True)
        assert await names(session) == {"log", "fetch"}
        board.toolkits.register({"name": "research", "tools": ["notes"]})
        assert await names(session) == {"log", "add"}
        assert await board.reload() == []
        found = board.toolkits.get("research")
        assert found is not None
        assert [member.name for member in found.members] == ["notes"]


async def test_an_agent_of_a_file_without_agents_may_load_what_code_gives() -> None:
    """T11: it may load everything."""
    async with Pegboard.open({"store": "memory:", "plugins": PLUGINS}, toolkits=[RESEARCH]) as board:
        session = await board.session(session_id="s")
        assert (await session.load("research")).status == "ok"


# -- loadouts --------------------------------------------------------------------------------------

REVIEWER = LoadoutBuilder.create("reviewer").include_category("Git").add_discoverable("web").build()


async def test_agents_sessions_and_children_name_loadouts_of_code() -> None:
    """L9, L7: given at the start, or registered; the registry in use is `board.loadouts`."""
    async with Pegboard.open(config(loadout="reviewer"), loadouts=[REVIEWER]) as board:
        session = await board.session(session_id="s")
        assert await names(session) == {"log"}
        assert (await session.load("web")).status == "ok"
        assert (await session.use_loadout("none-yet")).status == "refused"
        board.loadouts.register(Loadout(name="Webs", plugins=("web",)))
        assert (await session.use_loadout("webs")).status == "ok"
        assert await names(session) == {"fetch"}
        assert board.loadouts.get("WEBS") is not None
        assert board.loadouts.resolve_active("webs", ["git", "web"]) == {"web"}
        assert [loadout.name for loadout in board.loadouts.all()][-2:] == ["reviewer", "Webs"]


async def test_a_loadout_of_code_shadows_a_built_in_one_and_not_one_of_the_file() -> None:
    """L9, T11: file, then code, then built-in; `explore` has what `research` means then."""
    said: dict[str, Any] = {**config(tools=["git", "web", "notes"]), "loadouts": {"mine": {"plugins": ["git"]}}}
    async with Pegboard.open(said) as board:
        board.loadouts.register(Loadout(name="research", plugins=("notes",)))
        board.loadouts.register(Loadout(name="mine", plugins=("web",)))
        session = await board.session(session_id="s")
        assert await names(await session.child("explore")) == {"add"}
        await session.use_loadout("mine")
        assert await names(session) == {"log"}


async def test_a_registered_loadout_with_a_cycle_or_an_unknown_parent_warns(caplog: pytest.LogCaptureFixture) -> None:
    """L3, L9: neither raises; what is wrong is in the log and in the problems of the configuration."""
    async with Pegboard.open(config(tools=["git"])) as board:
        board.loadouts.register(Loadout(name="one", parent="two", plugins=("git",)))
        assert "code: loadouts.one.extends: loadout 'two' is not defined; the chain ends here." in caplog.text
        board.loadouts.register(Loadout(name="two", parent="one"))
        assert "the loadout extends itself" in caplog.text
        assert {problem.code for problem in board.configuration.problems} == {"loadout_cycle"}
        session = await board.session(session_id="s")
        assert (await session.use_loadout("two")).status == "ok"
        assert await names(session) == {"log"}


async def test_what_is_no_loadout_is_refused() -> None:
    """L9: by its type, and by the keys of a mapping."""
    async with Pegboard.open(config()) as board:
        with pytest.raises(UsageError, match="is not a loadout"):
            board.loadouts.register("minimal")  # type: ignore
    with pytest.raises(ConfigError, match=r"code: loadouts\.x: the key 'plugin' is not known here"):
        async with Pegboard.open(config(), loadouts=[{"name": "x", "plugin": ["git"]}]):
            pass
