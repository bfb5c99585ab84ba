"""Test that a name of 0.1.0 that is gone answers with what takes its place."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import public_names
import pytest

from pegboard import Host, Pegboard, Plugin, Session, ports


def names_in(text: str) -> list[str]:
    return text.split()


# What the faces of 0.1.0 showed.
SESSION = names_in("""
access agent board call carry_out change child circumstances dialect end_turn explain fallback focus host
instructions key load looked mark_turn out_wants own owner_of parent planned remembered schema_of search seen
settled stable start state stored surface terms text_of unload unloaded use_loadout wire wired
""")
BOARD = names_in("""
access_now aclose adopt agent claims configuration events keeper look look_everywhere look_in_background
look_later masker meter metrics offers on open open_sync parts permissions price pulse quickstart ready
recorder refresh reload routes session store upstream_states world
""")
NAMED = re.compile(r"\b(session|board)\.([a-z]\w*)")
FACES: dict[str, type] = {"session": Session, "board": Pegboard}


def test_the_ports_list_all_their_names_though_some_are_imported_late() -> None:
    assert set(ports.__all__) <= set(dir(ports))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    path.write_text('store: "memory:"\nagents: {default: {}}\n')
    return path


@pytest.fixture
async def board(config: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(config) as opened:
        yield opened


def refusals(face: object, names: list[str]) -> dict[str, str]:
    """Return the messages of the names that are gone; any other error is none of ours."""
    found: dict[str, str] = {}
    for name in names:
        try:
            getattr(face, name)
        except AttributeError as error:
            found[name] = str(error)
    return found


async def test_every_name_of_0_1_0_is_there_or_names_its_replacement(board: Pegboard) -> None:
    session = await board.session(session_id="s")
    messages = [*refusals(session, SESSION).values(), *refusals(board, BOARD).values()]
    assert len(messages) == 43
    assert [message for message in messages if " was removed; use `" not in message] == []


async def test_a_replacement_is_a_public_name(board: Pegboard) -> None:
    session = await board.session(session_id="s")
    told = {**refusals(board, BOARD), **refusals(session, SESSION)}
    named = [found for message in told.values() for found in NAMED.findall(message)]
    assert len(named) >= len(told) - 1
    assert [name for face, name in named if name not in public_names.of(FACES[face])] == []


async def test_a_removed_name_is_neither_offered_nor_found(board: Pegboard) -> None:
    session = await board.session(session_id="s")
    assert not hasattr(session, "stored")
    assert not {"stored", "keeper"} & {*dir(session), *dir(board)}
    with pytest.raises(AttributeError, match=r"^'Session' has no attribute 'lod'$"):
        session.lod  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


def test_a_removed_name_of_a_port_or_a_value_names_its_replacement_too() -> None:
    gone: list[tuple[object, str]] = [(ports, "ClaimStore"), (ports, "Clock"), (Host(), "warm")]
    gone += [(Plugin(name="git"), "takes_overrides"), (Plugin(name="git"), "without_fault")]
    for owner, name in gone:
        with pytest.raises(AttributeError, match=rf"\.{name} was removed; use `"):
            getattr(owner, name)
    assert not hasattr(ports, "NoSuchPort")


def test_the_blocking_faces_name_the_asynchronous_ones(config: Path) -> None:
    with Pegboard.open_sync(config) as board:
        told = {
            **refusals(board.session(session_id="s"), SESSION),
            **refusals(board, [*set(BOARD) - {"open", "open_sync"}]),
        }
    assert [message for message in told.values() if " was removed; use `" not in message] == []
    assert told["world"] == ("SyncPegboard.world was removed; use `board.world` in a coroutine, under `Pegboard.open`.")
