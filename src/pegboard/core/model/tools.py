"""Tools, plugins and the small values that everything else is made of."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final, Literal, NoReturn, cast

from pegboard.core.model.naming import first_sentence, says_more
from pegboard.core.model.tool_words import tool_words
from pegboard.problems import Place

JsonObject = Mapping[str, Any]


class Frozen(dict[str, Any]):
    """A mapping that is never edited: hashable by identity, still plain JSON, equal where its JSON is the same.

    >>> Frozen({"default": 1}) == Frozen({"default": True}), Frozen({"default": 1}) == {"default": 1}
    (False, True)
    """

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("this mapping is a value; make a new one")

    __setitem__ = __delitem__ = update = setdefault = pop = popitem = clear = __ior__ = _refuse  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other or (super().__eq__(other) is True and _same_numbers(self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other


def _same_numbers(one: Any, other: Any) -> bool:
    """Return whether two values that are equal to Python are the same JSON: to Python 1, 1.0 and true are equal."""
    match one:
        case bool() | int() | float():
            return type(one) is type(other)
        case dict():
            items = cast("dict[Any, Any]", one).items()
            return all(_same_numbers(value, other[key]) for key, value in items)
        case list() | tuple():
            return all(map(_same_numbers, cast("list[Any]", one), other))
        case _:
            return True


EMPTY: Final[JsonObject] = Frozen()
ANY_OBJECT: Final[JsonObject] = Frozen({"type": "object", "properties": {}})
CHANGED: Final = "Its server has changed it since it was first seen, and the change waits for a person."
"""Why a tool cannot be used whose definition is another than its pin (A4); models read it."""
HELD: Final = "It is new and waits for a person."
"""Why a tool is not offered that has no pin (A4)."""
_NAMED: Final = 5
"""How many names of tools that wait are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """What a source demands before a tool runs (T13).

    Attributes:
        kind: a person confirms the call, fills fields in, or runs it elsewhere and hands the result in.
        fields: the arguments that a person fills in (``user_input``); the model does not see them.
        schema: the JSON schema of an object with these fields.
        hook: whether the source decides for each call if a person confirms it.
    """

    kind: Literal["confirm", "user_input", "external"] = "confirm"
    fields: tuple[str, ...] = ()
    schema: JsonObject = field(default=EMPTY)
    hook: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What a model calls.

    Attributes:
        plugin: the plugin that it belongs to.
        name: its name within the plugin.
        wire: the one name under which every model, client and log knows it (G10).
        description: what the model reads of it.
        input_schema: the JSON schema of its arguments.
        output_schema: the JSON schema of its structured result, or None.
        annotations: MCP's annotations, as the source reports them.
        extra: the rest of the wire object (title, icons, _meta …), which passes through unchanged (G7).
        requires: what comes and goes with it: ids, or names as lookup takes them (T8).
        needs: environment variables without which it is unavailable.
        when: predicates that are asked whether it can run now: ``module:function`` of the configuration, else one of
            its plugin's code (T12).
        unavailable: the reason where one is missing, or empty.
        default_on: whether it is on where no switch is set.
        policy: what the model is to know of it once it is loaded (T6).
        confirmation: what its source demands before it runs (T13), or None.
    """

    plugin: str
    name: str
    wire: str = ""
    description: str = ""
    input_schema: JsonObject = field(default=ANY_OBJECT)
    output_schema: JsonObject | None = None
    annotations: JsonObject = field(default=EMPTY)
    extra: JsonObject = field(default=EMPTY)
    requires: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    unavailable: str = ""
    default_on: bool = True
    policy: str = ""
    confirmation: Confirmation | None = None
    id: str = field(init=False, repr=False, compare=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", f"{self.plugin}/{self.name}")

    @property
    def stated_title(self) -> str:
        """Return what its source calls it for people, or nothing: ``title`` before ``annotations.title``."""
        for title in (self.extra.get("title"), self.annotations.get("title")):
            if isinstance(title, str) and title.strip():
                return title
        return ""

    @property
    def title(self) -> str:
        """Return its name for people; in MCP's order, its own name is the last."""
        return self.stated_title or self.name

    @property
    def read_only(self) -> bool:
        """Return whether the source says that the tool changes nothing."""
        return self.annotations.get("readOnlyHint") is True

    @property
    def has_ui(self) -> bool:
        """Return whether a client is to draw a user interface for the tool, or the tool serves one (MCP Apps)."""
        match self.extra.get("_meta"):
            case {"ui": {"resourceUri": str()}} | {"ui/resourceUri": str()}:
                return True
            case {"ui": {"visibility": [*seen_by]}}:
                return "app" in seen_by
            case _:
                return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What is known of one plugin under one set of overrides.

    ``tools`` is None until the plugin has been asked for the first time. ``unavailable`` says why
    it cannot run and what to do (P6), or is empty; ``needs_login`` says that a login is all it wants (G11). ``stale``
    says that its code has changed since the tools were seen, or that an earlier process found it unavailable, and that
    it has not answered since.
    """

    tools: tuple[str, ...] | None = None
    unavailable: str = ""
    needs_login: bool = False
    stale: bool = False

    @property
    def known(self) -> bool:
        """Return whether the tools of this variant have been seen."""
        return self.tools is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreviewed:
    """What of a server differs from its pins, and waits for a person (A4).

    Attributes:
        changed: the own names of the tools that have changed: they are unavailable.
        new: the own names of the tools that are new: they are in no list.
        description_changed: whether the server says something else of itself.
    """

    changed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    description_changed: bool = False

    @property
    def count(self) -> int:
        """Return how much waits."""
        return len(self.changed) + len(self.new) + self.description_changed

    @property
    def text(self) -> str:
        """Return what waits as people and models read it, or nothing."""
        changed = [*map(repr, self.changed), *["its own description"] * self.description_changed]
        said = [_list_names(changed, "has changed", "have changed")] if changed else []
        said += [_list_names([*map(repr, self.new)], "is new", "are new")] if self.new else []
        return f"{', and '.join(said)} since the first list: a person has to review it." if said else ""


def _list_names(names: Sequence[str], one: str, several: str) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more} {one if len(names) == 1 else several}"


NOTHING_UNREVIEWED: Final = Unreviewed()


DescribedBy = Literal["configuration", "itself", "package", "tools", ""]
"""Who says what a plugin is for: the configuration, its source, its package, or its tools' names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a source reports of a plugin under one set of overrides: tools and parameters.

    ``parameters`` maps the names of the overrides that the plugin takes to JSON types
    (``string``, ``integer`` …), for T5; ``secrets`` names those that must never be shown (X5).
    ``offers`` is what a server has besides tools (resources, prompts, completions); None is not known. ``declares`` has
    the rest of its capabilities as they stood on the wire: extensions, tasks, what is tried out (G7).
    ``unreviewed`` is what waits for a person, once the list of a server was compared with its pins (A4): what has
    changed is here as it is pinned, what is new does not.
    ``digests`` are those of the definitions of ``tools``, in their order, where they are known to be of just these: a
    store hands them out only with the text with which they were kept.
    ``lists`` is what a server lists besides tools (resources, templates, prompts), by kind, as it stood on the wire; it
    is kept for each scope of its connections, beside the manifest that is everyone's.
    ``package`` is how the package of a server is described, ``words`` are the commonest of its tools' names: both stay
    as they were first known, so that no hint changes with a new version (F2).
    ``excluded`` are the tools of a server that cannot be used as it lists them, each with the reason; ``cut`` is what
    was left out of tools that can, by tool and field; ``not_tools`` is what is public in the code of a plugin and is
    no tool, by its name with the reason.
    ``reached_by`` is what was learnt of how a server is reached, for its next start (G8).
    ``unavailable`` is why the plugin could not be brought in when it was asked last, and ``packages`` stands for what
    was installed then (P6).
    """

    tools: tuple[Tool, ...] = ()
    parameters: Mapping[str, str] = field(default=EMPTY)
    secrets: frozenset[str] = frozenset()
    description: str = ""
    instructions: str = ""
    offers: frozenset[str] | None = None
    declares: JsonObject = field(default=EMPTY)
    unreviewed: Unreviewed = NOTHING_UNREVIEWED
    digests: tuple[str, ...] = field(default=(), compare=False)
    lists: Mapping[str, tuple[JsonObject, ...]] = field(default=EMPTY)
    package: str = field(default="", compare=False)
    words: tuple[str, ...] = field(default=(), compare=False)
    reached_by: Mapping[str, str] = field(default=EMPTY)
    excluded: Mapping[str, str] = field(default=EMPTY)
    cut: Mapping[str, str] = field(default=EMPTY)
    not_tools: Mapping[str, str] = field(default=EMPTY)
    unavailable: str = ""
    packages: str = ""

    def said(self, plugin: str) -> str:
        """Return what its source says a plugin of this name is for: its description, else how its instructions begin.

        It is what is pinned of a server (A4).
        """
        if says_more(self.description, plugin):
            return self.description
        return first_sentence(self.instructions) or self.description

    def purpose(self, plugin: str) -> tuple[str, DescribedBy]:
        """Return what a plugin of this name is for, and who says so, empty where no one says more than its name.

        What the source says of itself comes before what its package is described as, and instructions come last, since
        they are about how something is used.
        """
        texts: tuple[tuple[str, DescribedBy], ...] = (
            (self.description, "itself"),
            (self.package, "package"),
            (first_sentence(self.instructions), "itself"),
        )
        stated = next(((text, by) for text, by in texts if says_more(text, plugin)), None)
        return stated or (self.description or self.package, "")

    def with_first_known(self, plugin: str, before: Manifest | None) -> Manifest:
        """Return the manifest with what is known of the package and of words since an earlier one."""
        names = [tool.name for tool in self.tools]
        kept = before.words if before is not None else ()
        still = {word for name in names for word in tool_words(plugin, [name])}
        words = kept if still.intersection(kept) else tool_words(plugin, names)
        package = (before.package if before is not None else "") or self.package
        return replace(self, package=package, words=words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A named group of tools from one place.

    Attributes:
        name: its name in the configuration.
        kind: where it comes from: ``server``, ``python``, or the loader of a registered plugin, such as ``agno``.
        description: one line for operators and hints.
        category: one of the 13, an author's own, or None (L4).
        prefix: what stands before the wire names; None is the default of the source (servers: ``{plugin}__``; others:
            nothing).
        tools: the tools of all variants, first seen first.
        variants: what is known of it, by :func:`variant_key` of the overrides.
        parameters: the overrides that it takes, with their JSON types (T5).
        secrets: the names of those that must never be shown (X5).
        shared_only: whether it runs only for agents whose state is shared.
        default_on: whether it is on where no switch is set.
        trusted: whether its reports of read-only tools are believed (G6).
        offers: what a server has besides tools (resources, prompts, completions), as the newest manifest has it;
            None is not known.
        declares: the rest of a server's capabilities as they stood on the wire: extensions, tasks, what is tried out.
        by_category: whether only a category that a loadout names brought it in, so that no pattern reaches it (L9).
        unreviewed: what differs from its pins, and waits until a person has looked (A4).
        excluded: the tools that cannot be used, as its server lists them (G8) or for want of a package (P6), by own
            name, each with the reason.
        cut: what was left out of tools that can be used, each with the reason.
        place: where the configuration names it.
        described_by: who says what its description says; nothing where that is no more than its name.
        words: the commonest words of its tools' names, as they were first known.
        instructions: how a server says that its tools are used, as clients read it.
        not_tools: what is public in its code and is no tool, by its name with the reason.
    """

    name: str
    kind: str = "python"
    description: str = ""
    category: str | None = None
    prefix: str | None = None
    tools: tuple[Tool, ...] = ()
    variants: Mapping[str, Variant] = field(default=EMPTY)
    parameters: Mapping[str, str] = field(default=EMPTY)
    secrets: frozenset[str] = frozenset()
    shared_only: bool = False
    default_on: bool = True
    trusted: bool = False
    offers: frozenset[str] | None = None
    declares: JsonObject = field(default=EMPTY)
    by_category: bool = False
    unreviewed: Unreviewed = NOTHING_UNREVIEWED
    excluded: Mapping[str, str] = field(default=EMPTY)
    cut: Mapping[str, str] = field(default=EMPTY)
    place: Place | None = None
    described_by: DescribedBy = ""
    words: tuple[str, ...] = ()
    instructions: str = ""
    not_tools: Mapping[str, str] = field(default=EMPTY)

    def variant(self, key: str) -> Variant:
        """Return what is known of the plugin under these overrides."""
        return self.variants.get(key, UNSEEN)

    @property
    def unavailable(self) -> str:
        """Return the first reason why it cannot run under some overrides, or nothing."""
        return next((variant.unavailable for variant in self.variants.values() if variant.unavailable), "")

    @property
    def needs_login(self) -> bool:
        """Return whether it cannot run for want of a login (G11)."""
        return any(variant.needs_login for variant in self.variants.values())

    def faults(self, *, without: Container[str] = ()) -> tuple[str, ...]:
        """Return why it, or a tool of it, cannot run, as far as that is known of any session.

        ``without`` are the keys of variants of which something else is reported.
        """
        variants = (variant.unavailable for key, variant in self.variants.items() if key not in without)
        waiting = frozenset(self.unreviewed.changed)
        own = (tool for tool in self.tools if tool.unavailable and tool.name not in waiting)
        tools = (f"tool '{tool.name}': {tool.unavailable}" for tool in own)
        return tuple(dict.fromkeys(filter(None, (*variants, *tools))))

    def with_manifest(self, key: str, manifest: Manifest, *, stale: bool = False) -> Plugin:
        """Return the plugin with what its source reports of it under these overrides.

        ``stale``: its code has changed since the report.
        """
        names = tuple(tool.name for tool in manifest.tools)
        fresh = {tool.name: tool for tool in manifest.tools}
        others = {name for k, v in self.variants.items() if k != key for name in (v.tools or ())}
        kept = tuple(
            _keep_mark(fresh.pop(tool.name), tool if tool.name in others else None) if tool.name in fresh else tool
            for tool in self.tools
            if tool.name in fresh or tool.name in others
        )
        variant = Variant(tools=names, stale=stale)
        described = (self.description, self.described_by) if self.description else manifest.purpose(self.name)
        return replace(
            self,
            tools=kept + tuple(fresh.values()),
            variants=Frozen({**self.variants, key: variant}),
            parameters=manifest.parameters or self.parameters,
            secrets=self.secrets | manifest.secrets,
            description=described[0],
            described_by=described[1],
            words=self.words or manifest.words,
            instructions=manifest.instructions,
            offers=manifest.offers,
            declares=manifest.declares,
            unreviewed=manifest.unreviewed,
            excluded=manifest.excluded,
            cut=manifest.cut,
            not_tools=manifest.not_tools,
        )

    def with_fault(self, key: str, reason: str, *, needs_login: bool = False, stale: bool = False) -> Plugin:
        """Return the plugin as unavailable under these overrides; known tools stay known.

        ``needs_login``: a login is all it wants. ``stale``: an earlier process found it so.
        """
        known = self.variant(key)
        variant = replace(known, unavailable=reason, needs_login=needs_login, stale=stale or known.stale)
        return replace(self, variants=Frozen({**self.variants, key: variant}))


def excluded_text(excluded: Mapping[str, str]) -> str:
    """Return as a clause which tools are excluded and why, the first few of many."""
    shown = [f"'{name}' ({reason})" for name, reason in islice(excluded.items(), _MOST_NAMED)]
    more = f" and {len(excluded) - _MOST_NAMED:,} more" if len(excluded) > _MOST_NAMED else ""
    count = "one of its tools is" if len(excluded) == 1 else f"{len(excluded):,} of its tools are"
    return f"{count} excluded: {', '.join(shown)}{more}"


def why_excluded(plugin: Plugin, reason: str) -> str:
    """Return as a sentence why a tool of a plugin is excluded."""
    how = f"Server '{plugin.name}' lists it in a form that cannot be used: " if plugin.kind == "server" else ""
    return f"{how}{reason}."


def _keep_mark(fresh: Tool, known: Tool | None) -> Tool:
    """Return a tool with the mark that it has under other overrides: what one demands, no other takes away (T13)."""
    if known is None or known.confirmation is None or fresh.confirmation is not None:
        return fresh
    return replace(fresh, confirmation=known.confirmation)


_MOST_NAMED: Final = 5
"""Excluded tools that one sentence names."""
UNSEEN: Final = Variant()


def variant_key(overrides: JsonObject) -> str:
    """Return the stable text under which a plugin with these overrides is known.

    >>> variant_key({})
    ''
    >>> variant_key({"b": 1, "a": "x"})
    '{"a": "x", "b": 1}'
    """
    return json.dumps(overrides, sort_keys=True, default=str) if overrides else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """What a tool returned, in MCP's shapes.

    Attributes:
        content: content blocks, such as ``{"type": "text", "text": "…"}``.
        structured: any JSON value, or None.
        is_error: whether the tool failed.
        meta: the result's ``_meta``.
        more: what else the result has, under names that the protocol does not know.
    """

    content: tuple[JsonObject, ...] = ()
    structured: Any = None
    is_error: bool = False
    meta: JsonObject = field(default=EMPTY)
    more: JsonObject = field(default=EMPTY)


def text_result(text: str, *, is_error: bool = False) -> CallResult:
    """Return a result that is one block of text."""
    return CallResult(content=({"type": "text", "text": text},), is_error=is_error)


def joined_text(result: CallResult) -> str:
    """Return the texts of a result: of one that is an error, what it says."""
    texts = (block.get("text") for block in result.content if block.get("type") == "text")
    return " ".join(text for text in texts if isinstance(text, str))


def counted_json(tool: Tool) -> str:
    """Return name, description and input schema as the compact JSON whose tokens are counted."""
    return json.dumps(
        {"name": tool.wire, "description": tool.description, "inputSchema": tool.input_schema},
        ensure_ascii=False,
        separators=(",", ":"),
    )
