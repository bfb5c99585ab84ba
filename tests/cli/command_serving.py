"""`pegboard serve` in a process of its own."""

import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from acceptance import accept_found
from sdk_servers import pegboard_command

DEADLINE = 30


class Serving:
    """A running gateway and the lines that it writes to standard error."""

    def __init__(self, *arguments: str, cold: bool = False, accepted: bool = True) -> None:
        command = [sys.executable, "-m", "pegboard"] if cold else pegboard_command()
        if accepted:
            accept_found()
        self.process = subprocess.Popen(
            [*command, "serve", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.seen = ""
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.put(line)

    def until(self, text: str) -> str:
        """Return everything written so far, once a text is in it."""
        end = time.monotonic() + DEADLINE
        while text not in self.seen:
            self.seen += self._lines.get(timeout=max(end - time.monotonic(), 0.01))
        return self.seen


@contextmanager
def serving(*arguments: str, cold: bool = False, accepted: bool = True) -> Iterator[Serving]:
    """Serve until the end of the context; ``cold`` as a user starts it, else forked off what has imported it.

    ``accepted`` is whether this user has accepted what is found in the folder.
    """
    running = Serving(*arguments, cold=cold, accepted=accepted)
    try:
        yield running
    finally:
        running.process.terminate()
        running.process.communicate(timeout=DEADLINE)


def url_in(text: str) -> str:
    return text.partition("Pegboard serves MCP at ")[2].split()[0]
