"""The client of the conformance suite on Pegboard: `pegboard_client.py ADDRESS`, what to do in the environment."""

import asyncio
import json
import os
import sys
import tempfile
from contextlib import chdir
from typing import Any

import httpx2

from pegboard import Pegboard
from pegboard.board import Session

SERVER = "remote"
MOST_LOGINS = 5
BEFORE_ANY_IS_KNOWN = f"{SERVER}__test-tool"
DOCUMENT = "https://conformance-test.local/client-metadata.json"
KINDS = {"auth/client-credentials-basic": "client_credentials", "auth/client-credentials-jwt": "private_key_jwt"}
CONFIGURED = {
    "auth/basic-cimd": {"client_id": DOCUMENT},
    "auth/2025-03-26-oauth-endpoint-fallback": {"kind": "code"},  # no server of today has a login and no metadata
}


def server(url: str, scenario: str, context: dict[str, Any]) -> dict[str, Any]:
    """Return the server as a user would write it: with `auth` only where the scenario gives something for it."""
    if "client_id" not in context:
        return {"url": url, **({"auth": CONFIGURED[scenario]} if scenario in CONFIGURED else {})}
    auth = {
        "kind": KINDS.get(scenario, "code"),
        "client_id": context["client_id"],
        "client_secret": context.get("client_secret") or context.get("private_key_pem", ""),
        "issuer": context.get("issuer") or issuer_of(url),
    }
    return {"url": url, "auth": {key: value for key, value in auth.items() if value}}


def issuer_of(url: str) -> str:
    """Return the issuer that a server names: who has a secret knows from whom, and writes it beside it."""
    address = httpx2.URL(url)
    with httpx2.Client(trust_env=False) as http:
        for path in (f"/.well-known/oauth-protected-resource{address.path}", "/.well-known/oauth-protected-resource"):
            answer = http.get(str(address.copy_with(path=path)))
            if answer.status_code == 200:
                return answer.json()["authorization_servers"][0]
    return ""


async def called(session: Session, name: str) -> Any:
    """Return the answer to a call, for which a person logs in as often as they are asked to."""
    answer: Any = await session.call(name, {})
    for _ in range(MOST_LOGINS):
        login: Any = answer.login
        if answer.status != "needs_login":
            break
        async with httpx2.AsyncClient(trust_env=False, follow_redirects=True) as browser:
            await browser.get(login.url)
        answer = await session.resume(login.id)
    return answer


async def main() -> None:
    """Call each tool of the server, with whatever logins that takes."""
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    if not scenario.startswith("auth/"):
        return
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    config = {
        "servers": {SERVER: server(sys.argv[-1], scenario, context)},
        "agents": {"assistant": {"tools": [SERVER]}},
    }
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        await call_all(config)


async def call_all(config: dict[str, Any]) -> None:
    """Call each tool once; leave with what was answered where that is no success."""
    async with Pegboard.open(config) as board:
        session = await board.session(agent="assistant", session_id="conformance")
        first, tools = await known_tools(session)
        answers = [await called(session, name) for name in tools]
    if not answers or any(answer.is_error for answer in answers):
        sys.exit("; ".join(answer.message or str(answer.result.content) for answer in (first, *answers)))


async def known_tools(session: Session) -> tuple[Any, list[str]]:
    """Return what the first call was answered, and the tools that are known after it."""
    first = await called(session, BEFORE_ANY_IS_KNOWN)
    return first, [entry.tool.wire for entry in (await session.surface()).tools]


if __name__ == "__main__":
    asyncio.run(main())
