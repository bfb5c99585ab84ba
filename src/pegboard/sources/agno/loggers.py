"""Agno's loggers: kept from standard output while a source uses Agno, and as they were afterwards."""

from __future__ import annotations

import importlib
import logging
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

_NAMES: Final = ("agno", "agno-team", "agno-workflow")


class _SilencedLoggers:
    """What Agno's own import made of its loggers, put aside while anyone uses them through Pegboard.

    Agno logs to standard output unless someone configured its loggers before; where the host
    imported Agno itself they stay as they are.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._muted = logging.NullHandler()
        self._own = False
        self._before: dict[str, tuple[list[logging.Handler], bool]] = {}

    def begin(self) -> None:
        """Count a user; the first one has the loggers kept quiet, if it is we who bring Agno in."""
        with self._lock:
            self._users += 1
            if self._users == 1 and "agno.utils.log" not in sys.modules:
                importlib.import_module("agno.utils.log")
                self._own = True
            if self._users == 1 and self._own:
                for name in _NAMES:
                    logger = logging.getLogger(name)
                    self._before[name] = (logger.handlers, logger.propagate)
                    logger.handlers = [self._muted]
                    logger.propagate = False

    def end(self) -> None:
        """Count a user less; after the last one the loggers are as Agno made them."""
        with self._lock:
            self._users -= 1
            if not self._users:
                for name, (handlers, propagate) in self._before.items():
                    logger = logging.getLogger(name)
                    if self._muted in logger.handlers:
                        logger.handlers, logger.propagate = handlers, propagate
                self._before.clear()


_silence = _SilencedLoggers()


class QuietLoggers:
    """The part of one source in keeping Agno quiet."""

    def __init__(self) -> None:
        self._began = False
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Import Agno's logging and keep it quiet, if the host has not imported it."""
        with self._lock:
            if not self._began:
                _silence.begin()
                self._began = True

    def close(self) -> None:
        """Give the loggers back as they were, once no one else uses them."""
        if self._began:
            self._began = False
            _silence.end()


@contextmanager
def collected_warnings() -> Generator[list[str]]:
    """Yield a list of the warnings that this thread's use of Agno logs meanwhile, the first line of each."""
    thread = threading.get_ident()
    found: list[str] = []
    handler = logging.Handler(logging.WARNING)

    def take(record: logging.LogRecord) -> None:
        if record.thread == thread:
            found.append(record.getMessage().strip().partition("\n")[0])

    handler.emit = take  # type: ignore[method-assign]
    loggers = [logging.getLogger(name) for name in _NAMES]  # after a team has run, Agno's tools log as the team
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield found
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
