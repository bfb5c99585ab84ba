"""A board that is open in the daemon, with those who use it."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pegboard.config.cache.reader import Lookups
from pegboard.config.documents.expansion import ROOT
from pegboard.served_board import ServedBoard
from pegboard.support.tasks import WORKS_FOR
from pegboard.thin.address import own_key

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.daemon.requests import ClientFront
    from pegboard.sources.mcp.transports.shared_processes import SharedProcesses

log = logging.getLogger("pegboard.daemon")

Note = Callable[[str], None]
CLIENT: Final[ContextVar[Note | None]] = ContextVar("pegboard_client", default=None)
"""What shows a text to the people in front of the client that this task serves, where it serves one."""


CALLS: Final[ContextVar[Counter[str] | None]] = ContextVar("pegboard_calls", default=None)
"""What counts the calls of the client that this task serves, by server or plugin."""


def open_board() -> OpenBoard | None:
    """Return the board that the running task works for."""
    board = WORKS_FOR.get(None)
    return board if isinstance(board, OpenBoard) else None


def _do_nothing() -> None:
    """Do nothing."""


class CodePluginsError(Exception):
    """A configuration has plugins in code: they run in a process of their own, of which this is the key."""


class OpenBoard:
    """A board with those who use it; ``board`` is there once it is opened, as ``served`` is."""

    board: Pegboard
    key = ""
    """What names the process of its plugins in code, once it ``moves``."""

    def __init__(self, path: Path | None, front: ClientFront, *, fast_path: bool) -> None:
        self.path, self.folder, self.fast_path = path, front.cwd, fast_path
        self.named = front.text("config") is not None
        self.env = Lookups({**front.env, ROOT: front.root})
        self.notes: dict[object, Note] = {}
        self.served: ServedBoard | None = None
        self.users = 0
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.close = asyncio.Event()
        self.processes: SharedProcesses | None = None
        self.runs_code = False
        self.moves = asyncio.Event()
        """Set once its configuration has plugins in code: its clients are to go to the process for these."""
        self.idle: asyncio.TimerHandle | None = None

    def is_of(self, path: Path | None, front: ClientFront, *, fast_path: bool) -> bool:
        """Return whether it is a board of the configuration of a client, whatever the variables of that client are."""
        same = self.path == path and self.named == (front.text("config") is not None) and self.fast_path == fast_path
        return (
            same
            and (path is not None or self.folder == front.cwd)
            and not self.close.is_set()
            and not self.moves.is_set()
        )

    def names_equal_variables(self, front: ClientFront) -> bool:
        """Return whether the variables that the configuration names have the same values for a client."""
        theirs = {**front.env, ROOT: front.root}
        return all(self.env.given(name) == theirs.get(name) for name in self.env.names)

    @property
    def shown_name(self) -> str:
        """Return what people know its configuration by."""
        return str(self.path) if self.path is not None else "the packaged quickstart"

    @property
    def names_root(self) -> bool:
        """Return whether a server of it works in the folder of its client."""
        return ROOT in self.env.names

    def move(self, configuration: Path) -> None:
        """Let its clients go to the process for the plugins in code that its configuration has now."""
        self.key = own_key(str(configuration), self.folder)
        self.moves.set()

    def mask_text(self, text: str) -> str:
        """Return a text without the secrets of the board."""
        return self.board.services.masker.text(text) if self.served is not None else text

    def note(self, text: str) -> None:
        """Show a text to the people in front of every client of the board, and in the log."""
        log.info("%s", text.removeprefix("pegboard: "))
        self.show(text)

    def note_call(self, text: str) -> None:
        """Show a text about the call that is being made, to the people in front of its client, and in the log."""
        log.info("%s", text.removeprefix("pegboard: "))
        self.show(text, CLIENT.get())

    @staticmethod
    def count_call(record: Mapping[str, Any]) -> None:
        """Count a call that was made, for the client that this task serves."""
        calls = CALLS.get()
        if calls is not None:
            calls[record["subject"].partition("/")[0]] += 1

    def show(self, text: str, client: Note | None = None) -> None:
        """Show a text to the people in front of a client, or of all."""
        text = self.mask_text(text)
        for write in tuple(self.notes.values()) if client is None else (client,):
            write(text)

    def note_settled(self) -> None:
        """Note that all which calls need is imported."""
        if self.served is not None:
            self.served.note_settled()
            self.note_settled = _do_nothing
