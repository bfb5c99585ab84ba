"""What a surface saves: against everything that the agent may use, and unknown where some of that is."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Pegboard, Session

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
