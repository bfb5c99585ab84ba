"""What the configuration was: each text that it had, who saved it, and what changed since a moment (P10, X4)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pegboard.board.services import Services
from pegboard.errors import UsageError
from pegboard.operators.audit import AuditLine, AuditQuery
from pegboard.operators.audit import audit as read_trail
from pegboard.operators.editable import EditableConfiguration
from pegboard.operators.editing import DiffLine, Editing, Editor, ProposedEdit, difference
from pegboard.operators.masked import Verbatim, mask_value, shown_names
from pegboard.ports import AuditKind, ConfigurationText

CHANGES: Final[tuple[AuditKind, ...]] = ("edit", "permission", "pin", "approval")
"""The records of what people change."""
_SLACK: Final = 2.0
"""Within how many seconds the record of an edit and its version are made."""
MOST_CHANGES: Final = 200
"""How many of each kind are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationVersion:
    """A text that the configuration had.

    Attributes:
        number: its number.
        at: since when it was the file, in seconds since the epoch.
        by: who saved it; nothing where that was done outside of Pegboard.
        what: what that did, in words.
        digest: that of the file.
        added: how many lines it has more than the one before it.
        removed: how many lines of the one before it are gone.
        now: whether the file is this one.
    """

    number: int
    at: float
    by: str
    what: str
    digest: Verbatim
    added: int
    removed: int
    now: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedVersion:
    """A version with what it changed, and what restoring it would change; secrets are marks."""

    version: ConfigurationVersion
    change: tuple[DiffLine, ...]
    since: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesSince:
    """What people changed since a moment, the newest first; ``more`` is whether there is more than is listed."""

    lines: tuple[AuditLine, ...]
    more: bool


class ConfigurationHistory:
    """The texts that the configuration of one board had."""

    def __init__(
        self,
        services: Services,
        configuration: EditableConfiguration,
        editing: Editing,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._services = services
        self._configuration = configuration
        self._editing = editing
        self._clock = clock

    async def versions(self) -> tuple[ConfigurationVersion, ...]:
        """Return the versions, the newest first; the file as it is now is one of them.

        Raises:
            ConfigError: there is no file, or it cannot be read.
        """
        texts, now = await self._texts()
        before = [*texts[1:], None]
        found = (_version(one, older, now) for one, older in zip(texts, before, strict=True))
        return mask_value(tuple(found), await shown_names(self._services))

    async def version(self, number: int) -> ComparedVersion:
        """Return a version; raises ``UsageError`` where it is not kept."""
        texts, now = await self._texts()
        at = _position(texts, number)
        one, older = texts[at], texts[at + 1] if at + 1 < len(texts) else None
        found = ComparedVersion(
            version=_version(one, older, now),
            change=difference(older.text if older is not None else "", one.text),
            since=difference(texts[0].text, one.text),
        )
        return mask_value(found, await shown_names(self._services))

    async def version_at(self, at: str) -> ComparedVersion:
        """Return the version that was the file at a moment; raises ``UsageError`` where it is not kept."""
        texts, _ = await self._texts()
        try:
            moment = datetime.fromisoformat(at).timestamp()
        except ValueError:
            moment = 0.0
        return await self.version(next((one.number for one in texts if one.at <= moment + _SLACK), 0))

    async def restore(self, editor: Editor, number: int) -> ProposedEdit:
        """Return what it would come to to put a version in the place of the file; nothing is written.

        Raises:
            ConfigError: the file cannot be edited.
            UsageError: it is not kept, a secret in it is no longer known, or the editor does not see every agent.
        """
        texts, now = await self._texts()
        one = texts[_position(texts, number)]
        moment = time.strftime("%Y-%m-%d %H:%M", time.gmtime(one.at))
        return await self._editing.propose_text(
            editor, one.text, expected=now, what=f"Restore the configuration of {moment} UTC"
        )

    async def _texts(self) -> tuple[Sequence[ConfigurationText], str]:
        """Return every text that is kept, the file of now first, and its digest."""
        whole = await self._editing.read_noted()
        texts = await self._services.store.configuration_texts(self._configuration.path)
        return texts, whole.digest


async def changes_since(services: Services, since: datetime, *, agents: frozenset[str] | None) -> ChangesSince:
    """Return what people changed since a moment: edits, switches and pauses, changed tools, approvals."""
    found: list[AuditLine] = []
    more = False
    for kind in CHANGES:
        page = await read_trail(services, AuditQuery(kind=kind, since=since, agents=agents, limit=MOST_CHANGES))
        found += page.lines
        more = more or len(page.lines) == MOST_CHANGES
    return ChangesSince(lines=tuple(sorted(found, key=lambda line: line.id, reverse=True)), more=more)


def _version(one: ConfigurationText, older: ConfigurationText | None, now: str) -> ConfigurationVersion:
    lines = difference(older.text if older is not None else "", one.text)
    return ConfigurationVersion(
        number=one.number,
        at=one.at,
        by=one.by,
        what=one.what,
        digest=one.digest,
        added=sum(line.kind == "added" for line in lines),
        removed=sum(line.kind == "removed" for line in lines),
        now=one.digest == now,
    )


def _position(texts: Sequence[ConfigurationText], number: int) -> int:
    found = next((at for at, one in enumerate(texts) if one.number == number), None)
    if found is None:
        raise UsageError(
            "There is no such version.",
            code="unknown_version",
            hint="The newest 100 are kept: choose another.",
        )
    return found
