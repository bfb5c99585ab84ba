"""`pegboard accept`: let the edits of a configuration count that wait for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegboard.cli.common import DONE, Options, run, system_user
from pegboard.cli.options import ByOption, ConfigOption, JsonOption
from pegboard.cli.person import NotAgreedError, require_operator
from pegboard.cli.rendering import Printer, plural

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard

EXAMPLE = "pegboard accept"


def accept(by: ByOption = None, config: ConfigOption = None, as_json: JsonOption = False) -> int:
    """Accept edits that widen the configuration.

    With `reload: ask` they wait for a person. You are shown them and asked at the terminal, unless
    PEGBOARD_OPERATOR_TOKEN has a token with the right `configure`.
    """

    async def done(board: Pegboard, printer: Printer) -> int:
        shown = board.waiting
        if shown:
            about = [str(change) for change in shown]
            question = f"Accept {plural(len(shown), 'change')} of the configuration?"
            tokens = board.configuration.tokens
            try:
                decided_by = await require_operator(tokens, "configure", question, about=about) or by or system_user()
            except NotAgreedError as refused:
                if refused.code == "needs_operator" and not printer.as_json:
                    for change in about:
                        printer.note(f"waits: {change}")
                raise
            shown = await board.accept(shown, by=decided_by)
        if printer.as_json:
            printer.document([{"name": change.name, "agent": change.agent, "text": str(change)} for change in shown])
            return DONE
        for change in shown:
            printer.say(f"accepted: {change}")
        if not shown:
            printer.say("Nothing waits for a person.")
        return DONE

    return run(Options(config=config, as_json=as_json), done)
