"""A whole store as records that belong to no kind of database: copied out, put in, looked over."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from pegboard.errors import StoreError
from pegboard.ports.replicas import Replica

Cell = str | bytes | int | float | None
"""One value of a record; bytes are what is no text."""
OF_EVERY_STORE: Final = frozenset({"counter", "numbering", "secret"})
"""Kinds that a store has although nothing has been kept in it yet."""
OF_REPLICAS: Final = "replicas"
"""The secret that is not copied: it lets in whoever knows it, and belongs to the processes on one store."""


class CopiedRecord(NamedTuple):
    """One record: its kind, the values of its fields in their order, and the line of a file that it was read from."""

    kind: str
    values: Sequence[Cell]
    line: int = 0


def store_missing(place: str) -> StoreError:
    """Return the error for a store that is not there."""
    hint = "Look at `store:` in the configuration, and at the folder that it counts from."
    return StoreError(f"There is no store at {place}.", hint=hint, code="store_missing")


def store_not_empty(place: str, counts: Mapping[str, int]) -> StoreError:
    """Return the error for a store that has something already; ``counts`` are by kind of record."""
    held = ", ".join(f"{kind}: {count}" for kind, count in counts.items())
    return StoreError(
        f"{place} is not empty ({held}); nothing was changed.",
        hint="Import into an empty store, or remove its contents with --replace.",
        code="store_not_empty",
    )


def store_in_use(place: str, replicas: Sequence[Replica]) -> StoreError:
    """Return the error for a store that processes serve, which would not learn that all of it is another."""
    named = ", ".join(f"{replica.id} at {replica.address}" for replica in replicas)
    return StoreError(
        f"{place} is served now ({named}); nothing was changed.",
        hint="Stop these processes, import, and start them again.",
        code="store_in_use",
    )


def record_not_valid(record: CopiedRecord, error: Exception) -> StoreError:
    """Return the error for a record that a store does not take."""
    return StoreError(
        f"Line {record.line} of the copy has a record of the kind '{record.kind}' that does not fit: {error}.",
        hint="Nothing was changed. Make another copy with `pegboard store export`.",
        code="copy_not_valid",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedState:
    """How the secrets of a store stand to the keys that there are now.

    ``place`` is where the key is that seals, empty where there is none yet. ``opened`` says for the place of each key
    how many secrets it opens; ``unopened`` were sealed with another key. ``problem`` says why a key cannot be had.
    """

    place: str
    there: int
    unopened: int
    problem: str = ""
    opened: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def sound(self) -> bool:
        """Return whether everything that is sealed can be opened."""
        return not self.unopened and not self.problem


class Rekeyed(NamedTuple):
    """What became of the secrets of a store that were sealed again.

    ``place`` is where the key is that seals them now; ``resealed`` of ``there`` were sealed with it now, and
    ``unopened`` are left, sealed with a key that is not here.
    """

    place: str
    there: int
    resealed: int
    unopened: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCheck:
    """What a store is found to be.

    ``kind`` is that of the database and ``engine`` its version; ``schema`` is the version of the tables and
    ``understood`` the newest that this Pegboard knows. ``read_only`` says why nothing can be written. ``faults`` are
    those of the database itself, None where they were not looked for; ``counts`` are by kind of record. ``now`` is the
    time by the clock of the store, in seconds since the epoch.
    """

    kind: str
    place: str
    engine: str
    schema: int
    understood: int
    bytes: int
    read_only: str
    faults: Sequence[str] | None
    counts: Mapping[str, int]
    sealed: SealedState
    replicas: Sequence[Replica]
    now: float

    @property
    def sound(self) -> bool:
        """Return whether nothing is wrong with it."""
        return not self.read_only and not self.faults and self.sealed.sound


class StoreCopies(Protocol):
    """One store, for anyone who moves it or looks it over; no process need have it open."""

    @property
    def kind(self) -> str:
        """Return the kind of database, as the scheme of its address has it."""
        ...

    @property
    def place(self) -> str:
        """Return where it is, as people name it; no password is in it."""
        ...

    def export(self) -> AsyncGenerator[Sequence[CopiedRecord]]:
        """Return every record in batches, in the order of ``KINDS``, all as they stood at one moment.

        Memory is bounded by a batch. What is sealed stays so. Not copied is what ends by itself or with a process.

        Returns:
            The batches; close the iterator where it is not read to its end.

        Raises:
            StoreError: It cannot be read; ``store_missing`` where there is none.
        """
        ...

    async def import_(self, batches: AsyncIterable[Sequence[CopiedRecord]], *, replace: bool) -> None:
        """Store every record in one transaction; what raises, also in the batches, leaves the store as it was.

        Numbers, versions and revisions stay as they are copied. Counters go on from the greater of both, so that what
        other processes remember of the store never seems to be new.

        Args:
            batches: The records, as ``export`` gives them.
            replace: Whether what the store has is removed; else it has to have nothing.

        Raises:
            StoreError: It cannot be written; ``store_not_empty`` where it has something, ``store_in_use`` where
                processes serve it, ``copy_not_valid`` where a record does not fit.
        """
        ...

    async def rekey(self) -> Rekeyed:
        """Seal every secret with the key that seals now, in one transaction; versions stay.

        Raises:
            StoreError: They cannot be read or written; ``store_missing`` where there is none.
        """
        ...

    async def check(self, *, thorough: bool = True) -> StoreCheck:
        """Return what the store is found to be; nothing is changed or made.

        Args:
            thorough: Whether the database looks for damage in all of it, which takes as long as reading it.

        Returns:
            What was found.

        Raises:
            StoreError: It cannot be opened; ``store_missing`` where there is none.
        """
        ...
