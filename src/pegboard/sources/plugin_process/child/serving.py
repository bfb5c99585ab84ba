"""The protocol towards Pegboard: MCP over the pipes that were the standard input and output, one message per line."""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import os
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, cast

from pegboard.sources.plugin_process.child.answering import PluginAnswers
from pegboard.sources.plugin_process.child.reading import LineReaders
from pegboard.support.version import __version__

_ENDING: Final = 1.5
"""How long what the plugin constructed has to close, in seconds: whoever stops the process waits little longer."""
_PIPE: Final = 1 << 20
_NO_METHOD: Final = -32601

Message = dict[str, Any]


def serve(given: Mapping[str, Any]) -> None:
    """Answer until the input ends, then close what was constructed and leave, whatever threads still run."""
    source, sink = _own_pipes()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        asyncio.run(_serve_plugin(given, source, sink))
    finally:
        with suppress(BaseException):  # whatever plugins do at the end
            cast("Any", atexit)._run_exitfuncs()  # noqa: SLF001 - a thread that hangs must not keep the process
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)


def _own_pipes() -> tuple[int, int]:
    """Return the pipes to Pegboard, which neither the plugin nor what it starts can read or write by mistake.

    What a plugin prints goes where its errors go; its input is empty.
    """
    source, sink = os.dup(0), os.dup(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    if sys.platform == "linux":  # what is larger than a pipe waits for its reader, piece by piece
        import fcntl

        with suppress(OSError):
            fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, _PIPE)
    for stream in (sys.stdout, sys.stderr):
        cast("Any", stream).reconfigure(line_buffering=True, errors="backslashreplace")
    return source, sink


async def _serve_plugin(given: Mapping[str, Any], source: int, sink: int) -> None:
    serving = _RequestsUnderWay(PluginAnswers(given), sink, asyncio.get_running_loop())
    LineReaders(source, serving.take, serving.end).begin()
    await serving.over.wait()
    with suppress(TimeoutError):
        async with asyncio.timeout(_ENDING):
            await serving.answering.aclose()


class _RequestsUnderWay:
    """The requests under way; ``over`` is set once no more can come."""

    def __init__(self, answering: PluginAnswers, sink: int, loop: asyncio.AbstractEventLoop) -> None:
        self.answering = answering
        self.over = asyncio.Event()
        self._sink = sink
        self._loop = loop
        self._writing = threading.Lock()
        self._tasks: dict[object, asyncio.Task[None]] = {}

    def end(self) -> None:
        """Note that no more can come; called by any thread."""
        with suppress(RuntimeError):  # the loop is closed: it has ended already
            self._loop.call_soon_threadsafe(self.over.set)

    def take(self, line: bytes) -> None:
        """Take a message, in a thread that may block: a call that blocks runs there, all else in the loop."""
        message: Message = json.loads(line)
        if message.get("method") == "tools/call":
            result = self.answering.result_at_once(message["params"], self._loop)
            if result is not None:
                self._write_answer(message["id"], result)
                return
        self._loop.call_soon_threadsafe(self._begin_message, message)

    def _begin_message(self, message: Message) -> None:
        number: object = message.get("id")
        params: Message = message.get("params") or {}
        match message.get("method"):
            case "tools/call":
                task = self._loop.create_task(self._call(number, params))
                self._tasks[number] = task
                task.add_done_callback(lambda _: self._tasks.pop(number, None))
            case "initialize":
                about = {"name": "pegboard-plugin", "version": __version__}
                version = params.get("protocolVersion")
                self._write_answer(
                    number, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
                )
            case "notifications/cancelled":
                task = self._tasks.get(params.get("requestId"))
                if task is not None:
                    task.cancel()
            case "ping":
                self._write_answer(number, {})
            case method if number is not None:
                error = {"code": _NO_METHOD, "message": f"There is no method {method!r} here."}
                self._write({"jsonrpc": "2.0", "id": number, "error": error})
            case _:
                pass

    async def _call(self, number: object, params: Message) -> None:
        self._write_answer(number, await self.answering.answer(params))

    def _write_answer(self, number: object, result: Message) -> None:
        self._write({"jsonrpc": "2.0", "id": number, "result": result})

    def _write(self, message: Message) -> None:
        data = memoryview(as_line(message))
        try:
            with self._writing:
                while data:
                    data = data[os.write(self._sink, data) :]
        except OSError:  # no one reads any longer
            self.end()


def as_line(message: Message) -> bytes:
    """Return a message as a line; one with lone surrogates has its result as text in a text."""
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":"), default=str).encode() + b"\n"
    except UnicodeEncodeError:
        from pegboard.sources.plugin_process.forms import ANSWERED

        whole = json.dumps(message["result"], default=str)
        result: Message = {"content": [], "_meta": {ANSWERED: {"json": whole}}}
        return json.dumps({**message, "result": result}).encode() + b"\n"
