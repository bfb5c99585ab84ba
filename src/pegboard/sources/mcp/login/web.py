"""Requests to those who issue logins: bounded, over TLS but for loopback, never led to another origin. Import late."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Self
from urllib.parse import urlsplit

import httpx2

from pegboard.core.model.naming import one_line
from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp.certificates import tls
from pegboard.sources.mcp.proxies import ProxiedClient
from pegboard.sources.mcp.wire.redirects import (
    MOST_REDIRECTS,
    STATUSES,
    RedirectError,
    too_many_redirects,
    within_origin,
)
from pegboard.support.hosts import address_of, is_loopback
from pegboard.support.version import __version__

LARGEST: Final = 1024 * 1024
"""Bytes of an answer that are read."""
WITHIN: Final = 8.0
"""How long one request may take, in seconds: less than a lease of a refresher."""
_KEPT: Final = ("content-type", "location", "retry-after")
_AGENT: Final = {"user-agent": f"pegboard/{__version__}", "accept": "application/json"}


class LoginWeb:
    """An HTTP client for the addresses that a login is made over; ``server`` is the address of who names them."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._client: httpx2.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def request(
        self,
        method: str,
        url: str,
        *,
        form: Mapping[str, str] | None = None,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        """Return an answer that is read whole; redirects within the origin are followed with method and body.

        Raises ``ToolUnavailableError`` where the address may not be asked, does not answer or answers too much, and
        where it redirects a POST elsewhere. Other redirects that are not followed are returned.
        """
        require_safe(url, self._server)
        if self._client is None:
            self._client = ProxiedClient(headers=_AGENT, verify=tls(), follow_redirects=False)
        try:
            async with asyncio.timeout(WITHIN):
                request = self._client.build_request(method, url, data=form, json=json, headers=headers)
                return await self._follow_redirects(self._client, request)
        except TimeoutError:
            raise ToolUnavailableError(f"{place_of(url)} did not answer within {WITHIN:g} s.") from None
        except RedirectError as error:
            raise ToolUnavailableError(f"{place_of(url)} gives no answer: {error}.") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            why = one_line(str(error) or type(error).__name__, limit=200)
            raise ToolUnavailableError(f"{place_of(url)} cannot be reached: {why}.") from None

    async def _follow_redirects(self, client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
        """Return the answer to a request, from where it is redirected within its origin."""
        followed = 0
        while True:
            response = await _read_whole(await client.send(request, stream=True))
            if response.status_code not in STATUSES:
                return response
            try:
                if followed == MOST_REDIRECTS:
                    raise too_many_redirects(request.url)
                request.url = within_origin(request.url, response.headers.get("location", ""))
            except RedirectError:
                if request.method == "POST":
                    raise
                return response
            followed += 1


async def _read_whole(response: httpx2.Response) -> httpx2.Response:
    """Return an answer that is read whole, with the headers that matter."""
    body = b""
    try:
        async for part in response.aiter_bytes():
            body += part
            if len(body) > LARGEST:
                place = place_of(str(response.request.url))
                raise ToolUnavailableError(f"{place} answers with more than {LARGEST:,} bytes.")
    finally:
        await response.aclose()
    kept = [(name, value) for name, value in response.headers.items() if name.lower() in _KEPT]
    return httpx2.Response(response.status_code, headers=kept, content=body, request=response.request)


def require_safe(url: str, server: str) -> None:
    """Raise ``ToolUnavailableError`` for an address that a server must not lead a login to.

    That is http elsewhere than here, and what is written as an address of this machine or of a private network where
    the server itself is somewhere else; names are not resolved.
    """
    scheme, host = _parts(url)
    if scheme != "https" and not (scheme == "http" and is_loopback(host)):
        raise ToolUnavailableError(
            f"A login would go over {place_of(url)}, which is not https.",
            hint="Only this machine may be asked over http.",
        )
    own = _parts(server)[1]
    if host != own and not is_loopback(own) and (is_loopback(host) or (is_private(host) and not is_private(own))):
        raise ToolUnavailableError(f"A login at {place_of(server)} would lead to {place_of(url)}, a private address.")


def _parts(url: str) -> tuple[str, str]:
    try:
        host = httpx2.URL(url).host  # as it is connected to, whatever dots and digits it is written with
        return urlsplit(url).scheme, host.removesuffix(".")
    except (ValueError, httpx2.InvalidURL):
        return "", ""


def is_private(host: str) -> bool:
    """Return whether a host is this machine or in a private network, by its name alone."""
    address = address_of(host)
    return is_loopback(host) or (address is not None and not address.is_global)


def place_of(url: str) -> str:
    """Return an address without what may be secret in it, for messages."""
    bare = url.partition("?")[0].partition("#")[0]
    scheme, marks, rest = bare.partition("://")
    return one_line(f"{scheme}{marks}{rest.rpartition('@')[2]}", limit=200)
