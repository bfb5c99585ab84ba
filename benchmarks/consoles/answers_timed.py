"""What an operator waits for: every page, the JSON addresses, and each keystroke of real requests."""

from __future__ import annotations

import asyncio
import json
import time
from urllib.parse import quote_plus, urlencode

import numpy as np

from benchmarks.consoles.site import FULL, KITS, Gateway
from benchmarks.consoles.visitors import Visitor
from benchmarks.scale import requests

Row = dict[str, object]
KEYSTROKE, PAGE = 150, 200
"""Targets: so many milliseconds an answer takes at most (p95)."""
LETTERS = 40
"""So many letters of a request are typed."""
OF_A_SESSION = urlencode({"principal": "person-0", "agent": FULL, "session": "thread-0"})
PAGES = {
    "now": "/console",
    "now, day": "/console?period=day",
    "now, week": "/console?period=week",
    "now, 90 days": "/console?period=quarter",
    "now, what needs somebody": "/console/overview/attention",
    "now, curves": "/console/overview/usage",
    "now, newest": "/console/overview/live",
    "agents": "/console/access",
    "switches": f"/console/agent?agent={FULL}",
    "switches, searched": f"/console/agent?agent={FULL}&q=list",
    "switches, tools of a plugin": f"/console/agent/members?agent={FULL}&kind=plugin&name=s3",
    "sessions": "/console/sessions",
    "sessions, words": "/console/sessions?q=person-7",
    "session": f"/console/session?{OF_A_SESSION}",
    "timeline": f"/console/session/timeline?{OF_A_SESSION}",
    "what the model sees": f"/console/session/sent?{OF_A_SESSION}",
    "tools, searched": "/console/tools?q=send+a+message",
    "tools, as an agent": f"/console/tools?agent={FULL}&q=send+a+message",
    "why, a plugin": f"/console/why?agent={KITS}&tool=plugin:s3",
    "found": "/console/find?q=send+a+message",
    "matrix": "/console/access/matrix",
    "matrix, a switch": "/console/access/set?kind=switch&name=toolkit:kit-s3&value=off",
    "edit": "/console/edit",
    "edit, an agent": f"/console/edit/form?section=agents&name={FULL}",
    "edit, the file": "/console/edit/file",
    "try": f"/console/try?agent={FULL}",
    "approvals": "/console/approvals",
    "approvals, ended": "/console/approvals/ended",
    "servers": "/console/servers",
    "server": "/console/server?name=s3",
    "pins": "/console/changed-tools",
    "add a server": "/console/servers/add",
    "configuration": "/console/settings",
    "audit": "/console/activity",
    "audit, of an agent": f"/console/activity?agent={FULL}&kind=call",
    "bill, by agent": "/console/cost",
    "bill, by day": "/console/cost?by=day&days=90",
    "bill, by principal": "/console/cost?by=principal&days=90",
    "bill, by session": "/console/cost?by=session&days=90",
}
JSON = {
    "/api/attention": "/api/attention",
    "/api/usage": "/api/usage",
    "/api/usage, a week": "/api/usage?period=week",
    "/api/agents": "/api/agents",
    "/api/agents/…/switches": f"/api/agents/{FULL}/switches",
    "/api/sessions": "/api/sessions",
    "/api/sessions/…": f"/api/session?{OF_A_SESSION}",
    "/api/search": f"/api/search?agent={FULL}&query=send+a+message",
    "/api/explain": f"/api/explain?agent={KITS}&name=plugin:s3",
    "/api/approvals": "/api/approvals",
    "/api/servers": "/api/servers",
    "/api/servers/s3": "/api/servers/s3",
    "/api/configuration": "/api/configuration",
    "/api/audit": "/api/audit",
    "/api/bill": "/api/bill",
    "/api/usage/servers": "/api/usage/servers",
    "/api/openapi.json": "/api/openapi.json",
}


def worked(pid: int) -> float:
    """Return the milliseconds of processor time that a process has had by now, its ended threads included."""
    return (
        time.clock_gettime_ns(~pid << 3 | 2) / 1e6
    )  # the clock of a process by its id, as clock_getcpuclockid(3) has it


async def timed(gateway: Gateway, visitor: Visitor, address: str, *, part: bool = False) -> tuple[float, float, int]:
    """Return the milliseconds of an answer, those that the gateway worked for it, and its status."""
    busy, began = worked(gateway.process.pid), time.perf_counter()
    status, _ = await visitor.get(address, part=part)
    return 1000 * (time.perf_counter() - began), worked(gateway.process.pid) - busy, status


async def measured(gateway: Gateway, visitor: Visitor, rounds: int) -> dict[str, list[Row]]:
    """Return the rows of pages, of JSON addresses and of keystrokes."""
    found: dict[str, list[Row]] = {}
    found["the first answer of each page"] = [await _once(gateway, visitor, name, at) for name, at in PAGES.items()]
    await _settled(visitor)
    found["pages"] = await _each(gateway, visitor, PAGES, rounds)
    found["JSON"] = await _each(gateway, visitor, JSON, rounds)
    texts = [query.text for query in requests(max(rounds // 2, 3))]
    found["keystrokes"] = [
        await _typed(gateway, visitor, f"page, {who}", f"/console/tools?agent={agent}&q=", texts)
        for who, agent in (("every agent", ""), ("one that may use all", FULL), ("one with toolkits", KITS))
    ]
    found["keystrokes"].append(
        await _typed(gateway, visitor, "JSON", f"/api/search?agent={FULL}&query=", texts),
    )
    return found


async def _settled(visitor: Visitor) -> None:
    """Return when everything is indexed and counted that the first answers began to."""
    while True:
        _, search = await visitor.get(JSON["/api/search"])
        _, servers = await visitor.get(JSON["/api/servers"])
        if not json.loads(search)["indexing"] and b'"tokens":null' not in servers:
            return
        await asyncio.sleep(0.5)


async def _once(gateway: Gateway, visitor: Visitor, name: str, address: str) -> Row:
    taken, busy, status = await timed(gateway, visitor, address)
    return {"page": name, "ms": round(taken), "CPU ms": round(busy), "status": status}


async def _each(gateway: Gateway, visitor: Visitor, addresses: dict[str, str], rounds: int) -> list[Row]:
    """Ask for each of them in turn, so many times; then right after a switch has changed."""
    again: dict[str, list[tuple[float, float, int]]] = {name: [] for name in addresses}
    after: dict[str, list[tuple[float, float, int]]] = {name: [] for name in addresses}
    for _ in range(rounds):
        for name, address in addresses.items():
            again[name].append(await timed(gateway, visitor, address))
    for number in range(max(rounds // 4, 3)):
        for name, address in addresses.items():
            await switched(visitor, on=number % 2 == 0)
            after[name].append(await timed(gateway, visitor, address))
    return [_row(name, again[name], after[name], PAGE) for name in addresses]


async def switched(visitor: Visitor, *, on: bool, name: str = "s3") -> None:
    """Turn a plugin of the full agent off, or take that back."""
    await visitor.put(f"/api/agents/{FULL}/switches", {"name": name, "value": None if on else False})


async def _typed(gateway: Gateway, visitor: Visitor, what: str, address: str, texts: list[str]) -> Row:
    part = address.startswith("/console")
    starts = (text[:end] for text in texts for end in range(1, min(len(text), LETTERS) + 1))
    found = [await timed(gateway, visitor, address + quote_plus(start), part=part) for start in starts]
    return {"what": what, "count": len(found), **_figures(found), "target p95": KEYSTROKE}


def _row(name: str, again: list[tuple[float, float, int]], after: list[tuple[float, float, int]], target: int) -> Row:
    wrong = sorted({status for _, _, status in (*again, *after)} - {200})
    return {
        "what": name,
        **_figures(again),
        **{f"after a switch {key}": value for key, value in _figures(after).items()},
        "target p95": target,
        "status": wrong or 200,
    }


def _figures(found: list[tuple[float, float, int]]) -> Row:
    return {
        "p50": round(float(np.percentile([taken for taken, _, _ in found], 50)), 1),
        "p95": round(float(np.percentile([taken for taken, _, _ in found], 95)), 1),
        "CPU p50": round(float(np.percentile([busy for _, busy, _ in found], 50)), 1),
        "CPU p95": round(float(np.percentile([busy for _, busy, _ in found], 95)), 1),
    }
