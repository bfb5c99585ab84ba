"""The boards of the daemon: one for each configuration, with the variables that it names."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pegboard.daemon.memory import ProcessMemory
from pegboard.daemon.open_board import CALLS, CLIENT, CodePluginsError, Note, OpenBoard
from pegboard.gateway.clients.only_client import asking_sources
from pegboard.served_board import ServedBoard
from pegboard.support.tasks import WORKS_FOR
from pegboard.support.user_folders import is_of_user

if TYPE_CHECKING:
    from pegboard.daemon.requests import ClientFront
    from pegboard.sources.mcp.transports.shared_processes import SharedProcesses

log = logging.getLogger("pegboard.daemon")

OBJECTS_IDLE: Final = 3600.0
"""After how many seconds without a call what a plugin constructed is closed, where it does not say (G9)."""


def _no_note(_: str) -> None:
    """Show nothing: a command says itself what its call came to."""


class Boards:
    """The boards that are open; each is opened when it is needed and closed when it is not for a while.

    Args:
        own: the key of the one configuration that this process is for; empty in the daemon of all others.
        idle: how long a board stays open without a client, in seconds.
    """

    def __init__(self, *, own: str, idle: float) -> None:
        self._own, self._idle = own, idle
        self.open: list[OpenBoard] = []
        self._processes: SharedProcesses | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def use(
        self, front: ClientFront, *, calls: Counter[str], fast_path: bool = True, note: Note | None = None
    ) -> AsyncGenerator[OpenBoard]:
        """Yield the board of a client's configuration: the one that it names, else that of its folder.

        The task that enters it works for that client from then on: ``calls`` counts its calls by server, and ``note``
        shows texts to the people in front of it, those too that others have been shown before and that still hold.

        Raises:
            ElsewhereError: the configuration has plugins in code.
            PegboardError: it cannot be used.
        """
        found = await self._find_open_board(_path_of(front.text("config"), front.cwd), front, fast_path=fast_path)
        found.users += 1
        if found.idle is not None:
            found.idle.cancel()
            found.idle = None
        user, is_late = object(), found.opened.done()
        if note is not None:
            found.notes[user] = note
        try:
            await asyncio.shield(found.opened)
            if is_late and found.board is not None:  # an edit counts for who comes behind it, as in a process alone
                await found.board.take_edits()
                if found.moves.is_set():
                    raise CodePluginsError(found.key)
            WORKS_FOR.set(found)  # the task of a connection serves this client alone, until it ends
            CLIENT.set(note or _no_note)
            CALLS.set(calls)
            if note is not None and is_late and found.served is not None:
                for text in found.served.lasting_notes():
                    found.show(text, note)
            yield found
        finally:
            found.notes.pop(user, None)
            found.users -= 1
            if not found.users and found.moves.is_set():
                self._close(found)
            elif not found.users:
                self._close_later(found)

    async def _find_open_board(self, path: Path | None, front: ClientFront, *, fast_path: bool) -> OpenBoard:
        for known in tuple(self.open):
            if known.is_of(path, front, fast_path=fast_path):
                await asyncio.wait({known.opened})  # which variables it names shows when it is read
                if known in self.open and known.names_equal_variables(front):
                    return known
        found = OpenBoard(path, front, fast_path=fast_path)
        self.open.append(found)
        task = asyncio.create_task(self._keep_board_open(found), name=f"board {path}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return found

    async def _keep_board_open(self, kept: OpenBoard) -> None:
        """Open a board, and close it once it is not needed."""
        from pegboard import mcp_extra

        WORKS_FOR.set(kept)
        try:
            mcp_extra.require("`pegboard serve`")
            from pegboard.daemon.daemon_board import DaemonBoard

            kept.processes, kept.runs_code = self._shared_processes(), bool(self._own)
            fast = None if kept.fast_path else False
            is_users = kept.path is not None and is_of_user(kept.path.parent)
            config = kept.path if kept.named or is_users else None
            folder = Path(kept.folder) if kept.path is None else _folder_of_servers(kept.path)
            async with DaemonBoard.open(
                config,
                watch=True,
                env=kept.env,
                cached=True,
                idle=OBJECTS_IDLE,
                fast_path=fast,
                folder=folder,
            ) as board:
                for source in asking_sources(board):
                    source.expect_clients_of_user()
                kept.board, kept.served = (
                    board,
                    ServedBoard(board, kept.note, has_console=False, note_call=kept.note_call),
                )
                kept.served.follow_hooks()
                board.services.pins.note_waiting()
                board.on("called", kept.count_call)
                kept.opened.set_result(None)
                try:
                    await kept.close.wait()
                finally:
                    await kept.served.aclose()
        except BaseException as error:
            if kept.opened.done():
                log.exception("a board ended with an error")
                return
            kept.opened.set_exception(error)
            kept.opened.exception()  # it is raised to those who wait; where none does it is no fault
        finally:
            if kept in self.open:
                self.open.remove(kept)

    def _shared_processes(self) -> SharedProcesses:
        if self._processes is None:
            from pegboard.sources.mcp.transports.shared_processes import SharedProcesses

            self._processes = SharedProcesses()
        return self._processes

    def _close_later(self, found: OpenBoard) -> None:
        found.idle = asyncio.get_running_loop().call_later(self._idle, self._close, found)

    def _close(self, found: OpenBoard) -> None:
        if not found.users:
            if found in self.open:
                self.open.remove(found)
            found.close.set()

    def states(self, memory: ProcessMemory) -> list[dict[str, Any]]:
        """Return what is known of each board, for people: its configuration, its clients, its servers."""
        return [
            {
                "configuration": kept.shown_name,
                "clients": kept.users,
                "servers": [
                    {
                        **{name: state[name] for name in ("name", "scope", "state", "pid", "in_flight")},
                        "memory": memory.with_children(state["pid"]),
                    }
                    for state in (kept.board.upstream_states() if kept.served is not None else ())
                ],
            }
            for kept in self.open
        ]

    async def aclose(self) -> None:
        """Close all."""
        tasks = set(self._tasks)
        for kept in tuple(self.open):
            if kept.idle is not None:
                kept.idle.cancel()
            kept.close.set()
        if tasks:
            await asyncio.wait(tasks)


def _folder_of_servers(configuration: Path) -> Path:
    """Return where servers without a folder start: in that of the project, or in the home of the user."""
    return Path.home() if is_of_user(configuration.parent) else configuration.parent


def _path_of(named: str | None, folder: str) -> Path | None:
    """Return the configuration that a client means, None where it is the packaged quickstart.

    Raises ``NotAcceptedError`` for one that was found, and that this user has not accepted (P11).
    """
    if named is not None:
        return Path(os.path.normpath(os.path.join(folder, named)))  # noqa: PTH118
    from pegboard.configuration_source import choose

    path, is_quickstart = choose(None, Path(folder))
    return None if is_quickstart else path
