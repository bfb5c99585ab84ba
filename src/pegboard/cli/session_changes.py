"""Load and unload tools of a session, for `pegboard session`, `pegboard load` and `pegboard unload`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pegboard.cli.command_identity import require_own_identity
from pegboard.cli.common import Options, discover, open_session, run
from pegboard.cli.exit_codes import exit_code_of_outcome
from pegboard.cli.options import with_session_options
from pegboard.cli.rendering import Printer, plural

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.board import Session
    from pegboard.core.state.commands import Outcome

NamesArgument = Annotated[list[str], typer.Argument(metavar="NAME", help="Toolkits, plugins or tools.")]


@with_session_options
def load(
    options: Options,
    names: NamesArgument,
    keep: Annotated[
        Literal["turn", "idle", "session"] | None,
        typer.Option("--keep", metavar="turn|idle|session", help="For how long. [default: the agent's lease]"),
    ] = None,
) -> int:
    """Load tools."""
    return _change(options, lambda on: on.load(*names, keep=keep), f"Loading {', '.join(names)}", names)


@with_session_options
def unload(
    options: Options,
    names: NamesArgument,
) -> int:
    """Unload tools."""
    return _change(options, lambda on: on.unload(*names))


@with_session_options
def fallback(
    options: Options,
) -> int:
    """Load everything permitted, for this turn."""
    return _change(options, lambda on: on.fallback(), "Loading everything permitted")


@with_session_options
def end_turn(
    options: Options,
) -> int:
    """End the turn, and unload what lapses with it."""
    return _change(options, lambda on: on.end_turn())


def _change(
    options: Options, change: Callable[[Session], Awaitable[Outcome]], doing: str = "", about: Sequence[str] = ()
) -> int:
    """Run a command on a session and show its outcome; a partial one is not done."""

    async def apply_change(board: Pegboard, printer: Printer) -> int:
        require_own_identity(board, options)
        on = await open_session(board, options)
        await on.surface()  # brings in what is loaded, so that `loaded` names all of it
        if doing:
            await discover(board, printer, (await on.snapshot()).permissions, about=about)
            with printer.working(doing):
                outcome = await change(on)
        else:
            outcome = await change(on)
        if printer.as_json:
            items = [{"name": i.name, "status": i.status, "message": i.text} for i in outcome.items]
            printer.document(
                outcome_json(outcome.status, items=items, takes_effect=outcome.takes_effect, loaded=outcome.loaded)
            )
        else:
            _show_outcome(outcome, printer)
        return exit_code_of_outcome(outcome.status, (item.status for item in outcome.items))

    return run(options, apply_change)


def _show_outcome(outcome: Outcome, printer: Printer) -> None:
    for item in outcome.items:
        printer.say(f"{item.name}  {item.status}  {item.text}")
    printer.say(
        f"Turn {outcome.turn}; {plural(len(outcome.loaded), 'tool')} loaded: {', '.join(outcome.loaded) or 'none'}."
    )


def outcome_json(
    status: str, *, items: list[dict[str, str]] | None = None, takes_effect: str | None = None, loaded: tuple[str, ...]
) -> dict[str, Any]:
    """Return an outcome as scripts read it."""
    return {"status": status, "items": items or [], "takes_effect": takes_effect, "loaded": loaded}
