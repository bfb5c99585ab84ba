"""Tools that end more than their call, or answer without end, under every adapter: the model reads what came of it."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from framework_drivers import Driver, call

from pegboard import Pegboard

MODULE = '''
import asyncio
from agno.tools import Toolkit
from langchain_core.tools import StructuredTool

STATE = {}


class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def parts(fails):
    yield "first "
    if fails:
        raise OSError("the line is cut")
    yield "second"


async def later_parts():
    yield "first "
    yield "second"


def deep():
    value = "bottom"
    for _ in range(3_000):
        value = [value]
    return value


def endless():
    value = []
    value.append(value)
    return value


def done(kind):
    kinds = {"exit": SystemExit(3), "interrupt": KeyboardInterrupt(), "stop": StopIteration("over"),
             "stop_async": StopAsyncIteration("over"), "cancelled": asyncio.CancelledError("given up"),
             "generator_exit": GeneratorExit(), "silent": Silent(), "recursion": RecursionError("too deep")}
    if kind in kinds:
        raise kinds[kind]
    return {"deep": deep, "cycle": endless}[kind]()


def blocking(kind: str):
    """Do it."""
    return done(kind)


async def awaited(kind: str):
    """Do it later."""
    return done(kind)


def generator(fails: bool):
    """Do it in parts."""
    yield from parts(fails)


async def generator_later():
    """Do it in parts, later."""
    async for part in later_parts():
        yield part


async def waits() -> str:
    """Wait until the run is given up."""
    STATE["begun"].set()
    try:
        await asyncio.Event().wait()
    finally:
        STATE["ended"].set()


def greet() -> str:
    """Greet."""
    return "hello"


def halves() -> str:
    """Return 5 MB of halves of characters."""
    return "\\ud800" * 2_500_000


async def stuck() -> list:
    """Make functions, never."""
    await asyncio.Event().wait()
    return [greet]


stuck.__pegboard__ = {"factory": True}


def lc(kind: str) -> str:
    """Do it."""
    return done(kind)


langchain = StructuredTool.from_function(lc, name="of_langchain")


class Doers(Toolkit):
    """Doers."""

    def __init__(self, **more):
        super().__init__(name="doers", tools=[self.of_agno], **more)

    def of_agno(self, kind: str):
        """Do it."""
        return done(kind)
'''
FUNCTIONS = ("blocking", "awaited", "generator", "generator_later", "waits", "greet")
KINDS = (
    "exit",
    "interrupt",
    "stop",
    "stop_async",
    "cancelled",
    "generator_exit",
    "silent",
    "recursion",
    "deep",
    "cycle",
)
CONFIG: dict[str, Any] = {
    "store": "memory:",
    "plugins": {
        **{name: {"python": f"hostile_things:{name}"} for name in FUNCTIONS},
        "halves": {"python": "hostile_things:halves"},
        "lc": {"python": "hostile_things:langchain"},
        "doers": {"python": "hostile_things:Doers"},
    },
    "agents": {"a": {"tools": [*FUNCTIONS, "halves", "lc", "doers"], "dialect": "pegboard", "anticipate": False}},
}


@pytest.fixture
async def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pegboard]:
    (tmp_path / "hostile_things.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    async with Pegboard.open(CONFIG) as board:
        yield board


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_tool_ends_nothing_but_its_own_call(driver: Driver, board: Pegboard, stream: bool) -> None:
    """P6: the run goes on, and so does the call beside it, whatever brought the tool."""
    tools = ("blocking", "awaited", "of_langchain", "of_agno")
    session = await board.session(agent="a", session_id="s", principal="ada")
    for kind in KINDS:
        steps = [[call(tool, kind=kind), call("greet")] for tool in tools]
        ran = await driver.talk(session).run("Go on.", *steps, stream=stream)
        assert ran.answer.strip() == "done", kind
        for tool, carried in zip(tools, ran.calls[1:], strict=True):
            answer, beside = carried.results
            assert (beside, len(answer) > 0, len(answer) < 200_100) == ("hello", True, True), (kind, tool)


async def test_what_a_generator_yields_is_one_result(driver: Driver, board: Pegboard) -> None:
    """P6: what failed midway is a failure."""
    session = await board.session(agent="a", session_id="s", principal="ada")
    steps = [[call("generator", fails=False), call("generator_later"), call("generator", fails=True)]]
    ran = await driver.talk(session).run("Go on.", *steps)
    whole, later, failed = ran.calls[1].results
    assert ("first" in whole, "second" in whole) == ("first" in later, "second" in later) == (True, True)
    assert ("the line is cut" in failed, ran.answer.strip()) == (True, "done")


async def test_a_run_that_is_given_up_ends_its_call_and_the_next_run_goes_on(driver: Driver, board: Pegboard) -> None:
    """S6: the tool is cancelled, and the session serves the next run."""
    session = await board.session(agent="a", session_id="s", principal="ada")
    await session.call("greet")  # so that the module is there
    state = sys.modules["hostile_things"].STATE
    state.update(begun=asyncio.Event(), ended=asyncio.Event())
    run = asyncio.create_task(driver.talk(session).run("Go on.", call("waits")))
    await asyncio.wait_for(state["begun"].wait(), 20)
    run.cancel()
    await asyncio.wait([run])
    await asyncio.wait_for(state["ended"].wait(), 20)
    ran = await driver.talk(session).run("Go on.", call("greet"))
    assert (ran.answer.strip(), ran.calls[1].results) == ("done", ("hello",))


async def test_a_long_result_of_halves_of_characters_is_cut_and_can_be_sent(driver: Driver, board: Pegboard) -> None:
    """P6: nothing of it is lost in the middle of a request that UTF-8 could not carry."""
    session = await board.session(agent="a", session_id="s", principal="ada")
    ran = await driver.talk(session).run("Go on.", call("halves"))
    (answer,) = ran.calls[1].results
    assert ("\ufffd" in answer, len(answer) < 200_100, ran.answer.strip()) == (True, True, "done")
    answer.encode()


async def test_a_factory_that_never_returns_is_reported_and_the_run_goes_on(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: its plugin is missing, with the limit that it has reached."""
    (tmp_path / "hostile_things.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    plugins = {
        "greet": {"python": "hostile_things:greet"},
        "stuck": {"python": "hostile_things:stuck", "timeout": "500ms"},
    }
    agents = {"a": {"tools": ["greet", "stuck"], "dialect": "pegboard", "anticipate": False}}
    async with Pegboard.open({"store": "memory:", "plugins": plugins, "agents": agents}) as board:
        session = await board.session(agent="a", session_id="s", principal="ada")
        ran = await driver.talk(session).run("Go on.", call("greet"))
        assert (ran.answer.strip(), ran.calls[1].results) == ("done", ("hello",))
        (missing,) = (await session.surface()).missing
    assert "'stuck'" in missing.reason
    assert "was not constructed within 0.5 s" in missing.reason
