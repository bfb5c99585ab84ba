"""One run of an agent over a session, for frameworks that know nothing of tools that come and go."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeVar, cast

from pegboard.board.blocking import SyncSession
from pegboard.board.session import Session
from pegboard.core.access.approvals.approval import Approval
from pegboard.core.model.delivery import Host
from pegboard.core.model.leases import LEASED
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import CallResult, JsonObject, Tool, text_result
from pegboard.core.model.written_arguments import parsed_arguments
from pegboard.core.state.active_tools import active_tools, available
from pegboard.core.state.call_plans import CallAnswer, answer
from pegboard.core.surface.continuations import LIMIT, Continuation
from pegboard.core.surface.surfaces import Surface
from pegboard.dialects.names import META_PLUGIN
from pegboard.errors import UsageError
from pegboard.support.encodable import encodable, encodable_text
from pegboard.wire.acceptable_schemas import SchemaProvider, as_taken, has_renamed, original_arguments
from pegboard.wire.passed_on import THROUGH
from pegboard.wire.rejections import rejection_of
from pegboard.wire.result_blocks import RESULT_LIMIT, cut, name_of_file

T = TypeVar("T")
_TYPES: Final = {"integer": int, "number": float, "boolean": bool, "array": list, "object": dict}
_LOG: Final = logging.getLogger("pegboard.frameworks")
_COSTS: Final = logging.getLogger("pegboard")
FILE_LIMIT: Final = 20_000_000
"""How many characters a picture or file has in base64 that reaches the model."""
AnySession = Session | SyncSession
SessionFunction = Callable[[Session], Awaitable[T]]


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
        beside: what is loaded and stands in no list.
        fixed: whether the list stays as it is, so that notes are all that the model reads of what is loaded ahead.
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
    def begins(self) -> bool:
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
        if self._host is not None and self.begins:
            session.adopt_host(self._host)
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
                beside=await loaded_beside(session) if session.host.list_is_fixed else (),
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
        tool = None if name in own else session.known_tool(name)
        if tool is None or tool.wire != name or tool.plugin == META_PLUGIN:
            return None
        warn_once(
            f"`tool_choice` names '{name}', which is not in the list of tools that the provider has cached. It is "
            "listed for these requests, so the provider reads the whole conversation again."
        )
        return self._function(tool, session)[1]

    def with_texts(
        self, messages: Sequence[Any], step: StepRequest, make: Callable[..., Any], behind: Sequence[str] = ()
    ) -> list[Any]:
        """Return the messages of a request with what a step says: behind the system's text, and behind the newest.

        Args:
            messages: pydantic models with a ``role`` and a ``content``; these are not changed, so that no history keeps
                what is said.
            step: what the request carries.
            make: makes a message of a role and a content, where there is none for a text to stand behind.
            behind: what stands behind each message, in place of the step's note.
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
            prefixed = self._prefixed_by(first, step.prefix, make)
            sent[: 0 if first is None else 1] = [prefixed]
        return sent

    def _prefixed_by(self, first: Any, prefix: str, make: Callable[..., Any]) -> Any:
        """Return the system's message with a prefix behind its text: the same one as long as both are."""
        text = prefix if first is None else f"{first.content}\n\n{prefix}"
        if self._prefixed is None or self._prefixed[0] is not first or self._prefixed[1].content != text:
            made = make(role="system", content=text) if first is None else first.model_copy(update={"content": text})
            self._prefixed = first, made
        return self._prefixed[1]

    async def rejects(self, error: Exception, sent: Sequence[str], session: Session) -> Collection[str]:
        """Return the session's tools of which a provider's error speaks: reported now, and with no request any more.

        Args:
            error: what the request failed with; none of a provider's is about a tool without its ``status_code``.
            sent: the names of the request's tools, in order.
            session: the session.
        """
        return reject_tools(error, sent, {tool.wire: tool for tool in self._tools}, session)

    def answered(self, *, content: object, calls: object, cut: str = "") -> bool:
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
    def arrived(self) -> float:
        """Return when the model made the calls of its newest answer (D2): now, where that was in another process."""
        return time.monotonic() if self._answered is None else self._answered

    def asks_again(self) -> bool:
        """Return whether the model is to be asked once more, since it answered nothing right after a change."""
        again = None if self._content or self._calls else self._going.retried()
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
            fields: what a person who has approved the call filled in; None where nobody has been asked (A3).
            arguments: what the model and that person gave.
            session: the session.
            call_id: what the provider names the call.
        """
        if self.cut:
            return answer("invalid_arguments", self.cut)
        if self._exact_names and (why := misnamed(name, arguments, session)):
            return answer("invalid_arguments", why)
        arguments = own_arguments(name, arguments, session)
        asked = {key: value for key, value in arguments.items() if fields is None or key not in fields}
        since, made = time.time(), await session.call(name, asked, arrived=arrived, call_id=call_id)
        if fields is not None and (approval := waits_since_before(made, since)) is not None:
            made = await allowed(session, approval, fields=fields, call_id=call_id)
        meta = made.tool is not None and made.tool.plugin == META_PLUGIN
        if meta or made.status in ("ok", "error"):
            ran = made.tool.wire if made.tool is not None and made.status in ("ok", "error") else ""
            self._going = self._going.called(name, meta=meta, ran=ran)
        return made


def function_of(tool: Tool) -> dict[str, Any]:
    """Return a tool as providers of models take functions."""
    schema = json.loads(json.dumps(tool.input_schema))
    function = encodable({"name": tool.wire, "description": tool.description, "parameters": schema})
    return {"type": "function", "function": function}


def tool_for(provider: SchemaProvider, tool: Tool, session: Session) -> Tool:
    """Return a tool as a provider takes it; what is changed is reported once for the session."""
    taken, changes = as_taken(tool, provider)
    session.report_adapted(tool, changes)
    return taken


def own_arguments(name: str, arguments: JsonObject, session: Session) -> JsonObject:
    """Return the arguments of a call under the names that its tool has for them, whatever its model was shown.

    Args:
        name: what the model called.
        arguments: what it gave.
        session: the session.
    """
    named: object = arguments.get("name") if name in THROUGH else name
    tool = session.known_tool(named) if has_renamed(arguments) and isinstance(named, str) else None
    return arguments if tool is None else original_arguments(tool, arguments)


def chosen_tool(choice: object) -> str | None:
    """Return the name of the one tool that a choice of tools demands in the form of any provider, or None."""
    if isinstance(choice, str):
        return None if choice in ("auto", "any", "none", "required") else choice
    if not isinstance(choice, Mapping):
        return None
    known = cast("Mapping[str, Any]", choice)
    name: object = known.get("name") or (known.get("function") or {}).get("name")
    return name if isinstance(name, str) else None


async def load_chosen(session: Session, own: Collection[str], choice: object) -> str | None:
    """Load the tool of a session that a choice of tools demands; return its name, or None where it demands none.

    Args:
        session: the session.
        own: names of the agent's own tools, which need no session.
        choice: as the host gave it, in the form of any provider.
    """
    name = chosen_tool(choice)
    if name is None or name in own:
        return None
    known = session.known_tool(name)
    if known is None or known.plugin != META_PLUGIN:
        await session.load(name)
    return name


def misnamed(name: str, arguments: JsonObject, session: Session) -> str:
    """Return why a call is not run that names its tool in another form than its wire name, or nothing.

    A framework's controls by a tool's name know that one alone, and would not see this call.

    Args:
        name: what the model called.
        arguments: what it gave.
        session: the session.
    """
    named: object = arguments.get("name") if name in THROUGH else name
    tool = session.known_tool(named) if isinstance(named, str) else None
    if tool is None or tool.wire == named:
        return ""
    return f"'{one_line(str(named), limit=100)}' is called '{tool.wire}' here; it has not run. Call '{tool.wire}'."


def reject_tools(error: Exception, sent: Sequence[str], own: Mapping[str, Tool], session: Session) -> Collection[str]:
    """Return which of the session's ``own`` tools a provider does not take, by its error; each is reported.

    They are excluded from the session's requests from now on, in this process, as long as they are defined as now.

    Args:
        error: what the request failed with; none of a provider's is about a tool without its ``status_code``.
        sent: the names of the request's tools, in order.
        own: those of the session among them.
        session: the session.
    """
    if getattr(error, "status_code", None) is None:
        return ()
    rejection, before = rejection_of(error, sent), rejected_of(session, own.values())
    names = [name for name in rejection.names if rejection.kind == "tool" and name in own and name not in before]
    for name in names:
        session.info.conversation.rejected[name] = own[name]
        session.report_rejected(f"tool:{name}", rejection.text)
    return names


def rejected_of(session: Session, tools: Iterable[Tool]) -> frozenset[str]:
    """Return the names of the tools that a provider did not take from a session as they are defined now."""
    known = session.info.conversation.rejected
    return frozenset(tool.wire for tool in tools if known.get(tool.wire) == tool) if known else frozenset()


@dataclass(slots=True)
class Reported:
    """What a provider has reported of a run: its answers, and their input tokens, all and those read from its cache."""

    answers: int = 0
    of: int = 0
    read: int = 0

    def add(self, of: int, read: int) -> None:
        """Take in the numbers of one more answer."""
        self.answers, self.of, self.read = self.answers + 1, self.of + of, self.read + read


async def end_turns(session: Session, turns: int, reported: Reported | None = None) -> None:
    """End turns of a session with a run; where the log has lines of information, one says what its tools came to.

    Args:
        session: the session.
        turns: how many; none where another run of the session goes on.
        reported: what the provider has said of the run; numbers that are not of all its requests do not count.
    """
    for _ in range(turns):
        await session.end_turn()
    if not turns:
        return
    if not _COSTS.isEnabledFor(logging.INFO):
        return
    cost = await session.run_cost()
    if reported is not None and reported.answers == cost.requests and 0 <= reported.read <= reported.of:
        cost = await session.run_cost(read=reported.read, of=reported.of)
    if cost.requests:
        _COSTS.info("session %r of %s: %s", session.key.session, session.key.agent, cost.line())


def waits_since_before(answer: CallAnswer, since: float) -> Approval | None:
    """Return the approval that an answer waits for if it was asked for before a time: no new one was decided (A6).

    Args:
        answer: what the call came to.
        since: seconds since the epoch, from before the call.
    """
    approval = answer.approval if answer.status == "needs_approval" else None
    return None if approval is None or approval.asked_at >= since else approval


def about_login(answer: CallAnswer) -> JsonObject | None:
    """Return what the user of a framework is told of the login that a call waits for, or None (G11).

    ``id`` is the waiting call's.
    """
    login = answer.login if answer.status == "needs_login" else None
    if login is None:
        return None
    return {"id": login.id, "server": login.plugin, "url": login.url, "expires_at": login.expires_at}


async def allowed(
    session: Session, approval: Approval, *, fields: JsonObject, by: str = "", call_id: str | None = None
) -> CallAnswer:
    """Return the answer of a call that the user of a framework has allowed (A3).

    Args:
        session: the session of the call.
        approval: what the call waits for.
        fields: what they filled in.
        by: who it was; the session's principal where nobody is named.
        call_id: what the provider names the call.
    """
    try:
        await session.approvals.allow(approval.id, by=by or session.key.principal, fields=fields or None)
    except UsageError as problem:
        return CallAnswer(status="refused", result=text_result(problem.message, is_error=True), message=problem.message)
    return await session.resume(approval.id, call_id=call_id)


Worker = TypeVar("Worker")


def worker_of(agents: Worker | Mapping[str, Worker], child: Session) -> Worker:
    """Return the framework's agent that does the task of a child session.

    Args:
        agents: the one for every child, or some by the name of the child's agent, or by its kind.
        child: the session; one that works under the profile of its parent goes by its kind first.

    Raises:
        UsageError: none of them is for this child.
    """
    if not isinstance(agents, Mapping):
        return agents
    known = cast("Mapping[str, Worker]", agents)
    info = child.info
    names = (child.key.agent, info.kind) if info.delegated else (info.kind, child.key.agent)
    for name in names:
        if name in known:
            return known[name]
    raise UsageError(
        f"No agent of the framework is given for '{names[0]}'.", hint=f"There are: {', '.join(known) or 'none'}."
    )


async def record_decision(session: Session, approval_id: str, *, refused: str | None, result: object) -> None:
    """Take into a session what a person decided in the framework: words of refusal, or a result from elsewhere."""
    with suppress(UsageError):  # it was settled before
        if refused is not None:
            await session.approvals.refuse(approval_id, by=session.key.principal, reason=refused)
        elif result is not None:
            await session.resume(approval_id, result=result)


def twin(whole: object, mixin: type) -> Any:
    """Return an object with the state of another one, and with the methods of a mixin before those of its class."""
    if isinstance(whole, mixin):
        return whole
    kind: Any = _twin_of(type(whole), mixin)
    made: Any = kind.__new__(kind)
    for name, value in vars(whole).items():
        setattr(made, name, value)
    return made


@cache
def _twin_of(kind: type, mixin: type) -> type:
    return type(kind.__name__, (mixin, kind), {"__module__": kind.__module__, "__qualname__": kind.__qualname__})


def type_of_field(schema: JsonObject) -> type:
    """Return the type of a field of a form, by its JSON schema."""
    return _TYPES.get(str(schema.get("type")), str)


def in_event_loop() -> bool:
    """Return whether an event loop runs in this thread."""
    try:
        return bool(asyncio.get_running_loop())
    except RuntimeError:
        return False


def arguments_of(text: object) -> dict[str, Any] | None:
    """Return the arguments that a model wrote, or None where they are no object."""
    found = parsed_arguments(text)
    return None if found is None else dict(found)


def text_and_media(result: CallResult, files: Collection[str]) -> tuple[str, dict[str, list[dict[str, Any]]]]:
    """Return a result's text, and its images, audios and files with their ``content`` and ``mime_type``.

    Files of other types than ``files``, and what is too large, are named in the text, the end of which is cut where it
    is too long for a model.
    """
    texts: list[str] = []
    media: dict[str, list[dict[str, Any]]] = {}
    for block in result.content:
        match block:
            case {"type": "text", "text": text} | {"type": "resource", "resource": {"text": text}}:
                texts.append(str(text))
            case {"data": str(data), "mimeType": str(kind)} | {
                "resource": {"blob": str(data), "mimeType": str(kind)}
            } if len(data) > FILE_LIMIT:
                texts.append(name_of_file(kind, data))
            case {"type": "image" | "audio" as kind, "data": data, "mimeType": mime_type}:
                media.setdefault(f"{kind}s", []).append({"content": b64decode(data), "mime_type": mime_type})
            case {"type": "resource", "resource": {"blob": data, "mimeType": mime_type}} if mime_type in files:
                media.setdefault("files", []).append({"content": b64decode(data), "mime_type": mime_type})
            case {"resource": about} | about:
                texts.append(json.dumps({key: value for key, value in about.items() if key != "blob"}))
    text = "\n".join(texts)
    return text if len(text) <= RESULT_LIMIT else cut(text, RESULT_LIMIT), media


def data_url(blob: Mapping[str, Any]) -> str:
    """Return an image or a file of :func:`text_and_media` as a URL that has its content."""
    return f"data:{blob['mime_type']};base64,{b64encode(blob['content']).decode()}"


@cache
def warn_once(text: str) -> None:
    """Log a warning the first time that it is given in this process."""
    _LOG.warning(text)


async def loaded_beside(session: Session) -> tuple[Tool, ...]:
    """Return what a session has loaded, that can run now, and its list does not have (D1, P6)."""
    snapshot = await session.snapshot()
    loaded = available(snapshot.permissions, active_tools(snapshot.permissions, snapshot.state).values())
    return tuple(one.tool for one in loaded if one.because[0] in LEASED)


def prefix_of(surface: Surface) -> str:
    """Return policy and hints, for the system's text; what is loaded later stays among the hints (F2)."""
    hints = "\n".join(("Can be loaded:", *surface.hints)) if surface.hints else ""
    return encodable_text("\n\n".join(text for text in (surface.policy, hints) if text))
