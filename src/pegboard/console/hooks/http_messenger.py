"""Messages over HTTP: to the configured address alone, TLS verified, in bounded time; and a test of the hooks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import httpx2

from pegboard.console.hooks.messages import of_test, write_message
from pegboard.core.model.hooks import Hook
from pegboard.problems import Problem

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
    httpx2.WriteTimeout: "it did not read the message in time",
    httpx2.RemoteProtocolError: "it does not speak HTTP, or closed the connection",
}


async def untaken(hooks: Sequence[Hook], messenger: HttpMessenger) -> tuple[Problem, ...]:
    """Send each hook a message that says nothing, and return those that did not take it as warnings."""
    whys = await asyncio.gather(*(messenger.deliver(hook.url, *write_message(of_test(), hook)) for hook in hooks))
    return tuple(
        Problem(
            severity="warning",
            code="hook_failed",
            message=f"a message to '{hook.host}' did not arrive: {why}.",
            hint="No one is notified there of pending calls; nothing else depends on it.",
            place=hook.place,
        )
        for hook, why in zip(hooks, whys, strict=True)
        if why
    )
