"""What an operator reads of the login that the calls of a session still need (G11, F5)."""

from __future__ import annotations

from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.core.access.decisions import Reason
from pegboard.core.access.instances import login_owner
from pegboard.core.access.logins import login_command
from pegboard.errors import PegboardError
from pegboard.ports.logins import HasLogins


def command_of(snapshot: Snapshot, plugin: str) -> str:
    """Return what is typed to log in to a server for a session."""
    return login_command(plugin, login_owner(snapshot.permissions, snapshot.info.pool_user))


async def login_reason(services: Services, snapshot: Snapshot, plugin: str) -> Reason | None:
    """Return that calls of a server wait for a login in a session, None where they do not.

    Raises ``StoreError`` where the logins cannot be read.
    """
    spec = services.loader.specs.get(plugin)
    if spec is None:
        return None
    try:
        source = services.loader.source_of(spec)
    except PegboardError:
        return None
    owner = login_owner(snapshot.permissions, snapshot.info.pool_user)
    if not isinstance(source, HasLogins) or await source.logins.needed(spec, owner) is None:
        return None
    text = f"'{plugin}' wants a login, and {owner.principal} has none: `{command_of(snapshot, plugin)}`."
    return Reason(code="needs_login", text=text, where=spec.place)
