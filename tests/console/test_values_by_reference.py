"""G13, X5: a value that a server was started with is in nothing that Pegboard writes, whatever the server does."""

import html
import json
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from pegboard import Pegboard
from pegboard.gateway.process.setup import quiet

from .addresses import ADDRESSES, STREAMS, Visitor, visitor
from .programs import serving

ROOT = "root-root-root-root-root"
FIRST, SECOND = "f1rst-s3cret/of a?b", "s3cond_s3cret_value"
LEAKING = """
import json, os, sys
value = os.environ["TOKEN"]
print("starting with", value, file=sys.stderr, flush=True)
tools = [
    {"name": name, "description": "Uses a token.", "inputSchema": {"type": "object"},
     "annotations": {"readOnlyHint": True}}
    for name in ("look", "fail", "crash", f"look_{len(value)}")
]
for line in sys.stdin:
    request = json.loads(line)
    name = (request.get("params") or {}).get("name")
    answer = {"result": {}}
    if request["method"] == "initialize":
        about = {"name": "leaking", "version": "1", "title": "With a token"}
        answer = {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about,
                             "instructions": "Use it."}}
    elif request["method"] == "tools/list":
        answer = {"result": {"tools": tools}}
    elif name == "crash":
        print("Traceback: refused", value, sys.argv[1], file=sys.stderr, flush=True)
        os._exit(7)
    elif name == "fail":
        answer = {"error": {"code": -32000, "message": f"no entry with {value}"}}
    elif request["method"] == "tools/call":
        answer = {"result": {"content": [{"type": "text", "text": "seen"}]}}
    elif request["method"] == "server/discover":
        answer = {"error": {"code": -32601, "message": "Method not found"}}
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "leaking.py").write_text(LEAKING)
    (tmp_path / "token.txt").write_text(FIRST)
    document = {
        "store": "sqlite:///state.db",
        "servers": {
            "up": {
                "command": sys.executable,
                "args": [str(tmp_path / "leaking.py"), "--key=${file:token.txt}"],
                "env": {"TOKEN": "${file:token.txt}"},
            },
            "gone": {"command": "x", "env": {"TOKEN": "${cmd:sh -c 'cat token.txt >&2; exit 5'}"}},
        },
        "agents": {"default": {"tools": ["up"], "discoverable": ["gone"]}},
        "tokens": {"root": {"token": ROOT, "agents": ["*"], "console": True}},
    }
    path = tmp_path / "pegboard.yaml"
    path.write_text(json.dumps(document))
    return path


@asynccontextmanager
async def operated(config: Path) -> AsyncIterator[tuple[Pegboard, Visitor]]:
    async with Pegboard.open(config) as board, serving(board) as (app, access), visitor(app, access, ROOT) as operator:
        yield board, operator


def forms() -> list[str]:
    return [form for one in (FIRST, SECOND) for form in (one, quote(one, safe=""), json.dumps(one)[1:-1])]


async def used(board: Pegboard) -> list[str]:
    """Call everything in every way that goes wrong; return all that was answered."""
    await board.ready("up", "gone")
    session = await board.session(session_id="s", principal="ada")
    surface = await session.surface()
    answers = [await session.call(f"up__{name}", {}) for name in ("look", "fail", "crash", "crash", "look")]
    answers = [one._replace(server_error=None) for one in answers]  # the server's own, which passes unchanged
    search = await session.search("uses")
    outcome = await session.load("gone")
    explained = await session.explain("up__look")
    return [repr(one) for one in (surface, *answers, search, outcome, explained)]


async def test_g13_x5_a_value_by_reference_stands_in_no_page_answer_event_log_or_byte_of_the_store(
    config: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    written: dict[str, str] = {}
    with caplog.at_level(logging.DEBUG, logger="pegboard"):
        async with operated(config) as (board, operator):
            quiet(board.services.masker)
            events: list[str] = []
            for name in ("called", "loaded", "denied", "configuration_changed"):
                board.on(name, lambda *given: events.append(repr(given)))
            written["answers"] = "\n".join(await used(board))
            assert "***" in written["answers"], "what the server says of its value is masked"
            (config.parent / "token.txt").write_text(SECOND)
            await operator.send(next(one for one in ADDRESSES if one.path == "/console/access"))
            await board._upstreams.restart(board.services.loader.specs["up"])
            written["answers of the second"] = "\n".join(await used(board))
            for address in ADDRESSES:
                if address.method == "GET" and address.path not in STREAMS:
                    values = {"name": "up", "tool": "up__look", "server": "up", "agent": "default", "session": "s"}
                    kept = {k: v for k, v in values.items() if k in address.given or k in address.segments}
                    answer = await operator.send(address, principal="ada", **kept)
                    assert answer.status_code < 500, address
                    written[address.path] = html.unescape(answer.text).replace("<wbr>", "")
            written["events"] = "\n".join(events)
            written["metrics"] = json.dumps(board.metrics(), default=repr)
    written["log"] = caplog.text
    written["streams"] = "".join(capfd.readouterr())
    for file in config.parent.iterdir():
        if file.name.startswith("state.db"):
            written[file.name] = file.read_bytes().decode("latin-1")
    assert "state.db" in written
    assert "***" in written["/api/servers/{name}"], "the last lines of the server are there, masked"
    assert "${cmd:sh -c 'cat token.txt >&2; exit 5'} ended with code 5" in written["/api/servers"]
    leaks = {(place, form) for place, text in written.items() for form in forms() if form in text}
    assert leaks == set()
