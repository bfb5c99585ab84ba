"""What serving sets up in its process: signals that end it, files, logs without secrets on standard error (X5)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.core.model.masking import Masker


@contextlib.contextmanager
def stop_on_signals(at_once: asyncio.Event | None = None) -> Generator[asyncio.Event, None, None]:
    """Yield an event that SIGINT and SIGTERM set; SIGINT, and whatever comes second, sets ``at_once``, too."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def request_stop(number: signal.Signals) -> None:
        if at_once is not None and (number == signal.SIGINT or stop.is_set()):
            at_once.set()
        stop.set()

    handled: list[signal.Signals] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        # Only the main thread takes signals, and not on every platform.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, request_stop, number)
            handled.append(number)
    try:
        yield stop
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


MOST_FILES = 16_384
"""How many files a process that serves lets itself open; what it starts may close each of them one by one."""


def allow_more_files() -> None:
    """Let this process open as many files as the system lets it, up to a bound: each connection is one."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


OF_LIBRARIES = ("mcp", "client", "uvicorn", "asyncio")
"""The loggers of which only errors are of use; the SDK's sessions log under the second name."""


class _MaskingFormatter(logging.Formatter):
    def __init__(self, masker: Masker) -> None:
        super().__init__("pegboard: %(message)s")
        self._masker = masker

    def format(self, record: logging.LogRecord) -> str:
        """Return one line; of an exception the first line of what it says, and where it was raised."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            said = str(error).partition("\n")[0]
            text = f"{text} ({type(error).__name__}: {said}{_place_of_error(error)})"
        return printable(f"pegboard: {self._masker.text(text)}")


def _place_of_error(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f", {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace is not None else ""


def printable(text: str) -> str:
    r"""Return the text with every control character written out.

    >>> printable("a\nb")
    'a\\x0ab'
    """
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def quiet(masker: Masker) -> None:
    """Let only errors through, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_MaskingFormatter(masker))
    for name in OF_LIBRARIES:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(logging.ERROR)
        logger.propagate = False
