"""A loop by hand over a provider's client: what each request carries, what becomes of each reply.

``request = await loop.request(messages)`` are the keyword arguments for the client, ``messages += await
loop.answer(reply)`` what the history keeps. All that a loop has to know of the past is in the messages, so that a
new process goes on with these and the same session.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Final, Literal, TypeVar, cast
from uuid import uuid4

from pegboard.board.blocking import SyncSession
from pegboard.board.session import Session
from pegboard.core.access.approvals.approval import Approval
from pegboard.core.access.logins import AwaitedLogin
from pegboard.core.model.delivery import Host
from pegboard.core.model.leases import LEASED
from pegboard.core.model.model_hosts import host_for, reasons
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import EMPTY, JsonObject, Tool
from pegboard.core.state.active_tools import available_tools
from pegboard.core.state.call_plans import CallAnswer, answer
from pegboard.core.state.subjects import reachable
from pegboard.core.surface.continuations import LIMIT
from pegboard.core.surface.definitions import is_definition_of, not_defined
from pegboard.errors import PegboardError, UsageError
from pegboard.frameworks.runs import SessionRun, StepRequest, tool_for
from pegboard.support.encodable import encodable
from pegboard.wire.acceptable_schemas import provider_of
from pegboard.wire.anthropic_messages import AnthropicMessages
from pegboard.wire.histories import History, read_history, sendable
from pegboard.wire.notes import defined_in_text
from pegboard.wire.openai_chat import OpenAIChat
from pegboard.wire.openai_responses import OpenAIResponses
from pegboard.wire.passed_on import tool_called
from pegboard.wire.provider_forms import (
    HistoryChange,
    Message,
    ModelCall,
    ProviderForm,
    RequestParts,
    ToolChoice,
    ToolResult,
    as_plain,
)
from pegboard.wire.rejections import Rejection, rejection_of
from pegboard.wire.result_blocks import RESULT_LIMIT

T = TypeVar("T")
FormName = Literal["anthropic", "responses", "chat"]
_FORMS: Final[Mapping[str, ProviderForm]] = {
    form.name: form for form in (AnthropicMessages(), OpenAIResponses(), OpenAIChat())
}
_IN_ANSWERS: Final = Host(delivery=("result",))
_NO_OBJECT: Final = "The arguments are not a JSON object. The call has not run."

log = logging.getLogger("pegboard")


class Loop:
    """A loop over one session in the form of one provider.

    Attributes:
        done: whether the newest reply ended the turn.
        waiting: the calls of the newest reply that wait for a person, by their ids.
        text: what the user reads of the newest reply.
    """

    def __init__(
        self,
        session: Session,
        *,
        form: FormName,
        model: str,
        system: str = "",
        limit: int = LIMIT,
        result_limit: int = RESULT_LIMIT,
    ) -> None:
        """Make a loop; a session takes the host of the model where it was given none (D4).

        Args:
            session: whose tools the model has.
            form: ``anthropic`` (Messages), ``responses`` or ``chat`` (Chat Completions).
            model: the provider's name of the model.
            system: the host's own text for the system.
            limit: how often in a row the tools change without one being used; then the model has to answer.
            result_limit: how many characters of a result's text reach the model.

        Raises:
            UsageError: there is no such form, or the session blocks.
        """
        if form not in _FORMS:
            raise UsageError(f"There is no form '{form}'.", hint=f"Forms: {', '.join(_FORMS)}.")
        if not isinstance(cast("object", session), Session):
            raise UsageError("A Loop needs a session that does not block.", hint="SyncLoop takes a SyncSession.")
        self.done = False
        self.waiting: Mapping[str, Approval] = {}
        self.logins: Mapping[str, AwaitedLogin] = {}
        self.text = ""
        self._session, self._form, self._model, self._system = session, _FORMS[form], model, system
        self._provider = provider_of(form, model)
        self._limit, self._result_limit = limit, result_limit
        host = session.adopt_host(_with_answers(host_for(f"{form}:{model}")))
        self._reveals, self._falls_back = host.reveals, False
        self._lost: frozenset[str] = frozenset()
        self._chooses = True
        self._encrypted = form == "responses" and reasons(model)
        self._rejected: set[str] = set()
        self._name, self._turns = uuid4().hex, count()
        self._run: SessionRun | None = None
        self._has_replied = self._asks_again = False
        self._newest_change = ""
        self._head: dict[str, Tool] = {}
        self._sent: tuple[str, ...] = ()
        self._added: list[Message] = []

    async def request(self, messages: Sequence[Any]) -> dict[str, Any]:
        """Return the keyword arguments for the provider's client; asked again, those of the same step.

        Args:
            messages: the history so far, as mappings or the client's own objects; it is not changed.

        Raises:
            UsageError: calls of the newest reply have no result yet, a message is no message, or the board is closed.
            StoreError: the stored state cannot be read.
            UnknownAgentError: the agent is no longer configured.
        """
        history = read_history(self._form, messages)
        if history.open_calls:
            names = ", ".join(call.name for call in history.open_calls)
            raise UsageError(
                f"Calls of the newest reply have no result yet: {names}.",
                hint="Once they are decided: messages += await loop.resume(messages).",
            )
        run = self._run_of(history)
        step = await run.step(history.message, self._rejected, self._session)
        listed, declared, loaded = await self._tools(step, history)
        deferred = [tool for wire, tool in declared.items() if wire not in self._head] if self._reveals else []
        shown: dict[str, JsonObject | None] = dict.fromkeys(self._head) if self._reveals else {}
        shown |= {tool.wire: self._form.definition(self._tool_for_provider(tool)) for tool in deferred}
        change = self._change(step, history, listed, shown, loaded)
        self._added = self._form.change(change, reveals=self._reveals)
        parts = RequestParts(
            model=self._model,
            system=tuple(text for text in (self._system, step.prefix) if text),
            head=[*map(self._tool_for_provider, self._head.values())],
            deferred=[*map(self._tool_for_provider, deferred)],
            choice=self._choice(step),
            reveals=self._reveals,
            encrypted=self._encrypted,
        )
        self._sent = (*self._head, *(tool.wire for tool in deferred))
        return encodable(self._form.request(parts, [*sendable(self._form, messages, history, shown), *self._added]))

    async def answer(self, reply: object) -> list[Message]:
        """Return what the history keeps: what the request added to it, the model's message, the results of its calls.

        Calls run side by side. A call that a person approves first has no result yet, and is in ``waiting``; one
        whose server wants a login is in ``logins``.

        Args:
            reply: the provider's, as its client or the end of a stream returns it, or as a mapping.

        Raises:
            UsageError: it is no reply of this form, or there was no request.
            StoreError: the stored state cannot be written at the end of a turn.
        """
        given = as_plain(reply)
        try:
            said = self._form.reply(given)
        except ValueError as error:
            raise UsageError(_no_reply(self._form.name, given, error)) from None
        if self._run is None:
            raise UsageError("There was no request that this could answer.", hint="Ask with loop.request(messages).")
        self._has_replied, self._asks_again, self.waiting, self.logins = True, False, {}, {}
        added, self._added, self.text = self._added, [], said.text
        calls = said.calls if self._run.take_answer(content=said.text, calls=said.calls, cut=said.cut) else ()
        if calls:
            return [*added, *said.messages, *await self._results(calls, EMPTY)]
        if said.unfinished:
            return [*added, *said.messages]
        if self._run.asks_model_again():
            self._asks_again = True
            return added
        self.text += await self._run.close(self._session)
        self.done = True
        return [*added, *(self._form.text(said.text) if said.calls else said.messages)]

    async def resume(self, messages: Sequence[Any], results: Mapping[str, object] = EMPTY) -> list[Message]:
        """Return the results of calls that waited for a person; everything about them is decided again.

        Nothing comes of those for which no one has decided, or logged in: they stand in ``waiting`` and ``logins``.

        Args:
            messages: the history; its newest reply has calls without a result.
            results: what calls came to that run elsewhere, by their ids (T13), or what the model reads in place of a
                call for which no one logs in.

        Raises:
            UsageError: a message is no message, or a result is given for a call that runs here.
        """
        history = read_history(self._form, messages)
        self._run_of(history)
        return await self._results(history.open_calls, results)

    async def rejected(self, error: object) -> bool:
        """Return whether to ask again, since what the provider did not take is no longer sent.

        A tool of which the error speaks is reported and not sent. Where the provider does not take what reveals tools,
        the form falls back to answers that define them, once.

        Args:
            error: the client's exception, or its text.
        """
        rejection = rejection_of(error, self._sent)
        match rejection:
            case Rejection(kind="many", names=names) if await self._session.fit_list(len(self._sent) - len(names)):
                self._session.info.conversation.most_tools, self._head = len(self._sent) - len(names), {}
            case Rejection(kind="tool" | "many", names=names) if set(names) - self._rejected:
                for name in names:
                    self._session.report_rejected(f"tool:{name}", rejection.text)
                self._rejected.update(names)
            case Rejection(kind="choice") if self._chooses:
                self._session.report_rejected("form:tool_choice", rejection.text)
                self._chooses = False
            case Rejection(kind="include") if self._encrypted:
                self._session.report_rejected("form:include", rejection.text)
                self._encrypted = False
            case Rejection(kind="form") if self._reveals:
                self._session.report_rejected(f"form:{self._form.name}", rejection.text)
                self._session.host, self._head = _IN_ANSWERS, {}
                self._reveals, self._falls_back = False, True
            case _:
                return False
        return True

    def _run_of(self, history: History) -> SessionRun:
        """Return the run of a turn: a new one where the user goes on behind a reply."""
        if self._run is None or self.done or (history.message is not None and self._has_replied):
            name = f"{self._name} {next(self._turns)}"
            self._run = SessionRun(
                lambda: self._session,
                lambda: (self._name, name),
                limit=self._limit,
                provider=self._provider,
                exact_names=False,
            )
            self._has_replied = False
        self.done = False
        return self._run

    async def _tools(
        self, step: StepRequest, history: History
    ) -> tuple[Mapping[str, Tool], Mapping[str, Tool], Mapping[str, Tool]]:
        """Return what the model may see, what may be declared, and what is loaded, by wire names; note the head.

        Where the history reveals, what was unloaded stays at the head as long as it is permitted, and what has lapsed
        stays in the history: a call of it renews its lease (D3).
        """
        snapshot = await self._session.snapshot()
        permissions, state = snapshot.permissions, snapshot.state
        loaded = {tool.wire: tool for tool in available_tools(permissions, state)}
        if not self._reveals:
            self._head = {tool.wire: tool for tool in step.tools}
            return self._head, {}, loaded
        wire_list = await self._session.wire(revealed=history.revealed)
        if step.surface.focus is not None:
            await self._session.surface(message=history.message)  # a wire list takes the focus away
        listed = {tool.wire: tool for tool in wire_list if tool.wire not in self._rejected}
        declared = {tool.wire: tool for tool in reachable(permissions, state) if tool.wire not in self._rejected}
        first = {one.tool.wire for one in step.surface.tools if set(one.because) - LEASED}
        head = {name: listed.get(name) or declared.get(name) for name in self._head}
        self._head = {name: tool for name, tool in head.items() if tool is not None}
        self._head |= {name: tool for name, tool in listed.items() if name in first}
        return listed, declared | listed, loaded

    def _change(
        self,
        step: StepRequest,
        history: History,
        listed: Mapping[str, Tool],
        shown: Mapping[str, JsonObject | None],
        loaded: Mapping[str, Tool],
    ) -> HistoryChange:
        """Return what joins the history with this request, and stays there (D4)."""
        texts: list[str] = []
        if history.message is not None and step.surface.suffix not in history.note:
            texts.append(step.surface.suffix)
        if step.choice == "none":
            texts.append(step.change)
        elif self._asks_again:
            texts.append(self._newest_change)
        self._newest_change = step.change or self._newest_change
        if not self._reveals:
            if self._falls_back:
                self._lost, self._falls_back = frozenset(loaded) - self._head.keys(), False
            lost = [tool for name, tool in loaded.items() if name in self._lost or name in history.revealed]
            ahead = (
                () if any(tool.wire in self._head for tool in step.surface.anticipated) else step.surface.anticipated
            )
            calls = [mark.call for marks in history.marks for mark in marks if mark.call is not None]
            called = {tool_called(call.name, call.arguments) for call in calls}
            beside = [tool for name, tool in loaded.items() if name not in self._head]
            new = {tool.wire: tool for tool in not_defined((*lost, *ahead), history.defined)}
            new |= {tool.wire: tool for tool in not_defined(beside, history.defined, called)}
            texts.append(defined_in_text(new.values()))
            return HistoryChange(note="\n\n".join(filter(None, texts)))
        revealed = {name for name, before in history.revealed.items() if name in shown and before == shown[name]}
        left = [name for name in (*self._head, *history.revealed) if name in shown and name not in listed]
        return HistoryChange(
            joined=tuple(
                self._tool_for_provider(tool)
                for name, tool in listed.items()
                if (
                    name in history.removed
                    if name in self._head
                    else name not in revealed and not is_definition_of(history.defined.get(name), tool)
                )
            ),
            left=tuple(name for name in dict.fromkeys(left) if name not in history.removed),
            note="\n\n".join(filter(None, texts)),
        )

    def _tool_for_provider(self, tool: Tool) -> Tool:
        """Return a tool as the provider takes it."""
        return tool_for(self._provider, tool, self._session)

    def _choice(self, step: StepRequest) -> ToolChoice | None:
        if step.choice == "none":
            return ToolChoice(mode="none")
        focus = step.surface.focus if self._chooses else None
        return None if focus is None else ToolChoice(mode=focus["tool_choice"], names=tuple(focus["allowed_tools"]))

    async def _results(self, calls: Sequence[ModelCall], given: Mapping[str, object]) -> list[Message]:
        """Return the messages that answer calls; those that wait for a person are noted."""
        answers = await asyncio.gather(
            *(self._answer_call(call, time.monotonic(), given.get(call.id)) for call in calls)
        )
        made = list(zip(calls, answers, strict=True))
        self.waiting = {call.id: one.approval for call, one in made if _is_waiting(one) and one.approval is not None}
        self.logins = {
            call.id: one.login for call, one in made if one.status == "needs_login" and one.login is not None
        }
        results = [
            ToolResult(call=call, result=one.result, limit=self._result_limit)
            for call, one in made
            if call.id not in self.waiting and call.id not in self.logins
        ]
        return self._form.results(results) if results else []

    async def _answer_call(self, call: ModelCall, arrived: float, given: object) -> CallAnswer:
        """Return the answer to a call; one that cannot be made has an answer too, so that no other is lost."""
        if self._run is None or (call.arguments is None and not self._run.cut):
            return answer("invalid_arguments", _NO_OBJECT)
        try:
            made = await self._run.call(call.name, arrived, None, call.arguments or EMPTY, self._session)
            if given is not None and made.status == "needs_approval" and made.approval is not None:
                made = await self._session.resume(made.approval.id, result=given)
            elif given is not None and made.status == "needs_login":
                made = answer("refused", str(given))
        except PegboardError as error:
            log.warning("a call of %s failed: %s", call.name, error)
            return answer("error", error.message)
        return made


class SyncLoop:
    """The twin of ``Loop`` over a session that blocks."""

    def __init__(
        self,
        session: SyncSession,
        *,
        form: FormName,
        model: str,
        system: str = "",
        limit: int = LIMIT,
        result_limit: int = RESULT_LIMIT,
    ) -> None:
        """Make a loop, as ``Loop`` does.

        Raises:
            UsageError: there is no such form, or the session does not block.
        """
        if not isinstance(cast("object", session), SyncSession):
            raise UsageError("A SyncLoop needs a session that blocks.", hint="Open it with Pegboard.open_sync.")
        self._session = session

        async def make_loop(inner: Session) -> Loop:
            return Loop(inner, form=form, model=model, system=system, limit=limit, result_limit=result_limit)

        self._loop = session.wait(make_loop)

    @property
    def done(self) -> bool:
        """Return whether the newest reply ended the turn."""
        return self._loop.done

    @property
    def waiting(self) -> Mapping[str, Approval]:
        """Return the calls of the newest reply that wait for a person, by their ids."""
        return self._loop.waiting

    @property
    def logins(self) -> Mapping[str, AwaitedLogin]:
        """Return the calls of the newest reply that wait for a login, by their ids."""
        return self._loop.logins

    @property
    def text(self) -> str:
        """Return what the user reads of the newest reply."""
        return self._loop.text

    def request(self, messages: Sequence[Any]) -> dict[str, Any]:
        """Return the keyword arguments for the provider's client, as ``Loop.request`` does."""
        return self._with_session(partial(self._loop.request, messages))

    def answer(self, reply: object) -> list[Message]:
        """Return what the history keeps of a reply, as ``Loop.answer`` does."""
        return self._with_session(partial(self._loop.answer, reply))

    def resume(self, messages: Sequence[Any], results: Mapping[str, object] = EMPTY) -> list[Message]:
        """Return the results of calls that waited, as ``Loop.resume`` does."""
        return self._with_session(partial(self._loop.resume, messages, results))

    def rejected(self, error: object) -> bool:
        """Return whether to ask again, as ``Loop.rejected`` does."""
        return self._with_session(partial(self._loop.rejected, error))

    def _with_session(self, use: Callable[[], Awaitable[T]]) -> T:
        return self._session.wait(lambda _: use())


def _with_answers(host: Host) -> Host:
    """Return a host under which the answer to a load that brings many tools may define them (D1)."""
    return replace(host, delivery=("native", "result")) if host.delivery == ("native",) else host


def _no_reply(form: str, given: JsonObject, lacks: ValueError) -> str:
    """Return what an answer is that is no reply: an error that came with status 200, or something else."""
    error = given.get("error") or as_plain(given.get("response") or EMPTY).get("error")
    if error:
        said = as_plain(error).get("message") if not isinstance(error, str) else error
        return f"The provider answered with an error in place of a reply: {one_line(str(said), limit=500)}"
    return f"That is no reply of the form '{form}': it has no {lacks}."


def _is_waiting(made: CallAnswer) -> bool:
    return made.status == "needs_approval"
