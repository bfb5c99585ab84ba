"""Calls that go around the SDK end as those that go through it, in both eras and over both transports."""

import asyncio
import json
import math
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from subprocess import PIPE, Popen
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_helpers import SERVERS, call, state, text, until

from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import CallResult, Tool
from pegboard.errors import PegboardError, UpstreamError
from pegboard.ports import CallContext
from pegboard.sources.mcp import McpSource
from pegboard.sources.mcp.fast.http_answer import EventStream
from pegboard.support.odd_json import depth_of

OURS = 1_000_000_000  # ids from here on are those of calls around the SDK
RESULT = '{"jsonrpc": "2.0", "id": "$ID", "result": {"content": [{"type": "text", "text": "ok"}]}}'


def http(*options: str) -> Iterator[ServerSpec]:
    command = [sys.executable, str(SERVERS / "fast_server.py"), "http", *options]
    with Popen(command, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        yield ServerSpec(name="fast", url=url, transport="http")
        process.kill()


def stdio(*options: str) -> ServerSpec:
    return ServerSpec(name="fast", command=sys.executable, args=(str(SERVERS / "fast_server.py"), "stdio", *options))


@pytest.fixture(params=[(), ("--handshake",)], ids=["2026", "handshake"])
def era(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return request.param


@pytest.fixture
def web(era: tuple[str, ...]) -> Iterator[ServerSpec]:
    yield from http(*era)


@pytest.fixture(params=["stdio 2026", "stdio handshake", "http handshake", "events 2026"])
def spec(request: pytest.FixtureRequest) -> Iterator[ServerSpec]:
    kind, _, name = request.param.partition(" ")
    options = ("--handshake",) if name == "handshake" else ()
    if kind == "stdio":
        yield stdio(*options)
    else:
        yield from http(*options, *(["--sse"] if kind == "events" else []))


@dataclass
class Both:
    """A source whose calls go around the SDK, and one whose calls go through it."""

    around: McpSource
    through: McpSource

    def __iter__(self) -> Iterator[McpSource]:
        return iter((self.around, self.through))


@pytest.fixture
async def both() -> AsyncIterator[Both]:
    both = Both(McpSource(), McpSource(fast_path=False))
    yield both
    for source in both:
        await source.aclose()


@pytest.fixture(params=["around", "through"])
def source(both: Both, request: pytest.FixtureRequest) -> McpSource:
    return getattr(both, request.param)


async def outcome(source: McpSource, spec: ServerSpec, arguments: dict[str, Any]) -> tuple[object, list[object]]:
    """Return all that can be seen of one call of the tool ``raw``."""
    seen: list[object] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        await asyncio.sleep(0)
        seen.append((done, total, message))

    context = CallContext(progress=progress, meta={"trace": "1"})
    try:
        ended: object = await source.call(spec, {}, Tool(plugin="fast", name="raw"), arguments, context)
    except PegboardError as error:
        cause: Any = error.__cause__
        ended = (type(error), str(error), getattr(cause, "code", None), getattr(cause, "data", None))
    return ended, seen


async def wire_id(source: McpSource, spec: ServerSpec) -> int:
    """Return the id under which the last call but this one arrived."""
    return json.loads(text(await call(source, spec, "seen")))["id"]


async def test_calls_go_around_the_sdk_and_all_else_through_it(both: Both, spec: ServerSpec) -> None:
    for source in both:
        assert "echo" in [tool.name for tool in (await source.describe(spec, {})).tools]
        assert text(await call(source, spec, "echo", text="hello")) == "hello"
        assert (await wire_id(source, spec) >= OURS) == (source is both.around)


@pytest.mark.parametrize("era", [()], indirect=True)
def test_nothing_of_the_fast_path_is_imported_where_it_is_off(web: ServerSpec) -> None:
    code = f"""
import asyncio, sys
sys.path.insert(0, {str(SERVERS.parent / "sources")!r})
from mcp_helpers import call, plain, ServerSpec, McpSource

async def main():
    source = McpSource(fast_path=False)
    for spec in (plain(), ServerSpec(name="web", url={web.url!r}, transport="http")):
        await call(source, spec, "echo", text="hello")
    await source.aclose()
    print([name for name in sys.modules if name.startswith("pegboard.sources.mcp.fast") or name == "httptools"])

asyncio.run(main())
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


async def test_a_request_says_the_same_either_way(both: Both, spec: ServerSpec) -> None:
    "The same name, arguments, meta and headers reach the server."
    arguments = {"text": "é\u2028", "none": None, "deep": {"a": [1, 2.5, None, {"b": False}]}}
    requests: list[dict[str, Any]] = []
    for source in both:
        context = CallContext(meta={"trace": "1"})
        await source.call(spec, {}, Tool(plugin="fast", name="echo"), arguments, context)
        requests.append(json.loads(text(await call(source, spec, "seen"))))
    for request in requests:
        del request["id"]
        request.get("headers", {}).pop("mcp-session-id", None)
    assert requests[0] == requests[1]
    assert requests[0]["params"]["arguments"] == arguments


def message(**parts: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": "$ID", **parts})


def result(**parts: object) -> str:
    return message(result={"content": [], **parts})


REPORT = json.dumps(
    {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "$TOKEN", "progress": 1}}
)
ANSWERS = [
    RESULT,
    result(isError=True, structuredContent={"n": 1}, _meta={"a": 1}),
    result(content=[{"type": "hologram", "depth": 3}], **{"x-more": 1}),
    result(content="none"),
    result(content=[1]),
    result(resultType="input_required", inputRequests={}),
    message(result={}),
    message(error={"code": -32050, "message": "not on a Sunday", "data": {"day": 7}}),
    message(error={"code": -32000, "message": "Server error"}),
    message(error={"code": -32602, "message": ""}),
    message(error={"code": "-5", "message": "a code that is text"}),
    message(result={"content": []}, error={"code": 1, "message": "both"}),
    message(result={"content": []}, more=1),
    RESULT.replace('"$ID"', '"\\u0024ID"').replace("\\u0024ID", "$ID "),
    RESULT.replace("ok", "\\ud83d\\ude00 \u2028"),
    message(result={"structuredContent": {"n": 1}}),
    message(result={"content": None, "isError": 1}),
]  # fmt: skip
# The SDK's reader refuses these, as an event of a stream too; by every other way they pass.
ODD = [
    RESULT.replace("ok", "\\ud800 \\\\ud800"),
    RESULT.replace('"ok"', '"ok", "n": ' + "[" * 400 + "]" * 400),
]
# Nothing in these answers the call: it waits until its time is over.
UNANSWERED = ["not json", "[]", "{}"]
# These answer the call and are no messages: it ends at once.
BROKEN = [
    message(result=5),
    message(error={"message": "no code"}),
    message(),
    RESULT.replace('"ok"', "9" * 5000),
    RESULT + "}",
    f"[{RESULT}]",
    f"\ufeff{RESULT}",
]
# These are no JSON by the letter, and pass: Python and JavaScript print them.
NUMBERS = [RESULT.replace('"ok"', f'"ok", "n": {number}') for number in ("NaN", "Infinity", "-Infinity", "1e999")]


async def compare(both: Both, spec: ServerSpec, cases: list[dict[str, Any]]) -> None:
    for case in cases:
        around, through = [await outcome(source, spec, case) for source in both]
        assert around == through, case


async def test_answers_over_stdio_end_alike(both: Both, era: tuple[str, ...]) -> None:
    cases = [{"lines": [answer]} for answer in [*ANSWERS, *ODD]]
    cases += [{"lines": [REPORT, "a stray line", REPORT, RESULT]}, {"lines": [RESULT, RESULT, REPORT]}]
    await compare(both, stdio(*era), cases)
    await compare(both, replace(stdio(*era), timeout=0.3), [{"lines": [answer]} for answer in UNANSWERED])


async def test_an_answer_that_is_no_message_ends_its_call_at_once(source: McpSource, era: tuple[str, ...]) -> None:
    """G8: lone surrogates, numbers and depths that nothing reads, missing members; the server is named."""
    spec = replace(stdio(*era), timeout=60.0)
    async with asyncio.timeout(30):
        for answer in BROKEN:
            ended, _ = await outcome(source, spec, {"lines": ["a stray line", answer]})
            said = "Server 'fast' failed at 'raw': its answer is not a message of the protocol."
            assert ended == (UpstreamError, said, None, None), answer[:200]
        assert text(await call(source, spec, "echo", text="and it goes on")) == "and it goes on"


@pytest.mark.parametrize("depth", [201, 990, 1001, 5000, 100_000])
async def test_a_deep_answer_passes_or_the_reason_is_told(source: McpSource, era: tuple[str, ...], depth: int) -> None:
    """G7: the tool has run; over the limit the reason is the true one, and the connection goes on."""
    spec = replace(stdio(*era), timeout=60.0)
    nested = message(result={"content": [], "structuredContent": "$HERE"}).replace('"$HERE"', "[" * depth + "]" * depth)
    ended, _ = await outcome(source, spec, {"lines": [nested]})
    if depth < 1000:
        assert isinstance(ended, CallResult)
        assert depth_of(ended.structured) == depth
    else:
        assert ended == (
            UpstreamError,
            "Server 'fast' failed at 'raw': its answer is nested too deeply to be read.",
            None,
            None,
        )
    assert text(await call(source, spec, "echo", text="and it goes on")) == "and it goes on"


async def test_a_broken_answer_to_another_call_ends_that_one_only(source: McpSource, era: tuple[str, ...]) -> None:
    """G8: what is blamed is the request that the answer names."""
    spec = replace(stdio(*era), timeout=60.0)
    stranger = RESULT.replace('"$ID"', "77").replace('"ok"', "9" * 5000)
    ended, _ = await outcome(source, spec, {"lines": [stranger, f"log: {BROKEN[0]}", RESULT]})
    assert isinstance(ended, CallResult)
    assert text(ended) == "ok"


async def test_numbers_that_are_none_pass_through(both: Both, era: tuple[str, ...]) -> None:
    """G7: the library has them as floats; the gateway, which writes JSON, has null."""
    await compare(both, stdio(*era), [{"lines": [answer.replace("NaN", "-Infinity")]} for answer in NUMBERS])
    for answer in NUMBERS:
        ended, _ = await outcome(both.around, stdio(*era), {"lines": [answer]})
        assert isinstance(ended, CallResult)
        assert not math.isfinite(ended.content[0]["n"])


async def test_answers_over_http_end_alike(both: Both, web: ServerSpec) -> None:
    bad = [answer for answer in [*UNANSWERED, *BROKEN] if answer != "{}"]
    cases: list[dict[str, Any]] = [{"body": answer} for answer in [*ANSWERS, *ODD, *bad] if "$ID " not in answer]
    cases += [{"body": answer, "headers": {"content-encoding": "gzip"}} for answer in ANSWERS[:2]]
    for status in (202, 301, 400, 401, 403, 404, 418, 500, 503):
        cases += [{"status": status, "body": "said", "type": "text/plain"}, {"status": status, "body": ""}]
        error = {"code": -32602, "message": "no such Session" if status == 400 else "no such tool", "data": [1]}
        cases += [{"status": status, "body": message(error=error).replace('"$ID"', "null")}] if status >= 400 else []
    cases += [{"body": RESULT, "type": kind} for kind in ("text/html", "Application/JSON; charset=utf-8", "")]
    await compare(both, replace(web, timeout=20.0), cases)


def stream(*events: str) -> dict[str, Any]:
    return {"type": "text/event-stream", "body": "".join(events)}


def data(answer: str, *fields: str) -> str:
    return "".join(f"{field}\n" for field in fields) + f"data: {answer}\n\n"


async def test_streams_of_events_end_alike(both: Both, web: ServerSpec) -> None:
    cases = [stream(data(answer)) for answer in ANSWERS]
    cases += [
        stream(data(REPORT), data(REPORT, "event: message"), data(RESULT)),
        stream(": a comment\n\n", data("ignored", "event: other"), data(RESULT, "id: 1")),
        stream(data(RESULT).replace("\n", "\r\n")),
        stream(data(RESULT.replace(", ", ",\ndata: "))),
        stream(data("not json")),
        stream(data(REPORT)),
        stream(""),
        {**stream(data("", "id: e1", "retry: 1"), data(REPORT)), "later": data(REPORT) + data(RESULT)},
        {**stream(data(REPORT, "id: e1", "retry: 1")), "later": data(message(error={"code": 5, "message": "late"}))},
    ]
    await compare(both, web, cases)


async def test_what_else_comes_in_the_stream_of_a_call_reaches_the_session(source: McpSource, web: ServerSpec) -> None:
    "G8: a server may announce changed tools while it answers."
    changed: list[str] = []
    source.on_changed(changed.append)
    announced = '{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}'
    await call(source, web, "raw", **stream(data(announced), data(RESULT)))
    await until(lambda: changed == ["fast"])


async def test_progress_arrives_in_order_and_before_the_result(source: McpSource, spec: ServerSpec) -> None:
    "G7: also where whoever takes it is slow, or fails."
    seen: list[object] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        await asyncio.sleep(0.001)
        seen.append((done, total, message))
        if done == 2:
            raise ValueError("no room")

    done = await source.call(spec, {}, Tool(plugin="fast", name="progress"), {}, CallContext(progress=progress))
    assert (text(done), seen) == ("done", [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")])


async def cancellations(source: McpSource, spec: ServerSpec, count: int) -> None:
    async with asyncio.timeout(10):
        while text(await call(source, spec, "cancelled")) != str(count):
            pass


async def test_a_server_is_told_of_a_call_that_nobody_waits_for(both: Both, era: tuple[str, ...]) -> None:
    "G7: over HTTP."
    messages: list[str] = []
    for spec in http(*era):
        for count, source in enumerate(both, start=1):
            slow = replace(spec, timeout=0.2)
            messages.append(await outcome_of_slow(source, slow))
            await cancellations(source, spec, count)
    assert len(messages) == 2
    assert len(set(messages)) == 1


async def outcome_of_slow(source: McpSource, spec: ServerSpec) -> str:
    with pytest.raises(PegboardError) as caught:
        await call(source, spec, "slow")
    return str(caught.value)


async def test_a_session_that_is_over_is_opened_again(source: McpSource) -> None:
    "G8: nothing ran, so the call is made again."
    for spec in http("--handshake"):
        assert text(await call(source, spec, "forget")) == "done"
        assert text(await call(source, spec, "echo", text="back")) == "back"


@pytest.mark.parametrize("hard", [False, True], ids=["closed", "reset"])
async def test_connections_that_the_server_closed_are_not_used_again(
    source: McpSource, web: ServerSpec, *, hard: bool
) -> None:
    "G8: neither a hang nor an error, with 32 callers at once on a pool full of closed connections."
    for _ in range(3):
        answers = await asyncio.gather(*(call(source, web, "echo", text=str(n)) for n in range(32)))
        assert [text(answer) for answer in answers] == [str(n) for n in range(32)]
        assert text(await call(source, web, "hang_up", hard=hard)) == "done"


@pytest.mark.parametrize("options", [(), ("--sse",)], ids=["json", "events"])
async def test_connections_are_kept_and_used_again(both: Both, options: tuple[str, ...]) -> None:
    for spec in http(*options):
        opened = [int(text(await call(both.around, spec, "opened"))) for _ in range(10)]
        assert opened[1:] == opened[:-1]


async def test_a_connection_that_breaks_costs_one_call(both: Both, web: ServerSpec) -> None:
    cut = {"body": "{", "headers": {"content-length": "50"}, "close": True}
    for source in both:
        with pytest.raises(PegboardError, match="went away during the call of 'raw': the connection broke"):
            await call(source, web, "raw", **cut)
        assert text(await call(source, web, "echo", text="on")) == "on"
        assert state(source, "fast")["state"] == "up"


async def test_a_server_that_keeps_cookies_is_left_to_the_sdk(both: Both) -> None:
    for spec in http("--handshake", "--cookie"):
        assert text(await call(both.around, spec, "echo", text="in")) == "in"
        assert await wire_id(both.around, spec) < OURS


async def test_calls_of_both_kinds_mix_on_one_connection(source: McpSource, spec: ServerSpec) -> None:
    described = [asyncio.create_task(source.describe(spec, {})) for _ in range(2)]
    answers = await asyncio.gather(*(call(source, spec, "echo", text=str(n)) for n in range(50)))
    assert [text(answer) for answer in answers] == [str(n) for n in range(50)]
    assert await described[0] == await described[1]


EVENTS = st.lists(st.sampled_from(["data: a", "data:b", "id: 7", "event: x", ": c", "", "", "data"]), max_size=12)


@given(EVENTS, st.sampled_from(["\n", "\r\n", "\r"]), st.data())
def test_events_do_not_depend_on_how_the_bytes_arrive(lines: list[str], end: str, draw: st.DataObject) -> None:
    whole = "".join(line + end for line in [*lines, "data: last", ""]).encode()
    pieces, rest = [], whole
    while rest:
        size = draw.draw(st.integers(1, len(rest)))
        pieces.append(rest[:size])
        rest = rest[size:]
    one, many = EventStream(10_000), EventStream(10_000)
    assert [*one.feed(whole), *one.feed(b"\n\n")] == [d for piece in [*pieces, b"\n\n"] for d in many.feed(piece)]
    assert one.last_id == many.last_id
