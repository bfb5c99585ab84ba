"""Who shares what a plugin constructs, and the connections of a server (G9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pegboard.core.access.conversational import keeps_conversation
from pegboard.core.access.permissions import LOCAL, CompiledPermissions
from pegboard.core.model.specs import Instance, PluginSpec, ServerSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUser:
    """Who uses an object or a connection: a principal in a session, over a client's connection where it has one.

    ``session`` is never the same for two sessions of one principal and agent; ``client`` is "" where only the session
    tells clients apart.
    """

    principal: str
    session: str = ""
    client: str = ""


class LoginOwner(NamedTuple):
    """Whose login to a server counts: a principal's, and one agent's only where its scope says so; "" is no one's.

    No one's are those that the gateway makes for itself.
    """

    principal: str = ""
    agent: str = ""

    @property
    def scope(self) -> str:
        """Return who shares the connections that are made with it, as ``pool_scope`` has it."""
        return _join_parts({"user": self.principal, **({"agent": self.agent} if self.agent else {})})


def login_owner(permissions: CompiledPermissions, user: PoolUser) -> LoginOwner:
    """Return whose login to a server a request uses (G11)."""
    by_agent = permissions.scope.worker == "user_agent"
    return LoginOwner(user.principal, permissions.agent.name if by_agent else "")


def pool_scope(permissions: CompiledPermissions, spec: PluginSpec, user: PoolUser) -> str:
    """Return who shares the object or connection that a request uses: equal texts share one (G9).

    What the plugin says is narrowed by the scope of agent and session, never widened.
    """
    agent, scope, server = permissions.agent, permissions.scope.worker, isinstance(spec, ServerSpec)
    private = agent.private_per is not None
    by_agent = scope == "user_agent" or (private and not server)
    match spec.instance or _own_instance(spec, user):
        case "all" | "store" if scope == "shared" and not private:
            return "shared"
        case "all" | "store" | "principal":
            parts = {"agent": agent.name} if by_agent else {}
        case "session":
            return session_scope(agent.name, user)
        case "client" if user.client:
            parts = {**({"agent": agent.name} if by_agent else {}), "client": user.client}
        case "client":
            return session_scope(agent.name, user)
    return _join_parts({"user": user.principal, **parts})


def session_scope(agent: str, user: PoolUser) -> str:
    """Return what a session of an agent has to itself where a plugin says so."""
    return _join_parts({"user": user.principal, "agent": agent, "session": user.session})


def without_passing_parts(scope: str) -> str:
    """Return a scope of ``pool_scope`` without the session or client that it is narrowed to.

    >>> without_passing_parts("user:ada:agent:coder:session:17")
    'user:ada:agent:coder'
    """
    parts = scope.split(":")
    pairs = zip(parts[::2], parts[1::2], strict=False)
    lasting = [part for pair in pairs if pair[0] not in ("session", "client") for part in pair]
    return ":".join(lasting) if lasting else scope


def client_in(scope: str) -> str:
    """Return the client that a scope of ``pool_scope`` is narrowed to, or nothing.

    >>> client_in("user:ada:client:17%3A4")
    '17:4'
    """
    parts = scope.split(":")
    found = next((name for kind, name in zip(parts[::2], parts[1::2], strict=False) if kind == "client"), "")
    return found.replace("%3A", ":").replace("%25", "%")


def _join_parts(parts: Mapping[str, str]) -> str:
    return ":".join(f"{kind}:{_escape_name(name)}" for kind, name in parts.items())


def may_see(scope: str, principal: str) -> bool:
    """Return whether what is used under a scope of ``pool_scope`` is shared by all, or this principal's own."""
    own = f"user:{_escape_name(principal)}"
    return scope in ("", "shared", own) or scope.startswith(f"{own}:")


def _own_instance(spec: PluginSpec, user: PoolUser) -> Instance:
    """Return who shares what a plugin constructs, or a server's connections, where its configuration does not say."""
    if spec.shared_only:
        return "all"
    if not isinstance(spec, ServerSpec):
        return "principal"
    if user.client and keeps_conversation(spec):
        return "client"
    return "principal" if spec.command is not None and user.principal != LOCAL else "all"


def _escape_name(name: str) -> str:
    return name.replace("%", "%25").replace(":", "%3A")
