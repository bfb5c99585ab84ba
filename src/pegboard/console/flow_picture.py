"""The picture of what an agent reaches: from the agent through its toolkits to servers, as wide as their tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pegboard.console.flow import Band, Link, Node, bands, column, height_of
from pegboard.console.templating import number, query, shown
from pegboard.console.treemap import fitting
from pegboard.operators.agent_flow import AgentFlow, FlowPart

WIDTH: Final = 960
LEAST_HEIGHT: Final = 160.0
MOST_TOOLKITS: Final = 10
MOST_SERVERS: Final = 12
TEXT: Final = 15
SMALL: Final = 13
_COLUMNS: Final = ((0.0, 170.0), (320.0, 230.0), (710.0, 250.0))
"""Where each column begins, and how wide its nodes are."""
_INSIDE: Final = 10.0
_REST: Final = "\0rest"
_NONE: Final = "\0none"
STATES: Final[Mapping[str, str]] = {
    "loaded": "loaded",
    "may_load": "may load",
    "off": "off",
    "cannot_run": "cannot run",
}
"""The states, each as people read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnNode:
    """One node: where it is, its two lines, what it is, its state, and where it leads; nowhere if empty."""

    x: float
    y: float
    width: float
    height: float
    label: str
    below: str
    title: str
    state: str
    href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBand:
    """One band: its outline, its state, and what it is."""

    outline: str
    state: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedToolkit:
    """The parts of one toolkit, for the list that stands for the picture where there is no room for it."""

    name: str
    href: str
    parts: tuple[FlowPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPicture:
    """The nodes and bands, which states there are, and what they stand for."""

    width: int
    height: float
    nodes: tuple[DrawnNode, ...]
    bands: tuple[DrawnBand, ...]
    states: tuple[tuple[str, str], ...]
    of: AgentFlow
    rows: tuple[ListedToolkit, ...]
    words: Mapping[str, str] = field(default_factory=lambda: STATES)


def flow_picture(flow: AgentFlow, *, servers: bool) -> FlowPicture | None:
    """Return the picture, or None where the agent reaches nothing; ``servers`` is whether theirs may be seen."""
    if not flow.parts:
        return None
    parts, more_toolkits, more_servers = _folded(flow.parts)
    middle, right = (_sizes(parts, of) for of in (_toolkit_of, _server_of))
    height = height_of([len(middle), len(right)], LEAST_HEIGHT)
    agent = {"agent": Node(key="agent", y=0.0, height=height)}
    toolkits, reached = column(middle, height), column(right, height)
    to_toolkits = _links(parts, lambda _: "agent", _toolkit_of)
    to_servers = _links(parts, _toolkit_of, _server_of)
    drawn = [
        *_drawn(bands(to_toolkits, agent, toolkits), 0),
        *_drawn(bands(to_servers, toolkits, reached), 1),
    ]
    texts = _Texts(flow.agent, more_toolkits, more_servers, servers=servers)
    nodes = [
        _node(agent["agent"], 0, flow.agent, "Agent", query("/console/sessions", agent=flow.agent), parts),
        *(_node(node, 1, *texts.toolkit(key), _of(parts, _toolkit_of, key)) for key, node in toolkits.items()),
        *(_node(node, 2, *texts.server(key), _of(parts, _server_of, key)) for key, node in reached.items()),
    ]
    known = {part.state for part in parts}
    return FlowPicture(
        width=WIDTH,
        height=height,
        nodes=tuple(nodes),
        bands=tuple(drawn),
        states=tuple((state, word) for state, word in STATES.items() if state in known),
        of=flow,
        rows=_listed(flow),
    )


class _Texts:
    """What the nodes of toolkits and servers say, and where they lead."""

    def __init__(self, agent: str, more_toolkits: int, more_servers: int, *, servers: bool) -> None:
        self._agent = agent
        self._more_toolkits = more_toolkits
        self._more_servers = more_servers
        self._servers = servers

    def toolkit(self, key: str) -> tuple[str, str, str]:
        """Return the name, the kind and the address of a toolkit's node: of its switch."""
        if key == _REST:
            return f"and {number(self._more_toolkits)} more", "", ""
        if key == _NONE:
            return "in no toolkit", "", ""
        return key, "Toolkit", query("/console/agent", agent=self._agent, q=key)

    def server(self, key: str) -> tuple[str, str, str]:
        """Return the same of a server's node: its page, for those who may see it, else its switch."""
        if key == _REST:
            return f"and {number(self._more_servers)} more", "", ""
        here = (
            query("/console/server", name=key) if self._servers else query("/console/agent", agent=self._agent, q=key)
        )
        return key, "Server", here


_KeyOf = Callable[[FlowPart], str]


def _toolkit_of(part: FlowPart) -> str:
    return part.toolkit or _NONE


def _server_of(part: FlowPart) -> str:
    return part.server


def _names(parts: Iterable[FlowPart], key_of: _KeyOf) -> list[str]:
    return [*dict.fromkeys(map(key_of, parts))]


def _of(parts: Iterable[FlowPart], key_of: _KeyOf, key: str) -> list[FlowPart]:
    return [part for part in parts if key_of(part) == key]


def _sizes(parts: Sequence[FlowPart], key_of: _KeyOf) -> dict[str, float]:
    """Return the tokens of each node, in order, the rest last."""
    names = sorted(_names(parts, key_of), key=lambda name: (name == _REST, name == _NONE))
    sizes = dict.fromkeys(names, 0.0)
    for part in parts:
        sizes[key_of(part)] += part.tokens or 0
    return sizes


def _folded(parts: Sequence[FlowPart]) -> tuple[list[FlowPart], int, int]:
    """Return parts of as many toolkits and servers as have room, the smallest as one, and how many those are."""
    toolkits, servers = _small(parts, _toolkit_of, MOST_TOOLKITS), _small(parts, _server_of, MOST_SERVERS)
    folded = [
        replace(
            part,
            toolkit=_REST if _toolkit_of(part) in toolkits else part.toolkit,
            server=_REST if part.server in servers else part.server,
        )
        for part in parts
    ]
    return folded, len(toolkits), len(servers)


def _small(parts: Sequence[FlowPart], key_of: _KeyOf, most: int) -> set[str]:
    sizes = _sizes(parts, key_of)
    if len(sizes) <= most:
        return set()
    names = [name for name in sizes if name != _NONE]
    largest = sorted(names, key=lambda name: -sizes[name])[: most - 1 - (_NONE in sizes)]
    return set(names) - set(largest)


def _links(parts: Sequence[FlowPart], source_of: _KeyOf, target_of: _KeyOf) -> list[Link]:
    """Return what flows between two columns, in the order of the nodes and states."""
    sums: dict[tuple[str, str, str], float] = {}
    for part in parts:
        key = source_of(part), target_of(part), part.state
        sums[key] = sums.get(key, 0.0) + (part.tokens or 0)
    sources, targets = ([*_sizes(parts, of)] for of in (source_of, target_of))
    states = [*STATES]

    def place(key: tuple[str, str, str]) -> tuple[int, int, int]:
        return sources.index(key[0]), targets.index(key[1]), states.index(key[2])

    return [Link(source=a, target=b, state=state, size=sums[a, b, state]) for a, b, state in sorted(sums, key=place)]


def _drawn(found: Sequence[Band], gap: int) -> list[DrawnBand]:
    """Return the bands between a column and the next."""
    start = sum(_COLUMNS[gap])
    end = _COLUMNS[gap + 1][0]
    middle = (start + end) / 2
    drawn: list[DrawnBand] = []
    for one in found:
        a, b, c, d = one.left, one.right, one.right + one.right_height, one.left + one.left_height
        outline = (
            f"M{start:.1f} {a:.1f}C{middle:.1f} {a:.1f} {middle:.1f} {b:.1f} {end:.1f} {b:.1f}"
            f"V{c:.1f}C{middle:.1f} {c:.1f} {middle:.1f} {d:.1f} {start:.1f} {d:.1f}Z"
        )
        title = f"{number(one.link.size)} tokens, {STATES[one.link.state]}"
        drawn.append(DrawnBand(outline=outline, state=one.link.state, title=title))
    return drawn


def _node(node: Node, at: int, name: str, kind: str, href: str, parts: Sequence[FlowPart]) -> DrawnNode:
    x, width = _COLUMNS[at]
    states = [state for state in STATES if any(part.state == state for part in parts)]
    words = ", ".join(STATES[state] for state in states)
    tokens = _tokens(parts)
    readable = shown(name, 80)
    below = words if len(states) == 1 else f"{len(states)} states"
    lines = (f"{tokens} · {below}", f"{tokens.removesuffix(' tokens')} · {below}", below)
    room = width - 2 * _INSIDE
    return DrawnNode(
        x=x,
        y=node.y,
        width=width,
        height=node.height,
        label=fitting(readable, room, TEXT),
        below=next((line for line in lines if fitting(line, room, SMALL) == line), ""),
        title=f"{kind} {readable}: {tokens}, {words}".strip(),
        state=states[0] if len(states) == 1 else "mixed",
        href=href,
    )


def _tokens(parts: Sequence[FlowPart]) -> str:
    known = [part.tokens for part in parts if part.tokens is not None]
    return f"{number(sum(known))} tokens" if known else "not known"


def _listed(flow: AgentFlow) -> tuple[ListedToolkit, ...]:
    found: list[ListedToolkit] = []
    for key in _names(flow.parts, _toolkit_of):
        name = "In no toolkit" if key == _NONE else key
        href = "" if key == _NONE else query("/console/agent", agent=flow.agent, q=key)
        found.append(ListedToolkit(name=name, href=href, parts=tuple(_of(flow.parts, _toolkit_of, key))))
    return tuple(found)
