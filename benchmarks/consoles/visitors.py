"""Operators at the console: requests with a cookie, and open pages that ask for their parts as the script does.

``python -m benchmarks.consoles.visitors ORIGIN COOKIE ADDRESS …`` opens these pages for each line ``open`` on its input
and closes them for each other one.
"""

from __future__ import annotations

import asyncio
import html
import json
import re
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from benchmarks.gateways.clients import Http

LIVE = re.compile(r'data-live="([^"]*)"\s+hx-get="([^"]*)"')
STREAM = re.compile(r'data-events="([^"]*)"')
PATIENCE = 60.0
"""How long pages may take to open, in seconds."""
CSRF = re.compile(r'name="csrf" value="([^"]*)"')


@dataclass
class Visitor:
    """An operator who is signed in."""

    origin: str
    cookie: str = ""
    csrf: str = ""
    _wire: Http = field(init=False)

    def __post_init__(self) -> None:
        self._wire = Http(self.origin)

    async def sign_in(self, code: str) -> float:
        """Sign in with a one-time code; return the seconds until the first page was there."""
        began = time.perf_counter()
        _, headers, _ = await self._wire.send("GET", f"/console/sign-in?code={code}", b"", {})
        self.cookie = headers["set-cookie"].partition(";")[0]
        _, page = await self.get("/console/access")
        taken = time.perf_counter() - began
        found = CSRF.search(page.decode())
        assert found is not None
        self.csrf = found[1]
        return taken

    async def get(self, address: str, *, part: bool = False) -> tuple[int, bytes]:
        """Return status and body of an answer; of a part of a page as its script asks for it."""
        headers = {"cookie": self.cookie, **({"hx-request": "true"} if part else {})}
        status, _, body = await self._wire.send("GET", address, b"", headers)
        return status, body

    async def put(self, address: str, content: object) -> dict[str, Any]:
        """Send JSON, and return the answer; raises ``RuntimeError`` where it was refused."""
        headers = {"cookie": self.cookie, "x-csrf-token": self.csrf, "content-type": "application/json"}
        status, _, body = await self._wire.send("PUT", address, json.dumps(content).encode(), headers)
        if status != 200:
            raise RuntimeError(f"{address}: {status} {body.decode()}")
        return json.loads(body)

    async def close(self) -> None:
        await self._wire.close()


@dataclass
class OpenPage:
    """A page that is open: its stream, and what it asks for when something has changed."""

    visitor: Visitor
    address: str
    refreshed: int = 0
    there: asyncio.Event = field(default_factory=asyncio.Event)

    async def stay(self) -> None:
        """Load the page and follow the stream until this is cancelled."""
        status, body = await self.visitor.get(self.address)
        assert status == 200, (self.address, status)
        parts = [(topics.split(), html.unescape(address)) for topics, address in LIVE.findall(body.decode())]
        stream = STREAM.search(body.decode())
        assert stream is not None, self.address
        where = urlsplit(self.visitor.origin)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        try:
            head = f"GET {stream[1]} HTTP/1.1\r\nhost: {where.netloc}\r\ncookie: {self.visitor.cookie}\r\n\r\n"
            writer.write(head.encode())
            while line := (await reader.readline()).decode():
                self.there.set()
                if line.startswith("data: ["):
                    await self._refresh(set(json.loads(line.removeprefix("data: "))), parts)
        finally:
            writer.close()

    async def _refresh(self, topics: set[str], parts: list[tuple[list[str], str]]) -> None:
        for about, address in parts:
            if topics & set(about):
                await self.visitor.get(address, part=True)
                self.refreshed += 1


async def main(origin: str, cookie: str, addresses: list[str]) -> None:
    """Open and close pages as the input says."""
    loop, pages, staying = asyncio.get_running_loop(), list[OpenPage](), list[asyncio.Task[None]]()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        if line.strip() == "open":
            pages = [OpenPage(Visitor(origin, cookie), address) for address in addresses]
            staying = [asyncio.create_task(page.stay()) for page in pages]
            for page in pages:
                async with asyncio.timeout(PATIENCE):
                    await page.there.wait()
            print(json.dumps({"opened": len(pages)}), flush=True)
        else:
            for task in staying:
                task.cancel()
            for task in staying:
                with suppress(asyncio.CancelledError, Exception):
                    await task
            for page in pages:
                await page.visitor.close()
            print(json.dumps({"refreshed": sum(page.refreshed for page in pages)}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
