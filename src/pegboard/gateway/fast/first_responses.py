"""The first answers of a gateway over stdio, before the SDK is imported.

Importing the SDK takes longer than everything else at the start. A client's first requests are known:
what is plainly well-formed among them is answered here, as the SDK would answer it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from pegboard.core.model.delivery import GATEWAY, GATEWAY_HANDSHAKE
from pegboard.core.model.labels import label_problem
from pegboard.errors import PegboardError
from pegboard.gateway.protocol import convert
from pegboard.gateway.protocol.jsonrpc import Message, parsed
from pegboard.gateway.protocol.request_identity import DEFAULT_SESSION, MODERN, SESSION_KEY

if TYPE_CHECKING:
    from pegboard.gateway.protocol.board_port import BoardPort, Caller
    from pegboard.ports import SessionKey

VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT: Final = "io.modelcontextprotocol/clientInfo"
SERVER: Final = "io.modelcontextprotocol/serverInfo"
TTL_MS: Final = 2_000
"""For how long a client may take a list as fresh; whoever subscribes is told of changes at once."""

Write = Callable[[bytes], None]
_HANDSHAKES: Final = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"})
_ENVELOPE: Final = frozenset({VERSION, CAPABILITIES, CLIENT, SESSION_KEY})
_PATIENCE: Final = 0.3
"""For how long the first message is awaited before the SDK is imported anyway, in seconds."""


@dataclass(slots=True)
class FirstResponses:
    """Answer what can be answered early; ``rest`` is for the SDK, in order.

    ``answered`` are ids that the SDK is to read, and its answers to be dropped. ``modern`` is the era
    that the first request decided, ``listed`` the session that a client of the handshake era was
    listed, and the digest of the list.
    """

    board: BoardPort
    caller: Caller
    modern: bool | None = None
    rest: list[bytes | None] = field(default_factory=list[bytes | None])
    answered: set[str | int] = field(default_factory=set[str | int])
    listed: tuple[SessionKey, str] | None = None
    has_list: bool = False

    def awaited(self) -> bool:
        """Return whether the SDK has anything to answer among what is left for it."""
        return any(line is not None and self._asks(line) for line in self.rest)

    def _asks(self, line: bytes) -> bool:
        message = parsed(line)
        return message is None or ("id" in message and message["id"] not in self.answered)

    async def answer(self, line: bytes) -> Message | None:
        """Return the answer to a line, or None where it is left to the SDK."""
        message = parsed(line)
        if message is None or message.keys() - {"jsonrpc", "id", "method", "params"} or message.get("jsonrpc") != "2.0":
            return None
        number, params = message.get("id"), message.get("params", {})
        if type(number) not in (int, str) or type(params) is not dict:
            return None
        params, number = cast("Message", params), cast("str | int", number)
        result = await self._result(str(message.get("method")), params)
        if result is None:
            return None
        if message["method"] == "initialize":
            self.answered.add(number)
            self.rest.append(line)
        return {"jsonrpc": "2.0", "id": number, "result": result}

    async def _result(self, method: str, params: Message) -> Message | None:
        meta = params.get("_meta", {})
        if type(meta) is not dict:
            return None
        meta = cast("Message", meta)
        try:
            if method == "initialize" and self.modern is None:
                return await self._initialize(params)
            if self.modern is not False and method in ("tools/list", "server/discover"):
                return await self._modern(method, params, meta)
            if self.modern is False and method == "tools/list" and not params.keys() - {"_meta"} and not meta:
                return await self._list(self.caller.session or DEFAULT_SESSION, modern=False)
        except PegboardError:
            pass
        return None

    async def _initialize(self, params: Message) -> Message | None:
        version, declared = params.get("protocolVersion"), params.get("capabilities")
        if version not in _HANDSHAKES or not _objects(declared) or not _named(params.get("clientInfo")):
            return None
        self.modern = False
        said = await self._instructions(modern=False)
        return {
            "protocolVersion": version,
            "capabilities": capabilities(),
            "serverInfo": server_info(),
            "instructions": said,
        }

    async def _modern(self, method: str, params: Message, meta: Message) -> Message | None:
        plain = not params.keys() - {"_meta"} and not meta.keys() - _ENVELOPE and meta.get(VERSION) == MODERN
        if not plain or not _objects(meta.get(CAPABILITIES)) or not (CLIENT not in meta or _named(meta[CLIENT])):
            return None
        session = meta.get(SESSION_KEY, self.caller.session or DEFAULT_SESSION)
        if label_problem(session):
            return None
        result: Message = {"cacheScope": "private" if self.board.configuration.tokens else "public"}
        about: Message = {}
        if method == "tools/list":
            result |= {"resultType": "complete", **await self._list(session, modern=True)}
        else:
            about["instructions"] = await self._instructions(modern=True)
            result |= {"capabilities": capabilities(), "resultType": "complete", "supportedVersions": [MODERN]}
        self.modern = True
        return {**result, "ttlMs": TTL_MS, "_meta": {SERVER: server_info()}, **about}  # in the SDK's order

    async def _list(self, session_id: str, *, modern: bool) -> Message:
        session = await self._session(session_id, modern=modern)
        tools = convert.tools_of(await session.surface(loaded=not modern), modern=modern)
        self.has_list = True
        if not modern:
            self.listed = session.key, convert.digest(tools)
        return {"tools": tools}

    async def _instructions(self, *, modern: bool) -> str:
        session = await self._session(self.caller.session or DEFAULT_SESSION, modern=modern)
        return await session.instructions()

    async def _session(self, session_id: str, *, modern: bool) -> Any:
        return await self.board.session(
            agent=self.caller.agent,
            session_id=session_id,
            principal=self.caller.principal,
            host=GATEWAY if modern else GATEWAY_HANDSHAKE,
        )


def _objects(value: object) -> bool:
    """Return whether a value is an object of objects, as capabilities are."""
    return isinstance(value, dict) and all(isinstance(v, dict) for v in cast("Message", value).values())


def _named(value: object) -> bool:
    """Return whether a value says who a client is."""
    if not isinstance(value, dict):
        return False
    client = cast("Message", value)
    return isinstance(client.get("name"), str) and isinstance(client.get("version"), str)


def capabilities() -> Message:
    """Return what the gateway says that it can."""
    return {  # in the SDK's order: answers are compared byte for byte
        "completions": {},
        "logging": {},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "tools": {"listChanged": True},
    }


def server_info() -> Message:
    """Return who answers."""
    from pegboard.version import __version__

    return {"name": "pegboard", "title": "Pegboard", "version": __version__}


def preload_sdk() -> None:
    """Import what serves; it takes most of the time of a start."""
    import pegboard.gateway.stdio.dispatcher  # noqa: F401  # pyright: ignore[reportUnusedImport]


async def serve_until_sdk(
    lines: asyncio.Queue[bytes | None], start: FirstResponses, write: Write, stop: asyncio.Event
) -> bool:
    """Answer what can be answered early; return whether the SDK, imported by then, is to go on.

    It is imported once a client has its list, wants what only the SDK knows, or says nothing for a
    while: in the thread of the loop, since imports in two threads at once can break each other.
    """
    stopped = asyncio.ensure_future(stop.wait())
    line = asyncio.ensure_future(lines.get())
    try:
        while not stopped.done():
            await asyncio.wait({line, stopped}, timeout=_PATIENCE, return_when=asyncio.FIRST_COMPLETED)
            quiet = not line.done()
            if not quiet:
                await _take(line.result(), start, write)
                line = asyncio.ensure_future(lines.get())
            ended = bool(start.rest) and start.rest[-1] is None
            if ended and not start.awaited():
                return False
            if ended or quiet or start.awaited() or (start.has_list and lines.empty()):
                break
    finally:
        line.cancel()
        stopped.cancel()
        await asyncio.wait({line})
    if stop.is_set():
        return False
    preload_sdk()
    return True


async def _take(line: bytes | None, start: FirstResponses, write: Write) -> None:
    answer = await start.answer(line) if line is not None and line.strip() else None
    if answer is not None:
        from pegboard.gateway.protocol.jsonrpc import dumped

        write(dumped(answer) + b"\n")
    elif line is None or line.strip():
        start.rest.append(line)
