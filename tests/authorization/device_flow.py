"""Logins of machines without a browser (RFC 8628), which the SDK lacks."""

import secrets
import time
from dataclasses import dataclass

from mcp.server.auth.provider import TokenError
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from authorization.grants import Grants
from authorization.options import BASE_SCOPE
from authorization.people import choices, chosen_account, page

LETTERS = "BCDFGHJKLMNPQRSTVWXZ"


class DeviceError(Exception):
    """An answer that only this flow has."""


@dataclass(kw_only=True)
class DeviceLogin:
    client_id: str
    scopes: list[str]
    resource: str | None
    code: str
    asked_at: float = float("-inf")
    account: str | None = None
    refused: bool = False
    used: bool = False


class DeviceFlow:
    def __init__(self, grants: Grants) -> None:
        self._grants = grants
        self._logins: dict[str, DeviceLogin] = {}  # by what the person types
        self._codes: dict[str, DeviceLogin] = {}  # by what the machine holds

    def start(self, client: OAuthClientInformationFull, form: dict[str, str]) -> Response:
        """Answer a machine that wants someone to log it in.

        Raises: TokenError where the resource or a scope is a wrong one.
        """
        if problem := self._grants.wrong_resource(form.get("resource")):
            raise TokenError("invalid_target", problem)
        self._grants.counts["device_logins"] += 1
        login = DeviceLogin(
            client_id=client.client_id,
            scopes=form.get("scope", BASE_SCOPE).split(),
            resource=form.get("resource"),
            code=self._grants.secret("device"),
        )
        typed = "-".join("".join(secrets.choice(LETTERS) for _ in range(4)) for _ in range(2))
        self._logins[typed] = self._codes[login.code] = login
        where = self._grants.options.verification_uri or f"{self._grants.origin}/device"
        return JSONResponse(
            {
                "device_code": login.code,
                "user_code": typed,
                "verification_uri": where,
                "verification_uri_complete": f"{where}?user_code={typed}",
                "expires_in": 600,
                "interval": self._grants.options.device_interval,
            }
        )

    def visit(self, request: Request) -> Response:
        """Answer the person who types what the machine shows."""
        typed = request.query_params.get("user_code")
        if typed is None:
            return page(
                "Log a device in", '<form><label>Code <input name="user_code"></label><button>Go</button></form>'
            )
        login = self._logins.get(typed.strip().upper())
        if login is None:
            return page("No such code", "<p>Look at your device again.</p>", 404)
        account = chosen_account(request, self._grants)
        if self._grants.options.consent == "refuse" or "refuse" in request.query_params:
            login.refused = True
            return page("Refused", "<p>The device is not logged in.</p>")
        if account is None:
            return page("Allow access", choices({"user_code": typed}))
        login.account = account
        self._grants.counts["authorizations"] += 1
        return page("Done", "<p>The device is logged in.</p>")

    def tokens(self, client: OAuthClientInformationFull, form: dict[str, str]) -> OAuthToken:
        """Return the tokens for a machine that was logged in.

        Raises: DeviceError while it was not, TokenError where it never will be.
        """
        login = self._codes.get(form.get("device_code", ""))
        if login is None or login.client_id != client.client_id or login.used:
            raise TokenError("invalid_grant", "no such device code")
        if login.refused:
            raise DeviceError("access_denied")
        early = time.monotonic() - login.asked_at < self._grants.options.device_interval
        login.asked_at = time.monotonic()
        if early:
            raise DeviceError("slow_down")
        if login.account is None:
            raise DeviceError("authorization_pending")
        login.used = True
        self._grants.counts["exchanges"] += 1
        family = self._grants.family(client, login.account, login.scopes, login.resource)
        return self._grants.tokens(family, login.scopes)
