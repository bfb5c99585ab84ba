"""The endpoints that clients ask: the SDK's `/token` and `/register`, what it lacks, and odd answers."""

import asyncio
import base64
import binascii
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlencode

import jwt
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import AuthenticationError
from mcp.server.auth.provider import TokenError
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from authorization.clients import DEVICE_CODE, Authenticator
from authorization.device_flow import DeviceError, DeviceFlow
from authorization.grants import Grants
from authorization.options import BASE_SCOPE, SCOPES

NO_STORE = {"Cache-Control": "no-store"}
OWN_GRANTS = ("client_credentials", DEVICE_CODE)


class TokenEndpoints:
    def __init__(self, grants: Grants, devices: DeviceFlow, changed: asyncio.Condition) -> None:
        self._grants, self._devices, self._changed = grants, devices, changed
        self._authenticator = Authenticator(grants, lambda: grants.issuer, grants.now)
        self._handler = TokenHandler(grants, self._authenticator)

    async def register(self, request: Request) -> Response:
        """Register a client, as the SDK does."""
        options = self._grants.options
        if not options.registration:
            return Response(status_code=404)
        if options.registration_status:
            return HTMLResponse("<!doctype html><p>Not today.", options.registration_status)
        scopes = list(SCOPES)
        rules = ClientRegistrationOptions(enabled=True, valid_scopes=scopes, default_scopes=scopes)
        return await RegistrationHandler(self._grants, rules).handle(request)

    async def token(self, request: Request) -> Response:
        """Give tokens, as the SDK does, for the grants that it lacks as well, and as oddly as the options want it."""
        form = await sent_form(request)
        await self._held("before")
        if status := self._grants.options.token_status:
            return HTMLResponse("<!doctype html><p>Come back later.", status, {"Retry-After": "1"})
        if self._grants.options.token_html:  # what stands before the issuer answers, so nothing was used up
            return HTMLResponse("<!doctype html><title>Welcome</title><p>Please accept our terms.")
        answer = await self._tokens(request, form)
        await self._held("after")
        return odd_answer(answer, form, self._grants)

    async def _tokens(self, request: Request, form: dict[str, str]) -> Response:
        kind = form.get("grant_type")
        if problem := self._grants.wrong_resource(form.get("resource")):
            return error("invalid_target", problem)
        if kind not in OWN_GRANTS:
            return await self._handler.handle(with_form(request, form))
        try:
            client = await self._authenticator.authenticate_request(with_form(request, form))
            if kind not in client.grant_types:
                return error("unauthorized_client", f"not for this client: {kind}")
            if kind == DEVICE_CODE:
                made = self._devices.tokens(client, form)
            else:
                scopes = form.get("scope", BASE_SCOPE).split()
                made = self._grants.machine_tokens(client, scopes, form.get("resource"))
        except AuthenticationError as problem:
            return error("invalid_client", problem.message, 401)
        except DeviceError as waiting:
            return error(str(waiting), None)
        except TokenError as problem:
            return error(problem.error, problem.error_description)
        return JSONResponse(made.model_dump(mode="json", exclude_none=True), headers=NO_STORE)

    async def device_authorization(self, request: Request) -> Response:
        """Start a login of a machine without a browser."""
        if not self._grants.options.device:
            return Response(status_code=404)
        form = await sent_form(request)
        client = await self._client(request, form)
        if isinstance(client, Response):
            return client
        try:
            return self._devices.start(client, form)
        except TokenError as problem:
            return error(problem.error, problem.error_description)

    async def revoke(self, request: Request) -> Response:
        """Take a token back, with its family (the SDK's route refuses clients without a secret)."""
        form = await sent_form(request)
        client = await self._client(request, form)
        if isinstance(client, Response):
            return client
        value = form.get("token", "")
        token = self._grants.access.get(value) or self._grants.refresh.get(value)
        if token and token.client_id == client.client_id:
            await self._grants.revoke_token(token)
        return Response(status_code=200, headers=NO_STORE)

    async def introspect(self, request: Request) -> Response:
        """Say what a token is worth; the protected servers of other sites ask."""
        token = await self._grants.load_access_token((await sent_form(request)).get("token", ""))
        if token is None:
            return JSONResponse({"active": False})
        return JSONResponse({"active": True, **token.model_dump(mode="json", exclude={"family"}, exclude_none=True)})

    async def _client(self, request: Request, form: dict[str, str]) -> OAuthClientInformationFull | Response:
        try:
            return await self._authenticator.authenticate_request(with_form(request, form))
        except AuthenticationError as problem:
            return error("invalid_client", problem.message, 401)

    async def _held(self, when: str) -> None:
        if self._grants.options.hold != when:
            return
        self._grants.counts["held"] += 1
        async with self._changed:
            await self._changed.wait_for(lambda: self._grants.options.hold != when)
        self._grants.counts["held"] -= 1


def error(code: str, description: str | None, status: int = 400) -> JSONResponse:
    """Return an error of OAuth."""
    body = {"error": code, "error_description": description}
    return JSONResponse({key: value for key, value in body.items() if value}, status, NO_STORE)


async def sent_form(request: Request) -> dict[str, str]:
    """Return the form of a request with the client's id in it, wherever the client named itself."""
    form = {key: value for key, value in (await request.form()).items() if isinstance(value, str)}
    if "client_id" not in form:
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        with suppress(ValueError, binascii.Error):
            if scheme == "Basic":
                form["client_id"] = unquote(base64.b64decode(value).decode().partition(":")[0])
        with suppress(KeyError, jwt.PyJWTError):
            claims = jwt.decode(form["client_assertion"], options={"verify_signature": False})
            form["client_id"] = str(claims["sub"])
    return form


def with_form(request: Request, form: Mapping[str, str]) -> Request:
    """Return the request with another form."""
    body = urlencode(form).encode()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request(request.scope, receive)


def odd_answer(answer: Response, form: Mapping[str, str], grants: Grants) -> Response:
    """Return an answer of `/token` as odd as the options want it."""
    options, body = grants.options, json.loads(bytes(answer.body))
    if "error" in body:
        if options.echo_secrets:
            body["error_description"] = f"{body.get('error_description')}: {json.dumps(dict(form))}"
        return JSONResponse(body, 200 if options.errors_as_200 else answer.status_code, NO_STORE)
    body["token_type"] = options.token_type
    if options.expires_in == "text":
        body["expires_in"] = str(body["expires_in"])
    if options.expires_in == "none":
        del body["expires_in"]
    if not options.scope_in_answer:
        body.pop("scope", None)
    return JSONResponse(body, headers=NO_STORE)
