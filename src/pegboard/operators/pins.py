"""The pins of servers' tools as operators see them: how each differs, what it says to models; nothing secret (A4)."""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pegboard.board.pins import Pins
from pegboard.board.services import Services
from pegboard.core.access.definition_diff import definition_diff
from pegboard.core.access.descriptions import Finding
from pegboard.core.access.pins import PinName, PinnedTool, PinStatus
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import EMPTY
from pegboard.errors import UsageError
from pegboard.operators.masked import Name, ShownNames, Verbatim, mark_secrets, mask_value, shown_names
from pegboard.ports import PinChange
from pegboard.support.visible_text import visible, without_long_runs

LONGEST: Final = 2_000
"""How many characters of a description are shown."""
KEPT: Final = 100
"""How many acceptances can be taken back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinView:
    """A tool of a server as an operator sees it.

    Attributes:
        plugin: the server.
        tool: the tool's own name.
        name: its name on the wire.
        status: ``pinned``, ``changed`` or ``new`` (it waits for a person), ``gone`` (the newest list lacks it).
        waits: whether a person is to look at it.
        by: who accepted the definition that counts; nothing where it is the one first seen, or passed.
        claims: what the tool says of itself that does not count yet: ``read_only``, ``harmless``.
        digest: that of the definition which the newest list has; an answer names it.
        description: what the definition that counts says of it, or of a new one the definition of now.
        diff: how the two differ, as a unified diff, where it was asked for; of a new one what it is.
        findings: what the definition of now says to a model, where it was asked for.
    """

    plugin: Name
    tool: Name
    name: Name
    status: PinStatus
    waits: bool
    by: str
    claims: tuple[Verbatim, ...]
    digest: Verbatim
    description: str = ""
    diff: str = ""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingServer:
    """A server of which tools wait for a person.

    Attributes:
        name: its name.
        waiting: how many of its tools wait.
        gone: the pinned tools that its newest list lacks: their pins go where all of it is accepted.
        seen: what the person who accepts all of it hands back, so that nothing else is accepted.
    """

    name: Name
    waiting: int
    gone: tuple[Name, ...]
    seen: Verbatim


@dataclass(frozen=True, slots=True, kw_only=True)
class PinPage:
    """Some of the tools that wait for a person; ``total`` is how many there are, ``servers`` whose they are."""

    servers: tuple[WaitingServer, ...]
    tools: tuple[PinView, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PinsAccepted:
    """What was accepted; ``mark`` is what takes it back."""

    mark: Verbatim
    tools: tuple[PinView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Acceptance:
    """What an acceptance has replaced: the pins of before, and the digests that were accepted."""

    plugin: str
    before: tuple[PinChange, ...]
    now: Mapping[PinName, str]


class OperatorPins:
    """What operators see of pins, and what they accept."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._pins = Pins(services)
        self._accepted: OrderedDict[str, _Acceptance] = OrderedDict()

    async def listed(self, *names: str, waiting: bool = False) -> tuple[PinView, ...]:
        """Return the tools of servers without how they differ.

        Args:
            names: servers and tools as operators are shown them; none is every server.

        Raises:
            UsageError: ``unknown_name``: a name is neither.
        """
        shown = await shown_names(self._services)
        found = await self._pins.list(*map(shown.meant, names), waiting=waiting)
        return mask_value(tuple(map(_view, found)), shown)

    async def shown(self, *names: str, waiting: bool = False) -> tuple[PinView, ...]:
        """Return the same with how each differs from its pin, and what it says to a model.

        Args:
            names: servers and tools as operators are shown them; none is every server.

        Raises:
            UsageError: ``unknown_name``: a name is neither.
        """
        known = await shown_names(self._services)
        return await self._show_tools(await self._pins.list(*map(known.meant, names), waiting=waiting), known)

    async def tools_with_findings(self, server: str) -> tuple[PinView, ...]:
        """Return the tools of a server that say something to a model which people should know, with what it is."""
        known = await shown_names(self._services)
        said = await self._services.pins.findings(known.meant(server))
        found = await self._pins.list(known.meant(server)) if said else ()
        views = (replace(_view(one), findings=said[one.pin_name]) for one in found if one.pin_name in said)
        return mask_value(tuple(views), known)

    async def page(self, server: str = "", *, offset: int = 0, limit: int = 20) -> PinPage:
        """Return some of what waits for a person, with how it differs.

        Args:
            server: only of this one; nothing is every one.

        Raises:
            UsageError: ``unknown_name``: there is no such server.
        """
        known = await shown_names(self._services)
        names = (known.meant(server),) if server else ()
        every = [one for one in await self._pins.list(*names) if one.waits or one.status == "gone"]
        found = [one for one in every if one.waits]
        counts: dict[str, list[PinnedTool]] = {one.plugin: [] for one in found}
        for one in every:
            if one.plugin in counts:
                counts[one.plugin].append(one)
        servers = tuple(
            WaitingServer(
                name=name,
                waiting=sum(one.waits for one in own),
                gone=tuple(one.tool for one in own if one.status == "gone"),
                seen=seen_of(own),
            )
            for name, own in counts.items()
        )
        return PinPage(
            servers=mask_value(servers, known),
            tools=await self._show_tools(found[offset : offset + limit], known),
            total=len(found),
        )

    async def _show_tools(self, found: Sequence[PinnedTool], known: ShownNames) -> tuple[PinView, ...]:
        pins, whole = self._services.pins, list[PinView]()
        for plugin in dict.fromkeys(one.plugin for one in found):
            own = [one for one in found if one.plugin == plugin]
            said = await pins.findings(plugin, *(one.pin_name for one in own))
            whole += [_pin_view(one, said.get(one.pin_name, ()), known) for one in await pins.with_definitions(own)]
        return mask_value(tuple(whole), known)

    async def accept(self, found: Iterable[PinView], *, by: str) -> int:
        """Let what an operator was shown count, and nothing else; return how much that was.

        Raises:
            UsageError: ``pin_changed`` where a tool is another by now; ``by`` is no short text.
        """
        known = await shown_names(self._services)
        chosen = [
            PinnedTool(
                plugin=known.meant(one.plugin),
                tool=known.meant(one.tool),
                wire=known.meant(one.name),
                status=one.status,
                digest=one.digest,
                claims=one.claims,
            )
            for one in found
        ]
        return len(await self._pins.accept(by=by, shown=chosen))

    async def accept_seen(self, name: str, seen: str, *, by: str, confirm: str = "") -> PinsAccepted:
        """Let what waits of a server, or one tool, count as the person who accepts it was shown it.

        Of a server, what says something to models that people should know stays unchanged: each such tool is accepted
        alone, under its name.

        Args:
            name: the server, or ``plugin/tool``, as operators are shown it.
            seen: the ``seen`` of the server for all of it, or the digest of the tool.

        Raises:
            UsageError: ``unknown_name``; ``pin_changed`` where something is another by now; ``confirmation_required``
                where the name is not given, or all of what waits has to be accepted one by one.
        """
        known = await shown_names(self._services)
        found = [one for one in await self._pins.list(known.meant(name)) if one.waits or one.status == "gone"]
        whole = seen == seen_of(found)
        chosen = found if whole else [one for one in found if seen and one.digest == seen]
        if not chosen:
            raise UsageError(
                "The pending changes are no longer those that were shown. Nothing was accepted.",
                code="pin_changed",
                hint="Look at its current state, and decide again.",
            )
        said = await self._tools_with_findings(chosen)
        if whole and len(said) < len(chosen):
            chosen = [one for one in chosen if one.pin_name not in said]
        elif unconfirmed := [one.wire for one in chosen if one.pin_name in said and confirm != known.shown(one.wire)]:
            raise confirmation_required(known.shown(unconfirmed[0]))
        plugin, now = chosen[0].plugin, {one.pin_name: one.digest if one.waits else "" for one in chosen}
        before = await self._services.pins.stored_pins(plugin, tuple(now))
        accepted = await self._pins.accept(by=by, shown=chosen)
        mark = secrets.token_hex(6)
        self._accepted[mark] = _Acceptance(plugin=plugin, before=before, now=now)
        if len(self._accepted) > KEPT:
            self._accepted.popitem(last=False)
        return PinsAccepted(mark=mark, tools=mask_value(tuple(map(_view, accepted)), known))

    async def _tools_with_findings(self, tools: Sequence[PinnedTool]) -> frozenset[PinName]:
        """Return which of these tools of one server say something to models that people should know."""
        names = [one.pin_name for one in tools if one.waits]
        if not names:
            return frozenset()
        said = await self._services.pins.findings(tools[0].plugin, *names)
        return frozenset(name for name in names if said.get(name))

    async def take_back(self, mark: str, *, by: str) -> int:
        """Let the pins count again that an acceptance has replaced; return of how many tools.

        Raises:
            UsageError: ``unknown_name`` where this process does not know the acceptance any more; ``pin_changed`` where
                a pin is another by now.
        """
        one = self._accepted.get(mark)
        if one is None:
            raise UsageError(
                f"There is no acceptance '{one_line(mark, limit=40)}' to undo.",
                code="unknown_name",
                hint=f"The newest {KEPT} are kept, until the process ends.",
            )
        await self._services.pins.restore(one.plugin, one.before, one.now, by=by)
        del self._accepted[mark]
        return len(one.now)


def confirmation_required(name: str) -> UsageError:
    """Return the refusal to accept a tool with warnings whose name was not typed."""
    return UsageError(
        f"'{name}' contains text for models that a person should read first. Nothing was accepted.",
        code="confirmation_required",
        hint=f"Read the warnings, and accept it by its name: {name}",
    )


def seen_of(tools: Iterable[PinnedTool]) -> str:
    """Return what tells one list of waiting tools from another."""
    digests = sorted(f"{one.status} {one.digest} {one.tool if not one.digest else ''}" for one in tools)
    return hashlib.sha256("\n".join(digests).encode(errors="surrogatepass")).hexdigest()


def _view(one: PinnedTool) -> PinView:
    return PinView(
        plugin=one.plugin,
        tool=one.tool,
        name=one.wire,
        status=one.status,
        waits=one.waits,
        by=one.by,
        claims=one.claims,
        digest=one.digest,
    )


def _pin_view(one: PinnedTool, findings: tuple[Finding, ...], known: ShownNames) -> PinView:
    """Return a tool with how it differs; secrets have their marks first: one that is cut would be none (X5)."""
    before, after = mark_secrets(one.pinned or EMPTY, known), mark_secrets(one.listed or EMPTY, known)
    return replace(
        _view(one),
        description=_cut_text((before or after).get("description") or ""),
        diff=definition_diff(before, after) if after else "",
        findings=findings,
    )


def _cut_text(text: str) -> str:
    text = without_long_runs(text)
    more = f" … ({len(text) - LONGEST:,} more characters)" if len(text) > LONGEST else ""
    return f"{visible(text[:LONGEST])}{more}"
