"""A tool that an operator calls as an agent, in a session of its own that ends with the answer (X1, X2, X4).

Everything is decided as for the agent's model: permissions, guards, approvals, arguments.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from pegboard.board.catalog.loader import IN_PROCESS
from pegboard.board.discover import discover_every
from pegboard.board.services import Services
from pegboard.board.session import Session
from pegboard.board.session_info import SessionInfo, agent_of
from pegboard.core.access.approvals.digests import canonical, digest
from pegboard.core.access.names import tool_of_agent
from pegboard.core.access.permissions import SessionConstraints
from pegboard.core.model.delivery import COMMAND
from pegboard.core.model.tools import JsonObject
from pegboard.core.state.call_plans import CallAnswer, CallStatus, answer
from pegboard.errors import UsageError
from pegboard.operators.masked import Name, Verbatim, mask_value, shown_names
from pegboard.operators.schema_fields import FieldOverview, FieldProblem, field_problems, fields_of, properties_of
from pegboard.operators.sessions import remove_session
from pegboard.ports import SessionKey

LONGEST: Final = 65_536
"""How many characters of one text, of an answer or a definition, are shown."""
LONGEST_KIND: Final = 40
"""How many characters of the kind of a block are shown."""
LONGEST_NAME: Final = 500
"""How many characters are shown of what a block is that has no text: its address, its kind of content or its name."""
MOST_BLOCKS: Final = 20
"""How many blocks of an answer are shown."""
MOST_FIELDS: Final = 60
"""How many properties of a schema have a field; the others are given with the other arguments."""
MOST_COUNTED: Final = 1_000_000
"""Of how many characters the tokens are counted."""
PATIENCE: Final = 300.0
"""After how many seconds a call ends that nothing else ends."""
_SESSION: Final = re.compile(r"try-[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolForm:
    """What is filled in to call a tool.

    Attributes:
        agent: as which agent.
        tool: the wire name.
        title: its title for people, or nothing.
        description: what models read of it.
        fields: one for each property of its schema, the first 60.
        more: how many other properties there are.
        known: whether such a tool is known.
        tokens: those of its definition.
    """

    agent: Name
    tool: Name
    title: str
    description: str
    fields: tuple[FieldOverview, ...]
    more: int
    known: bool
    tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerBlock:
    """One block of an answer: its text, or of anything else what it is and how large.

    ``kind`` is that of the protocol, such as ``text`` or ``image``; ``left`` is how many characters are not shown.
    """

    kind: str
    text: str
    left: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTrial:
    """What came of a call.

    Attributes:
        id: the number of its record on the audit trail; None where it left none, as one that waits for a person.
        status: what became of it, ``ok`` where it ran.
        is_error: whether a model would take it as a failure.
        message: why it did not run, or nothing.
        blocks: what it answered, at most 20 blocks.
        more: how many other blocks there are.
        structured: its structured result as JSON, or nothing.
        structured_left: how many characters of that are not shown.
        duration: how long it took with all that decides, in milliseconds.
        tokens_in: those of the arguments.
        tokens_out: those of the answer; None where it is too long to be counted.
        principal: for whom it ran: the operator.
        session: the session that it ran in, as its records name it.
        approval: the approval that it waits for, or nothing; called again in this session it runs once that is given.
    """

    id: int | None
    status: CallStatus
    is_error: bool
    message: str
    blocks: tuple[AnswerBlock, ...]
    more: int
    structured: str
    structured_left: int
    duration: float
    tokens_in: int | None
    tokens_out: int | None
    principal: Name
    session: Verbatim
    approval: Verbatim


async def build_tool_form(services: Services, agent: str, name: str) -> ToolForm:
    """Return what is filled in to call a tool as an agent, as far as the tool is known.

    Where it is not, plugins written in Python are asked for their tools first; servers are not started.
    """
    agent_of(services.world, agent)
    if not services.world.catalog.meant_by(name):
        await discover_every(services, IN_PROCESS)
    tool = tool_of_agent(services.compiler.permissions_of_agent(agent), name)
    if tool is None:
        found = ToolForm(agent=agent, tool=name, title="", description="", fields=(), more=0, known=False, tokens=None)
    else:
        every = len(properties_of(tool.input_schema))
        found = ToolForm(
            agent=agent,
            tool=tool.wire,
            title=tool.stated_title,
            description=services.masker.beginning(tool.description, LONGEST),
            fields=_first_fields(fields_of(tool.input_schema)),
            more=max(every - MOST_FIELDS, 0),
            known=True,
            tokens=services.prices((tool,)),
        )
    return mask_value(found, await shown_names(services))


def _first_fields(fields: Iterator[FieldOverview]) -> tuple[FieldOverview, ...]:
    return tuple(field for field, _ in zip(fields, range(MOST_FIELDS), strict=False))


async def find_form_problems(services: Services, name: str, given: Mapping[str, Any]) -> tuple[FieldProblem, ...]:
    """Return what is wrong with arguments, each with the one that it is about; none where the tool is not known."""
    tool = services.world.catalog.find_tool(name)
    problems = await field_problems(services, name, tool.input_schema, given) if tool is not None else ()
    return mask_value(problems, await shown_names(services))


async def make_trial_call(
    services: Services, agent: str, name: str, arguments: JsonObject, *, by: str, session: str = ""
) -> ToolTrial:
    """Call a tool as an agent, for the operator as the principal, and return what came of it.

    The session is new, and is deleted with the answer; where the call waits for a person nothing stays loaded, and the
    same call in the same session runs once that person has allowed it.

    Args:
        session: that of an answer that waited; nothing is a new one.

    Raises:
        UsageError: the session is none of this kind, or the board is closed.
    """
    agent_of(services.world, agent)
    if session and not _SESSION.fullmatch(session):
        raise UsageError("Only a session of an earlier try can be continued.", hint="Send none.")
    key = SessionKey(principal=by, agent=agent, session=session or f"try-{secrets.token_hex(8)}")
    info = SessionInfo(key=key, stable=True, host=COMMAND, constraints=SessionConstraints(), by=by)
    started = time.perf_counter()
    waits = False
    try:
        found = await _call_tool(Session(services, info), name, arguments)
        waits = found.status == "needs_approval"
    finally:
        await remove_session(services, key, by=by, approvals=not waits)
    duration = round((time.perf_counter() - started) * 1000, 3)
    records = () if waits else await services.store.session_trail(key, kinds=("call", "deny"), limit=1)
    number = records[0].number if records else None
    return mask_value(_shown_trial(services, key, arguments, found, number, duration), await shown_names(services))


async def waiting_session(services: Services, agent: str, tool: str, arguments: JsonObject, *, by: str) -> str:
    """Return the session in which a call that an operator made waits for a person or was allowed, or nothing."""
    asked = digest(await services.store.digest_key(), canonical(arguments))
    known = await services.store.approvals(principal=by, agent=agent, open_at=services.store.clock())
    sessions = (
        one.binding.session for one in known if (one.binding.tool, one.asked) == (tool, asked) and one.lasts != "always"
    )
    return next(filter(_SESSION.fullmatch, sessions), "")


async def _call_tool(session: Session, name: str, arguments: JsonObject) -> CallAnswer:
    """Return the answer of a call; what is not loaded and may be is loaded first, as a model does it."""
    try:
        async with asyncio.timeout(PATIENCE):
            found = await session.call(name, arguments)
            if found.status == "not_loaded":  # it is loaded now
                found = await session.call(name, arguments)
            if found.status == "next_request":
                await session.end_turn()
                found = await session.call(name, arguments)
            return found
    except TimeoutError:
        return answer("timeout", f"'{name}' had not answered after {PATIENCE:.0f} seconds.")


def _shown_trial(
    services: Services,
    key: SessionKey,
    arguments: JsonObject,
    found: CallAnswer,
    number: int | None,
    duration: float,
) -> ToolTrial:
    result = found.result
    structured, left = _cut_masked(services, _json(result.structured) if result.structured is not None else "")
    return ToolTrial(
        id=number,
        status=found.status,
        is_error=found.is_error,
        message=found.message,
        blocks=tuple(_block(services, block) for block in result.content[:MOST_BLOCKS]),
        more=max(len(result.content) - MOST_BLOCKS, 0),
        structured=structured,
        structured_left=left,
        duration=duration,
        tokens_in=_tokens(services, _json(arguments)),
        tokens_out=_tokens(services, *(str(block.get("text", "")) for block in result.content)),
        principal=key.principal,
        session=key.session,
        approval=found.approval.id if found.approval is not None and found.status == "needs_approval" else "",
    )


def _block(services: Services, block: JsonObject) -> AnswerBlock:
    """Return a block as it is shown; an embedded resource is what it embeds."""
    beginning, inner = services.masker.beginning, block.get("resource")
    kind = beginning(str(block.get("type", "")), LONGEST_KIND)
    body = cast("JsonObject", inner) if isinstance(inner, Mapping) else block
    about = beginning(str(body.get("uri") or body.get("mimeType") or body.get("name") or ""), LONGEST_NAME)
    text = body.get("text")
    if isinstance(text, str):
        shown, left = _cut_masked(services, text)
        return AnswerBlock(kind=kind, text=shown if kind == "text" else f"{about}\n{shown}", left=left)
    data = body.get("data") or body.get("blob")
    size = f", {len(data) * 3 // 4:,} bytes" if isinstance(data, str) else ""
    return AnswerBlock(kind=kind, text=f"{about}{size}")


def _cut_masked(services: Services, text: str) -> tuple[str, int]:
    """Return the beginning of a text, masked before it is cut, and how many characters are left."""
    return services.masker.beginning(text, LONGEST), max(len(text) - LONGEST, 0)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, default=str)
    except (ValueError, RecursionError):
        return "It is not JSON."


def _tokens(services: Services, *texts: str) -> int | None:
    if sum(map(len, texts)) > MOST_COUNTED:
        return None
    return sum(map(services.counter.count, texts))
