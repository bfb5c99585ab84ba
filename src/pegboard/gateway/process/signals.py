"""The signals that end the gateway."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Generator


@contextlib.contextmanager
def stopping() -> Generator[asyncio.Event, None, None]:
    """Yield an event that SIGINT and SIGTERM set."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    handled: list[signal.Signals] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        # Only the main thread takes signals, and not on every platform.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, stop.set)
            handled.append(number)
    try:
        yield stop
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
