"""Why an agent can, or cannot, call or load something in a session, and what would change that (F5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pegboard.board.discover import discover_loaded
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.board.views.explain import command_to_log_in, explain_name
from pegboard.core.access.decisions import Reason, pause_reason, switch_reason
from pegboard.core.access.names import named_tool
from pegboard.core.access.permissions import LOCAL, CompiledPermissions
from pegboard.core.access.switches import Switch
from pegboard.core.model.agents import World
from pegboard.core.model.catalog import Catalog, split_kind
from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.toolkits import HOST_TOOLS
from pegboard.core.model.tools import Plugin, Tool
from pegboard.core.state.active_tools import active_tools
from pegboard.core.surface.explanations import Explanation
from pegboard.core.surface.searchable import Group
from pegboard.operators.masked import Name, Verbatim, mask_value, shown_names
from pegboard.operators.near_names import NameKind
from pegboard.operators.servers import refused_of
from pegboard.operators.snapshots import read_session

MEMBERS: Final = 100

STICKY: Final = frozenset(
    {"loaded_essential", "loaded_static", "loaded_meta", "loaded_initial", "loaded_switch", "loaded_loadout"}
)

_EDITS: Final = {
    "denied_loadout": "Take it out of the loadout's `disabled`, or give the agent another loadout.",
    "denied_scope": "Give the agent `worker_scope: shared` and no `private:`, or remove this plugin.",
    "denied_filter": "Change include_tools or exclude_tools where the plugin is named.",
}

_CLASH: Final = "Unload the tool with the same name. If it is loaded from the start, change the configuration."
_LOADOUT: Final = "Another active loadout, or none, brings it back."

Subject = Tool | Group

FixKind = Literal[
    "switch",
    "grant",
    "edit",
    "parent",
    "environment",
    "restart",
    "repair",
    "pin",
    "unload",
    "loadout",
    "load",
    "turn",
    "look_up",
    "approve",
    "resume",
    "login",
]
"""What is to be done: set a switch; grant it in the file, or by a switch; edit the file; permit it to the parent's
agent; set an environment variable; start a server again; put right what the reason names; look at a changed tool
and accept it; unload what clashes; take
another loadout; load it; end the turn; look up what there is; allow its calls; end a pause; log in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainReason:
    """One thing that speaks for or against a tool: a stable code, a sentence, and file and line where it has some."""

    code: Verbatim
    text: str
    where: Verbatim = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """What an operator can do about one thing that is in the way of a call.

    Attributes:
        kind: what is to be done.
        text: one sentence that says so.
        code: the code of the reason that it answers.
        switch: the name of the switch that decides, where it is one.
        value: what that is to be set to.
        subject: what is loaded, started again or unloaded.
        where: file and line of the rule, where there is one.
    """

    kind: FixKind
    text: str
    code: Verbatim
    switch: Name = ""
    value: bool | None = None
    subject: Name = ""
    where: Verbatim = ""


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

    agent: Name
    principal: Name
    session: Name
    tool: Name
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
    members: tuple[Name, ...] = ()
    tools: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStanding:
    """Where a toolkit or plugin is in a session.

    Attributes:
        verdict: one sentence that says it.
        permitted: whether the agent may load it.
        loaded: whether all is loaded of it that the agent may use.
        tools: the wire names of its tools.
        reasons: why, what decided first.
    """

    verdict: str
    permitted: bool
    loaded: bool
    tools: tuple[str, ...]
    reasons: tuple[Reason, ...]


async def explain_for_operator(
    services: Services, agent: str, name: str, *, principal: str = LOCAL, session: str = "", sub_app: str | None = None
) -> OperatorExplanation:
    """Return the four predicates for a name, the chain of reasons, and what would make it callable (F5).

    A name that is not known is asked for first. A session without an id is a new one.
    """
    snapshot = await read_session(services, agent, principal=principal, session=session, sub_app=sub_app)
    snapshot = await discover_loaded(services, snapshot)
    group = group_of(snapshot.permissions.world, name)
    if group is None:
        snapshot, found = await explain_name(services, snapshot, name)
        group = group_of(snapshot.permissions.world, name)
        if group is None:
            return mask_value(_of_name(services, snapshot, found), await shown_names(services))
    return mask_value(_of_group(services, snapshot, group), await shown_names(services))


def _refused_accesses(services: Services, permissions: CompiledPermissions, name: str) -> Iterator[PlainReason]:
    """Yield what was refused to the confined process that a tool runs in, with the line that would allow it (A7)."""
    catalog = permissions.world.catalog
    tool = catalog.find_tool(name)
    plugin = catalog.plugins.get(tool.plugin if tool is not None else split_kind(name)[1])
    spec = None if plugin is None else services.loader.specs.get(plugin.name)
    if plugin is None or spec is None or spec.confine is None:
        return
    what = "Server" if isinstance(spec, ServerSpec) else "Plugin"
    for one in refused_of(services, spec):
        text = f"{what} '{plugin.name}' is confined, and {one.text}."
        yield plain_reason(Reason(code="refused_confined", text=text, where=plugin.place))


def _of_name(services: Services, snapshot: Snapshot, found: Explanation) -> OperatorExplanation:
    """Return the explanation of a tool, of a plugin whose tools are not known, or of a name that nothing has."""
    agent, principal, session = snapshot.info.key.agent, snapshot.info.key.principal, snapshot.info.key.session
    codes = {reason.code for reason in found.reasons}
    return OperatorExplanation(
        agent=agent,
        principal=principal,
        session=session,
        tool=found.tool,
        verdict=_verdict_sentence(found, agent, snapshot.permissions.world.catalog),
        permitted=found.permitted,
        loaded=found.loaded,
        visible=found.visible,
        callable=found.callable,
        sticky=bool(codes & STICKY),
        known="unknown" not in codes,
        reasons=(*map(plain_reason, found.reasons), *_refused_accesses(services, snapshot.permissions, found.key)),
        fixes=fixes(services, snapshot, found),
        kind=_kind(found, snapshot.permissions.world.catalog),
    )


def _kind(found: Explanation, catalog: Catalog) -> NameKind | Literal[""]:
    if _reason(found, "unknown") is not None:
        return ""
    return "plugin" if split_kind(found.tool)[1] in catalog.plugins else "tool"


def _of_group(services: Services, snapshot: Snapshot, group: Group) -> OperatorExplanation:
    """Return the explanation of a toolkit, or of a plugin whose tools are known."""
    key, standing = snapshot.info.key, standing_of(snapshot, group)
    name = unambiguous_name(snapshot.permissions.world, group)
    to_load = (load_fix(name),) if standing.permitted and not standing.loaded else ()
    return OperatorExplanation(
        agent=key.agent,
        principal=key.principal,
        session=key.session,
        tool=name,
        verdict=standing.verdict,
        permitted=standing.permitted,
        loaded=standing.loaded,
        visible=False,
        callable=False,
        sticky=False,
        known=True,
        reasons=(*map(plain_reason, standing.reasons), *_refused_accesses(services, snapshot.permissions, name)),
        fixes=(*fixes_of(snapshot.permissions, group), *to_load),
        kind=group.kind,
        members=standing.tools[:MEMBERS],
        tools=len(standing.tools),
    )


def plain_reason(reason: Reason) -> PlainReason:
    """Return a reason as plain texts, its place as file and line."""
    return PlainReason(code=reason.code, text=reason.text, where=str(reason.where or ""))


def _reason(found: Explanation, *codes: str) -> Reason | None:
    return next((reason for reason in found.reasons if reason.code in codes), None)


def _verdict_sentence(found: Explanation, agent: str, catalog: Catalog) -> str:
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
        message = f"Agent '{agent}' may use {name}, but it is not loaded, and conflicts with what is loaded."
        return f"{message} {clash.text}"
    if _reason(found, "not_seen") is not None:
        plugin = next(catalog.unseen_owners(found.tool), None)
        whose = name if plugin is None else f"'{plugin.name}'"
        doubt = "" if whose == name else f", so it is not known whether there is a tool {name}"
        return f"Agent '{agent}' may use plugin {whose}, whose tools are not known yet{doubt}."
    return _of_a_tool(found, agent)


def _of_a_tool(found: Explanation, agent: str) -> str:
    """Return the sentence about a tool that may run."""
    name = f"'{found.tool}'"
    if found.callable:
        stays = "; it is always loaded" if _reason(found, *STICKY) is not None else ""
        clashes = _reason(found, "conflict") is not None
        other = "; another toolkit would bring it with other settings" if clashes else ""
        asked = _reason(found, "may_need_approval")
        perhaps = f" {asked.text}" if asked is not None else ""
        return f"Agent '{agent}' can call {name} now{stays}{other}.{perhaps}"
    if not found.loaded:
        return f"Agent '{agent}' may use {name}, but it is not loaded in this session."
    if (asked := _reason(found, "needs_approval")) is not None:
        return f"Agent '{agent}' may call {name}, and each call needs the approval of a person. {asked.text}"
    return f"Agent '{agent}' may use {name}, but cannot call it now."


def subject_of(world: World, name: str) -> Subject | None:
    """Return what a name means: a tool before a plugin before a toolkit, unless it says which."""
    found = named_tool(world.catalog, name) or group_of(world, name)
    unseen = split_kind(name)[1]
    if found is None and unseen in world.catalog.plugins and split_kind(name)[0] in (None, "plugin"):
        return whole_group(world, "plugin", unseen)
    return found


def group_of(world: World, name: str) -> Group | None:
    """Return the toolkit, or the plugin whose tools are known, that a name means; None where a tool has it."""
    kind, bare = split_kind(name)
    plugin = world.catalog.plugins.get(bare)
    if kind == "tool" or (kind is None and named_tool(world.catalog, name) is not None):
        return None
    if kind != "toolkit" and plugin is not None and plugin.tools:
        return whole_group(world, "plugin", bare)
    return whole_group(world, "toolkit", bare) if kind != "plugin" and bare in world.toolkits else None


def whole_group(world: World, kind: Literal["toolkit", "plugin"], name: str) -> Group:
    """Return a toolkit or plugin with all of its tools that are known."""
    if kind == "plugin":
        plugin = world.catalog.plugins[name]
        return Group(kind=kind, name=name, description=plugin.description, tools=tuple(t.id for t in plugin.tools))
    toolkit = world.toolkits[name]
    ids = (tool.id for entry in toolkit.entries(world.catalog) for tool in entry.tools)
    return Group(kind=kind, name=name, description=toolkit.description, tools=tuple(dict.fromkeys(ids)))


def unambiguous_name(world: World, group: Group) -> str:
    """Return the name that means this group and nothing else."""
    others = world.catalog.plugins if group.kind == "toolkit" else world.toolkits
    alone = group.name not in others and world.catalog.find_tool(group.name) is None
    return group.name if alone else f"{group.kind}:{group.name}"


def standing_of(snapshot: Snapshot, group: Group) -> GroupStanding:
    """Return where a toolkit or plugin is in a session, and why."""
    permissions, catalog = snapshot.permissions, snapshot.permissions.world.catalog
    tools = [tool for tool_id in group.tools if (tool := catalog.by_id(tool_id)) is not None]
    own = [tool for tool in tools if permissions.permits(tool)]
    active = active_tools(permissions, snapshot.state)
    loaded = sum(tool.id in active for tool in own)
    denial = denial_of(permissions, group)
    what = f"{group.kind} '{group.name}'"
    if denial is not None:
        verdict = f"Agent '{permissions.agent.name}' may not load {what}. {denial.text}"
        reasons = [denial]
    else:
        are = f"{loaded} {'is' if loaded == 1 else 'are'} loaded"
        verdict = f"Agent '{permissions.agent.name}' may use {len(own)} of {len(tools)} tools of {what}; {are}."
        reasons = list(permissions.decide(own[0]).reasons) if own else []
    if denial is None and loaded < len(own):
        text = f"{len(own) - loaded} of its tools are not loaded in this session; they may be."
        reasons.append(Reason(code="not_loaded", text=text))
    return GroupStanding(
        verdict=verdict,
        permitted=denial is None,
        loaded=bool(own) and loaded == len(own),
        tools=tuple(tool.wire for tool in tools),
        reasons=tuple(reasons),
    )


def denial_of(permissions: CompiledPermissions, found: Tool | Group) -> Reason | None:
    """Return the first reason why the agent may not use something; None where it may."""
    if isinstance(found, Tool):
        decision = permissions.decide(found)
        return None if decision.permitted else decision.reasons[0]
    if found.kind == "toolkit":
        return _denial_of_toolkit(permissions, found.name)
    return _denial_of_plugin(permissions, permissions.world.catalog.plugins[found.name])


def _denial_of_toolkit(permissions: CompiledPermissions, name: str) -> Reason | None:
    if permissions.may_load_toolkit(name):
        return None
    if permissions.switches.pauses.agent:
        return pause_reason(permissions.agent)
    switch = permissions.switches.toolkits.get(name)
    if switch is not None and not switch.on:
        return switch_reason(switch, permissions.agent)
    text = f"Agent '{permissions.agent.name}' does not list toolkit '{name}' in `allowed_toolkits`."
    return Reason(code="not_granted", text=text, where=permissions.agent.place)


def _denial_of_plugin(permissions: CompiledPermissions, plugin: Plugin) -> Reason | None:
    if permissions.may_have_tools_of(plugin):
        return None
    return (permissions.decide(plugin.tools[0]) if plugin.tools else permissions.decide_unseen(plugin)).reasons[0]


def fixes(services: Services, snapshot: Snapshot, found: Explanation) -> tuple[Fix, ...]:
    """Return what would make a tool callable, in the order in which it is to be done."""
    codes = {reason.code for reason in found.reasons}
    if "unknown" in codes:
        if waiting := _waiting_pin(snapshot.permissions, found.tool):
            return (waiting,)
        return (Fix(kind="look_up", text="Look up which tools there are, and start the servers.", code="unknown"),)
    if found.callable:
        return ()
    own = () if found.permitted else tuple(_fixes_to_permit(snapshot.permissions, found.key, found.reasons))
    return (
        *own,
        *_logging_in(snapshot, found),
        *sorted(_fixes_to_run(services, snapshot.permissions, found), key=_order),
    )


def _logging_in(snapshot: Snapshot, found: Explanation) -> Iterator[Fix]:
    """Yield how the login is made that its server wants."""
    for reason in found.reasons:
        if reason.code == "needs_login":
            tool = snapshot.permissions.world.catalog.find_tool(found.key)
            server = tool.plugin if tool is not None else _to_load(snapshot.permissions, found.tool)
            text = f"Log in: {command_to_log_in(snapshot, server)}"
            yield Fix(kind="login", text=text, code=reason.code, subject=server)


def _order(fix: Fix) -> int:
    """Return how late something is to be done: what repairs first, then what loads, then what allows the call."""
    return {"load": 1, "turn": 1, "approve": 2}.get(fix.kind, 0)


def fixes_of(permissions: CompiledPermissions, found: Tool | Group) -> tuple[Fix, ...]:
    """Return what would permit a tool, toolkit or plugin to an agent; nothing where it is permitted."""
    if isinstance(found, Tool):
        decision = permissions.decide(found)
        name, permitted, reasons = found.wire, decision.permitted, decision.reasons
    else:
        denial = denial_of(permissions, found)
        name, permitted, reasons = (
            unambiguous_name(permissions.world, found),
            denial is None,
            (denial,) if denial is not None else (),
        )
    if permitted:
        return ()
    return tuple(_fixes_to_permit(permissions, name, reasons))


def load_fix(name: str) -> Fix:
    """Return how something is loaded that may be."""
    return Fix(kind="load", text=f"The model loads '{name}', or you do.", code="not_loaded", subject=name)


def _fixes_to_permit(permissions: CompiledPermissions, name: str, reasons: Sequence[Reason]) -> Iterator[Fix]:
    """Yield what would permit it; where an entry names its plugin and excludes it, the entry is what grants it."""
    filtered = any(reason.code == "denied_filter" for reason in reasons)
    off = iter(_switches_off(permissions, name))
    for reason in reasons:
        where = str(reason.where) if reason.where else ""
        match reason.code:
            case "denied_switch" | "denied_default":
                switch = next(off, None) if reason.code == "denied_switch" else None
                subject = switch.name if switch is not None else name
                text = f"Switch '{subject}' on for agent '{permissions.agent.name}'."
                yield Fix(kind="switch", text=text, code=reason.code, switch=subject, value=True, where=where)
            case "denied_pause":
                text = "Resume it on the page Access. Its switches stay as they are."
                yield Fix(kind="resume", text=text, code=reason.code)
            case "not_granted" if not filtered:
                text = "Grant it: in the agent's tools, allowed_toolkits, loadout or discoverable, or by a switch."
                yield Fix(kind="grant", text=text, code=reason.code, switch=name, value=True, where=where)
            case "denied_parent":
                yield Fix(kind="parent", text="Grant it to the parent's agent first.", code=reason.code, where=where)
            case "narrowed_loadout":
                yield Fix(kind="loadout", text=_LOADOUT, code=reason.code, where=where)
            case code if code in _EDITS:
                yield Fix(kind="edit", text=_EDITS[code], code=code, where=where)
            case _:
                pass


def _switches_off(permissions: CompiledPermissions, name: str) -> tuple[Switch, ...]:
    """Return the switches that deny a tool, as the decision names them."""
    tool = permissions.world.catalog.find_tool(name)
    if tool is None:
        plugin = next(permissions.world.catalog.unseen_owners(name), None)
        if plugin is None:
            return ()
        tool = Tool(plugin=plugin.name, name="")
    off = tuple(switch for switch in permissions.switches.bundles(tool) if not switch.on)
    own = permissions.switches.switch_of_tool(tool)
    return off or ((own,) if own is not None else ())


def _fixes_to_run(services: Services, permissions: CompiledPermissions, found: Explanation) -> Iterator[Fix]:
    """Yield what would load a permitted tool and let it run."""
    for reason in found.reasons:
        match reason.code:
            case "unavailable":
                yield _fix_of(services, permissions, found.key, reason)
            case "conflict" if not found.loaded:
                yield Fix(kind="unload", text=_CLASH, code=reason.code)
            case "narrowed_loadout" if found.permitted:
                where = str(reason.where) if reason.where else ""
                yield Fix(kind="loadout", text=_LOADOUT, code=reason.code, where=where)
            case "not_loaded" | "unloaded_in_turn" | "narrowed_budget" | "not_seen" if found.permitted:
                subject = _to_load(permissions, found.tool) if reason.code == "not_seen" else found.tool
                text = f"The model loads '{subject}', or you do."
                yield Fix(kind="load", text=text, code=reason.code, subject=subject)
            case "needs_approval" if found.permitted:
                where = str(reason.where) if reason.where else ""
                text = "A person allows each call when it was made: once, for the session or always."
                yield Fix(kind="approve", text=text, code=reason.code, where=where)
            case "next_request":
                yield Fix(kind="turn", text="It can be called once the turn has ended.", code=reason.code)
            case _:
                pass


def _to_load(permissions: CompiledPermissions, name: str) -> str:
    """Return the plugin to load, so that its tools become known."""
    plugin = next(permissions.world.catalog.unseen_owners(name), None)
    return plugin.name if plugin is not None else name


def _waiting_pin(permissions: CompiledPermissions, name: str) -> Fix | None:
    """Return how a tool comes to count whose definition waits for a person, by its id or its usual name (A4)."""
    for plugin in permissions.world.catalog.plugins.values():
        for own in (*plugin.unreviewed.changed, *plugin.unreviewed.new):
            tool = permissions.world.catalog.find_tool(name)
            if name in (f"{plugin.name}/{own}", f"{plugin.name}__{own}") or (
                tool is not None and (tool.plugin, tool.name) == (plugin.name, own)
            ):
                pinned = f"{plugin.name}/{own}"
                text = f"Look at it with `pegboard pins show {pinned}`, then accept it: pegboard pins accept {pinned}"
                return Fix(kind="pin", text=text, code="unavailable", subject=pinned)
    return None


def _fix_of(services: Services, permissions: CompiledPermissions, name: str, reason: Reason) -> Fix:
    """Return what lets something run that cannot."""
    catalog = permissions.world.catalog
    tool = catalog.find_tool(name)
    if waiting := _waiting_pin(permissions, name):
        return waiting
    plugin = tool.plugin if tool is not None else _to_load(permissions, name)
    spec = services.loader.specs.get(plugin)
    where = str(reason.where) if reason.where else ""
    if name in HOST_TOOLS or spec is None:
        return Fix(kind="repair", text="Correct the cause that is named.", code=reason.code, where=where)
    if (isinstance(spec, ServerSpec) and spec.unavailable) or (tool is not None and tool.needs and tool.unavailable):
        text = "Set the variable that is named in the environment, and start again."
        return Fix(kind="environment", text=text, code=reason.code, subject=plugin, where=where)
    if isinstance(spec, ServerSpec) and (tool is None or not permissions.faults.get(tool.id)):
        text = f"Correct the cause that is named, then start server '{plugin}' again."
        return Fix(kind="restart", text=text, code=reason.code, subject=plugin, where=where)
    return Fix(kind="repair", text="Correct the cause that is named.", code=reason.code, subject=plugin, where=where)
