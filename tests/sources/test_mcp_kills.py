"""Calls of a server that is killed: made again where it never read them, else only where that changes nothing (G8)."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from mcp_helpers import call, condition_of, happened, plain, runs, state, text, until

from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import Frozen, Tool
from pegboard.errors import UpstreamError
from pegboard.ports import CallContext
from pegboard.sources.mcp import McpSource

pytestmark = pytest.mark.cover(1)

HINTS = [{"readOnlyHint": True}, {"idempotentHint": True}]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def spec(log: Path) -> ServerSpec:
    return plain("--log", str(log))


async def stopped(source: McpSource, spec: ServerSpec) -> int:
    """Return the process id of the server, which reads nothing from now on."""
    pid = int(text(await call(source, spec, "pid")))
    os.kill(pid, signal.SIGSTOP)
    await until(lambda: condition_of(pid) in {"T", ""})
    return pid


async def written(source: McpSource, calls: int) -> None:
    """Wait until so many calls are under way and written."""
    await until(lambda: state(source, "plain")["in_flight"] == calls)
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize("count", [1, 3])
async def test_calls_that_a_killed_server_never_read_are_made_again_whatever_they_do(
    source: McpSource, spec: ServerSpec, log: Path, count: int
) -> None:
    before = await stopped(source, spec)
    tasks = [asyncio.create_task(call(source, spec, "pid")) for _ in range(count)]
    await written(source, count)
    os.kill(before, signal.SIGKILL)
    answers = {int(text(answer)) for answer in await asyncio.gather(*tasks)}
    assert len(answers) == 1
    assert before not in answers
    assert happened(log).count("call:pid") == 1 + count


async def test_a_large_call_that_was_read_in_part_is_made_again(source: McpSource, spec: ServerSpec) -> None:
    "A message without its end never ran; it does not fit into the pipe."
    before = await stopped(source, spec)
    task = asyncio.create_task(call(source, spec, "echo", text="x" * 1_000_000))
    await written(source, 1)
    os.kill(before, signal.SIGKILL)
    assert len(text(await task)) == 1_000_000


async def test_a_call_of_a_server_that_is_dead_already_is_made_on_a_new_one(
    source: McpSource, spec: ServerSpec, log: Path
) -> None:
    before = int(text(await call(source, spec, "pid")))
    os.kill(before, signal.SIGKILL)
    await until(lambda: not runs(before))
    assert int(text(await call(source, spec, "pid"))) != before
    assert happened(log).count("call:pid") == 2


@pytest.mark.both_paths
async def test_a_call_that_the_server_read_before_it_died_is_not_repeated_and_the_error_says_so(
    source: McpSource, spec: ServerSpec, log: Path
) -> None:
    with pytest.raises(UpstreamError, match="went away during the call of 'crash': it exited with code 7") as caught:
        await call(source, spec, "crash")
    assert caught.value.hint == "It may have run, so it was not repeated. The next call starts the server again."
    assert happened(log).count("call:crash") == 1
    assert text(await call(source, spec, "echo", text="back")) == "back"


@pytest.mark.parametrize("hints", HINTS, ids=["read-only", "idempotent"])
async def test_a_read_only_or_idempotent_call_is_repeated_once(
    source: McpSource, spec: ServerSpec, log: Path, hints: dict[str, bool], tmp_path: Path
) -> None:
    tool = Tool(plugin="plain", name="crash_once", annotations=Frozen(hints))
    survived = await source.call(spec, {}, tool, {"marker": str(tmp_path / "marker")}, CallContext())
    assert text(survived) == "survived"
    assert happened(log).count("call:crash_once") == 2


@pytest.mark.parametrize("hints", HINTS, ids=["read-only", "idempotent"])
async def test_a_call_that_kills_the_server_twice_fails_and_the_error_says_that_it_was_repeated(
    source: McpSource, spec: ServerSpec, log: Path, hints: dict[str, bool]
) -> None:
    tool = Tool(plugin="plain", name="crash", annotations=Frozen(hints))
    with pytest.raises(UpstreamError, match="went away") as caught:
        await source.call(spec, {}, tool, {}, CallContext())
    assert caught.value.hint == "It was repeated once and may have run. The next call starts the server again."
    assert happened(log).count("call:crash") == 2
