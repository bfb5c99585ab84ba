"""`pegboard accept`: let the edits of a configuration count that wait for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pegboard.cli.common import Options, run, run_guarded, system_user
from pegboard.cli.exit_codes import DONE
from pegboard.cli.options import ByOption, ConfigOption, JsonOption
from pegboard.cli.person import NotAgreedError, require_operator
from pegboard.cli.rendering import Printer, plural
from pegboard.config.acceptance import accept_text, acceptance_of, key_of, require_accepted, texts_of
from pegboard.config.documents.document import display_path
from pegboard.config.would_run import would_run
from pegboard.core.access.grants import FILES

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.core.access.grants import GrantChange

EXAMPLE = "pegboard accept"


def accept(by: ByOption = None, config: ConfigOption = None, as_json: JsonOption = False) -> int:
    """Accept a configuration found here, or edits that grant more."""

    async def accept_changes(board: Pegboard, printer: Printer) -> int:
        shown, would = await _read_changes(board)
        if shown:
            about = [line for change in shown for line in _describe_change(board, change, would)]
            about += _new_lines(board, shown, would)
            question = f"Accept {plural(len(shown), 'change')} of the configuration?"
            tokens = board.configuration.tokens
            try:
                decided_by = await require_operator(tokens, "configure", question, about=about) or by or system_user()
            except NotAgreedError as refused:
                if refused.code == "needs_operator" and not printer.as_json:
                    for change in shown:
                        printer.note(f"waits: {change}")
                raise
            shown = await board.accept(shown, by=decided_by)
        if not board.waiting:
            accept_text(board.configuration.path)
        if printer.as_json:
            printer.document([{"name": change.name, "agent": change.agent, "text": str(change)} for change in shown])
            return DONE
        for change in shown:
            printer.say(f"accepted: {change}")
        if not shown:
            printer.say("Nothing waits for a person.")
        return DONE

    async def first(printer: Printer) -> int:  # noqa: ARG001
        if config is not None and acceptance_of(key_of(config)) is None:
            require_accepted(config, exactly=True)
        return DONE

    options = Options(config=config, as_json=as_json)
    return run_guarded(options, first) or run(options, accept_changes)


def _describe_change(board: Pegboard, change: GrantChange, would: Sequence[str]) -> Iterator[str]:
    yield str(change)
    yield from _lines_of_change(change, would)
    yield from (f"  {line}" for line in board.editable.difference(change))


def _new_lines(board: Pegboard, shown: Sequence[GrantChange], would: Sequence[str]) -> list[str]:
    """Return what a configuration whose text waits would run, where that is not what it runs now."""
    if not any(change.key[0] == FILES and change.key[1] == "text" for change in shown):
        return []
    path = board.configuration.path
    now = would_run(display_path(path), board.editable.accepted_texts)
    return [f"It would: {line}" for line in would if line not in now]


async def _read_changes(board: Pegboard) -> tuple[Sequence[GrantChange], Sequence[str]]:
    """Return what waits and what the configuration would run, read off one text."""
    path = board.configuration.path
    if not board.waiting:
        return (), ()
    while True:
        texts = texts_of(path)
        await board.reload()
        if texts_of(path) == texts:
            return board.waiting, would_run(display_path(path), texts)


def _lines_of_change(change: GrantChange, would: Sequence[str]) -> Iterator[str]:
    """Yield what of a configuration a change is about."""
    if change.key[0] in ("plugins", "toolkits"):
        name = change.key[1]
        heads = tuple(f"{part}.{name}{end}" for part in ("servers", "mcpServers", *change.key[:1]) for end in ":.")
        yield from (f"  {line}" for line in would if line.startswith(heads))
