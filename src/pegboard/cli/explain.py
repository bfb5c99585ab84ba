"""`pegboard explain TOOL`: why an agent can, or cannot, call a tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pegboard.cli.common import DONE, REFUSED, Options, bring_in, open_session, run
from pegboard.cli.options import on_session
from pegboard.cli.rendering import Column, Printer

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.core.access.decisions import Reason
    from pegboard.core.surface.explanations import Explanation

EXAMPLE = "pegboard explain git__git_commit --agent assistant"
UNKNOWN: Final = "unknown"
OTHER_THINGS: Final = ("is_plugin", "is_toolkit")
NOT_SEEN: Final = "not_seen"
STICKY: Final = frozenset(
    {"loaded_essential", "loaded_static", "loaded_meta", "loaded_initial", "loaded_switch", "loaded_loadout"}
)
REMEDIES: Final[Mapping[str, str]] = {
    "denied_loadout": "Take it out of the loadout's `disabled`, or give the agent another loadout.",
    "denied_scope": "Give the agent `worker_scope: shared` and no `private:`, or remove this plugin.",
    "denied_filter": "Change include_tools or exclude_tools where the plugin is named.",
    "denied_parent": "Permit it to the parent's agent first.",
    "denied_default": "Switch it on: pegboard permissions set {tool} true --agent {agent}",
    "denied_switch": "Switch it on: pegboard permissions set {switch} true --agent {agent}",
    "not_granted": (
        "Grant it: under the agent's tools, allowed_toolkits, loadout or discoverable, "
        "or with pegboard permissions set {tool} true --agent {agent}"
    ),
}


@on_session
def explain(
    options: Options,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The name of the tool.")],
) -> int:
    """Explain why an agent can or cannot call a tool now."""

    async def explained(board: Pegboard, printer: Printer) -> int:
        on = await open_session(board, options)
        await bring_in(board, printer)
        found = await on.explain(tool)
        if printer.as_json:
            printer.document(explanation_json(found))
        else:
            name = on.key.agent
            switches = (await board.permissions.show()).get(name, {})
            _show(found, printer, verdict=verdict(found, name), advice=advice(found, options, name, switches))
        return REFUSED if _code(found, UNKNOWN) is not None else DONE

    return run(options, explained)


def explanation_json(found: Explanation) -> dict[str, Any]:
    """Return the answer as scripts read it."""
    return {
        "tool": found.tool,
        "permitted": found.permitted,
        "loaded": found.loaded,
        "visible": found.visible,
        "callable": found.callable,
        "reasons": [
            {"code": reason.code, "text": reason.text, "where": str(reason.where) if reason.where else None}
            for reason in found.reasons
        ],
    }


def _code(found: Explanation, *codes: str) -> Reason | None:
    return next((reason for reason in found.reasons if reason.code in codes), None)


def verdict(found: Explanation, agent: str) -> str:
    """Return one sentence that answers the question."""
    name = f"'{found.tool}'"
    if (other := _code(found, UNKNOWN, *OTHER_THINGS)) is not None:
        return other.text
    if not found.permitted:
        why = found.reasons[0].text if found.reasons else ""
        more = sum(reason.code.startswith("denied_") for reason in found.reasons[1:])
        return f"Agent '{agent}' may not use {name}. {why}{f' {more} more against it below.' if more else ''}"
    if (fault := _code(found, "unavailable")) is not None:
        return f"Agent '{agent}' may use {name}, but it cannot run now: {fault.text}"
    clash = _code(found, "conflict")
    if clash is not None and not found.loaded:
        message = f"Agent '{agent}' may use {name}, but it is not loaded, and its toolkit clashes with what is loaded."
        return f"{message} {clash.text}"
    if _code(found, NOT_SEEN) is not None:
        return f"Agent '{agent}' may use plugin {name}, whose tools are not known yet."
    if found.callable:
        stays = "; it is always loaded" if _code(found, *STICKY) is not None else ""
        other = "; another toolkit would bring it with other settings" if clash is not None else ""
        return f"Agent '{agent}' can call {name} now{stays}{other}."
    if not found.loaded:
        return f"Agent '{agent}' may use {name}, but it is not loaded in this session."
    return f"Agent '{agent}' may use {name}, but cannot call it now."


def advice(found: Explanation, options: Options, agent: str, switches: Iterable[str]) -> str:
    """Return what to do next, as commands that can be pasted; nothing where nothing is to be done."""
    where = f"--agent {agent} --session {options.session}"
    where += f" --principal {options.principal}" if options.principal != "local" else ""
    if _code(found, UNKNOWN) is not None:
        return "`pegboard tools` lists every tool; `pegboard check --probe` starts the servers and says which fail."
    if _code(found, *OTHER_THINGS) is not None:
        return ""
    if not found.permitted:
        first = found.reasons[0] if found.reasons else None
        if first is None:
            return ""
        switch = next((name for name in switches if f"'{name}'" in first.text), found.tool)
        message = REMEDIES.get(first.code, "").format(tool=found.tool, switch=switch, agent=agent)
        return f"{message} (written in {first.where})" if message and first.where else message
    if _code(found, "unavailable") is not None:
        return "Put right what the reason names, then run `pegboard check --probe`."
    if _code(found, "conflict") is not None and not found.loaded:
        shown = f"`pegboard session show {where}` lists what is loaded"
        return f"Unload what clashes first ({shown}): pegboard session unload NAME {where}"
    if _code(found, "narrowed_loadout") is not None:
        return "Another active loadout, or none, brings it back: `session.use_loadout(None)` in the library."
    if not found.loaded:
        return f"The model loads it, or you do: pegboard session load {found.tool} {where}"
    if found.callable and _code(found, *STICKY) is None:
        return f"To unload it: pegboard session unload {found.tool} {where}"
    return ""


def _show(found: Explanation, printer: Printer, *, verdict: str, advice: str) -> None:
    printer.heading(verdict)
    printer.say()
    predicates = (
        ("permitted", found.permitted, "is it granted and not denied?"),
        ("loaded", found.loaded, "does a lease stand on it?"),
        ("visible", found.visible, "does the model have its schema?"),
        ("callable", found.callable, "would a call run now?"),
    )
    for name, value, meaning in predicates:
        printer.say(f"  {name:<10} {'yes' if value else 'no ':<4} {meaning}")
    if found.reasons:
        printer.say()
        rows = [(reason.code, reason.text, reason.where or "") for reason in found.reasons]
        printer.table([Column("reason"), Column("because"), Column("where")], rows)
    if advice:
        printer.say(f"\nNext: {advice}")
