"""Hints of a session in the library: frozen, stored with the first change, and what follows the history."""

import json
import re
from pathlib import Path

import pytest

from pegboard import Pegboard, Session
from pegboard.core.model.delivery import GATEWAY, LIBRARY, Host

CONFIG = """
plugins:
  files: {python: pegboard.quickstart.files}
  calc: {python: pegboard.quickstart.calc}
  text: {python: pegboard.quickstart.text}
toolkits:
  numbers: {description: Arithmetic and units. Exact., tools: [calc]}
agents:
  open: {dialect: pegboard, allowed_toolkits: [numbers], discoverable: [files]}
  mira: {dialect: invokeother, discoverable: ["*"]}
  tight: {dialect: invokeother, discoverable: ["*"], hints: {tokens: 60}}
  kits: {allowed_toolkits: [numbers], discoverable: []}
  tiny: {allowed_toolkits: [numbers], hints: {tokens: 3}}
  silent: {dialect: invokeother, discoverable: ["*"], hints: {tokens: 0}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


def edit(config: Path, *changes: tuple[str, str]) -> None:
    text = CONFIG
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    config.write_text(text)


async def stored(board: Pegboard) -> list[str]:
    return [key.session for key, _ in await board.services.store.sessions()]


async def hints(session: Session) -> tuple[str, ...]:
    return (await session.surface()).hints


async def test_hints_are_stored_with_the_first_change_and_survive_a_restart(config: Path) -> None:
    """F2, S4, MR62: also where something else is known by then; a session that only looked stores nothing."""
    async with Pegboard.open(config) as board:
        session = await board.session(agent="open", session_id="s")
        before = await hints(session)
        assert before[0] == "numbers: Arithmetic and units. Exact. (3 tools)"
        assert await stored(board) == []
        await session.load("numbers")
        assert await hints(session) == before
        assert await stored(board) == ["s"]
    edit(config, ("Arithmetic and units. Exact.", "Sums."), ("[files]}", "[files, text]}"))
    async with Pegboard.open(config) as board:
        session = await board.session(agent="open", session_id="s")
        surface = await session.surface()
        assert surface.hints == before
        assert surface.suffix.splitlines()[-1] == "text: compare_files, count_words, search_text"
        other = await board.session(agent="open", session_id="another")
        assert (await hints(other))[0] == "numbers: Sums. (3 tools)"
        assert (await other.surface()).suffix == ""


async def test_a_revoked_permission_rewrites_frozen_hints_at_once(config: Path) -> None:
    """P4, F2: in a session of which hints are stored, too."""
    async with Pegboard.open(config) as board:
        session = await board.session(agent="open", session_id="s")
        await session.load("numbers")
        assert any(line.startswith("read_file:") for line in await hints(session))
        await board.permissions.set("open", "read_file", False)
        after = await hints(session)
        assert not any(line.startswith("read_file:") for line in after)
        assert after[0].startswith("numbers:")
        await session.end_turn()
    async with Pegboard.open(config) as board:
        assert await hints(await board.session(agent="open", session_id="s")) == after


async def test_hints_of_a_loadout_count_while_it_is_active(config: Path) -> None:
    """L7, F2: what it excludes is not hinted, and is again once it is gone."""
    edit(config, ("agents:\n", "loadouts: {sums: {plugins: [calc]}}\nagents:\n"))
    async with Pegboard.open(config) as board:
        session = await board.session(agent="mira", session_id="s")
        whole = await hints(session)
        await session.use_loadout("sums")
        assert {line.partition(":")[0] for line in await hints(session)} < {line.partition(":")[0] for line in whole}
        await session.use_loadout(None)
        assert await hints(session) == whole


async def test_every_tool_is_hinted_with_its_whole_description_where_seed_002_says_so(config: Path) -> None:
    """MI4, F2: 400 tools of forty words each, none of them cut, and so no search."""
    text = " ".join(["word"] * 40)
    functions = "".join(f'def tool_{n}() -> str:\n    """Do {n}. {text}"""\n    return ""\n\n' for n in range(400))
    config.with_name("wide_tools.py").write_text(functions)
    edit(config, ("plugins:\n", "plugins:\n  wide: {python: wide_tools}\n"))
    async with Pegboard.open(config) as board:
        session = await board.session(agent="mira", session_id="s")
        surface = await session.surface()
        assert surface.names == ("invokeother_tool",)
        assert [line for line in surface.hints if line.startswith("tool_")] == [
            f"tool_{n}: Do {n}. {text}" for n in range(400)
        ]


@pytest.mark.parametrize("dialect", ["pegboard", "toolkits", "invokeother", "discovery"])
async def test_over_mcp_no_description_is_longer_than_clients_read(tmp_path: Path, dialect: str) -> None:
    """F2: 60 plugins and toolkits, a generous budget; what has no room is found by the search that is listed."""
    (tmp_path / "one_tools.py").write_text("def work(x: str) -> str:\n    return x\n")
    text = " ".join(["word"] * 40)
    plugin = {"python": "one_tools", "description": text}
    plugins = {f"plugin_with_a_name_that_is_rather_long_{n}": {**plugin, "prefix": f"p{n}"} for n in range(60)}
    toolkits = {
        f"toolkit_with_a_name_that_is_rather_long_{n}": {
            "description": text,
            "tools": [f"plugin_with_a_name_that_is_rather_long_{n}"],
        }
        for n in range(60)
    }
    agent = {"dialect": dialect, "allowed_toolkits": [*toolkits], "discoverable": ["*"]}
    agents = {"bounded": {**agent, "hints": {"tokens": 4000}}, "free": agent}
    (tmp_path / "pegboard.yaml").write_text(json.dumps({"plugins": plugins, "toolkits": toolkits, "agents": agents}))
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        for name, principal in (("bounded", "ada"), ("free", "ada"), ("free", "bob")):
            session = await board.session(agent=name, session_id="s", principal=principal, host=GATEWAY)
            tools = {loaded.tool.wire: loaded.tool for loaded in (await session.surface()).tools}
            longest = max(tools.values(), key=lambda tool: len(tool.description)).description
            assert 1000 < len(longest) <= 2048
            assert re.search(r"\nand \d+ more: (search|discover_tools)$", longest)
            assert "search_tools" in tools or "discover_tools" in tools
            await session.load("toolkit_with_a_name_that_is_rather_long_3")
            assert longest in [loaded.tool.description for loaded in (await session.surface()).tools]


@pytest.mark.parametrize("host", [LIBRARY, GATEWAY], ids=["library", "gateway"])
@pytest.mark.parametrize("agent", ["tight", "tiny", "silent"])
async def test_where_hints_are_cut_a_search_is_listed_that_works(config: Path, agent: str, host: Host) -> None:
    """F2, P3: in the dialects that have none of their own; a hint never points to what is not there."""
    async with Pegboard.open(config) as board:
        await (await board.session(agent="mira", session_id="t")).load("files", "calc", "text")  # known from now on
        session = await board.session(agent=agent, session_id="s", host=host)
        surface = await session.surface()
        assert "search_tools" in surface.names
        answer = await session.call("search_tools", {"queries": ["arithmetic expression"]})
        assert (answer.status, answer.is_error) == ("ok", False)
        found = "numbers" if agent == "tiny" else "calculate"
        assert f'"name":"{found}"' in answer.result.content[0]["text"]
        assert (await session.snapshot()).state.leases == ()


@pytest.mark.parametrize("agent", ["mira", "kits"])
async def test_where_nothing_is_cut_there_is_no_search(config: Path, agent: str) -> None:
    """F2: the meta-tools of the seeds, and no others."""
    async with Pegboard.open(config) as board:
        session = await board.session(agent=agent, session_id="s")
        assert "search_tools" not in (await session.surface()).names
        assert (await session.call("search_tools", {"queries": ["x"]})).status == "not_found"


AGNO = """
toolkits: {data: {description: Data analysis, tools: [csv, file]}}
agents: {researcher: {dialect: invokeother, allowed_toolkits: [data], discoverable: [calculator]}}
"""


async def test_hints_of_real_agno_toolkits_stay_to_the_byte(tmp_path: Path) -> None:
    """F2, MR62: what a load makes known is not in the text before it, now and after a restart."""
    (tmp_path / "pegboard.yaml").write_text(AGNO)
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        session = await board.session(agent="researcher", session_id="s")
        before = await hints(session)
        assert before[0] == "data: Data analysis"
        assert (await session.load("data")).status == "ok"
        assert await hints(session) == before
        assert (await session.surface()).suffix == "Loaded now: data."
        await session.unload("data")
        assert await hints(session) == before
        assert "csv: " in (await session.surface()).suffix
        await session.end_turn()
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        session = await board.session(agent="researcher", session_id="s")
        assert await hints(session) == before


@pytest.mark.parametrize("agent", ["open", "mira", "kits", "tiny"])
async def test_a_session_without_an_id_has_no_hints(config: Path, agent: str) -> None:
    """S4: it has no meta-tools, so that nothing could load what they name; what comes later is not named either."""
    async with Pegboard.open(config) as board:
        session = await board.session(agent=agent)
        for _ in range(2):
            surface = await session.surface()
            assert (surface.hints, surface.suffix, surface.tokens.text) == ((), "", 0)
            await board.ready()
        assert await hints(await board.session(agent=agent, session_id="s"))


async def test_over_mcp_tools_that_are_plugins_of_their_own_are_hinted_with_what_they_are_for(tmp_path: Path) -> None:
    """F2, MI4: forty of them, each a name and some words, in a description that no client cuts."""
    names = [f"number{n}_tool" for n in range(40)]
    for name in names:
        text = f'def {name}() -> str:\n    """Get {name} for any place on earth. And more."""\n    return ""\n'
        (tmp_path / f"{name}.py").write_text(text)
    path = tmp_path / "pegboard.yaml"
    plugins = "\n".join(f"  {name}: {{python: {name}}}" for name in names)
    path.write_text(f"plugins:\n{plugins}\nagents: {{mira: {{dialect: invokeother, discoverable: ['*']}}}}\n")
    async with Pegboard.open(path) as board:
        await board.ready()
        session = await board.session(session_id="s", host=GATEWAY)
        described = (await session.surface()).find("invokeother_tool")
        assert described is not None
        text = described.tool.description
        assert len(text) <= 2048
        lines = [line for line in text.splitlines() if line.startswith("number")]
        assert [line.partition(":")[0] for line in lines] == names
        assert all(line.partition(": ")[2].startswith("Get ") for line in lines)
