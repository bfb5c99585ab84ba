"""The log of the daemon: a file of bounded size, with one older one beside it."""

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from typing import Final

from pegboard.daemon.open_board import CLIENT, open_board
from pegboard.gateway.process.setup import OF_LIBRARIES, printable

LARGEST: Final = 1024 * 1024
"""How large the file may be before it becomes the older one, in bytes."""


class _LogFile(logging.Handler):
    """What goes to the file that standard error is; warnings also go to the client whose task warns, else to all."""

    def __init__(self, path: str) -> None:
        super().__init__(logging.INFO)
        self._path = path

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, without the secrets of the board that it is about."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            text = f"{text} ({type(error).__name__}: {error})"
        board = open_board()
        text = printable(text if board is None else board.mask_text(text))
        with suppress(OSError):
            os.write(2, f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n".encode(errors="backslashreplace"))
            self._rotate_if_large()
        if board is not None and record.levelno >= logging.WARNING:
            board.show(f"pegboard: {text}", CLIENT.get())

    def _rotate_if_large(self) -> None:
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
    for name in ("pegboard", *OF_LIBRARIES):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(logging.INFO if name == "pegboard" else logging.ERROR)
        logger.propagate = False
