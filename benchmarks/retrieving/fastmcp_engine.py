"""FastMCP's own index over its own text of a tool, in an environment of its own."""

from __future__ import annotations

import json
from subprocess import PIPE, Popen
from typing import IO, Any

from benchmarks.gateways.installing import environment
from benchmarks.retrieving.sets import Query
from pegboard.core.surface.searchable import Searchable

RELEASE = "fastmcp==4.1.2"
PROGRAM = """
import json, sys
from types import SimpleNamespace
from fastmcp.server.transforms.search.bm25 import _BM25Index
from fastmcp.server.transforms.search.base import _extract_searchable_text
index = _BM25Index()
tools = [SimpleNamespace(**tool) for tool in json.loads(sys.stdin.readline())]
index.build([_extract_searchable_text(tool) for tool in tools])
print("[]", flush=True)
for line in sys.stdin:
    print(json.dumps(index.query(json.loads(line), 10)), flush=True)
"""


class FastMCP:
    """The index in a process; its times have the pipe between in them, some 0.1 ms."""

    slow = True

    def build(self, among: Searchable) -> None:
        python = environment("fastmcp", RELEASE) / "python"
        self.names = [tool.wire for tool in among.tools]
        self.process = Popen([python, "-c", PROGRAM], stdin=PIPE, stdout=PIPE, text=True)
        self._asked(
            [
                {"name": tool.wire, "description": tool.description, "parameters": dict(tool.input_schema)}
                for tool in among.tools
            ]
        )

    def search(self, query: Query) -> list[str]:
        return [self.names[row] for row in self._asked(query.text)]

    def close(self) -> None:
        _pipe(self.process.stdin).close()
        self.process.wait(10)

    def _asked(self, message: Any) -> list[int]:
        to, back = _pipe(self.process.stdin), _pipe(self.process.stdout)
        to.write(json.dumps(message) + "\n")
        to.flush()
        return json.loads(back.readline())


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
