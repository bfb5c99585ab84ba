"""Texts of servers, models and files: markup, characters that turn text around, a megabyte of it, and secrets."""

import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from pegboard import Pegboard

from .addresses import ADDRESSES, visitor
from .programs import serving

ROOT = "root-root-root-root-root"
SECRET = "s3cret-of-the-mail-server"
SERVER = Path(__file__).resolve().parent.parent / "servers" / "plain_server.py"
HOSTILE = f"<script>alert(1)</script>\u202e' onload=x \" </textarea> {SECRET}"
TOOLS = f"""
from pegboard import tool

HOSTILE = {HOSTILE!r}


def send_mail(to: str) -> str:
    raise RuntimeError(HOSTILE + to)


def read_mail() -> str:
    return HOSTILE


def long_mail() -> str:
    return "done"


send_mail.__doc__ = HOSTILE
read_mail.__doc__ = HOSTILE + chr(0xd800)
long_mail.__doc__ = (HOSTILE + " ") * 16_000
send_mail = tool(title=HOSTILE, requires_confirmation=True)(send_mail)
"""
CONFIG = f"""
store: sqlite:///state.db
servers:
  git: {{{{command: {{python}}, args: [{{server}}, --complain, {json.dumps(HOSTILE)}],
    env: {{{{API_KEY: {SECRET}}}}}}}}}
plugins: {{{{mail: {{{{python: hostile_tools}}}}}}}}
toolkits: {{{{post: {{{{tools: [mail], label: {json.dumps(HOSTILE)}, description: {json.dumps(HOSTILE)}}}}}}}}}
agents:
  mailer: {{{{display_name: {json.dumps(HOSTILE)}, role: {json.dumps(HOSTILE)}, tools: [git, mail],
    allowed_toolkits: [post]}}}}
tokens: {{{{root: {{{{token: {ROOT}, agents: ["*"], console: true}}}}}}}}
"""
LARGEST = 400_000


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    (tmp_path / "hostile_tools.py").write_text(TOOLS)
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG.format(python=sys.executable, server=SERVER))
    async with Pegboard.open(path) as board:
        await board.ready()
        yield board


async def test_texts_of_others_are_cut_inert_and_without_secrets(board: Pegboard) -> None:
    """X5, F2: on every page and in every answer; markup stays text, nothing of a secret is written."""
    session = await board.session(agent="mailer", session_id=HOSTILE.replace(SECRET, "s")[:200], principal="carl")
    await session.surface()
    waiting = await session.call("send_mail", {"to": HOSTILE * 300})
    assert waiting.approval is not None
    await board.approvals.allow(waiting.approval.id, by="ada")
    await session.call("send_mail", {"to": HOSTILE * 300})
    again = await session.call("send_mail", {"to": HOSTILE})
    assert again.approval is not None
    other = {"session": session.key.session, "id": again.approval.id, "query": "mail"}
    async with AsyncExitStack() as stack:
        app, access = await stack.enter_async_context(serving(board))
        root = await stack.enter_async_context(visitor(app, access, ROOT))
        for address in ADDRESSES:
            if address.method != "GET":
                continue
            for name in ("git", "mail", "send_mail", "read_mail", "long_mail", HOSTILE):
                values = {**other, "name": name, "tool": name}
                values = {
                    key: value for key, value in values.items() if key in address.given or key in address.segments
                }
                response = await root.send(address, **values)
                assert response.status_code < 500, (address.path, name)
                written = f"{response.text}{response.headers}"
                sent = name == HOSTILE
                assert sent or SECRET not in written, (address.path, name)
                assert len(response.content) < LARGEST, (address.path, name, len(response.content))
                if "text/html" in response.headers.get("content-type", ""):
                    assert "<script>alert" not in written
                    assert "\u202e" not in re.sub(r'(?:value|href|hx-get|data-\w+)="[^"]*"', "", written)
