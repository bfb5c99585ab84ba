"""`pegboard explain TOOL`: why an agent can, or cannot, call a tool."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.cli.common import Options, discover, open_session, run
from pegboard.cli.exit_codes import DONE, REFUSED
from pegboard.cli.options import with_session_options
from pegboard.cli.rendering import Printer, UnmaskedText
from pegboard.operators.explain import explain_for_operator
from pegboard.operators.masked import resolve_names, shown_names

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.operators.explain import Fix, OperatorExplanation

EXAMPLE = "pegboard explain git__git_commit --agent assistant"


@with_session_options
def explain(
    options: Options,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The name of the tool.")],
) -> int:
    """Explain why an agent can or cannot call a tool now."""

    async def print_explanation(board: Pegboard, printer: Printer) -> int:
        key = (await open_session(board, options)).key
        await discover(board, printer, about=[tool])
        found = await explain_for_operator(
            board.services, key.agent, tool, principal=key.principal, session=key.session, sub_app=options.sub_app
        )
        found = await _with_shown_names(board, found)
        if printer.as_json:
            printer.document(explanation_json(found))
        else:
            _print_explanation(found, printer, advice=advice(found, options))
        return DONE if found.known else REFUSED

    return run(options, print_explanation)


async def _with_shown_names(board: Pegboard, found: OperatorExplanation) -> OperatorExplanation:
    """Return the explanation with the names by which things are called, whatever is secret in them."""
    names = await shown_names(board.services)
    return replace(resolve_names(found, names), fixes=tuple(resolve_names(fix, names) for fix in found.fixes))


def explanation_json(found: OperatorExplanation) -> dict[str, Any]:
    """Return the answer as scripts read it."""
    return {
        "tool": UnmaskedText(found.tool),
        "permitted": found.permitted,
        "loaded": found.loaded,
        "visible": found.visible,
        "callable": found.callable,
        "reasons": [
            {"code": reason.code, "text": reason.text, "where": reason.where or None} for reason in found.reasons
        ],
    }


def advice(found: OperatorExplanation, options: Options) -> str:
    """Return what to do next, as a command that can be pasted where there is one, or nothing."""
    where = f"--agent {found.agent} --session {options.session}"
    where += f" --principal {options.principal}" if options.principal != "local" else ""
    if found.fixes:
        return _command(found.fixes[0], found.agent, where)
    if found.callable and not found.sticky:
        return f"It can be called; to unload it: pegboard session unload {found.tool} {where}"
    return ""


def _command(fix: Fix, agent: str, where: str) -> str:
    written = f" (written in {fix.where})" if fix.where else ""
    switch = f"pegboard permissions set {fix.switch} true --agent {agent}"
    match fix.kind:
        case "switch":
            return f"Switch it on: {switch}{written}"
        case "grant":
            grant = "Grant it: in the agent's tools, allowed_toolkits, loadout or discoverable"
            return f"{grant}, or with {switch}{written}"
        case "edit" | "parent" | "resume":
            return f"{fix.text}{written}"
        case "login" | "pin":
            return fix.text
        case "environment" | "restart" | "repair":
            return "Correct the cause that is named, then run `pegboard check --probe`."
        case "unload":
            shown = f"`pegboard session show {where}` lists what is loaded"
            unload = f"Unload the tools with the same name first ({shown}): pegboard session unload NAME {where}"
            return f"{unload}. What is loaded from the start cannot be unloaded: give one plugin a `prefix`."
        case "loadout":
            return "Another active loadout, or none, brings it back: `session.use_loadout(None)` in the library."
        case "load":
            return f"The model loads it, or you do: pegboard session load {fix.subject} {where}"
        case "turn":
            return f"{fix.text} You end it with: pegboard session end-turn {where}"
        case "approve":
            return f"{fix.text} `pegboard approvals list` shows what waits{written}."
        case "look_up":
            return "`pegboard tools` lists every tool; `pegboard check --probe` starts the servers and says which fail."


def _print_explanation(found: OperatorExplanation, printer: Printer, *, advice: str) -> None:
    printer.heading(found.verdict)
    printer.say()
    predicates = (
        ("permitted", found.permitted, "is it granted and not denied?"),
        ("loaded", found.loaded, "is there a lease on it?"),
        ("visible", found.visible, "does the model have its schema?"),
        ("callable", found.callable, "would a call run now?"),
    )
    for name, value, meaning in predicates:
        printer.say(f"  {name:<10} {'yes' if value else 'no ':<4} {meaning}")
    if found.reasons:
        printer.say()
        for reason in found.reasons:
            where = f" ({reason.where})" if reason.where else ""
            printer.say(f"  {reason.code}: {reason.text}{where}")
    if found.members:
        more = f" and {found.tools - len(found.members)} more" if found.tools > len(found.members) else ""
        printer.show(f"\nIts tools: {', '.join(found.members)}{more}")
    if advice:
        printer.show(f"\nNext: {advice}")
