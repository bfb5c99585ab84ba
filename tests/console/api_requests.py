"""Requests to every address under ``/api``, good and bad, as the bytes that a program writes."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.client import HTTPResponse
from io import BytesIO
from typing import Any, NamedTuple

HOST = "127.0.0.1:8321"
FOREIGN = "http://127.0.0.1:8322"
TOKENS = {
    "root": "root-root-root-root-root",
    "ada": "ada-ada-ada-ada-ada-ada",
    "bob": "bob-bob-bob-bob-bob-bob",
    "eve": "eve-eve-eve-eve-eve-eve",
    "nobody": "nobody-nobody-nobody",
}
JSON = {"Content-Type": "application/json"}
OF_CARL = "agent=mailer&session=s%2F1&principal=carl"
SWITCHES = "/api/agents/mailer/switches"
ODD = "/api/agents/a%25%20b%20%C3%A9/switches"
OFF = {"name": "post", "value": False}
PATHS = {
    "/api/agents": "GET",
    SWITCHES: "GET, PUT",
    f"{SWITCHES}/members": "GET",
    f"{SWITCHES}/preview": "GET",
    "/api/matrix": "GET, POST",
    "/api/matrix/preview": "GET",
    "/api/matrix/undo": "POST",
    "/api/try": "GET, POST",
    "/api/sessions": "GET",
    "/api/session": "GET",
    "/api/session/load": "POST",
    "/api/session/unload": "POST",
    "/api/session/end-turn": "POST",
    "/api/session/loadout": "POST",
    "/api/session/delete": "POST",
    "/api/search": "GET",
    "/api/explain": "GET",
    "/api/approvals": "GET",
    "/api/approvals/ended": "GET",
    "/api/approvals/none": "GET",
    "/api/approvals/none/allow": "POST",
    "/api/approvals/none/refuse": "POST",
    "/api/servers": "GET",
    "/api/servers/clock": "GET",
    "/api/servers/clock/log": "GET",
    "/api/servers/clock/restart": "POST",
    "/api/configuration": "GET",
    "/api/pins": "GET",
    "/api/pins/plain": "GET",
    "/api/pins/plain/echo": "GET",
    "/api/pins/plain/accept": "POST",
    "/api/pins/plain/echo/accept": "POST",
    "/api/audit": "GET",
    "/api/audit/export": "GET",
    "/api/bill": "GET",
    "/api/usage/servers": "GET",
    "/api/events": "GET",
    "/api/openapi.json": "GET",
}
"""Every address with its methods; one segment stands for all that an address with a name may have."""
BODIES = {
    "/api/matrix": {"kind": "switch", "name": "post", "value": False, "agent": "mailer"},
    "/api/matrix/undo": {"mark": "0"},
    "/api/try": {"agent": "mailer", "tool": "read_mail", "arguments": {}},
    SWITCHES: OFF,
    "/api/session/load": {"names": ["post"]},
    "/api/approvals/none/allow": {},
}
"""Addresses with a body, and one that fits."""
OTHER_MISFITS: Mapping[str, tuple[object, ...]] = {
    f"/api/session/load?{OF_CARL}": (
        {"names": []},
        {"names": ["post"] * 101},
        {"names": "post"},
        {"names": [1, None]},
        {"names": ["post"], "keep": "forever"},
        {"names": ["post"], "keep": 1, "more": 2},
    ),
    f"/api/session/unload?{OF_CARL}": ({"names": ["post"], "keep": "turn"}, {"names": {"post": 1}}),
    f"/api/session/loadout?{OF_CARL}": ({}, {"loadout": 1}, {"loadout": ["minimal"]}),
    "/api/approvals/none/allow": ({"lasts": "ever"}, {"fields": []}, {"fields": {"a": 1}, "expected": "gone"}),
    "/api/matrix": ({"kind": "switch"}, {"kind": "switch", "name": "post", "value": "x"}, {"kind": 1, "value": True}),
    "/api/try": ({"agent": "mailer", "tool": "read_mail"}, {"agent": "mailer", "tool": "x", "arguments": []}),
    "/api/approvals/none/refuse": ({"reason": 1}, {"reason": None}, {"expected": ""}),
}
QUERIES = {
    SWITCHES: ("limit=0", "limit=501", "limit=many", "limit=", "limit=%2B1", "limit=1.0", "limit=1e1", "limit=%D9%A3",
               "limit=1;offset=1", "offset=-1", "offset=1_0", "offset=" + "9" * 5000, "query=%ff", "&&", "quer=mail",
               "query", "query=READ&query=mail", "limit=1&limit=1&x=1&x=2", "x=1&limit=0", "%3Cx%3E=1"),
    f"{SWITCHES}/members": ("", "kind=tool&name=post", "kind=toolkit", "name=post", "kind=toolkit&name=none",
                            "kind=TOOLKIT&name=post&limit=x&y=z"),
    f"{SWITCHES}/preview": ("", "name=post&value=maybe", "name=post&value=True", "name=pots&value=true",
                            "name=&value=true", "name=post&value=null&value=null"),
    "/api/matrix/preview": ("", "kind=switch&name=pots&value=true", "kind=pause&value=maybe", "kind=x&value=true",
                            "kind=pause&name=post&value=true", "kind=switch&name=post&value=false&agent=nobody"),
    "/api/try": ("", "agent=mailer", "agent=nobody&tool=read_mail", "agent=mailer&tool=none"),
    "/api/sessions": ("agent=nobody", "principal=none", "offset=1", "limit=x&offset=y", "query=CARL"),
    "/api/session": ("", "agent=mailer", "agent=mailer&session=none", f"{OF_CARL}&principal=carl", f"{OF_CARL}&x=1"),
    "/api/search": ("", "agent=mailer", "agent=nobody&query=mail", "agent=mailex&query=mail",
                    "agent=mailer&query=mail&limit=101", "agent=mailer&query=&limit=1", "agent=mailer&query=+",
                    "agent=mailer&query=zzzz"),
    "/api/explain": ("agent=mailer", "name=send_mail", "agent=mailer&name=%3Cnothing%3E",
                     "agent=mailer&name=send_mail&sub_app=none", "agent=nobody&name=send_mail"),
    "/api/approvals": ("agnet=mailer", "agent=nobody", "limit=501", "limit=1&offset=-1"),
    "/api/approvals/ended": ("agent=deskless", "limit=0", "x=1"),
    "/api/servers": ("x=1", "x=1&x=1"),
    "/api/servers/clok": ("",),
    "/api/servers/clok/log": ("",),
    "/api/configuration": ("x=1",),
    "/api/pins": ("x=1", "server=plan", "limit=0", "offset=-1"),
    "/api/pins/plan": ("",),
    "/api/pins/plain/eco": ("",),
    "/api/audit": ("kind=none", "kind=&agent=mailer&limit=1&kind=", "since=2020-01-01", "since=2020-01-01T00:00:00",
                   "since=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00%2B02:00", "since=yesterday",
                   "since=1577836800", "before=-1", f"before={2**63}", f"after={2**63 - 2}", "limit=1001",
                   "agent=nobody", "before=1&after=1"),
    "/api/audit/export": ("format=xml", "format=csv&limit=1", "agent=nobody", "agent=deskless&format=csv&kind=switch",
                          "agent=deskless&until=2020-01-01T00:00:00Z", "format=jsonl&format=csv"),
    "/api/bill": ("by=week", "since=2020-01-01T00:00:00&until=2020-02-01", "since=2020-01-01T10:00:00",
                  "since=2020-02-30", "since=2020-01-01&until=2020-01-02", "limit=0", "agent=nobody"),
    "/api/usage/servers": ("x=1",),
}  # fmt: skip
ODD_ADDRESSES = (
    "/api", "/api/", "/api/nowhere", "/api/agents/", "//api/agents", "/api//agents", "/api/agents;x", "/api/agents%2F",
    "/API/agents", "/api/agents/mailer", "/api/agents//switches", "/api/agents/%/switches", "/api/agents/%zz/switches",
    "/api/agents/%ff/switches", "/api/agents/nobody%2F/switches", "/api/agents/mailex/switches",
    "/api/agents/%E2%80%AE%3Cb%3E/switches", f"/api/agents/{'x' * 3000}/switches", "/api/agents/%2e%2e/switches",
    "/api/agents/../agents", "/api/agents%3Fx=1", "/api/agents?x=1#y", "/api/agents/mailer/switches/",
    "/api/agents/{agent}/switches", "/api/approvals/%2Fended", "/api/approvals//", "/api/servers/a%2Fb/log",
    "/api/docs", "/docs", "/redoc", "/openapi.json",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request; ``by`` is whose token it bears, or none for an empty text."""

    target: str
    method: str = "GET"
    by: str = "ada"
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    chunked: bool = False

    def __str__(self) -> str:
        """Return the request in one line, for messages of tests."""
        more = "".join(f" {name}: {value}" for name, value in self.headers.items())
        body = "" if self.body is None else f" {len(self.body)} bytes {self.body[:80].decode('latin-1')}"
        return f"{self.by or '-'} {self.method} {self.target[:200]}{more}{' chunked' if self.chunked else ''}{body}"

    def written(self) -> bytes:
        """Return its bytes."""
        bearer = {"Authorization": f"Bearer {TOKENS[self.by]}"} if self.by else {}
        headers = {"Host": HOST, "Connection": "close", **bearer, **self.headers}
        if self.body is not None:
            headers |= {"Transfer-Encoding": "chunked"} if self.chunked else {"Content-Length": str(len(self.body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()
        body = self.body or b""
        if self.chunked:
            parts = [part for part in (body[:5], body[5:]) if part]
            body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (*parts, b""))
        return f"{self.method} {self.target} HTTP/1.1\r\n".encode() + head + b"\r\n" + body


class Answer(NamedTuple):
    """What came back."""

    status: int
    content_type: str
    body: bytes


def fitting(target: str, given: object, *, method: str = "POST", by: str = "ada") -> Asked:
    """Return a request with a JSON body."""
    return Asked(target=target, method=method, by=by, headers=JSON, body=json.dumps(given).encode())


def reading() -> Iterator[Asked]:
    """Yield requests that fit and change nothing."""
    for path, methods in PATHS.items():
        if "GET" in methods and path not in ("/api/events", "/api/openapi.json"):
            yield Asked(target=path, by="root")
    for target in (
        f"{SWITCHES}/members?kind=toolkit&name=post&query=READ",
        f"{SWITCHES}?query=no+such+thing",
        f"{SWITCHES}?limit=1&offset=1",
        f"{SWITCHES}/preview?name=post&value=false",
        ODD,
        "/api/sessions?agent=mailer&query=CARL&limit=500",
        f"/api/session?{OF_CARL}",
        "/api/search?agent=mailer&query=add_time",
        "/api/search?agent=mailer&query=send+a+mail&limit=3&principal=carl&session=s",
        f"/api/explain?{OF_CARL}&name=send_mail",
        "/api/approvals?agent=mailer&limit=1",
        "/api/audit?agent=mailer&limit=2",
        "/api/audit?kind=call&text=READ",
        "/api/audit/export?agent=mailer",
        "/api/audit/export?agent=mailer&kind=call&format=csv",
        "/api/bill?by=agent",
        "/api/bill?by=session&agent=mailer&limit=1",
    ):
        yield Asked(target=target)


def refused() -> Iterator[Asked]:
    """Yield requests of those who may not, or with methods that there are not; none changes anything."""
    for at, (path, methods) in enumerate(PATHS.items()):
        body: dict[str, Any] = {"headers": JSON, "body": json.dumps(BODIES[path]).encode()} if path in BODIES else {}
        first = methods.rpartition(" ")[2]
        for by in ("", "nobody", "eve") if at < 3 else ("", "eve"):  # further wrong tokens are answered late
            yield Asked(target=path, method=first, by=by, **body)
        if path not in ("/api/events", "/api/openapi.json"):
            yield Asked(target=f"{path}?x=1&x=1", method=first, by="bob", **body)
        for method in ("HEAD", "OPTIONS", "DELETE", "PATCH", "POST" if first == "GET" else "GET"):
            if (path, method) != ("/api/openapi.json", "HEAD"):
                yield Asked(target=path, method=method)
        yield Asked(target=f"{path}/", method=first)
        yield Asked(target=path, method=first, headers={"Origin": "http://evil.example"})
    for target in ODD_ADDRESSES:
        yield Asked(target=target)
        yield Asked(target=target, by="")
    for path, methods in PATHS.items():
        if path not in ("/api/events", "/api/openapi.json", "/api/agents"):
            query = "agent=mailer&session=s&name=send_mail&query=x"
            yield Asked(target=f"{path}?{query}", method=methods[:4].strip(", "), by="bob")
    for headers in ({"Origin": FOREIGN}, {"HX-Request": "true"}, {"Accept": "text/html"},
                    {"Authorization": "Basic eA=="}, {"Authorization": "bearer  " + TOKENS["ada"]},
                    {"Host": "evil.example"}, {"Range": "bytes=0-1"},
                    {"If-None-Match": "*"}, {"Accept-Encoding": "gzip"}):  # fmt: skip
        yield Asked(target=SWITCHES, headers=headers)
        yield Asked(target="/api/nowhere", headers=headers)


def misfits() -> Iterator[Asked]:
    """Yield queries and bodies that do not fit."""
    for path, queries in QUERIES.items():
        for query in queries:
            yield Asked(target=f"{path}?{query}", by="root" if path.startswith(("/api/serv", "/api/conf")) else "ada")
    for target, bodies in OTHER_MISFITS.items():
        for body in bodies:
            yield fitting(target, body)
        yield Asked(target=f"{target.partition('?')[0]}?agent=&x=1", method="POST", headers=JSON, body=b"{")
        yield fitting(f"{target.partition('?')[0]}?x=1", {"names": ["post"], "loadout": None})


def changing() -> Iterator[Asked]:
    """Yield requests that change something, each after the others; ``{pay}`` and the like are approvals."""
    on, back = {"name": "post", "value": True}, {"name": "post", "value": None}
    for body in (OFF, on, back, {**OFF, "expected": None}, {**on, "expected": None}, {**back, "expected": "any"},
                 {"name": "", "value": True}, {"name": "pots", "value": None},
                 {"name": "mail", "value": False}):  # fmt: skip
        yield fitting(SWITCHES, body, method="PUT")
    yield fitting(ODD, {"name": "clock", "value": True}, method="PUT", by="bob")
    yield Asked(target=SWITCHES)
    yield fitting(SWITCHES, {"name": "mail", "value": None}, method="PUT")
    for action, body in (
        ("load", {"names": ["post", "nothing"], "keep": "session"}), ("load", {"names": ["post"]}),
        ("unload", {"names": ["post", "add_time"]}), ("end-turn", None), ("loadout", {"loadout": "minimal"}),
        ("loadout", {"loadout": "nothing"}), ("loadout", {"loadout": None}),
    ):  # fmt: skip
        target = f"/api/session/{action}?{OF_CARL}"
        yield Asked(target=target, method="POST") if body is None else fitting(target, body)
    yield Asked(target=f"/api/session/end-turn?{OF_CARL}", method="POST", headers=JSON, body=b"{ignored")
    yield Asked(target=f"/api/session?{OF_CARL}")
    yield Asked(target="/api/approvals/{send}")
    yield fitting("/api/approvals/{send}/allow", {"expected": "allowed"})
    yield fitting("/api/approvals/{send}/allow", {"fields": {}, "lasts": "session"}, by="bob")
    yield fitting("/api/approvals/{send}/allow", {"expected": "waiting"})
    yield fitting("/api/approvals/{pay}/allow", {"fields": {"cod": 1}})
    yield fitting("/api/approvals/{pay}/allow", {"fields": {"code": "1234"}})
    yield fitting("/api/approvals/{pay}/allow", {"fields": {"code": "1"}, "lasts": "always"})
    yield fitting("/api/approvals/{pay}/refuse", {"reason": "Not\u202e <b>today"})
    yield fitting("/api/approvals/{pay}/refuse", {})
    yield Asked(target="/api/approvals/ended")
    yield Asked(target="/api/approvals")
    yield Asked(target="/api/servers/plain", by="root")
    yield Asked(target="/api/servers/plain/restart", method="POST", by="root")
    yield Asked(target="/api/servers/plain/log", by="root")
    yield Asked(target="/api/servers/clock/restart", method="POST", by="root")
    yield Asked(target="/api/servers/none/restart", method="POST", by="root", headers=JSON, body=b"{")
    yield Asked(target=f"/api/session/delete?{OF_CARL}", method="POST")
    yield Asked(target=f"/api/session/delete?{OF_CARL}", method="POST")
    yield Asked(target=f"/api/session?{OF_CARL}")
    yield fitting(f"/api/session/load?{OF_CARL}", {"names": ["post"]})
    yield Asked(target="/api/audit?agent=mailer&kind=permission")
    yield Asked(target="/api/audit?kind=server", by="root")
    yield Asked(target="/api/bill")


def without_a_store() -> Iterator[Asked]:
    """Yield requests that fit, for a store that is gone."""
    for path, methods in PATHS.items():
        if path not in ("/api/events", "/api/openapi.json"):
            query = (
                "?agent=mailer&session=s&name=send_mail&query=mail" if path in ("/api/explain", "/api/search") else ""
            )
            yield Asked(target=f"{path}{query}", method=methods[:4].strip(", "), by="root")
    yield fitting(SWITCHES, OFF, method="PUT")
    yield fitting(f"/api/session/load?{OF_CARL}", {"names": ["post"]})
    yield Asked(target=f"/api/session/delete?{OF_CARL}", method="POST")
    yield Asked(target="/api/audit/export", method="HEAD")


async def sent(asked: Asked, port: int, names: Mapping[str, str]) -> Answer:
    """Send a request to a port and return the answer; ``names`` are what stands for ids in its address."""
    target = asked.target
    for name, value in names.items():
        target = target.replace(name, value)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    reading = asyncio.create_task(reader.read())
    with suppress(ConnectionError):  # a body that is too large is not read to its end
        writer.write(replace(asked, target=target).written())
        await writer.drain()
    response = HTTPResponse(_Received(await reading), method=asked.method)  # type: ignore[arg-type]
    writer.close()
    response.begin()
    body = response.read()
    return Answer(response.status, response.getheader("content-type", ""), body)


class _Received:
    """A connection that has received all."""

    def __init__(self, received: bytes) -> None:
        self._received = received

    def makefile(self, mode: str) -> BytesIO:
        return BytesIO(self._received)
