"""Every address of the console, with a request to it that fits, and a browser that is signed in."""

import inspect
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import quote, urlencode

import httpx2

from pegboard.console.api.endpoint import signature_of
from pegboard.console.api.endpoints import ENDPOINTS
from pegboard.console.app import ConsoleApp
from pegboard.console.entry.operator_access import OperatorAccess, SignIn
from pegboard.console.pages.all_pages import PAGES

from .programs import ORIGIN

STREAMS = ("/console/events", "/api/events")
FITTING = {
    "agent": "mailer",
    "session": "s",
    "principal": "carl",
    "id": "a",
    "number": "1",
    "tool": "send_mail",
    "query": "mail",
    "do": "end-turn",
    "names": "post",
    "keep": "",
    "expected": "unset",
    "lasts": "once",
    "back": "",
    "reason": "",
    "server": "post",
    "seen": "0" * 64,
    "to": "allow",
    "ids": "a",
    "theme": "dark",
    "argument": "to",
    "pattern": "*",
    "section": "toolkits",
    "text": "agents: {}",
    "digest": "0" * 64,
    "file": "mcp.json",
    "test": "0",
    "grant": "needed",
    "right": "see",
    "one": "mailer",
    "two": "deskless",
    "days": "7",
    "since": "2026-11-22T00:00:00+00:00",
}
TOGETHER = {f"/console/access{end}": {"kind": "switch", "mark": "0" * 12} for end in ("", "/set", "/undo")}
PAGE_VALUES = {
    "/console/agent/members": {"kind": "toolkit", "name": "post"},
    "/console/activity": {"kind": "call"},
    **TOGETHER,
}
FILTERS = ("q", "text", "decision", "outcome", "format", "by", "days", "state", "kind", "code", "offset", "limit")
MOMENTS = ("before", "after", "since", "until")
BODIES: dict[str, Any] = {
    "Loading": {"names": ["post"]},
    "Unloading": {"names": ["post"]},
    "LoadoutChoice": {"loadout": None},
    "NewSwitch": {"name": "post", "value": False},
    "Allowed": {},
    "Refused": {},
    "Seen": {"seen": "0" * 64},
    "SeenTool": {"seen": "0" * 64},
    "NewTogether": {"kind": "switch", "name": "post", "value": False, "agent": "deskless"},
    "TakenBack": {"mark": "0" * 12},
    "TriedCall": {"agent": "mailer", "tool": "read_mail", "arguments": dict[str, Any]()},
    "ProposedChanges": {"changes": [{"path": ["agents", "mailer", "role"], "value": "writes"}]},
    "ProposedText": {"text": "agents: {}", "digest": "0" * 64},
    "PastedServers": {"text": '{"mcpServers": {"a": {"command": "x"}}}'},
    "ClientFile": {"file": "mcp.json"},
    "TriedServer": {"server": "a"},
    "NewPerson": {"name": "zoe", "agents": ["mailer"], "replace": True},
    "AddedServers": {"servers": [{"server": "a"}], "agents": ["mailer"]},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One address with its method, what its query may have, and a request that fits."""

    method: str
    path: str
    given: dict[str, str]
    names: tuple[str, ...]
    segments: tuple[str, ...] = ()
    body: Any = None

    def request(self, **other: str) -> dict[str, Any]:
        """Return what sends the request, with other values than those that fit."""
        given = {**self.given, **other}
        path = self.path
        for segment in self.segments:
            path = path.replace(f"{{{segment}}}", quote(given.pop(segment), safe="", errors="surrogatepass") or "-")
        text = urlencode({name: value.encode(errors="surrogatepass") for name, value in given.items()})
        if self.method != "POST" or self.path.startswith("/api"):
            json = {} if self.body is None else {"json": self.body}
            return {"method": self.method, "url": f"{path}?{text}", **json}
        form = {"content-type": "application/x-www-form-urlencoded"}
        return {"method": self.method, "url": path, "content": text.encode(), "headers": form}


def _pages() -> list[Address]:
    found: list[Address] = []
    for page in PAGES:
        given = {**FITTING, "name": "post", "value": "off", **PAGE_VALUES.get(page.path, {})}
        source = inspect.getsource(sys.modules[page.handler.__module__])
        names = tuple(name for name in (*given, *FILTERS, *MOMENTS) if f'"{name}"' in source)
        segments = tuple(re.findall(r"\{(\w+)\}", page.path))
        found.append(Address(method=page.method, path=page.path, given=given, names=names, segments=segments))
    return found


def _endpoints() -> list[Address]:
    found: list[Address] = []
    for endpoint in ENDPOINTS:
        signature = signature_of(endpoint)
        names = tuple(field.name for field in fields(signature.query)) if signature.query is not None else ()
        values = {**FITTING, "name": "post", "value": "false"}
        wanted = [name for name in (*names, *signature.segments) if name in values]
        found.append(
            Address(
                method=endpoint.method,
                path=endpoint.path,
                given={name: values[name] for name in wanted},
                names=(*names, *signature.segments),
                segments=signature.segments,
                body=None if signature.body is None else BODIES[signature.body.__name__],
            )
        )
    return found


ADDRESSES = [address for address in (*_pages(), *_endpoints()) if address.path not in STREAMS]
CHANGING = [address for address in ADDRESSES if address.method != "GET"]


@dataclass(frozen=True, slots=True)
class Visitor:
    """A browser that is signed in, without a script."""

    client: httpx2.AsyncClient
    sign_in: SignIn

    async def send(self, address: Address, headers: dict[str, str] | None = None, /, **other: str) -> httpx2.Response:
        """Send a request with what a page of this sign-in carries."""
        request = address.request(**other)
        sent = {"x-csrf-token": self.sign_in.csrf, **request.pop("headers", {}), **(headers or {})}
        return await self.client.request(**request, headers=sent)


@asynccontextmanager
async def visitor(app: ConsoleApp, access: OperatorAccess, token: str) -> AsyncIterator[Visitor]:
    """Sign in with a token."""
    cookie = access.with_token(token)
    sign_in = access.signed_in(cookie)
    assert cookie is not None
    assert sign_in is not None
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url=ORIGIN) as client:
        client.cookies.set("pegboard_console_8321", cookie)
        yield Visitor(client, sign_in)


def label(address: Address) -> str:
    """Return what a test is called after."""
    return f"{address.method} {address.path}"
