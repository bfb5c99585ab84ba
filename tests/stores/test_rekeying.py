"""The secrets of a store, sealed again while others work with it: no login is lost (G11)."""

import asyncio
import base64
from collections.abc import Callable
from pathlib import Path

import pytest
from kinds import KEY

from pegboard.errors import StoreError
from pegboard.ports import Store
from pegboard.ports.store_copies import Rekeyed, StoreCopies
from pegboard.stores.sql import PostgresStore, SqliteStore
from pegboard.stores.sql.postgres_copies import PostgresCopies
from pegboard.stores.sql.sqlite_copies import SqliteCopies

NEW = base64.b64encode(b"n" * 32).decode()
Open = Callable[[], Store]


@pytest.fixture(params=["sqlite", "postgres"])
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Open, StoreCopies]:
    """Return what opens a store as a process would, and the store for the person who looks it over."""
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
            assert (found.place, found.unopened) == ("variable", 0)
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
    assert await copies.rekey() == Rekeyed("variable", there=3, resealed=3, unopened=0)
    assert await copies.rekey() == Rekeyed("variable", there=3, resealed=0, unopened=0)
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
    assert await copies.rekey() == Rekeyed("variable", there=1, resealed=0, unopened=1)
    assert (await copies.check()).sealed.opened == {"variable": 0, "second": 0}
    given(monkeypatch, KEY)
    assert (await copies.check()).sealed.sound


@pytest.mark.parametrize(
    ("second", "code", "message"),
    [
        (KEY, "key_given_twice", "PEGBOARD_SECOND_KEY contains the key that secrets are sealed with now"),
        ("no key", "key_not_valid", "PEGBOARD_SECOND_KEY is not a key: 32 bytes in base64"),
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
