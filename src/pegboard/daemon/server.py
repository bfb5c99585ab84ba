"""The daemon's socket: who may come in, and what each client is served."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import os
import secrets
import socket
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pegboard.daemon.boards import Boards
from pegboard.daemon.memory import ProcessMemory
from pegboard.daemon.open_board import CodePluginsError
from pegboard.daemon.requests import ClientFront, front_of
from pegboard.daemon.stdio_clients import ProxyNotes, caller_in_front, serve_proxy
from pegboard.errors import PegboardError
from pegboard.support.version import __version__
from pegboard.thin import wire
from pegboard.thin.connect import peer_pid, peer_uid
from pegboard.thin.wire import Message, WireError

if TYPE_CHECKING:
    from pegboard.daemon.requests import RunCommand
    from pegboard.thin.address import DaemonAddress

log = logging.getLogger("pegboard.daemon")

HELLO_LIMIT: Final = 10.0
"""How long a client may take for its first line, in seconds."""
LAST_ANSWERS: Final = 3.0
"""How long clients may take to end once the daemon was stopped, in seconds."""
BACKLOG: Final = 4096
OF_OPERATORS: Final = ("status", "stop")
"""What clients of every version may ask: after an upgrade the daemon of before is shown and ended like any other."""
_CHUNK: Final = 262_144


class DaemonClient:
    """A client that has come in."""

    def __init__(self, connection: socket.socket, front: ClientFront) -> None:
        self.socket, self.front = connection, front
        self.name, self.agent, self.since = "", "", time.time()
        self.pid, self.configuration = peer_pid(connection), ""
        self.calls: Counter[str] = Counter()

    def state(self, memory: ProcessMemory) -> dict[str, object]:
        """Return what is known of it, for people; ``calls`` counts those of each server or plugin."""
        return {
            "kind": self.front.kind,
            "client": self.name,
            "agent": self.agent,
            "folder": self.front.root,
            "configuration": self.configuration,
            "calls": dict(self.calls),
            "pid": self.pid,
            "memory": memory.of(self.pid),
            "since": self.since,
        }

    def declare(self, name: str) -> None:
        """Note the name that it gives itself."""
        self.name = name

    async def send(self, message: Message) -> None:
        """Send a message; waits while the client does not read. Raises ``OSError`` where it has ended."""
        await asyncio.get_running_loop().sock_sendall(self.socket, wire.line_of(message))

    async def wait_until_ended(self) -> None:
        """Wait until the client has ended; what it sends is dropped."""
        with contextlib.suppress(OSError):
            while await asyncio.get_running_loop().sock_recv(self.socket, _CHUNK):
                pass


class DaemonServer:
    """The clients of one daemon; ``stop`` ends it.

    Args:
        address: where it listens.
        listener: the socket that listens there.
        boards: the boards that are open.
        run_command: what runs commands.
        idle: after how many seconds without a client it ends.
    """

    def __init__(
        self, address: DaemonAddress, listener: socket.socket, boards: Boards, run_command: RunCommand, *, idle: float
    ) -> None:
        self._address, self._listener, self._run_command, self._idle = address, listener, run_command, idle
        self.boards = boards
        self.clients: set[DaemonClient] = set()
        self.stop = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._secrets, self._began = ("", ""), time.time()

    async def serve(self, taking_ended: Callable[[], None]) -> None:
        """Serve until ``stop`` is set, or no client has come for a while; ``taking_ended`` once none is taken."""
        self._secrets = read_secret(self._address)
        self._begin_idle()
        accepting = asyncio.create_task(self._accept())
        try:
            await self.stop.wait()
        finally:
            accepting.cancel()
            self._listener.close()
            taking_ended()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=LAST_ANSWERS)
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)
            await self.boards.aclose()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError as error:  # out of files
                log.warning("a client could not be accepted: %s", error)
                await asyncio.sleep(0.1)
                continue
            connection.setblocking(False)
            task = asyncio.create_task(self._serve(connection))
            self._tasks.add(task)
            task.add_done_callback(self._finish_task)
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _finish_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a client was not served", exc_info=error)
        if not self._tasks:
            self._begin_idle()

    def _begin_idle(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._idle, self._end_if_idle)

    def _end_if_idle(self) -> None:
        if not self._tasks:
            log.info("no client for %.0f s: stopping", self._idle)
            self.stop.set()

    async def _serve(self, connection: socket.socket) -> None:
        try:
            client = await self._accept_connection(connection)
            if client is None:
                return
            self.clients.add(client)
            try:
                await self._serve_kind(client)
            finally:
                self.clients.discard(client)
        except (OSError, WireError) as error:
            log.info("a client has ended: %s", error)
        finally:
            connection.close()

    async def _serve_kind(self, client: DaemonClient) -> None:
        match client.front.kind:
            case "command":
                await self._command(client)
            case "stdio":
                await self._stdio(client)
            case "status":
                await self.accept(client)
                await client.send(self.state())
            case "stop":
                await self.accept(client)
                self.stop.set()
                await client.send({})
            case kind:
                await self.refuse(client, wire.VERSION, f"it does not know {kind!r}")

    async def _accept_connection(self, connection: socket.socket) -> DaemonClient | None:
        """Return the client of a connection, or None for one that is refused."""
        uid = peer_uid(connection)
        if uid is not None and uid != os.getuid():
            log.warning("a client of another user (%d) was refused", uid)
            return None
        async with asyncio.timeout(HELLO_LIMIT):
            message = wire.message_of(await _first_line(connection))
        shown = message.get("secret")
        if not isinstance(shown, str) or not hmac.compare_digest(shown.encode(), self._secrets[0].encode()):
            log.warning("a client without the secret was refused")
            return None
        client = DaemonClient(connection, front_of(message))
        if message.get("version") != __version__ and client.front.kind not in OF_OPERATORS:
            await self.refuse(client, wire.VERSION, f"it is version {__version__}, not {message.get('version')}")
        elif self.stop.is_set():
            await self.refuse(client, wire.ENDING, "it ends")
        else:
            join_path(client.front.env.get("PATH", ""))
            return client
        return None

    async def accept(self, client: DaemonClient, **more: object) -> None:
        """Let a client know that it is served."""
        await client.send({"ok": True, "secret": self._secrets[1], "pid": os.getpid(), **more})

    async def refuse(self, client: DaemonClient, code: str, reason: str) -> None:
        """Let a client know why it is not served."""
        await client.send({"ok": False, "secret": self._secrets[1], "code": code, "reason": reason})

    async def _command(self, client: DaemonClient) -> None:
        """Run a command for a client; its end cancels it."""
        running = asyncio.create_task(self._run_client(client))
        ended = asyncio.create_task(client.wait_until_ended())
        try:
            await asyncio.wait({running, ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (running, ended):
                task.cancel()
            await asyncio.wait({running, ended})

    async def _run_client(self, client: DaemonClient) -> None:
        accepted = False
        try:
            try:
                async with self.boards.use(client.front, calls=client.calls) as found:
                    client.configuration = found.shown_name
                    client.name = f"pegboard {next(iter(client.front.fields.get('argv') or ()), '')}".strip()
                    await self.accept(client)
                    accepted = True
                    code = await self._run_command(client.front, found.board, client)
            except (PegboardError, CodePluginsError) as error:
                if accepted:
                    raise
                elsewhere = isinstance(error, CodePluginsError)
                await self.refuse(client, wire.ELSEWHERE if elsewhere else wire.ALONE, str(error))
                return
        except OSError:
            return  # the client has ended
        except Exception:
            log.exception("a command failed")
            code = 1
            with contextlib.suppress(OSError):
                await client.send({"err": f"pegboard: the command failed; {self._address.log} says why.\n"})
        with contextlib.suppress(OSError):
            await client.send({"exit": code})

    async def _stdio(self, client: DaemonClient) -> None:
        """Serve a proxy until its client ends, or the daemon does."""
        notes = ProxyNotes()
        fast = client.front.fields.get("no_fast_path") is not True
        try:
            async with self.boards.use(client.front, fast_path=fast, note=notes, calls=client.calls) as board:
                caller = caller_in_front(board, client.front)
                client.agent, client.configuration = caller.agent, board.shown_name
                await self.accept(client, root=board.names_root)
                await serve_proxy(board, client.socket.fileno(), caller, notes, self.stop, client.declare)
        except CodePluginsError as error:
            await self.refuse(client, wire.ELSEWHERE, str(error))
        except PegboardError as error:
            await self.refuse(client, wire.ALONE, str(error))

    def state(self) -> dict[str, object]:
        """Return what is known of this process, its clients and its boards, for people."""
        memory = ProcessMemory()
        return {
            "pid": os.getpid(),
            "version": __version__,
            "since": self._began,
            "memory": memory.of(os.getpid()),
            "log": self._address.log,
            "clients": [client.state(memory) for client in self.clients if client.front.kind not in OF_OPERATORS],
            "boards": self.boards.states(memory),
        }


def join_path(theirs: str) -> None:
    """Let servers that start from now on find what a client finds: its folders come behind those that are known."""
    ours = os.environ.get("PATH", "").split(os.pathsep)
    more = [folder for folder in theirs.split(os.pathsep) if os.path.isabs(folder) and folder not in ours]  # noqa: PTH117
    if more:
        os.environ["PATH"] = os.pathsep.join([*filter(None, ours), *dict.fromkeys(more)])


async def _first_line(connection: socket.socket) -> bytes:
    """Return the first line of a client, which sends no other one before it is answered."""
    loop, line = asyncio.get_running_loop(), bytearray()
    while not line.endswith(b"\n"):
        chunk = await loop.sock_recv(connection, _CHUNK)
        if not chunk:
            raise WireError("it ended before its hello")
        line += chunk
        if len(line) > wire.LONGEST_HELLO:
            raise WireError("its hello is too long")
    return bytes(line)


def make_secret(address: DaemonAddress) -> None:
    """Make the secret of a daemon that begins: two words, of its clients and of its own."""
    number = os.open(f"{address.secret}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(number, "w", encoding="ascii") as file:
        file.write(f"{secrets.token_urlsafe(24)} {secrets.token_urlsafe(24)}\n")
    os.replace(f"{address.secret}.new", address.secret)  # noqa: PTH105


def read_secret(address: DaemonAddress) -> tuple[str, str]:
    """Return the words that clients show and that the daemon answers with."""
    with open(address.secret, encoding="ascii") as file:  # noqa: PTH123
        shown, answered = file.read().split()
    return shown, answered
