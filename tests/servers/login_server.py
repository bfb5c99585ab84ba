"""The authorization server of `tests/authorization` with its MCP server, as a process; it prints its port first."""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from authorization.options import Options
from authorization.site import listening, server_of

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--options", type=json.loads, default={}, help="some fields of `Options`, as JSON")
asked = parser.parse_args()

listener = listening(asked.port)
print(listener.getsockname()[1], flush=True)
server_of(listener, Options(**asked.options)).run(sockets=[listener])
