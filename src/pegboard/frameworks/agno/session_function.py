"""The function of Agno that stands for a session: what a run gives to the model, and its calls."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Any, Final, cast

from agno.exceptions import AgentRunException, ModelProviderError
from agno.media import File
from agno.models.message import Message
from agno.models.response import ModelResponse
from agno.run import RunContext
from agno.tools.function import Function, ToolResult
from pydantic import Field, PrivateAttr

from pegboard.board.session import Session
from pegboard.core.access.approvals.approval import Approval
from pegboard.core.model.tools import JsonObject
from pegboard.core.state.call_plans import CallAnswer
from pegboard.core.surface.definitions import DEFINING
from pegboard.frameworks import runs
from pegboard.frameworks.agno.answer_ends import AnswerEnd
from pegboard.frameworks.owned_run import OwnedRun
from pegboard.frameworks.runs import AnySession, SessionRun
from pegboard.ports.framework_runs import FRAMEWORK_RUN, FrameworkRun
from pegboard.wire.kept_notes import HistoryMessage, HistoryReader, KeptNotes
from pegboard.wire.passed_on import CallThrough, tool_called

ModelRequest = dict[str, Any]
_FILES: Final = frozenset(File.valid_mime_types())


class SessionDefinition(dict[str, Any]):
    """What Agno hands on of the function that stands for a session."""

    function: AgnoSessionFunction


class AgnoSessionFunction(Function):
    """The function that stands for a session; Agno copies it for each run, and each call has a copy of that."""

    session: Any = Field(exclude=True, repr=False)
    limit: int = Field(exclude=True)
    host: Any = Field(default=None, exclude=True, repr=False)
    provider: Any = Field(default="any", exclude=True, repr=False)
    kept: Any = Field(default_factory=KeptNotes, exclude=True, repr=False)
    answer: Any = Field(default=None, exclude=True, repr=False)
    passed: Any = Field(default=None, exclude=True, repr=False)
    skip_entrypoint_processing: bool = True
    _end: AnswerEnd = PrivateAttr(default_factory=AnswerEnd)
    _run: OwnedRun | None = PrivateAttr(default=None)  # Agno's copy for a run begins with the defaults
    _history: HistoryReader[Message] | None = PrivateAttr(default=None)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> AgnoSessionFunction:
        return copy(self)

    def begin_answer(self) -> None:
        """Note that the model begins an answer."""
        self._end = AnswerEnd()

    def take_answer(self, part: ModelResponse) -> ModelResponse:
        """Return an answer of the model, or a part of one; one that has to be the last calls nothing."""
        self._end.take(part)
        if not self.run.take_answer(content=part.content or part.images or part.audio, calls=part.tool_calls):
            part.tool_calls = []
        return part

    def check_end(self) -> None:
        """Refuse an answer whose stream stopped before its end without a call that Agno hands on.

        Raises:
            ModelProviderError: that is so; else the run would end as if the model had said all.
        """
        if self.run.over and self._end.is_missing:
            raise ModelProviderError("The stream of the model's answer stopped before its end. No call of it has run.")

    def note_cut(self, calls: Sequence[JsonObject], model: str) -> None:
        """Note whether the answer that makes those calls was cut, so that none of them runs."""
        self.run.take_answer(content=None, calls=(), cut=self._end.why_cut(calls))
        if self.host is not None and not (self._end.reason or self._end.is_known):
            runs.warn_once(
                f"Agno's {model} does not tell why an answer ends: of one that was cut off, calls that are whole run."
            )

    @property
    def run(self) -> OwnedRun:
        """Return the run of this copy."""
        run = self._run  # what is private costs pydantic a microsecond to find
        if run is None:
            context: Any = self._run_context
            about: Any = {"limit": self.limit, "host": self.host, "provider": self.provider}
            opens = partial(_open_session, self.session, context)
            run = self._run = OwnedRun(opens, (context.session_id, context.run_id), context, **about)
        return run

    def result_of_answer(self, answer: CallAnswer, under_way: FrameworkRun) -> ToolResult:
        """Return what the one call of this copy came to; how its own function ends or shows it counts here too.

        Raises:
            AgentRunException: the function itself ends the run, or has its model try again.
        """
        text, media = runs.text_and_media(answer.result, _FILES)
        self.answer = answer
        beside = under_way.returned.get(answer.tool.id) if answer.tool is not None else None
        if beside is not None:
            if isinstance(beside.raised, AgentRunException):
                raise beside.raised
            self.stop_after_tool_call, self.show_result = beside.ends, beside.shown
        return ToolResult(content=text, **cast("dict[str, Any]", media))

    @property
    def waits_for(self) -> Approval | None:
        """Return the approval that this call waits for, or None."""
        return self.answer.approval if self.answer and self.answer.status == "needs_approval" else None

    @property
    def waits(self) -> bool:
        """Return whether this call waits for a person: an approval, or a login."""
        return self.waits_for is not None or (self.answer is not None and runs.about_login(self.answer) is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return the definition, in the place of which the model's twin puts others."""
        definition = SessionDefinition(super().to_dict())
        definition.function = self
        return definition

    async def prepare_request(self, run: SessionRun, request: ModelRequest, session: Session) -> ModelRequest:
        """Return a request with what the session has now, and with what has changed since the one before."""
        messages: list[Message] = request["messages"]
        others = [tool for tool in request["tools"] if not isinstance(tool.get("function"), SessionDefinition)]
        taken = {tool.get("function", {}).get("name") for tool in others}
        for call in (run.is_before_first_step and request["run_response"].tools) or ():
            if call.approval_id and not call.is_paused:
                refused = str(call.confirmation_note or "") if call.confirmed is False else None
                handed_in = call.result if call.external_execution_required is False else None
                await runs.record_decision(session, call.approval_id, refused=refused, result=handed_in)
        chosen = await runs.load_chosen(session, taken, request.get("tool_choice"))
        step = await run.step(_user_message(messages) if run.is_before_first_step else None, taken, session)
        if chosen is not None and all(one["function"]["name"] != chosen for one in step.functions):
            definition = run.definition_to_choose(session, taken, chosen)
            others.extend([] if definition is None else [definition])
        behind: Sequence[str] = ()
        if step.fixed:
            reader = self._history
            if reader is None:
                reader = self._history = HistoryReader(_as_said)
            behind = self.kept.behind(repr(session.key), reader.read(messages), step.surface, step.change, step.beside)
        return {
            **request,
            "messages": run.with_texts(messages, step, Message, behind),
            "tools": [*others, *step.functions],
            "tool_choice": step.choice or request.get("tool_choice"),
        }

    @contextmanager
    def under_way(self) -> Generator[FrameworkRun]:
        """Let the function that is called, and what is delegated meanwhile, know the run."""
        run = FrameworkRun(context=self)
        before = FRAMEWORK_RUN.set(run)
        try:
            yield run
        finally:
            FRAMEWORK_RUN.reset(before)
            run.context = None  # what was started meanwhile, and lasts, has a copy of the context variable

    def call_of(
        self, name: str, fields: JsonObject | None = None, *, passed: CallThrough | None = None
    ) -> AgnoSessionFunction:
        """Return a function for one call of any name.

        Args:
            name: the tool.
            fields: what a person who approved the call filled in.
            passed: how the model made it, where that was through ``call_tool``.
        """
        one, run, since = copy(self), self.run, time.monotonic()

        def use(arguments: dict[str, Any], session: Session) -> Awaitable[CallAnswer]:
            called, given = (name, arguments) if passed is None else passed.of_session(name, arguments)
            return run.call(called, since, fields, given, session)

        def call(**arguments: Any) -> ToolResult:
            with one.under_way() as under_way:
                return one.result_of_answer(run.with_session_sync(partial(use, arguments)), under_way)

        async def acall(**arguments: Any) -> ToolResult:
            with one.under_way() as under_way:
                return one.result_of_answer(await run.with_session(partial(use, arguments)), under_way)

        entrypoint = acall if runs.in_event_loop() else call
        entrypoint.__annotations__ = {}  # Agno evaluates them with every call
        one.name, one.entrypoint, one.passed = name, entrypoint, passed
        return one


def _open_session(session: Any, context: RunContext) -> AnySession | Awaitable[Session]:
    return session if isinstance(session, AnySession) else session(context)


def _user_message(messages: Sequence[Message]) -> str | None:
    """Return the message of the user with which a run begins; none where it goes on behind a call (S5)."""
    newest = next((one for one in reversed(messages) if one.role in ("user", "assistant")), None)
    return None if newest is None or newest.role == "assistant" else newest.get_content_string()


def _as_said(message: Message) -> HistoryMessage:
    """Return a message as it is in a history, of which Agno sends the newest runs alone."""
    calls = [call.get("function", {}) for call in message.tool_calls or ()]
    return HistoryMessage(
        own=message.id,
        defining=message.get_content_string() if message.tool_name in DEFINING else "",
        called=tuple(tool_called(one.get("name"), runs.arguments_of(one.get("arguments"))) for one in calls),
    )


def function_of_request(request: ModelRequest) -> AgnoSessionFunction | None:
    """Return the function that stands for a session in a request, or None."""
    for tool in request.get("tools") or ():
        if isinstance(definition := tool.get("function"), SessionDefinition):
            return definition.function
    return None


def function_among(functions: Mapping[str, Function] | None) -> AgnoSessionFunction | None:
    """Return the one that stands for a session among functions, or None."""
    for one in (functions or {}).values():
        if isinstance(one, AgnoSessionFunction):
            return one
    return None
