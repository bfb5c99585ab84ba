"""Sources of several boards share the process of an equal server: each has its own answers, and is asked its own."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp_helpers import state, text, until

from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import EMPTY, CallResult, JsonObject, Tool
from pegboard.ports import CallContext
from pegboard.sources.mcp import McpSource
from pegboard.sources.mcp.transports.shared_processes import SharedProcesses
from sdk_servers import sdk_command

SAMPLE = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
LINES = [{"level": "info", "data": number} for number in range(20)]


class Somebody:
    """Be the client of a call: answer with a name, and keep what is said."""

    listener = None
    wanted_task = None
    declares: JsonObject = EMPTY
    level = "debug"

    def __init__(self, name: str) -> None:
        self.name = name
        self.heard: list[object] = []
        self.answers = asyncio.Event()
        self.answers.set()

    async def ask(self, method: str, params: JsonObject, *, about: str = "") -> JsonObject:
        await self.answers.wait()
        return {"role": "assistant", "content": {"type": "text", "text": self.name}, "model": self.name}

    async def tell(self, method: str, params: JsonObject) -> None:
        self.heard.append(params)


@pytest.fixture(params=[(), ("--handshake",)], ids=["2026", "handshake"])
def spec(request: pytest.FixtureRequest) -> ServerSpec:
    return named(*request.param)


@pytest.fixture
async def sources() -> AsyncIterator[tuple[McpSource, McpSource]]:
    shared = SharedProcesses()
    one, two = McpSource(shared=shared), McpSource(shared=shared, fast_path=False)
    yield one, two
    await one.aclose()
    await two.aclose()


def named(*options: str) -> ServerSpec:
    command = sdk_command("question_server.py", "stdio", *options)
    return ServerSpec(name="asking", command=command[0], args=tuple(command[1:]))


async def ask(source: McpSource, spec: ServerSpec, client: Any, tool: str = "ask", /, **arguments: Any) -> CallResult:
    return await source.call(spec, {}, Tool(plugin=spec.name, name=tool), arguments, CallContext(client=client))


def the_process(*sources: McpSource) -> int:
    (pid,) = {state(source, "asking")["pid"] for source in sources}
    return pid


async def test_each_call_asks_and_tells_its_own_client(sources: tuple[McpSource, McpSource], spec: ServerSpec) -> None:
    """G9, G7, G12: whichever board is the second, around the SDK and through it."""
    clients = [Somebody("ada"), Somebody("bob")]
    for source, client in zip(sources, clients, strict=True):
        (answer,) = json.loads(text(await ask(source, spec, client, requests=[SAMPLE])))
        assert answer["model"] == client.name
        await ask(source, spec, client, "log", messages=LINES)
        assert client.heard == LINES
    assert the_process(*sources)


async def test_a_server_that_asks_during_calls_of_several_boards_gets_one_call_at_a_time(
    sources: tuple[McpSource, McpSource],
) -> None:
    """G9: what it asked is refused; from then on the calls of both boards wait for each other."""
    spec, clients = named("--handshake"), [Somebody("ada"), Somebody("bob")]
    held = asyncio.create_task(ask(sources[0], spec, clients[0], "hold"))
    while text(await ask(sources[1], spec, clients[1], "held")) != "1":
        pass
    (refused,) = json.loads(text(await ask(sources[1], spec, clients[1], requests=[SAMPLE])))
    assert "one call at a time" in refused["message"]
    freeing = asyncio.create_task(ask(sources[1], spec, clients[1], "free"))
    await until(lambda: all(state(source, "asking")["one_at_a_time"] for source in sources))
    held.cancel()
    await freeing
    calls = [ask(source, spec, client, requests=[SAMPLE]) for source, client in zip(sources, clients, strict=True)]
    answers = [json.loads(text(answer)) for answer in await asyncio.gather(*calls)]
    assert [answer["model"] for (answer,) in answers] == ["ada", "bob"]


async def test_a_board_that_goes_leaves_the_server_to_the_others(
    sources: tuple[McpSource, McpSource], spec: ServerSpec
) -> None:
    """G12: also the one that started it; a restart by an operator is one for all."""
    client = Somebody("ada")
    for source in sources:
        await ask(source, spec, client, "held")
    before = the_process(*sources)
    await sources[1].restart(spec)
    await until(lambda: state(sources[1], "asking")["state"] == "up")
    await ask(sources[0], spec, client, "held")
    after = the_process(*sources)
    assert after != before
    await sources[0].aclose()
    await ask(sources[1], spec, client, "held")
    assert the_process(sources[1]) == after


async def test_two_names_of_a_server_that_does_not_start_both_say_why() -> None:
    """G8, G12: and a later start is tried again."""
    shared = SharedProcesses()
    sources = [McpSource(shared=shared), McpSource(shared=shared)]
    spec = ServerSpec(name="asking", command=sys.executable, args=("-c", "raise SystemExit('no token')"))
    outcomes = await asyncio.gather(*(source.describe(spec, {}) for source in sources), return_exceptions=True)
    assert all("no token" in str(outcome) for outcome in outcomes)
    for source in sources:
        await source.aclose()
