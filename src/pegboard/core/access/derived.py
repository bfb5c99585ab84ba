"""Values that are computed once per compiled permissions, whoever computes them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")
Derived = dict[tuple[Hashable, ...], Any]


class KeepsDerived(Protocol):
    """A value that never changes and keeps what was derived from it."""

    @property
    def derived(self) -> Derived:
        """Return what was computed so far, by function and further arguments."""
        ...


S = TypeVar("S", bound=KeepsDerived)


def once_per_permissions(compute: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Return a function that computes its value once per permissions and further arguments.

    Args:
        compute: a pure function of permissions and further arguments, all positional and hashable.

    The values go when the permissions go: with every change of the world or of a switch.
    """

    @wraps(compute)
    def once(permissions: S, *key: Any) -> T:
        kept = permissions.derived
        try:
            return cast("T", kept[compute, *key])
        except KeyError:
            value = kept[compute, *key] = cast("Any", compute)(permissions, *key)
            return value

    return cast("Callable[Concatenate[S, P], T]", once)
