"""Read what definitions of servers' tools say to a model, while everything else goes on, and record it (A4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Final

from pegboard.board.observability.audit import Recorder
from pegboard.core.access.descriptions import Finding, OtherNames, read_definition
from pegboard.core.access.permissions import LOCAL
from pegboard.core.access.pins import PinName
from pegboard.core.model.tools import Tool
from pegboard.ports import AuditRecord, SessionKey
from pegboard.support.tasks import start_detached

RECORDED: Final = 100
"""How many tools of one list have a record of their own on the audit trail; one more counts the rest."""
_NO_SESSION: Final = SessionKey(principal=LOCAL, agent="", session="")

Definitions = Mapping[PinName, tuple[Tool, str]]
"""Tools of one server, and its own description, each with the digest of its definition."""


class DefinitionReader:
    """What definitions say to a model: each is read once."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: dict[tuple[str, str], tuple[Finding, ...]] = {}  # by plugin and digest
        self._unread: list[tuple[str, Definitions, Callable[[], OtherNames]]] = []
        self._reading: asyncio.Task[None] | None = None

    def read_later(self, plugin: str, tools: Definitions, others: Callable[[], OtherNames]) -> None:
        """Read definitions in a task of its own, and record what they say; ``others`` are the names of other tools."""
        self._unread.append((plugin, tools, others))
        if self._reading is None or self._reading.done():
            self._reading = start_detached(self._read_next(), name="read definitions")

    async def _read_next(self) -> None:
        while self._unread:
            plugin, tools, others = self._unread.pop(0)
            found = await self.findings(tools, others())
            records: list[AuditRecord] = []
            for name, findings in found.items():
                for one in findings:
                    reason = f"{one.text} ({one.place}): {one.excerpt}"
                    records.append(self._record(name.subject(plugin), reason))
            if len(records) > RECORDED:
                reason = f"{len(records) - RECORDED:,} more findings in the texts of its tools."
                records[RECORDED:] = [self._record(plugin, reason)]
            await self._recorder.note_all(records)

    def _record(self, subject: str, reason: str) -> AuditRecord:
        return self._recorder.entry(_NO_SESSION, 0, "pin", subject, "says", reason=reason)

    async def findings(self, tools: Definitions, others: OtherNames) -> Mapping[PinName, tuple[Finding, ...]]:
        """Return what those definitions say to a model that say something; others run meanwhile."""
        found: dict[PinName, tuple[Finding, ...]] = {}
        for name, (tool, digest) in tools.items():
            said = self._known.get((tool.plugin, digest))
            if said is None:
                said = self._known[tool.plugin, digest] = read_definition(tool, others=others)
            if said:
                found[name] = said
            await asyncio.sleep(0)
        return found

    def keep(self, plugin: str, digests: Collection[str]) -> None:
        """Forget what was read of a server but for definitions with these digests."""
        self._known = {key: one for key, one in self._known.items() if key[0] != plugin or key[1] in digests}

    async def aclose(self) -> None:
        """Read what is still to be read."""
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)
