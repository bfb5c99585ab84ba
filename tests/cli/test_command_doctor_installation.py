"""`pegboard doctor` without a name: the store, the processes that serve it, clocks and the key (G14)."""

import asyncio
import base64
import json
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from command_support import Run, misfits

from pegboard.cli.doctor import MOST_APART, diagnose_installation, installation_json, installation_lines
from pegboard.ports.replicas import Replica
from pegboard.ports.store_copies import StoreCheck
from pegboard.stores.sql import SqliteStore
from pegboard.stores.sql.sqlite_copies import SqliteCopies

KEY = base64.b64encode(bytes(range(32))).decode()
STORE = {
    "sound": bool, "kind": str, "place": str, "engine": str, "schema": int, "understood": int, "bytes": int,
    "read_only": str, "faults": type(None), "counts": dict,
    "sealed": {"place": str, "there": int, "unopened": int, "problem": str, "opened": {"variable": int}},
    "replicas": [{"id": str, "address": str, "version": str, "seen_at": float}], "now": float,
}  # fmt: skip
SHAPE = {
    "sound": bool, "version": str, "python": str, "system": str, "configuration": str, "waiting": list, "store": STORE,
    "clock_ahead": float, "error": type(None),
}  # fmt: skip
CONFIG = "store: sqlite:///state/pegboard.db\nagents: {default: {tools: [calculator]}}\n"


@pytest.fixture
def served(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of a store with a secret, which two replicas of two versions serve."""
    monkeypatch.setenv("PEGBOARD_KEY", KEY)
    (folder / "pegboard.yaml").write_text(CONFIG)
    path = folder / "state" / "pegboard.db"

    async def announced() -> None:
        store = SqliteStore(path)
        await store.open()
        await store.seal("grant", "docs", "a token", expected=0)
        await store.announce(Replica("a1", "http://10.0.0.7:8400", "0.1.0"), seconds=600)
        await store.announce(Replica("b2", "http://10.0.0.8:8400", "0.2.0"), seconds=600)
        await store.aclose()

    asyncio.run(announced())
    return path


def test_g14_doctor_says_how_store_replicas_clocks_and_key_are(run: Run, served: Path) -> None:
    """G14: in text and in JSON; nothing is changed."""
    before = served.read_bytes()
    said = run("doctor")
    assert said.code == 0
    lines = said.out.splitlines()
    titles = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert titles == [
        "Pegboard", "configuration", "store", "schema", "writable", "key", "clock", "replicas",
    ]  # fmt: skip
    assert "key            1 secret, opened by the key in PEGBOARD_KEY only." in lines
    assert "clock          the same as that of the store" in lines
    assert "replicas       2" in lines
    assert re.search(r"^  a1  http://10\.0\.0\.7:8400  Pegboard 0\.1\.0, seen \d+ s ago$", said.out, re.MULTILINE)
    assert lines[-1] == "  Pegboard 0.1.0 and 0.2.0 at the same time: update all of them soon."
    found = run("doctor", "--json").json
    assert (
        misfits({**found, "store": {**found["store"], "counts": {}}}, {**SHAPE, "store": {**STORE, "counts": {}}}) == []
    )
    assert [one["id"] for one in found["store"]["replicas"]] == ["a1", "b2"]
    assert served.read_bytes() == before


def test_what_is_wrong_exits_1(run: Run, served: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G11: a key that opens nothing; a store that cannot be read."""
    monkeypatch.setenv("PEGBOARD_KEY", base64.b64encode(b"o" * 32).decode())
    said = run("doctor")
    assert said.code == 1
    assert "1 secret, 1 of them not opened by the key in PEGBOARD_KEY" in said.out
    served.write_bytes(b"no database" * 100)
    broken = run("doctor", "--json")
    assert (broken.code, broken.json["sound"], broken.json["store"]) == (1, False, None)
    assert broken.json["error"]["code"] == "store_schema"
    assert f"store          {served} is damaged or not a database" in run("doctor").out


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ("memory:", "store          in memory: lost when the process ends"),
        ("sqlite:///state/pegboard.db", "store          none yet: the first start creates it"),
    ],
)
def test_a_store_that_is_not_there_yet_or_never_is_no_fault(run: Run, folder: Path, store: str, said: str) -> None:
    (folder / "pegboard.yaml").write_text(
        json.dumps({"store": store, "agents": {"default": {"tools": ["calculator"]}}})
    )
    ran = run("doctor")
    assert (ran.code, ran.out.splitlines()[-1]) == (0, said)
    assert not (folder / "state").exists()


class Elsewhere(SqliteCopies):
    """A store whose clock differs from that of this machine."""

    apart = 0.0

    async def check(self, *, thorough: bool = True) -> StoreCheck:
        return replace(await super().check(thorough=thorough), now=time.time() + self.apart)


@pytest.mark.parametrize(
    ("apart", "said"),
    [
        (3600.5, "3,600 s behind that of the store: set both by one time server"),
        (-3600.5, "3,600 s ahead of that of the store: set both by one time server"),
        (MOST_APART - 1, "the same as that of the store"),
        (0.0, "the same as that of the store"),
    ],
)
def test_g14_clocks_that_differ_by_more_than_five_seconds_are_said(served: Path, apart: float, said: str) -> None:
    """G14: of a machine whose clock is off by an hour, too; and then the exit code is 1."""
    copies = Elsewhere(served)
    copies.apart = apart
    found = asyncio.run(diagnose_installation("pegboard.yaml", copies))
    assert any(line.startswith(f"clock          {said}") for line in installation_lines(found))
    assert found.is_sound is (abs(apart) < MOST_APART)
    ahead = installation_json(found)["clock_ahead"]
    assert abs(ahead + apart) < 2
