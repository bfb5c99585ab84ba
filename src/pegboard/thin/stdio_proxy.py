"""`pegboard serve --stdio` as a proxy of the daemon: it copies lines, and outlives the daemon. Standard library only.

Two threads, one for each way. What they pass on they write down, in order, and read it some pieces later: a call waits
for no more than the copying. A request is pending from before it is sent until its answer comes. When the daemon ends,
those that only read are sent again, once, to the next one; for others the client gets an error: they may have run.
What the client has said of itself (its handshake, its level of logs, its subscriptions) is said again before that.
In the same way the proxy connects again where the client turns out to work in another folder than its process.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from pegboard.thin.connect import DaemonConnection, NoDaemonError, connect
from pegboard.thin.wire import ALONE, NOTE, Message

LONGEST_LINE: Final = 32 * 1024 * 1024
LAST_ANSWERS: Final = 5.0
"""How long the daemon may take for what is in flight once the client has ended, in seconds."""
_CHUNK: Final = 65_536  # a larger buffer costs a mapping of memory each time
_READ_WHOLE: Final = 65_536
_MOST_PASSED: Final = 32
"""How many pieces may be passed on before they are read."""
_LARGE: Final = 16_384
"""How long a piece is that is read at once, in bytes."""
_ID: Final = rb'"id":\s?("(?:[^"\\]|\\.){0,200}"|-?\d{1,20})'
_ANSWER: Final = re.compile(rb'\s*\{"jsonrpc":\s?"2\.0",\s?' + _ID + rb',\s?"(?:result|error)":')
_HEAD: Final = re.compile(rb'\s*\{"jsonrpc":\s?"2\.0",\s?' + _ID + rb',\s?"method":\s?"([^"\\]{1,100})"')
_TAIL: Final = re.compile(rb',\s?"jsonrpc":\s?"2\.0",\s?' + _ID + rb"\s*\}\s*$")
_METHOD: Final = re.compile(rb'\s*\{"method":\s?"([^"\\]{1,100})"')
REPEATABLE: Final = frozenset({
    "completion/complete", "initialize", "logging/setLevel", "ping", "prompts/get", "prompts/list",
    "resources/list", "resources/read", "resources/subscribe", "resources/templates/list", "resources/unsubscribe",
    "server/discover", "subscriptions/listen", "tools/list",
})  # fmt: skip
"""The requests that change nothing, so that the next daemon may be asked once more."""
_LISTS: Final = ("tools", "prompts", "resources")
_ROOTS: Final = "pegboard-roots"
"""The id of the question for the roots of the client, which the proxy asks itself."""
_ROOTS_WITHIN: Final = 5.0
"""How long the client may take to answer that, in seconds."""
_ENDED: Final = -32000
"""The code of the error of a call whose gateway ended."""


class _PendingRequest:
    """A request that is not answered yet."""

    __slots__ = ("again", "line", "method", "number", "unsent")

    def __init__(self, number: Any, method: str, line: bytes) -> None:
        self.number, self.method, self.line = number, method, line
        self.again = self.unsent = False


def serve(request: Message) -> int | None:
    """Serve the client that started this process, and return the exit code; None where it is to be served alone.

    Args:
        request: what the command line names: ``config``, ``agent``, ``session``, ``sub_app``, ``no_fast_path``.
    """
    try:
        connection = connect("stdio", request)
    except NoDaemonError as error:
        if error.code != ALONE:  # else the process that serves it alone says why
            _write_note(f"pegboard: this client is served without the daemon: {error}.")
        return None
    return _Proxy(request, connection).run()


def _write_note(text: str) -> None:
    with suppress(OSError):
        os.write(2, f"{text}\n".encode(errors="backslashreplace"))


_Note = Callable[[bytes], object]
"""Note what a line says."""


class _Proxy:
    def __init__(self, request: Message, connection: DaemonConnection) -> None:
        self._request = request
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._connection: DaemonConnection | None = connection
        self._pending: dict[Any, _PendingRequest] = {}
        self._passed: deque[tuple[_Note, bytes]] = deque()  # whole lines that are not read yet, in order
        self._said: dict[str, bytes] = {}  # by what it is about, in order
        self._dropped: set[Any] = set()  # requests that were said again: the client has their answers
        self._asked: set[Any] = set()  # by the daemon, not answered by the client
        self._stale: set[Any] = set()  # asked by a daemon that has ended
        self._input_ended = False
        self._held: list[bytes] | None = None  # lines that wait until it is known where the client works
        self._moves = False  # to the board of another folder, or process, once nothing is under way

    def run(self) -> int:
        """Copy until the client or the daemon's last answer has ended."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: os._exit(0))
        threading.Thread(target=self._read_client, name="pegboard-stdin", daemon=True).start()
        try:
            while (connection := self._current_connection()) is not None:
                self._read_daemon(connection)
                if not self._outlive_daemon(connection):
                    break
        except OSError:  # the client reads no more
            pass
        return 0

    def _current_connection(self) -> DaemonConnection | None:
        """Return the connection, once there is one; None where the client has ended."""
        with self._changed:
            while self._connection is None and not self._input_ended:
                self._changed.wait()
            return self._connection

    # -- from the client ---------------------------------------------------------------------------

    def _read_client(self) -> None:
        rest = bytearray()
        while True:
            try:
                chunk = os.read(0, _CHUNK)
            except OSError:
                chunk = b""
            if not chunk:
                break
            end = chunk.rfind(b"\n") + 1
            if not end and len(rest) < LONGEST_LINE:
                rest += chunk
                continue
            whole = chunk if not rest and end == len(chunk) else bytes(rest) + (chunk[:end] if end else chunk)
            rest = bytearray(chunk[end:] if end else b"")
            try:
                self._send(whole)
            except OSError:  # standard output is closed
                os._exit(0)
        self._end_input(bytes(rest))
        time.sleep(LAST_ANSWERS)
        os._exit(0)

    def _end_input(self, rest: bytes) -> None:
        if rest.strip():
            with suppress(OSError):
                self._send(rest + b"\n")
        with self._changed:
            self._input_ended = True
            if self._connection is not None:
                with suppress(OSError):
                    self._connection.socket.shutdown(1)
            self._changed.notify_all()

    def _send(self, whole: bytes) -> None:
        """Send whole lines on; to a new daemon where the last one has ended."""
        with self._lock:
            connection = self._connection
            if connection is None or self._reads_first(connection):
                self._note_passed()
                self._move_if_idle()
                lines = [line for line in whole.split(b"\n") if line]
                self._send_lines([line for line in lines if not self._hold_back(line) and self._take_line(line)])
                return
            self._passed.append((self._take_line, whole))  # before its answer can come
            done = _send_all(connection, whole)
            if done < len(whole):
                self._note_passed()
                self._mark_unsent(_unsent(whole, done))
            elif len(whole) > _LARGE or len(self._passed) > _MOST_PASSED:
                self._note_passed()

    def _reads_first(self, connection: DaemonConnection) -> bool:
        """Return whether a line may be one that is not sent, or not yet, or elsewhere."""
        return self._moves or self._held is not None or bool(self._stale) or connection.answer.get("root") is True

    def _send_lines(self, lines: list[bytes]) -> None:
        if not lines:
            return
        if self._connection is None:
            self._connect_again(lines)
            return
        whole = _joined(lines)
        done = _send_all(self._connection, whole)
        if done < len(whole):
            self._mark_unsent(_unsent(whole, done))

    def _mark_unsent(self, unsent: frozenset[bytes]) -> None:
        """Note which requests the daemon has not got, as it has ended: the other thread finds that out."""
        for one in self._pending.values():
            one.unsent = one.unsent or one.line in unsent

    def _take_line(self, line: bytes) -> bool:
        """Note what a line of the client is; return whether it is to be sent."""
        number, method, params = _read_message(line)
        if method is None:
            if number is not None and number in self._stale:
                self._stale.discard(number)
                return False
            self._asked.discard(number)
            return True
        if number is not None:
            self._pending[number] = _PendingRequest(number, method, line)
        elif method == "notifications/cancelled":
            cancelled = (params or {}).get("requestId")
            if isinstance(cancelled, int | str):
                self._pending.pop(cancelled, None)
        self._remember_message(method, params, line)
        return True

    def _remember_message(self, method: str, params: Message | None, line: bytes) -> None:
        match method:
            case "initialize" | "notifications/initialized" | "logging/setLevel":
                self._said[method] = line
            case "resources/subscribe":
                self._said[f"subscribe {(params or {}).get('uri')}"] = line
            case "resources/unsubscribe":
                self._said.pop(f"subscribe {(params or {}).get('uri')}", None)
            case _:
                pass

    # -- where the client works --------------------------------------------------------------------

    def _hold_back(self, line: bytes) -> bool:
        """Keep a line back as long as it is not known where the client works; return whether it is."""
        if self._held is None and not self._has_roots():
            return False
        number, method, _ = _read_message(line)
        if number == _ROOTS and method is None:
            self._take_root(line)
            return True
        if self._held is not None:
            self._held.append(line)
            return True
        if method == "notifications/initialized":
            self._ask_root([line])
            return True
        if method == "notifications/roots/list_changed":
            self._ask_root([line])
            return True
        return False

    def _has_roots(self) -> bool:
        """Return whether the client can be asked for its roots, and its board depends on them."""
        if self._connection is None or not self._connection.answer.get("root"):
            return False
        return b'"roots"' in self._said.get("initialize", b"")

    def _ask_root(self, held: list[bytes]) -> None:
        self._held = held
        _write(_line({"id": _ROOTS, "method": "roots/list"}))
        timer = threading.Timer(_ROOTS_WITHIN, self._take_root_late, [held])
        timer.daemon = True
        timer.start()

    def _take_root_late(self, held: list[bytes]) -> None:
        with self._lock:
            if self._held is held:
                self._release()

    def _take_root(self, line: bytes) -> None:
        if self._held is None:  # it comes late
            return
        root = _one_root(line)
        if root != self._request.get("root"):
            self._request = {**self._request, "root": root}
            self._moves = True
        self._release()

    def _release(self) -> None:
        held, self._held = self._held or [], None
        self._move_if_idle()
        self._send_lines([line for line in held if self._take_line(line)])

    def _move_if_idle(self) -> None:
        """Connect again where the board is another one now, once nothing is under way."""
        if not self._moves:
            return
        self._note_passed()
        if self._pending:
            return
        self._moves = False
        ended, self._connection = self._connection, None
        if ended is not None:
            self._forget_daemon()
            with suppress(OSError):
                ended.socket.shutdown(2)
        self._connect_again(())

    # -- from the daemon ---------------------------------------------------------------------------

    def _read_daemon(self, connection: DaemonConnection) -> None:
        """Pass on what the daemon sends until it ends; raises ``OSError`` where the client reads no more."""
        rest = bytearray(connection.lines.rest())
        while True:
            try:
                chunk = connection.socket.recv(_CHUNK)
            except OSError:
                return
            if not chunk:
                return
            end = chunk.rfind(b"\n") + 1
            if not end:
                rest += chunk
                continue
            whole = bytes(rest) + chunk[:end] if rest else chunk[:end]
            rest = bytearray(chunk[end:])
            if self._dropped or whole.startswith(NOTE) or b"\n" + NOTE in whole:
                whole = _joined([line for line in whole[:-1].split(b"\n") if self._is_for_client(line)])
            self._passed.append((self._note_answer, whole))  # before the client can send what follows from it
            _write(whole)
            if self._moves:
                with self._lock:
                    self._move_if_idle()
            elif len(whole) > _LARGE or len(self._passed) > 2 * _MOST_PASSED:  # the client sends nothing
                self._note_if_free()

    def _is_for_client(self, line: bytes) -> bool:
        if line.startswith(NOTE):
            message = json.loads(line[len(NOTE) :])
            if "note" in message:
                _write_note(str(message["note"]))
                return False
            with self._lock:
                self._note_passed()
                if message.get("stop"):
                    for one in [one for one in self._pending.values() if one.method == "subscriptions/listen"]:
                        self._pending.pop(one.number, None)
                elif message.get("move"):
                    self._moves = True
                    self._move_if_idle()
            return False
        if self._dropped:
            number, method, _ = _read_message(line)
            if method is None and number in self._dropped:
                self._dropped.discard(number)
                return False
        return True

    def _note_if_free(self) -> None:
        """Note what was passed on, unless lines are being sent: to wait for that would keep the daemon from reading."""
        if self._lock.acquire(blocking=False):
            try:
                self._note_passed()
            finally:
                self._lock.release()

    def _note_passed(self) -> None:
        """Read what was passed on; needs the lock."""
        while self._passed:
            note, whole = self._passed.popleft()
            for line in whole.split(b"\n"):
                if line:
                    with suppress(TypeError, ValueError):  # such a line is no message: the daemon says so
                        note(line)

    def _note_answer(self, line: bytes) -> None:
        if (found := _ANSWER.match(line)) is not None:
            self._pending.pop(json.loads(found[1]), None)
            return
        number, method, params = _read_message(line)
        if method is None:
            self._pending.pop(number, None)
        elif number is not None:
            self._asked.add(number)
        elif method == "notifications/cancelled":
            self._asked.discard((params or {}).get("requestId"))

    # -- the next daemon ---------------------------------------------------------------------------

    def _outlive_daemon(self, ended: DaemonConnection) -> bool:
        """Take leave of a daemon that has ended; return whether the client is still there."""
        with self._changed:
            ended.socket.close()
            if self._connection is not ended:  # it was left for that of another folder
                return True
            self._connection = None
            if self._input_ended:
                return False
            self._note_passed()
            self._forget_daemon()
            for one in [one for one in self._pending.values() if not one.unsent and not _may_repeat(one)]:
                self._fail(one, "the gateway ended while it ran: it may have run, or run in part")
            if self._pending:
                self._connect_again(())
            return True

    def _forget_daemon(self) -> None:
        """Take back what a daemon has asked that is no longer there."""
        self._dropped.clear()
        for number in self._asked:
            _write(_line({"method": "notifications/cancelled", "params": {"requestId": number}}))
        self._stale, self._asked = self._stale | self._asked, set()

    def _connect_again(self, new: Sequence[bytes]) -> None:
        """Connect to the next daemon, and say all that it has to know; ``new`` are lines that none was sent."""
        try:
            connection = connect("stdio", self._request)
        except NoDaemonError as error:
            _write_note(f"pegboard: the daemon cannot be used: {error}.")
            for one in list(self._pending.values()):
                self._fail(one, f"the gateway has ended, and its daemon cannot be used: {error}; it did not run")
            return
        again = [one for one in self._pending.values() if one.line not in new]
        new = [*new, *(one.line for one in again if one.unsent)]
        again = [one for one in again if not one.unsent]
        first = {one.line for one in self._pending.values()} | set(new)
        said = [line for line in self._said.values() if line not in first]
        self._dropped = {number for number, _, _ in map(_read_message, said) if number is not None}
        whole = _joined([*said, *(one.line for one in again), *new])
        unsent = _unsent(whole, _send_all(connection, whole))
        for one in again:
            one.again = True
        for one in self._pending.values():
            one.unsent = one.line in unsent
        self._connection = connection
        if "notifications/initialized" in self._said and said:
            for kind in _LISTS:  # it is to ask again, so that it is notified of changes again
                _write(_line({"method": f"notifications/{kind}/list_changed"}))
        self._changed.notify_all()

    def _fail(self, one: _PendingRequest, why: str) -> None:
        self._pending.pop(one.number, None)
        _write(_line({"id": one.number, "error": {"code": _ENDED, "message": f"Pegboard: {why}."}}))


def _one_root(line: bytes) -> str | None:
    """Return the folder that an answer with the roots of a client names, where it is one that is there."""
    from urllib.parse import unquote, urlsplit  # few clients need it

    try:
        (root,) = json.loads(line)["result"]["roots"]
        url = urlsplit(root["uri"])
    except (ValueError, LookupError, TypeError):
        return None
    folder = unquote(url.path)
    usable = url.scheme == "file" and url.netloc in ("", "localhost") and os.path.isabs(folder)  # noqa: PTH117
    return os.path.normpath(folder) if usable and os.path.isdir(folder) else None  # noqa: PTH112


def _may_repeat(one: _PendingRequest) -> bool:
    return one.method in REPEATABLE and not one.again


def _joined(lines: Sequence[bytes]) -> bytes:
    return b"".join([line + b"\n" for line in lines])


def _send_all(connection: DaemonConnection, data: bytes) -> int:
    """Send, and return how much was sent: less than all where the daemon has ended."""
    done = 0
    with suppress(OSError):
        done = connection.socket.send(data)
        while done < len(data):
            done += connection.socket.send(memoryview(data)[done:])
    return done


def _unsent(whole: bytes, done: int) -> frozenset[bytes]:
    """Return the lines of which not all was sent."""
    return frozenset(whole[whole.rfind(b"\n", 0, done) + 1 :].split(b"\n")[:-1]) if done < len(whole) else frozenset()


def _read_message(line: bytes) -> tuple[Any, str | None, Message | None]:
    """Return the id and the method of a message, and its parameters where it is short; None for what it has not."""
    if len(line) > _READ_WHOLE:
        if (answer := _ANSWER.match(line)) is not None:
            return json.loads(answer[1]), None, None
        if (head := _HEAD.match(line)) is not None:
            return json.loads(head[1]), head[2].decode(), None
        tail, method = _TAIL.search(line, len(line) - 300), _METHOD.match(line)
        if tail is not None and method is not None:
            return json.loads(tail[1]), method[1].decode(), None
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None, None, None
    if not isinstance(message, dict):
        return None, None, None
    number, method, params = message.get("id"), message.get("method"), message.get("params")
    return (
        number if isinstance(number, int | str) else None,
        method if isinstance(method, str) else None,
        params if isinstance(params, dict) else None,
    )


def _line(message: Message) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"


def _write(data: bytes) -> None:
    """Write to the client; raises ``OSError`` where it reads no more."""
    done = os.write(1, data) if data else 0
    while done < len(data):
        done += os.write(1, memoryview(data)[done:])
