"""The boards that are open in the daemon: one for each configuration, with the variables that it names."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pegboard.config.cache.reader import Lookups
from pegboard.core.model.specs import ServerSpec
from pegboard.thin.address import own_key

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.daemon.requests import Front

log = logging.getLogger("pegboard.daemon")

BOARD: Final[ContextVar[OpenBoard | None]] = ContextVar("pegboard_open_board", default=None)
"""The board that this task works for, where it is no client's."""
OBJECTS_IDLE: Final = 3600.0
"""After how many seconds without a call what a plugin constructed is closed, where it does not say (G9)."""
Note = Callable[[str], None]


class ElsewhereError(Exception):
    """A configuration has plugins in code: they run in a process of their own, of which this is the key."""


class OpenBoard:
    """A board with those who use it; ``board`` is there once it is opened."""

    board: Pegboard

    def __init__(self, path: Path | None, folder: str, env: Mapping[str, str], *, fast_path: bool) -> None:
        self.path, self.folder, self.fast_path = path, folder, fast_path
        self.env = Lookups(env)
        self.notes: dict[object, Note] = {}
        self.users = 0
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.close = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.idle: asyncio.TimerHandle | None = None

    def serves(self, path: Path | None, folder: str, env: Mapping[str, str], *, fast_path: bool) -> bool:
        """Return whether it is the board of a configuration for a client with this environment."""
        same = self.path == path and self.fast_path == fast_path and (path is not None or self.folder == folder)
        return same and all(self.env.given(name) == env.get(name) for name in self.env.names)

    def note(self, text: str) -> None:
        """Show a text to the people in front of every client of the board."""
        for write in tuple(self.notes.values()):
            write(text)


class Boards:
    """The boards that are open; each is opened when it is needed and closed when it is not for a while.

    Args:
        own: the key of the one configuration that this process is for; empty in the daemon of all others.
        idle: how long a board stays open without a client, in seconds.
    """

    def __init__(self, *, own: str, idle: float) -> None:
        self._own, self._idle = own, idle
        self.open: list[OpenBoard] = []

    @contextlib.asynccontextmanager
    async def use(self, front: Front, *, fast_path: bool = True, note: Note | None = None) -> AsyncGenerator[OpenBoard]:
        """Yield the board of a client's configuration: the one that it names, else that of its folder.

        Raises:
            ElsewhereError: the configuration has plugins in code.
            PegboardError: it cannot be used.
        """
        named = front.text("config")
        path = _path_of(named, front.cwd)
        found = self._found(path, front, fast_path=fast_path)
        found.users += 1
        if found.idle is not None:
            found.idle.cancel()
            found.idle = None
        user = object()
        if note is not None:
            found.notes[user] = note
        try:
            await asyncio.shield(found.opened)
            yield found
        finally:
            found.notes.pop(user, None)
            found.users -= 1
            if not found.users:
                self._close_later(found)

    def _found(self, path: Path | None, front: Front, *, fast_path: bool) -> OpenBoard:
        for known in self.open:
            if known.serves(path, front.cwd, front.env, fast_path=fast_path):
                return known
        found = OpenBoard(path, front.cwd, front.env, fast_path=fast_path)
        self.open.append(found)
        found.task = asyncio.create_task(self._keep(found), name=f"board {path}")
        return found

    async def _keep(self, kept: OpenBoard) -> None:
        """Open a board, and close it once it is not needed."""
        from pegboard import mcp_extra
        from pegboard.assembly import Pegboard

        BOARD.set(kept)
        try:
            mcp_extra.require("`pegboard serve`")
            fast = None if kept.fast_path else False
            config = str(kept.path) if kept.path is not None else None
            async with Pegboard.open(
                config, watch=True, env=kept.env, cached=True, idle=OBJECTS_IDLE, fast_path=fast
            ) as board:
                self._require_here(board, kept)
                kept.board = board
                kept.opened.set_result(None)
                await kept.close.wait()
                if kept in self.open:
                    self.open.remove(kept)
        except BaseException as error:
            if kept in self.open:
                self.open.remove(kept)
            if kept.opened.done():
                log.exception("a board ended with an error")
                return
            kept.opened.set_exception(error)
            kept.opened.exception()  # it is raised to those who wait; where none does it is no fault

    def _require_here(self, board: Pegboard, kept: OpenBoard) -> None:
        """Raise ``ElsewhereError`` where a board has plugins in code and this process is not its own."""
        if all(isinstance(spec, ServerSpec) for spec in board.configuration.specs.values()):
            return
        key = own_key(str(board.configuration.path), kept.folder)
        if key != self._own:
            raise ElsewhereError(key)

    def _close_later(self, found: OpenBoard) -> None:
        found.idle = asyncio.get_running_loop().call_later(self._idle, self._close, found)

    def _close(self, found: OpenBoard) -> None:
        if not found.users:
            if found in self.open:
                self.open.remove(found)
            found.close.set()

    async def aclose(self) -> None:
        """Close all."""
        tasks = [kept.task for kept in self.open if kept.task is not None]
        for kept in tuple(self.open):
            if kept.idle is not None:
                kept.idle.cancel()
            kept.close.set()
        if tasks:
            await asyncio.wait(tasks)


def _path_of(named: str | None, folder: str) -> Path | None:
    """Return the configuration that a client means, None where it is the packaged quickstart.

    Raises ``NotAcceptedError`` for one that was found, and that this user has not accepted (P11).
    """
    if named is not None:
        return Path(os.path.normpath(os.path.join(folder, named)))  # noqa: PTH118
    from pegboard.config.acceptance import require_accepted
    from pegboard.config.location import find

    found = find(Path(folder))
    if found is not None:
        require_accepted(found)
    return found
