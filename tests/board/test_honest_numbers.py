"""What a surface saves: against everything that the agent may use, and unknown where some of that is."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Pegboard, Session
from pegboard.board.catalog.loader import PluginRequest

CONFIG = """
store: "memory:"
plugins:
  notes: {python: note_tools}
  sums: {python: sum_tools}
  gated: {python: gated_tools, needs: {gate: {env: [PEG_GATE]}}}
servers: {unseen: {command: no-such-command-anywhere}}
toolkits: {paper: {tools: [notes]}, late: {tools: [unseen]}}
agents:
  all: {discoverable: [notes, sums], dialect: pegboard}
  some: {discoverable: [notes], dialect: pegboard}
  off: {discoverable: [notes, sums], permissions: {sums: false}, dialect: pegboard}
  waits: {discoverable: [notes], allowed_toolkits: [late], dialect: pegboard}
  lacks: {discoverable: [notes, gated], dialect: pegboard}
  kits: {allowed_toolkits: [paper, late], dialect: toolkits}
"""


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    for name, tool in (("note", "note"), ("sum", "add"), ("gated", "gate")):
        text = f'def {tool}(x: int) -> int:\n    """Do {tool}. {"It says more. " * 40}"""\n    return x\n'
        (tmp_path / f"{name}_tools.py").write_text(text)
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(tmp_path / "pegboard.yaml") as opened:
        yield opened


async def of(board: Pegboard, agent: str) -> Session:
    return await board.session(agent=agent, session_id="s")


async def test_what_is_denied_does_not_count(board: Pegboard) -> None:
    """F4: not granted, switched off, or without its conditions, it is nothing that could be loaded."""
    everything = (await (await of(board, "all")).surface()).tokens
    for agent in ("some", "off", "lacks"):
        costs = (await (await of(board, agent)).surface()).tokens
        assert costs.catalog < everything.catalog
        assert (costs.unknown, costs.saved) == ((), costs.catalog - costs.total)
    loaded = await of(board, "some")
    await loaded.load("notes")
    surface = await loaded.surface()
    assert surface.tokens.catalog == board.services.prices(
        [out.tool for out in surface.tools if out.tool.wire == "note"]
    )


async def test_what_is_not_known_is_unknown_and_not_nothing(board: Pegboard) -> None:
    """F4: it counts in no figure, and what is saved is not known; the numbers of the session agree."""
    session = await of(board, "waits")
    costs = (await session.surface()).tokens
    assert (costs.unknown, costs.saved) == (("unseen",), None)
    assert costs.total == costs.tools + costs.text
    numbers = {record["agent"]: record for record in board.metrics()}
    assert (numbers["waits"]["tokens"], numbers["waits"]["saved"]) == (costs.total, None)
    known = (await (await of(board, "off")).surface()).tokens
    numbers = {record["agent"]: record for record in board.metrics()}
    assert (numbers["off"]["tokens"], numbers["off"]["saved"]) == (known.total, known.saved)


async def test_a_call_of_a_name_that_is_not_known_says_what_may_have_it(board: Pegboard) -> None:
    """X1, P9: by the names under which the agent's dialect loads it; nothing is started for a guess."""
    answer = await (await of(board, "waits")).call("frobnicate", {})
    assert (answer.status, answer.message) == (
        "not_found",
        "Tool 'frobnicate' was not found. The tools of these plugins are not known yet, load one to see them: unseen.",
    )
    answer = await (await of(board, "kits")).call("frobnicate", {})
    assert answer.message == "Tool 'frobnicate' was not found. The tools of these toolkits are not all known yet: late."
    answer = await (await of(board, "all")).call("frobnicate", {})
    assert answer.message == "Tool 'frobnicate' was not found."
    assert not board.world.catalog.plugins["unseen"].variants


LACKING = """
toolkits: {work: {tools: [openweather, calculator]}, paper: {tools: [notes]}}
plugins: {notes: {python: note_tools}}
agents: {a: {allowed_toolkits: [work, paper], dialect: toolkits}, b: {tools: [openweather], dialect: pegboard}}
"""


@pytest.fixture
def lacking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("OPENWEATHER_API_KEY", raising=False)
    (tmp_path / "note_tools.py").write_text("import a_package_that_is_not_there\n")
    (tmp_path / "pegboard.yaml").write_text(LACKING)
    return tmp_path / "pegboard.yaml"


async def asked_for_all(config: Path) -> None:
    """Ask every plugin, as `check --probe` does."""
    async with Pegboard.open(config) as board:
        assert (await (await of(board, "a")).surface()).tokens.saved is None
        for name in ("openweather", "calculator", "notes"):
            await board.services.loader.ready([PluginRequest(plugin=name)])
        costs = (await (await of(board, "a")).surface()).tokens
        assert (costs.unknown, costs.saved is None) == ((), False)


async def test_what_was_found_unavailable_is_known_to_the_next_process(lacking: Path) -> None:
    """F4, P6: what is saved is known there too; a load asks the plugin again."""
    await asked_for_all(lacking)
    async with Pegboard.open(lacking) as board:
        session = await of(board, "a")
        costs = (await session.surface()).tokens
        assert (costs.unknown, costs.saved) == ((), costs.catalog - costs.total)
        assert board.world.catalog.plugins["openweather"].unavailable
        (item,) = (await session.load("work")).items
        assert item.status == "tool_unavailable"
        assert "OPENWEATHER_API_KEY" in item.message


async def test_what_was_unavailable_is_asked_again_once_what_it_lacks_may_be_there(
    lacking: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: the variable that it names is set, its code is another; what an agent has from the start is asked anyhow."""
    await asked_for_all(lacking)
    monkeypatch.setenv("OPENWEATHER_API_KEY", "k")
    (lacking.parent / "note_tools.py").write_text('def note() -> str:\n    """Note it."""\n    return "n"\n')
    async with Pegboard.open(lacking) as board:
        assert board.world.catalog.plugins["openweather"].unavailable == ""
        session = await of(board, "b")
        assert any(out.tool.plugin == "openweather" for out in (await session.surface()).tools)
        outcome = await (await of(board, "a")).load("work", "paper")
        assert [item.status for item in outcome.items] == ["loaded", "loaded"]


FLAG = """
from pathlib import Path

if not Path(__file__).with_name("ready").exists():
    raise ImportError("not ready")


def now() -> str:
    \"\"\"Do it now.\"\"\"
    return "n"
"""


@pytest.fixture
def flag(tmp_path: Path) -> Path:
    (tmp_path / "flag.py").write_text(FLAG)
    (tmp_path / "pegboard.yaml").write_text("plugins: {flag: {python: flag}}\nagents: {a: {tools: [flag]}}\n")
    return tmp_path / "ready"


async def test_what_an_agent_has_from_the_start_is_tried_in_every_process(flag: Path) -> None:
    """P6: no one has to load it by name again after a failure, nothing having been set or installed."""
    for ready in (False, False, True):
        await asyncio.to_thread(flag.touch) if ready else None
        sys.modules.pop("flag", None)
        async with Pegboard.open(flag.with_name("pegboard.yaml")) as board:
            names = (await (await of(board, "a")).surface()).names
            assert ("now" in names) is ready
