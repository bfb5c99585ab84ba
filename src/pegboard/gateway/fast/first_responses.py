"""The first answers of a gateway over stdio, before the SDK is imported.

Importing the SDK takes longer than everything else at the start. A client's first requests are known:
what is plainly well-formed among them is answered here, as the SDK would answer it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, cast

from pegboard.core.access.listed_items import METHODS, PAGE_KEYS
from pegboard.core.model.naming import label_problem
from pegboard.errors import PegboardError
from pegboard.gateway.clients.only_client import asking_sources
from pegboard.gateway.handlers.session_pool import SessionPool
from pegboard.gateway.handlers.turns import SessionTurns
from pegboard.gateway.protocol import convert
from pegboard.gateway.protocol.early_answers import EarlyAnswers, EarlyList
from pegboard.gateway.protocol.jsonrpc import Message, dump_message, parse_message
from pegboard.gateway.protocol.request_identity import TTL_MS, declares_ui, with_client
from pegboard.ports import LOG_LEVELS
from pegboard.support.mcp_constants import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    HANDSHAKE_VERSIONS,
    MODERN,
    SERVER_KEY,
    SESSION_KEY,
    VERSION_KEY,
)
from pegboard.support.version import __version__

if TYPE_CHECKING:
    from pegboard.core.access.listed_items import ListKind
    from pegboard.gateway.protocol.board_port import BoardPort, Caller


Write = Callable[[bytes], None]
_SET_LEVEL: Final = "logging/setLevel"
_REPLAYED: Final = frozenset({"initialize", _SET_LEVEL})
"""What the SDK has to know of, though it was answered: it hears the request again."""
_ENVELOPE: Final = frozenset({VERSION_KEY, CAPABILITIES_KEY, CLIENT_KEY, SESSION_KEY})
_KINDS: Final[Mapping[str, ListKind]] = {method: kind for kind, method in METHODS.items()}
_LISTS: Final = frozenset({"tools/list", *_KINDS})
_QUIET: Final = 0.4
"""For how long no message comes before the SDK is imported anyway, in seconds: then no one waits for the import."""
MOST_ANSWERS: Final = 64
"""How many requests are answered before the SDK is imported: who asks on and on is to be notified of changes."""


@dataclass(slots=True)
class FirstResponses:
    """The answers to the first requests of one caller; ``early`` is what the SDK has to know of them later."""

    board: BoardPort
    caller: Caller
    early: EarlyAnswers = field(default_factory=EarlyAnswers)
    answers: int = 0
    _sessions: SessionPool = field(init=False)
    _turns: SessionTurns = field(init=False)

    def __post_init__(self) -> None:
        """Begin without a session."""
        self._sessions = SessionPool(self.board)
        self._turns = SessionTurns(self.board.services.store)

    def sdk_needed(self) -> bool:
        """Return whether the SDK has anything to answer among the rest."""
        return any(line is not None and self._is_unanswered(line) for line in self.early.rest)

    def _is_unanswered(self, line: bytes) -> bool:
        message = parse_message(line)
        return message is None or ("id" in message and message["id"] not in self.early.answered)

    async def answer(self, line: bytes) -> Message | None:
        """Return the answer to a line, or None where it is left to the SDK."""
        message = parse_message(line)
        if message is None or message.keys() - {"jsonrpc", "id", "method", "params"} or message.get("jsonrpc") != "2.0":
            return None
        number, params = message.get("id"), message.get("params", {})
        if type(number) not in (int, str) or type(params) is not dict:
            return None
        params, number = cast("Message", params), cast("str | int", number)
        result = await self._result(str(message.get("method")), params)
        if result is None:
            return None
        self.answers += 1
        if message["method"] in _REPLAYED:
            self.early.answered.add(number)
            self.early.rest.append(line)
        return {"jsonrpc": "2.0", "id": number, "result": result}

    async def _result(self, method: str, params: Message) -> Message | None:
        meta = params.get("_meta", {})
        if type(meta) is not dict:
            return None
        meta = cast("Message", meta)
        try:
            if method == "initialize" and self.early.modern is None:
                return await self._initialize(params)
            if self.early.modern is not False and (method in _LISTS or method == "server/discover"):
                return await self._modern(method, params, meta)
            if self.early.modern is False and not meta:
                return await self._handshake(method, {key: value for key, value in params.items() if key != "_meta"})
        except PegboardError:
            pass
        return None

    async def _handshake(self, method: str, params: Message) -> Message | None:
        if method in _LISTS and not params:
            return await self._list(method, self.caller.usual_session, modern=False)
        plain = method == "ping" and not params
        return {} if plain or (method == _SET_LEVEL and _chooses_level(params)) else None

    async def _initialize(self, params: Message) -> Message | None:
        version, declared = params.get("protocolVersion"), params.get("capabilities")
        if version not in HANDSHAKE_VERSIONS or not _objects(declared) or not _names_client(params.get("clientInfo")):
            return None
        self.early.modern = False
        self.caller = with_client(replace(self.caller, draws_ui=declares_ui(declared)), params["clientInfo"])
        self._introduce(cast("Message", declared), modern=False)
        described = await self._describe_server(modern=False)
        return {  # in the SDK's order
            "capabilities": described["capabilities"],
            "protocolVersion": version,
            "serverInfo": server_info(),
            "instructions": described["instructions"],
        }

    async def _modern(self, method: str, params: Message, meta: Message) -> Message | None:
        plain = not params.keys() - {"_meta"} and not meta.keys() - _ENVELOPE and meta.get(VERSION_KEY) == MODERN
        named = CLIENT_KEY not in meta or _names_client(meta[CLIENT_KEY])
        if not plain or not named or not _objects(meta.get(CAPABILITIES_KEY)):
            return None
        self.caller = with_client(self.caller, meta.get(CLIENT_KEY))
        session = meta.get(SESSION_KEY, self.caller.usual_session)
        if label_problem(session):
            return None
        self.caller = replace(self.caller, draws_ui=declares_ui(meta[CAPABILITIES_KEY]))
        self._introduce(cast("Message", meta[CAPABILITIES_KEY]), modern=True)
        instructions: Message = {}
        if method == "server/discover":
            described = await self._describe_server(modern=True)
            instructions["instructions"] = described["instructions"]
            found: Message | None = {"capabilities": described["capabilities"], "supportedVersions": [MODERN]}
        else:
            found = await self._list(method, session, modern=True)
        if found is None:
            return None
        self.early.modern = True
        scope = "private" if self.board.configuration.tokens else "public"
        result: Message = {**found, "cacheScope": scope, "resultType": "complete", "ttlMs": TTL_MS}
        return {  # in the SDK's order
            **{key: result[key] for key in sorted(result)},
            "_meta": {SERVER_KEY: server_info()},
            **instructions,
        }

    async def _list(self, method: str, session_id: str, *, modern: bool) -> Message | None:
        """Return a list, or None where a server has to be asked for it: that takes as long as it takes."""
        session = await self._sessions.get(self.caller, session_id, modern=modern)
        await self._turns.begin(session, None)
        kind = _KINDS.get(method)
        if kind is None:
            items = convert.tools_of(await session.surface(loaded=not modern), modern=modern)
        else:
            items = await self.board.resources.list_if_at_hand(session.info, kind)
        if items is None:
            return None
        digest = convert.digest(items)
        self.early.listed[method] = EarlyList(kind=kind, caller=self.caller, key=session.key, digest=digest)
        return {"tools" if kind is None else PAGE_KEYS[kind]: items}

    def _introduce(self, declared: Message, *, modern: bool) -> None:
        """Note what the client can do, before any server begins for it."""
        for source in asking_sources(self.board) if self.caller.client else ():
            source.introduce_client(self.caller.client, declared, modern=modern)

    async def _describe_server(self, *, modern: bool) -> Message:
        """Return what the gateway can do with the servers of this agent, and how they say that they are used."""
        session = await self._sessions.get(self.caller, self.caller.usual_session, modern=modern)
        more = await self.board.resources.capabilities(session.info, modern=modern)
        return {"capabilities": {**capabilities(), **more}, "instructions": await session.instructions()}


def _objects(value: object) -> bool:
    """Return whether a value is an object of objects, as capabilities are."""
    return isinstance(value, dict) and all(isinstance(v, dict) for v in cast("Message", value).values())


def _chooses_level(params: Message) -> bool:
    level = params.get("level")
    return params.keys() == {"level"} and isinstance(level, str) and level in LOG_LEVELS


def _names_client(value: object) -> bool:
    """Return whether a value names a client and its version."""
    if not isinstance(value, dict):
        return False
    client = cast("Message", value)
    return isinstance(client.get("name"), str) and isinstance(client.get("version"), str)


def capabilities() -> Message:
    """Return the capabilities of the gateway by itself."""
    return {  # in the SDK's order: answers are compared byte for byte
        "completions": {},
        "logging": {},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "tools": {"listChanged": True},
    }


def server_info() -> Message:
    """Return the name and the version of the gateway."""
    return {"name": "pegboard", "title": "Pegboard", "version": __version__}


async def serve_until_sdk(
    lines: asyncio.Queue[bytes | None], start: FirstResponses, write: Write, stop: asyncio.Event
) -> bool:
    """Answer what can be answered early; return whether the SDK is to be imported and to go on.

    That is so once a client asks what only the SDK can answer, or very much, or sends nothing for a while.
    Import it in the thread of the loop: imports in two threads at once can break each other.
    """
    stopped = asyncio.ensure_future(stop.wait())
    line = asyncio.ensure_future(lines.get())
    try:
        while not stopped.done():
            await asyncio.wait({line, stopped}, timeout=_QUIET, return_when=asyncio.FIRST_COMPLETED)
            quiet = not line.done()
            if not quiet:
                await _answer_line(line.result(), start, write)
                line = asyncio.ensure_future(lines.get())
            ended = bool(start.early.rest) and start.early.rest[-1] is None
            if ended and not start.sdk_needed():
                return False
            if ended or quiet or start.answers >= MOST_ANSWERS or start.sdk_needed():
                break
    finally:
        line.cancel()
        stopped.cancel()
        await asyncio.wait({line})
    return not stop.is_set()


async def _answer_line(line: bytes | None, start: FirstResponses, write: Write) -> None:
    answer = await start.answer(line) if line is not None and line.strip() else None
    if answer is not None:
        write(dump_message(answer) + b"\n")
    elif line is None or line.strip():
        start.early.rest.append(line)
