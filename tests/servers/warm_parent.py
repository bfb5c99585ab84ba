"""Import the SDK and the command once, then fork a server for everyone who connects: `warm_parent.py SOCKET`.

Importing them costs a second of processor time, and the tests start hundreds of servers. A forked server is the same
program with the same modules: a script by its path, or Pegboard's command as `-m pegboard`. It ends when its own input
ends; the servers that run then go on.
"""
# ruff: noqa: F401 - what is imported here and not used is what servers import

import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path

import mcp
import mcp.server.lowlevel
import mcp.server.runner
import mcp.server.stdio
import mcp.server.subscriptions
import mcp.shared.message
import mcp_types.version
import starlette.responses
import uvicorn.lifespan.on
import uvicorn.protocols.http.auto
import uvicorn.protocols.websockets.auto
import uvicorn.server

import pegboard.board
import pegboard.config
import pegboard.gateway
import pegboard.sources.mcp
import pegboard.stores
from pegboard import tokens

VOCABULARY = tokens.vocabulary()
"""Held, for anyone who counts tokens need not read it then."""


def run(argv: list[str], cwd: str, env: dict[str, str]) -> int:
    """Run a script as Python would; returns its exit code."""
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115 - to its end
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.path[1:1] = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    try:
        if argv[0] == "-m":
            sys.argv, sys.path[0] = argv[1:], cwd
            runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv, sys.path[0] = argv, str(Path(argv[0]).parent)
            runpy.run_path(argv[0], run_name="__main__")
    except SystemExit as left:
        if left.code is None or isinstance(left.code, int):
            return left.code or 0
        print(left.code, file=sys.stderr)
        return 1
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def forward(starter: socket.socket, server: int) -> None:
    """Send the server each signal that its starter got; kill it when the starter is gone."""
    with suppress(ProcessLookupError):
        while number := starter.recv(1):
            os.kill(server, number[0])
        os.kill(server, signal.SIGKILL)


def serve(starter: socket.socket) -> None:
    """Run one server to its end and report how it ended."""
    head, streams, _, _ = socket.recv_fds(starter, 4, 3)
    size = int.from_bytes(head, "big")
    start = json.loads(starter.recv(size, socket.MSG_WAITALL))
    server = os.fork()
    if server == 0:
        starter.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        code = run(**start)
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)
    for stream in (0, 1, 2, *streams):
        os.close(stream)
    threading.Thread(target=forward, args=(starter, server), daemon=True).start()
    code = os.waitstatus_to_exitcode(os.waitpid(server, 0)[1])
    with suppress(OSError):
        starter.sendall(code.to_bytes(4, "big", signed=True))


def import_command() -> None:
    """Import what a gateway or another command comes to import, but for what it looks for in other installations."""
    for package in (pegboard.gateway, pegboard.sources.mcp, pegboard.stores, pegboard.config, pegboard.board):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    for name in ("pegboard.cli.serving", "pegboard.cli.command_line", "typer._adapters", "rich.console", "rich.table"):
        importlib.import_module(name)


def main() -> None:
    import_command()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen(128)
    gc.freeze()
    print("ready", flush=True)
    while listener in select.select([listener, sys.stdin], (), ())[0]:
        starter, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            serve(starter)
            os._exit(0)
        starter.close()


main()
