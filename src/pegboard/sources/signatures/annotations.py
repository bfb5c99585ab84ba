"""Pydantic's adapters for annotations, with what it refuses only on older Pythons made good."""

from __future__ import annotations

import builtins
import functools
import sys
import types
import typing
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

_NULL = {"type": "null"}
_SIMPLE = (
    (str, "string"), (int, "integer"), (float, "number"), (bool, "boolean"), (types.NoneType, "null"), (None, "null"),
)  # fmt: skip


def adapter_for(annotation: Any) -> Any:
    """Return pydantic's adapter for an annotation; raises where it has no JSON Schema."""
    from pydantic import TypeAdapter

    adapter = TypeAdapter[Any](acceptable_annotation(annotation))
    adapter.json_schema()
    return adapter


def plain_schema(annotation: Any) -> dict[str, Any] | None:
    """Return the JSON Schema that pydantic has for an annotation of JSON's own types; None for every other annotation.

    Most parameters are annotated so, and pydantic takes a hundred times as long for each.
    """
    if annotation is Any:
        return {}
    if (name := next((name for kind, name in _SIMPLE if annotation is kind), None)) is not None:
        return {"type": name}
    if annotation is list:
        return {"items": {}, "type": "array"}
    if annotation is dict:
        return {"additionalProperties": True, "type": "object"}
    arguments: tuple[Any, ...] = get_args(annotation)
    match get_origin(annotation):
        case builtins.list if (inner := plain_schema(arguments[0])) is not None:
            return {"items": inner, "type": "array"}
        case builtins.dict if arguments[0] is str and (inner := plain_schema(arguments[1])) is not None:
            return {"additionalProperties": inner or True, "type": "object"}
        case typing.Literal if all(type(value) is str for value in arguments):
            values: dict[str, Any] = {"enum": list(arguments)} if arguments[1:] else {"const": arguments[0]}
            return {**values, "type": "string"}
        case typing.Union | types.UnionType:
            return _plain_union(arguments)
        case _:
            return None


def _plain_union(arguments: tuple[Any, ...]) -> dict[str, Any] | None:
    """Return the schema of a union, null last; None where one of it is not plain, or two look the same."""
    branches = [plain_schema(argument) for argument in arguments]
    if not all(branches) or any(branch in branches[:index] for index, branch in enumerate(branches)):
        return None
    return {"anyOf": sorted((b for b in branches if b), key=lambda branch: branch == _NULL)}


def acceptable_annotation(annotation: Any) -> Any:
    """Return the annotation with every ``typing.TypedDict`` in it as pydantic takes it before Python 3.12."""
    if sys.version_info >= (3, 12):
        return annotation
    if isinstance(annotation, type) and typing.is_typeddict(annotation):
        return _rebuilt_typed_dict(annotation) if type(annotation).__module__ == "typing" else annotation
    arguments: tuple[Any, ...] = get_args(annotation)
    if not arguments or get_origin(annotation) is typing.Literal:
        return annotation
    fresh = tuple(acceptable_annotation(argument) for argument in arguments)
    if fresh == arguments:
        return annotation
    if get_origin(annotation) is Annotated:
        return Annotated[(fresh[0], *annotation.__metadata__)]
    if get_origin(annotation) in (Union, types.UnionType):
        union: Any = Union
        return union[fresh]
    alias: Any = annotation
    return alias.copy_with(fresh) if hasattr(alias, "copy_with") else get_origin(alias)[fresh]


@functools.cache
def _rebuilt_typed_dict(shape: Any) -> Any:
    """Return the same TypedDict made by typing_extensions, which keeps what pydantic needs."""
    from typing import NotRequired, Required

    from typing_extensions import TypedDict

    fields = {
        name: (Required if name in shape.__required_keys__ else NotRequired)[acceptable_annotation(hint)]  # type: ignore[index]
        for name, hint in get_type_hints(shape, include_extras=True).items()
    }
    fresh: Any = TypedDict(shape.__name__, fields)  # type: ignore[misc, operator]
    fresh.__module__, fresh.__doc__ = shape.__module__, shape.__doc__
    return fresh
