"""The tools of a session as a request to a model has them, and calls as the session knows them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast

from pegboard.board.session import Session
from pegboard.core.model.leases import LEASED
from pegboard.core.model.model_hosts import MOST_TOOLS
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.core.model.written_arguments import parsed_arguments
from pegboard.core.state.active_tools import active_tools, available
from pegboard.core.surface.surfaces import Surface
from pegboard.dialects.names import META_PLUGIN
from pegboard.frameworks.runs.warnings import warn_once
from pegboard.support.encodable import encodable, encodable_text
from pegboard.wire.acceptable_schemas import SchemaProvider, has_renamed, original_arguments, tool_for_provider
from pegboard.wire.passed_on import THROUGH
from pegboard.wire.rejections import rejection_of


def function_of(tool: Tool) -> dict[str, Any]:
    """Return a tool as providers of models take functions."""
    schema = json.loads(json.dumps(tool.input_schema))
    function = encodable({"name": tool.wire, "description": tool.description, "parameters": schema})
    return {"type": "function", "function": function}


def tool_for(provider: SchemaProvider, tool: Tool, session: Session) -> Tool:
    """Return a tool as a provider takes it; what is changed is reported once for the session."""
    taken, changes = tool_for_provider(tool, provider)
    session.report_adapted(tool, changes)
    return taken


def own_arguments(name: str, arguments: JsonObject, session: Session) -> JsonObject:
    """Return the arguments of a call under the names that its tool has for them, whatever its model was shown.

    Args:
        name: what the model called.
        arguments: what it gave.
        session: the session.
    """
    named: object = arguments.get("name") if name in THROUGH else name
    tool = session.known_tool(named) if has_renamed(arguments) and isinstance(named, str) else None
    return arguments if tool is None else original_arguments(tool, arguments)


def arguments_of(text: object) -> dict[str, Any] | None:
    """Return the arguments that a model wrote, or None where they are no object."""
    found = parsed_arguments(text)
    return None if found is None else dict(found)


def chosen_tool(choice: object) -> str | None:
    """Return the name of the one tool that a choice of tools demands in the form of any provider, or None."""
    if isinstance(choice, str):
        return None if choice in ("auto", "any", "none", "required") else choice
    if not isinstance(choice, Mapping):
        return None
    known = cast("Mapping[str, Any]", choice)
    name: object = known.get("name") or (known.get("function") or {}).get("name")
    return name if isinstance(name, str) else None


async def load_chosen(session: Session, own: Collection[str], choice: object) -> str | None:
    """Load the tool of a session that a choice of tools demands; return its name, or None where it demands none.

    Args:
        session: the session.
        own: names of the agent's own tools, which need no session.
        choice: as the host gave it, in the form of any provider.
    """
    name = chosen_tool(choice)
    if name is None or name in own:
        return None
    known = session.known_tool(name)
    if known is None or known.plugin != META_PLUGIN:
        await session.load(name)
    return name


def tool_to_choose(session: Session, own: Collection[str], name: str) -> Tool | None:
    """Return the tool of a session that a choice of tools names and that no list has, which costs the cache (D4).

    Args:
        session: the session, once it has loaded the tool.
        own: names of the agent's own tools, which need no session.
        name: what the choice of tools names.
    """
    tool = None if name in own else session.known_tool(name)
    if tool is None or tool.wire != name or tool.plugin == META_PLUGIN:
        return None
    warn_once(
        f"`tool_choice` names '{name}', which is not in the list of tools that the provider has cached. It is "
        "listed for these requests, so the provider reads the whole conversation again."
    )
    return tool


def why_misnamed_call(name: str, arguments: JsonObject, session: Session) -> str:
    """Return why a call is not run that names its tool in another form than its wire name, or nothing.

    A framework's controls by a tool's name know that one alone, and would not see this call.

    Args:
        name: what the model called.
        arguments: what it gave.
        session: the session.
    """
    named: object = arguments.get("name") if name in THROUGH else name
    tool = session.known_tool(named) if isinstance(named, str) else None
    if tool is None or tool.wire == named:
        return ""
    return f"'{one_line(str(named), limit=100)}' is called '{tool.wire}' here; it has not run. Call '{tool.wire}'."


async def reject_tools(
    error: Exception, sent: Sequence[str], own: Mapping[str, Tool], session: Session
) -> Collection[str]:
    """Return which of the session's ``own`` tools a provider does not take, by its error; each is reported.

    They are excluded from the session's requests from now on, in this process, as long as they are defined as now. What
    is only too many leaves the session's list, and counts as what may be loaded.

    Args:
        error: what the request failed with; none of a provider's is about a tool without its ``status_code``.
        sent: the names of the request's tools, in order.
        own: those of the session among them.
        session: the session.
    """
    if getattr(error, "status_code", None) is None:
        return ()
    rejection, before = rejection_of(error, sent), rejected_of(session, own.values())
    names = [name for name in rejection.names if name in own and name not in before]
    if rejection.kind == "many":
        conversation, most = session.info.conversation, len(sent) - len(rejection.names)
        conversation.most_tools = most
        if await session.fit_list(most - sum(name not in own for name in sent)):
            return names
    elif rejection.kind != "tool":
        return ()
    for name in names:
        session.info.conversation.rejected[name] = own[name]
        session.report_rejected(f"tool:{name}", rejection.text)
    return names


async def fit_list(session: Session, providers: Iterable[SchemaProvider], others: int) -> None:
    """Let a session list as many tools as a request to a model has place for.

    Args:
        session: the session.
        providers: whose models may answer.
        others: how many tools a request has that are none of the session.
    """
    limits = (*map(MOST_TOOLS.get, providers), session.info.conversation.most_tools)
    most = min((one for one in limits if one is not None), default=None)
    if most is not None:
        await session.fit_list(most - others)


def rejected_of(session: Session, tools: Iterable[Tool]) -> frozenset[str]:
    """Return the names of the tools that a provider did not take from a session as they are defined now."""
    known = session.info.conversation.rejected
    return frozenset(tool.wire for tool in tools if known.get(tool.wire) == tool) if known else frozenset()


async def loaded_outside_list(session: Session) -> tuple[Tool, ...]:
    """Return what a session has loaded, that can run now, and its list does not have (D1, P6)."""
    snapshot = await session.snapshot()
    loaded = available(snapshot.permissions, active_tools(snapshot.permissions, snapshot.state).values())
    return tuple(one.tool for one in loaded if one.because[0] in LEASED)


def prefix_of(surface: Surface) -> str:
    """Return policy and hints, for the system's text; what is loaded later stays among the hints (F2)."""
    hints = "\n".join(("Can be loaded:", *surface.hints)) if surface.hints else ""
    return encodable_text("\n\n".join(text for text in (surface.policy, hints) if text))
