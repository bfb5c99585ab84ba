"""`pegboard approvals …`: calls that wait for a person."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from pegboard.cli.common import Options, run, system_user
from pegboard.cli.exit_codes import DONE
from pegboard.cli.options import ByOption, ConfigOption, JsonOption
from pegboard.cli.person import require_operator
from pegboard.cli.rendering import Printer, TableColumn, time_text
from pegboard.core.access.approvals.approval import unknown_approval
from pegboard.errors import UsageError

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.core.access.approvals.approval import Approval
    from pegboard.core.model.tools import JsonObject

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The approval, as `approvals list` has it.")]
COLUMNS = (*map(TableColumn, ("id", "status", "tool", "who", "session")), TableColumn("arguments", flexible=True))


def list_(
    approval: Annotated[str | None, typer.Argument(metavar="ID", help="Show this one in full.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also what was used, was refused or has expired.")] = False,
    config: ConfigOption = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only this agent's.")] = None,
    as_json: JsonOption = False,
) -> int:
    """Show the calls that wait, and what was allowed."""

    async def print_approvals(board: Pegboard, printer: Printer) -> int:
        found = await board.approvals.list(agent=agent, ended=everything or approval is not None)
        if approval is not None:
            found = (await _find_approval(board, approval),)
        if printer.as_json:
            printer.document([_json(one) for one in found])
        elif approval is not None:
            _print_approval(found[0], printer)
        elif found:
            printer.table(COLUMNS, [_row(one) for one in found])
        else:
            printer.say("No call waits for a person.")
        return DONE

    return run(Options(config=config, agent=agent, as_json=as_json), print_approvals)


def allow(
    approval: IdArgument,
    lasts: Annotated[
        Literal["once", "session", "always"],
        typer.Option(
            "--for",
            metavar="once|session|always",
            help="This call once, or every call of the tool in the session or by the agent.",
        ),
    ] = "once",
    by: ByOption = None,
    fields: Annotated[
        str | None,
        typer.Option(
            "--fields", metavar="JSON", help="The values that the tool asks a person for, as one JSON object."
        ),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Allow a call that waits for a person."""

    async def allow_call(board: Pegboard, printer: Printer) -> int:
        given = None if fields is None else _fields(fields)
        decided_by = by if by is not None else system_user()
        known = await _find_approval(board, approval)
        if known.status in ("waiting", "refused", "allowed"):
            question = f"Allow {_LASTS[lasts].format(known.binding)}?"
            about = [*_lines(known), *([] if fields is None else [f"  filled in  {fields}"])]
            tokens, agent = board.configuration.tokens, known.binding.agent
            decided_by = await require_operator(tokens, "approve", question, about=about, agent=agent) or decided_by
        allowed = await board.approvals.allow(approval, by=decided_by, lasts=lasts, fields=given, expected=known.status)
        what = {
            "once": "this call may run once",
            "session": f"every call of it may run in session '{allowed.binding.session}'",
            "always": f"every call of it by agent '{allowed.binding.agent}' for '{allowed.binding.principal}' may run",
        }
        return _print_answer(allowed, f"'{allowed.tool}': {what[lasts]}{_expiry_text(allowed)}.", printer)

    return run(Options(config=config, as_json=as_json), allow_call)


def refuse(
    approval: IdArgument,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="The reason, which the model reads.")] = "",
    by: ByOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Refuse a call that waits, or take back what was allowed."""

    async def refuse_call(board: Pegboard, printer: Printer) -> int:
        refused = await board.approvals.refuse(approval, by=by or system_user(), reason=reason)
        return _print_answer(refused, f"'{refused.tool}' is refused{_expiry_text(refused)}.", printer)

    return run(Options(config=config, as_json=as_json), refuse_call)


def _print_answer(approval: Approval, said: str, printer: Printer) -> int:
    if printer.as_json:
        printer.document(_json(approval))
    else:
        printer.say(said)
    return DONE


def _fields(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--fields is not valid JSON: {error}.", hint='Write \'{"name": "value"}\'.') from None
    if not isinstance(value, dict):
        raise UsageError("--fields is not a JSON object.", hint='Write \'{"name": "value"}\'.')
    return cast("JsonObject", value)


def _json(approval: Approval) -> dict[str, Any]:
    """Return an approval as scripts read it, without its digests."""
    found = asdict(approval)
    own = found.pop("binding")
    del found["asked"]
    return {**found, **{name: own[name] for name in ("principal", "agent", "session")}}


def _row(approval: Approval) -> tuple[str, ...]:
    own = approval.binding
    status = approval.status if approval.lasts == "once" else f"{approval.status} ({approval.lasts})"
    who = f"{own.principal}/{own.agent}"
    return approval.id, status, approval.tool, who, own.session, json.dumps(approval.arguments, ensure_ascii=False)


_LASTS = {
    "once": "this call once",
    "session": "every call of it in session '{0.session}'",
    "always": "every call of it by agent '{0.agent}' for '{0.principal}'",
}


async def _find_approval(board: Pegboard, approval_id: str) -> Approval:
    found = await board.approvals.list(ended=True)
    known = next((one for one in found if one.id == approval_id), None)
    if known is None:
        raise unknown_approval(approval_id)
    return known


def _print_approval(approval: Approval, printer: Printer) -> None:
    heading, *lines = _lines(approval)
    printer.heading(heading)
    for line in lines:
        printer.say(line)


def _lines(approval: Approval) -> list[str]:
    """Return all of an approval, as a person reads it."""
    own = approval.binding
    rows = [
        ("kind", approval.kind),
        ("because", approval.reason),
        ("of", f"agent '{own.agent}' for '{own.principal}', session '{own.session}', turn {approval.turn}"),
        ("asked", _time(approval.asked_at)),
        ("until", _time(approval.expires_at)),
        ("lasts", approval.lasts),
        ("answered", "by an operator only" if approval.decider == "operator" else ""),
        ("by", f"{approval.by}, the user of the client" if approval.elicited else approval.by),
        ("said", approval.message),
    ]
    lines = [f"  {name:<10} {value}" for name, value in rows if value]
    lines.append(f"  arguments  {json.dumps(approval.arguments, ensure_ascii=False, indent=2)}")
    if approval.fields:
        lines.append(f"  fields     {json.dumps(approval.fields, ensure_ascii=False)}")
    return [f"{approval.id}: '{approval.tool}' is {approval.status}", *lines]


def _expiry_text(approval: Approval) -> str:
    return "" if approval.expires_at is None else f", until {_time(approval.expires_at)}"


def _time(seconds: float | None) -> str:
    return "" if seconds is None else time_text(datetime.fromtimestamp(seconds, UTC))


COMMANDS: dict[str, tuple[Callable[..., int], str]] = {
    "list": (list_, "pegboard approvals list"),
    "allow": (allow, "pegboard approvals allow 3f9c27a0b1d4"),
    "refuse": (refuse, 'pegboard approvals refuse 3f9c27a0b1d4 --reason "Not in production."'),
}
