"""A pseudo-terminal at which someone answers what a command asks."""

from __future__ import annotations

import os
import pty
import re
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

PROMPT = re.compile(rb"\[y/N\] |Type '([^']+)' to accept it; anything else keeps it blocked: ")


class Terminal:
    """Someone who gives the same answer to every question; None closes the terminal instead.

    Where a name is to be typed, ``y`` is that name.
    ``name`` is the device. ``asked`` is everything that was printed there, the echo of the answers among it.
    """

    def __init__(self, answer: str | None) -> None:
        self._answer = answer
        self._master, self._slave = pty.openpty()
        self.name = os.ttyname(self._slave)
        self._printed = bytearray()
        self._echoed = threading.Event()
        self._echoed.set()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    @property
    def asked(self) -> str:
        """Return what was printed so far, with the echo of each answer that was given."""
        self._echoed.wait(10)
        return self._printed.decode().replace("\r\n", "\n")

    def controls(self) -> Callable[[], None]:
        """Return what a child runs before its program, in a session of its own: it is its controlling terminal."""

        def take() -> None:
            os.close(os.open(self.name, os.O_RDWR))

        return take

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._slave >= 0:
            os.write(self._slave, b"\x04")
        self._thread.join(10)
        if self._slave >= 0:
            os.close(self._slave)
            os.close(self._master)

    def _follow(self) -> None:
        answered = 0
        while (read := os.read(self._master, 4096)) and not read.endswith(b"\x04"):
            self._printed += read
            if b"\n" in read:
                self._echoed.set()
            questions = list(PROMPT.finditer(self._printed))
            if len(questions) <= answered:
                continue
            answered += 1
            if self._answer is None:
                os.close(self._slave)
                self._slave = -1
                os.close(self._master)
                return
            self._echoed.clear()
            name = questions[answered - 1][1] if self._answer == "y" else None
            os.write(self._master, (bytes(name) if name else self._answer.encode()) + b"\n")
