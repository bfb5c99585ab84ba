"""Limits of what a server may send: 32 MiB a message, inflated, over every transport and both ways of a call."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
from mcp_helpers import SERVERS, call, gateway, peak, plain, requests_of, state, text

from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError, UpstreamError
from pegboard.sources.mcp import McpSource

MOST = 200  # MiB of memory
FOUR = 4 * 1024 * 1024
THIRTY_TWO = 8 * FOUR
CLIENT = Path(__file__).parent / "flood_client.py"
HINT = "Raise `limits: {message: ...}` in `servers: flood` if its messages have to be larger."


@contextmanager
def web(transport: str = "http", **fields: Any) -> Iterator[ServerSpec]:
    with Popen([sys.executable, str(SERVERS / "flood_server.py"), transport], stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        try:
            given: dict[str, Any] = {"transport": transport, **fields}
            yield ServerSpec(name="flood", url=url, **given)
        finally:
            process.kill()


def stdio(**fields: Any) -> ServerSpec:
    args = (str(SERVERS / "flood_server.py"), "stdio")
    return ServerSpec(name="flood", command=sys.executable, args=args, **fields)


Outcomes = dict[str, dict[str, list[str]]]


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    """Return how calls ended that were made in a process of their own, which stayed small."""
    with web(message_limit=FOUR) as http, web("sse", message_limit=FOUR) as sse:
        jobs = {
            **{f"web {way}": (way == "fast", http, (*BODIES, *EVENTS, "echo")) for way in WAYS},
            **{f"stdio {way}": (way == "fast", stdio(message_limit=FOUR), (*LINES, "echo")) for way in WAYS},
            "sse": (False, sse, ("event",)),
            "head": (True, replace(http, message_limit=THIRTY_TWO), ("head",)),
        }
        given = {name: (fast, _as_json(spec), tools) for name, (fast, spec, tools) in jobs.items()}
        command = [sys.executable, str(CLIENT), json.dumps(given)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert report["peak"] < MOST
    assert {meanwhile for ended in report["ended"].values() for *_, meanwhile in ended.values()} == {"meanwhile"}
    return {job: {tool: each[:2] for tool, each in ended.items()} for job, ended in report["ended"].items()}


def _as_json(spec: ServerSpec) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in ("name", "command", "args", "url", "transport", "message_limit")}


def too_large(tool: str, limit: str = "4MiB") -> list[str]:
    return [f"Server 'flood' failed at '{tool}': it sent a message of more than {limit}.", HINT]


BODIES = ("gzip", "deflate", "raw_deflate", "refused", "refused_text", "chunked", "unframed")
EVENTS = ("event", "data", "event_gzip")
LINES = ("line", "named_line")
WAYS = ("fast", "sdk")


@pytest.mark.parametrize("way", WAYS)
def test_a_body_or_an_event_over_the_limit_fails_its_call_and_costs_no_memory(outcomes: Outcomes, way: str) -> None:
    """G8: 300 MB of zeros in gzip or deflate, a body without end, with and without its length, also of an error.

    So does an event: one line, or many, without end; 300 MB in gzip.
    """
    expected = {**{tool: too_large(tool) for tool in (*BODIES, *EVENTS)}, "echo": ["result", "None"]}
    assert outcomes[f"web {way}"] == expected


@pytest.mark.parametrize("way", WAYS)
def test_a_line_over_the_limit_fails_its_call_and_costs_no_memory(outcomes: Outcomes, way: str) -> None:
    """G8: what is printed without end ends the process; the next call starts it again."""
    assert outcomes[f"stdio {way}"] == {**{tool: too_large(tool) for tool in LINES}, "echo": ["result", "None"]}


def test_an_event_of_the_older_transport_over_the_limit_fails_its_call_and_costs_no_memory(outcomes: Outcomes) -> None:
    assert outcomes["sse"] == {"event": too_large("event")}


def test_a_head_without_end_fails_its_call_and_costs_no_memory(outcomes: Outcomes) -> None:
    [(message, _)] = outcomes["head"].values()
    assert message.startswith("Server 'flood' went away during the call of 'head': ")


def test_the_gateway_answers_others_meanwhile_and_stays_small(tmp_path: Path) -> None:
    """G8: the error reaches the client of that call."""
    with web() as spec:
        servers = {"flood": {"url": spec.url}, "plain": {"command": sys.executable, "args": list(plain().args)}}
        floods = [(f"flood__{tool}", {}) for tool in ("gzip", "chunked", "event")]
        with gateway(tmp_path, servers, fast_path=True, cold=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(requests_of(*floods, ("plain__echo", {"text": "meanwhile"})))
            process.stdin.flush()
            answers: dict[int, str] = {}
            while len(answers) < 5:
                line = json.loads(process.stdout.readline())
                if "id" in line:
                    answers[line["id"]] = json.dumps(line)
            most = peak(process.pid)
            process.stdin.close()
    assert most < MOST
    assert "meanwhile" in answers[4]
    for number, (tool, _) in enumerate(floods, start=1):
        assert f"failed at '{tool.removeprefix('flood__')}': it sent a message of more than 32MiB." in answers[number]
        assert "limits: {message: ...}" in answers[number]


LIMIT = 100_000


async def test_the_limit_is_that_of_one_message_not_of_a_stream(source: McpSource) -> None:
    """A stream of many small events, or of comments, is not cut."""
    with web(message_limit=LIMIT) as spec:
        for tool in ("events", "comments"):
            assert text(await call(source, spec, tool, size=20 * LIMIT)) == "done"


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_message_within_the_limit_passes_and_one_over_it_does_not(source: McpSource, transport: str) -> None:
    with web(transport, message_limit=LIMIT) as spec:
        assert len(text(await call(source, spec, "large", size=LIMIT - 200))) == LIMIT - 200
        with pytest.raises(UpstreamError, match=r"failed at 'large': it sent a message of more than 100000B\. Raise"):
            await call(source, spec, "large", size=LIMIT)
        assert text(await call(source, spec, "echo", text="on")) == "on"


async def test_a_long_line_fails_only_the_call_that_it_answers(source: McpSource) -> None:
    """G8: the process goes on, and so do its other calls; other messages over the limit are dropped."""
    spec = stdio(message_limit=LIMIT)
    calls = [call(source, spec, "echo", text=str(number)) for number in range(3)]
    long = call(source, spec, "named_long_line", size=3 * LIMIT)
    *answers, failed = await asyncio.gather(*calls, long, return_exceptions=True)
    assert [text(answer) for answer in answers if not isinstance(answer, BaseException)] == ["0", "1", "2"]
    assert isinstance(failed, UpstreamError)
    assert [failed.message, failed.hint] == too_large("named_long_line", "100000B")
    before = state(source, "flood")["pid"]
    assert text(await call(source, spec, "notification", size=3 * LIMIT)) == "done"
    assert state(source, "flood")["pid"] == before


async def test_a_server_that_is_over_the_limit_from_the_start_says_so(source: McpSource) -> None:
    with web() as spec:
        for small in (replace(spec, message_limit=50), stdio(message_limit=50)):
            with pytest.raises(ToolUnavailableError, match="it sent a message of more than 50B") as caught:
                await source.describe(small, {})
            assert caught.value.hint == HINT
