"""What a server asks outside of any call reaches the client, where there is only one (G7, G9)."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from .clients import HANDSHAKE, MODERN, until, way_in
from .question_helpers import ANSWERS, FORM, ROOTS, SAMPLE, Person, client, configure

SERVER = '''
"""Asks what a file says as soon as the handshake is over, and for the roots whenever they have changed."""

import json, sys
from pathlib import Path

asked, heard = Path(sys.argv[1]), Path(sys.argv[2])


def write(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            roots = message["params"]["capabilities"].get("roots")
            about = {"serverInfo": {"name": "raw", "version": "1"}, "capabilities": {"tools": {}}}
            write({"id": message["id"], "result": {"protocolVersion": "2025-11-25", **about}})
        case "notifications/initialized":
            for number, request in enumerate(json.loads(asked.read_text())):
                write({"id": f"q{number}", **request})
        case "notifications/roots/list_changed":
            write({"id": "changed", "method": "roots/list"})
        case "tools/list":
            tool = {"name": "look", "inputSchema": {"type": "object"}}
            write({"id": message["id"], "result": {"tools": [tool]}})
        case "tools/call":
            write({"id": message["id"], "result": {"content": [{"type": "text", "text": "looked"}]}})
        case None:
            with heard.open("a") as file:
                said = message.get("result", {"error": message.get("error", {}).get("message")})
                print(json.dumps([message["id"], said]), file=file)
        case method if "id" in message:
            write({"id": message["id"], "error": {"code": -32601, "message": f"{method} is not there"}})
'''


class Asking:
    """A server that asks between calls, and what it heard."""

    def __init__(self, folder: Path, *requests: dict[str, Any], **more: Any) -> None:
        program, asked, self._heard = folder / "asking.py", folder / "asked.json", folder / "heard"
        program.write_text(SERVER)
        asked.write_text(json.dumps(requests))
        arguments = [str(program), str(asked), str(self._heard)]
        self.config = configure(folder, {"command": sys.executable, "args": arguments, **more})

    def heard(self) -> dict[str, Any]:
        lines = self._heard.read_text().splitlines() if self._heard.exists() else []
        return dict(json.loads(line) for line in lines if line.endswith("]"))


async def test_every_kind_of_question_between_calls_reaches_the_client_over_stdio(tmp_path: Path) -> None:
    """G7, G9: over stdio there is one client; a form, a message and its roots, asked before any call."""
    server, person = Asking(tmp_path, FORM, SAMPLE, ROOTS), Person()
    async with way_in("stdio", server.config) as target, client(target, HANDSHAKE, person) as connected:
        await connected.list_tools()
        await until(lambda: len(server.heard()) == 3)
        assert (await connected.call_tool("up__look", {})).is_error is False
    assert server.heard() == {"q0": ANSWERS[0], "q1": ANSWERS[2], "q2": ANSWERS[3]}


async def test_a_change_of_roots_is_told_to_the_servers_that_run(tmp_path: Path) -> None:
    """G7: they ask for them again, and get those of now."""
    server, person = Asking(tmp_path, ROOTS), Person()
    async with way_in("stdio", server.config) as target, client(target, HANDSHAKE, person) as connected:
        await connected.list_tools()
        await until(lambda: "q0" in server.heard())
        await connected.session.send_notification(types.RootsListChangedNotification())
        await until(lambda: "changed" in server.heard())
    assert server.heard()["changed"] == ANSWERS[3]


@pytest.mark.parametrize(
    ("era", "can_answer", "why"),
    [(HANDSHAKE, False, "does not take roots"), (MODERN, True, "it can be asked only during calls")],
)
async def test_a_client_that_has_no_answer_refuses_in_words(
    tmp_path: Path, era: str, can_answer: bool, why: str
) -> None:
    """G9: a server that hears so can do without, or say its own error."""
    server = Asking(tmp_path, ROOTS)
    person = Person() if can_answer else None
    async with way_in("stdio", server.config) as target, client(target, era, person) as connected:
        await connected.list_tools()
        await until(lambda: "q0" in server.heard())
    assert why in server.heard()["q0"]["error"]


async def test_over_http_a_server_of_one_client_asks_that_client(tmp_path: Path) -> None:
    """G7, G9: `instance: client`; each server means its own client, also when that says that its roots have changed."""
    server, people = Asking(tmp_path, ROOTS, instance="client"), [Person(), Person()]
    async with (
        way_in("http", server.config) as target,
        connected_person(str(target), people[0]) as one,
        connected_person(str(target), people[1]) as other,
    ):
        await one.call_tool("up__look", {})
        await until(lambda: people[0].asked == ["roots"])
        assert people[1].asked == []
        await other.call_tool("up__look", {})
        await until(lambda: people[1].asked == ["roots"])
        await other.session.send_notification(types.RootsListChangedNotification())
        await until(lambda: "changed" in server.heard())
        assert [person.asked for person in people] == [["roots"], ["roots", "roots"]]
    assert server.heard() == {"q0": ANSWERS[3], "changed": ANSWERS[3]}


@asynccontextmanager
async def connected_person(url: str, person: Person) -> AsyncIterator[Client]:
    """Connect a client over HTTP once its stream is open on which it can be asked between calls."""
    hears = asyncio.Event()

    async def opened(response: httpx2.Response) -> None:
        if response.request.method == "GET":
            hears.set()

    async with httpx2.AsyncClient(timeout=60, event_hooks={"response": [opened]}) as http:
        target = streamable_http_client(url, http_client=http)
        async with client(target, HANDSHAKE, person) as speaker:
            await asyncio.wait_for(hears.wait(), 30)
            yield speaker


async def test_over_http_nobody_is_meant_between_calls(tmp_path: Path) -> None:
    """G9: there may be several clients, and what is one's does not reach another."""
    server, people = Asking(tmp_path, ROOTS), [Person(), Person()]
    async with (
        way_in("http", server.config) as target,
        client(target, HANDSHAKE, people[0]) as one,
        client(target, HANDSHAKE, people[1]) as other,
    ):
        await one.list_tools()
        await other.list_tools()
        await until(lambda: "q0" in server.heard())
    assert "no one to ask" in server.heard()["q0"]["error"]
    assert [person.asked for person in people] == [[], []]
