"""Names that hold a secret of the configuration: shown with marks everywhere, and known by them when handed back."""

import html
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import httpx2
import pytest

from pegboard import Pegboard
from pegboard.console.entry.operator_access import SignIn

from .addresses import ADDRESSES, STREAMS
from .programs import serving
from .sites import site

ROOT = "root-root-root-root-root"
FIRST, SECOND = "f1rst-s3cret/of a?b", "s3cond_s3cret"
ENV = {"FIRST": FIRST, "SECOND": SECOND}
SERVERS = Path(__file__).resolve().parent.parent / "servers"
AGENT, KIT, CARL = f"bot-{SECOND}", f"kit-{SECOND}", f"carl-{SECOND}"
LOOK, WIPE = f"look_{SECOND}", f"wipe_{SECOND}"
SESSIONS = (f"chat {FIRST}", f"chat {SECOND}")
USERINFO = "ada:never-declared"
SKIPPED = ("/console/static", "/console/sign-out", "/console/activity/export")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return a configuration with two secrets, of which an agent, a toolkit and tools have one in their names."""
    (tmp_path / "list.json").write_text(json.dumps({LOOK: True, WIPE: {"description": f"Wipe with {FIRST}."}}))
    listed = {"command": sys.executable, "args": [str(SERVERS / "listed_server.py"), str(tmp_path / "list.json")]}
    document = {
        "store": "sqlite:///state.db",
        "servers": {"up": {**listed, "env": {"A": "${FIRST}", "B": "${SECOND}"}, "approve": {"wipe*": "always"}}},
        "toolkits": {KIT: {"tools": ["up"]}},
        "agents": {AGENT: {"dialect": "pegboard", "allowed_toolkits": [KIT]}, "plain": {"discoverable": ["*"]}},
        "tokens": {"root": {"token": ROOT, "agents": ["*"], "console": True}},
    }
    path = tmp_path / "pegboard.yaml"
    path.write_text(json.dumps(document))
    return path


class Operator:
    """A browser without a script, which is signed in over real connections: no answer of any page has a secret."""

    def __init__(self, client: httpx2.AsyncClient, sign_in: SignIn) -> None:
        self.client = client
        self.sign_in = sign_in

    async def get(self, address: str, **params: str) -> httpx2.Response:
        """Return an answer that succeeded."""
        return self._harmless(await self.client.get(address, params=params or None))

    async def post(self, address: str, **fields: str) -> httpx2.Response:
        """Send a form."""
        headers = {"x-csrf-token": self.sign_in.csrf}
        return self._harmless(await self.client.post(address, data=fields, headers=headers))

    async def send(self, method: str, address: str, body: Any, **params: str) -> Any:
        """Return the JSON that a program is answered."""
        headers = {"authorization": f"Bearer {ROOT}"}
        return self._harmless(
            await self.client.request(method, address, json=body, params=params or None, headers=headers)
        ).json()

    def _harmless(self, response: httpx2.Response) -> httpx2.Response:
        assert response.status_code in (200, 303), (response.request.url, response.text)
        without_secrets(response)
        return response


def without_secrets(response: httpx2.Response) -> None:
    """Require that nothing of an answer has a secret, however it is written."""
    written = f"{html.unescape(response.text).replace('<wbr>', '')}{response.headers}"
    for secret in (FIRST, SECOND, USERINFO):
        for form in (secret, quote(secret, safe=""), secret.replace(" ", "+"), quote(secret)):
            assert form not in written, (str(response.request.url), form)


@asynccontextmanager
async def operated(config: Path) -> AsyncIterator[tuple[Pegboard, Operator]]:
    """Serve the console of a configuration to a signed-in operator of every agent."""
    async with AsyncExitStack() as stack:
        board = await stack.enter_async_context(Pegboard.open(config, env=ENV))
        app, access = await stack.enter_async_context(serving(board))
        origin = await stack.enter_async_context(site(app))
        client = await stack.enter_async_context(httpx2.AsyncClient(base_url=origin, timeout=60))
        cookie = access.with_token(ROOT)
        sign_in = access.signed_in(cookie)
        assert cookie is not None
        assert sign_in is not None
        client.cookies.set("pegboard_console", cookie)
        client.headers["cookie"] = f"pegboard_console_{origin.rpartition(':')[2]}={cookie}"
        yield board, Operator(client, sign_in)


async def worked(board: Pegboard) -> None:
    """Let two sessions be there whose ids differ in a secret alone, with loads, calls and one that waits."""
    await board.ready("up")
    for number, session_id in enumerate(SESSIONS):
        session = await board.session(agent=AGENT, session_id=session_id, principal=CARL)
        await session.load(f"up__{LOOK}", f"up__{WIPE}")
        await session.surface()
        assert (await session.call(f"up__{LOOK}", {"n": number})).status == "ok"
        assert (await session.call(f"up__{WIPE}", {"n": number})).status == "needs_approval"


def addresses_in(page: str) -> set[str]:
    """Return where a page leads, by its links and by its forms as they are filled in, and what it asks for again."""
    found: list[str] = []
    for opening, inside in re.findall(r'<form([^>]*method="get"[^>]*)>(.*?)</form>', page, re.DOTALL):
        filled = re.findall(r'<(?:input|button)[^>]* name="([^"]*)"[^>]* value="([^"]*)"', inside)
        query = urlencode({html.unescape(name): html.unescape(value) for name, value in filled})
        found += (f"{action}?{query}" for action in re.findall(r'action="([^"]*)"', opening))
    found += re.findall(r'(?:href|hx-get)="(/console[^"]*)"', re.sub("<form[^>]*>", "", page))
    return {one for one in map(html.unescape, found) if not one.startswith(SKIPPED)}


async def crawled(operator: Operator) -> dict[str, str]:
    """Return every page that can be reached, by its address, each of which succeeds and has no secret."""
    seen: dict[str, str] = {}
    waiting = {"/console/access", "/console/sessions", "/console/servers", "/console/cost?by=session"}
    while waiting:
        address = waiting.pop()
        seen[address] = (await operator.get(address)).text
        waiting |= addresses_in(seen[address]) - seen.keys()
        assert len(seen) < 500
    return seen


async def shown_sessions(operator: Operator) -> list[dict[str, Any]]:
    """Return the sessions as they are shown, the one with the first secret first."""
    rows = (await operator.send("GET", "/api/sessions", None))["rows"]
    return sorted(rows, key=lambda row: str(row["updated_at"]))


async def test_no_page_that_can_be_reached_has_a_secret_of_a_name(config: Path) -> None:
    """X5: from page to page, as links and forms lead; the two sessions are told apart, and each opens."""
    async with operated(config) as (board, operator):
        await worked(board)
        pages = await crawled(operator)
        titles = {re.sub(r"<[^>]*>", "", page.partition("<h1>")[2].partition("</h1>")[0]) for page in pages.values()}
        assert len({title for title in titles if title.startswith("Session chat ***~")}) == 2
        assert any(title.startswith("Agent bot-***~") for title in titles)
        shown = json.dumps(sorted(pages))
        for part in ("/console/agent/members?", "/console/approvals/one?", "tool=up__look_"):
            assert part in shown


async def test_no_address_has_a_secret_of_a_name_whatever_is_asked_of_it(config: Path) -> None:
    """X5: every address that only looks, of pages and of programs, also where it fails."""
    async with operated(config) as (board, operator):
        await worked(board)
        row = (await shown_sessions(operator))[0]
        tool = (await operator.send("GET", "/api/servers/up", None))["name"]
        for address in ADDRESSES:
            if address.method != "GET" or address.path in STREAMS:
                continue
            for name in (tool, (await a_tool(operator))["name"], "gone"):
                own = {"agent": row["agent"], "session": row["session"], "principal": row["principal"]}
                values = {**own, "name": name, "tool": name, "query": "wipe", "q": "wipe"}
                kept = {key: value for key, value in values.items() if key in address.given or key in address.segments}
                response = await operator.client.request(**address.request(**kept))
                assert response.status_code < 500
                without_secrets(response)


async def a_tool(operator: Operator) -> dict[str, Any]:
    """Return a tool that is loaded, as it is shown, with its session."""
    row = (await shown_sessions(operator))[0]
    key = {name: row[name] for name in ("agent", "session", "principal")}
    found = await operator.send("GET", "/api/session", None, **key)
    (tool,) = [one for one in found["loaded"] if one["name"].startswith("up__look_")]
    return {**key, "name": tool["name"]}


async def test_what_is_shown_with_marks_is_meant_when_it_is_handed_back(config: Path) -> None:
    """X5, S1, P2: unloading, a switch and its undo, an export, an explanation and a deletion."""
    async with operated(config) as (board, operator):
        await worked(board)
        tool = await a_tool(operator)
        key = {name: tool[name] for name in ("agent", "session", "principal")}
        await operator.post("/console/session", **key, do="unload", names=tool["name"])
        left = [await board.session(agent=AGENT, session_id=one, principal=CARL) for one in SESSIONS]
        names = [{lease.subject.name for lease in (await one.snapshot()).stored.leases} for one in left]
        assert names == [{f"up/{WIPE}"}, {f"up/{LOOK}", f"up/{WIPE}"}]
        await operator.post(
            "/console/switch", agent=key["agent"], name=tool["name"], value="off", expected="unset", back=""
        )
        assert (await board.permissions.show())[AGENT] == {f"up__{LOOK}": False}
        body = {"name": tool["name"], "value": None, "expected": False}
        answer = await operator.send("PUT", f"/api/agents/{quote(key['agent'], safe='')}/switches", body)
        assert (answer["agent"], answer["name"]) == (key["agent"], tool["name"])
        explained = await operator.send("GET", "/api/explain", None, **key, name=tool["name"])
        assert (explained["permitted"], explained["loaded"], explained["tool"]) == (True, False, tool["name"])
        for address in ("/console/activity/export", "/api/audit/export"):
            lines = (await operator.get(address, session=key["session"], format="jsonl")).text.splitlines()
            assert {json.loads(line)["session"] for line in lines} == {key["session"]}
        await operator.post("/console/session/delete", **key)
        assert [row["session"] == key["session"] for row in await shown_sessions(operator)] == [False]


async def test_an_address_with_marks_means_the_same_after_a_restart(config: Path) -> None:
    """X5: what someone has kept leads there still."""
    async with operated(config) as (board, operator):
        await worked(board)
        tool = await a_tool(operator)
    async with operated(config) as (_, operator):
        key = {name: tool[name] for name in ("agent", "session", "principal")}
        assert "Timeline" in (await operator.get("/console/session", **key)).text
        assert (await operator.send("GET", "/api/session", None, **key))["calls"] != []


async def test_the_userinfo_of_a_url_in_a_name_is_shown_nowhere_and_the_name_leads_back(config: Path) -> None:
    """X5: in a session's id, which no configuration declares; two that differ in it alone, over a restart."""
    ids = [f"sync redis://{USERINFO}{number}@db/{FIRST}" for number in range(2)]
    async with operated(config) as (board, operator):
        for session_id in ids:
            session = await board.session(agent="plain", session_id=session_id, principal="ada")
            assert (await session.load("up")).status == "ok"
            assert (await session.call(f"up__{WIPE}", {"of": session_id})).status == "needs_approval"
        await crawled(operator)
        await operator.get("/api/audit")
        for address in ("/console/activity/export", "/api/audit/export"):
            assert "@db" in (await operator.get(address, format="csv")).text
        shown = [row["session"] for row in await shown_sessions(operator)]
        assert len(set(shown)) == 2
    async with operated(config) as (_, operator):
        for session_id in shown:
            key = {"agent": "plain", "principal": "ada", "session": session_id}
            assert "Timeline" in (await operator.get("/console/session", **key)).text
            found = await operator.send("GET", "/api/session", None, **key)
            assert found["loaded"] != []
            assert session_id == found["session"]
            lines = (await operator.get("/api/audit/export", session=session_id, format="jsonl")).text.splitlines()
            assert {json.loads(line)["session"] for line in lines} == {session_id}
        await operator.post("/console/session/delete", agent="plain", principal="ada", session=shown[0])
        assert [row["session"] for row in await shown_sessions(operator)] == [shown[1]]


async def test_no_search_is_a_way_to_guess_what_is_hidden_in_a_name(config: Path) -> None:
    """X5: neither the panel's nor what a text names finds a name by a part of its secret; by its mark it is found."""
    async with operated(config) as (board, operator):
        await worked(board)
        tool = await a_tool(operator)
        panel = f"/api/agents/{quote(tool['agent'], safe='')}/switches"
        rows = (await operator.send("GET", panel, None))["rows"]
        (kit,) = [row["name"] for row in rows if row["kind"] == "toolkit"]
        for part in ("s3cond", "s3cond_s", "s3cret", "look_s3", "kit-s3c"):
            assert (await operator.send("GET", panel, None, query=part))["rows"] == []
            assert kit not in (await operator.get("/console/agent", agent=tool["agent"], q=part)).text
        for part in ("look_s3con", "kits3cond", "look_s3cond_secret"):
            assert (await operator.send("GET", "/api/search", None, query=part, agent=tool["agent"]))["names"] == []
        assert [row["name"] for row in (await operator.send("GET", panel, None, query=kit))["rows"]] == [kit]
        assert kit in (await operator.get("/console/agent", agent=tool["agent"], q=kit)).text
        found = await operator.send("GET", "/api/search", None, query=tool["name"], agent=tool["agent"])
        assert [hit["name"] for hit in found["names"]] == [tool["name"]]
