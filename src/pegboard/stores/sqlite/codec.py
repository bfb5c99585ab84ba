"""How values stand in the database: texts, manifests as JSON, audit entries as rows."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import datetime
from typing import Any, cast

from pegboard.core.model.tools import Confirmation, Frozen, Manifest, Tool
from pegboard.ports import AuditRecord

Column = str | bytes | int | float | None

AUDIT_COLUMNS = AuditRecord._fields


def to_column(text: str) -> str | bytes:
    """Return the text as it is bound: bytes where SQLite cannot hold it as text (lone surrogates, NUL).

    A text always has the same form, so equality in SQL is equality of the texts.
    """
    if "\0" not in text:
        if text.isascii():
            return text
        try:
            text.encode()
        except UnicodeEncodeError:
            pass
        else:
            return text
    return text.encode("utf-8", "surrogatepass")


def from_column(value: str | bytes) -> str:
    """Return the text that :func:`to_column` was given."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")


def manifest_to_json(manifest: Manifest) -> str:
    """Return a manifest as JSON text with every field of every tool.

    Raises ``TypeError`` where a schema or annotation is not JSON.
    """
    document: dict[str, Any] = {field.name: getattr(manifest, field.name) for field in fields(Manifest)}
    document["secrets"] = sorted(manifest.secrets)
    document["offers"] = None if manifest.offers is None else sorted(manifest.offers)
    document["tools"] = [_tool_to_json(tool) for tool in manifest.tools]
    return json.dumps(document, separators=(",", ":"))


def manifest_from_json(text: str) -> Manifest | None:
    """Return the manifest, or None where the text does not hold one that can be used (it is fetched anew then)."""
    try:
        document: dict[str, Any] = json.loads(text)
        values = _values(Manifest, document)
        values["tools"] = tuple(map(_tool_from_json, document["tools"]))
        values["secrets"] = frozenset(document["secrets"])
        offers: Any = document.get("offers")
        values["offers"] = None if offers is None else frozenset(offers)
        manifest = Manifest(**values)
        return manifest if _is_whole(manifest) else None
    except (ValueError, LookupError, TypeError):
        return None


def _is_whole(manifest: Manifest) -> bool:
    """Return whether what everything else relies on is there: names, texts, schemas."""
    texts: list[object] = [manifest.description, manifest.instructions]
    schemas: list[object] = [manifest.parameters]
    for tool in manifest.tools:
        texts += (tool.plugin, tool.name, tool.wire, tool.description, tool.unavailable, tool.policy)
        schemas += (tool.input_schema, tool.annotations, tool.extra, tool.output_schema or {})
    named = all(tool.name and tool.plugin for tool in manifest.tools)
    return named and all(isinstance(text, str) for text in texts) and all(isinstance(one, dict) for one in schemas)


def _tool_to_json(tool: Tool) -> dict[str, Any]:
    document = {field.name: getattr(tool, field.name) for field in fields(Tool) if field.init}
    demanded = tool.confirmation
    if demanded is not None:
        document["confirmation"] = {field.name: getattr(demanded, field.name) for field in fields(Confirmation)}
    return document


def _tool_from_json(document: dict[str, Any]) -> Tool:
    values = _values(Tool, document)
    if (demanded := values.get("confirmation")) is not None:
        values["confirmation"] = Confirmation(**_values(Confirmation, demanded))
    return Tool(**values)


def _values(kind: type[Tool | Manifest | Confirmation], document: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the fields that ``kind`` has, objects and arrays as the values that it holds."""
    return {
        field.name: _frozen(document[field.name]) for field in fields(kind) if field.init and field.name in document
    }


def _frozen(value: Any) -> Any:
    """Return an object as a mapping that is never edited and an array as a tuple."""
    if isinstance(value, dict):
        return Frozen(cast("dict[str, Any]", value))
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def entry_to_row(entry: AuditRecord) -> tuple[Column, ...]:
    """Return the columns of an audit entry in the order of ``AUDIT_COLUMNS``; the time as ISO text."""
    at, kind, principal, agent, session, turn, subject, decision, reason, duration, outcome, arguments, by = entry
    texts = f"{kind}{principal}{agent}{session}{subject}{decision}{reason}{outcome}{arguments}{by}"
    if texts.isascii() and "\0" not in texts:
        return (
            at.isoformat(), kind, principal, agent, session, turn, subject, decision, reason, duration, outcome,
            arguments, by,
        )  # fmt: skip
    return tuple(map(_to_cell, entry))


def entry_from_row(row: tuple[Any, ...]) -> AuditRecord:
    """Return the audit entry that :func:`entry_to_row` was given."""
    if bytes in map(type, row):
        row = tuple(from_column(cell) if isinstance(cell, bytes) else cell for cell in row)
    return AuditRecord(datetime.fromisoformat(row[0]), *row[1:])


def intact_entry_from_row(row: tuple[Any, ...]) -> AuditRecord | None:
    """Return the audit entry, or None where a column holds what :func:`entry_to_row` never writes."""
    try:
        entry = entry_from_row(row)
        entry.at.timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    texts = (entry.kind, entry.principal, entry.agent, entry.session, entry.subject, entry.decision, entry.outcome)
    numbered = type(entry.turn) is int and (entry.duration is None or type(entry.duration) in (int, float))
    return entry if numbered and all(type(text) is str for text in texts) else None


def _to_cell(value: datetime | str | float | None) -> Column:
    match value:
        case str():
            return to_column(value)
        case datetime():
            return value.isoformat()
        case _:
            return value
