"""Starts that take long, as where a package has to be installed first: who waits, and what is reported meanwhile."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mcp_helpers import happened, plain, state, text, until

from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import EMPTY, Tool
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext
from pegboard.sources.mcp import McpSource

ECHO = Tool(plugin="slow", name="echo", annotations={"readOnlyHint": True})


@pytest.fixture
async def hasty() -> AsyncIterator[McpSource]:
    """Return a source whose requests wait a little for a start."""
    source = McpSource(patience=0.3, spawns=1)
    yield source
    await source.aclose()


def slow(there: Path, log: Path, **fields: object) -> ServerSpec:
    """Return a server that answers once a file exists."""
    return plain("--wait-for", str(there), "--log", str(log), "--complain", "fetched 3 of 7", name="slow", **fields)


async def test_a_start_goes_on_after_who_asked_for_it_is_told_that_it_takes_longer(
    hasty: McpSource, tmp_path: Path
) -> None:
    """G8: still installing, with the last line; once it is there the catalog is told, and nothing was started twice."""
    there, log, changed = tmp_path / "there", tmp_path / "log", list[str]()
    spec = slow(there, log, fetched=True)
    hasty.on_changed(changed.append)
    with pytest.raises(ToolUnavailableError) as caught:
        await hasty.describe(spec, EMPTY)
    assert re.search(
        r"it is still installing, for \d+ s so far; its last line .*: fetched 3 of 7", caught.value.message
    )
    assert "`start`" in (caught.value.hint or "")
    (shown,) = hasty.connections(spec)
    assert (shown.state, "still installing" in shown.error) == ("starting", True)
    assert changed == []
    there.touch()
    await until(lambda: changed == ["slow"])
    assert (await hasty.describe(spec, EMPTY)).tools[0].name == "echo"
    assert happened(log).count("start") == 1


async def test_a_call_is_told_how_long_a_start_takes(tmp_path: Path) -> None:
    """G8: progress while it lasts; the call runs where the start ends in time."""
    there, seen = tmp_path / "there", list[tuple[float, float | None, str | None]]()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))
        there.touch()

    spec, source = slow(there, tmp_path / "log", start=50.0), McpSource(patience=6.0)
    answer = await source.call(spec, EMPTY, ECHO, {"text": "there"}, CallContext(progress=report))
    assert text(answer) == "there"
    assert seen[0][1] == 50.0
    assert "it is still starting" in (seen[0][2] or "")
    await source.aclose()


async def test_a_start_that_fails_at_last_says_why(hasty: McpSource, tmp_path: Path) -> None:
    """G8, P6: in place of that it is still being started; nothing starts it again unasked."""
    changed, log = list[str](), tmp_path / "log"
    spec = slow(tmp_path / "never", log, start=1.0)
    hasty.on_changed(changed.append)
    with pytest.raises(ToolUnavailableError, match="it is still starting"):
        await hasty.describe(spec, EMPTY)
    await until(lambda: changed == ["slow"])
    with pytest.raises(ToolUnavailableError, match="did not answer within 1 s") as caught:
        await hasty.describe(spec, EMPTY)
    assert "`start`" in (caught.value.hint or "")
    assert happened(log).count("start") == 1


async def test_a_slow_start_delays_no_other_server(hasty: McpSource, tmp_path: Path) -> None:
    """G8: although only one starts at once, the next has its turn while the slow one goes on."""
    changed, ready = list[str](), list[str]()
    hasty.on_changed(changed.append)

    async def describe(spec: ServerSpec) -> None:
        with suppress(ToolUnavailableError):
            await hasty.describe(spec, EMPTY)
            ready.append(spec.name)

    waiting = asyncio.create_task(describe(slow(tmp_path / "never", tmp_path / "log")))
    await until(lambda: any(one["state"] == "starting" for one in hasty.states()))
    await describe(plain())
    await until(lambda: bool({"plain"} & {*changed, *ready}))
    assert state(hasty, "plain")["state"] == "up"
    assert state(hasty, "slow")["state"] == "starting"
    await waiting
    assert ready in ([], ["plain"])


@pytest.mark.parametrize("how", ["load", "call"])
async def test_a_server_that_a_request_waits_for_starts_before_the_others(tmp_path: Path, how: str) -> None:
    """G8: what is fetched in the background keeps no one waiting, however many servers that are."""
    source, there = McpSource(spawns=1), tmp_path / "there"
    first, other, wanted = (
        plain("--wait-for", str(there if name == "first" else tmp_path / "never"), "--log", str(log), name=name)
        for name in ("first", "other", "wanted")
        if (log := tmp_path / name)
    )
    asked: list[asyncio.Task[Any]] = [asyncio.create_task(source.describe(first, EMPTY))]
    await until(lambda: happened(tmp_path / "first").count("initialize") == 1)
    asked.append(asyncio.create_task(source.describe(other, EMPTY)))
    await until(lambda: "other" in starting(source))
    if how == "load":  # what names a server waits for the one that asks it already
        asked.append(asyncio.create_task(source.describe(wanted, EMPTY)))
        source.need("wanted")
    else:
        asked.append(asyncio.create_task(source.call(wanted, EMPTY, ECHO, {"text": "x"}, CallContext())))
    await until(lambda: "wanted" in starting(source))
    there.touch()
    await until(lambda: "start" in happened(tmp_path / "wanted"))
    assert happened(tmp_path / "other") == []
    for task in asked:
        task.cancel()
    await source.aclose()


def starting(source: McpSource) -> set[str]:
    return {one["name"] for one in source.states() if one["state"] == "starting"}
