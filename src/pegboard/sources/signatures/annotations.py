"""Pydantic's adapters for annotations, with what it refuses only on older Pythons made good."""

from __future__ import annotations

import functools
import sys
import types
import typing
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints


def adapter_for(annotation: Any) -> Any:
    """Return pydantic's adapter for an annotation; raises where it has no JSON Schema."""
    from pydantic import TypeAdapter

    adapter = TypeAdapter[Any](accepted(annotation))
    adapter.json_schema()
    return adapter


def accepted(annotation: Any) -> Any:
    """Return the annotation with every ``typing.TypedDict`` in it as pydantic takes it before Python 3.12."""
    if sys.version_info >= (3, 12):
        return annotation
    if isinstance(annotation, type) and typing.is_typeddict(annotation):
        return _rebuilt(annotation) if type(annotation).__module__ == "typing" else annotation
    arguments: tuple[Any, ...] = get_args(annotation)
    if not arguments or get_origin(annotation) is typing.Literal:
        return annotation
    fresh = tuple(accepted(argument) for argument in arguments)
    if fresh == arguments:
        return annotation
    if get_origin(annotation) is Annotated:
        return Annotated[(fresh[0], *annotation.__metadata__)]
    if get_origin(annotation) in (Union, types.UnionType):
        return Union[fresh]  # noqa: UP007
    alias: Any = annotation
    return alias.copy_with(fresh) if hasattr(alias, "copy_with") else get_origin(alias)[fresh]


@functools.cache
def _rebuilt(shape: Any) -> Any:
    """Return the same TypedDict made by typing_extensions, which keeps what pydantic needs."""
    from typing import NotRequired, Required

    from typing_extensions import TypedDict

    fields = {
        name: (Required if name in shape.__required_keys__ else NotRequired)[accepted(hint)]  # type: ignore[index]
        for name, hint in get_type_hints(shape, include_extras=True).items()
    }
    fresh: Any = TypedDict(shape.__name__, fields)  # type: ignore[misc, operator]
    fresh.__module__, fresh.__doc__ = shape.__module__, shape.__doc__
    return fresh
