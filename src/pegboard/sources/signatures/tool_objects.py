"""Objects that are one tool each, as MIRA has them: with ``name``, ``simple_description`` and a method ``run``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeGuard

from pegboard.marks import Mark, mark_of
from pegboard.sources.signatures.functions import own_doc


def is_tool_object(target: object) -> TypeGuard[Any]:
    """Return whether an object, made of such a class, is one tool."""
    kind = type(target)
    texts = (getattr(kind, "name", None), getattr(kind, "simple_description", None))
    return all(isinstance(text, str) and text for text in texts) and callable(getattr(kind, "run", None))


def tool_object_mark(target: Any) -> Mark:
    """Return the mark of the tool that an object is; a definition in ``anthropic_schema`` has its schema."""
    definition: Any = getattr(target, "anthropic_schema", None)
    given: Mapping[str, Any] = definition if isinstance(definition, Mapping) else {}
    own = mark_of(target.run)
    text = own.description or given.get("description") or own_doc(target) or target.simple_description
    schema = own.schema if own.schema is not None else given.get("input_schema")
    return replace(own, name=own.name or target.name, description=str(text), schema=schema)
