"""Which definitions of a server's tools count: as first seen, or as a person has accepted since (A4, G6)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, cast

from pegboard.core.model.tools import ANY_OBJECT, CHANGED, EMPTY, Frozen, JsonObject, Manifest, Tool, Unreviewed

Policy = Literal["additions", "ask", "trust"]
"""What becomes of a list that differs from the pins: new tools pass, or wait too, or everything passes."""
PinStatus = Literal["pinned", "changed", "new", "gone"]
VERSION: Final = 1
"""Of the digest: pins of another one cannot be compared, and the next list is taken as a first one."""
ACTED_ON: Final = ("ui", "openai", "anthropic", "io.modelcontextprotocol")
"""How the keys of ``_meta`` begin that hosts act on: user interfaces, and what is listed or deferred."""
_ENCODER: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"))


class PinName(NamedTuple):
    """What of a server a pin is of: a tool, or what the server says that it is for.

    ``tool`` is the tool's own name, and empty for the server.
    """

    kind: Literal["tool", "server"]
    tool: str = ""

    def subject(self, plugin: str) -> str:
        """Return how records and messages name it: ``plugin/tool``, or the server."""
        return f"{plugin}/{self.tool}" if self.kind == "tool" else plugin


SERVER_PIN: Final = PinName("server")


class Pin(NamedTuple):
    """What is kept of one tool of a server, or of the server.

    ``digest`` is that of the definition that counts; it is empty where the tool is new and waits for a person.
    ``waiting`` is that of the definition of which was reported last that it waits. ``read_only`` and ``harmless`` are
    whether it counts that the tool says so of itself. ``later`` is whether the definition came after the first sight,
    ``by`` who accepted it.
    """

    name: PinName
    digest: str = ""
    waiting: str = ""
    read_only: bool = False
    harmless: bool = False
    later: bool = False
    by: str = ""


class ServerPins(NamedTuple):
    """The pins of one server; ``revision`` is another one after every change."""

    pins: Mapping[PinName, Pin]
    version: int = VERSION
    revision: int = 0

    @property
    def compares(self) -> bool:
        """Return whether a list can be compared with these pins."""
        return self.version == VERSION


class Listed(NamedTuple):
    """What a list has of one tool: the digest of its definition, and what the tool says of itself."""

    digest: str
    read_only: bool
    harmless: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a list of a server's tools comes to.

    Attributes:
        changed: what is another than its pin, and waits for a person.
        held: the tools that have no pin, and wait for a person.
        rows: the pins that differ now from what is kept.
        first: whether it is the first list that can be compared with later ones.
        added: the tools that are new, and pass.
        passed: the tools that have changed, and pass.
        reported: those of ``changed`` and ``held`` that did not wait before.
        released: the tools that are again what is pinned.
    """

    changed: tuple[PinName, ...] = ()
    held: tuple[PinName, ...] = ()
    rows: tuple[Pin, ...] = ()
    first: bool = False
    added: tuple[PinName, ...] = ()
    passed: tuple[PinName, ...] = ()
    reported: tuple[PinName, ...] = ()
    released: tuple[PinName, ...] = ()

    @property
    def unreviewed(self) -> Unreviewed:
        """Return what waits for a person."""
        return Unreviewed(
            changed=tuple(name.tool for name in self.changed if name.kind == "tool"),
            new=tuple(name.tool for name in self.held),
            description_changed=SERVER_PIN in self.changed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedTool:
    """One tool of a server, as its pin and its newest list have it.

    Attributes:
        plugin: the server.
        tool: the tool's own name; empty for what the server says of itself, which is here where it has changed.
        wire: its name on the wire; the server's name for what the server says of itself.
        status: it is as pinned; it has changed or is new, and waits for a person; the newest list lacks it.
        digest: that of the definition that the newest list has; nothing where it lacks the tool.
        by: who accepted the definition that counts; nothing where it is the one first seen, or passed.
        claims: what the tool says of itself and does not count yet: ``read_only``, ``harmless``.
        pinned: the definition that counts, where it was asked for and there is one.
        listed: the definition that the newest list has, where it was asked for and there is one.
    """

    plugin: str
    tool: str
    wire: str
    status: PinStatus
    digest: str = ""
    by: str = ""
    claims: tuple[str, ...] = ()
    pinned: JsonObject | None = field(default=None)
    listed: JsonObject | None = field(default=None)

    @property
    def pin_name(self) -> PinName:
        """Return the name of its pin."""
        return PinName("tool", self.tool) if self.tool else SERVER_PIN

    @property
    def waits(self) -> bool:
        """Return whether a person is to look at it: it cannot be used, or does not count as what it says."""
        return self.status in ("changed", "new") or bool(self.claims)


def definition_of(tool: Tool) -> dict[str, Any]:
    """Return what a tool of a server is to models, hosts and people, as JSON: what is pinned (A4).

    >>> definition_of(Tool(plugin="git", name="log", description="Show the log."))["description"]
    'Show the log.'
    """
    found: dict[str, Any] = {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
    if "title" in tool.extra:
        found["title"] = tool.extra["title"]
    if tool.output_schema is not None:
        found["outputSchema"] = tool.output_schema
    if tool.annotations:
        found["annotations"] = tool.annotations
    if "_meta" in tool.extra and (meta := _acted_on(tool.extra["_meta"])):
        found["_meta"] = meta
    return found


def _acted_on(meta: object) -> object:
    """Return the part of a tool's ``_meta`` that hosts act on."""
    if not isinstance(meta, Mapping):
        return meta
    known = cast("Mapping[str, Any]", meta)
    return {key: value for key, value in known.items() if key.startswith(ACTED_ON)}


def definition_text(tool: Tool) -> str:
    """Return the canonical JSON of a tool's definition: equal definitions share it."""
    return _ENCODER.encode(definition_of(tool))


def listed_as(tool: Tool, kept: str = "") -> Listed:
    """Return what a list has of a tool.

    Args:
        tool: the tool.
        kept: what :func:`kept_digest` made for just this definition, or nothing; one of another version counts for
            nothing.
    """
    version, _, digest = kept.partition(":")
    if not digest or version != str(VERSION):
        digest = hashlib.sha256(definition_text(tool).encode()).hexdigest()
    return Listed(digest, tool.read_only, tool.annotations.get("destructiveHint") is False)


def server_definition(plugin: str, manifest: Manifest) -> tuple[Tool, Listed]:
    """Return what a server says that it is for, as models read it, in the form of a definition; and its digest."""
    says = Tool(plugin=plugin, name="", description=manifest.said(plugin))
    return says, Listed(hashlib.sha256(says.description.encode(errors="surrogatepass")).hexdigest(), False, False)


def kept_digest(one: Listed) -> str:
    """Return the digest of a definition as it is kept beside it: with the version in which it was made."""
    return f"{VERSION}:{one.digest}"


def kept_definition(text: str | None) -> JsonObject | None:
    """Return the definition that a text is, or None where it is none."""
    try:
        found: Any = json.loads(text) if text else None
    except ValueError:
        return None
    return cast("JsonObject", found) if isinstance(found, dict) else None


def of_definition(plugin: str, name: str, text: str | None) -> Tool:
    """Return the tool of which a definition is kept, unavailable; without one, nothing but its name."""
    return replace(as_tool(plugin, {**(kept_definition(text) or EMPTY), "name": name}), unavailable=CHANGED)


def as_tool(plugin: str, definition: JsonObject) -> Tool:
    """Return the tool of which :func:`definition_of` made a definition."""
    schema, output = definition.get("inputSchema"), definition.get("outputSchema")
    return Tool(
        plugin=plugin,
        name=str(definition.get("name", "")),
        description=str(definition.get("description", "")),
        input_schema=ANY_OBJECT if schema is None else Frozen(schema),
        output_schema=None if output is None else Frozen(output),
        annotations=Frozen(definition.get("annotations") or {}),
        extra=Frozen({key: definition[key] for key in ("title", "_meta") if key in definition}),
    )


def judge(
    known: ServerPins | None, listed: Mapping[PinName, Listed], policy: Policy, *, taken: Collection[PinName] = ()
) -> Judgement:
    """Return what a list of a server's tools comes to.

    A list is compared with the pins, never with the list before. Where it lacks a pinned tool and has a new one, the
    new one waits, whatever its likeness; so does one that would have the name of another server's tool. What a server
    says of itself passes at the first sight of it.

    Args:
        known: what is kept of the server; None where nothing is.
        listed: what the list has.
        policy: what becomes of differences.
        taken: the tools in the list whose wire names are those of other plugins' tools.

    >>> log = PinName("tool", "log")
    >>> first = judge(None, {log: Listed("a", True, False)}, "additions")
    >>> kept = ServerPins(pins={pin.name: pin for pin in first.rows})
    >>> judge(kept, {log: Listed("b", True, False)}, "additions").changed
    (PinName(kind='tool', tool='log'),)
    """
    if known is None or not known.compares:
        rows = tuple(_first_pin(name, one, known) for name, one in listed.items())
        return Judgement(rows=rows, first=True, added=tuple(listed))
    pins, found = known.pins, _PinDifferences()
    renamed = policy != "trust" and any(pin.digest and name not in listed for name, pin in pins.items())
    for name, one in listed.items():
        pin = pins.get(name)
        if pin is None or not pin.digest:
            waits = policy == "ask" or renamed or name in taken or pin is not None
            found.new(name, one, pin, waits=waits and policy != "trust" and name.kind == "tool")
        elif pin.digest != one.digest:
            found.add_changed(pin, one, passes=policy == "trust")
        elif pin.waiting:
            found.rows.append(pin._replace(waiting=""))
            found.released.append(name)
    return found.judgement()


def _first_pin(name: PinName, one: Listed, known: ServerPins | None) -> Pin:
    """Return the first pin of a tool; of a server with pins of another version, what did not count still does not."""
    if known is None:
        return Pin(name, one.digest, "", one.read_only, one.harmless)
    before = known.pins.get(name, Pin(name))
    return Pin(name, one.digest, "", one.read_only and before.read_only, one.harmless and before.harmless)


class _PinDifferences:
    """What differs from the pins, as it is found."""

    def __init__(self) -> None:
        self.changed: list[PinName] = []
        self.held: list[PinName] = []
        self.rows: list[Pin] = []
        self.added: list[PinName] = []
        self.passed: list[PinName] = []
        self.reported: list[PinName] = []
        self.released: list[PinName] = []

    def new(self, name: PinName, one: Listed, pin: Pin | None, *, waits: bool) -> None:
        """Take in a tool that has no pin."""
        if not waits:
            self.rows.append(Pin(name, one.digest))
            self.added.append(name)
            return
        self.held.append(name)
        if pin is None:
            self.rows.append(Pin(name, waiting=one.digest))
            self.reported.append(name)

    def add_changed(self, pin: Pin, one: Listed, *, passes: bool) -> None:
        """Take in a tool that is another than its pin; one that waits already is not reported again."""
        if passes:
            read_only, harmless = pin.read_only and one.read_only, pin.harmless and one.harmless
            self.rows.append(Pin(pin.name, one.digest, "", read_only, harmless, later=True))
            self.passed.append(pin.name)
            return
        self.changed.append(pin.name)
        if not pin.waiting:
            self.rows.append(pin._replace(waiting=one.digest))
            self.reported.append(pin.name)

    def judgement(self) -> Judgement:
        """Return all of it."""
        return Judgement(
            changed=tuple(self.changed),
            held=tuple(self.held),
            rows=tuple(self.rows),
            added=tuple(self.added),
            passed=tuple(self.passed),
            reported=tuple(self.reported),
            released=tuple(self.released),
        )


def accepted_pin(known: ServerPins, name: PinName, one: Listed, by: str) -> Pin:
    """Return the pin of a tool whose definition of now a person has accepted: what it says of itself counts."""
    pin = known.pins.get(name)
    later = pin is not None and (pin.later or pin.digest != one.digest)
    return Pin(name, one.digest, "", one.read_only, one.harmless, later, by)


def claims_waiting(pin: Pin, one: Listed) -> tuple[str, ...]:
    """Return what a tool that is as pinned says of itself, and does not count yet (G6)."""
    if not pin.digest or pin.digest != one.digest:
        return ()
    said = {"read_only": one.read_only and not pin.read_only, "harmless": one.harmless and not pin.harmless}
    return tuple(name for name, waits in said.items() if waits)


def missing_pins(known: ServerPins, listed: Collection[PinName]) -> tuple[PinName, ...]:
    """Return the pinned tools that a list lacks."""
    return tuple(name for name, pin in known.pins.items() if pin.digest and name not in listed)


def without_what_waits(manifest: Manifest, judgement: Judgement, pinned: Mapping[PinName, Tool]) -> Manifest:
    """Return what models may read of a list: what has changed as it was pinned, without what is new and waits.

    Args:
        manifest: the list.
        judgement: what it comes to.
        pinned: what has changed as it was pinned.
    """
    if not (judgement.changed or judgement.held):
        return manifest
    if SERVER_PIN in pinned:
        manifest = replace(manifest, description=pinned[SERVER_PIN].description, instructions="")
    held = frozenset(judgement.held)
    named = ((PinName("tool", tool.name), tool) for tool in manifest.tools)
    tools = tuple(pinned.get(name, tool) for name, tool in named if name not in held)
    return replace(manifest, tools=tools, unreviewed=judgement.unreviewed, digests=())
