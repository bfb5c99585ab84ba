"""A client that does every step by hand: for tests of the authorization server, and as the thief in others."""

import base64
import hashlib
import secrets
from typing import Any
from urllib.parse import urlencode

import httpx2

from authorization.sdk_client import REDIRECT, followed
from authorization.site import LoginSite

VERIFIER = secrets.token_urlsafe(48)
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")


async def post(site: LoginSite, path: str, auth: Any = None, **form: str) -> tuple[int, dict[str, Any]]:
    """Send a form; return the status and what was answered."""
    async with httpx2.AsyncClient(trust_env=False, auth=auth) as http:
        answer = await http.post(f"{site.origin}{path}", data=form)
    return answer.status_code, answer.json() if answer.content else {}


async def registered(site: LoginSite) -> str:
    """Return the id of a new client without a secret."""
    about = {"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none", "client_name": "By hand"}
    about["grant_types"] = ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"]
    async with httpx2.AsyncClient(trust_env=False) as http:
        answer = await http.post(f"{site.origin}/register", json=about)
    assert answer.status_code == 201, answer.text
    return answer.json()["client_id"]


def login_address(site: LoginSite, client: str, **changes: str) -> str:
    """Return the address that a person is sent to."""
    query = {
        "response_type": "code",
        "client_id": client,
        "redirect_uri": REDIRECT,
        "state": "state-1",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "resource": site.url,
        "scope": "read",
        **changes,
    }
    return f"{site.origin}/authorize?{urlencode(query)}"


async def exchanged(site: LoginSite, client: str, code: str, **changes: str) -> tuple[int, dict[str, Any]]:
    """Give a code for tokens."""
    form = {"code": code, "client_id": client, "redirect_uri": REDIRECT, "code_verifier": VERIFIER}
    form |= {"grant_type": "authorization_code", "resource": site.url}
    return await post(site, "/token", **{**form, **changes})


async def refreshed(site: LoginSite, client: str, token: str) -> tuple[int, dict[str, Any]]:
    """Give a refresh token for new tokens."""
    form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": client, "resource": site.url}
    return await post(site, "/token", **form)


async def logged_in(site: LoginSite, client: str, account: str = "ada", scope: str = "read") -> dict[str, Any]:
    """Return the tokens of an account for a client."""
    back = await followed(login_address(site, client, scope=scope), account)
    status, tokens = await exchanged(site, client, back["code"])
    assert status == 200, tokens
    return tokens


async def status_with(site: LoginSite, token: str, tool: str = "whoami") -> int:
    """Return the status that the protected server answers a call with this token with."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
    async with httpx2.AsyncClient(trust_env=False) as http:
        answer = await http.post(site.url, json=call, headers={"Authorization": f"Bearer {token}"})
    return answer.status_code
