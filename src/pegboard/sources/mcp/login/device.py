"""A login by a code that a person types into any browser (RFC 8628). Import late."""

from __future__ import annotations

import asyncio
import time
from typing import Final, NamedTuple

from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp.login.discovery import Issuer
from pegboard.sources.mcp.login.grant import LoginGrant
from pegboard.sources.mcp.login.identity import Identity
from pegboard.sources.mcp.login.token_requests import RefusedTokensError, device_begun, granted_to_device
from pegboard.sources.mcp.login.web import LoginWeb, require_safe

_INTERVAL: Final = 5.0
_SHORTEST: Final = 0.1
_LONGEST: Final = 60.0
_SLOWER: Final = 5.0
"""Seconds by which an issuer that is asked too often is asked more seldom (RFC 8628, 3.5)."""


class DeviceLogin(NamedTuple):
    """What a person types where, what this machine holds meanwhile, and how often it asks, in seconds."""

    code: str
    url: str
    held: str
    interval: float


async def device_login(web: LoginWeb, issuer: Issuer, identity: Identity, server: str) -> DeviceLogin | None:
    """Return a login by a code, or None where the issuer offers none to this client, or none at a safe address."""
    if not issuer.metadata.device_authorization_endpoint:
        return None
    try:
        answer = await device_begun(web, issuer, identity)
    except (RefusedTokensError, ToolUnavailableError):
        return None
    code, url, held = (answer.get(name) for name in ("user_code", "verification_uri", "device_code"))
    if not (isinstance(code, str) and isinstance(url, str) and isinstance(held, str) and code and url and held):
        return None
    try:
        require_safe(url, server)
    except ToolUnavailableError:
        return None
    said = answer.get("interval", _INTERVAL)
    interval = float(said) if isinstance(said, int | float) else _INTERVAL
    return DeviceLogin(code, url, held, min(max(interval, _SHORTEST), _LONGEST))


async def wait_for_grant(
    issuer: Issuer, identity: Identity, server: str, typed: DeviceLogin, *, until: float
) -> LoginGrant | None:
    """Return the grant once the code was typed, or None where it was not, or was refused.

    Raises ``ToolUnavailableError`` where the issuer answers what is no answer.
    """
    interval = typed.interval
    async with LoginWeb(server) as web:
        while time.time() < until:
            await asyncio.sleep(interval)
            try:
                return await granted_to_device(web, issuer, identity, typed.held)
            except RefusedTokensError as error:
                if error.code == "slow_down":
                    interval = min(interval + _SLOWER, _LONGEST)
                elif error.code != "authorization_pending":
                    return None
    return None
