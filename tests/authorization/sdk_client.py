"""A client with the SDK's own login, for anyone who tests this server or compares with the SDK."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

REDIRECT = "http://127.0.0.1:3000/callback"


class Kept:
    """The tokens and the registration of a client, kept in memory."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


async def followed(address: str, account: str | None = None) -> dict[str, str]:
    """Follow a login's address as a browser would; return what the client is called back with."""
    async with httpx2.AsyncClient(trust_env=False) as browser:
        to = f"{address}&account={account}" if account else address
        while True:
            answer = await browser.get(to)
            assert answer.is_redirect, f"{answer.status_code}: {answer.text}"
            to = answer.headers["location"]
            if to.startswith(REDIRECT):
                return dict(parse_qsl(urlsplit(to).query))


def sdk_login(url: str, kept: Kept, account: str | None = None, **more: Any) -> OAuthClientProvider:
    """Return the SDK's login, with a person who follows its address at once."""
    called_back: dict[str, str] = {}

    async def go(address: str) -> None:
        called_back.clear()
        called_back.update(await followed(address, account))

    async def come_back() -> AuthorizationCodeResult:
        state, iss = called_back.get("state"), called_back.get("iss")
        return AuthorizationCodeResult(code=called_back.get("code", ""), state=state, iss=iss)

    about = OAuthClientMetadata(client_name="The SDK", redirect_uris=[AnyUrl(REDIRECT)])
    return OAuthClientProvider(url, about, kept, go, come_back, **more)


@asynccontextmanager
async def sdk_client(url: str, auth: httpx2.Auth, mode: Any = "auto") -> AsyncIterator[Client]:
    """Yield a client of the server at an address, which logs in so."""
    async with (
        httpx2.AsyncClient(auth=auth, trust_env=False, timeout=20) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


async def whoami(client: Client) -> Any:
    """Return what the protected server knows of the caller."""
    return (await client.call_tool("whoami", {})).structured_content
