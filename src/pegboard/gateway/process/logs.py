"""What the SDK and the HTTP server log: to standard error, without secrets and control characters (X5)."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.core.model.masking import Masker

_LOGGERS = ("mcp", "uvicorn", "asyncio")


class _Plain(logging.Formatter):
    def __init__(self, masker: Masker) -> None:
        super().__init__("pegboard: %(message)s")
        self._masker = masker

    def format(self, record: logging.LogRecord) -> str:
        """Return one line; of an exception what it says and where it was raised."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            text = f"{text} ({type(error).__name__}: {error}{_place(error)})"
        return printable(f"pegboard: {self._masker.text(text)}")


def _place(error: BaseException) -> str:
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
    handler.setFormatter(_Plain(masker))
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(logging.ERROR)
        logger.propagate = False
