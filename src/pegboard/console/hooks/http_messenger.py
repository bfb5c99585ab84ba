"""Messages over HTTP: to the address that is configured alone, TLS verified, within a bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import httpx2

TIMEOUT: Final = 10.0
"""How long a message may take, in seconds."""


class HttpMessenger:
    """A messenger over HTTP; no proxy of the environment and no redirect takes a message anywhere else."""

    def __init__(self, *, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._client: httpx2.AsyncClient | None = None

    async def deliver(self, url: str, body: bytes, headers: Mapping[str, str]) -> str:
        """Post a message to an address; return why it did not arrive, without the address, or nothing where it did."""
        if self._client is None:
            self._client = httpx2.AsyncClient(
                follow_redirects=False, trust_env=False, timeout=self._timeout, verify=httpx2.create_ssl_context()
            )
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._client.stream("POST", url, content=body, headers=dict(headers)) as answer,
            ):
                status = answer.status_code  # what else it says is not read
        except TimeoutError:
            return f"it did not answer within {self._timeout:g} seconds"
        except httpx2.HTTPError as error:
            return _FAULTS.get(type(error), "it cannot be reached, or its certificate is not trusted")
        if 300 <= status < 400:
            return f"it answered with status {status}, a redirect, which is not followed"
        return "" if 200 <= status < 300 else f"it answered with status {status}"

    async def aclose(self) -> None:
        """Close what is open."""
        if self._client is not None:
            await self._client.aclose()


_FAULTS: Final[Mapping[type[Exception], str]] = {
    httpx2.ConnectTimeout: "it did not answer in time",
    httpx2.ReadTimeout: "it did not answer in time",
    httpx2.WriteTimeout: "it did not take the message in time",
    httpx2.RemoteProtocolError: "it does not speak HTTP, or broke off",
}
