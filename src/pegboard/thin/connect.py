"""Connect to the daemon, and start it where it does not run. Standard library only."""

from __future__ import annotations

import os
import socket
import sys
import time

from pegboard.support.version import __version__
from pegboard.thin.address import DaemonAddress, NoFolderError, address_of, addresses
from pegboard.thin.wire import ELSEWHERE, ENDING, LineReader, WireError, line_of, message_of

TYPE_CHECKING = False  # see the package `pegboard`
if TYPE_CHECKING:
    from typing import Final

    from pegboard.thin.wire import Message

OFF: Final = "PEGBOARD_DAEMON"
"""The variable that is 0 where no daemon is to be used or started."""
TOKEN: Final = "PEGBOARD_OPERATOR_TOKEN"  # noqa: S105 - the name of a variable
START_LIMIT: Final = 30.0
"""How long a daemon may take until it listens, in seconds."""
ANSWER_LIMIT: Final = 60.0
"""How long it may take until it answers the first line: it may have to read a configuration, in seconds."""
OPERATOR_LIMIT: Final = 15.0
"""The same where it is asked for its state, or to end."""
_TRIES: Final = 5
"""How often a daemon may end in the moment in which it is connected to."""
_BUSY: Final = 0.01
READY: Final = b"+"
"""What a daemon writes to the client that started it once it listens; else it writes why it does not."""
_LONGEST_REASON: Final = 4096


NOT_RUNNING: Final = "not_running"


class NoDaemonError(Exception):
    """There is no daemon to be used; ``code`` is why it refuses a client, empty where none answered as one."""

    def __init__(self, reason: str, code: str = "") -> None:
        super().__init__(reason)
        self.code = code


class DaemonConnection:
    """A connection that the daemon has answered: ``socket`` is blocking, ``lines`` are what it sends from now on."""

    def __init__(self, connection: socket.socket, lines: LineReader, answer: Message) -> None:
        self.socket = connection
        self.lines = lines
        self.answer = answer


def switched_off() -> bool:
    """Return whether the environment says that no daemon is to be used, or this system has no Unix sockets."""
    return os.environ.get(OFF, "").strip().lower() in ("0", "off", "no", "false") or not hasattr(socket, "AF_UNIX")


def connect(kind: str, request: Message | None = None, *, starts: bool = True) -> DaemonConnection:
    """Return a connection to the daemon that serves a request, started where it does not run.

    Args:
        kind: what is asked for: see ``wire``.
        request: what it needs besides the folder and the environment of this process.
        starts: whether a daemon is started; without, ``NoDaemonError`` where none runs.

    Raises:
        NoDaemonError: none can be used; it says why.
    """
    env = {name: value for name, value in os.environ.items() if name != TOKEN}
    message: Message = {"kind": kind, "version": __version__, "cwd": _folder(), "env": env, **(request or {})}
    own = ""
    for _ in range(_TRIES):
        try:
            address = address_of(own)
            return _ask_daemon(address, message, starts=starts)
        except NoFolderError as error:
            raise NoDaemonError(f"there is no folder for its socket: {error}") from error
        except _DaemonEndedError:
            continue
        except NoDaemonError as error:
            if error.code == ENDING:
                time.sleep(_BUSY)
                continue
            if error.code != ELSEWHERE:
                raise
            own = str(error)
        except (OSError, WireError) as error:
            raise NoDaemonError(str(error) or type(error).__name__) from error
    raise NoDaemonError("it ended several times during the connection")


def ask_all(kind: str) -> tuple[list[Message], list[str]]:
    """Return what every daemon of this user answers that runs, and why others do not answer.

    They are those of all configurations and versions: each has a socket in the one folder.

    Args:
        kind: ``status`` or ``stop``.

    Raises:
        NoDaemonError: there is no folder for a daemon.
    """
    try:
        places = addresses()
    except NoFolderError as error:
        raise NoDaemonError(f"there is no folder for its socket: {error}") from error
    hello: Message = {"kind": kind, "version": __version__, "cwd": "/", "env": {}}
    answers: list[Message] = []
    problems: list[str] = []
    for address in places:
        try:
            connection = _ask_daemon(address, hello, starts=False, limit=OPERATOR_LIMIT)
            with connection.socket:
                connection.socket.settimeout(OPERATOR_LIMIT)
                answers.append(message_of(connection.lines.read()))
        except _DaemonEndedError:
            continue
        except NoDaemonError as error:
            if error.code not in (NOT_RUNNING, ENDING):
                problems.append(f"{address.socket}: {error}")
        except (OSError, WireError) as error:
            problems.append(f"{address.socket}: {str(error) or type(error).__name__}")
    return answers, problems


class _DaemonEndedError(Exception):
    """The daemon ended before it answered."""


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError as error:  # it was removed
        raise NoDaemonError(f"the current folder cannot be read: {error.strerror}") from error


def _ask_daemon(
    address: DaemonAddress, message: Message, *, starts: bool, limit: float = ANSWER_LIMIT
) -> DaemonConnection:
    connection = _open(address)
    if connection is None:
        if not starts:
            raise NoDaemonError("none runs", NOT_RUNNING)
        connection = _start_daemon(address)
    try:
        return _say_hello(connection, address, message, limit)
    except BaseException:
        connection.close()
        raise


def _say_hello(connection: socket.socket, address: DaemonAddress, message: Message, limit: float) -> DaemonConnection:
    """Say hello, and return the connection once it is answered by who has the secret."""
    shown, expected = _secret(address)
    lines = LineReader(connection)
    connection.settimeout(limit)
    try:
        connection.sendall(line_of({**message, "secret": shown}))
        line = lines.read()
    except TimeoutError:
        raise NoDaemonError(f"it does not answer within {limit:.0f} s") from None
    except (BrokenPipeError, ConnectionResetError):
        raise _DaemonEndedError from None
    if not line:
        raise _DaemonEndedError
    answer = message_of(line)
    if answer.get("secret") != expected:
        raise NoDaemonError("what listens there does not know the secret of this user's daemon")
    if answer.get("ok") is not True:
        raise NoDaemonError(str(answer.get("reason", "")), code=str(answer.get("code", "")))
    connection.settimeout(None)
    return DaemonConnection(connection, lines, answer)


def _secret(address: DaemonAddress) -> tuple[str, str]:
    """Return what this client shows, and what the daemon has to answer."""
    try:
        with open(address.secret, "rb") as file:  # noqa: PTH123 - pathlib takes long
            shown, expected, *_ = [*file.read().decode(errors="replace").split(), "", ""]
    except FileNotFoundError:
        raise _DaemonEndedError from None
    if not shown or not expected:
        raise NoDaemonError("its secret is damaged")
    return shown, expected


def _open(address: DaemonAddress) -> socket.socket | None:
    """Return a connection to what listens, or None where nothing does; raises ``OSError``, ``NoDaemonError``."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(ANSWER_LIMIT)
        limit = time.monotonic() + ANSWER_LIMIT
        while True:
            try:
                connection.connect(address.socket)
                break
            except BlockingIOError:  # as many wait as the system lets wait
                if time.monotonic() > limit:
                    raise NoDaemonError("too many clients are waiting for it") from None
                time.sleep(_BUSY)
        uid = peer_uid(connection)
        if uid is not None and uid != os.getuid():
            raise NoDaemonError(f"its socket belongs to another user ({uid})")
    except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError):
        connection.close()
        return None
    except BaseException:
        connection.close()
        raise
    return connection


def peer_uid(connection: socket.socket) -> int | None:
    """Return the user of the process at the other end; None where this system does not say."""
    if hasattr(socket, "SO_PEERCRED"):
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)  # the process, its user, its group
    elif sys.platform == "darwin":  # LOCAL_PEERCRED of SOL_LOCAL: a version, then the user
        found = connection.getsockopt(0, 1, 76)
    else:
        return None
    return int.from_bytes(found[4:8], sys.byteorder)


def peer_pid(connection: socket.socket) -> int | None:
    """Return the number of the process at the other end; None where this system does not say."""
    if hasattr(socket, "SO_PEERCRED"):
        return int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 4), sys.byteorder)
    if sys.platform == "darwin":  # LOCAL_PEERPID of SOL_LOCAL
        return connection.getsockopt(0, 2)
    return None


def _start_daemon(address: DaemonAddress) -> socket.socket:
    """Start the daemon, unless another client does so now; return a connection once it listens."""
    import fcntl

    number = os.open(address.start_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        found = _open(address)
        if found is None:
            _start(address)
            found = _open(address)
    finally:
        os.close(number)
    if found is None:
        raise _DaemonEndedError
    return found


def _start(address: DaemonAddress) -> None:
    """Start the daemon without anything of this process but its environment, and wait until it listens."""
    import select
    import subprocess  # it takes as long as the rest here, and few clients start a daemon

    ready, told = os.pipe()
    command = [sys.executable, "-P", "-m", "pegboard", "daemon", "run", "--ready", str(told), "--of", __version__]
    command += ["--own", address.own] if address.own else []
    env = {name: value for name, value in os.environ.items() if name != TOKEN}
    try:
        log = os.open(address.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(told,),
                cwd=None if address.own else _home_folder(),
                env=env,
                start_new_session=True,
            )
        finally:
            os.close(log)
            os.close(told)
        process.wait()  # it goes on as a child of no process of this user
        if not select.select([ready], [], [], START_LIMIT)[0]:
            raise NoDaemonError(f"it did not start within {START_LIMIT:.0f} s; its log is {address.log}")
        said = os.read(ready, _LONGEST_REASON)
        if said != READY:
            reason = said.decode(errors="replace") or f"it ended while it started; its log is {address.log}"
            raise NoDaemonError(reason)
    finally:
        os.close(ready)


def _home_folder() -> str:
    home = os.path.expanduser("~")  # noqa: PTH111
    return home if os.path.isdir(home) else "/"  # noqa: PTH112
