"""A value that a command prints. What it prints on standard error is shown nowhere: it may be a password."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from pegboard.core.model.references import Reference
from pegboard.errors import ToolUnavailableError
from pegboard.sources.references.value_text import LONGEST, without_newline

_DYING: Final = 1.0
"""How long a killed process may take to end, in seconds."""


async def output_of(arguments: Sequence[str], reference: Reference, *, hint: str, within: float) -> str:
    """Return what a command prints on standard output, without the newline at its end.

    It runs without a shell and without a terminal, in the folder of the configuration; nothing can be typed into it.

    After ``within`` seconds it is killed, with all that it started.

    Raises:
        ToolUnavailableError: it cannot be started, failed, was too slow, or printed what is no value.
    """
    name = reference.text
    alone = hint or "Run it at a terminal to see why."
    try:
        transport, printed = await asyncio.get_running_loop().subprocess_exec(
            _Printed,
            *arguments,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=DEVNULL,
            cwd=reference.folder or None,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise ToolUnavailableError(
            f"the command '{arguments[0]}' of {name} was not found", hint=hint or "Install it, or correct it."
        ) from None
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "it cannot be started"
        raise ToolUnavailableError(f"the command of {name} cannot be run: {reason}", hint=alone) from None
    try:
        async with asyncio.timeout(within):
            await printed.whole.wait()
    except TimeoutError:
        raise ToolUnavailableError(
            f"the command of {name} did not end within {within:g} s, and was killed",
            hint=f"It cannot ask for input. {alone}",
        ) from None
    finally:
        await _end_process(transport, printed)
    if len(printed.data) > LONGEST:
        raise ToolUnavailableError(
            f"the command of {name} prints more than 64 KiB", hint="Let it print the value alone."
        )
    if code := transport.get_returncode():
        how = f"ended with code {code}" if code > 0 else f"was ended by signal {-code}"
        raise ToolUnavailableError(f"the command of {name} {how}", hint=alone)
    try:
        return without_newline(printed.data.decode())
    except UnicodeDecodeError:
        raise ToolUnavailableError(
            f"the command of {name} prints text that is not UTF-8", hint="Let it print the value as text."
        ) from None


class _Printed(asyncio.SubprocessProtocol):
    """What a process prints: ``whole`` once it has ended and no one can print any longer, or it is too much."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.whole = asyncio.Event()
        self.exited = asyncio.Event()
        self._closed = False

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002
        """Take what it printed, as far as that may be a value."""
        if len(self.data) <= LONGEST:
            self.data += data
        else:
            self.whole.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        """Note that no one can print any longer."""
        self._closed = True
        self._note_if_whole()

    def process_exited(self) -> None:
        """Note that it has ended."""
        self.exited.set()
        self._note_if_whole()

    def _note_if_whole(self) -> None:
        if self._closed and self.exited.is_set():
            self.whole.set()


async def _end_process(transport: asyncio.SubprocessTransport, printed: _Printed) -> None:
    """Kill a process that still runs, with all that it started and did not put apart."""
    try:
        if not printed.exited.is_set():
            with suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(transport.get_pid(), signal.SIGKILL)
                else:
                    transport.kill()
            with suppress(TimeoutError):
                async with asyncio.timeout(_DYING):
                    await printed.exited.wait()
    finally:
        transport.close()
