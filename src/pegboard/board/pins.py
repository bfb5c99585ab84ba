"""The pins of servers' tools: what has changed or is new and waits for a person, and what they accept (A4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pegboard.board.permissions import require_name
from pegboard.board.services import Services
from pegboard.core.access.permissions import LOCAL
from pegboard.core.access.pins import PinnedTool
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.core.model.tools import Plugin
from pegboard.errors import UsageError


class Pins:
    """The definitions of servers' tools that count; the next request of every session is bound by them (A4)."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def list(self, *names: str, waiting: bool = False) -> tuple[PinnedTool, ...]:
        """Return the tools of servers as their pins and their newest lists have them, without definitions.

        Args:
            names: servers, and tools as ``plugin/tool`` or by their wire names; none is every server.
            waiting: only what waits for a person.

        Raises:
            UsageError: ``unknown_name``: a name is neither.
            StoreError: the pins cannot be read.
        """
        await self._services.compiler.refresh()
        found = tuple(self._pinned_tools(names))
        return tuple(one for one in found if one.waits) if waiting else found

    async def show(self, *names: str, waiting: bool = False) -> tuple[PinnedTool, ...]:
        """Return the same with the definitions: the one that counts, and the one that the newest list has.

        Args:
            names: servers and tools; none is every server.
            waiting: only what waits for a person.

        Raises:
            UsageError: ``unknown_name``: a name is neither.
            StoreError: the pins cannot be read.
        """
        found: list[PinnedTool] = []
        for group in _by_plugin(await self.list(*names, waiting=waiting)):
            found += await self._services.pins.with_definitions(group)
        return tuple(found)

    async def accept(
        self, *names: str, by: str = LOCAL, shown: Iterable[PinnedTool] | None = None
    ) -> tuple[PinnedTool, ...]:
        """Let the definitions of now count, with what the tools say of themselves; every process is bound by it.

        Of tools that their servers no longer list the pins go.

        Args:
            names: servers and tools; none is everything that waits.
            by: who accepts it, for the audit trail.
            shown: what whoever accepts was shown, out of :meth:`list` or :meth:`show`: nothing else is accepted. Of
                what is as pinned it is kept who has seen it.

        Returns:
            What was accepted.

        Raises:
            UsageError: a name is neither (``unknown_name``), a tool is another by now than was shown (``pin_changed``),
                or ``by`` is no short text.
            StoreError: it cannot be stored.
        """
        require_name(by)
        services, plugins = self._services, self._services.world.catalog.plugins
        chosen = await self.list(*names) if shown is None else tuple(shown)
        accepted: list[PinnedTool] = []
        for group in _by_plugin(chosen):
            plugin = plugins.get(group[0].plugin)
            waiting = [one for one in group if one.waits or (shown is not None and one.status == "pinned")]
            gone = frozenset(one.pin_name for one in group if one.status == "gone")
            if plugin is None or not (waiting or gone):
                continue
            if await services.pins.accept(plugin, {one.pin_name: one.digest for one in waiting}, by=by, forget=gone):
                accepted += [one for one in group if one in waiting or one.status == "gone"]
        return tuple(accepted)

    def _pinned_tools(self, names: Sequence[str]) -> Iterator[PinnedTool]:
        servers = [one for one in self._services.world.catalog.plugins.values() if one.kind == "server"]
        if not names:
            for server in servers:
                yield from self._services.pins.tools(server)
            return
        found: dict[tuple[str, str], PinnedTool] = {}
        for name in names:
            own = self._pins_of_name(servers, name)
            if own is None:
                known = (one.name for one in servers)
                raise UsageError(
                    f"'{one_line(name, limit=100)}' is neither a server nor a tool of a server.",
                    code="unknown_name",
                    hint=did_you_mean(name, known) or "`pegboard pins list` lists them.",
                )
            found.update({(one.plugin, one.tool): one for one in own})
        yield from found.values()

    def _pins_of_name(self, servers: Sequence[Plugin], name: str) -> Sequence[PinnedTool] | None:
        """Return the tools of the server of this name, else the tool of this name, or None where there is neither."""
        for server in servers:
            if server.name == name:
                return self._services.pins.tools(server)
        for server in servers:
            for one in self._services.pins.tools(server):
                if name in (one.wire, f"{one.plugin}/{one.tool}"):
                    return (one,)
        return None


def _by_plugin(tools: Iterable[PinnedTool]) -> Iterable[Sequence[PinnedTool]]:
    """Return the tools of each server together."""
    groups: dict[str, list[PinnedTool]] = {}
    for one in tools:
        groups.setdefault(one.plugin, []).append(one)
    return groups.values()
