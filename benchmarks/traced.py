"""Run the command with its functions and SQL statements traced: ``python -m benchmarks.traced FD serve --stdio …``.

Who started it asks over the descriptor: ``begin``, then ``end``, which is answered with two pairs of traces: until the
answer to the request was written, and all.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from multiprocessing.connection import Connection

from benchmarks.tracing import Trace, Tracer, traced


class AnswerWatch:
    """What was traced up to the moment at which the answer to a request was written."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._write = os.write
        self._found: Trace | None = None

    def write(self, number: int, data: bytes) -> int:
        """Write as ``os.write`` does, and look for an answer in what is written."""
        if b'"result"' in data and any("result" in json.loads(line) for line in bytes(data).splitlines()):
            self._found = self._tracer.so_far()
        return self._write(number, data)

    def serve(self, control: Connection) -> None:
        """Answer who started this process, until that one is gone."""
        while True:
            try:
                asked = control.recv()
            except EOFError:
                return
            if asked == "begin":
                self._found = None
                self._tracer.begin()
                control.send(None)
            else:
                control.send((self._found, self._tracer.end()))


def main() -> int:
    with traced() as tracer:
        watch = AnswerWatch(tracer)
        os.write = watch.write
        threading.Thread(target=watch.serve, args=(Connection(int(sys.argv[1])),), daemon=True).start()
        from pegboard.cli import main as command

        return command(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
