"""The secrets of a database, sealed anew with the key of the variable while others change them (G11)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from pegboard.ports.store_copies import Rekeyed
from pegboard.stores.postgres.texts import from_column

TIMES: Final = 100
"""How often all secrets are gone through at most, while others change some of them."""
Run = Callable[[str, Sequence[Any]], Awaitable[list[Any]]]
_SWAP: Final = (
    "UPDATE {s}.sealed SET sealed = %s, place = %s WHERE id = %s AND version = %s AND sealed = %s RETURNING version"
)


async def rekey(run: Run) -> Rekeyed:
    """Seal every secret with the key that seals, and return what became of them.

    Each is compared and swapped by itself, and keeps its version: a login that is renewed at the same moment is stored
    as it is, whichever was first. Where a process stored one with another key meanwhile, that one is sealed anew, too.

    Args:
        run: Runs a statement, which is stored then.

    Raises:
        StoreError: There is no key, or a database that cannot be reached or written.
    """
    from pegboard.stores.rows.key_texts import key_of_variable, with_second
    from pegboard.stores.rows.sealing import Sealing, sealed_name

    key, resealed, there, unopened = key_of_variable(), 0, 0, 0
    if key is None:
        there = (await run("SELECT count(*) FROM {s}.sealed", ()))[0][0]
        return Rekeyed("", made=False, there=there, resealed=0, unopened=there)
    sealing = Sealing(*with_second(key))
    for _ in range(TIMES):
        rows = await run("SELECT id, kind, key, version, sealed FROM {s}.sealed", ())
        there, unopened, changed = len(rows), 0, False
        for own, kind, name, version, sealed in rows:
            named = sealed_name(from_column(kind), from_column(name))
            if (found := sealing.opened(sealed, named)) is None:
                unopened += 1
            elif found[0] != sealing.key:
                given = sealing.seal(found[1], named), sealing.place, own, version, sealed
                swapped = bool(await run(_SWAP, given))
                resealed, changed = resealed + swapped, changed or not swapped
        if not changed:
            break
    return Rekeyed(sealing.place, made=False, there=there, resealed=resealed, unopened=unopened)
