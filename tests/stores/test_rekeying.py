"""The secrets of a store, sealed anew while others work with it: no login is lost, whoever is killed when (G11)."""

import asyncio
import base64
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from kinds import KEY
from pegboard.stores.postgres.copies import PostgresCopies
from pegboard.stores.sqlite.copies import SqliteCopies
from test_keyring_keys import ring as ring  # noqa: PLC0414 - a fixture

from keyring_files import Lockable, used
from pegboard.errors import StoreError
from pegboard.ports import Store
from pegboard.ports.store_copies import Rekeyed, StoreCopies
from pegboard.stores.sql import PostgresStore, SqliteStore

NEW = base64.b64encode(b"n" * 32).decode()
Open = Callable[[], Store]


@pytest.fixture(params=["sqlite", "postgres"])
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Open, StoreCopies]:
    """Return what opens a store as a process would, and the store for whoever looks it over."""
    if request.param == "sqlite":
        path = tmp_path / "pegboard.db"
        return lambda: SqliteStore(path), SqliteCopies(path)
    url = request.getfixturevalue("postgres").address()
    return lambda: PostgresStore(url), PostgresCopies(url)


def given(patch: pytest.MonkeyPatch, key: str, second: str = "") -> None:
    patch.setenv("PEGBOARD_KEY", key)
    patch.setenv("PEGBOARD_SECOND_KEY", second)


async def started(open_: Open) -> Store:
    """Return a store that has read its keys from the variables."""
    store = open_()
    await store.open()
    await store.seal("identity", "of the start", "x", expected=None)
    return store


async def texts(store: Store) -> dict[str, str | None]:
    return {one.key: one.text for one in await store.all_sealed("grant")}


async def test_g11_two_replicas_change_over_one_after_the_other_and_read_each_other_at_every_step(
    opening: tuple[Open, StoreCopies], monkeypatch: pytest.MonkeyPatch
) -> None:
    """G11: what either stored at any step, of either principal, is read by both at every later one."""
    open_, copies = opening
    steps, stored = [(KEY, ""), (KEY, NEW), (NEW, KEY), (NEW, "")], dict[str, str]()
    given(monkeypatch, *steps[0])
    replicas = [await started(open_), await started(open_)]
    for number, step in enumerate(steps):
        given(monkeypatch, *step)
        if number == 3:
            given(monkeypatch, *steps[2])
            found = await copies.rekey()
            assert (found.place, found.made, found.unopened) == ("variable", False, 0)
            assert found.resealed > 0
            given(monkeypatch, *step)
        for place in range(2):
            await replicas[place].aclose()
            replicas[place] = await started(open_)
            for who, replica in zip(("ada", "bob"), replicas, strict=True):
                stored[f"{who} {number} {place}"] = f"token of {who}"
                await replica.seal("grant", f"{who} {number} {place}", f"token of {who}", expected=0)
            assert await texts(replicas[0]) == await texts(replicas[1]) == stored
    assert (await copies.check()).sealed.opened == {"variable": len(stored) + 1}
    for replica in replicas:
        await replica.aclose()


async def test_g11_what_is_sealed_anew_keeps_its_version_and_whoever_changes_it_is_not_refused(
    opening: tuple[Open, StoreCopies], monkeypatch: pytest.MonkeyPatch
) -> None:
    """G11: a renewal that began before stores its tokens after it, which the issuer gives once."""
    open_, copies = opening
    given(monkeypatch, KEY, NEW)
    store = await started(open_)
    version = await store.seal("grant", "ada", "old", expected=0)
    await store.seal("login", "asked", "a login that waits", expected=0, expires_at=2e9)
    given(monkeypatch, NEW, KEY)
    assert await copies.rekey() == Rekeyed("variable", made=False, there=3, resealed=3, unopened=0)
    assert await copies.rekey() == Rekeyed("variable", made=False, there=3, resealed=0, unopened=0)
    waiting = await store.sealed("login", "asked")
    assert waiting is not None
    assert (waiting.text, waiting.expires_at) == ("a login that waits", 2e9)
    assert await store.seal("grant", "ada", "renewed", expected=version)
    assert await texts(store) == {"ada": "renewed"}
    found = (await copies.check()).sealed
    assert (found.sound, found.opened) == (True, {"variable": 2, "second": 1})
    await store.aclose()


async def test_g11_logins_are_renewed_while_all_is_sealed_anew_and_none_is_lost(
    opening: tuple[Open, StoreCopies], monkeypatch: pytest.MonkeyPatch
) -> None:
    """G11: two of them at once beside a replica that stores, which also seals with the old key."""
    open_, copies = opening
    given(monkeypatch, KEY, NEW)
    store = await started(open_)
    names = [f"{who} {number}" for who in ("ada", "bob") for number in range(15)]
    versions = {name: await store.seal("grant", name, "0", expected=0) for name in names}
    given(monkeypatch, NEW, KEY)

    async def renew() -> None:
        for turn in ("1", "2"):
            for name in names:
                versions[name] = await store.seal("grant", name, turn, expected=versions[name])
                assert versions[name], name

    first, second, _ = await asyncio.gather(copies.rekey(), copies.rekey(), renew())
    assert first.unopened == second.unopened == 0
    assert await texts(store) == dict.fromkeys(names, "2")
    await copies.rekey()
    given(monkeypatch, NEW)
    assert (await copies.check()).sealed.opened == {"variable": len(names) + 1}
    await store.aclose()


async def test_g11_what_nobody_has_the_key_to_is_counted_and_left(
    opening: tuple[Open, StoreCopies], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_, copies = opening
    given(monkeypatch, KEY)
    store = await started(open_)
    await store.aclose()
    given(monkeypatch, NEW, base64.b64encode(b"x" * 32).decode())
    assert await copies.rekey() == Rekeyed("variable", made=False, there=1, resealed=0, unopened=1)
    assert (await copies.check()).sealed.opened == {"variable": 0, "second": 0}
    given(monkeypatch, KEY)
    assert (await copies.check()).sealed.sound


@pytest.mark.parametrize(
    ("second", "code", "message"),
    [
        (KEY, "key_given_twice", "PEGBOARD_SECOND_KEY holds the key that secrets are sealed with already"),
        ("no key", "key_not_valid", "PEGBOARD_SECOND_KEY does not hold a key: 32 bytes in base64"),
    ],
)
async def test_g11_a_second_key_that_is_none_is_said_and_not_shown(
    opening: tuple[Open, StoreCopies], monkeypatch: pytest.MonkeyPatch, second: str, code: str, message: str
) -> None:
    open_, copies = opening
    given(monkeypatch, KEY)
    await (await started(open_)).aclose()
    given(monkeypatch, KEY, second)
    store = open_()
    await store.open()
    for refused in (store.sealed("identity", "of the start"), copies.rekey()):
        with pytest.raises(StoreError, match=message) as caught:
            await refused
        assert caught.value.code == code
        assert second not in f"{caught.value} {caught.value.hint}"
    assert message in (await copies.check()).sealed.problem
    await store.aclose()


# -- keys that are kept beside a file, or in a keyring ----------------------------------------------


@pytest.fixture(params=["file", "keyring"])
async def beside(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file with a secret of each of two principals, whose key is kept by Pegboard itself."""
    if request.param == "keyring":
        request.getfixturevalue("ring")
    monkeypatch.delenv("PEGBOARD_KEY", raising=False)
    path = tmp_path / "pegboard.db"
    store = SqliteStore(path)
    await store.open()
    for who in ("ada", "bob"):
        await store.seal("grant", who, f"token of {who}", expected=0)
    await store.aclose()
    return path


BOTH = {"ada": "token of ada", "bob": "token of bob"}


async def read(path: Path) -> dict[str, str | None]:
    store = SqliteStore(path)
    await store.open()
    found = await texts(store)
    await store.aclose()
    return found


async def test_g11_a_new_key_takes_the_place_of_the_old_one_while_a_process_goes_on(beside: Path) -> None:
    """G11: the process that has read the old key reads and stores with the new one from then on."""
    running, copies = SqliteStore(beside), SqliteCopies(beside)
    await running.open()
    await running.seal("grant", "eve", "1", expected=0)
    for turn in ("2", "3"):
        found = await copies.rekey()
        assert (found.made, found.there, found.resealed, found.unopened) == (True, 3, 3, 0)
        await running.seal("grant", "eve", turn, expected=None)
        assert await texts(running) == await read(beside) == {**BOTH, "eve": turn}
    await copies.rekey()
    assert await texts(running) == await read(beside)
    sealed = (await copies.check()).sealed
    assert sealed.opened == {found.place: 3}
    await running.aclose()


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from pegboard.stores.sqlite import sealing_keys
from pegboard.stores.sqlite.copies import SqliteCopies

path, moment, before = sys.argv[1:]
real = getattr(sealing_keys, moment)

def killed(*args):
    if not before:
        real(*args)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(sealing_keys, moment, killed)
asyncio.run(SqliteCopies(Path(path)).rekey())
"""


@pytest.mark.parametrize(("moment", "before"), [("_following", ""), ("end_old_key", "before"), ("end_old_key", "")])
async def test_g11_whoever_is_killed_has_lost_nothing_and_the_next_one_goes_on(
    beside: Path, moment: str, before: str
) -> None:
    """G11: with the new key kept and nothing sealed with it, all sealed with it and the old one there, or not there."""
    running, copies = SqliteStore(beside), SqliteCopies(beside)
    await running.open()
    await texts(running)
    killed = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, str(beside), moment, before)
    assert await killed.wait() == -signal.SIGKILL
    assert await texts(running) == await read(beside) == BOTH
    assert (await copies.check()).sealed.sound
    await running.seal("grant", "eve", "meanwhile", expected=0)
    found = await copies.rekey()
    assert (found.made, found.unopened) == (True, 0)
    assert await texts(running) == await read(beside) == {**BOTH, "eve": "meanwhile"}
    assert len((await copies.check()).sealed.opened) == 1
    assert not list(beside.parent.glob("*.next"))
    await running.aclose()


async def test_g11_two_that_make_a_new_key_at_once_lose_nothing(beside: Path) -> None:
    found = await asyncio.gather(*(SqliteCopies(beside).rekey() for _ in range(4)))
    assert all(one.unopened == 0 for one in found)
    assert await read(beside) == BOTH


async def test_g11_a_key_that_opens_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G11: somebody may need it elsewhere, and the right one may come back."""
    monkeypatch.delenv("PEGBOARD_KEY", raising=False)
    path, key = tmp_path / "pegboard.db", tmp_path / "pegboard.db.key"
    await (await started(lambda: SqliteStore(path))).aclose()
    right = key.read_text()
    key.write_text(KEY)
    found = await SqliteCopies(path).rekey()
    assert (found.made, found.resealed, found.unopened) == (False, 0, 1)
    assert key.read_text() == KEY
    key.write_text(right)
    assert (await SqliteCopies(path).check()).sealed.sound


async def test_g11_a_file_that_cannot_be_written_keeps_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PEGBOARD_KEY", raising=False)
    path, key = tmp_path / "pegboard.db", tmp_path / "pegboard.db.key"
    await (await started(lambda: SqliteStore(path))).aclose()
    before = key.read_text()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TRIGGER no BEFORE UPDATE ON sealed BEGIN SELECT RAISE(ABORT, 'read-only'); END")
    with pytest.raises(StoreError):
        await SqliteCopies(path).rekey()
    assert key.read_text() == before
    assert (await SqliteCopies(path).check()).sealed.unopened == 0


async def test_g11_a_locked_keyring_keeps_its_key(ring: Lockable, tmp_path: Path) -> None:
    path = tmp_path / "pegboard.db"
    await (await started(lambda: SqliteStore(path))).aclose()
    ring.trouble = OSError("secret of the keyring")
    with pytest.raises(StoreError) as caught:
        await SqliteCopies(path).rekey()
    assert caught.value.code == "key_not_available"
    ring.trouble = None
    assert (await SqliteCopies(path).rekey()).unopened == 0


class Unlocking(Lockable):
    """A keyring that asks a person the first time; meanwhile somebody writes to the store."""

    meanwhile: Callable[[], object] | None = None

    def get_password(self, service: str, username: str) -> str | None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().get_password(service, username)


async def test_g11_nobody_who_writes_waits_while_a_person_unlocks_the_keyring(ring: Lockable, tmp_path: Path) -> None:
    path = tmp_path / "pegboard.db"
    await (await started(lambda: SqliteStore(path))).aclose()
    wrote: list[bool] = []

    def write() -> None:
        with closing(sqlite3.connect(path, timeout=0)) as other, other:
            other.execute("INSERT INTO secret VALUES ('meanwhile', x'00')")
            wrote.append(True)

    unlocking = Unlocking()
    unlocking.meanwhile = write
    with used(unlocking):
        assert (await SqliteCopies(path).rekey()).unopened == 0
    assert wrote == [True]


async def test_g11_a_server_without_a_key_has_nothing_to_seal_with(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = request.getfixturevalue("postgres").address()
    given(monkeypatch, KEY)
    await (await started(lambda: PostgresStore(url))).aclose()
    given(monkeypatch, "")
    assert await PostgresCopies(url).rekey() == Rekeyed("", made=False, there=1, resealed=0, unopened=1)
