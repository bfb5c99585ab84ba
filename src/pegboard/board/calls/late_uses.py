"""Store that a lease was used: with its call, or once a store that was lost is back (S7)."""

from __future__ import annotations

import logging

from pegboard.board.calls.commands import apply_command
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot, read
from pegboard.core.state.commands import Use
from pegboard.errors import PegboardError, StoreUnavailableError

log = logging.getLogger("pegboard")


async def used(services: Services, snapshot: Snapshot, tool: str) -> Snapshot:
    """Return the session once the use of a tool is stored; where the store is lost that waits, not the call."""
    try:
        return (await apply_command(services, snapshot, Use(tool=tool)))[0]
    except StoreUnavailableError:
        services.unstored_uses.add(snapshot.info, tool)
        return snapshot


async def store_uses(services: Services) -> None:
    """Store the uses that wait: the store is back."""
    while services.unstored_uses:
        info, tool = services.unstored_uses.take()
        try:
            await apply_command(services, await read(services, info), Use(tool=tool))
        except StoreUnavailableError:  # it is lost again, and will be back again
            services.unstored_uses.add(info, tool)
            return
        except PegboardError as error:
            log.warning("The use of %s by session '%s' is not stored: %s", tool, info.key.session[:60], error)
