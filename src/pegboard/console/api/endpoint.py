"""One address of the JSON interface: what it takes and returns stands in the signature of its function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, TypeVar, dataclass_transform, get_type_hints

from pydantic import ConfigDict, TypeAdapter

from pegboard.core.principals.bearer_tokens import Right

T = TypeVar("T")

JSON: Final = "application/json"
Method = Literal["GET", "POST", "PUT", "DELETE"]


@dataclass_transform(frozen_default=True, kw_only_default=True)
def received(kind: type[T]) -> type[T]:
    """Return a class as a frozen dataclass that is read from a request: names that it does not have are refused."""
    made = dataclass(frozen=True, slots=True, kw_only=True)(kind)
    made.__pydantic_config__ = ConfigDict(extra="forbid", use_attribute_docstrings=True)  # type: ignore[attr-defined]
    return made


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address with its method.

    Attributes:
        method: the method.
        path: the address, with ``{name}`` for a segment that may be any text.
        function: takes the context and the visit; by keyword the segments, ``query`` and ``body``, which are classes
            that are ``received``. What it returns becomes JSON, unless it is a response already.
        codes: those of the errors that it answers with, beside what every endpoint does.
        right: what the operator has to have.
        media: of what media types the answer is.
    """

    method: Method
    path: str
    function: Callable[..., Awaitable[object]]
    codes: tuple[str, ...] = ()
    right: Right = "see"
    media: tuple[str, ...] = (JSON,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What an endpoint takes beside context and visit, and what it returns."""

    segments: tuple[str, ...]
    query: Any
    body: Any
    answer: Any


@cache
def signature_of(endpoint: Endpoint) -> Signature:
    """Return what an endpoint takes and returns."""
    hints = get_type_hints(endpoint.function, include_extras=True)
    query, body, answer = (hints.pop(name, None) for name in ("query", "body", "return"))
    segments = tuple(name for name in hints if name not in ("context", "visit"))
    return Signature(segments=segments, query=query, body=body, answer=answer)


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Return what reads and writes values of a type."""
    return TypeAdapter(kind)
