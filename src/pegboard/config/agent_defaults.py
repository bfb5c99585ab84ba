"""What an agent has of its own, of `defaults`, or where neither says anything."""

from __future__ import annotations

from pegboard.config.schema.sections import AgentSection, DefaultsSection, LeaseSection
from pegboard.core.model.agents import HINT_TOKENS, Anticipate, DialectName
from pegboard.core.model.leases import IDLE_TURNS, TURN, UNLOAD, LeaseTerm


def dialect_of(part: AgentSection, defaults: DefaultsSection) -> DialectName:
    """Return the dialect of an agent, judged from the file alone, so that no switch changes it.

    Where nobody states one, an agent that loads toolkits and nothing else has that of seed 000.
    """
    if part.dialect or defaults.dialect:
        return part.dialect or defaults.dialect or "pegboard"
    others = part.loadout is not None or part.discoverable or part.sub_apps
    return "toolkits" if part.allowed_toolkits and not others else "pegboard"


def hint_tokens(part: AgentSection, dialect: DialectName) -> int | None:
    """Return the budget of hints: in the dialect of seed 002 there is none unless one is stated (F2)."""
    if part.hints is not None:
        return part.hints.tokens
    return None if dialect == "invokeother" else HINT_TOKENS


def lease_term(part: LeaseSection | None) -> LeaseTerm | None:
    """Return how long what is loaded stays, None where nobody says so."""
    if part is None:
        return None
    match part.kind:
        case "turn":
            return TURN
        case "unload":
            return UNLOAD
        case "idle":
            return LeaseTerm("idle", IDLE_TURNS if part.turns is None else part.turns)


def anticipate(part: AgentSection, defaults: DefaultsSection, dialect: DialectName) -> Anticipate | None:
    """Return what an agent may load ahead: its own bounds, else those of all, else the dialect's."""
    chosen = part.anticipate if part.anticipate is not None else defaults.anticipate
    if chosen is None:
        return Anticipate() if dialect == "pegboard" else None
    return Anticipate(tools=chosen.tools, tokens=chosen.tokens) if chosen.tools and chosen.tokens else None
