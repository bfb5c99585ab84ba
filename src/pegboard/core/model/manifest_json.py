"""Manifests as JSON text, with every field of every tool."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from typing import Any, Final, cast

from pegboard.core.model.tools import NOTHING_UNREVIEWED, Confirmation, Frozen, Manifest, Tool

_DIGESTS: Final = ',"digests":'
"""What stands before the digests of definitions, which are the last that a text has."""


def manifest_to_json(manifest: Manifest) -> str:
    """Return a manifest as JSON text with every field of every tool.

    The digests of definitions stand at the end, with one of all that stands before them and of themselves. What waits
    for a person is left out: each list is compared with its pins when it is read.

    Raises ``TypeError`` where a schema or annotation is not JSON.
    """
    document: dict[str, Any] = {field.name: getattr(manifest, field.name) for field in fields(Manifest)}
    del document["digests"], document["unreviewed"]
    document["secrets"] = sorted(manifest.secrets)
    document["offers"] = None if manifest.offers is None else sorted(manifest.offers)
    document["tools"] = [_tool_to_json(tool) for tool in manifest.tools]
    text = json.dumps(document, separators=(",", ":"))
    if not manifest.digests:
        return text
    digests = json.dumps(manifest.digests, separators=(",", ":"))
    return f'{text[:-1]}{_DIGESTS}["{_digest_of_all(text, digests)}",{digests}]}}'


def manifest_from_json(text: str) -> Manifest | None:
    """Return the manifest, or None where the text does not hold one that can be used (it is fetched again then)."""
    try:
        document: dict[str, Any] = json.loads(text)
        values = _values(Manifest, document)
        values["tools"] = tuple(map(_tool_from_json, document["tools"]))
        values["secrets"] = frozenset(document["secrets"])
        offers: Any = document.get("offers")
        values["offers"] = None if offers is None else frozenset(offers)
        values["digests"] = _digests(text, document)
        values["unreviewed"] = NOTHING_UNREVIEWED
        lists: dict[str, list[Any]] = document.get("lists") or {}
        values["lists"] = Frozen({kind: tuple(map(_item, items)) for kind, items in lists.items()})
        manifest = Manifest(**values)
        return manifest if _is_whole(manifest) else None
    except (ValueError, LookupError, TypeError):
        return None


def _item(item: Any) -> Any:
    if not isinstance(item, dict):
        raise TypeError
    return Frozen(cast("dict[str, Any]", item))


def _digests(text: str, document: dict[str, Any]) -> tuple[str, ...]:
    """Return the digests of definitions that a text has, if it is still the one with which they were kept."""
    match document.get("digests"):
        case [str(whole), [*digests]] if len(digests) == len(document["tools"]):
            before = text.rpartition(_DIGESTS)[0]
            kept = whole == _digest_of_all(before + "}", json.dumps(digests, separators=(",", ":")))
            return tuple(map(str, digests)) if kept else ()
        case _:
            return ()


def _digest_of_all(text: str, digests: str) -> str:
    return hashlib.sha256((text + digests).encode(errors="surrogatepass")).hexdigest()


def _is_whole(manifest: Manifest) -> bool:
    """Return whether what everything else relies on is there: names, texts, schemas."""
    texts: list[object] = [
        manifest.description,
        manifest.instructions,
        manifest.package,
        *manifest.words,
        *manifest.excluded.values(),
        manifest.unavailable,
        manifest.packages,
    ]
    schemas: list[object] = [
        manifest.parameters,
        manifest.reached_by,
        manifest.excluded,
        manifest.cut,
        manifest.not_tools,
    ]
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
