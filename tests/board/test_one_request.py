"""One request reads the store once, walks straight, and saves once."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from pegboard import Pegboard, Session
from pegboard.ports import SessionKey, StoredPermissions, StoredState
from pegboard.ports.adapters import Adapters
from pegboard.stores.sql import SqliteStore
from pegboard.support.own_folder import store_of

ROOT = Path(__file__).resolve().parent.parent.parent
STATEMENTS = {"load": 7, "search": 3, "surface": 1, "call": 1}
"""At most so many SQL statements, in the library; one of a load asks the file whether another process has written."""

CONFIG = """
plugins: {kits: {python: kits}}
toolkits: {first: {tools: [upper]}, second: {tools: [lower]}}
agents: {default: {dialect: pegboard, allowed_toolkits: [first, second]}}
"""
MODULE = '''
def upper(text: str) -> str:
    """Return the text in upper case."""
    return text.upper()


def lower(text: str) -> str:
    """Return the text in lower case."""
    return text.lower()
'''


class OvertakenStore(SqliteStore):
    """A store between whose read and save another process is first, once."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.reads = 0
        self.rival: Session | None = None

    async def load(self, key: SessionKey) -> StoredState | None:
        row = await super().load(key)
        self.reads += 1
        if self.rival is not None:
            rival, self.rival = self.rival, None
            assert (await rival.load("second")).status == "ok"
        return row


class RemoteStore(SqliteStore):
    """A store whose answers take a while, as over a network."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.reads = 0

    async def stored_permissions(self) -> StoredPermissions:
        self.reads += 1
        await asyncio.sleep(0.01)
        return await super().stored_permissions()


def test_a_verb_asks_the_store_with_few_statements() -> None:
    """S2, P4: counted by the benchmark, the fourth time that a verb is used."""
    command = [sys.executable, "-m", "benchmarks", "path", "--json"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    counted = {row["verb"]: row["SQL statements"] for row in json.loads(printed)["path"] if row["way"] == "library"}
    assert {verb: counted[verb] for verb, limit in STATEMENTS.items() if counted[verb] > limit} == {}


async def test_a_load_that_was_overtaken_between_read_and_save_starts_again_once(tmp_path: Path) -> None:
    """S2, X4: both loads stand, and each is in the audit trail once."""
    (tmp_path / "kits.py").write_text(MODULE)
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    path = store_of(tmp_path / "pegboard.yaml")
    async with Pegboard.open(tmp_path / "pegboard.yaml") as other:
        store = OvertakenStore(path)
        async with Pegboard.open(tmp_path / "pegboard.yaml", adapters=Adapters(store=store)) as board:
            session = await board.session(session_id="thread")
            await board.ready()
            await session.surface()
            store.reads, store.rival = 0, await other.session(session_id="thread")
            await (await other.session(session_id="another")).load("first")

            outcome = await session.load("first")

            assert (outcome.status, store.reads) == ("ok", 2)
            leases = (await session.snapshot()).state.leases
            assert [lease.subject.name for lease in leases] == ["second", "first"]
            loads = await store.entries(session="thread", kind="load")
            assert [entry.subject for entry in loads] == ["toolkit:first", "toolkit:second"]


async def test_what_another_process_has_switched_is_read_once_for_all_who_ask_at_that_moment(tmp_path: Path) -> None:
    """P4, G14: the sessions of a replica all look at their lists when a change reaches it."""
    (tmp_path / "kits.py").write_text(MODULE)
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    store = RemoteStore(store_of(tmp_path / "pegboard.yaml"))
    async with (
        Pegboard.open(tmp_path / "pegboard.yaml") as other,
        Pegboard.open(tmp_path / "pegboard.yaml", adapters=Adapters(store=store)) as board,
    ):
        sessions = [await board.session(session_id=f"thread {number}") for number in range(20)]
        for session in sessions:
            await session.load("first")
        await other.permissions.set("default", "first", False)
        store.reads = 0

        lists = await asyncio.gather(*(session.surface() for session in sessions))

        assert store.reads == 1
        assert not any(loaded.tool.name == "upper" for one in lists for loaded in one.tools)
