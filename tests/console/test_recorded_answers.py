"""Every answer under ``/api`` is, byte for byte, the one that was recorded.

``PEGBOARD_RECORD=1`` in the environment records anew: for a change of an answer that is meant.
"""

import json
import os
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.clients import until
from pegboard import Pegboard
from pegboard.console.app import ConsoleApp
from pegboard.console.entry.operator_access import OperatorAccess
from pegboard.console.served_console import PREFIXES
from pegboard.gateway import Mount, serving

from .conftest import MAILER, TOOLS
from .recorded_requests import (
    TOKENS,
    Answer,
    Asked,
    changing,
    misfits,
    named,
    of_browsers,
    reading,
    refused,
    sent,
    without_a_store,
)

SERVER = Path(__file__).resolve().parent.parent / "servers" / "plain_server.py"
RECORDED = Path(__file__).resolve().parent.parent / "fixtures" / "console_api" / "answers.json"
CONFIG = f"""{MAILER}  root: {{token: {TOKENS["root"]}, agents: ["*"], console: true}}
servers: {{plain: {{command: {sys.executable}, args: [{SERVER}]}}}}
"""


@asynccontextmanager
async def gateway(folder: Path) -> AsyncIterator[tuple[Pegboard, OperatorAccess, int]]:
    """Serve a board with sessions, calls and approvals; yields it, who may enter, and its port."""
    (folder / "mail_tools.py").write_text(TOOLS)
    (folder / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(folder / "pegboard.yaml") as board:
        access = OperatorAccess(lambda: board.configuration.tokens)
        mount = Mount(prefixes=PREFIXES, build=lambda: ConsoleApp(board, access))
        async with serving(board, port=0, mounts=[mount]) as url:
            await board.ready()
            yield board, access, int(url.removesuffix("/mcp").rpartition(":")[2])


async def used(board: Pegboard) -> dict[str, str]:
    """Let there be sessions, calls and two approvals; return the ids of these by their names."""
    ids: dict[str, str] = {}
    for agent, principal in (("mailer", "carl"), ("a% b \u00e9", "=CARL(1)")):
        session = await board.session(agent=agent, session_id="s/1", principal=principal)
        await session.surface(message="Mail!")
        assert (await session.call("read_mail")).status == "ok"
        if agent == "mailer":
            for name, arguments in (("send_mail", {"to": "<b>\u202e"}), ("pay", {"amount": 3})):
                approval = (await session.call(name, arguments)).approval
                assert approval is not None
                ids[f"{{{name.partition('_')[0]}}}"] = approval.id
    return ids


async def answers(folder: Path) -> AsyncIterator[tuple[str, Answer]]:
    """Yield what each request is called, and its answer."""
    async with gateway(folder) as (board, access, port):
        names = {"{folder}": str(folder), "{python}": sys.executable, "{tests}": str(SERVER.parents[1])}
        names |= await used(board)

        async def ask(requests: Iterable[Asked]) -> AsyncIterator[tuple[str, Answer]]:
            for asked in requests:
                yield named(str(asked), names), await sent(asked, port, names)

        async def counted() -> bool:
            search = await sent(Asked(target="/api/search?agent=mailer&query=mail"), port, {})
            servers = await sent(Asked(target="/api/servers", by="root"), port, {})
            return '"indexing":false' in search.body and '"tokens":null' not in servers.body

        await until(counted)
        async for one in ask([*reading(), *refused(), *misfits(), *changing()]):
            yield one
        cookie = access.with_token(TOKENS["ada"])
        sign_in = access.signed_in(cookie)
        assert cookie is not None
        assert sign_in is not None
        names |= {"{cookie}": cookie, "{csrf}": sign_in.csrf}
        async for one in ask(of_browsers(cookie, sign_in.csrf)):
            yield one
        await board.services.store.aclose()
        async for one in ask(without_a_store()):
            yield one


def written(found: Iterable[tuple[str, Answer]]) -> str:
    """Return a recording: the headers that there are, then a line for each request, with the number of its headers."""
    headers: dict[tuple[str, ...], int] = {}
    rows = [[asked, status, headers.setdefault(names, len(headers)), body] for asked, (status, names, body) in found]
    tables = ([json.dumps(row) for row in part] for part in (headers, rows))
    return "[[\n{}\n],[\n{}\n]]\n".format(*(",\n".join(lines) for lines in tables))


def recorded() -> list[tuple[str, Answer]]:
    """Return what was recorded."""
    headers, rows = json.loads(RECORDED.read_text("utf-8"))
    return [(asked, Answer(status, tuple(headers[number]), body)) for asked, status, number, body in rows]


async def test_every_answer_is_the_recorded_one(tmp_path: Path) -> None:
    """Good requests and bad ones, over real connections: status, headers and body."""
    found = [one async for one in answers(tmp_path)]
    if os.environ.get("PEGBOARD_RECORD"):
        RECORDED.write_text(written(found), "utf-8")
    before = recorded()
    assert [asked for asked, _ in found] == [asked for asked, _ in before]
    assert [one for one in zip(found, before, strict=True) if one[0] != one[1]] == []
