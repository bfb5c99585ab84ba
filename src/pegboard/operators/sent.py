"""What the model of a session sees: what it is sent next, what it was sent lately, and what differs (F1, F4)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from pegboard.board.observability.metrics import SentStep
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.board.views.surface import instructions, surface_to_come
from pegboard.core.access.decisions import Reason
from pegboard.core.model.tools import Tool
from pegboard.core.surface.explanations import loaded_because
from pegboard.core.surface.surfaces import Surface
from pegboard.errors import UnknownAgentError, UsageError
from pegboard.operators.masked import Name, mask_value, shown_names
from pegboard.operators.sessions import UNREADABLE
from pegboard.operators.snapshots import known_by_key, looked_at_now
from pegboard.ports import SessionKey

TextPlace = Literal["instructions", "hints", "policy", "ahead", "suffix", "beside"]
"""Where a text stands: read once at the start, before the history (hints, policy), or behind it (ahead, suffix).

``beside`` is one that was sent with a list, of which the place is no longer known.
"""
Change = Literal["", "joined", "changed"]
LONGEST: Final = 65_536
"""How many characters of one text of a definition are shown."""
_NOTHING: Final[Mapping[str, Tool]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class SentTool:
    """A tool as the model is sent it.

    Attributes:
        name: its wire name.
        plugin: its plugin.
        title: its title, or nothing where its source states none.
        description: what the model reads of it; of this and what follows at most 65,536 characters.
        input_schema: the JSON schema of its arguments, as JSON.
        output_schema: that of its structured result, or nothing.
        annotations: what its source claims of it, as JSON, or nothing.
        tokens: those of its definition.
        because: why it is loaded, as ``explain`` says it; nothing of a list that was sent before.
        change: whether it joined or changed since the list before.
    """

    name: Name
    plugin: Name
    title: str
    description: str
    input_schema: str
    output_schema: str
    annotations: str
    tokens: int
    because: tuple[str, ...]
    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class SentText:
    """A text beside the tools, and what it costs."""

    place: TextPlace
    text: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SentListBefore:
    """A list that the model of a session was sent, which differs from the one before.

    Attributes:
        number: by which it is asked for.
        at: when a request was first sent it, in seconds since the epoch.
        tools: how many tools it has.
        joined: how many of them were not in the list before, or were others there; of the oldest that is kept all.
        left: how many tools of the list before it has not.
    """

    number: int
    at: float
    tools: int
    joined: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SentToModel:
    """What the model of a session is sent next, or was sent before (F1, F2).

    Attributes:
        principal: whose session it is.
        agent: the agent's name.
        session: its id.
        turn: its turn; None of a list that was sent before.
        step: the number of the list that was sent before, or None where it is the next.
        at: when that was first sent, or None.
        tools: in the order in which they are sent.
        texts: in the order in which they are sent.
        tokens: those of all of it.
        left: the wire names of tools that the list before had and this one has not.
        compared: whether a list before it is known to compare with; else nothing joined, changed or left.
        before: the lists that this process sent in this session, as far as they are kept, the newest first.
        problem: why it cannot be read, or nothing.
    """

    principal: Name
    agent: Name
    session: Name
    turn: int | None = None
    step: int | None = None
    at: float | None = None
    tools: tuple[SentTool, ...] = ()
    texts: tuple[SentText, ...] = ()
    tokens: int = 0
    left: tuple[Name, ...] = ()
    compared: bool = False
    before: tuple[SentListBefore, ...] = ()
    problem: str = ""


async def sent_to_model(services: Services, key: SessionKey, step: int | None = None) -> SentToModel | None:
    """Return what the model of a session sees next or was sent before, or None where nothing is known of it.

    Nothing of it counts as sent; no server is started, nothing stored.

    Args:
        services: the services of the board.
        key: the session.
        step: the number of a list that it was sent; None is what it is sent next.

    Raises:
        StoreError: its state cannot be read.
        UsageError: that list is not kept.
    """
    steps = services.metrics.steps.steps_of(key)
    if step is not None:
        return _cut_texts(mask_value(_sent_before(services, key, steps, step), await shown_names(services)))
    await services.compiler.refresh()
    known = await known_by_key(services, key)
    if known is None:
        return None
    host = known.info.host
    try:
        state = known.info.start if host.calls_through and "array" not in host.delivery else known.state()  # G4
        snapshot = await looked_at_now(services, known, state)
    except ValueError:
        found = _sent_nothing(key, UNREADABLE)
    except UnknownAgentError as error:
        found = _sent_nothing(key, error.message)
    else:
        found = await _next_to_send(services, snapshot, steps)
    return _cut_texts(mask_value(found, await shown_names(services)))  # masked first: a cut secret would be none


def _cut_texts(sent: SentToModel) -> SentToModel:
    """Return it with the beginning of what is too long to be shown."""
    tools = tuple(
        replace(
            tool,
            description=_cut_text(tool.description),
            input_schema=_cut_text(tool.input_schema),
            output_schema=_cut_text(tool.output_schema),
            annotations=_cut_text(tool.annotations),
        )
        for tool in sent.tools
    )
    return replace(sent, tools=tools, texts=tuple(replace(one, text=_cut_text(one.text)) for one in sent.texts))


def _cut_text(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text) - LONGEST:,} more characters)"


def _sent_nothing(key: SessionKey, problem: str) -> SentToModel:
    return SentToModel(principal=key.principal, agent=key.agent, session=key.session, problem=problem)


def _sent_before(services: Services, key: SessionKey, steps: Sequence[SentStep], number: int) -> SentToModel:
    at = next((at for at, one in enumerate(steps) if one.number == number), None)
    if at is None:
        raise UsageError(f"No list {number} of this session is kept.", hint="See the page *What the model sees*.")
    step, last = steps[at], steps[at - 1] if at else None
    texts = tuple(_placed_texts(services, step))
    tools = tuple(_tools(services, [(tool, ()) for tool in step.tools], last.tools if last is not None else None))
    return SentToModel(
        principal=key.principal,
        agent=key.agent,
        session=key.session,
        step=step.number,
        at=step.at,
        tools=tools,
        texts=texts,
        tokens=sum(one.tokens for one in (*tools, *texts)),
        left=_tools_removed(last.tools if last is not None else (), step.tools),
        compared=last is not None,
        before=_lists_before(steps),
    )


def _lists_before(steps: Sequence[SentStep]) -> tuple[SentListBefore, ...]:
    """Return the lists that were sent, the newest first, each with how it differs from the one before."""
    found: list[SentListBefore] = []
    last: tuple[Tool, ...] = ()
    for step in steps:
        known = {tool.wire: tool for tool in last}
        joined = sum(bool(_change(tool, known.get(tool.wire))) for tool in step.tools)
        left = len(_tools_removed(last, step.tools))
        found.append(SentListBefore(number=step.number, at=step.at, tools=len(step.tools), joined=joined, left=left))
        last = step.tools
    return tuple(reversed(found))


def _tools_removed(before: Iterable[Tool], now: Iterable[Tool]) -> tuple[str, ...]:
    there = {tool.wire for tool in now}
    return tuple(tool.wire for tool in before if tool.wire not in there)


def _placed_texts(services: Services, step: SentStep) -> Iterator[SentText]:
    """Yield the texts of a list that was sent, where its surface says where each stands."""
    surface = step.surface
    places: dict[str, TextPlace] = {}
    if surface is not None:
        hints: TextPlace = "hints"
        places |= dict.fromkeys(surface.hints, hints)
        places.update({surface.suffix: "suffix", surface.ahead: "ahead", surface.policy: "policy"})
    of_places: dict[TextPlace, list[str]] = {}
    for text in step.texts:
        of_places.setdefault(places.get(text, "beside"), []).append(text)
    for place, texts in of_places.items():
        text = "\n".join(texts)
        yield SentText(place=place, text=text, tokens=services.counter.count(text))


async def _next_to_send(services: Services, snapshot: Snapshot, steps: Sequence[SentStep]) -> SentToModel:
    key = snapshot.info.key
    surface = await surface_to_come(services, snapshot)
    newest = services.metrics.newest(key)
    before = newest[0] if newest is not None else None
    once = await instructions(services, snapshot) if snapshot.info.host.calls_through else ""
    texts = tuple(_texts(services, surface, once))
    listed = [loaded.tool for loaded in surface.tools]
    because = (loaded_because(snapshot.permissions, snapshot.state, loaded) for loaded in surface.tools)
    tools = tuple(_tools(services, zip(listed, because, strict=True), before))
    return SentToModel(
        principal=key.principal,
        agent=key.agent,
        session=key.session,
        turn=snapshot.state.turn,
        tools=tools,
        texts=texts,
        tokens=sum(one.tokens for one in (*tools, *texts)),
        left=_tools_removed(before or (), listed),
        compared=before is not None,
        before=_lists_before(steps),
    )


def _texts(services: Services, surface: Surface, once: str) -> Iterator[SentText]:
    """Yield the texts of a surface; over MCP the policy is in what is read once."""
    places: tuple[tuple[TextPlace, str], ...] = (
        ("instructions", once),
        ("hints", "\n".join(surface.hints)),
        ("policy", "" if once else surface.policy),
        ("ahead", surface.ahead),
        ("suffix", surface.suffix),
    )
    for place, text in places:
        if text:
            yield SentText(place=place, text=text, tokens=services.counter.count(text))


def _tools(
    services: Services, listed: Iterable[tuple[Tool, Iterable[Reason]]], before: Iterable[Tool] | None
) -> Iterator[SentTool]:
    known = {tool.wire: tool for tool in before} if before is not None else _NOTHING
    for tool, because in listed:
        yield SentTool(
            name=tool.wire,
            plugin=tool.plugin,
            title=tool.stated_title,
            description=tool.description,
            input_schema=_json(tool.input_schema),
            output_schema=_json(tool.output_schema),
            annotations=_json(tool.annotations),
            tokens=services.prices((tool,)),
            because=tuple(reason.text for reason in because),
            change=_change(tool, known.get(tool.wire)) if before is not None else "",
        )


def _change(tool: Tool, before: Tool | None) -> Change:
    if before is None:
        return "joined"
    return "" if before is tool or before == tool else "changed"


def _json(value: Any) -> str:
    """Return a part of a definition as JSON, nothing of what is empty; what JSON has no form for as text."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str) if value else ""
