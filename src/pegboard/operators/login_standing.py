"""Which servers want a login, and who has one (G11)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from pegboard.board.services import Services
from pegboard.core.model.specs import PluginSpec, ServerSpec
from pegboard.ports import HasLogins

LoginNeeded = Literal["needed", "held", "own", "none"]
"""Whether a server wants a login: no one has one, someone has, the gateway logs in for itself, or it wants none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginStanding:
    """Whether a server wants a login, and who has one that counts, the newest first; nothing is masked yet."""

    login: LoginNeeded = "none"
    holders: tuple[str, ...] = ()


async def login_standing(services: Services, spec: PluginSpec) -> LoginStanding:
    """Return whether a server wants a login, as far as it has said; raises ``StoreError``."""
    if not isinstance(spec, ServerSpec) or not spec.url or spec.unavailable:
        return LoginStanding()
    if spec.auth is not None and spec.auth.kind in ("client_credentials", "private_key_jwt"):
        return LoginStanding(login="own")
    source = services.loader.source_of(spec)
    holders = await source.logins.holders(spec) if isinstance(source, HasLogins) else None
    if holders is None:
        return LoginStanding()
    names = tuple(dict.fromkeys(owner.principal for owner in holders))
    return LoginStanding(login="held" if names else "needed", holders=names)


async def standings(services: Services) -> Mapping[str, LoginStanding]:
    """Return that of every server which wants a login, by name; raises ``StoreError``."""
    found = {name: await login_standing(services, spec) for name, spec in services.loader.specs.items()}
    return {name: one for name, one in found.items() if one.login != "none"}


def may_be_used(services: Services, server: str, agents: Collection[str] | None) -> bool:
    """Return whether some of these agents may use a server; None is whoever may use all of them."""
    if agents is None:
        return True
    plugin = services.world.catalog.plugins.get(server)
    if plugin is None:
        return False
    known = [services.compiler.permissions_of_agent(name) for name in services.world.agents if name in agents]
    return any(one.may_have_tools_of(plugin) for one in known)
