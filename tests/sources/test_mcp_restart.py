"""The restart of a server by an operator, in each era and lane: what happens to calls, subscriptions, scopes."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp_helpers import SERVERS, call, happened, plain, runs, state, text, until

from pegboard.core.model.specs import ServerSpec
from pegboard.errors import UpstreamError
from pegboard.sources.mcp import McpSource


def modern() -> ServerSpec:
    """Return a server of the 2026 era in a process of its own: operators see its id."""
    return ServerSpec(name="sdk", command=sys.executable, args=(str(SERVERS / "sdk_server.py"), "stdio"))


@pytest.mark.parametrize("made", [plain, modern], ids=["handshake", "2026"])
async def test_a_call_under_way_fails_as_where_the_server_dies_and_the_next_one_works(
    source: McpSource, made: Callable[[], ServerSpec]
) -> None:
    """G8: the old process is gone before the new one starts."""
    spec = made()
    before = int(text(await call(source, spec, "pid")))
    slow = asyncio.create_task(call(source, spec, "slow"))
    await until(lambda: state(source, spec.name)["in_flight"] == 1)
    await source.restart(spec)
    with pytest.raises(UpstreamError, match="an operator restarted it") as gone:
        await slow
    assert gone.value.hint == "It may have run, so it was not repeated. The next call starts the server again."
    after = int(text(await call(source, spec, "pid")))
    assert after != before
    assert not runs(before)
    (one,) = source.connections(spec)
    assert (one.state, one.pid, one.starts, one.error) == ("up", after, 2, "")
    assert state(source, spec.name)["last_error"] == ""


async def test_every_scope_in_use_is_restarted_and_an_idle_one_stays_idle(source: McpSource) -> None:
    """G9: each gets a process of its own again."""
    used = plain()
    pids = [text(await call(source, used, "pid", scope=scope)) for scope in ("user:ada", "user:bob")]
    await source.restart(used)
    again = [text(await call(source, used, "pid", scope=scope)) for scope in ("user:ada", "user:bob")]
    assert len({*pids, *again}) == 4
    assert [one.starts for one in source.connections(used)] == [2, 2]
    assert {line.scope for line in source.printed(used)} == {"user:ada", "user:bob"}
    spec = plain(name="idler", idle=0.05)
    await call(source, spec, "echo", text="a")
    await until(lambda: source.connections(spec)[0].state == "idle")
    await source.restart(spec)
    (idle,) = source.connections(spec)
    assert (idle.state, idle.starts) == ("idle", 1)


async def test_a_server_that_ignores_every_wish_to_end_is_restarted_too(source: McpSource, tmp_path: Path) -> None:
    """G8: it is killed; nothing of it stays beside the new one."""
    log = tmp_path / "log"
    spec = plain("--stubborn", "--family", "--log", str(log))
    before = int(text(await call(source, spec, "pid")))
    await source.restart(spec)
    assert int(text(await call(source, spec, "pid"))) != before
    assert not runs(before)
    assert happened(log).count("start") == 2


async def test_restarting_again_and_again_leaves_one_process(source: McpSource, tmp_path: Path) -> None:
    """G8: whatever the connection does at that moment."""
    log = tmp_path / "log"
    spec = plain("--log", str(log))
    for _ in range(5):
        calling = asyncio.create_task(call(source, spec, "echo", text="a"))
        await asyncio.sleep(0)
        await source.restart(spec)
        await source.restart(spec)
        assert text(await calling) == "a"
        await source.restart(spec)
    await call(source, spec, "echo", text="a")
    started = [int(line.split()[1]) for line in log.read_text().splitlines() if line.startswith("start")]
    assert sum(map(runs, started)) == 1


async def test_a_source_that_closes_while_a_server_is_restarted_leaves_nothing(tmp_path: Path) -> None:
    """G8: no process, no task."""
    log = tmp_path / "log"
    spec, source = plain("--log", str(log)), McpSource()
    await call(source, spec, "echo", text="a")
    await source.restart(spec)
    await source.aclose()
    started = [int(line.split()[1]) for line in log.read_text().splitlines() if line.startswith("start")]
    assert not any(map(runs, started))
    assert asyncio.all_tasks() == {asyncio.current_task()}
