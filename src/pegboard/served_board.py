"""What goes on beside a board that is served, whoever its clients are: notes to people, messages, the kept start."""

from __future__ import annotations

import asyncio
import gc
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pegboard.core.access.instances import without_passing_parts

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.console.hooks.sender import HookSender
    from pegboard.console.served_console import ServedConsole
    from pegboard.gateway import Mount
    from pegboard.operators.attention import HookFault

Note = Callable[[str], None]


class ServedBoard:
    """A board while it is served.

    Args:
        board: the board.
        note: shows a text to people: on standard error, or where the clients are.
        has_console: whether the console is served beside it.
        note_call: shows a text about a call to the people in front of its client alone; ``note`` where there is none.
    """

    def __init__(self, board: Pegboard, note: Note, *, has_console: bool, note_call: Note | None = None) -> None:
        self.board, self._note = board, note
        self._notifier = _OperatorNotifier(board)
        self._console: ServedConsole | None = None
        if has_console:
            from pegboard.console.served_console import ServedConsole

            self._console = self._notifier.console = ServedConsole(board, self._notifier.faults)
        self._stale = not board.from_cache
        self._unsubscribe = [
            board.on("configuration_changed", self._note_reload),
            board.on("approval_asked", noting_approvals(note_call or note, console=has_console)),
            board.on("catalog_changed", noting_logins(board, note)),
        ]

    def follow_hooks(self) -> None:
        """Send messages to operators from now on, where the configuration says to whom."""
        self._notifier.follow()

    def note_address(self, url: str) -> None:
        """Note that clients can come at this address."""
        if self._console is not None:
            self._note(self._console.announce_console(url))
        self.follow_hooks()

    def mounts(self) -> list[Mount]:
        """Return what is served beside the gateway."""
        if self._console is None:
            return []
        from pegboard.console.served_console import PREFIXES
        from pegboard.gateway import Mount

        return [Mount(prefixes=PREFIXES, build=self._console.app)]

    def lasting_notes(self) -> Iterator[str]:
        """Yield what has been noted and still holds, for people who come later."""
        board = self.board
        if board.waiting:
            from pegboard.configuration_source import waiting_text

            yield f"pegboard: {waiting_text(board.configuration.path.name, board.waiting)}"
        shared = (one for one in board.upstream_states() if without_passing_parts(one["scope"]) == one["scope"])
        failures = dict.fromkeys(one["failure"] for one in shared if one["failure"])
        for text in (*board.services.pins.waiting_texts(), *failures):
            yield f"pegboard: {text}"
        yield from (_wanted_login_text(name) for name in _wanting_login(board))

    def note_settled(self) -> None:
        """Note that all which calls need is imported."""
        _collect_rarely()
        self._keep_configuration()

    def _note_reload(self, _: object) -> None:
        but = ", without what waits for a person" if self.board.waiting else ""
        self._note(f"pegboard: the edited {self.board.configuration.path.name} is in use now{but}.")
        self._stale = True
        self._keep_configuration()

    def _keep_configuration(self) -> None:
        """Keep the configuration for the next start, beside what is served, where it is not the one that is kept."""
        from pegboard.configuration_source import keep

        if self._stale:
            self._stale = False
            path, env = self.board.configuration.path, self.board.env
            asyncio.get_running_loop().run_in_executor(None, keep, path, env)

    async def aclose(self) -> None:
        """End."""
        if self._console is not None:
            self._console.remove_from_list()
        for end in self._unsubscribe:
            end()
        await self._notifier.aclose()
        self._keep_configuration()


def noting_approvals(write: Note, *, console: bool) -> Callable[[Mapping[str, Any]], None]:
    """Return what says of each call that waits for a person how it is allowed (A3)."""

    def note(asked: Mapping[str, Any]) -> None:
        whose = f"'{asked['subject']}' of agent '{asked['agent']}' for '{asked['principal']}'"
        answers = f"`pegboard approvals allow {asked['outcome']}`{' or the console' if console else ''}"
        write(f"pegboard: {whose} waits for a person: {answers} allows it.")

    return note


def noting_logins(board: Pegboard, write: Note) -> Callable[[object], None]:
    """Return what says of each server, once, that it requires a login (G11)."""
    said: set[str] = set()

    def note(_: object) -> None:
        for name in _wanting_login(board):
            if name not in said:
                said.add(name)
                write(_wanted_login_text(name))

    return note


def _wanting_login(board: Pegboard) -> list[str]:
    return [name for name, plugin in board.world.catalog.plugins.items() if plugin.needs_login]


def _wanted_login_text(name: str) -> str:
    return f"pegboard: server {name!r} requires a login: `pegboard login {shlex.quote(name)}`."


class _OperatorNotifier:
    """The messages to operators outside of the console; imports nothing for it before the configuration has hooks."""

    def __init__(self, board: Pegboard) -> None:
        self._board = board
        self._sender: HookSender | None = None
        self._end = board.on("configuration_changed", self.follow)
        self.console: ServedConsole | None = None

    def follow(self, _: object = None) -> None:
        """Begin, once the configuration names someone."""
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


def _collect_rarely() -> None:
    """Collect garbage again, seldom, and never what was imported: that took a sixth of the time of a call."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
