"""What a lazy loader of tools promises (MR ids of tests/behaviours.md), over real boards, stores and servers."""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard, Session

SLOW_SERVER = Path(__file__).resolve().parent.parent / "servers" / "plain_server.py"
BOX = '''
class Box:
    def __init__(self, size: int = 0):
        self.size = size

    def measure(self) -> int:
        """Tell how large the box is."""
        return self.size
'''
CONFIG = """
store: sqlite:///state.db
servers:
  slow: {{command: {python}, args: [{server}, --wait-for, {folder}/gate, --log, {folder}/log]}}
  dead: {{command: {folder}/there-is-no-such-program}}
plugins:
  git: {{python: git_tools}}
  notes: {{python: notes_tools}}
  box: {{python: "box_tools:Box"}}
toolkits:
  history: {{tools: [git]}}
  writing: {{tools: [notes]}}
  small: {{tools: [{{box: {{size: 1}}}}]}}
  large: {{tools: [{{box: {{size: 2}}}}]}}
  remote: {{tools: [slow, {{box: {{size: 3}}}}]}}
  broken: {{tools: [dead]}}
agents:
  ada: {{dialect: pegboard, tools: [notes], allowed_toolkits: [history, small, large, remote, broken]}}
  bob: {{dialect: pegboard, tools: [notes], allowed_toolkits: [history]}}
  listing: {{allowed_toolkits: [history, writing], dialect: toolkits}}
  started:
    dialect: pegboard
    tools: [notes]
    allowed_toolkits: [history, writing, small]
    initial_toolkits: [history]
"""
Opened = Callable[[], AbstractAsyncContextManager[Pegboard]]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    for name, tools in {"git": ("log", "diff"), "notes": ("add_note",)}.items():
        text = "".join(f'def {tool}() -> str:\n    """Do {tool}."""\n    return "{tool}"\n\n' for tool in tools)
        (tmp_path / f"{name}_tools.py").write_text(text)
    (tmp_path / "box_tools.py").write_text(BOX)
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG.format(python=sys.executable, server=SLOW_SERVER, folder=tmp_path))
    return lambda: Pegboard.open(path, env={"HOME": str(tmp_path)})


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def out(session: Session) -> list[str]:
    """Return the wire names on the surface without the meta-tools."""
    return [held.tool.wire for held in (await session.surface()).tools if held.tool.plugin != "pegboard"]


async def leases(session: Session) -> list[str]:
    return [str(lease.subject) for lease in (await session.snapshot()).state.leases]


def statuses(outcome: Any) -> list[str]:
    return [item.status for item in outcome.items]


async def test_sessions_and_agents_have_each_their_own_and_keep_it(opened: Opened) -> None:
    """MR25, MR26, MR57, S1, S2: another session id or agent sees nothing of it, the next process everything."""
    async with opened() as board:
        assert statuses(await (await board.session(agent="ada", session_id="one")).load("history")) == ["loaded"]
    async with opened() as board:
        assert await out(await board.session(agent="ada", session_id="one")) == ["add_note", "log", "diff"]
        assert await out(await board.session(agent="ada", session_id="two")) == ["add_note"]
        assert await out(await board.session(agent="bob", session_id="one")) == ["add_note"]


async def test_without_an_id_there_is_what_is_out_from_the_start_and_nothing_to_load_with(opened: Opened) -> None:
    """MR30, MR31, S4: no meta-tools; what one such session asks for, neither it nor another has afterwards."""
    async with opened() as board:
        first, second = [await board.session(agent="started") for _ in range(2)]
        assert (await first.surface()).names == ("add_note", "log", "diff")
        assert statuses(await first.load("small")) == ["error"]
        assert (await first.call("load_tools", {"names": ["small"]})).is_error
        assert (await second.surface()).names == ("add_note", "log", "diff")
        assert await board.services.store.sessions() == []
        with_id = await board.session(agent="started", session_id="stable")
        assert "load_tools" in (await with_id.surface()).names


async def test_a_search_finds_an_exact_name_first_and_says_what_is_loaded(opened: Opened) -> None:
    """MR43, P3: nothing is loaded by it; words of descriptions are found behind it."""
    async with opened() as board:
        session = await board.session(agent="started", session_id="s")
        found = await session.search("add_note")
        assert (found.results[0].name, found.results[0].score, found.results[0].loaded) == ("add_note", 1.0, True)
        found = await session.search("how large is it")
        assert [(hit.name, hit.loaded) for hit in found.results][:1] == [("measure", False)]
        assert await leases(session) == []


async def test_only_the_line_behind_the_history_changes_with_a_load(opened: Opened) -> None:
    """MR62, MR93, F1, F2: hints and the tools before it stay to the byte; what is really sent can be looked at."""
    async with opened() as board:
        session = await board.session(agent="ada", session_id="s")
        await board.ready("git", "notes", "box")
        before = await session.surface()
        await session.load("history")
        after = await session.surface()
        assert (before.suffix, after.suffix) == ("", "Loaded now: history.")
        assert (after.hints, after.policy) == (before.hints, before.policy)
        assert after.hints[0] == "history: git (2 tools)"
        assert after.names[: len(before.names)] == before.names
        assert after.names[len(before.names) :] == ("log", "diff")
        await session.unload("history")
        assert await session.surface() == before


async def test_a_listing_never_contradicts_itself_while_another_loads(opened: Opened) -> None:
    """MR50: each answer comes from one state."""
    async with opened() as board:
        loading = await board.session(agent="listing", session_id="s")
        listing = await board.session(agent="listing", session_id="s")

        async def flip() -> None:
            for _ in range(15):
                await loading.load("history", "writing")
                await loading.unload("history", "writing")

        flipping = asyncio.create_task(flip())
        answers: list[dict[str, Any]] = []
        while not (flipping.done() and answers):
            answer = await listing.call("list_toolkits")
            answers.append(json.loads(str(answer.result.content[0]["text"])))
            await asyncio.sleep(0)  # a read of its own need not wait for anything
        await flipping
        for said in answers:
            assert said["loaded_toolkits"] == [kit["name"] for kit in said["toolkits"] if kit["loaded"]]


async def test_of_two_loads_at_once_that_clash_one_is_refused(opened: Opened) -> None:
    """MR52, S2, T5: the later one is judged by the state that the earlier one left."""
    async with opened() as board:
        await board.ready("box")
        for number in range(20):
            sessions = [await board.session(agent="ada", session_id=f"s{number}") for _ in range(2)]
            outcomes = await asyncio.gather(sessions[0].load("small"), sessions[1].load("large"))
            assert sorted(statuses(outcomes[0]) + statuses(outcomes[1])) == ["conflict", "loaded"]
            winner = "small" if statuses(outcomes[0]) == ["loaded"] else "large"
            assert await leases(sessions[0]) == [f"toolkit:{winner}"]


async def test_nobody_waits_for_a_load_that_waits_for_its_server(opened: Opened, tmp_path: Path) -> None:
    """MR53, MR51, G8: reads, calls and other loads of the same session go on; both loads stand in the end."""
    async with opened() as board:
        session = await board.session(agent="ada", session_id="s")
        loading = asyncio.create_task(session.load("remote"))
        await until((tmp_path / "log").exists)
        assert await out(session) == ["add_note"]
        assert (await session.call("add_note")).status == "ok"
        assert statuses(await session.load("history")) == ["loaded"]
        assert await out(session) == ["add_note", "log", "diff"]
        assert not loading.done()
        (tmp_path / "gate").touch()
        assert statuses(await loading) == ["loaded"]
        assert await leases(session) == ["toolkit:history", "toolkit:remote"]
        assert "slow__echo" in await out(session)


@pytest.mark.parametrize(("meanwhile", "status"), [("a switch", "not_found"), ("a load", "conflict")])
async def test_a_load_is_judged_by_what_holds_when_it_is_made(
    opened: Opened, tmp_path: Path, meanwhile: str, status: str
) -> None:
    """MR54, P4, T5: what came between while it waited for a server refuses it."""
    async with opened() as board:
        session = await board.session(agent="ada", session_id="s")
        loading = asyncio.create_task(session.load("remote"))
        await until((tmp_path / "log").exists)
        if meanwhile == "a switch":
            await board.permissions.set("ada", "remote", value=False)
        else:
            assert statuses(await session.load("small")) == ["loaded"]
        before = await leases(session)
        assert not loading.done()
        (tmp_path / "gate").touch()
        assert statuses(await loading) == [status]
        assert await leases(session) == before


async def test_a_server_that_cannot_start_blocks_no_other_load(opened: Opened) -> None:
    """MR99, MR98, P6: in the same breath, too."""
    async with opened() as board:
        session = await board.session(agent="ada", session_id="s")
        outcome = await session.load("broken", "history")
        assert (outcome.status, statuses(outcome)) == ("partial", ["tool_unavailable", "loaded"])
        assert await leases(session) == ["toolkit:history"]
        assert await out(session) == ["add_note", "log", "diff"]
