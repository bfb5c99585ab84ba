"""A change at one replica reaches the clients of all of them that have another list by it, and no others (G14)."""

import asyncio
from pathlib import Path

import pytest

from .clients import ADA, BOB, ERAS, HANDSHAKE, MODERN, Connected, connected, edit, until
from .replica_helpers import pair


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, config_with_tokens: Path) -> Path:
    """Return a configuration with a store of each kind that several processes can share."""
    if request.param == "postgres":
        edit(config_with_tokens, "sqlite:///state.db", request.getfixturevalue("postgres").address())
    return config_with_tokens


async def heard(client: Connected, before: int) -> None:
    await until(lambda: client.changes() > before)


async def listening(client: Connected) -> None:
    """Wait until a client of the handshake era has its stream, and its list."""
    await client.names()
    await asyncio.wait_for(client.hears.wait(), 10)


async def test_a_switch_reaches_the_listeners_of_every_replica(shared: Path) -> None:
    """G14, P4, G4, G5: of both eras; whoever may not use what was switched hears nothing."""
    async with pair(shared) as two:
        where = two.first.url, two.second.url
        async with (
            connected(where[0], HANDSHAKE, token=BOB) as first,
            connected(where[1], HANDSHAKE, token=BOB) as second,
            connected(f"{where[1]}/other", HANDSHAKE, token=BOB) as other,
            connected(where[1], MODERN, token=BOB) as modern,
            modern.client.listen(tools_list_changed=True) as stream,
        ):
            for client in (first, second, other):
                await listening(client)
            await two.first.board.permissions.set("default", "talk", False, by="operator")
            await asyncio.gather(heard(first, 0), heard(second, 0), anext(stream))
            for client in (first, second, modern):
                assert "echo" not in await client.names()
            assert "echo" in await other.names()
            assert other.changes() == 0


@pytest.mark.parametrize("era", ERAS)
async def test_a_load_in_a_session_reaches_who_shares_it_at_another_replica(shared: Path, era: str) -> None:
    """G14, G5: the list of another session, or of another principal in one of that name, stays as it was."""
    async with pair(shared) as two:
        where = f"{two.first.url}?session=both", f"{two.second.url}?session=both"
        async with (
            connected(where[0], era, token=ADA) as loads,
            connected(where[1], HANDSHAKE, token=ADA) as shares,
            connected(where[1], HANDSHAKE, token=BOB) as bob,
            connected(two.second.url, HANDSHAKE, token=ADA) as alone,
        ):
            for client in (shares, bob, alone):
                await listening(client)
            await loads.load("notes")
            await heard(shares, 0)
            assert "note_add" in await shares.names()
            for client in (bob, alone):
                assert "note_add" not in await client.names()
                assert client.changes() == 0


async def test_a_call_that_changes_its_own_list_is_told_once(shared: Path) -> None:
    """G5, G14: on its stream, though its session is one that others could be in."""
    async with pair(shared) as two, connected(f"{two.first.url}?session=both", HANDSHAKE, token=ADA) as client:
        await listening(client)
        for number, name in enumerate(("notes", "up"), start=1):
            await client.load(name)
            await heard(client, number - 1)  # with its answer, or where the catalog changes with it on the stream
            assert client.changes() == number
        await two.first.board.permissions.set("default", "notes", False, by="operator")
        await heard(client, 2)
        assert client.changes() == 3


async def test_an_edit_reaches_the_listeners_of_every_replica(shared: Path) -> None:
    """G14: each replica reads the file by itself."""
    async with (
        pair(shared) as two,
        connected(two.first.url, HANDSHAKE, token=BOB) as first,
        connected(two.second.url, HANDSHAKE, token=BOB) as second,
    ):
        for client in (first, second):
            await listening(client)
        edit(shared, "default: {tools: [talk]", "default: {tools: [talk, notes]")
        await asyncio.gather(heard(first, 0), heard(second, 0))
        for client in (first, second):
            assert "note_add" in await client.names()
