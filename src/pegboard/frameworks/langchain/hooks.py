"""Hooks of a middleware that are awaited without a thread where nothing traces them.

LangChain hands each hook to LangSmith's ``traceable``. That begins and ends the span of a coroutine function in a
thread, also where nothing is traced: four hops of threads for a step. A function that returns what is awaited has none;
but its span ends as it returns.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from types import MethodType
from typing import Any, Final, Generic, TypeVar, cast

HookT = TypeVar("HookT", bound=Callable[..., Awaitable[Any]])
_SWITCHES: Final = ("LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING", "LANGCHAIN_TRACING")
"""Read where they are set: LangSmith's own function keeps what it has read first, for the whole process."""


def as_awaitable_hook(hook: HookT) -> HookT:
    """Return a hook that needs no thread, unless the environment lets LangSmith trace as the agent is made."""
    return cast("HookT", _AwaitableHook(hook))


class _AwaitableHook(Generic[HookT]):
    """A coroutine function that is one on an instance where LangSmith traces alone."""

    __slots__ = ("_hook",)

    def __init__(self, hook: HookT) -> None:
        self._hook = hook

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., Awaitable[Any]]:
        if instance is None:
            return self._hook
        bound = MethodType(self._hook, instance)
        if any(os.environ.get(switch) == "true" for switch in _SWITCHES):
            return bound

        def call_hook(request: Any, handler: Any) -> Awaitable[Any]:
            return bound(request, handler)

        return call_hook
