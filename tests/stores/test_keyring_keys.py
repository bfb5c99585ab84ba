"""The key of a store in the keyring: asked for beside the loop, and never replaced by one in a file (G11)."""

import asyncio
import base64
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import keyring
import pytest
from keyring.backends.fail import Keyring as NoKeyring
from keyring.backends.null import Keyring as NullKeyring
from keyring.errors import KeyringLocked, PasswordSetError
from keyrings.alt.file import PlaintextKeyring

from keyring_files import Lockable, lockable_in, used
from pegboard.errors import StoreError
from pegboard.stores.sql import SqliteStore, sealed

OTHER = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lockable]:
    monkeypatch.delenv("PEGBOARD_KEY", raising=False)
    with lockable_in(tmp_path / "keyring") as ours:
        yield ours


@pytest.fixture
async def path(ring: Lockable, tmp_path: Path) -> Path:
    """Return a store that has one secret, sealed with a key of the keyring."""
    path = tmp_path / "pegboard.db"
    await kept(path, "a")
    assert not key_of(path).exists()
    return path


def key_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.key")


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SqliteStore]:
    """Open a store, as a process of its own does."""
    store = SqliteStore(path)
    await store.open()
    try:
        yield store
    finally:
        await store.aclose()


class Slow(PlaintextKeyring):
    """A keyring that is slow to take what it is given."""

    def set_password(self, service: str, username: str, password: str) -> None:
        time.sleep(0.3)
        super().set_password(service, username, password)


async def kept(path: Path, name: str) -> None:
    """Seal a secret in a store that was just opened."""
    async with opened(path) as store:
        assert await store.seal("grant", name, f"secret {name}", expected=None)


async def texts(path: Path) -> list[str | None]:
    """Return what can be read in a store that was just opened."""
    async with opened(path) as store:
        return [one.text for one in await store.all_sealed("grant")]


@pytest.mark.parametrize("trouble", [KeyringLocked(), PasswordSetError(), OSError(), NotImplementedError()])
async def test_g11_a_first_key_is_not_made_in_a_file_where_the_keyring_fails(
    ring: Lockable, tmp_path: Path, trouble: Exception
) -> None:
    path = tmp_path / "pegboard.db"
    ring.trouble = trouble
    with pytest.raises(StoreError, match="PEGBOARD_KEY to a new key: python -c") as raised:
        await kept(path, "a")
    assert raised.value.code == "key_not_available"
    assert not key_of(path).exists()
    ring.trouble = None
    await kept(path, "a")
    assert await texts(path) == ["secret a"]
    assert not key_of(path).exists()


@pytest.mark.parametrize("nothing", [NoKeyring(), NullKeyring()])
async def test_g11_where_there_is_no_keyring_the_key_is_made_in_a_file_but_not_beside_secrets_of_a_keyring(
    path: Path, tmp_path: Path, ring: Lockable, nothing: NoKeyring | NullKeyring
) -> None:
    other = tmp_path / "other.db"
    with used(nothing):
        with pytest.raises(
            StoreError, match=r"cannot be read: (this system has no keyring|the keyring does not keep values)"
        ):
            await texts(path)
        assert not key_of(path).exists()
        await kept(other, "b")
        assert key_of(other).exists()
        assert await texts(other) == ["secret b"]
    with used(ring):
        assert await texts(path) == ["secret a"]


async def test_g11_a_file_that_shadows_the_key_of_the_keyring_hides_nothing_of_it(path: Path, ring: Lockable) -> None:
    key_of(path).write_text(OTHER)
    assert await texts(path) == ["secret a"]
    ring.trouble = KeyringLocked()
    with pytest.raises(StoreError, match="the keyring is locked"):
        await texts(path)
    ring.trouble = None
    await kept(path, "b")
    key_of(path).unlink()
    assert await texts(path) == ["secret a", "secret b"], "what opens the secrets seals those that follow"


async def test_g11_secrets_of_a_file_and_of_a_keyring_are_both_read_and_those_of_the_file_without_the_keyring(
    path: Path, ring: Lockable, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("PEGBOARD_KEY", OTHER)
        await kept(path, "b")
    key_of(path).write_text(OTHER)
    assert await texts(path) == ["secret a", "secret b"]
    ring.trouble = KeyringLocked()
    assert await texts(path) == [None, "secret b"]


class Asking(PlaintextKeyring):
    """A keyring that asks for its password, and waits until someone types it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.typed = threading.Event(), threading.Event()
        self.times = 0

    def get_password(self, service: str, username: str) -> str | None:
        self.times += 1
        self.asked.set()
        assert self.typed.wait(30)
        return super().get_password(service, username)


@pytest.fixture
async def asking(path: Path) -> AsyncIterator[Asking]:
    asking = Asking()
    with used(asking):
        yield asking
        asking.typed.set()


async def test_g11_a_keyring_that_asks_for_its_password_stops_nothing_else_and_asks_once(
    path: Path, asking: Asking
) -> None:
    async with opened(path) as store:
        waiting = [asyncio.create_task(store.sealed("grant", "a")) for _ in range(5)]
        assert await asyncio.to_thread(asking.asked.wait, 30)
        assert await store.take_lease("other", "work", seconds=1.0), "the loop goes on"
        assert not any(task.done() for task in waiting)
        asking.typed.set()
        found = await asyncio.gather(*waiting)
    assert [one.text if one else "" for one in found] == ["secret a"] * 5
    assert asking.times == 1


async def test_g11_a_keyring_that_does_not_answer_in_time_is_said_and_its_late_answer_counts(
    path: Path, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(path) as store:
        with monkeypatch.context() as patch:
            patch.setattr(sealed, "PATIENCE", 0.01)
            for _ in range(2):
                with pytest.raises(
                    StoreError, match=r"the keyring did not answer within 0\.01 s\. Unlock it"
                ) as raised:
                    await store.sealed("grant", "a")
                assert raised.value.code == "key_not_available"
        asking.typed.set()
        found = await store.sealed("grant", "a")
    assert found is not None
    assert found.text == "secret a"
    assert asking.times == 1
    assert not key_of(path).exists()
    assert keyring.get_keyring() is asking


@pytest.mark.usefixtures("ring")
async def test_g11_two_that_need_a_key_at_once_make_one_and_both_can_be_read_later(tmp_path: Path) -> None:
    path = tmp_path / "pegboard.db"
    async with opened(path):
        pass
    with used(Slow()):
        await asyncio.gather(kept(path, "a"), kept(path, "b"))
        async with opened(path) as store:
            found = [await store.sealed("grant", name) for name in ("a", "b")]
    assert [one.text for one in found if one is not None] == ["secret a", "secret b"]
