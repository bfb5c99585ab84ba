"""What `pegboard doctor` says without a name: the store, the processes that serve it, clocks and the key."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pegboard.cli.rendering import plural
from pegboard.cli.store_lines import check_json, sealed_line, size_text
from pegboard.errors import StoreError
from pegboard.support.version import full_version

if TYPE_CHECKING:
    from pegboard.ports.store_copies import StoreCheck, StoreCopies

MOST_APART: Final = 5.0
"""By how many seconds the clock of this machine may differ from that of the store."""
_UNKNOWN: Final = {
    "store_in_memory": "in memory: it ends with the process",
    "store_missing": "none yet: the first start makes it",
}
"""What is said of a store that is not there and need not be, by the code of the error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What a machine and the store of a configuration are found to be.

    ``ahead`` is by how many seconds the clock of this machine is before that of the store; ``error`` is why nothing is
    known of the store. ``waiting`` are the edits of the configuration that wait for a person, as texts.
    """

    configuration: str
    store: StoreCheck | None = None
    ahead: float | None = None
    error: StoreError | None = None
    waiting: tuple[str, ...] = ()

    @property
    def apart(self) -> bool:
        """Return whether the clocks differ by more than they may."""
        return self.ahead is not None and abs(self.ahead) > MOST_APART

    @property
    def sound(self) -> bool:
        """Return whether nothing is wrong."""
        if self.store is None:
            return self.error is None or self.error.code in _UNKNOWN
        return self.store.sound and not self.apart


async def looked_over(configuration: str, copies: StoreCopies) -> Installation:
    """Return what this machine and a store are found to be; nothing is changed."""
    began = time.time()
    try:
        found = await copies.check(thorough=False)
    except StoreError as error:
        return Installation(configuration=configuration, error=error)
    ahead = max(began - found.now, 0.0) or min(time.time() - found.now, 0.0)  # the store was asked in between
    return Installation(configuration=configuration, store=found, ahead=ahead)


def installation_lines(found: Installation) -> Iterator[str]:
    """Yield what was found, for people."""
    yield f"Pegboard {full_version()} on Python {platform.python_version()}, {platform.system()}"
    yield f"configuration  {found.configuration}"
    if found.waiting:
        count = plural(len(found.waiting), "change")
        yield f"waiting        {count} until a person accepts it with `pegboard accept`: {found.waiting[0]}"
    store = found.store
    if store is None:
        yield f"store          {_UNKNOWN.get(found.error.code) or found.error if found.error else ''}"
        return
    yield f"store          {store.place} ({store.engine}), {size_text(store.bytes)}"
    yield f"schema         version {store.schema} of {store.understood}"
    yield f"writable       {f'no: {store.read_only}' if store.read_only else 'yes'}"
    yield f"key            {sealed_line(store.sealed)}"
    yield f"clock          {_clock(found)}"
    yield f"replicas       {len(store.replicas) or 'none serves it now'}"
    for one in store.replicas:
        ago = max(0.0, store.now - one.seen_at)
        yield f"  {one.id}  {one.address}  Pegboard {one.version}, seen {ago:.0f} s ago"
    versions = sorted({one.version for one in store.replicas})
    if len(versions) > 1:
        yield f"  Pegboard {' and '.join(versions)} beside each other: bring all of them to the newest soon."


def _clock(found: Installation) -> str:
    ahead = found.ahead or 0.0
    if not found.apart:
        return "the same as that of the store"
    which = "ahead of" if ahead > 0 else "behind"
    return (
        f"{abs(ahead):,.0f} s {which} that of the store: set both by one time server, "
        "else approvals and logins end too early or too late"
    )


def installation_json(found: Installation) -> dict[str, Any]:
    """Return what was found, for scripts."""
    error = found.error
    return {
        "sound": found.sound,
        "version": full_version(),
        "python": platform.python_version(),
        "system": platform.system(),
        "configuration": found.configuration,
        "waiting": list(found.waiting),
        "store": None if found.store is None else check_json(found.store),
        "clock_ahead": found.ahead,
        "error": None if error is None else {"code": error.code, "message": error.message, "hint": error.hint},
    }
