"""Standard output, kept free of what plugins print while a command writes its own results there."""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TextIO

IN_PLUGIN: contextvars.ContextVar[bool] = contextvars.ContextVar("pegboard_in_plugin", default=False)
"""Whether what this task or thread prints is printed by a plugin."""


class _OutputRouter:
    """A standard output that passes what plugins print on to standard error."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write to the stream that is meant here."""
        return (sys.stderr if IN_PLUGIN.get() else self._stream).write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr if IN_PLUGIN.get() else self._stream, name)


@contextmanager
def reserved_stdout() -> Generator[None]:
    """Divert what plugins print to standard error while this lasts, and give ``sys.stdout`` back.

    For a process whose standard output carries results; a library leaves its host's streams alone.
    """
    before = sys.stdout
    router: Any = _OutputRouter(before)
    sys.stdout = router
    try:
        yield
    finally:
        if sys.stdout is router:
            sys.stdout = before


@contextmanager
def plugin_output() -> Generator[None]:
    """Mark what this task or thread prints meanwhile as printed by a plugin."""
    token = IN_PLUGIN.set(True)
    try:
        yield
    finally:
        IN_PLUGIN.reset(token)
