"""Skills, tasks and extensions of others: what a server has of them reaches its clients, and theirs reaches it (G7)."""

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import httpx2
import pytest

from .clients import ADA, BOB, ERAS, HERE, MODERN, gateway, modern_request, serve
from .resource_helpers import Message, Wire, bare, configured, entry, wire
from .test_differential import hello, ready

PROGRAM = str(HERE.parent / "servers" / "extension_server.py")
SKILLS, TASKS, OWN = "io.modelcontextprotocol/skills", "io.modelcontextprotocol/tasks", "com.example/notes"
REFUNDS = "skill://acme/billing/refunds"
RELATED = "io.modelcontextprotocol/related-task"
LOGIN = "io.modelcontextprotocol/oauth-client-credentials"
DIRECTORY = "resources/directory/read"
DECLARES: dict[str, Message] = {
    MODERN: {"extensions": {TASKS: {}, "com.example/theirs": {"level": 3}}},
    "legacy": {"extensions": {"com.example/theirs": {"level": 3}}},
}
"""What the clients of these tests can do besides, by era."""
TOLD = {**DECLARES, "legacy": {**DECLARES["legacy"], "tasks": {"requests": {"elicitation": {"create": {}}}}}}


def server(era: str, *options: str) -> list[str]:
    return [sys.executable, PROGRAM, *([] if era == MODERN else ["--handshake"]), *options]


@asynccontextmanager
async def through(
    folder: Path, era: str, servers: dict[str, list[str]], declares: Message | None = None
) -> AsyncIterator[Wire]:
    """Serve these servers over stdio, to a client that comes once everything is known of them."""
    declares = DECLARES[era] if declares is None else declares
    config = configured(folder, {name: entry(command) for name, command in servers.items()})
    async with wire(serve(config, "--stdio"), era) as first:
        for name in servers:
            await first.ask("tools/call", name="load_tools", arguments={"names": [name]})
    async with wire(serve(config, "--stdio"), era, declares) as speaker:
        yield speaker


async def described(speaker: Wire, era: str) -> Message:
    """Return the capabilities of the other side."""
    return (await speaker.ask("server/discover"))["result"]["capabilities"] if era == MODERN else speaker.capabilities


@pytest.mark.parametrize("era", ERAS)
async def test_skills_are_equal_through_and_direct(tmp_path: Path, era: str) -> None:
    """G7: the list, one by its address, one that no list has, directories, files, and what there is not."""

    async def everything(speaker: Wire) -> dict[str, Any]:
        said: dict[str, Any] = {"list": await speaker.all("skills/list", "skills")}
        for uri in (f"{REFUNDS}/SKILL.md", "skill://docs/hidden/SKILL.md", "skill://nowhere/SKILL.md"):
            said[f"get {uri}"] = bare(await speaker.ask("skills/get", uri=uri))
        for uri in (REFUNDS, f"{REFUNDS}/examples", f"{REFUNDS}/SKILL.md"):
            said[f"read {uri}"] = bare(await speaker.ask(DIRECTORY, uri=uri))
        said["file"] = bare(await speaker.ask("resources/read", uri=f"{REFUNDS}/examples/email.md"))
        extensions = (await described(speaker, era))["extensions"]
        return {**said, "declared": {name: extensions[name] for name in (SKILLS, OWN)}}

    async with wire(server(era), era) as direct:
        expected = await everything(direct)
    async with through(tmp_path, era, {"docs": server(era)}) as gateway:
        assert await everything(gateway) == expected
    assert len(expected["list"]) == 3
    assert expected["get skill://nowhere/SKILL.md"]["code"] == -32602


@pytest.mark.parametrize("era", ERAS)
async def test_kept_skills_are_listed_without_their_server(tmp_path: Path, era: str) -> None:
    """G8: as resources are; a file of one starts it, and what it lists then counts and is kept."""
    program, log = tmp_path / "server.py", tmp_path / "log"
    program.write_text(
        f"import pathlib, runpy, sys\n"
        f"pathlib.Path({str(log)!r}).open('a').write('started\\n')\n"
        f"runpy.run_path({PROGRAM!r}, run_name='__main__')\n"
    )
    command = [sys.executable, str(program), *([] if era == MODERN else ["--handshake"])]
    async with through(tmp_path, era, {"docs": command}) as first:
        listed = await first.all("skills/list", "skills")
        await first.all("resources/list", "resources")
    log.unlink()
    async with wire(serve(tmp_path / "pegboard.yaml", "--stdio"), era, DECLARES[era]) as second:
        assert await second.all("skills/list", "skills") == listed
        assert not log.exists()
        await second.ask("resources/read", uri=f"{REFUNDS}/examples/email.md")
        assert log.read_text() == "started\n"
        assert await second.all("skills/list", "skills") == listed
    assert len(listed) == 3


async def text_of(speaker: Wire, name: str, **params: Any) -> str:
    """Return the text that a tool gives."""
    answer = await speaker.ask("tools/call", name=name, arguments={}, **params)
    return answer["result"]["content"][0]["text"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_task_is_equal_through_and_direct(tmp_path: Path, era: str) -> None:
    """G7: begun by a call, looked at until it is done, cancelled, listed, and what is none; only its id is another."""

    async def everything(speaker: Wire, prefix: str = "") -> dict[str, Any]:
        said, wanted = dict[str, Any](), {} if era == MODERN else {"task": {"ttl": 60000}}
        for _ in range(2):
            begun = (await speaker.ask("tools/call", name=f"{prefix}report", arguments={}, **wanted))["result"]
            begun.pop("_meta", None)
            number = begun["taskId"] if era == MODERN else begun["task"]["taskId"]
            said[f"begun {len(said)}"] = begun
        said["polls"] = [bare(await speaker.ask("tasks/get", taskId=number)) for _ in range(2)]
        said["cancelled"] = bare(await speaker.ask("tasks/cancel", taskId=number))
        said["unknown"] = bare(await speaker.ask("tasks/get", taskId="nothing"))
        if era != MODERN:
            said["list"] = bare(await speaker.ask("tasks/list"))
            said["result"] = bare(await speaker.ask("tasks/result", taskId=number))
        return json.loads(json.dumps(said).replace('"pegboard://docs/', '"'))

    async with wire(server(era), era, DECLARES[era]) as direct:
        expected = await everything(direct)
    async with through(tmp_path, era, {"docs": server(era)}) as gateway:
        assert await everything(gateway, "docs__") == expected
    assert [poll["status"] for poll in expected["polls"]] == ["working", "completed"]


async def test_a_task_that_wants_input_gets_it_in_either_era(tmp_path: Path) -> None:
    """G7: in the newer era by an update, in the older by a question while its result is waited for."""
    async with through(tmp_path, MODERN, {"docs": server(MODERN)}) as modern:
        number = (await modern.ask("tools/call", name="docs__hello_world", arguments={}))["result"]["taskId"]
        asked = (await modern.ask("tasks/get", taskId=number))["result"]
        assert asked["status"] == "input_required"
        given = {"name": {"action": "accept", "content": {"name": "Luca"}}}
        assert "error" not in await modern.ask("tasks/update", taskId=number, inputResponses=given)
        done = (await modern.ask("tasks/get", taskId=number))["result"]
    assert done["result"]["content"][0]["text"] == "Hello, Luca!"

    folder = tmp_path / "handshake"
    folder.mkdir()
    declares = {"elicitation": {}}
    async with through(folder, "legacy", {"docs": server("legacy")}, declares=declares) as legacy:
        legacy.answers["elicitation/create"] = {"action": "accept", "content": {"name": "Luca"}}
        begun = await legacy.ask("tools/call", name="docs__hello_world", arguments={}, task={"ttl": 60000})
        number = begun["result"]["task"]["taskId"]
        done = (await legacy.ask("tasks/result", taskId=number))["result"]
        assert done["content"][0]["text"] == "Hello, Luca!"
        assert done["_meta"][RELATED]["taskId"] == number
        (question,) = [note for note in legacy.notes if note["method"] == "elicitation/create"]
        assert question["params"]["_meta"][RELATED]["taskId"] == number
        (status,) = [note for note in legacy.notes if note["method"] == "notifications/tasks/status"]
        assert (status["params"]["taskId"], status["params"]["status"]) == (number, "completed")


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_is_told_what_its_client_can_do(tmp_path: Path, era: str) -> None:
    """G7, G9: in the newer era by each request, in the older when it begins; what concerns a login is not passed on."""
    declares = {**TOLD[era], "extensions": {**TOLD[era]["extensions"], LOGIN: {}}}
    async with through(tmp_path, era, {"docs": server(era)}, declares=declares) as gateway:
        told = json.loads(await text_of(gateway, "docs__declared"))
    assert {name: told.get(name) for name in TOLD[era]} == TOLD[era]
    assert "elicitation" in told


async def test_a_server_may_make_a_task_of_what_it_asks_its_only_client(tmp_path: Path) -> None:
    """G7: the client's tasks are its own; the server looks at them and fetches what they come to."""
    declares = {**TOLD["legacy"], "elicitation": {}}
    async with through(tmp_path, "legacy", {"docs": server("legacy")}, declares=declares) as gateway:
        gateway.answers = {
            "elicitation/create": {"task": {"taskId": "mine", "status": "working"}},
            "tasks/get": {"taskId": "mine", "status": "completed"},
            "tasks/result": {"action": "accept", "content": {"name": "Ada"}},
        }
        assert await text_of(gateway, "docs__ask_slowly") == "completed: Ada"
    assert [note["params"].get("taskId") for note in gateway.notes if "id" in note] == [None, "mine", "mine"]


@pytest.mark.parametrize("era", ERAS)
async def test_of_two_servers_each_has_its_own_skills_and_tasks(tmp_path: Path, era: str) -> None:
    """G7, G10: equal addresses and equal ids of tasks are told apart, and lead where they come from."""
    servers = {"docs": server(era), "more": server(era, "--name", "more")}
    async with through(tmp_path, era, servers, declares=DECLARES[era]) as gateway:
        listed = [skill["uri"] for skill in await gateway.all("skills/list", "skills")]
        assert len(listed) == len(set(listed)) == 6
        own = f"pegboard://more/{REFUNDS}"
        assert {f"{REFUNDS}/SKILL.md", f"{own}/SKILL.md", "skill://docs/own/SKILL.md"} <= set(listed)
        found = (await gateway.ask("skills/get", uri=f"{own}/SKILL.md"))["result"]["skill"]
        assert all(file["uri"].startswith(f"{own}/") for file in [found, *found["resources"]])
        children = (await gateway.ask(DIRECTORY, uri=own))["result"]["resources"]
        assert {child["uri"] for child in children} == {f"{own}/SKILL.md", f"{own}/examples"}
        text = await gateway.ask("resources/read", uri=f"{own}/examples/email.md")
        assert text["result"]["contents"][0]["text"] == "Dear customer"
        hidden = await gateway.ask("skills/get", uri="skill://more/hidden/SKILL.md")
        assert hidden["result"]["skill"]["frontmatter"]["description"] == "Not listed"

        wanted, ids = {} if era == MODERN else {"task": {}}, list[str]()
        for name in servers:
            begun = (await gateway.ask("tools/call", name=f"{name}__report", arguments={}, **wanted))["result"]
            ids.append(begun["taskId"] if era == MODERN else begun["task"]["taskId"])
        assert len(set(ids)) == 2
        for number, name in zip(ids, servers, strict=True):
            await gateway.ask("tasks/get", taskId=number)
            done = (await gateway.ask("tasks/get", taskId=number))["result"]
            assert done["taskId"] == number
            if era == MODERN:
                assert done["result"]["content"][0]["text"] == f"report of {name}"

        assert (await gateway.ask("notes/count"))["error"]["code"] == -32602
        other = await gateway.ask("notes/find", uri="pegboard://more/note://a")
        assert bare(other) == {"uri": "pegboard://more/note://a", "of": "more"}
        assert bare(await gateway.ask("notes/about", name="more__report")) == {"tool": "report", "of": "more"}


@pytest.mark.parametrize("era", ERAS)
async def test_an_extension_that_nobody_declares_has_no_methods(tmp_path: Path, era: str) -> None:
    """G7: a client hears what it hears of any method that there is not, and no capability of it."""
    async with through(tmp_path, era, {"plain": server(era, "--plain")}) as gateway:
        assert {"extensions", "tasks"}.isdisjoint(await described(gateway, era))
        for method in ("skills/list", "tasks/list", DIRECTORY, "notes/count"):
            assert (await gateway.ask(method, uri="skill://a/SKILL.md"))["error"]["code"] == -32601


async def test_directories_are_read_only_of_servers_that_say_so(tmp_path: Path) -> None:
    """G7: what one server can do with its skills is not asked of another."""
    servers = {"docs": server(MODERN, "--no-directories"), "more": server(MODERN, "--name", "more")}
    async with through(tmp_path, MODERN, servers) as gateway:
        assert (await described(gateway, MODERN))["extensions"][SKILLS] == {"directoryRead": True}
        (child,) = (await gateway.ask(DIRECTORY, uri="skill://more/own"))["result"]["resources"]
        assert child["uri"] == "skill://more/own/SKILL.md"


@pytest.mark.parametrize("era", ERAS)
async def test_who_may_not_see_a_server_sees_nothing_of_its_extensions(tmp_path: Path, era: str) -> None:
    """G7, P9: neither its declaration nor its skills, and its tasks are none."""
    agents = {"ada": {"discoverable": ["docs"]}, "bob": {"discoverable": ["other"]}}
    tokens = {"ada": {"token": ADA, "agents": ["ada"]}, "bob": {"token": BOB, "agents": ["bob"]}}
    servers = {"docs": entry(server(era)), "other": entry(server(era, "--plain", "--name", "other"))}
    config = configured(tmp_path, servers, agents=agents, tokens=tokens)
    async with gateway(config) as running, httpx2.AsyncClient(timeout=60) as http:
        ada, bob = [Over(http, running.url, era, token, agent) for token, agent in ((ADA, "ada"), (BOB, "bob"))]
        await ada.open()
        await bob.open()
        await ada.ask("tools/call", name="load_tools", arguments={"names": ["docs"]})
        assert len((await ada.ask("skills/list"))["result"]["skills"]) == 3
        number = await ada.begin_task("docs__report")
        assert (await ada.ask("tasks/get", taskId=number))["result"]["status"] == "working"
        for method, params in (("skills/list", {}), ("tasks/get", {"taskId": number})):
            assert (await bob.ask(method, **params))["error"]["code"] in (-32601, -32602)
        read = await bob.ask("resources/read", uri="skill://docs/own/SKILL.md")
        assert "error" in read


@pytest.mark.parametrize("era", ERAS)
async def test_two_users_of_one_connection_have_their_own_tasks(tmp_path: Path, era: str) -> None:
    """G7, G9: the server knows the tasks of both; neither sees, ends or guesses the other's."""
    tokens = {"ada": {"token": ADA, "agents": ["*"]}, "bob": {"token": BOB, "agents": ["*"]}}
    config = configured(tmp_path, {"docs": entry(server(era), shared=True)}, tokens=tokens)
    async with gateway(config) as running, httpx2.AsyncClient(timeout=60) as http:
        ada, bob = [Over(http, running.url, era, token) for token in (ADA, BOB)]
        ids: list[str] = []
        for person in (ada, bob):
            await person.open()
            await person.ask("tools/call", name="load_tools", arguments={"names": ["docs"]})
            ids.append(await person.begin_task("docs__report"))
        assert (await ada.ask("tasks/get", taskId=ids[0]))["result"]["status"] == "working"
        guessed = [ids[1], ids[1].partition("#")[0], ids[0].replace("/1", "/2"), "2"]
        for number in guessed:
            for method in ("tasks/get", "tasks/cancel"):
                assert (await ada.ask(method, taskId=number))["error"]["code"] == -32602
        if era != MODERN:
            listed = (await ada.ask("tasks/list"))["result"]["tasks"]
            assert [task["taskId"] for task in listed] == ids[:1]
        assert (await bob.ask("tasks/get", taskId=ids[1]))["result"]["status"] == "working"


@pytest.mark.parametrize("era", ERAS)
async def test_the_id_of_a_task_opens_no_task_that_another_began_after_a_restart(tmp_path: Path, era: str) -> None:
    """G7, G9: a server that has started again counts from one, and the ids of before are still known to clients."""
    tokens = {"ada": {"token": ADA, "agents": ["*"]}, "bob": {"token": BOB, "agents": ["*"]}}
    config = configured(tmp_path, {"docs": entry(server(era), shared=True)}, tokens=tokens)
    ids: list[str] = []
    for token in (BOB, ADA):
        async with gateway(config) as running, httpx2.AsyncClient(timeout=60) as http:
            person, bob = Over(http, running.url, era, token), Over(http, running.url, era, BOB)
            for one in (person, bob):
                await one.open()
                await one.ask("tools/call", name="load_tools", arguments={"names": ["docs"]})
            ids.append(await person.begin_task("docs__report"))
            assert (await person.ask("tasks/get", taskId=ids[-1]))["result"]["status"] == "working"
            if token == ADA:
                assert ids[0].partition("#")[0] == ids[1].partition("#")[0]
                for method in ("tasks/get", "tasks/cancel"):
                    assert (await bob.ask(method, taskId=ids[0]))["error"]["code"] == -32602


class Remote(BaseHTTPRequestHandler):
    """A server of the handshake era over HTTP, which outlives the gateway; each call of its tool is a task."""

    tasks: ClassVar[dict[str, Message]] = {}

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        params = message.get("params", {})
        match message.get("method"):
            case "initialize":
                can = {"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}
                about = {"serverInfo": {"name": "far", "version": "1"}, "capabilities": can}
                result: Message = {"protocolVersion": "2025-11-25", **about}
            case "tools/list":
                tool = {"name": "report", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}
                result = {"tools": [tool]}
            case "tools/call":
                number = f"t-{len(self.tasks) + 1}"
                since = "2025-11-25T10:30:00Z"
                state = {"taskId": number, "status": "working", "createdAt": since, "lastUpdatedAt": since, "ttl": None}
                result = {"task": self.tasks.setdefault(number, state)}
            case "tasks/get" if params["taskId"] in self.tasks:
                result = self.tasks[params["taskId"]]
            case "tasks/list":
                result = {"tasks": list(self.tasks.values())}
            case _:
                self._answer(202 if "id" not in message else 400, b"")
                return
        self._answer(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())

    def do_GET(self) -> None:
        self._answer(405, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        """Write nothing."""


async def test_a_task_of_a_far_server_is_its_users_over_a_restart(tmp_path: Path) -> None:
    """G7, G9: by its id, which no one else can use."""
    tokens = {"ada": {"token": ADA, "agents": ["*"]}, "bob": {"token": BOB, "agents": ["*"]}}
    with ThreadingHTTPServer(("127.0.0.1", 0), Remote) as far:
        thread = threading.Thread(target=far.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            url = f"http://127.0.0.1:{far.server_port}/mcp"
            config = configured(tmp_path, {"far": {"url": url, "shared": True}}, tokens=tokens)
            number = ""
            for _ in range(2):
                async with gateway(config) as running, httpx2.AsyncClient(timeout=60) as http:
                    ada, bob = [Over(http, running.url, "legacy", token) for token in (ADA, BOB)]
                    for one in (ada, bob):
                        await one.open()
                        await one.ask("tools/call", name="load_tools", arguments={"names": ["far"]})
                    number = number or await ada.begin_task("far__report")
                    assert (await ada.ask("tasks/get", taskId=number))["result"]["status"] == "working"
                    assert (await bob.ask("tasks/get", taskId=number))["error"]["code"] == -32602
        finally:
            far.shutdown()
            await asyncio.to_thread(thread.join)


class Over:
    """A client over HTTP of one user, in one era."""

    def __init__(self, http: httpx2.AsyncClient, url: str, era: str, token: str, agent: str = "") -> None:
        self._http = http
        self._url = f"{url}/{agent}" if agent else url
        self._era = era
        self._fixed = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
        self._number = 0

    async def open(self) -> None:
        if self._era != MODERN:
            greeting = hello()
            opened = await self._http.post(self._url, json=greeting, headers=self._fixed)
            self._fixed |= {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
            await self._http.post(self._url, json=ready(), headers=self._fixed)

    async def ask(self, method: str, **params: Any) -> Message:
        """Return the whole answer to a request."""
        self._number += 1
        headers = self._fixed
        body: Message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        if self._era == MODERN:
            own = {"io.modelcontextprotocol/clientCapabilities": DECLARES[MODERN]}
            body, more = modern_request(method, self._number, **{**params, "_meta": own})
            headers = {**headers, **more}
            if "taskId" in params or "uri" in params:
                headers["mcp-name"] = params.get("taskId") or params["uri"]
        answer = await self._http.post(self._url, json=body, headers=headers)
        if answer.headers["content-type"].startswith("text/event-stream"):
            said = [json.loads(line[5:]) for line in answer.text.splitlines() if line.startswith("data: {")]
            return next(message for message in said if message.get("id") == self._number)
        return answer.json()

    async def begin_task(self, tool: str) -> str:
        """Return the id of a task that a tool becomes."""
        wanted = {} if self._era == MODERN else {"task": {"ttl": 60000}}
        begun = (await self.ask("tools/call", name=tool, arguments={}, **wanted))["result"]
        return begun["taskId"] if self._era == MODERN else begun["task"]["taskId"]
