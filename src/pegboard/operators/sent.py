"""What the model of a session sees: tools and texts as they are sent next, and what differs from before (F1, F4)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from pegboard.board.observability.metrics import SentTexts
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.board.views.surface import instructions, surface_to_come
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import LoadedTool
from pegboard.core.surface.explanations import loaded_because
from pegboard.core.surface.surfaces import Surface
from pegboard.errors import UnknownAgentError
from pegboard.operators.masked import Name, masked, shown_names
from pegboard.operators.sessions import UNREADABLE
from pegboard.operators.snapshots import known_by_key, looked_at_now
from pegboard.ports import SessionKey

TextPlace = Literal["instructions", "hints", "policy", "ahead", "suffix"]
"""Where a text stands: read once at the start, before the history (hints, policy), or behind it (ahead, suffix)."""
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
        because: why it is loaded, as ``explain`` says it.
        change: whether it joined or changed since the newest request of this process.
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
class SentToModel:
    """What the model of a session is sent next (F1, F2).

    Attributes:
        principal: whose session it is.
        agent: the agent's name.
        session: its id.
        turn: its turn.
        tools: in the order in which they are sent.
        texts: in the order in which they are sent.
        tokens: those of all of it.
        left: the wire names of tools that the newest request had and this one has not.
        compared: whether a request of this process is known to compare with; else nothing joined, changed or left.
        problem: why it cannot be read, or nothing.
    """

    principal: Name
    agent: Name
    session: Name
    turn: int | None = None
    tools: tuple[SentTool, ...] = ()
    texts: tuple[SentText, ...] = ()
    tokens: int = 0
    left: tuple[Name, ...] = ()
    compared: bool = False
    problem: str = ""


async def sent_to_model(services: Services, key: SessionKey) -> SentToModel | None:
    """Return what the model of a session sees next, or None where nothing is known of it.

    Nothing of it counts as sent; no server is started, nothing stored.

    Args:
        services: the services of the board.
        key: the session.

    Raises:
        StoreError: its state cannot be read.
    """
    await services.compiler.refresh()
    known = await known_by_key(services, key)
    if known is None:
        return None
    host = known.info.host
    try:
        state = known.info.start if host.calls_through and "array" not in host.delivery else known.state()  # G4
        snapshot = await looked_at_now(services, known, state)
    except ValueError:
        found = _nothing(key, UNREADABLE)
    except UnknownAgentError as error:
        found = _nothing(key, error.message)
    else:
        found = await _seen(services, snapshot)
    return _bounded(masked(found, await shown_names(services)))  # masked first: a cut secret would be none


def _bounded(sent: SentToModel) -> SentToModel:
    """Return it with the beginning of what is too long to be shown."""
    tools = tuple(
        replace(
            tool,
            description=_beginning(tool.description),
            input_schema=_beginning(tool.input_schema),
            output_schema=_beginning(tool.output_schema),
            annotations=_beginning(tool.annotations),
        )
        for tool in sent.tools
    )
    return replace(sent, tools=tools, texts=tuple(replace(one, text=_beginning(one.text)) for one in sent.texts))


def _beginning(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text) - LONGEST:,} more characters)"


def _nothing(key: SessionKey, problem: str) -> SentToModel:
    return SentToModel(principal=key.principal, agent=key.agent, session=key.session, problem=problem)


async def _seen(services: Services, snapshot: Snapshot) -> SentToModel:
    key = snapshot.info.key
    surface = await surface_to_come(services, snapshot)
    before = services.metrics.newest(key)
    once = await instructions(services, snapshot) if snapshot.info.host.calls_through else ""
    texts = tuple(_texts(services, surface, once))
    tools = tuple(_tools(services, snapshot, surface.tools, before))
    now = {one.name for one in tools}
    return SentToModel(
        principal=key.principal,
        agent=key.agent,
        session=key.session,
        turn=snapshot.state.turn,
        tools=tools,
        texts=texts,
        tokens=sum(one.tokens for one in (*tools, *texts)),
        left=tuple(tool.wire for tool in before[0] if tool.wire not in now) if before is not None else (),
        compared=before is not None,
    )


def _texts(services: Services, surface: Surface, once: str) -> Iterator[SentText]:
    """Yield the texts of a surface; over MCP the policy stands in what is read once."""
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
    services: Services, snapshot: Snapshot, listed: Iterable[LoadedTool], before: SentTexts | None
) -> Iterator[SentTool]:
    known = {tool.wire: tool for tool in before[0]} if before is not None else _NOTHING
    for loaded in listed:
        tool = loaded.tool
        yield SentTool(
            name=tool.wire,
            plugin=tool.plugin,
            title=tool.stated_title,
            description=tool.description,
            input_schema=_json(tool.input_schema),
            output_schema=_json(tool.output_schema),
            annotations=_json(tool.annotations),
            tokens=services.prices((tool,)),
            because=tuple(reason.text for reason in loaded_because(snapshot.permissions, snapshot.state, loaded)),
            change=_change(tool, known.get(tool.wire)) if before is not None else "",
        )


def _change(tool: Tool, before: Tool | None) -> Change:
    if before is None:
        return "joined"
    return "" if before is tool or before == tool else "changed"


def _json(value: Any) -> str:
    """Return a part of a definition as JSON, nothing of what is empty; what JSON has no form for as text."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str) if value else ""
