"""One run of an agent over a session, for frameworks that know nothing of tools that come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from pegboard.board.blocking import SyncSession
from pegboard.board.session import Session
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.core.state.call_plans import CallAnswer
from pegboard.core.surface.continuations import LIMIT, Continuation
from pegboard.core.surface.surfaces import Surface
from pegboard.dialects.names import META_PLUGIN
from pegboard.errors import UsageError

T = TypeVar("T")
AnySession = Session | SyncSession
Use = Callable[[Session], Awaitable[T]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a request to the model carries.

    Attributes:
        tools: the session's tools, in order.
        prefix: policy and hints, for the system's text.
        note: what is loaded and what has changed, for the end of the history.
        choice: ``auto`` or ``required`` where a focus says so, ``none`` where the model has to answer, else None.
    """

    tools: tuple[Tool, ...]
    prefix: str
    note: str
    choice: str | None


class Run:
    """A run over a session that is opened with its first use: its steps, its calls, its end."""

    def __init__(self, opens: Callable[[], AnySession | Awaitable[Session]], *, limit: int = LIMIT) -> None:
        self._opens = opens
        self._session: AnySession | None = None
        self._going = Continuation(limit=limit)
        self._content = self._calls = False

    async def come(self, use: Use[T]) -> T:
        """Return what comes of using the session."""
        if self._session is None:
            opened = self._opens()
            self._session = opened if isinstance(opened, AnySession) else await opened
        if isinstance(self._session, SyncSession):
            return await asyncio.to_thread(self._session.wait, use)
        return await use(self._session)

    def wait(self, use: Use[T]) -> T:
        """Return what comes of using the session, in a run that blocks.

        Raises:
            UsageError: the session does not block.
        """
        opened = self._opens() if self._session is None else self._session
        if isinstance(opened, SyncSession):
            self._session = opened
            return opened.wait(use)
        if asyncio.iscoroutine(opened):
            opened.close()
        raise UsageError("A run that blocks needs a session that does.", hint="Open it with Pegboard.open_sync.")

    @property
    def begins(self) -> bool:
        """Return whether there has been no step yet."""
        return self._going.tools is None

    async def step(self, message: str | None, taken: Collection[str], session: Session) -> Step:
        """Return what the next request carries.

        Args:
            message: the user's, with the first step of a run (S5).
            taken: names of the host's own tools, which win.
            session: the session.
        """
        surface = await session.surface(message=message)
        tools = tuple(loaded.tool for loaded in surface.tools if loaded.tool.wire not in taken)
        self._going = self._going.next(tuple(tool.wire for tool in tools))
        self._content = self._calls = False
        choice = "none" if self._going.over else None if surface.focus is None else surface.focus["tool_choice"]
        note = " ".join(text for text in (surface.suffix, self._going.note) if text)
        return Step(tools=tools, prefix=_prefix(surface), note=note, choice=choice)

    def answered(self, *, content: object, calls: object) -> bool:
        """Note what an answer of the model has, or a part of one; return whether calls are let through."""
        self._content = self._content or bool(content)
        self._calls = not self._going.over and (self._calls or bool(calls))
        return not self._going.over

    def asks_again(self) -> bool:
        """Return whether the model is to be asked once more, since it answered nothing right after a change."""
        again = None if self._content or self._calls else self._going.retried()
        self._going = again or self._going
        return again is not None

    async def close(self, session: Session) -> str:
        """Return what the user reads behind an answer; one that calls nothing ends the turn (S6)."""
        if self._calls:
            return ""
        await session.end_turn()
        closing = self._going.closing()
        return f"\n\n{closing}" if closing and self._content else closing

    async def call(self, name: str, arguments: JsonObject, arrived: float, session: Session) -> CallAnswer:
        """Return the session's answer to a call of any name; ``arrived`` is when the model made it (D2)."""
        answer = await session.call(name, arguments, arrived=arrived)
        meta = answer.tool is not None and answer.tool.plugin == META_PLUGIN
        if meta or answer.status in ("ok", "error"):
            self._going = self._going.called(name, meta=meta)
        return answer


def _prefix(surface: Surface) -> str:
    hints = "\n".join(("Not loaded, but can be:", *surface.hints)) if surface.hints else ""
    return "\n\n".join(text for text in (surface.policy, hints) if text)
