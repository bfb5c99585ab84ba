"""Why an agent can, or cannot, call a tool in a session, and what would change that (F5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pegboard.board.bring_in import bring_in_loaded
from pegboard.board.services import Services
from pegboard.board.views.explain import explain_name, unseen_plugin
from pegboard.board.views.operators.fixes import Fix, fixes
from pegboard.board.views.operators.looking import look
from pegboard.board.views.operators.reasons import PlainReason, plain_reason
from pegboard.core.access.decisions import Reason
from pegboard.core.model.catalog import Catalog
from pegboard.core.model.masking import Masker
from pegboard.core.surface.explanations import Explanation

STICKY: Final = frozenset(
    {"loaded_essential", "loaded_static", "loaded_meta", "loaded_initial", "loaded_switch", "loaded_loadout"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorExplanation:
    """The four predicates for one name in one session, the chain of reasons, and what would make it callable (F5).

    Attributes:
        agent: the agent.
        principal: whose session it is.
        session: its id; nothing is a new one.
        tool: the wire name, or the name of what is no tool.
        verdict: one sentence that answers the question.
        permitted: whether the agent may use it.
        loaded: whether a lease stands on it.
        visible: whether the model sees it now.
        callable: whether a call would run now.
        sticky: whether it is loaded and cannot be unloaded.
        known: whether there is such a tool, plugin or toolkit, as far as is known.
        reasons: why, what decided first.
        fixes: what would make it callable, in the order in which it is to be done.
    """

    agent: str
    principal: str
    session: str
    tool: str
    verdict: str
    permitted: bool
    loaded: bool
    visible: bool
    callable: bool
    sticky: bool
    known: bool
    reasons: tuple[PlainReason, ...]
    fixes: tuple[Fix, ...]


async def explain(
    services: Services, agent: str, name: str, *, principal: str, session: str, sub_app: str | None
) -> OperatorExplanation:
    """Return why an agent can or cannot call a tool in a session; see :meth:`Operations.explain`."""
    snapshot = await look(services, agent, principal=principal, session=session, sub_app=sub_app)
    snapshot = await bring_in_loaded(services, snapshot)
    snapshot, found = await explain_name(services, snapshot, name)
    masker, codes = services.masker, {reason.code for reason in found.reasons}
    return OperatorExplanation(
        agent=agent,
        principal=principal,
        session=session,
        tool=found.tool,
        verdict=masker.text(_verdict(found, agent, snapshot.access.world.catalog)),
        permitted=found.permitted,
        loaded=found.loaded,
        visible=found.visible,
        callable=found.callable,
        sticky=bool(codes & STICKY),
        known="unknown" not in codes,
        reasons=tuple(plain_reason(reason, masker) for reason in found.reasons),
        fixes=tuple(_masked(fix, masker) for fix in fixes(services, snapshot, found)),
    )


def _masked(fix: Fix, masker: Masker) -> Fix:
    return replace(fix, text=masker.text(fix.text))


def _reason(found: Explanation, *codes: str) -> Reason | None:
    return next((reason for reason in found.reasons if reason.code in codes), None)


def _verdict(found: Explanation, agent: str, catalog: Catalog) -> str:
    """Return one sentence that answers the question."""
    name = f"'{found.tool}'"
    if (other := _reason(found, "unknown", "is_plugin", "is_toolkit")) is not None:
        return other.text
    if not found.permitted:
        why = found.reasons[0].text if found.reasons else ""
        more = sum(reason.code.startswith("denied_") for reason in found.reasons[1:])
        return f"Agent '{agent}' may not use {name}. {why}{f' {more} more against it below.' if more else ''}"
    if (fault := _reason(found, "unavailable")) is not None:
        return f"Agent '{agent}' may use {name}, but it cannot run now: {fault.text}"
    clash = _reason(found, "conflict")
    if clash is not None and not found.loaded:
        message = f"Agent '{agent}' may use {name}, but it is not loaded, and its toolkit clashes with what is loaded."
        return f"{message} {clash.text}"
    if _reason(found, "not_seen") is not None:
        plugin = unseen_plugin(catalog, found.tool)
        whose = name if plugin is None else f"'{plugin.name}'"
        doubt = "" if whose == name else f", so that nobody knows whether there is a tool {name}"
        return f"Agent '{agent}' may use plugin {whose}, whose tools are not known yet{doubt}."
    return _of_a_tool(found, agent)


def _of_a_tool(found: Explanation, agent: str) -> str:
    """Return the sentence about a tool that may run."""
    name = f"'{found.tool}'"
    if found.callable:
        stays = "; it is always loaded" if _reason(found, *STICKY) is not None else ""
        clashes = _reason(found, "conflict") is not None
        other = "; another toolkit would bring it with other settings" if clashes else ""
        return f"Agent '{agent}' can call {name} now{stays}{other}."
    if not found.loaded:
        return f"Agent '{agent}' may use {name}, but it is not loaded in this session."
    return f"Agent '{agent}' may use {name}, but cannot call it now."
