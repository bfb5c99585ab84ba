"""The commands of a session, and their outcomes (S10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from pegboard.core.access.names import suggestion, tools_meant
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.catalog import Ref
from pegboard.core.model.delivery import TakesEffect
from pegboard.core.model.leases import UNLOAD, LeaseTerm
from pegboard.core.model.masking import Masker
from pegboard.core.model.tools import EMPTY, JsonObject, Tool
from pegboard.core.state.sessions import State
from pegboard.core.state.subjects import plugins_in_reach

Status = Literal[
    "loaded",
    "already_loaded",
    "unloaded",
    "not_loaded",
    "sticky",
    "not_found",
    "conflict",
    "over_budget",
    "scope_incompatible",
    "tool_unavailable",
    "error",
]
SUCCEEDED: frozenset[str] = frozenset({"loaded", "already_loaded", "unloaded", "not_loaded"})
NO_SESSION = "Dynamic toolkit changes require a stable session_id."


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A command to load toolkits, plugins, tools or categories; ``until`` None takes the session's default.

    With ``siblings`` what is used together with the tools that it names may come with them, as far as that is cheap:
    whoever gives it has room for their schemas (S5). ``renews``: the model still has what is loaded, so that it can be
    called at once (D3). ``by`` is another agent, whose load of a toolkit that it shares this is (S1).
    """

    names: tuple[str, ...]
    until: LeaseTerm | None = None
    siblings: bool = False
    renews: bool = False
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unload:
    """A command to unload what was loaded."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """A command to load everything permitted for this turn, within the budget (S8)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLoadout:
    """A command to narrow the session to a loadout; None narrows nothing (L7). ``own``: the agent itself gives it."""

    loadout: str | None
    own: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTurn:
    """The end of a turn: the counter grows, leases that lapse go (S6, S7).

    ``turn`` is the number of the turn that begins, by a host that derives it; None is the next one. One that is not
    greater than the current changes nothing.
    """

    turn: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """The use of a tool, which refreshes its lease (S7)."""

    tool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkTurn:
    """The turn label that a client gave; another one than before ends the turn (G3)."""

    label: str


Command = Load | Unload | Fallback | SetLoadout | EndTurn | MarkTurn | Use


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """What a session's host and dialect add to a command.

    ``from_next_turn`` is whether what is loaded joins the surface with the next turn only (D2). ``stable`` is whether
    the session has an id; ``price`` counts the tokens of tools where the
    budget needs it; ``meta`` are the meta-tools that stand on the surface.
    """

    until: LeaseTerm = UNLOAD
    takes_effect: TakesEffect = "next_step"
    from_next_turn: bool = False
    stable: bool = True
    meta: tuple[Tool, ...] = ()
    price: Callable[[Iterable[Tool]], int] | None = None
    masker: Masker = field(default_factory=Masker)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """The answer to one name of a command.

    Attributes:
        name: the name as it was given.
        status: loaded, unloaded, not_found …; see ``docs/errors.md``.
        message: one sentence for the model.
        subject: what the name was found to mean, or None.
        details: what more there is, as JSON.
    """

    name: str
    status: Status
    message: str
    subject: Ref | None = None
    details: JsonObject = field(default=EMPTY)

    @property
    def text(self) -> str:
        """Return the message, with the names of what a fallback had no room for (S8)."""
        excluded = self.details.get("excluded")
        return f"{self.message}. Not loaded: {', '.join(excluded)}." if excluded else self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a command did (S10).

    Attributes:
        status: ok, partial (some names were refused) or refused.
        items: the answer to each name.
        takes_effect: when the change can be used (D2), or None where nothing changed.
        loaded: the wire names of everything that is loaded now.
        added: the tools that were not loaded before.
        removed: the wire names of those that are no longer loaded.
        message: everything in sentences for the model.
        policy: the policy text of the added (T6).
        turn: the session's turn after it.
        anticipated: what was loaded beside it, ahead of being asked for (S5).
        gave_way: what had been loaded ahead and ended to make room (S9).
    """

    status: Literal["ok", "partial", "refused"]
    items: tuple[Item, ...] = ()
    takes_effect: TakesEffect | None = None
    loaded: tuple[str, ...] = ()
    added: tuple[Tool, ...] = ()
    removed: tuple[str, ...] = ()
    message: str = ""
    policy: str = ""
    turn: int = 1
    anticipated: tuple[Ref, ...] = ()
    gave_way: tuple[Ref, ...] = ()


def not_found_item(permissions: CompiledPermissions, state: State, name: str) -> Item:
    """Return the answer for a name that means nothing in reach, or several tools, with what may have been meant."""
    shown = name if len(name) <= 100 else f"{name[:100]}…"
    several = [repr(tool.id) for tool in tools_meant(permissions, name)]
    if len(several) > 1:
        message = f"'{shown}' is the name of {len(several)} tools: {', '.join(several)}. Write one of these."
        return Item(name=shown, status="conflict", message=message, details={"conflicting_tool": shown})
    within = plugins_in_reach(permissions, state.loadout).__contains__ if state.loadout is not None else None
    hint = suggestion(permissions, name, within)
    message = f"'{shown}' was not found." + (f" {hint}" if hint else "")
    return Item(name=shown, status="not_found", message=message)
