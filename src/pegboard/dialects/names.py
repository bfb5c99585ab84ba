"""What every dialect is made of: a view of the session, the steps it may ask for, its payload."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Literal, Protocol

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.agents import Activation, Agent
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import UNLOAD, Lease, LeaseTerm
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.core.state.commands import Command, Item, Outcome
from pegboard.core.state.sessions import State
from pegboard.core.state.subjects import leased_tools

META_PLUGIN = "pegboard"
READ_ONLY: JsonObject = {"readOnlyHint": True, "openWorldHint": False}
CHANGES_LIST: JsonObject = {
    "readOnlyHint": False,
    "destructiveHint": False,
    "idempotentHint": True,
    "openWorldHint": False,
}


SearchLoads = Literal["nothing", "clear", "likely"]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a dialect sees of the session: what it may, what is loaded, what is hinted.

    ``hints`` are there only where the host has them in the meta-tools' descriptions; ``cut`` is whether something of
    them was shortened or dropped, so that the model needs a search; ``search_loads`` is what a search
    may load of what it finds, by how a load reaches the model (D1); ``revealed`` is whether the host shows the
    model itself what is loaded, so that an answer has no schemas (D4), but where it brings more than ``at_most``.
    """

    permissions: CompiledPermissions
    state: State
    stable: bool = True
    hints: tuple[str, ...] = ()
    cut: bool = False
    search_loads: SearchLoads = "nothing"
    revealed: bool = False
    at_most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A step: find the tools that answer these needs best; ``context`` is what was said before, None what is known."""

    queries: tuple[str, ...]
    limit: int = 5
    context: tuple[str, ...] | None = None


Standing = Literal["callable", "next_request", "loadable", "unavailable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTool:
    """One answer of a search: a tool, a toolkit, or a plugin whose tools are not known yet.

    Attributes:
        name: the name under which it is loaded; a tool's is its wire name.
        plugin: the plugin that a tool belongs to, or that it is; a toolkit has none.
        description: what the model reads of it.
        score: how well it answers, between 0 and 1; 1 is an exact name, and searches compare.
        loaded: whether it is loaded now.
        kind: what it is.
        sentence: the sentence of the description that tells it from the other results.
        required: the arguments that a tool requires, each with its type or values where they are short.
        status: whether a call of it runs now, from the next request on, after a load, or not at all for now.
        reason: why it is unavailable, and what to do; else empty.
        need: which of the queries it answers, from 0.
    """

    name: str
    plugin: str
    description: str
    score: float
    loaded: bool
    kind: Literal["tool", "plugin", "toolkit"] = "tool"
    sentence: str = ""
    required: tuple[str, ...] = ()
    status: Standing = "loadable"
    reason: str = ""
    need: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search found.

    Attributes:
        query: the needs that were asked for.
        results: what answers them, best first.
        hint: how to go on.
        further: the names of what comes next, best first.
        siblings: the names of other tools of the best results' plugins.
        clear: the names of the results that are so far ahead that they can be taken without asking.
        likely: the names of those that may well be it, the clear ones among them.
    """

    query: tuple[str, ...]
    results: tuple[FoundTool, ...]
    hint: str = ""
    further: tuple[str, ...] = ()
    siblings: tuple[str, ...] = ()
    clear: tuple[str, ...] = ()
    likely: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAnswer:
    """The answer to a step: what a command did and how the session looks after it, or what was found.

    ``count`` counts the tokens of a text.
    """

    view: View
    outcome: Outcome | None = None
    found: Found | None = None
    count: Callable[[str], int] = len


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaToolAnswer:
    """The answer of a meta-tool.

    ``schemas`` are the tools whose schemas the model needs now; ``inline`` says that ``value``
    has them already; ``compact`` that its JSON has no spaces.
    """

    value: JsonObject | str
    is_error: bool = False
    schemas: tuple[Tool, ...] = ()
    inline: bool = False
    sort_keys: bool = False
    compact: bool = False

    def text(self) -> str:
        """Return the payload as the text of its block."""
        if isinstance(self.value, str):
            return self.value
        separators = (",", ":") if self.compact else None
        return json.dumps(self.value, ensure_ascii=False, sort_keys=self.sort_keys, separators=separators)


DialectStep = Command | Search
DialectSteps = Generator[DialectStep, StepAnswer, MetaToolAnswer]


class Dialect(Protocol):
    """A family of meta-tools: their definitions, and how a call of one is carried out in steps."""

    @property
    def name(self) -> str:
        """Return the name by which agents choose it."""
        ...

    @property
    def activation(self) -> Activation | None:
        """Return when loads take effect where the dialect says so itself (D2)."""
        ...

    @property
    def lease(self) -> LeaseTerm:
        """Return how long loads stand by default."""
        ...

    @property
    def hints(self) -> Literal["toolkits", "plugins", "tools"]:
        """Return what is hinted: toolkits alone; behind them what they do not hold, or every tool (F2)."""
        ...

    @property
    def finds(self) -> str:
        """Return what finds the tools for which hints have no room, as the hints name it."""
        ...

    @property
    def searches(self) -> bool:
        """Return whether a search is always listed; else `search_tools` is where hints are cut."""
        ...

    @property
    def lists(self) -> frozenset[str]:
        """Return the meta-tools that only list: they are there while all is loaded, too (T4)."""
        ...

    def tools(self, view: View) -> tuple[Tool, ...]:
        """Return the definitions of the meta-tools."""
        ...

    def run(self, view: View, name: str, arguments: JsonObject) -> DialectSteps:
        """Yield steps, receive what they did, return the payload; arguments are valid already."""
        ...


def meta_tool(
    name: str,
    description: str,
    properties: Mapping[str, Any] | None = None,
    *,
    required: Sequence[str] = (),
    annotations: JsonObject = CHANGES_LIST,
) -> Tool:
    """Return the definition of a meta-tool."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties or {})}
    if required:
        schema["required"] = list(required)
    return Tool(
        plugin=META_PLUGIN,
        name=name,
        wire=name,
        description=description,
        input_schema=schema,
        annotations=annotations,
    )


def recorded_name(tool: Tool) -> str:
    """Return what the audit trail calls a tool: its id, or the name of a meta-tool (G10).

    >>> recorded_name(Tool(plugin="git", name="log")), recorded_name(meta_tool("list_toolkits", "List them."))
    ('git/log', 'list_toolkits')
    """
    return tool.name if tool.plugin == META_PLUGIN else tool.id


def schema_of(tool: Tool) -> JsonObject:
    """Return name, description and input schema of a tool, as an answer carries them."""
    return {
        "name": tool.wire,
        "description": tool.description,
        "inputSchema": tool.input_schema,
    }


def lease_on(subject: Ref) -> Lease:
    """Return a lease that stands for everything of a subject, to ask what that is."""
    return Lease(subject=subject, until=UNLOAD)


def loaded_schemas(view: View, items: Iterable[Item]) -> tuple[Tool, ...]:
    """Return the tools of what a load named, each once."""
    found = (
        tool
        for item in items
        if item.subject is not None
        for tool, _ in leased_tools(view.permissions, lease_on(item.subject))
    )
    return tuple({tool.id: tool for tool in found}.values())


def with_hints(text: str, hints: tuple[str, ...]) -> str:
    """Return a description followed by the hints, one line each."""
    return "\n".join((text, *hints)) if hints else text


_CLASSES: Final = {
    "pegboard": "PegboardDialect",
    "toolkits": "ToolkitsDialect",
    "invokeother": "InvokeOtherDialect",
    "discovery": "DiscoveryDialect",
}


class Dialects(dict[str, Dialect]):
    """The dialects that were asked for; each is a module of this package, of its own name."""

    def __missing__(self, name: str) -> Dialect:
        """Return the dialect of a name, made now."""
        made = self[name] = getattr(import_module(f"pegboard.dialects.{name}"), _CLASSES[name])()
        return made


def activation_of(dialects: Mapping[str, Dialect], agent: Agent) -> Activation | None:
    """Return when loads take effect where an agent's file or its dialect says so, else None (D2)."""
    return agent.activation or dialects[agent.dialect].activation


CALL = "call_tool"
CALL_READ_ONLY = "call_read_only_tool"
PASS_ON = frozenset({CALL, CALL_READ_ONLY})
"""The meta-tools that pass ``arguments`` on to the tool that they name."""
_PROPERTIES = {"name": {"type": "string"}, "arguments": {"type": "object"}}
_WORST: JsonObject = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": False,
    "openWorldHint": True,
}


def call_through_tools() -> tuple[Tool, ...]:
    """Return both definitions; the annotations of ``call_tool`` are the honest worst case (G6)."""
    return (
        meta_tool(
            CALL,
            "Call a loaded tool that is not listed.",
            _PROPERTIES,
            required=("name",),
            annotations=_WORST,
        ),
        meta_tool(
            CALL_READ_ONLY,
            "Like call_tool, for tools that only read.",
            _PROPERTIES,
            required=("name",),
            annotations=READ_ONLY,
        ),
    )
