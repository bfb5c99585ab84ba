"""What a server asks and says during a call goes to the client of that call, and to no one else."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
from mcp_helpers import SERVERS, call, state, text, until

from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import EMPTY, CallResult, Frozen, JsonObject, Tool
from pegboard.errors import UpstreamError, UpstreamTimeoutError
from pegboard.ports import AskRefusedError, CallContext
from pegboard.sources.mcp import McpSource
from sdk_servers import sdk_command

pytestmark = pytest.mark.cover(1)

ROOTS = {"method": "roots/list"}
ANSWER = {"roots": [], "x-more": {"kept": None}}
LINES = [{"level": "info", "data": number} for number in range(20)]


class Somebody:
    """Be the client of a call: answer everything alike, and keep what is said."""

    listener = None
    wanted_task = None
    declares: JsonObject = EMPTY

    def __init__(self, *, level: str | None = None, silent: bool = False) -> None:
        self.level = level
        self.silent = silent
        self.asked: list[object] = []
        self.heard: list[object] = []
        self.gave_up = 0

    async def ask(self, method: str, params: JsonObject, *, about: str = "") -> JsonObject:
        self.asked.append((method, params))
        if self.silent:
            try:
                await asyncio.Event().wait()
            finally:
                self.gave_up += 1
        if method == "sampling/createMessage":
            raise AskRefusedError("not today", code=-1, data={"day": 7})
        return ANSWER

    async def tell(self, method: str, params: JsonObject) -> None:
        self.heard.append((method, params))


@pytest.fixture(params=["stdio", "http"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=[(), ("--handshake",)], ids=["2026", "handshake"])
def spec(request: pytest.FixtureRequest, kind: str) -> Iterator[ServerSpec]:
    yield from server(kind, *request.param)


@pytest.fixture
def old(kind: str) -> Iterator[ServerSpec]:
    """A server of the handshake era."""
    yield from server(kind, "--handshake")


@pytest.fixture
def new(kind: str) -> Iterator[ServerSpec]:
    """A server of the 2026-07-28 era."""
    yield from server(kind)


def server(kind: str, *options: str) -> Iterator[ServerSpec]:
    command = sdk_command("question_server.py", kind, *options)
    if kind == "stdio":
        yield ServerSpec(name="asking", command=command[0], args=tuple(command[1:]))
        return
    with Popen(command, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        spec = ServerSpec(name="asking", url=url, transport="http")
        try:
            yield spec
        finally:
            process.kill()


async def ask(
    source: McpSource, spec: ServerSpec, client: Any, tool: str = "ask", /, meta: Any = None, **arguments: Any
) -> CallResult:
    context = CallContext(client=client, meta=meta or {})
    return await source.call(spec, {}, Tool(plugin=spec.name, name=tool), arguments, context)


@pytest.mark.both_paths
async def test_answers_pass_unchanged_with_keys_that_nobody_knows(source: McpSource, spec: ServerSpec) -> None:
    """G7: around the SDK and through it."""
    somebody = Somebody()
    got = json.loads(text(await ask(source, spec, somebody, requests=[ROOTS, ROOTS])))
    assert [answer["roots"] for answer in got] == [[], []]
    assert got[0].get("x-more") in ({"kept": None}, None)  # the models of the server's SDK may drop it
    assert somebody.asked == [("roots/list", {})] * 2


async def test_a_refusal_reaches_the_server_as_it_is(source: McpSource, old: ServerSpec) -> None:
    """G9: code and text."""
    sample = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
    (got,) = json.loads(text(await ask(source, old, Somebody(), requests=[sample])))
    assert got == {"code": -1, "message": "not today"}


async def test_what_is_said_comes_in_order_and_before_the_answer(source: McpSource, spec: ServerSpec) -> None:
    """G7: however many lines there are."""
    somebody = Somebody(level="debug")
    await ask(source, spec, somebody, "log", messages=LINES)
    assert somebody.heard == [("notifications/message", line) for line in LINES]


async def test_a_server_that_asks_without_end_is_stopped(source: McpSource, new: ServerSpec) -> None:
    """G7: in the 2026-07-28 era each round is a call."""
    somebody = Somebody()
    with pytest.raises(UpstreamError, match="it asked for input more than 10 times in one call"):
        await ask(source, new, somebody, requests=[ROOTS], rounds=1000)
    assert len(somebody.asked) == 10


async def test_a_call_whose_client_cannot_be_asked_fails_and_says_why(source: McpSource, new: ServerSpec) -> None:
    """G9: in the 2026-07-28 era a server cannot be told otherwise."""
    with pytest.raises(
        UpstreamError, match="cannot get: The client of this call does not take a request for its roots"
    ):
        await ask(source, new, None, requests=[ROOTS])


async def test_a_question_outside_of_any_call_is_refused(source: McpSource, old: ServerSpec) -> None:
    """G9: there is no one to ask."""
    somebody = Somebody()
    await ask(source, old, somebody, "ask_later", request=ROOTS)

    async def late() -> list[Any]:
        return json.loads(text(await call(source, old, "late")))

    if old.url is None:  # over HTTP such a question has no stream to come on
        found: list[Any] = []
        async with asyncio.timeout(15):
            while not found:
                found = await late()
        # It may come before, during or after the call that looks for it.
        told = (
            "No call is under way",
            "The client of this call does not take",
            "The call that this belongs to is over",
        )
        assert found[0]["message"].startswith(told)
    assert somebody.asked == []


async def test_a_question_that_is_taken_back_is_asked_no_more(source: McpSource, old: ServerSpec) -> None:
    """G7: the client hears of it, and the call goes on."""
    somebody = Somebody(silent=True)
    got = json.loads(text(await ask(source, old, somebody, "ask_briefly", request=ROOTS)))
    assert "timed out" in got["message"].lower()
    await until(lambda: somebody.gave_up == 1)


async def test_a_call_that_is_given_up_asks_no_more(source: McpSource, spec: ServerSpec) -> None:
    """G7: in either era."""
    somebody = Somebody(silent=True)
    going = asyncio.ensure_future(ask(source, spec, somebody, requests=[ROOTS]))
    await until(lambda: bool(somebody.asked))
    going.cancel()
    await asyncio.wait({going})
    await until(lambda: somebody.gave_up == 1)
    assert state(source, "asking")["in_flight"] == 0


async def test_a_source_that_takes_no_questions_says_so(spec: ServerSpec) -> None:
    """G9: what `measure` sees is what a plain client sees."""
    for asks, declared in ((True, ["elicitation", "roots", "sampling"]), (False, [])):
        source = McpSource(asks=asks)
        try:
            assert json.loads(text(await call(source, spec, "declared"))) == declared
        finally:
            await source.aclose()


async def test_a_call_made_once_more_has_its_timeout_after_a_question(source: McpSource, tmp_path: Path) -> None:
    """G7, G8: the clock stands while its client answers, and runs again on the second connection too."""
    args = (str(SERVERS / "failing_server.py"), str(tmp_path / "died"))
    spec = ServerSpec(name="failing", command=sys.executable, args=args, timeout=1.0)
    tool = Tool(plugin="failing", name="ask", annotations=Frozen({"readOnlyHint": True}))
    client = Somebody()
    async with asyncio.timeout(60):
        with pytest.raises(UpstreamTimeoutError):
            await source.call(spec, {}, tool, {}, CallContext(client=client))
    assert len(client.asked) == 1
