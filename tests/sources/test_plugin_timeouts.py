"""A plugin of Python that hangs is an answer too, in this process and in one of its own (P6, G8)."""

import asyncio
from pathlib import Path

import pytest

from pegboard import Pegboard
from pegboard.errors import ToolUnavailableError, UpstreamTimeoutError
from pegboard.ports import CallContext
from pegboard.sources.mcp import McpSource
from pegboard.sources.plugin_process.source import PluginProcessSource
from pegboard.sources.signatures import modules
from sources.conftest import Workshop

WITHIN = 0.5
PATIENCE = 20
BOB = CallContext(principal="bob", scope="user:bob")

HANGING = '''
import asyncio
import threading
import time

from pegboard import tool

NEVER = threading.Event()
CANCELLED = []


def blocks() -> str:
    """Block."""
    NEVER.wait(60)
    return "never"


async def awaits() -> str:
    """Wait in the loop."""
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        CANCELLED.append(True)
        raise
    return "never"


def yields():
    """Yield something, and then nothing."""
    yield "a"
    NEVER.wait(60)


async def gives_up() -> str:
    """Raise what looks like the same."""
    raise TimeoutError("the service is slow")


def answers() -> int:
    """Say how many were cancelled."""
    return len(CANCELLED)


class Slow:
    """An object whose tool hangs."""

    def blocks(self) -> str:
        """Block."""
        NEVER.wait(60)
        return "never"

    def answers(self) -> str:
        """Answer."""
        return "0"


class Never:
    """One that is never made."""

    def __init__(self) -> None:
        NEVER.wait(60)

    def answers(self) -> str:
        """Answer."""
        return "0"


def make():
    """Make functions, never."""
    NEVER.wait(60)

    def answers() -> str:
        """Answer."""
        return "0"

    return [answers]


async def make_later() -> list:
    """Make functions in a coroutine, never."""
    await asyncio.sleep(60)
    return [answers]


make_later.__pegboard__ = {"factory": True}


@tool(guard=lambda principal, arguments: NEVER.wait(60))
def guarded() -> str:
    """Have a guard that hangs."""
    return "never"
'''


@pytest.fixture(params=["here", "apart"])
async def workshop(request: pytest.FixtureRequest, tmp_path: Path):
    """A workshop with what hangs, in this process and in one of its own."""
    made = Workshop(tmp_path)
    made.write("hanging_t.py", HANGING)
    if request.param == "apart":
        made.source = PluginProcessSource(McpSource(asks=False, idle_after=None), env={}, apart=lambda _: True)  # type: ignore[assignment]
    yield made
    await made.source.aclose()


async def call(workshop: Workshop, target: str, tool: str, within: float = 2) -> str:
    spec = workshop.spec(target, timeout=within)
    tools = {one.name: one for one in (await workshop.source.describe(spec, {})).tools}
    await workshop.source.call(spec, {}, tools["answers"], {}, BOB)  # its process, or object, is there
    result = await workshop.source.call(spec, {}, tools[tool], {}, BOB)
    return result.content[0]["text"]


@pytest.mark.parametrize(
    ("target", "tool"),
    [("hanging_t", "blocks"), ("hanging_t", "awaits"), ("hanging_t", "yields"), ("hanging_t:Slow", "blocks")],
)
async def test_a_call_that_hangs_is_answered_and_the_next_one_works(workshop: Workshop, target: str, tool: str) -> None:
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(UpstreamTimeoutError) as caught:
            await call(workshop, target, tool)
        assert caught.value.message == f"Plugin 'mine' did not answer '{tool}' within 2 s."
        assert "`timeout` in `plugins: mine`" in caught.value.hint
        assert await call(workshop, target, "answers") == ("1" if tool == "awaits" else "0")


async def test_what_a_tool_says_of_its_own_wait_is_its_own_failure(workshop: Workshop) -> None:
    assert await call(workshop, "hanging_t", "gives_up", PATIENCE) == "TimeoutError: the service is slow"


@pytest.mark.parametrize("target", ["hanging_t:Never", "hanging_t:make", "hanging_t:make_later"])
async def test_what_is_never_made_is_unavailable_and_keeps_no_other_waiting(
    tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modules, "HANGS_AFTER", WITHIN)
    workshop = Workshop(tmp_path)
    workshop.write("hanging_t.py", HANGING)
    try:
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(ToolUnavailableError, match="was not constructed within"):
                await workshop.source.describe(workshop.spec(target, timeout=WITHIN), {})
            assert await call(workshop, "hanging_t", "answers", PATIENCE) == "0"
    finally:
        await workshop.source.aclose()


async def test_the_configuration_says_how_long(tmp_path: Path) -> None:
    (tmp_path / "hanging_t.py").write_text(HANGING)
    (tmp_path / "pegboard.yaml").write_text(
        "store: 'memory:'\n"
        "plugins:\n"
        "  p: {python: hanging_t, timeout: 500ms}\n"
        "  file: {timeout: 10m}\n"
        "agents:\n  a: {tools: [p, file]}\n"
    )
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board, asyncio.timeout(PATIENCE):
        session = await board.session(agent="a", session_id="s")
        answer = await session.call("blocks", {})
        assert (answer.status, answer.is_error) == ("timeout", True)
        assert "did not answer 'blocks' within 0.5 s" in answer.message
        assert (await session.call("guarded", {})).status == "timeout"


async def test_a_factory_that_never_returns_is_missing_and_the_others_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modules, "HANGS_AFTER", WITHIN)
    (tmp_path / "hanging_t.py").write_text(HANGING)
    (tmp_path / "other_t.py").write_text("def well() -> str:\n    'Be well.'\n    return 'well'\n")
    (tmp_path / "pegboard.yaml").write_text(
        "store: 'memory:'\n"
        "plugins:\n"
        "  made: {python: 'hanging_t:make', timeout: 500ms}\n"
        "  p: {python: hanging_t}\n"
        "  other: {python: other_t}\n"
        "agents:\n  a: {tools: [made, p, other]}\n"
    )
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board, asyncio.timeout(PATIENCE):
        await board.ready()
        session = await board.session(agent="a", session_id="s")
        surface = await session.surface()
        assert {"blocks", "well"} <= set(surface.names)
        (missing,) = surface.missing
        assert "was not constructed within 0.5 s: it is at hanging_t.py:70." in missing.reason
        assert "Set a longer `timeout` in `plugins: made`" in missing.reason
        assert (await session.call("well", {})).status == "ok"
