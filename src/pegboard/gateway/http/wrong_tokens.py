"""Wrong tokens cost time: each further one of an address is answered later; a right one never waits (G2)."""

from __future__ import annotations

import asyncio
import ipaddress
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from pegboard.gateway.http.auth import FORWARDED, HttpRefusal

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from pegboard.gateway.http.mounts import GatewayApp

FREE: Final = 3
"""So many wrong tokens of an address are answered at once."""
FIRST: Final = 0.25
"""For how long the answer to the next one waits, in seconds; twice as long with each further one."""
LONGEST: Final = 10.0
"""For how long an answer waits at most, in seconds."""
FORGOTTEN: Final = 900.0
"""After how many seconds without a wrong token an address is as any other."""
ADDRESSES: Final = 1024
"""Of how many addresses it is known; the one without a wrong token for longest gives way."""
AT_ONCE: Final = 16
"""How many answers to one address wait at the same time; further ones are refused at once."""
SIGN_INS: Final = ("/console/sign-in", "/console/codes", "/console/login/callback")
"""Where a secret is in the body of a request."""


@dataclass(slots=True)
class _WrongTokenCount:
    """The wrong tokens of one address."""

    count: int = 0
    last: float = 0.0
    waiting: int = 0


class WrongTokens:
    """How many wrong tokens came from which address, and for how long the answer to the next one waits."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._attempts: OrderedDict[str, _WrongTokenCount] = OrderedDict()

    def __len__(self) -> int:
        """Return of how many addresses it is known."""
        return len(self._attempts)

    def add(self, address: str) -> float:
        """Count a wrong token, and return for how many seconds its answer waits."""
        known, now = self._attempts_of(address), self._clock()
        known.count = 1 if now - known.last > FORGOTTEN else known.count + 1
        known.last = now
        over = known.count - FREE
        return 0.0 if over <= 0 else min(LONGEST, FIRST * 2.0 ** min(over - 1, 16))

    async def wait(self, address: str, sleep: Callable[[float], Awaitable[object]]) -> bool:
        """Count a wrong token and wait; return False at once where too many answers to the address wait already."""
        delay, known = self.add(address), self._attempts_of(address)
        if delay and known.waiting >= AT_ONCE:
            return False
        known.waiting += 1
        try:
            await sleep(delay)
        finally:
            known.waiting -= 1
        return True

    def _attempts_of(self, address: str) -> _WrongTokenCount:
        key = _network(address)
        known = self._attempts.pop(key, None) or _WrongTokenCount()
        self._attempts[key] = known
        if len(self._attempts) > ADDRESSES:
            self._attempts.popitem(last=False)
        return known


def _network(address: str) -> str:
    """Return what of an address one client has alone: of IPv6 its network.

    >>> _network("127.0.0.1"), _network("2001:db8::5"), _network("")
    ('127.0.0.1', '2001:db8::/64', '')
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if parsed.version == 4 else str(ipaddress.ip_network((int(parsed), 64), strict=False))


class WrongTokenDelay:
    """An ASGI app that answers wrong tokens and codes late, whatever else of the gateway refused them."""

    def __init__(
        self, app: GatewayApp, wrong: WrongTokens, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        self._app = app
        self._wrong = wrong
        self._sleep = sleep

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the server."""
        if scope["type"] != "http" or FORWARDED in scope or not _offers_secret(scope):
            await self._app(scope, receive, send)
            return
        refused = False

        async def send_delayed(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start" and message["status"] == 401:
                client: Any = scope.get("client") or ("",)
                if not await self._wrong.wait(client[0], self._sleep):
                    refused = True
                    await HttpRefusal(429, _TOO_MANY, Retry_After=str(int(LONGEST)))(scope, receive, send)
            if not refused:
                await send(message)

        await self._app(scope, receive, send_delayed)

    async def close(self, *, grace: float) -> None:
        """End every stream; what else is in flight may go on for ``grace`` seconds."""
        await self._app.close(grace=grace)


_TOO_MANY: Final = "Too many wrong tokens came from this address. A correct token is accepted at any time."


def _offers_secret(scope: Scope) -> bool:
    return scope["path"] in SIGN_INS or any(name == b"authorization" for name, _ in scope["headers"])
