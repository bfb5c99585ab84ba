"""The authorization server, the protected server and what tests control them by, as one app."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from email.utils import formatdate
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from authorization import metadata, people
from authorization.clients import SIGNER_KEY
from authorization.device_flow import DeviceFlow
from authorization.grants import Grants
from authorization.options import Options
from authorization.protected_server import Guard, mcp_server
from authorization.token_endpoints import TokenEndpoints


class Site:
    """Everything that the site knows; `begin` makes it forget."""

    grants: Grants
    devices: DeviceFlow
    endpoints: TokenEndpoints
    requests: list[dict[str, Any]]

    def __init__(self, origin: str, options: Options) -> None:
        self._origin = origin
        self._changed = asyncio.Condition()
        self._released = asyncio.Event()
        self._begin(options)

    def _begin(self, options: Options) -> None:
        self.grants = Grants(self._origin, options)
        self.devices = DeviceFlow(self.grants)
        self.endpoints = TokenEndpoints(self.grants, self.devices, self._changed)
        self.requests = []

    async def released(self) -> None:
        """Wait until a test lets the calls that wait go on."""
        self.grants.counts["slow"] += 1
        await self._released.wait()

    async def note(self, request: Request) -> None:
        """Remember what came to the authorization server."""
        kind = request.headers.get("content-type", "")
        sent: dict[str, Any] = dict(request.query_params)
        if kind.startswith("application/json"):
            sent |= json.loads(await request.body() or b"{}")
        elif request.method == "POST":
            sent |= {key: str(value) for key, value in (await request.form()).items()}
        agent, path = request.headers.get("user-agent"), request.url.path
        self.requests.append({"path": path, "method": request.method, "parameters": sent, "agent": agent})

    async def control(self, request: Request) -> Response:
        """Answer a test: GET says something, POST does something."""
        what, grants = request.path_params["what"], self.grants
        if request.method == "POST":
            sent = json.loads(await request.body() or b"{}")
            try:
                return await self._do(what, sent)
            except TypeError as unknown:
                return JSONResponse({"problem": str(unknown)}, 400)
        told: dict[str, object] = {
            "counts": grants.counts,
            "requests": self.requests,
            "secrets": grants.secrets,
            "signer-key": SIGNER_KEY,
            "options": dataclasses.asdict(grants.options),
        }
        return JSONResponse(told[what]) if what in told else Response(status_code=404)

    async def _do(self, what: str, sent: dict[str, Any]) -> Response:
        grants = self.grants
        match what:
            case "options":
                await self._change(dataclasses.replace(grants.options, **sent))
            case "reset":
                options = Options(**sent)
                await self._change(dataclasses.replace(grants.options, hold=""))
                self._begin(options)
            case "expire":
                grants.expire()
            case "logout-all":
                grants.log_out_all()
            case "forget-clients":
                grants.forget_clients()
            case "release":
                self._released.set()
                self._released = asyncio.Event()
            case _:
                return Response(status_code=404)
        return JSONResponse({})

    async def _change(self, options: Options) -> None:
        self.grants.options = options
        async with self._changed:
            self._changed.notify_all()


class OddMachine:
    """The machine that all of it runs on: its clock, and what stands before it."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app, self._site = app, site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        grants = self._site.grants

        async def dated(message: Message) -> None:
            if message["type"] == "http.response.start":
                date = formatdate(grants.now(), usegmt=True).encode()
                message = {**message, "headers": [*message.get("headers", ()), (b"date", date)]}
            await send(message)

        named = any(name == b"user-agent" and value for name, value in scope["headers"])
        controlled = scope["path"].startswith("/control/")
        if grants.options.demand_user_agent and not named and not controlled:
            await HTMLResponse("<!doctype html><h1>Access denied</h1>", 403)(scope, receive, dated)
        elif (location := grants.options.redirects.get(scope["path"])) is not None:
            grants.counts[f"redirected {scope['path']}"] += 1
            await RedirectResponse(location, 307)(scope, receive, dated)
        else:
            found = next((path for path, to in grants.options.redirects.items() if to == scope["path"]), scope["path"])
            await self._app({**scope, "path": found}, receive, dated)


def app(origin: str, options: Options) -> Starlette:
    """Return the site that is at an origin."""
    site = Site(origin, options)
    inner = mcp_server(site.released).streamable_http_app()

    def route(path: str, answer: Callable[[Request], Any], *methods: str) -> Route:
        async def answered(request: Request) -> Response:
            await site.note(request)
            response = answer(request)
            return response if isinstance(response, Response) else await response

        return Route(path, answered, methods=methods or ("GET",))

    def well_known(request: Request) -> Response:
        return metadata.answer(request, site.grants)

    @asynccontextmanager
    async def alive(_: Starlette) -> AsyncGenerator[None]:
        async with inner.router.lifespan_context(inner):
            yield

    routes = [
        route("/.well-known/{rest:path}", well_known),
        route("/tenant/.well-known/{rest:path}", well_known),
        route("/authorize", lambda request: people.authorize(request, site.grants), "GET", "POST"),
        route("/consent", lambda request: people.consent(request, site.grants)),
        route("/device", lambda request: site.devices.visit(request)),
        route("/register", lambda request: site.endpoints.register(request), "POST"),
        route("/token", lambda request: site.endpoints.token(request), "POST"),
        route("/device_authorization", lambda request: site.endpoints.device_authorization(request), "POST"),
        route("/revoke", lambda request: site.endpoints.revoke(request), "POST"),
        route("/introspect", lambda request: site.endpoints.introspect(request), "POST"),
        Route("/control/{what}", site.control, methods=["GET", "POST"]),
        Mount("/", Guard(inner, lambda: site.grants, site.released)),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(OddMachine, site=site)],
        lifespan=alive,
    )
