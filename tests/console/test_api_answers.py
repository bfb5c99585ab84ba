"""Every answer under ``/api`` fits the document that describes it, for good and bad requests over real connections."""

import json
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import jsonschema_rs

from gateway.clients import until
from pegboard import Pegboard
from pegboard.console.app import ConsoleApp
from pegboard.console.entry.operator_access import OperatorAccess
from pegboard.console.served_console import PREFIXES
from pegboard.gateway import Mount, serving

from .api_requests import TOKENS, Answer, Asked, changing, misfits, reading, refused, sent, without_a_store
from .conftest import MAILER, TOOLS
from .programs import Program

SERVER = Path(__file__).resolve().parent.parent / "servers" / "plain_server.py"
CONFIG = f"""{MAILER}  root: {{token: {TOKENS["root"]}, agents: ["*"], console: true}}
servers: {{plain: {{command: {sys.executable}, args: [{SERVER}]}}}}
"""


class Api:
    """A served board with sessions and approvals; ``ids`` has the approvals by the names that requests use."""

    def __init__(self, board: Pegboard, port: int, document: Program) -> None:
        self.board = board
        self.port = port
        self.document = document
        self.ids: dict[str, str] = {}

    async def faults(self, requests: Iterable[Asked]) -> list[str]:
        """Send requests one after the other; return which answers do not fit, and why."""
        return [fault for asked in requests if (fault := self.fault(asked, await self.send(asked)))]

    async def send(self, asked: Asked) -> Answer:
        """Return the answer of one request."""
        return await sent(asked, self.port, self.ids)

    def fault(self, asked: Asked, answer: Answer) -> str:
        """Return what is wrong with an answer, or nothing."""
        if answer.status == 500:
            return f"{asked}: {answer}"
        if asked.method == "HEAD" or not answer.body:
            return ""
        if b'"jsonrpc"' in answer.body:  # the gateway refuses a foreign Host or Origin before the console reads it
            return "" if answer.status in (403, 421) else f"{asked}: {answer}"
        if answer.content_type != "application/json":
            exported = "/audit/export" in asked.target or "/docs" in asked.target or "redoc" in asked.target
            return "" if exported or answer.status >= 400 else f"{asked}: {answer.content_type}"
        if answer.status >= 400:
            schema = {"$ref": "#/components/schemas/Error", "components": self.document.document["components"]}
            validator = jsonschema_rs.validator_for(schema)
        else:
            validator = self.document.validator(asked.method, asked.target, answer.status)
        problems = [error.message for error in validator.iter_errors(json.loads(answer.body))]
        return f"{asked}: {answer.status} {problems}" if problems else ""

    async def stored(self) -> object:
        """Return what requests could have changed: switches, leases, approvals and what is on record of changes."""
        store = self.board.services.store
        changes = [await store.entries(kind=kind, limit=1000) for kind in ("permission", "load", "unload", "approval")]
        return (await store.stored_permissions()).switches, changes


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Api]:
    """Serve a board that has sessions, calls and two approvals."""
    (folder / "mail_tools.py").write_text(TOOLS)
    (folder / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(folder / "pegboard.yaml") as board:
        access = OperatorAccess(lambda: board.configuration.tokens)
        mount = Mount(prefixes=PREFIXES, build=lambda: ConsoleApp(board, access))
        async with serving(board, port=0, mounts=[mount]) as url, httpx2.AsyncClient() as client:
            await board.ready()
            address = url.removesuffix("/mcp")
            headers = {"authorization": f"Bearer {TOKENS['root']}"}
            document = (await client.get(f"{address}/api/openapi.json", headers=headers)).json()
            api = Api(board, int(address.rpartition(":")[2]), Program(client, document))
            await use(api)
            yield api


async def use(api: Api) -> None:
    """Let there be sessions, calls and two approvals, and every token counted."""
    for agent, principal in (("mailer", "carl"), ("a% b \u00e9", "=CARL(1)")):
        session = await api.board.session(agent=agent, session_id="s/1", principal=principal)
        await session.surface(message="Mail!")
        assert (await session.call("read_mail")).status == "ok"
        if agent == "mailer":
            for name, arguments in (("send_mail", {"to": "<b>\u202e"}), ("pay", {"amount": 3})):
                approval = (await session.call(name, arguments)).approval
                assert approval is not None
                api.ids[f"{{{name.partition('_')[0]}}}"] = approval.id

    async def counted() -> bool:
        search = await api.send(Asked(target="/api/search?agent=mailer&query=mail"))
        servers = await api.send(Asked(target="/api/servers", by="root"))
        return b'"indexing":false' in search.body and b'"tokens":null' not in servers.body

    await until(counted)


async def test_what_is_read_refused_or_does_not_fit_changes_nothing_and_fits_the_document(tmp_path: Path) -> None:
    """A5, X4: whatever is sent, and by every operator."""
    async with served(tmp_path) as api:
        before = await api.stored()
        assert await api.faults([*reading(), *refused(), *misfits()]) == []
        assert await api.stored() == before
        for asked in reading():
            if "/none" not in asked.target and "?" not in asked.target:
                assert (await api.send(asked)).status in (200, 422), asked


async def test_what_changes_something_fits_the_document_and_is_done_once(tmp_path: Path) -> None:
    """A3, P2: switches, loads, approvals and restarts."""
    async with served(tmp_path) as api:
        assert await api.faults(changing()) == []
        switches = (await api.board.services.store.stored_permissions()).switches
        assert switches == {"a% b \u00e9": {"clock": True}}
        ended = {one.id: one.status for one in await api.board.approvals.list() if one.id in api.ids.values()}
        assert ended == {}
        allowed = await api.board.services.store.entries(kind="approval", limit=100)
        assert [entry.decision for entry in allowed].count("allowed") >= 1


async def test_a_store_that_is_closed_is_an_error_that_fits_the_document(tmp_path: Path) -> None:
    """S2: no answer is made up, none is an internal error."""
    async with served(tmp_path) as api:
        await api.board.services.store.aclose()
        faults = await api.faults(without_a_store())
        await api.board.services.store.open()  # the board writes to it when it is closed
        assert faults == []
