"""Keep up with which definitions of servers' tools count, and hold back what differs from them (A4, G6)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pegboard.board.catalog.definition_reader import RECORDED, DefinitionReader
from pegboard.board.observability.audit import Recorder
from pegboard.core.access import pins as rules
from pegboard.core.access.descriptions import Finding, OtherNames
from pegboard.core.access.permissions import LOCAL
from pegboard.core.access.pins import VERSION, Judgement, Listed, Pin, PinName, PinnedTool, Policy, ServerPins
from pegboard.core.access.read_only import CountedClaims, reads_only
from pegboard.core.model.naming import one_line, wire_name
from pegboard.core.model.tools import EMPTY, Manifest, Plugin, Tool
from pegboard.errors import UsageError
from pegboard.ports import AuditRecord, PinChange, PinStore, SessionKey

log = logging.getLogger("pegboard")

_NO_SESSION: Final = SessionKey(principal=LOCAL, agent="", session="")
_REASONS: Final[Mapping[str, str]] = {
    "changed": "Its definition has changed; it waits for a person.",
    "new": "It is new; it waits for a person.",
    "pinned": "It is new, and passes.",
    "passed": "Its definition has changed, and passes: pins is trust.",
    "released": "It is again as pinned.",
    "accepted": "Its current definition was accepted.",
    "forgotten": "It is no longer listed; its pin was removed.",
    "restored": "Its acceptance was undone: the earlier pin is in use again.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _ServerList:
    """The newest list of a server, and what it comes to."""

    manifest: Manifest
    listed: Mapping[PinName, Listed]
    tools: Mapping[PinName, Tool]
    policy: Policy
    judgement: Judgement


class DefinitionPins:
    """The pins of every server, as of the last look at the store; any process may change them.

    ``on_changed`` takes lists of servers as models may read them, where other pins make another one of them.
    ``names_of_others`` returns by plugin the names on the wire that tools of all but one have.
    """

    def __init__(self, store: PinStore, recorder: Recorder) -> None:
        self.on_changed: Callable[[Mapping[str, Manifest]], None] = _ignore_lists
        self.names_of_others: Callable[[str], Mapping[str, Collection[str]]] = _no_names
        self._store = store
        self._recorder = recorder
        self._revision: object = None
        self._known: Mapping[str, ServerPins] = {}
        self._news_pending = False  # they are others than those that ``refresh`` has told of
        self._uncompared: set[str] = set()  # servers whose pins have changed, and whose tools were not looked at since
        self._lists: dict[str, _ServerList] = {}
        self._pinned: dict[tuple[str, PinName, str], Tool] = {}  # what has changed, as pinned: plugin, name, digest
        self._claims: dict[str, tuple[ServerPins, CountedClaims]] = {}
        self._warned: dict[str, str] = {}
        self._found_unpinned: dict[str, int] = {}
        self._reader = DefinitionReader(recorder)

    async def refresh(self, revision: Hashable = None) -> bool:
        """Take up what any process has stored; return whether that is something else than before.

        ``revision`` is that of the store, where it was read already.
        """
        revision = revision if revision is not None else await self._store.pins_revision()
        if revision == self._revision:
            return False
        before, self._known = self._known, await self._store.pins()
        self._news_pending = self._news_pending or before != self._known
        self._uncompared |= {name for name, one in self._known.items() if before.get(name) != one}
        shown = {name: await self._newest_manifest(name) for name in sorted(self._uncompared & self._lists.keys())}
        self._revision = revision  # all of it was read
        self._uncompared.clear()
        if shown:
            self.on_changed(shown)
        untold, self._news_pending = self._news_pending, False
        return untold

    # -- what counts ---------------------------------------------------------------------------------

    def claims_of(self, plugin: str) -> CountedClaims:
        """Return what counts of what a server says of its tools; nothing of one never seen."""
        known = self._known.get(plugin)
        if known is None:
            return _NONE
        cached = self._claims.get(plugin)
        if cached is None or cached[0] is not known:
            pins = known.pins.values()
            read_only = frozenset(pin.name.tool for pin in pins if pin.read_only)
            found = CountedClaims(
                read_only=read_only, harmless=frozenset(pin.name.tool for pin in pins if pin.harmless)
            )
            cached = self._claims[plugin] = known, found
        return cached[1]

    def reads_only(self, plugin: Plugin, tool: Tool) -> bool:
        """Return whether a tool may run where only reading is allowed; a server never seen is not believed."""
        return reads_only(plugin, tool, self.claims_of(plugin.name).read_only)

    def pending(self, plugin: Plugin) -> tuple[Tool, ...]:
        """Return the tools of a trusted server that say now that they only read, and do not count yet."""
        return self._pending_tools(plugin, "read_only")

    def pending_harmless(self, plugin: Plugin) -> tuple[Tool, ...]:
        """Return the tools of a trusted server that say now that they destroy nothing, and do not count yet."""
        return self._pending_tools(plugin, "harmless")

    def _pending_tools(self, plugin: Plugin, claim: str) -> tuple[Tool, ...]:
        known, own = self._known.get(plugin.name), self._lists.get(plugin.name)
        if plugin.kind != "server" or not plugin.trusted or known is None or own is None:
            return ()
        names = {name.tool for name, claims in _claims_waiting(known, own) if claim in claims}
        return tuple(tool for tool in plugin.tools if tool.name in names)

    def later_digest(self, tool: Tool) -> str:
        """Return the digest of a tool's definition where it is not the one first seen: it voids approvals (A6)."""
        known = self._known.get(tool.plugin)
        pin = known.pins.get(PinName("tool", tool.name)) if known is not None else None
        return pin.digest if pin is not None and pin.later else ""

    # -- lists -----------------------------------------------------------------------------------------

    def with_digests(self, plugin: str, manifest: Manifest) -> Manifest:
        """Return a list of a server that has just arrived with the digests of its definitions, to be kept with it."""
        before = self._lists.get(plugin)
        tools = tuple(_reuse_tool(tool, before) for tool in manifest.tools)
        digests = tuple(rules.kept_digest(_listed_tool(tool, before)) for tool in tools)
        return replace(manifest, tools=tools, digests=digests)

    async def compare(self, plugin: Plugin, manifest: Manifest, policy: Policy, *, stored: bool = False) -> Manifest:
        """Compare a list of a server with its pins, and return it as models may read it.

        What has changed is unavailable and stands as it is pinned; what is new and waits is not in it. ``stored``: the
        list is of an earlier process, of which pins should be there.
        """
        before = self._lists.get(plugin.name)
        names = [PinName("tool", tool.name) for tool in manifest.tools]
        tools = {name: _reuse_tool(tool, before) for name, tool in zip(names, manifest.tools, strict=True)}
        digests = dict(zip(names, manifest.digests, strict=False))
        listed = {name: _listed_tool(tool, before, digests.get(name, "")) for name, tool in tools.items()}
        manifest = replace(manifest, tools=tuple(tools.values()), digests=())
        tools[rules.SERVER_PIN], listed[rules.SERVER_PIN] = rules.server_definition(plugin.name, manifest)
        while True:
            known = self._known.get(plugin.name)
            taken = self._clashing_tools(plugin, listed, known)
            judgement = rules.judge(known, listed, policy, taken=taken)
            own = _ServerList(manifest=manifest, listed=listed, tools=tools, policy=policy, judgement=judgement)
            if not judgement.rows and not judgement.first:
                break
            if await self._store_pins(plugin.name, known, own):
                if judgement.first and (stored or known is not None):
                    self._found_unpinned[plugin.name] = len(manifest.tools)
                self._read_later(plugin.name, own)
                break
            await self.refresh()
        self._lists[plugin.name] = own
        if judgement.reported:
            self._warn(plugin.name, own)
        return await self._shown_manifest(plugin.name, own)

    def is_newest(self, plugin: str, manifest: Manifest) -> bool:
        """Return whether a list of a server is the same as the newest one."""
        own = self._lists.get(plugin)
        return own is not None and own.manifest == manifest

    def with_others(self, plugin: str, manifest: Manifest) -> Manifest:
        """Return a list of a server with those tools of the newest one that it lacks."""
        own, names = self._lists.get(plugin), {tool.name for tool in manifest.tools}
        others = (tool for tool in (own.manifest.tools if own is not None else ()) if tool.name not in names)
        return replace(manifest, tools=(*manifest.tools, *others))

    def note_unpinned(self) -> None:
        """Log once that servers which had been seen before had no pins that can be compared, and have them now."""
        found, self._found_unpinned = self._found_unpinned, {}
        if found:
            names = one_line(", ".join(found), limit=300)
            message = "%d tools of %s are pinned as they are now: what changes from now on waits for a person."
            log.warning(message, sum(found.values()), names)

    def _clashing_tools(
        self, plugin: Plugin, listed: Mapping[PinName, Listed], known: ServerPins | None
    ) -> frozenset[PinName]:
        """Return the new tools of a list that would have the name of another plugin's tool."""
        if known is None or not known.compares:
            return frozenset()
        new = {
            name: wire_name(plugin.name, name.tool, prefix=plugin.prefix) for name in listed.keys() - known.pins.keys()
        }
        others = self.names_of_others(plugin.name) if new else EMPTY
        return frozenset(name for name, wire in new.items() if any(wire in names for names in others.values()))

    async def _store_pins(self, plugin: str, known: ServerPins | None, own: _ServerList) -> bool:
        """Store what a list changes of the pins, with its records; return whether the pins stood as they were known."""
        judgement = own.judgement
        changes = [
            PinChange(pin, rules.definition_text(own.tools[pin.name]) if _is_pin_of(pin, own.listed) else None)
            for pin in judgement.rows
        ]
        records = [*self._records(plugin, own)]
        kept = await self._store_changes(plugin, known, changes, anew=judgement.first, audit=records)
        if kept and records:
            self._recorder.emit("pins_changed", records[0])
        return kept

    async def _store_changes(
        self,
        plugin: str,
        known: ServerPins | None,
        changes: Sequence[PinChange],
        *,
        anew: bool = False,
        forget: Collection[PinName] = (),
        audit: Sequence[AuditRecord],
    ) -> bool:
        revision = await self._store.change_pins(
            plugin,
            changes,
            expected=known.revision if known is not None else None,
            version=VERSION,
            anew=anew,
            forget=forget,
            audit=audit,
        )
        if revision is None:
            return False
        pins = dict(known.pins) if known is not None and not anew else {}
        pins.update({pin.name: pin for pin, _ in changes})
        kept = {name: pin for name, pin in pins.items() if name not in forget}
        self._known = {**self._known, plugin: ServerPins(kept, VERSION, revision)}
        return True

    def _records(self, plugin: str, own: _ServerList) -> Iterator[AuditRecord]:
        """Yield what the trail has of a list: the server's first one in one record, else tool by tool (X4)."""
        found = own.judgement
        if found.first:
            reason = f"{len(own.manifest.tools)} tools are pinned as they were first seen."
            yield self._recorder.entry(_NO_SESSION, 0, "pin", plugin, "pinned", reason=reason)
            return
        changed = frozenset(found.changed)
        parts = (
            ("changed", [name for name in found.reported if name in changed]),
            ("new", [name for name in found.reported if name not in changed]),
            ("released", found.released),
            ("passed", found.passed),
            ("pinned", found.added),
        )
        for decision, names in parts:
            yield from self._change_records(plugin, decision, names)

    def _change_records(
        self, plugin: str, decision: str, names: Sequence[PinName], by: str = ""
    ) -> Iterator[AuditRecord]:
        for name in names[:RECORDED]:
            subject, reason = name.subject(plugin), _REASONS[decision]
            yield self._recorder.entry(_NO_SESSION, 0, "pin", subject, decision, reason=reason, by=by)
        if len(names) > RECORDED:
            reason = f"{len(names) - RECORDED:,} more tools. {_REASONS[decision]}"
            yield self._recorder.entry(_NO_SESSION, 0, "pin", plugin, decision, reason=reason, by=by)

    def note_waiting(self) -> None:
        """Log what waits for a person, one line for each server: whoever serves hears of it at the start."""
        for name, own in self._lists.items():
            self._warn(name, own)

    def waiting_texts(self) -> list[str]:
        """Return what waits for a person, one line for each server."""
        waiting = {name: own.judgement.unreviewed.text for name, own in self._lists.items()}
        return [_waiting_text(name, said) for name, said in waiting.items() if said]

    def _warn(self, plugin: str, own: _ServerList) -> None:
        """Log once in a process what waits for a person."""
        said = own.judgement.unreviewed.text
        if said and self._warned.get(plugin) != said:
            log.warning("%s", _waiting_text(plugin, said))
        self._warned[plugin] = said

    async def _shown_manifest(self, plugin: str, own: _ServerList) -> Manifest:
        """Return a list as models may read it."""
        changed = own.judgement.changed
        pins = self._known[plugin].pins if changed else {}
        keys = {name: (plugin, name, pins[name].digest) for name in changed}
        if lacking := [name for name, key in keys.items() if key not in self._pinned]:
            texts = await self._store.pinned_definitions(plugin, lacking)
            self._pinned |= {keys[name]: rules.of_definition(plugin, name.tool, texts.get(name)) for name in lacking}
        pinned = {name: self._pinned[key] for name, key in keys.items()}
        return rules.without_what_waits(own.manifest, own.judgement, pinned)

    async def _newest_manifest(self, plugin: str) -> Manifest:
        """Return the newest list of a server as models may read it under the pins of now."""
        own = self._lists[plugin]
        held = frozenset(own.judgement.held)  # what waited for its name goes on waiting
        judgement = rules.judge(self._known[plugin], own.listed, own.policy, taken=held)
        self._lists[plugin] = own = replace(own, judgement=judgement)
        return await self._shown_manifest(plugin, own)

    # -- what definitions say to models --------------------------------------------------------------

    def _read_later(self, plugin: str, own: _ServerList) -> None:
        """Read what is new in a list while everything else goes on, and record what it says to a model."""
        names = (*own.judgement.added, *own.judgement.passed, *own.judgement.reported)
        if names:
            tools = {name: (own.tools[name], own.listed[name].digest) for name in names}
            self._reader.read_later(plugin, tools, lambda: self._names_of_others(plugin))

    def _names_of_others(self, plugin: str) -> OtherNames:
        own = self._lists.get(plugin)
        tools = own.manifest.tools if own is not None else ()
        return OtherNames.of(self.names_of_others(plugin), own=(plugin, *(tool.name for tool in tools)))

    async def findings(self, plugin: str, *names: PinName) -> Mapping[PinName, tuple[Finding, ...]]:
        """Return what tools of a server say to a model, as its newest list has them; without names, all of them."""
        own = self._lists.get(plugin)
        if own is None:
            return {}
        chosen = {name: (own.tools[name], own.listed[name].digest) for name in names or own.tools if name in own.tools}
        found = await self._reader.findings(chosen, self._names_of_others(plugin))
        self._reader.keep(plugin, {one.digest for one in own.listed.values()})
        return found

    async def aclose(self) -> None:
        """Read what is still to be read."""
        await self._reader.aclose()

    # -- what people see and accept ------------------------------------------------------------------

    def pinned_names(self, plugin: str) -> Collection[str]:
        """Return the own names of the tools of a server that have a pin."""
        known = self._known.get(plugin)
        return [name.tool for name in known.pins if name.kind == "tool"] if known is not None else ()

    def tools(self, plugin: Plugin) -> tuple[PinnedTool, ...]:
        """Return the tools of a server as its pins and its newest list have them, without definitions.

        What it says of itself is among them where that has changed, under the server's name.
        """
        known, own = self._known.get(plugin.name), self._lists.get(plugin.name)
        if known is None or not known.compares:
            return ()
        listed = own.listed if own is not None else {}
        changed = frozenset(own.judgement.changed if own is not None else ())
        held = frozenset(own.judgement.held if own is not None else ())
        claims = dict(_claims_waiting(known, own)) if own is not None and plugin.trusted else {}
        found: list[PinnedTool] = []
        for name in dict.fromkeys((*listed, *known.pins)):
            pin = known.pins.get(name)
            if name not in listed and (own is None or pin is None or not pin.digest):
                continue
            if name.kind == "server" and name not in changed:
                continue
            wire = plugin.name if name.kind == "server" else wire_name(plugin.name, name.tool, prefix=plugin.prefix)
            status: rules.PinStatus = (
                "changed" if name in changed else "new" if name in held else "pinned" if name in listed else "gone"
            )
            found.append(
                PinnedTool(
                    plugin=plugin.name,
                    tool=name.tool,
                    wire=wire,
                    status=status,
                    digest=listed[name].digest if name in listed else "",
                    by=pin.by if pin is not None else "",
                    claims=claims.get(name, ()),
                )
            )
        return tuple(found)

    async def with_definitions(self, found: Sequence[PinnedTool]) -> tuple[PinnedTool, ...]:
        """Return these tools of one server with the definition that counts and the one of the newest list."""
        if not found:
            return ()
        plugin = found[0].plugin
        own = self._lists.get(plugin)
        texts = await self._store.pinned_definitions(plugin, [one.pin_name for one in found])
        tools = own.tools if own is not None else {}
        return tuple(
            replace(
                one,
                pinned=rules.kept_definition(texts.get(one.pin_name)),
                listed=rules.definition_of(tools[one.pin_name]) if one.pin_name in tools else None,
            )
            for one in found
        )

    async def stored_pins(self, plugin: str, names: Collection[PinName]) -> tuple[PinChange, ...]:
        """Return these pins as they are stored, to be restored later; a tool without one waits then."""
        known = self._known.get(plugin)
        pins, texts = known.pins if known is not None else {}, await self._store.pinned_definitions(plugin, names)
        return tuple(PinChange(pins.get(name, Pin(name)), texts.get(name, "")) for name in names)

    async def restore(self, plugin: str, before: Sequence[PinChange], now: Mapping[PinName, str], *, by: str) -> None:
        """Let the pins ``before`` count again that an acceptance by ``by`` has replaced.

        ``now`` has the digest that was accepted of each tool, nothing of one whose pin went; where a pin is another by
        now, ``UsageError`` (``pin_changed``).
        """
        while True:
            known = self._known.get(plugin)
            for name, digest in now.items():
                pin = known.pins.get(name) if known is not None else None
                if known is None or (pin.digest if pin is not None else "") != digest:
                    subject = one_line(name.subject(plugin), limit=100)
                    raise UsageError(
                        f"'{subject}' has changed since it was accepted. Nothing was changed.",
                        code="pin_changed",
                        hint="Look at its current state, and decide again.",
                    )
            records = [*self._change_records(plugin, "restored", tuple(now), by)]
            if await self._store_changes(plugin, known, before, audit=records):
                self._recorder.emit("pins_changed", records[0])
                if plugin in self._lists:
                    self.on_changed({plugin: await self._newest_manifest(plugin)})
                return
            await self.refresh()

    async def accept(
        self, plugin: Plugin, chosen: Mapping[PinName, str], *, by: str, forget: Collection[PinName] = ()
    ) -> bool:
        """Let the definitions count that someone was shown, in every process; return whether there were any.

        ``chosen`` has the digest that was shown of each tool; where one is another by now, ``UsageError``
        (``pin_changed``). ``forget`` are the tools whose pins go, where the newest list lacks them.
        """
        while True:
            known, own = self._known.get(plugin.name), self._lists.get(plugin.name)
            if known is None or own is None:
                return False
            for name, digest in chosen.items():
                if name not in own.listed or own.listed[name].digest != digest:
                    raise changed_again_error(plugin.name, name)
            lost = tuple(name for name in rules.missing_pins(known, own.listed) if name in forget)
            changes = [
                PinChange(rules.accepted_pin(known, name, own.listed[name], by), rules.definition_text(own.tools[name]))
                for name in chosen
            ]
            if not (changes or lost):
                return False
            records = [*self._change_records(plugin.name, "accepted", tuple(chosen), by)]
            records += self._change_records(plugin.name, "forgotten", lost, by)
            if await self._store_changes(plugin.name, known, changes, forget=lost, audit=records):
                self._recorder.emit("pins_changed", records[0])
                self.on_changed({plugin.name: await self._newest_manifest(plugin.name)})
                return True
            await self.refresh()


def changed_again_error(plugin: str, name: PinName) -> UsageError:
    """Return the error that something is another by now than the person who accepts it was shown."""
    return UsageError(
        f"'{one_line(name.subject(plugin), limit=100)}' has changed again since it was shown. Nothing was accepted.",
        code="pin_changed",
        hint="Look at its current state, and decide again.",
    )


def _reuse_tool(tool: Tool, before: _ServerList | None) -> Tool:
    """Return a tool as the object that stands for it already where it is what it was: nothing is kept twice."""
    known = before.tools.get(PinName("tool", tool.name)) if before is not None else None
    return known if known is not None and (known is tool or known == tool) else tool


def _listed_tool(tool: Tool, before: _ServerList | None, kept: str = "") -> Listed:
    """Return what a list has of a tool; nothing is digested of one that is what it was."""
    name = PinName("tool", tool.name)
    if before is not None and before.tools.get(name) is tool:
        return before.listed[name]
    return rules.listed_as(tool, kept)


def _is_pin_of(pin: Pin, listed: Mapping[PinName, Listed]) -> bool:
    return bool(pin.digest) and pin.digest == listed[pin.name].digest


def _claims_waiting(known: ServerPins, own: _ServerList) -> Iterator[tuple[PinName, tuple[str, ...]]]:
    for name, one in own.listed.items():
        pin = known.pins.get(name)
        if pin is not None and (claims := rules.claims_waiting(pin, one)):
            yield name, claims


def _ignore_lists(_lists: Mapping[str, Manifest]) -> None:
    """Take lists and do nothing with them."""


def _no_names(_plugin: str) -> Mapping[str, Collection[str]]:
    return EMPTY


_NONE: Final = CountedClaims()


def _waiting_text(plugin: str, said: str) -> str:
    return f"server {plugin}: {one_line(said, limit=500)}"
