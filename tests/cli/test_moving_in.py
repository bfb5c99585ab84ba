"""Four users move in with what they have from elsewhere: what surprised them before is not there."""

import asyncio
import json
from pathlib import Path

import pytest
from command_support import Run, put

from pegboard import LoadoutBuilder, LoadoutRegistry, Pegboard, turn_of_messages
from pegboard.console.templating import picture_of

TEAM = """
toolkits:
  data: {description: Data, tools: [csv, pandas, visualization]}
  coding: {description: Code, tools: [python]}
  paper: {description: Files, tools: [file, openweather]}
agents:
  writer: {allowed_toolkits: [paper], initial_toolkits: [paper]}
  pure: {tools: [python], allowed_toolkits: [data]}
  analyst: {allowed_toolkits: [data]}
  coder: {tools: [file], allowed_toolkits: [coding]}
  mixed: {allowed_toolkits: [data], loadout: minimal}
"""


def function(name: str, text: str) -> str:
    return f'def {name}(what: str = "") -> str:\n    """{text}"""\n    return "ok"\n\n\n'


def tool_class(name: str, text: str) -> str:
    """Return a module with a tool as MIRA has them: a name, a line of text, a schema of its own and `run`."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    definition = {"name": name, "description": text, "input_schema": schema}
    return f"""class Tool:
    name = {name!r}
    simple_description = {text!r}
    anthropic_schema = {definition!r}

    def run(self, **params):
        return {name!r} + " in " + params["city"]
"""


async def names(board: Pegboard, agent: str) -> tuple[str, ...]:
    return (await (await board.session(agent=agent, session_id="s")).surface()).names


def test_a_mindroom_operator_moves_in(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MR1, G10, P10: agents keep their tools, `check` has one line a plugin, and the fix of a conflict works."""
    monkeypatch.delenv("OPENWEATHER_API_KEY", raising=False)
    put("pegboard.yaml", TEAM)
    lines = [line for line in run("check").out.splitlines() if "(warning: unconfined)" in line]
    warned = [line.partition(": '")[2].partition("'")[0] for line in lines]
    assert sorted(warned) == ["csv", "pandas", "python", "shell"]
    assert len([line for line in run("check").out.splitlines() if "dialect" in line]) == 1
    out = run("check", "--seen", "unconfined").out
    (clash,) = [line for line in out.splitlines() if "Toolkit 'coding' cannot be loaded" in line]
    assert "toolkits.coding: Agent 'coder': " in clash
    assert all(part in clash for part in ("'file/read_file'", "list_files", "prefix: python"))
    assert "4 warnings seen" in out
    probed = run("check", "--probe", "--seen", "unconfined", "--seen", "name_clash").out
    assert "OPENWEATHER_API_KEY" in probed
    assert not list(folder.glob("charts*"))
    rows = [row for row in run("tools", "--json").json if row["plugin"] == "openweather"]
    assert [row["available"] for row in rows] == [False]
    assert run("surface", "--agent", "analyst", "--json").json["tokens"]["saved"] is not None
    reasons = run("explain", "read_file", "--agent", "coder", "--json").json["reasons"]
    (said,) = [reason for reason in reasons if reason["code"] == "same_name"]
    assert all(part in said["text"] for part in ("'file/read_file'", "'python/read_file'", "means 'file/read_file'"))
    asyncio.run(_team_works())
    put("pegboard.yaml", TEAM.replace("agents:", "plugins: {python: {prefix: py}}\nagents:"))
    assert run("check", "--strict", "--seen", "unconfined", "--seen", "unavailable").code == 0
    asyncio.run(_coding_is_loaded())


async def _team_works() -> None:
    async with Pegboard.open() as board:
        before = await names(board, "pure")
        await names(board, "writer")
        await names(board, "coder")
        assert await names(board, "pure") == before
        assert "run_python_code" in before
        writer = await board.session(agent="analyst", session_id="s")
        assert (await writer.surface()).tokens.total > 0
        await board.permissions.set("coder", "run_python_code", False)
        coder = await board.session(agent="coder", session_id="s")
        answer = json.loads((await coder.call("load_tools", {"toolkit": "coding"})).result.content[0]["text"])
        assert (answer["status"], "prefix" in answer["message"]) == ("conflict", True)


async def _coding_is_loaded() -> None:
    async with Pegboard.open() as board:
        coder = await board.session(agent="coder", session_id="t")
        assert (await coder.load("coding")).status == "ok"


async def test_a_mira_user_moves_in(folder: Path) -> None:
    """MI1, MI4, MI7, MI10, T8: own loads are kept, hints have their texts, off and needed are said as there."""
    kinds = ("weather", "calendar", "email", "contacts", "stocks")
    for kind in kinds:
        put(f"{kind}_tool.py", tool_class(f"{kind}_tool", f"Do {kind} for anybody."))
    plugins = {kind: {"python": f"{kind}_tool:Tool"} for kind in kinds}
    plugins["email"]["requires"] = {"email_tool": ["contacts/contacts_tool"]}  # type: ignore[assignment]
    agent = {
        "dialect": "invokeother",
        "essential": ["weather_tool", "invokeother_tool"],
        "discoverable": ["*"],
        "permissions": {"stocks_tool": False},
    }
    config = {"store": "sqlite:///state.db", "plugins": plugins, "agents": {"mira": agent}}
    async with Pegboard.open(config) as board:
        session = await board.session(session_id="s")

        async def invoke(mode: str, query: str) -> str:
            answer = await session.call("invokeother_tool", {"mode": mode, "query": query})
            return answer.result.content[0]["text"]

        surface = await session.surface()
        answered = await session.call("weather_tool", {"city": "Rome"})
        assert answered.result.content[0]["text"] == "weather_tool in Rome"
        assert (await session.call("weather_tool", {})).status == "invalid_arguments"
        assert surface.hints == (
            "calendar_tool: Do calendar for anybody.",
            "email_tool: Do email for anybody.",
            "contacts_tool: Do contacts for anybody.",
        )
        assert "stocks_tool is disabled in config (enabled=false)" in await invoke("load", "stocks_tool")
        assert "invokeother_tool is essential and cannot be unloaded" in await invoke("unload", "invokeother_tool")
        assert "Successfully loaded: email_tool" in await invoke("load", "email_tool")
        assert "is needed by email_tool" in await invoke("unload", "contacts_tool")
        assert "Successfully loaded: contacts_tool" in await invoke("load", "contacts_tool")
        assert "Successfully unloaded: email_tool" in await invoke("unload", "email_tool")
        assert "contacts_tool" in (await session.surface()).names
        for message in range(1, 13, 2):
            await session.end_turn(turn=turn_of_messages(message) + 1)
    async with Pegboard.open(config) as board:
        session = await board.session(session_id="s")
        assert (await session.surface()).hints == surface.hints
        await session.end_turn()
        assert "contacts_tool" not in (await session.surface()).names


async def test_a_jdai_developer_moves_in(folder: Path) -> None:
    """JD1, L5, L8: the builder, the constants, a scoped view, a runner, and what a board has."""
    mine = (
        LoadoutBuilder.create("mine")
        .extends(LoadoutRegistry.BUILT_IN.MINIMAL)
        .include_category(LoadoutRegistry.CATEGORIES.SEARCH)
        .disable("docker")
        .build()
    )
    for name in ("search", "docker", "memory"):
        put(f"{name}_kit.py", function(f"{name}_it", f"Use {name}."))
    config = {
        "store": "memory:",
        "plugins": {name: {"python": f"{name}_kit"} for name in ("search", "docker", "memory")},
        "agents": {"lead": {"loadout": "mine", "dialect": "discovery"}},
    }
    async with Pegboard.open(config, loadouts=[mine]) as board:
        assert {"search", "docker", "memory"} <= {plugin.name for plugin in await board.plugins()}
        permitted = {tool.name for tool in await board.tools("lead")}
        assert {"search_it", "memory_it"} <= permitted
        assert "docker_it" not in permitted
        lead = await board.session(session_id="s")
        assert "disables plugin 'docker'" in (await lead.explain("docker_it")).reasons[0].text
        found = await lead.call("discover_tools", {"keyword": "docker"})
        assert "docker_it" not in found.result.content[0]["text"]
        assert board.loadouts.resolve_active("mine", ["search", "memory", "docker"]) == {"search"}
        child = await lead.child("explore")
        assert "docker_it" not in (await child.surface()).names


async def test_a_seajelly_admin_moves_in(folder: Path) -> None:
    """SJ1, SJ18, P2, T6: stored switches are applied before any plugin was asked; an icon is a picture."""
    put("dna_kit.py", function("fold", "Fold it.") + function("cut", "Cut it."))
    config = {
        "store": "memory:",
        "plugins": {"dna_kit": {"python": "dna_kit"}},
        "toolkits": {"lab": {"label": "Lab", "icon": "dna", "tools": ["dna_kit"]}},
        "agents": {"sea": {"allowed_toolkits": ["lab"], "initial_toolkits": ["lab"]}},
    }
    async with Pegboard.open(config) as board:
        for name, value in {"cut": False, "lab": True}.items():  # a stored tools_config
            await board.permissions.set("sea", name, value, by="admin")
        assert [name for name in await names(board, "sea") if name in ("fold", "cut")] == ["fold"]
        (lab, *_) = await board.permissions.panel("sea")
        assert (lab["label"], picture_of(lab["icon"])) == ("Lab", "🧬")
