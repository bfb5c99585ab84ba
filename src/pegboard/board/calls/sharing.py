"""Toolkits that several agents share: a load or unload by one counts for the others too (S1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pegboard.board.meta_tools import command_context
from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo
from pegboard.board.snapshot import Snapshot, read
from pegboard.core.access.derived import once_per_permissions
from pegboard.core.access.names import lookup
from pegboard.core.access.permissions import CompiledPermissions, SessionConstraints
from pegboard.core.state.commands import SUCCEEDED, Command, Load, Outcome, Unload
from pegboard.core.state.sessions import State
from pegboard.core.surface.outcomes import apply


async def with_sharing(services: Services, snapshot: Snapshot, command: Command) -> Snapshot:
    """Return the session with those of the agents that share a toolkit which a command names.

    They are of the same principal and session id; a child, whose id nobody else has, shares nothing.
    """
    info = snapshot.info
    if not isinstance(command, Load | Unload) or not info.stable or info.parent is not None:
        return snapshot
    toolkits = _shared_toolkits(snapshot.permissions)
    if not toolkits:
        return snapshot
    refs = (lookup(snapshot.permissions, name) for name in command.names)
    named = (toolkits.get(ref.name, ()) for ref in refs if ref is not None and ref.kind == "toolkit")
    agents = dict.fromkeys(agent for others in named for agent in others)
    return replace(snapshot, sharing=tuple([await read(services, _of(services, info, agent)) for agent in agents]))


@once_per_permissions
def _shared_toolkits(permissions: CompiledPermissions) -> Mapping[str, tuple[str, ...]]:
    """Return the toolkits that an agent shares, with the other agents that are configured."""
    agents, toolkits = permissions.world.agents, permissions.world.toolkits
    found = {name: toolkit.sharing(permissions.agent.name) for name, toolkit in toolkits.items()}
    return {name: tuple(one for one in others if one in agents) for name, others in found.items() if others}


def _of(services: Services, info: SessionInfo, agent: str) -> SessionInfo:
    """Return another agent's session of the same principal and id; its own host is not known, and counts as alike."""
    key = replace(info.key, agent=agent)
    conversation = services.conversations.of(key)
    return SessionInfo(
        key=key, stable=True, host=info.host, constraints=SessionConstraints(), conversation=conversation
    )


def shared(
    services: Services, own: Snapshot, other: Snapshot, command: Command, outcome: Outcome
) -> tuple[State, Outcome]:
    """Return the state of another agent's session after a command, as far as the two share what it names.

    It is the same command under the other's own permissions, budget and settings; what did not succeed is not shared.
    """
    done = [item for item in outcome.items if item.status in SUCCEEDED and item.subject is not None]
    toolkits = _shared_toolkits(own.permissions)
    agent = other.info.key.agent
    subjects = [item.subject for item in done if item.subject is not None and item.subject.kind == "toolkit"]
    names = tuple(str(ref) for ref in subjects if agent in toolkits.get(ref.name, ()))
    if not names:
        return other.stored, Outcome(status="ok")
    mine: Command = (
        Load(names=names, until=command.until, by=own.info.key.agent)
        if isinstance(command, Load)
        else Unload(names=names)
    )
    return apply(other.permissions, other.stored, mine, command_context(services, other.info, other.permissions))
