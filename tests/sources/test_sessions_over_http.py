"""Sessions over HTTP that a server no longer knows, however it says so, and refusals of a single tool."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from subprocess import PIPE, Popen
from typing import Any

import pytest
from mcp_helpers import SERVERS, call, state, text

from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import Tool
from pegboard.errors import UpstreamError
from pegboard.ports import CallContext
from pegboard.sources.mcp import McpSource
from sdk_servers import program_command

pytestmark = pytest.mark.cover(1)

Start = Callable[..., ServerSpec]


def error(words: str, code: int = -32600) -> str:
    found = {"jsonrpc": "2.0", "id": "$ID", "error": {"code": code, "message": words}}
    return json.dumps(found).replace('"$ID"', "$ID")


REFUSED: list[dict[str, Any]] = [
    {"status": 404, "body": "<html>nothing here</html>", "type": "text/html"},
    {"status": 410, "body": ""},
    {"status": 400, "body": error("Bad Request: No valid session ID provided"), "type": "application/json"},
    {"status": 400, "body": "Invalid session ID"},
    {"status": 503, "body": "Unknown session: s0"},
    {"status": 500, "body": error("The MCP session s0 does not exist"), "type": "application/json"},
]
ANSWERED = [error("Session not found", -32001), error("Error: unknown Mcp-Session-Id", -32000)]


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:

        def run(unknown: dict[str, Any]) -> ServerSpec:
            options = ("http", "--handshake", "--unknown", json.dumps(unknown))
            command = program_command(str(SERVERS / "fast_server.py"), *options)
            process = stack.enter_context(Popen(command, stdout=PIPE, text=True))
            stack.callback(process.kill)
            assert process.stdout is not None
            return ServerSpec(
                name="web", url=f"http://127.0.0.1:{int(process.stdout.readline())}/mcp", transport="http"
            )

        yield run


@pytest.mark.both_paths
@pytest.mark.parametrize("unknown", REFUSED, ids=lambda said: f"{said['status']} {said['body'][:40]}")
async def test_a_request_in_a_session_that_is_over_is_made_again_in_a_new_one(
    source: McpSource, start: Start, unknown: dict[str, Any]
) -> None:
    """G8: nothing has run: whatever the tool does, the call is made again."""
    spec = start(unknown)
    await call(source, spec, "forget")
    assert text(await call(source, spec, "echo", text="again")) == "again"


@pytest.mark.both_paths
@pytest.mark.parametrize("body", ANSWERED)
async def test_an_answer_that_the_session_is_over_opens_a_new_one(source: McpSource, start: Start, body: str) -> None:
    """G8: it may have run, so that only what reads is made again; the next call is in a new session."""
    spec = start({"status": 200, "type": "application/json", "body": body})
    await call(source, spec, "forget")
    with pytest.raises(UpstreamError, match=r"(?i)session.* It may have run"):
        await call(source, spec, "echo", text="once")
    assert text(await call(source, spec, "echo", text="again")) == "again"
    await call(source, spec, "forget")
    reading = Tool(plugin="web", name="echo", annotations={"readOnlyHint": True})
    assert text(await source.call(spec, {}, reading, {"text": "read"}, CallContext(scope="shared"))) == "read"


@pytest.mark.both_paths
async def test_an_error_about_a_session_of_the_tools_own_ends_no_connection(source: McpSource, start: Start) -> None:
    """G7: such as that of a browser."""
    spec = start(REFUSED[0])
    with pytest.raises(UpstreamError, match="refused 'raw': Browser session not found"):
        await call(source, spec, "raw", body=error("Browser session not found"))
    assert source.states()[0]["state"] == "up"
    assert source.starts(spec, "shared")[0] == 1


@pytest.mark.both_paths
async def test_a_tool_that_is_forbidden_is_refused_alone(source: McpSource, start: Start) -> None:
    """G8: with what was said; the server is not taken for down."""
    spec = start(REFUSED[0])
    with pytest.raises(UpstreamError, match="refused 'raw' with HTTP 403: only for the finance team"):
        await call(source, spec, "raw", status=403, type="text/plain", body="only for the finance team")
    assert state(source, "web")["state"] == "up"
    assert state(source, "web")["last_error"] == ""
    assert text(await call(source, spec, "echo", text="on")) == "on"
