"""Objects that only the thread that made them may use: their functions run in that one thread, all others beside."""

import asyncio
import logging
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pegboard import Pegboard
from pegboard.ports import CallContext
from pegboard.sources.mcp import McpSource
from pegboard.sources.plugin_process.source import PluginProcessSource
from sources.conftest import Workshop

CALLS = 8

MODULE = '''
import functools
import sqlite3
import threading
from collections.abc import Callable
from pegboard import tool

TABLE = "create table notes (text)"


class Notes:
    """Notes in a database that is opened at once."""

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute(TABLE)

    def note(self, text: str) -> int:
        """Write a note, and count all."""
        self.db.execute("insert into notes values (?)", (text,))
        return self.db.execute("select count(*) from notes").fetchone()[0]

    def close(self) -> None:
        self.db.close()


class Late(Notes):
    """Notes in a database that the first call opens."""

    def __init__(self) -> None:
        self.db = None

    def note(self, text: str) -> int:
        """Write a note, and count all."""
        if self.db is None:
            Notes.__init__(self)
        return Notes.note(self, text)


class Store:
    """What notes are kept in."""

    def __init__(self) -> None:
        self.pages = {"cursor": Notes().db.cursor()}


class Nested:
    """Notes behind a cursor in an object of its own."""

    def __init__(self) -> None:
        self._store = Store()

    def note(self, text: str) -> int:
        """Write a note, and count all."""
        cursor = self._store.pages["cursor"]
        cursor.execute("insert into notes values (?)", (text,))
        return cursor.execute("select count(*) from notes").fetchone()[0]


class Guarded(Notes):
    """Notes of which a guard and a condition read the database too."""

    def is_available(self, principal: str, agent: str, sub_app: str | None) -> bool:
        return self.db.execute("select 1").fetchone()[0] == 1

    @tool(guard=lambda principal, arguments: None)
    def note(self, text: str) -> int:
        """Write a note, and count all."""
        return super().note(text)


def factory() -> list:
    """Make notes of functions."""
    notes = Notes()

    def note(text: str) -> int:
        """Write a note, and count all."""
        return notes.note(text)

    return [note]


def partials() -> dict[str, Callable[..., int]]:
    """Make notes of a partial function."""

    def note(notes: Notes, text: str) -> int:
        """Write a note, and count all."""
        return notes.note(text)

    return {"note": functools.partial(note, Notes())}
'''

GLOBAL = '''
import sqlite3

_db = sqlite3.connect(":memory:")
_db.execute("create table notes (text)")


def note(text: str) -> int:
    """Write a note, and count all."""
    _db.execute("insert into notes values (?)", (text,))
    return _db.execute("select count(*) from notes").fetchone()[0]


class Notes:
    """Notes in the database of the module."""

    def __init__(self) -> None:
        _db.execute("insert into notes values ('first')")

    def note(self, text: str) -> int:
        """Write a note, and count all."""
        return note(text) - 1
'''

OPENED_LATER = '''
import sqlite3

_db = None


def note(text: str) -> int:
    """Write a note, and count all."""
    global _db
    if _db is None:
        _db = sqlite3.connect(":memory:")
        _db.execute("create table notes (text)")
    _db.execute("insert into notes values (?)", (text,))
    return _db.execute("select count(*) from notes").fetchone()[0]
'''

BESIDE = '''
import sqlite3
import threading


class Meeting:
    """Calls that wait for each other, beside a database that any thread may use."""

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:", check_same_thread=False)
        self.meeting = threading.Barrier(2, timeout=10)

    def meet(self) -> int:
        """Wait for another call."""
        return self.meeting.wait()
'''

PROXY = '''
class Proxy:
    """An object that answers nothing of itself."""

    def __getattribute__(self, name: str):
        raise RuntimeError("no request")


class Holder:
    """Holds one."""

    def __init__(self) -> None:
        self.request = Proxy()
        self.self = self

    def hold(self) -> str:
        """Say so."""
        return "held"
'''

PLACES = {
    "bound:Notes": MODULE,
    "bound:Late": MODULE,
    "bound:Nested": MODULE,
    "bound:Guarded": MODULE,
    "bound:factory": MODULE,
    "bound:partials": MODULE,
    "bound_global": GLOBAL,
    "bound_global:note": GLOBAL,
    "bound_global:Notes": GLOBAL,
    "bound_later": OPENED_LATER,
    "meeting:Meeting": BESIDE,
    "proxy:Holder": PROXY,
}


@asynccontextmanager
async def session_of(folder: Path, target: str):
    """Open a session of an agent that has one plugin, of a module in a folder."""
    module = target.partition(":")[0]
    (folder / f"{module}.py").write_text(PLACES[target])
    (folder / "pegboard.yaml").write_text(
        f"store: 'memory:'\nplugins:\n  p: {{python: '{target}'}}\nagents:\n  a: {{tools: [p]}}\n"
    )
    async with Pegboard.open(folder / "pegboard.yaml") as board:
        await board.ready()
        yield await board.session(agent="a", session_id="s")


async def count(session) -> int:
    answer = await session.call("note", {"text": "x"})
    assert answer.status == "ok", answer
    return int(answer.result.content[0]["text"])


@pytest.mark.parametrize("target", [target for target in PLACES if target.startswith("bound")])
async def test_what_is_bound_to_a_thread_is_used_in_it(
    tmp_path: Path, target: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with session_of(tmp_path, target) as session:
            assert await count(session) == 1
            counts = await asyncio.gather(*(count(session) for _ in range(CALLS)))
            assert sorted(counts) == list(range(2, CALLS + 2))
    assert not [record for record in caplog.records if "closed" in record.getMessage()]


@pytest.mark.parametrize("target", ["bound:Notes", "bound:Late", "bound_global", "bound_later"])
async def test_so_it_is_in_a_process_of_its_own(tmp_path: Path, target: str) -> None:
    processes = McpSource(mask=str)
    source = PluginProcessSource(processes, env={}, apart=lambda _: True)
    workshop = Workshop(tmp_path)
    workshop.source = source  # type: ignore[assignment]
    workshop.write(f"{target.partition(':')[0]}.py", PLACES[target])
    try:
        spec = workshop.spec(target)
        tool = (await source.describe(spec, {})).tools[0]
        context = CallContext(principal="ann", scope="user:ann")
        assert (await source.call(spec, {}, tool, {"text": "x"}, context)).content[0]["text"] == "1"
        calls = (source.call(spec, {}, tool, {"text": "x"}, context) for _ in range(CALLS))
        counts = [int(result.content[0]["text"]) for result in await asyncio.gather(*calls)]
        assert sorted(counts) == list(range(2, CALLS + 2))
    finally:
        await source.aclose()


async def test_other_objects_are_used_by_several_threads_at_once(tmp_path: Path) -> None:
    async with session_of(tmp_path, "meeting:Meeting") as session:
        answers = await asyncio.gather(session.call("meet", {}), session.call("meet", {}))
        assert {answer.result.content[0]["text"] for answer in answers} == {"0", "1"}


async def test_an_object_that_cannot_be_looked_at_is_called_all_the_same(tmp_path: Path) -> None:
    async with session_of(tmp_path, "proxy:Holder") as session:
        assert (await session.call("hold", {})).result.content[0]["text"] == "held"
