"""One run of an agent over a session, for frameworks that know nothing of tools that come and go."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pegboard.board.blocking import SyncSession
from pegboard.board.session import Session
from pegboard.core.model.delivery import Host
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.core.state.call_plans import CallAnswer, answer
from pegboard.core.surface.continuations import LIMIT, Continuation
from pegboard.core.surface.surfaces import Surface
from pegboard.dialects.names import META_PLUGIN
from pegboard.errors import UsageError
from pegboard.frameworks.runs.decisions import answer_allowed_call, waits_since_before
from pegboard.frameworks.runs.request_tools import (
    fit_list,
    function_of,
    loaded_outside_list,
    own_arguments,
    prefix_of,
    reject_tools,
    rejected_of,
    tool_for,
    tool_to_choose,
    why_misnamed_call,
)
from pegboard.frameworks.runs.sessions import AnySession, SessionFunction, T
from pegboard.frameworks.runs.turns import end_turns
from pegboard.support.encodable import encodable_text
from pegboard.wire.acceptable_schemas import SchemaProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRequest:
    """What a request to the model carries.

    Attributes:
        functions: the session's tools in order, as providers of models take functions; the same objects as long as
            the tools are the same.
        prefix: policy and hints, for the system's text.
        note: what is loaded and what has changed, for the end of the history.
        choice: ``auto`` or ``required`` where a focus says so, ``none`` where the model has to answer, else None.
        surface: what the session gives to this step.
        change: what the model is to know of the newest change, the last part of ``note``.
        tools: those of the list, in order.
        beside: what is loaded and is in no list.
        fixed: whether the list stays unchanged, so that notes are all that the model reads of what is loaded ahead.
    """

    functions: Sequence[dict[str, Any]]
    prefix: str
    note: str
    choice: str | None
    surface: Surface
    change: str = ""
    tools: tuple[Tool, ...] = ()
    beside: tuple[Tool, ...] = ()
    fixed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _SurfaceParts:
    """What a surface comes to: its tools, what is loaded beside them, policy and hints."""

    surface: Surface
    tools: tuple[Tool, ...]
    beside: tuple[Tool, ...]
    prefix: str


class SessionRun:
    """A run over a session that is opened with its first use: its steps, its calls, its end.

    ``names`` returns the conversation that it belongs to, and its own name. ``is_over`` knows whether it was given up;
    without it, it was where the next one of its conversation begins. ``host`` is what its model can do with a change of
    tools, for a session that was given no host (D4), ``provider`` the one whose rules schemas keep. With
    ``exact_names`` a tool is called by the name that the framework's controls know.
    """

    def __init__(
        self,
        opens: Callable[[], AnySession | Awaitable[Session]],
        names: Callable[[], tuple[str, str]],
        *,
        is_over: Callable[[], bool] | None = None,
        limit: int = LIMIT,
        host: Host | None = None,
        provider: SchemaProvider = "any",
        exact_names: bool = True,
    ) -> None:
        self._opens = opens
        self._exact_names = exact_names
        self._host, self._provider = host, provider
        self._names = names
        self._is_over = is_over
        self._session: AnySession | None = None
        self._going = Continuation(limit=limit)
        self._tools: tuple[Tool, ...] = ()
        self._names_of_tools: tuple[str, ...] = ()
        self._functions: dict[str, tuple[Tool, dict[str, Any]]] = {}
        self._listed: Sequence[dict[str, Any]] = ()
        self._read: _SurfaceParts | None = None
        self._prefixed: tuple[Any, Any] | None = None
        self._content = self._calls = False
        self.cut = ""
        """Why the model's newest answer is not whole, or nothing."""
        self._answered: float | None = None

    async def with_session(self, use: SessionFunction[T]) -> T:
        """Call a function with the session, in the session's event loop, and return its result."""
        if self._session is None:
            opened = self._opens()
            self._session = session = opened if isinstance(opened, AnySession) else await opened
            self._opens = lambda: session  # what opened it may hold all that the framework has for the run
        if isinstance(self._session, SyncSession):
            return await asyncio.to_thread(self._session.wait, use)
        return await use(self._session)

    def with_session_sync(self, use: SessionFunction[T]) -> T:
        """Call a function with the session in a run that blocks, and return its result.

        Raises:
            UsageError: the session does not block.
        """
        opened = self._opens() if self._session is None else self._session
        if isinstance(opened, SyncSession):
            self._session, self._opens = opened, lambda: opened
            return opened.wait(use)
        if asyncio.iscoroutine(opened):
            opened.close()
        raise UsageError("A run that blocks needs a session that does.", hint="Open it with Pegboard.open_sync.")

    @property
    def is_before_first_step(self) -> bool:
        """Return whether there has been no step yet."""
        return self._going.tools is None

    async def step(self, message: str | None, taken: Collection[str], session: Session) -> StepRequest:
        """Return what the next request carries.

        Args:
            message: the user's, with the first step of a run (S5).
            taken: names of the host's own tools, which win.
            session: the session; one whose list is fixed changes with what it loads beside that.
        """
        conversation, own = self._names()
        await end_turns(
            session, session.info.conversation.runs.step(own, conversation=conversation, is_over=self._is_over)
        )
        if self._host is not None and self.is_before_first_step:
            session.adopt_host(self._host)
        if self.is_before_first_step:
            await fit_list(session, (self._provider,), len(taken))
        surface = await session.surface(message=message)
        read = await self._read_of(surface, session)
        listed = read.tools
        if session.host.cache is not None:
            listed = await session.wire()
            surface = surface if surface.focus is None else await session.surface(message=message)
        left_out = rejected_of(session, listed)
        taken = {*taken, *left_out} if left_out else taken
        self._list(tuple([tool for tool in listed if tool.wire not in taken]) if taken else listed, session)
        self._going = self._going.next(self._names_of_tools, tuple([tool.wire for tool in read.beside]))
        self._content = self._calls = False
        self.cut = ""
        choice = "none" if self._going.over else None if surface.focus is None else surface.focus["tool_choice"]
        note = encodable_text(" ".join(text for text in (surface.suffix, surface.ahead, self._going.note) if text))
        return StepRequest(
            functions=self._listed,
            prefix=read.prefix,
            note=note,
            choice=choice,
            surface=surface,
            change=self._going.note,
            tools=self._tools,
            beside=read.beside,
            fixed=session.host.list_is_fixed,
        )

    async def _read_of(self, surface: Surface, session: Session) -> _SurfaceParts:
        """Return what is read of a surface: once, as long as the session gives the same one."""
        if self._read is None or self._read.surface is not surface:
            self._read = _SurfaceParts(
                surface=surface,
                tools=tuple([loaded.tool for loaded in surface.tools]),
                beside=await loaded_outside_list(session) if session.host.list_is_fixed else (),
                prefix=prefix_of(surface),
            )
        return self._read

    def _list(self, tools: tuple[Tool, ...], session: Session) -> None:
        """Take the tools of a request; those that were in the one before are the same functions."""
        if tools != self._tools:
            self._tools, self._names_of_tools = tools, tuple([tool.wire for tool in tools])
            self._functions = {tool.wire: self._function(tool, session) for tool in tools}
            self._listed = tuple([function for _, function in self._functions.values()])

    def _function(self, tool: Tool, session: Session) -> tuple[Tool, dict[str, Any]]:
        known = self._functions.get(tool.wire)
        if known is not None and known[0] is tool:
            return known
        return tool, function_of(tool_for(self._provider, tool, session))

    def definition_to_choose(self, session: Session, own: Collection[str], name: str) -> dict[str, Any] | None:
        """Return the definition of a tool of a session that a model has to call and that its list does not have.

        Args:
            session: the session.
            own: names of the agent's own tools, which need none.
            name: what the choice of tools names.
        """
        tool = tool_to_choose(session, own, name)
        return None if tool is None else self._function(tool, session)[1]

    def with_texts(
        self, messages: Sequence[Any], step: StepRequest, make: Callable[..., Any], behind: Sequence[str] = ()
    ) -> list[Any]:
        """Return the messages of a request with what a step says: behind the system's text, and behind the newest.

        Args:
            messages: pydantic models with a ``role`` and a ``content``; these are not changed, so that no history keeps
                what is said.
            step: what the request carries.
            make: makes a message of a role and a content, where there is none for a text to stand behind.
            behind: what is behind each message, in place of the step's note.
        """
        sent = list(messages)
        notes = list(enumerate(behind)) if behind else [(len(sent) - 1, step.note)]
        for place, note in reversed(notes):
            if not note:
                continue
            text = f"<system>{note}</system>"
            message = sent[place]
            if isinstance(message.content, str):
                sent[place] = message.model_copy(update={"content": f"{message.content}\n\n{text}"})
            else:
                sent.insert(place + 1, make(role="user", content=text))
        if step.prefix:
            first = sent[0] if sent[0].role in ("system", "developer") else None
            prefixed = self._with_prefix(first, step.prefix, make)
            sent[: 0 if first is None else 1] = [prefixed]
        return sent

    def _with_prefix(self, first: Any, prefix: str, make: Callable[..., Any]) -> Any:
        """Return the system's message with a prefix behind its text: the same one as long as both are."""
        text = prefix if first is None else f"{first.content}\n\n{prefix}"
        if self._prefixed is None or self._prefixed[0] is not first or self._prefixed[1].content != text:
            made = make(role="system", content=text) if first is None else first.model_copy(update={"content": text})
            self._prefixed = first, made
        return self._prefixed[1]

    async def rejected_tools(self, error: Exception, sent: Sequence[str], session: Session) -> Collection[str]:
        """Return the session's tools of which a provider's error speaks: reported now, and no longer sent.

        Args:
            error: what the request failed with; none of a provider's is about a tool without its ``status_code``.
            sent: the names of the request's tools, in order.
            session: the session.
        """
        return await reject_tools(error, sent, {tool.wire: tool for tool in self._tools}, session)

    def take_answer(self, *, content: object, calls: object, cut: str = "") -> bool:
        """Note what an answer of the model has, or a part of one; return whether calls are let through.

        Args:
            content: what the user reads of it.
            calls: its calls.
            cut: why it is not whole, so that none of its calls runs; else nothing.
        """
        self.cut = cut or self.cut
        self._content = self._content or bool(content)
        self._calls = not self._going.over and (self._calls or bool(calls))
        self._answered = time.monotonic()
        return not self._going.over

    @property
    def over(self) -> bool:
        """Return whether the model's newest answer calls nothing."""
        return not self._calls

    @property
    def calls_made_at(self) -> float:
        """Return when the model made the calls of its newest answer (D2): now, where that was in another process."""
        return time.monotonic() if self._answered is None else self._answered

    def asks_model_again(self) -> bool:
        """Return whether the model is to be asked once more, since it answered nothing right after a change."""
        again = None if self._content or self._calls else self._going.after_retry()
        self._going = again or self._going
        return again is not None

    async def close(self, session: Session) -> str:
        """Return what the user reads behind an answer; one that calls nothing ends the turn (S6)."""
        if self._calls:
            return ""
        await self.end(session)
        closing = self._going.closing()
        return f"\n\n{closing}" if closing and self._content else closing

    async def end(self, session: Session) -> None:
        """End the run, and the turn where no other run of the session goes on (S6)."""
        await end_turns(session, session.info.conversation.runs.end(self._names()[1]))

    async def pause(self, session: Session) -> None:
        """Note that the run waits for a person: its turn goes on, and ends with another run or when it goes on."""
        session.info.conversation.runs.pause(self._names()[1])

    async def call(
        self,
        name: str,
        arrived: float,
        fields: JsonObject | None,
        arguments: JsonObject,
        session: Session,
        *,
        call_id: str | None = None,
    ) -> CallAnswer:
        """Return the session's answer to a call of any name.

        Args:
            name: as the model wrote it.
            arrived: when the model made the call (D2).
            fields: what a person who has approved the call filled in; None where no one has been asked (A3).
            arguments: what the model and that person gave.
            session: the session.
            call_id: what the provider names the call.
        """
        if self.cut:
            return answer("invalid_arguments", self.cut)
        if self._exact_names and (why := why_misnamed_call(name, arguments, session)):
            return answer("invalid_arguments", why)
        arguments = own_arguments(name, arguments, session)
        asked = {key: value for key, value in arguments.items() if fields is None or key not in fields}
        since, made = time.time(), await session.call(name, asked, arrived=arrived, call_id=call_id)
        if fields is not None and (approval := waits_since_before(made, since)) is not None:
            made = await answer_allowed_call(session, approval, fields=fields, call_id=call_id)
        meta = made.tool is not None and made.tool.plugin == META_PLUGIN
        if meta or made.status in ("ok", "error"):
            ran = made.tool.wire if made.tool is not None and made.status in ("ok", "error") else ""
            self._going = self._going.after_call(name, meta=meta, ran=ran)
        return made
