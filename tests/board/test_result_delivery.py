"""A library's host that takes loads in their answers: its list stays unchanged, and what it loads is called through."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Cache, CallAnswer, Host, Pegboard, Session

RESULT = Host(delivery=("result",))
CONFIG = """
store: "memory:"
plugins: {notes: {python: note_tools}, sums: {python: sum_tools}, many: {python: many_tools}}
toolkits: {paper: {tools: [notes]}}
agents:
  pegboard: {allowed_toolkits: [paper], discoverable: ["*"], dialect: pegboard}
  toolkits: {allowed_toolkits: [paper], dialect: toolkits, activation: next_step}
  invokeother: {allowed_toolkits: [paper], discoverable: ["*"], dialect: invokeother}
  discovery: {allowed_toolkits: [paper], discoverable: ["*"], dialect: discovery}
"""
LOADS = {
    "pegboard": ("load_tools", {"names": ["note"]}),
    "toolkits": ("load_tools", {"toolkit": "paper"}),
    "invokeother": ("invokeother_tool", {"mode": "load", "query": "note"}),
    "discovery": ("activate_tool", {"plugin": "notes"}),
}


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    (tmp_path / "note_tools.py").write_text('def note(text: str) -> str:\n    """Note."""\n    return text\n')
    (tmp_path / "sum_tools.py").write_text('def add(a: int, b: int) -> int:\n    """Add."""\n    return a + b\n')
    long = "It is long, so that loading everything from the start does not pay, and says so once more. " * 15
    (tmp_path / "many_tools.py").write_text(
        "\n".join(f'def op{i}(x: int) -> int:\n    """Do {i}. {long}"""\n    return x\n' for i in range(150))
    )
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(tmp_path / "pegboard.yaml") as opened:
        await opened.ready()
        yield opened


async def listed(session: Session) -> tuple[str, ...]:
    return (await session.surface()).names


def text(answer: CallAnswer) -> str:
    return " ".join(str(block.get("text", "")) for block in answer.result.content)


@pytest.mark.parametrize("dialect", LOADS)
async def test_the_loads_answer_has_the_schema_and_call_tool_runs_it_while_the_list_stays(
    board: Pegboard, dialect: str
) -> None:
    """D1: in every dialect; the tool is loaded, visible and callable all the same (F5)."""
    session = await board.session(agent=dialect, session_id="s", host=RESULT)
    before = await session.surface()
    assert {"call_tool", "call_read_only_tool"} <= set(before.names)
    assert before.hints, "a library places hints itself"
    name, arguments = LOADS[dialect]
    answer = await session.call(name, arguments)
    brief, whole = '"arguments":{"text":"string"}', '"text": {"type": "string"}'
    assert (brief if dialect == "pegboard" else whole) in text(answer)
    assert await listed(session) == before.names
    assert [tool.wire for tool in await session.wire()] == list(before.names)
    called = await session.call("call_tool", {"name": "note", "arguments": {"text": "hello"}})
    assert (called.status, text(called)) == ("ok", "hello")
    told = await session.explain("note")
    assert (told.loaded, told.visible, told.callable) == (True, True, True)


async def test_a_host_that_loads_by_itself_has_the_definitions_in_the_outcome(board: Pegboard) -> None:
    """D1: `outcome.added` are the tools that its model does not have yet."""
    session = await board.session(agent="pegboard", session_id="s", host=RESULT)
    before = await listed(session)
    outcome = await session.load("notes")
    assert [(tool.wire, list(tool.input_schema["properties"])) for tool in outcome.added] == [("note", ["text"])]
    assert (outcome.takes_effect, await listed(session)) == ("next_step", before)


async def test_the_array_of_a_host_with_both_ways_changes_only_at_a_boundary_of_its_cache(board: Pegboard) -> None:
    """D1: behind a warm cache a load reaches the model in its answer, and joins the list when that is free."""

    def host(tokens: int) -> Host:
        return Host(delivery=("array", "result"), cache=Cache(tokens=tokens), context=1)

    session = await board.session(agent="pegboard", session_id="s", host=host(0))
    await session.load("add")
    cold = [tool.wire for tool in await session.wire()]
    assert cold[-1] == "add"
    session.host = host(60_000)
    answer = await session.call("load_tools", {"names": ["note"]})
    assert '"text"' in text(answer)
    assert [tool.wire for tool in await session.wire()] == cold
    assert (await session.call("call_tool", {"name": "note", "arguments": {"text": "x"}})).status == "ok"
    session.host = host(0)
    assert [tool.wire for tool in await session.wire()] == [*cold, "note"]


async def test_what_a_host_reveals_is_not_defined_in_the_answer_too(board: Pegboard) -> None:
    """D1, D4: the tool stands on the surface, to be revealed in the history; the answer of its load has its name."""
    session = await board.session(agent="pegboard", session_id="s", host=Host(delivery=("native",)))
    answer = json.loads((await session.call("load_tools", {"names": ["note"]})).result.content[0]["text"])
    assert (answer["takes_effect"], answer["items"][0]["tools"]) == ("native", ["note"])
    assert "note" in await listed(session)
    assert "call_tool" not in await listed(session)


async def test_what_the_history_reveals_stays_declared_until_it_is_unloaded_or_denied(board: Pegboard) -> None:
    """D3, D4: a reference to a definition that is gone would change the history."""
    native = Host(delivery=("native",))
    session = await board.session(agent="pegboard", session_id="s", host=native)
    assert "note" in [tool.wire for tool in await session.wire(revealed=["note", "no_such_tool"])]
    assert (await session.call("note", {"text": "x"})).status == "ok"
    await session.unload("note")
    assert "note" not in [tool.wire for tool in await session.wire(revealed=["note"])]

    other = await board.session(agent="pegboard", session_id="other", host=native)
    await board.permissions.set("pegboard", "note", False)
    assert "note" not in [tool.wire for tool in await other.wire(revealed=["note"])]
