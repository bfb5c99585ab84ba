"""Why an agent can, or cannot, call a tool in a session, and what would change that (F5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from pegboard.board.discover import discover_loaded
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.board.views.explain import explain_name, unseen_plugin
from pegboard.core.access.decisions import Reason
from pegboard.core.access.settings.plain_reasons import PlainReason, plain_reason
from pegboard.core.model.catalog import Catalog, split_kind
from pegboard.core.surface.explanations import Explanation
from pegboard.core.surface.searchable import Group
from pegboard.operators.fixes import Fix, fixes, fixes_of, load_fix, masked
from pegboard.operators.groups import group_of, standing_of, written
from pegboard.operators.near_names import NameKind
from pegboard.operators.snapshots import read_session

MEMBERS: Final = 100
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
        kind: what it is; nothing where there is none of this name. A toolkit or plugin whose tools are known is
            ``permitted`` where it may be loaded, and ``loaded`` where all of it is that the agent may use; it is never
            visible or callable itself.
        members: the wire names of its first 100 tools, where it is a toolkit or plugin.
        tools: how many it has.
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
    kind: NameKind | Literal[""] = "tool"
    members: tuple[str, ...] = ()
    tools: int = 0


async def explain(
    services: Services, agent: str, name: str, *, principal: str, session: str, sub_app: str | None
) -> OperatorExplanation:
    """Return why an agent can or cannot call a tool in a session; see :meth:`Operations.explain`."""
    snapshot = await read_session(services, agent, principal=principal, session=session, sub_app=sub_app)
    snapshot = await discover_loaded(services, snapshot)
    group = group_of(snapshot.permissions.world, name)
    if group is None:
        snapshot, found = await explain_name(services, snapshot, name)
        group = group_of(snapshot.permissions.world, name)
        if group is None:
            return _of_name(services, snapshot, found)
    return _of_group(services, snapshot, group)


def _of_name(services: Services, snapshot: Snapshot, found: Explanation) -> OperatorExplanation:
    """Return the explanation of a tool, of a plugin whose tools are not known, or of a name that nothing has."""
    agent, principal, session = snapshot.info.key.agent, snapshot.info.key.principal, snapshot.info.key.session
    masker, codes = services.masker, {reason.code for reason in found.reasons}
    return OperatorExplanation(
        agent=agent,
        principal=principal,
        session=session,
        tool=found.tool,
        verdict=masker.text(_verdict(found, agent, snapshot.permissions.world.catalog)),
        permitted=found.permitted,
        loaded=found.loaded,
        visible=found.visible,
        callable=found.callable,
        sticky=bool(codes & STICKY),
        known="unknown" not in codes,
        reasons=tuple(plain_reason(reason, masker) for reason in found.reasons),
        fixes=tuple(masked(fix, masker) for fix in fixes(services, snapshot, found)),
        kind=_kind(found, snapshot.permissions.world.catalog),
    )


def _kind(found: Explanation, catalog: Catalog) -> NameKind | Literal[""]:
    if _reason(found, "unknown") is not None:
        return ""
    return "plugin" if split_kind(found.tool)[1] in catalog.plugins else "tool"


def _of_group(services: Services, snapshot: Snapshot, group: Group) -> OperatorExplanation:
    """Return the explanation of a toolkit, or of a plugin whose tools are known."""
    key, masker, standing = snapshot.info.key, services.masker, standing_of(snapshot, group)
    name = written(snapshot.permissions.world, group)
    to_load = (load_fix(name),) if standing.permitted and not standing.loaded else ()
    return OperatorExplanation(
        agent=key.agent,
        principal=key.principal,
        session=key.session,
        tool=name,
        verdict=masker.text(standing.verdict),
        permitted=standing.permitted,
        loaded=standing.loaded,
        visible=False,
        callable=False,
        sticky=False,
        known=True,
        reasons=tuple(plain_reason(reason, masker) for reason in standing.reasons),
        fixes=(*fixes_of(snapshot.permissions, group, masker), *to_load),
        kind=group.kind,
        members=standing.tools[:MEMBERS],
        tools=len(standing.tools),
    )


def _reason(found: Explanation, *codes: str) -> Reason | None:
    return next((reason for reason in found.reasons if reason.code in codes), None)


def _verdict(found: Explanation, agent: str, catalog: Catalog) -> str:
    """Return one sentence that answers the question."""
    name = f"'{found.tool}'"
    if (other := _reason(found, "unknown")) is not None:
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
