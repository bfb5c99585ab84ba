"""A thin MCP client for both eras, over stdio and HTTP: it costs next to nothing itself."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

MODERN, HANDSHAKE = "2026-07-28", "2025-11-25"
LONGEST = 64 * 1024 * 1024
CLIENT = {"name": "bench", "version": "1"}


class CallError(Exception):
    """Say that a request was answered with an error, or not at all."""


class Wire(Protocol):
    """Move one JSON-RPC message there and its answer back."""

    async def request(self, message: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]: ...
    async def notify(self, message: dict[str, Any], headers: Mapping[str, str]) -> None: ...
    async def close(self) -> None: ...


@dataclass
class Client:
    """Speak MCP over a wire, in the newest era that the server knows."""

    wire: Wire
    era: str = ""
    instructions: str = ""
    session: str | None = None
    _last: int = 0

    async def connect(self, *, modern: bool = True, timeout: float = 60) -> None:
        """Find the era, and shake hands where the server wants that."""
        if modern:
            self.era = MODERN
            try:
                found = await self.request("server/discover", timeout=min(timeout, 20))
            except (CallError, TimeoutError):
                self.era = ""
            else:
                self.instructions = found.get("instructions") or ""
                return
        hello = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": CLIENT}
        found = await self.request("initialize", hello, timeout=timeout)
        self.era = found["protocolVersion"]
        self.instructions = found.get("instructions") or ""
        await self.wire.notify({"jsonrpc": "2.0", "method": "notifications/initialized"}, self._headers("", {}))

    async def request(
        self, method: str, params: dict[str, Any] | None = None, *, timeout: float = 60
    ) -> dict[str, Any]:
        """Return the result of a request; raises ``CallError`` or ``TimeoutError``."""
        self._last += 1
        params = dict(params or {})
        if self.era == MODERN:
            meta = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": CLIENT,
            }
            params["_meta"] = {**meta, **params.get("_meta", {})}
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        async with asyncio.timeout(timeout):
            answer = await self.wire.request(message, self._headers(method, params))
        self.session = answer.pop("_session", None) or self.session
        if "error" in answer:
            error = answer["error"]
            raise CallError(str(error.get("message", error) if isinstance(error, dict) else error)[:300])
        return answer["result"]

    def _headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        headers = {"mcp-protocol-version": self.era} if self.era else {}
        if self.era == MODERN:
            headers["mcp-method"] = method
            if "name" in params:
                headers["mcp-name"] = params["name"]
        elif self.session:
            headers["mcp-session-id"] = self.session
        return headers

    async def tools(self, *, timeout: float = 60) -> list[dict[str, Any]]:
        """Return the whole list."""
        found: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        while True:
            page = await self.request("tools/list", cursor, timeout=timeout)
            found += page["tools"]
            if not page.get("nextCursor"):
                return found
            cursor = {"cursor": page["nextCursor"]}

    async def call(self, name: str, arguments: dict[str, Any], *, timeout: float = 60) -> str:
        """Return the text of a result; raises ``CallError`` where the tool failed."""
        result = await self.request("tools/call", {"name": name, "arguments": arguments}, timeout=timeout)
        text = "\n".join(block.get("text", "") for block in result.get("content", ()))
        if result.get("isError"):
            raise CallError(text[:300])
        return text

    async def close(self) -> None:
        await self.wire.close()


@dataclass
class Stdio:
    """Speak with a child over its standard streams."""

    process: asyncio.subprocess.Process
    _waiting: dict[int, asyncio.Future[dict[str, Any]]] = field(default_factory=dict)
    _reader: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, command: Sequence[str], *, env: Mapping[str, str], cwd: Path, errors: Path) -> Stdio:
        with errors.open("ab") as file:
            process = await asyncio.create_subprocess_exec(
                *command, env={**os.environ, **env}, cwd=cwd, stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE, stderr=file, limit=LONGEST, start_new_session=True,
            )  # fmt: skip
        wire = cls(process)
        wire._reader = asyncio.create_task(wire._read())
        return wire

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if "method" in message:
                if "id" in message:
                    refusal = {"code": -32601, "message": "The benchmark has no such method."}
                    self._write({"jsonrpc": "2.0", "id": message["id"], "error": refusal})
            elif (waiting := self._waiting.pop(message.get("id"), None)) and not waiting.done():
                waiting.set_result(message)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(CallError("the gateway closed its output"))

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    async def request(self, message: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        if self._reader is not None and self._reader.done():
            raise CallError("the gateway closed its output")
        waiting = self._waiting[message["id"]] = asyncio.get_running_loop().create_future()
        try:
            self._write(message)
            return await waiting
        finally:
            self._waiting.pop(message["id"], None)

    async def notify(self, message: dict[str, Any], headers: Mapping[str, str]) -> None:
        self._write(message)

    async def close(self) -> None:
        """Close the input, as clients do; whoever started the child stops it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), 5)
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGTERM)
        if self._reader is not None:
            self._reader.cancel()


@dataclass
class Http:
    """Speak over HTTP with as many kept connections as there are requests in flight."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)
    _idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = field(default_factory=list)

    async def send(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str], number: int | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body; of a stream of events the one that answers ``number``."""
        where = urlsplit(self.url)
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof():
                break
            writer.close()
        else:
            reader, writer = await asyncio.open_connection(where.hostname, where.port, limit=LONGEST)
        keep = False
        try:
            lines = [f"{method} {path} HTTP/1.1", f"host: {where.netloc}", f"content-length: {len(body)}"]
            lines += [f"{key}: {value}" for key, value in {**self.headers, **headers}.items()]
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            answered = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in head[1:-2])}
            found, ended = await _body(reader, answered, number)
            keep = ended and answered.get("connection", "").lower() != "close"
            return int(head[0].split()[1]), answered, found
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise CallError(f"the connection broke: {type(error).__name__}") from None
        finally:
            if keep:
                self._idle.append((reader, writer))
            else:
                writer.close()

    async def request(self, message: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        where = urlsplit(self.url)
        status, answered, body = await self.send(
            "POST", f"{where.path}?{where.query}" if where.query else where.path,
            json.dumps(message, separators=(",", ":")).encode(), {**ACCEPTED, **headers}, message.get("id"),
        )  # fmt: skip
        try:
            answer = json.loads(body) if body.strip() else {}
        except ValueError:
            answer = {}
        if not isinstance(answer, dict) or ("id" in message and not ("result" in answer or "error" in answer)):
            raise CallError(f"HTTP {status}: {body[:200].decode(errors='replace')}")
        if "mcp-session-id" in answered:
            answer["_session"] = answered["mcp-session-id"]
        return answer

    async def notify(self, message: dict[str, Any], headers: Mapping[str, str]) -> None:
        await self.request(message, headers)

    async def close(self) -> None:
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()


ACCEPTED = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


async def _body(reader: asyncio.StreamReader, headers: dict[str, str], number: int | None) -> tuple[bytes, bool]:
    """Return a body and whether it was read to its end."""
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"])), True
    if headers.get("transfer-encoding") != "chunked":
        return b"", True
    events, whole = "text/event-stream" in headers.get("content-type", ""), b""
    answer: bytes | None = None
    while size := int(await reader.readuntil(b"\n"), 16):
        whole += await reader.readexactly(size)
        await reader.readline()
        if events and answer is None:
            answer = _answer(whole, number)
    await reader.readline()
    return (answer or b"") if events else whole, True


def _answer(stream: bytes, number: int | None) -> bytes | None:
    for event in stream.replace(b"\r\n", b"\n").split(b"\n\n")[:-1]:
        data = b"\n".join(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))
        with contextlib.suppress(ValueError):
            message = json.loads(data)
            if message.get("id") == number and "method" not in message:
                return data
    return None
