"""Logins that a test decides about, in place of those to remote servers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence

from pegboard.core.access.instances import LoginOwner
from pegboard.core.access.logins import Login, LoginNeed, PendingLogin
from pegboard.core.model.specs import PluginSpec
from pegboard.errors import NeedsLoginError, UsageError
from pegboard.ports.logins import LoginState

_LASTS = 600.0


class FakeLogins:
    """The logins to plugins that want one: a test completes them as a person would, or leaves them."""

    def __init__(self, wanted: Collection[str] = ()) -> None:
        """Say which plugins want a login.

        Args:
            wanted: Their names.
        """
        self.wanted = set(wanted)
        self.begun: dict[str, PendingLogin] = {}
        self._held: dict[tuple[str, LoginOwner], float] = {}
        self._ended: dict[str, asyncio.Event] = {}

    def require(self, plugin: str, owner: LoginOwner) -> None:
        """Raise what a source raises for a call of an owner without a login.

        Args:
            plugin: The name of the plugin that is called.
            owner: Whose login would count.

        Raises:
            NeedsLoginError: It wants a login, and the owner has none.
        """
        if plugin in self.wanted and (plugin, owner) not in self._held:
            raise NeedsLoginError(f"Plugin '{plugin}' is not available: it requires a login.", plugin=plugin)

    async def needed(self, spec: PluginSpec, owner: LoginOwner) -> LoginNeed | None:
        """Return what a login is needed for, None where the owner has one or none is wanted."""
        if spec.name not in self.wanted or (spec.name, owner) in self._held:
            return None
        return LoginNeed(plugin=spec.name, owner=owner)

    async def holders(self, spec: PluginSpec) -> Sequence[LoginOwner] | None:
        """Return who has a login, the newest first; None where none is wanted."""
        if spec.name not in self.wanted:
            return None
        held = [(at, owner) for (plugin, owner), at in self._held.items() if plugin == spec.name]
        return [owner for _, owner in sorted(held, reverse=True)]

    async def pending(self, login_id: str) -> PendingLogin | None:
        """Return a login that is still to be completed, or None."""
        return self.begun.get(login_id)

    async def begin(
        self, spec: PluginSpec, need: LoginNeed, *, redirect: str | None = None, device: bool = False
    ) -> PendingLogin:
        """Begin a login, or return the one that is pending for the same owner."""
        del redirect, device
        for known in self.begun.values():
            if (known.plugin, known.owner) == (spec.name, need.owner):
                return known
        number = f"login-{len(self._ended) + 1}"
        self._ended[number] = asyncio.Event()
        pending = self.begun[number] = PendingLogin(
            id=number,
            plugin=spec.name,
            resource=f"https://{spec.name}.example/mcp",
            owner=need.owner,
            url=f"https://login.example/authorize?state={number}",
            expires_at=time.time() + _LASTS,
        )
        return pending

    async def complete(self, answer: Mapping[str, str], *, owner: LoginOwner | None = None) -> PendingLogin:
        """Complete the login of a ``state``, which counts once; raises ``UsageError``."""
        pending = self.begun.get(answer.get("state", ""))
        if pending is None or owner not in (None, pending.owner):
            raise UsageError("No login is pending under this address.", code="login_failed")
        del self.begun[pending.id]
        self._held[pending.plugin, pending.owner] = time.time()
        self._ended[pending.id].set()
        return pending

    async def wait(self, pending: PendingLogin) -> LoginState:
        """Wait until a pending login is completed."""
        await self._ended[pending.id].wait()
        return "completed"

    async def logins(self) -> Sequence[Login]:
        """Return every login."""
        return [
            Login(
                plugin=plugin,
                resource=f"https://{plugin}.example/mcp",
                owner=owner,
                issuer="https://login.example",
                scopes=(),
                expires_at=None,
                renewable=True,
                refused="",
            )
            for plugin, owner in self._held
        ]

    async def end(self, spec: PluginSpec, owner: LoginOwner) -> bool:
        """Forget a login; return whether there was one."""
        return self._held.pop((spec.name, owner), None) is not None
