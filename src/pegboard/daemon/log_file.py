"""The log of the daemon: a file of bounded size, with one older one beside it."""

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from typing import Final

from pegboard.daemon.boards import BOARD
from pegboard.gateway.process.setup import printable

LARGEST: Final = 1024 * 1024
"""How large the file may be before it becomes the older one, in bytes."""


class _LogFile(logging.Handler):
    """What goes to the file that standard error is, and warnings also to the people who have the board open."""

    def __init__(self, path: str) -> None:
        super().__init__(logging.INFO)
        self._path = path

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, without the secrets of the board that it is about."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            text = f"{text} ({type(error).__name__}: {error})"
        board = BOARD.get()
        if board is not None and board.served is not None:
            text = board.board.services.masker.text(text)
        text = printable(text)
        with suppress(OSError):
            os.write(2, f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n".encode(errors="backslashreplace"))
            self._bound()
        if board is not None and record.levelno >= logging.WARNING:
            board.note(f"pegboard: {text}")

    def _bound(self) -> None:
        if os.fstat(2).st_size < LARGEST:
            return
        os.replace(self._path, f"{self._path}.1")  # noqa: PTH105
        number = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.dup2(number, 1)
        os.dup2(number, 2)
        os.close(number)


def follow(path: str) -> None:
    """Write what the daemon logs to a file, which standard error is already where a client started it."""
    handler = _LogFile(path)
    for name, level in (("pegboard", logging.INFO), ("mcp", logging.ERROR), ("asyncio", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False
