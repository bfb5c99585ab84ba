"""Marks on Python functions: what a tool is, beyond its signature and docstring."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast, overload

__all__ = ["ATTRIBUTE", "Mark", "mark_of", "tool"]

ATTRIBUTE: Final = "__pegboard__"
"""The attribute of a mark: a :class:`Mark`, or a plain mapping with the same keys."""

AvailabilityHook = Callable[[str, str, "str | None"], "bool | str | Awaitable[bool | str]"]
Guard = Callable[[str, Mapping[str, Any]], str | None]
ApprovalHook = Callable[[str, Mapping[str, Any]], "bool | str | None"]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The mark that :func:`tool` puts on a function.

    ``read_only``, ``destructive``, ``idempotent`` and ``open_world`` become MCP's annotations where
    they are not None. ``requires`` names tools that come and go with this one (T8), ``needs``
    environment variables without which it is unavailable. ``guard`` sees the principal and the
    arguments before the tool runs, and returns the reason of a refusal or None (T10). ``is_available`` sees principal,
    agent and sub-app, and returns whether the tool can run now, or the reason why it cannot (T12). ``factory``
    marks a function that is no tool but returns the tools of its plugin. ``schema`` is the JSON Schema of the
    arguments, which the function is then given as they are, by their names.

    Of ``requires_confirmation`` (a person allows the call), ``user_input_fields`` (a person fills these
    parameters in) and ``external_execution`` (the call runs elsewhere) a function has at most one (T13).
    Where ``requires_confirmation`` is a function, it sees the principal and the arguments, and returns
    whether a person allows the call, or a text that says why (A1).
    """

    name: str = ""
    description: str = ""
    title: str = ""
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    requires: Sequence[str] = ()
    needs: Sequence[str] = ()
    policy: str = ""
    default_on: bool = True
    guard: Guard | None = None
    is_available: AvailabilityHook | None = None
    factory: bool = False
    requires_confirmation: bool | ApprovalHook = False
    user_input_fields: Sequence[str] = ()
    external_execution: bool = False
    schema: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.user_input_fields, str):
            raise TypeError("user_input_fields is a list of names of parameters")
        if bool(self.requires_confirmation) + bool(self.user_input_fields) + self.external_execution > 1:
            raise TypeError("a tool has one of requires_confirmation, user_input_fields and external_execution")

    def annotations(self) -> dict[str, Any]:
        """Return MCP's annotations of the tool."""
        hints = {
            "title": self.title or None,
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }
        return {key: value for key, value in hints.items() if value is not None}


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    *,
    name: str = "",
    description: str = "",
    title: str = "",
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    requires: Sequence[str] = (),
    needs: Sequence[str] = (),
    policy: str = "",
    default_on: bool = True,
    guard: Guard | None = None,
    is_available: AvailabilityHook | None = None,
    factory: bool = False,
    requires_confirmation: bool | ApprovalHook = False,
    user_input_fields: Sequence[str] = (),
    external_execution: bool = False,
    schema: Mapping[str, Any] | None = None,
) -> Callable[[F], F]: ...


def tool(function: Any = None, /, **fields: Any) -> Any:
    """Mark a function as a tool.

    Args:
        function: The function, where no field is set.
        fields: Those of :class:`Mark`.

    Returns:
        The function itself, or what marks one.

    Raises:
        TypeError: A field that a mark does not have, or two ways of asking a person.

    >>> @tool(read_only=True, requires=["geo/locate"])
    ... def weather(city: str) -> str:
    ...     return f"Sunny in {city}."
    >>> mark_of(weather).annotations()
    {'readOnlyHint': True}
    """
    mark = Mark(**fields)

    def put_mark(target: F) -> F:
        setattr(target, ATTRIBUTE, mark)
        return target

    return put_mark if function is None else put_mark(function)


def mark_of(function: object) -> Mark:
    """Return the mark of a function, method or class; an empty one where it has none.

    Raises ``TypeError`` where a plain mapping has a key that is not a field of :class:`Mark`.
    """
    mark = getattr(function, ATTRIBUTE, None)
    if isinstance(mark, Mark):
        return mark
    return Mark(**cast("Mapping[str, Any]", mark)) if isinstance(mark, Mapping) else Mark()
