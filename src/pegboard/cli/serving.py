"""Run `pegboard serve`, and read its plain command lines without typer, which takes long to import."""

from __future__ import annotations

import asyncio
import gc
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pegboard.cli.common import Options, run
from pegboard.cli.exit_codes import DONE, NEEDS_PERSON

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.cli.rendering import Printer
    from pegboard.console.hooks.sender import HookSender
    from pegboard.console.served_console import ServedConsole
    from pegboard.gateway import Mount
    from pegboard.operators.attention import HookFault


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """What `pegboard serve` is to do; see its help."""

    stdio: bool = False
    host: str = "127.0.0.1"
    port: int = 8321
    config: Path | None = None
    agent: str | None = None
    session: str | None = None
    sub_app: str | None = None
    address: str | None = None
    drain: float | None = None
    no_fast_path: bool = False
    no_console: bool = False
    strict: bool = False
    accept: str | None = None


DEFAULT: Final = ServeOptions()
OBJECTS_IDLE: Final = 3600.0
"""After how many seconds without a call what a plugin constructed is closed, where it does not say (G9)."""
FLAGS: Final = {
    "--stdio": "stdio",
    "--no-fast-path": "no_fast_path",
    "--no-console": "no_console",
    "--strict": "strict",
}
VALUES: Final = {
    "--host": "host",
    "--port": "port",
    "--config": "config",
    "--agent": "agent",
    "--session": "session",
    "--sub-app": "sub_app",
    "--address": "address",
    "--drain": "drain",
    "--accept": "accept",
}
_OPENED: Final[Mapping[str, Any]] = {
    "needs_mcp": "`pegboard serve`",
    "watch": True,
    "cached": True,
    "idle": OBJECTS_IDLE,
}
ADDRESS: Final = "PEGBOARD_ADDRESS"
ACCEPT: Final = "PEGBOARD_ACCEPT"
"""The variables that say what ``--address`` and ``--accept`` do, where that is not given."""


def plain_options(arguments: Sequence[str]) -> ServeOptions | None:
    """Return what plain arguments say, or None for what typer has to judge: help, mistakes, anything unusual.

    >>> plain_options(["--stdio", "--agent", "ada"]) == ServeOptions(stdio=True, agent="ada")
    True
    >>> plain_options(["--port", "many"]), plain_options(["--help"]), plain_options(["--stdio", "--stdio"])
    (None, None, None)
    """
    given: dict[str, Any] = {}
    rest = iter(arguments)
    for argument in rest:
        name, sign, value = argument.partition("=")
        if name in VALUES:
            field, read = VALUES[name], _value(VALUES[name], value if sign else next(rest, ""))
        else:
            field, read = FLAGS.get(argument, ""), True
        if not field or field in given or read is None:
            return None
        given[field] = read
    return ServeOptions(**given)


def _value(field: str, text: str) -> str | float | Path | None:
    """Return the value of an option, or None for one that is not plain."""
    if not text or text.startswith("-") or not text.isprintable():
        return None
    if field == "port":
        return int(text) if text.isascii() and text.isdecimal() and len(text) <= 5 else None
    if field == "drain":
        return float(text) if text.isascii() and text.isdecimal() and len(text) <= 5 else None
    return Path(text) if field == "config" else text


def serve_with(options: ServeOptions) -> int:
    """Serve until the client or a signal ends it, and return the exit code."""
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
    cache, notifier = _Cache(board), _OperatorNotifier(board, at_once=options.stdio)
    console = None if options.stdio or options.no_console else _console(board, notifier)

    def reloaded(_: object) -> None:
        printer.masker = board.services.masker
        but = ", without what waits for a person" if board.waiting else ""
        printer.note(f"pegboard: the edited {board.configuration.path.name} is in use now{but}.")
        cache.stale = True
        cache.fill()

    def settled() -> None:
        _collect_rarely()
        cache.fill()

    def ready(url: str) -> None:
        printer.note(gateway.announce(board, url, **named))
        board.services.pins.note_waiting()
        if console is not None:
            printer.note(console.began(url))
        notifier.follow()

    given: dict[str, Any] = {**named, "settled": settled}
    unsubscribe = [
        board.on("configuration_changed", reloaded),
        board.on("approval_asked", noting_approvals(printer, console=console is not None)),
        board.on("catalog_changed", noting_logins(board, printer)),
    ]
    try:
        if options.stdio:
            board.services.pins.note_waiting()
            await gateway.run_stdio(board, **given)
        else:
            given |= {"host": options.host, "port": options.port, "mounts": _mounts(console), "ready": ready}
            await gateway.run_http(
                board, **given, address=options.address or os.environ.get(ADDRESS) or None, drain=options.drain
            )
    finally:
        if console is not None:
            console.ended()
        for end in unsubscribe:
            end()
        await notifier.aclose()
        cache.fill()
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


def noting_approvals(printer: Printer, *, console: bool) -> Callable[[Mapping[str, Any]], None]:
    """Return what says of each call that waits for a person how it is allowed (A3)."""

    def note(asked: Mapping[str, Any]) -> None:
        whose = f"'{asked['subject']}' of agent '{asked['agent']}' for '{asked['principal']}'"
        answers = f"`pegboard approvals allow {asked['outcome']}`{' or the console' if console else ''}"
        printer.note(f"pegboard: {whose} waits for a person: {answers} allows it.")

    return note


def noting_logins(board: Pegboard, printer: Printer) -> Callable[[object], None]:
    """Return what says of each server, once, that it wants a login (G11)."""
    said: set[str] = set()

    def note(_: object) -> None:
        for name, plugin in board.world.catalog.plugins.items():
            if plugin.needs_login and name not in said:
                said.add(name)
                printer.note(f"pegboard: server {name!r} wants a login: `pegboard login {shlex.quote(name)}`.")

    return note


def _console(board: Pegboard, notifier: _OperatorNotifier) -> ServedConsole:
    """Return the console; over stdio nothing of it is imported."""
    from pegboard.console.served_console import ServedConsole

    notifier.console = ServedConsole(board, notifier.faults)
    return notifier.console


def _mounts(console: ServedConsole | None) -> list[Mount]:
    if console is None:
        return []
    from pegboard.console.served_console import PREFIXES
    from pegboard.gateway import Mount

    return [Mount(prefixes=PREFIXES, build=console.app)]


class _OperatorNotifier:
    """The messages to operators outside of the console; imports nothing for it before the configuration has hooks."""

    def __init__(self, board: Pegboard, *, at_once: bool) -> None:
        self._board = board
        self._sender: HookSender | None = None
        self._end = board.on("configuration_changed", self.follow)
        self.console: ServedConsole | None = None
        if at_once:
            self.follow()

    def follow(self, _: object = None) -> None:
        """Begin, once the configuration names somebody."""
        if self._sender is None and self._board.configuration.notify:
            from pegboard.console.hooks.http_messenger import HttpMessenger
            from pegboard.console.hooks.sender import HookSender

            self._sender = HookSender(self._board, HttpMessenger(), self._address)
            self._sender.start()

    def _address(self) -> str:
        return self.console.address if self.console is not None else ""

    def faults(self) -> Sequence[HookFault]:
        """Return the hooks that do not take messages."""
        return self._sender.faults() if self._sender is not None else ()

    async def aclose(self) -> None:
        """End."""
        self._end()
        if self._sender is not None:
            await self._sender.aclose()


class _Cache:
    """The kept configuration of a board; ``stale`` while it is not the one in use."""

    def __init__(self, board: Pegboard) -> None:
        self._board = board
        self.stale = not board.from_cache

    def fill(self) -> None:
        """Keep the configuration for the next start, beside what is served."""
        from pegboard.configuration_source import keep

        if self.stale:
            self.stale = False
            asyncio.get_running_loop().run_in_executor(None, keep, self._board.configuration.path)


def _collect_rarely() -> None:
    """Collect garbage again, seldom, and never what was imported: that took a sixth of the time of a call."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
