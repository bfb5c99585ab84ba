"""What waits of servers' tools as people read it, and their answer, for `pins` and `check --accept` (A4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pegboard.cli.common import system_user
from pegboard.cli.exit_codes import DONE
from pegboard.cli.person import NotAgreedError, require_operator, require_typed
from pegboard.cli.rendering import Printer, UnmaskedText, plural
from pegboard.operators.masked import resolve_names, shown_names
from pegboard.operators.pins import OperatorPins

if TYPE_CHECKING:
    from pegboard.board.services import Services
    from pegboard.core.principals.bearer_tokens import Token
    from pegboard.operators.pins import PinView

STATES = {"pinned": "as pinned", "changed": "changed, waits", "new": "new, waits", "gone": "not listed"}
ASKED_ABOUT = 50
"""Of how many tools a person is shown the differences before they are asked."""


async def accept_pins(
    services: Services,
    tokens: Sequence[Token],
    printer: Printer,
    names: Sequence[str],
    *,
    by: str | None,
    confirmed: Sequence[str] = (),
) -> Sequence[PinView]:
    """Return what was accepted: what a person was shown, and nothing else; what has warnings under its name alone.

    What is as it was first seen counts already. Where it is named and says something to models, it is kept that a
    person has seen it, so that `check` does not note it again.

    Raises:
        NotAgreedError: no person or operator agreed.
    """
    pins = OperatorPins(services)
    shown = [
        one for one in await pins.shown(*names) if one.waits or one.status == "gone" or (names and _is_unreviewed(one))
    ]
    found = await with_shown_names(services, shown)
    warned = [one for one in found if one.findings and one.waits]
    plain = [one for one in found if one not in warned]
    taken: list[PinView] = []
    try:
        if plain:
            owner = await require_operator(tokens, "configure", _question(plain), about=_describe_pins(plain))
            await pins.accept(plain, by=owner or by or system_user())
            taken += plain
        for one in warned:
            if await _accept_by_typed_name(
                pins, tokens, printer, one, by=by, confirmed=confirmed, alone=len(found) == 1
            ):
                taken.append(one)
    except NotAgreedError as refused:
        if refused.code == "needs_operator" and not printer.as_json:
            for one in found[:ASKED_ABOUT]:
                printer.note(f"waits: '{one.name}' of server '{one.plugin}': {STATES[one.status]}")
        raise
    return taken


def _is_unreviewed(one: PinView) -> bool:
    """Return whether a tool that counts since it was first seen says something that no person has accepted."""
    return one.status == "pinned" and not one.by and bool(one.findings)


def _question(found: Sequence[PinView]) -> str:
    return f"Let {plural(len(found), 'tool')} count as {'it is' if len(found) == 1 else 'they are'} now?"


def _describe_pins(found: Sequence[PinView]) -> list[str]:
    about = [line for one in found[:ASKED_ABOUT] for line in lines(one)]
    if len(found) > ASKED_ABOUT:
        about.append(f"and {len(found) - ASKED_ABOUT:,} more tools: `pegboard pins show` has all of it.")
    return about


async def _accept_by_typed_name(
    pins: OperatorPins,
    tokens: Sequence[Token],
    printer: Printer,
    one: PinView,
    *,
    by: str | None,
    confirmed: Sequence[str],
    alone: bool,
) -> bool:
    """Return whether a tool with warnings was accepted; raises ``NotAgreedError`` where it alone was asked about."""
    try:
        owner = await require_typed(tokens, "configure", one.name, about=lines(one), confirmed=confirmed)
    except NotAgreedError as refused:
        if alone or refused.code != "confirmation_required":
            raise
        printer.note(f"stays blocked: {refused.message} {refused.hint}")
        return False
    await pins.accept([one], by=owner or by or system_user())
    return True


def print_accepted(found: Sequence[PinView], printer: Printer) -> int:
    """Print what was accepted."""
    if printer.as_json:
        printer.document([row_json(one) for one in found])
        return DONE
    for one in found:
        what = "its pin is gone" if one.status == "gone" else "its current definition is in use"
        printer.say(f"accepted: '{one.name}' of server '{one.plugin}': {what}.")
    if not found:
        printer.say("There is nothing to accept.")
    return DONE


async def with_shown_names(services: Services, found: Iterable[PinView]) -> list[PinView]:
    """Return the same with the names by which tools are called, whatever is secret in them: commands take these."""
    names = await shown_names(services)
    return [resolve_names(one, names) for one in found]


def row(one: PinView) -> tuple[object, ...]:
    """Return the cells of a tool in the table."""
    claims = " and ".join(CLAIMS[claim] for claim in one.claims)
    name, plugin = UnmaskedText(one.name), UnmaskedText(one.plugin)
    return name, plugin, STATES[one.status], one.by, f"says only now that it {claims}" if claims else ""


def lines(one: PinView) -> list[str]:
    """Return all that a person reads of one tool before they decide."""
    found = [f"'{one.name}' of server '{one.plugin}': {STATES[one.status]}"]
    found += [f"  New claim since it was pinned: it {CLAIMS[claim]}." for claim in one.claims]
    found += [f"  {line}" for line in one.diff.splitlines()]
    found += [f"  ! {said.text} ({said.place}): {said.excerpt}" for said in one.findings]
    return found


def whole_json(one: PinView) -> dict[str, Any]:
    """Return what scripts read of a tool, with how it differs."""
    found = [{"code": f.code, "text": f.text, "place": f.place, "excerpt": f.excerpt} for f in one.findings]
    return {**row_json(one), "description": one.description, "diff": one.diff, "findings": found}


CLAIMS = {"read_only": "only reads", "harmless": "destroys nothing"}


def row_json(one: PinView) -> dict[str, Any]:
    """Return what scripts read of a tool in a list."""
    return {
        "plugin": UnmaskedText(one.plugin),
        "tool": UnmaskedText(one.tool),
        "name": UnmaskedText(one.name),
        "status": one.status,
        "waits": one.waits,
        "by": one.by,
        "claims": list(one.claims),
        "digest": one.digest,
    }
