"""Run `pegboard serve`, without typer, which takes long to import."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pegboard.cli.common import Options, run
from pegboard.cli.exit_codes import DONE, NEEDS_PERSON
from pegboard.cli.serve_options import ACCEPT, ServeOptions, served_by_daemon
from pegboard.served_board import ServedBoard

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.cli.rendering import Printer

OBJECTS_IDLE: Final = 3600.0
"""After how many seconds without a call what a plugin constructed is closed, where it does not say (G9)."""
_OPENED: Final[Mapping[str, Any]] = {
    "needs_mcp": "`pegboard serve`",
    "watch": True,
    "cached": True,
    "idle": OBJECTS_IDLE,
}
ADDRESS: Final = "PEGBOARD_ADDRESS"
"""The variable that says what ``--address`` does, where that is not given."""


def serve_with(options: ServeOptions) -> int:
    """Serve through the daemon where a client can be, else in this process; return the exit code."""
    code = served_by_daemon(options, os.environ)
    return serve_alone(options) if code is None else code


def serve_alone(options: ServeOptions) -> int:
    """Serve in this process until the client or a signal ends it, and return the exit code."""
    common = Options(config=options.config, agent=options.agent)
    gc.disable()  # nothing that the start makes is garbage
    try:
        _accept_found(options)
        fast = False if options.no_fast_path else None
        asks = not options.stdio  # with stdio the terminal is the client's
        return run(common, partial(_serve, options), fast_path=fast, asks=asks, calls=True, **_OPENED)
    finally:
        gc.enable()


async def _serve(options: ServeOptions, board: Pegboard, printer: Printer) -> int:
    """Serve until the client or a signal ends it, and return the exit code."""
    await _accept_edits(board, _named_text(options), printer)
    if options.strict and board.waiting:
        return NEEDS_PERSON  # the warning of the board says what waits
    from pegboard import gateway  # HTTP imports the SDK at once, stdio later

    named: dict[str, Any] = {"agent": options.agent, "session": options.session, "sub_app": options.sub_app}

    def note(text: str) -> None:
        printer.masker = board.services.masker
        printer.note(text)

    served = ServedBoard(board, note, has_console=not (options.stdio or options.no_console))

    def ready(url: str) -> None:
        note(gateway.announce(board, url, **named))
        board.services.pins.note_waiting()
        served.note_address(url)

    given: dict[str, Any] = {**named, "settled": served.note_settled}
    try:
        if options.stdio:
            served.follow_hooks()
            board.services.pins.note_waiting()
            await gateway.run_stdio(board, **given)
        else:
            given |= {"host": options.host, "port": options.port, "mounts": served.mounts(), "ready": ready}
            await gateway.run_http(
                board, **given, address=options.address or os.environ.get(ADDRESS) or None, drain=options.drain
            )
    finally:
        await served.aclose()
    return DONE


def _named_text(options: ServeOptions) -> str:
    """Return the digest of the text that the start command accepts; empty where it names none."""
    return options.accept or os.environ.get(ACCEPT, "")


def _accept_found(options: ServeOptions) -> None:
    """Accept the configuration of this folder where its text has the digest that the start command names (P10)."""
    from pegboard.config.acceptance import accept_text, text_digest, texts_of
    from pegboard.config.location import find

    digest = _named_text(options)
    found = find(Path.cwd()) if digest and options.config is None else None
    if found is not None and text_digest(texts_of(found)) == digest:
        accept_text(found, digest)


async def _accept_edits(board: Pegboard, digest: str, printer: Printer) -> None:
    """Accept what waits where the text of the configuration has the digest that the start command names (P10)."""
    if not digest:
        return
    from pegboard.config.acceptance import text_digest, texts_of

    path = board.configuration.path
    while (text := text_digest(texts_of(path))) == digest:
        await board.reload()
        if text_digest(texts_of(path)) == text:
            for change in await board.accept(by=f"serve --accept {digest}"):
                printer.note(f"pegboard: accepted: {change}")
            return
    printer.note(
        f"pegboard: {path.name} has the digest {text}, not the one of --accept or {ACCEPT}: nothing of it is accepted."
    )
