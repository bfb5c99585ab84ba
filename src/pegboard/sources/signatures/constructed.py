"""Plugins of this process that are ready to be called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, TypeVar, cast

from pegboard.core.model.tools import EMPTY, CallResult, JsonObject, Manifest
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext, HookAnswer
from pegboard.sources.signatures.functions import Described
from pegboard.sources.signatures.parameters import Parameters
from pegboard.sources.signatures.results import hook_answer, run
from pegboard.support.threads import in_thread

T = TypeVar("T")
LIFE_CYCLE: Final = frozenset({"close", "aclose"})
NO_PARAMETERS: Final = Parameters()
CONDITION: Final = "is_available"
"""The name of a method or module function that says whether a plugin can run now (T12)."""


class LocalPlugin(Protocol):
    """A plugin of this process that is ready to be called."""

    def manifest(self, plugin: str) -> Manifest:
        """Return the manifest of the plugin."""
        ...

    async def call(self, plugin: str, name: str, arguments: JsonObject, context: CallContext) -> CallResult:
        """Run a tool; what it raises is an error result."""
        ...

    async def ask_hooks(self, plugin: str, name: str, arguments: JsonObject, context: CallContext) -> HookAnswer:
        """Return what guard and approval hook of a tool say to a call, before it runs."""
        ...

    def predicate(self, name: str) -> Callable[..., Any] | None:
        """Return the predicate of this name, as ``Tool.when`` has it; None where there is none (T12)."""
        ...

    async def aclose(self) -> None:
        """Close what was constructed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A plugin that is ready to be called; ``tools`` by their names."""

    tools: Mapping[str, Described] = field(default=EMPTY)
    parameters: Parameters = NO_PARAMETERS
    description: str = ""
    owner: object = None
    condition: Callable[..., Any] | None = None

    def predicate(self, name: str) -> Callable[..., Any] | None:
        """Return the predicate of this name: the plugin's own, or ``is_available TOOL`` of a tool's mark (T12)."""
        _, _, tool = name.partition(" ")
        described = self.tools.get(tool)
        return described.mark.is_available if described is not None else self.condition if not tool else None

    def manifest(self, plugin: str) -> Manifest:
        """Return the manifest of the plugin."""
        return Manifest(
            tools=tuple(replace(tool.tool(plugin, self.tools), when=self._when(tool)) for tool in self.tools.values()),
            parameters=self.parameters.types,
            secrets=self.parameters.secrets,
            description=self.description,
        )

    def _when(self, tool: Described) -> tuple[str, ...]:
        own = (f"{CONDITION} {tool.name}",) if tool.mark.is_available is not None else ()
        return (*own, CONDITION) if self.condition is not None else own

    async def call(self, plugin: str, name: str, arguments: JsonObject, context: CallContext) -> CallResult:
        """Run a function; what it raises is an error result."""
        return await run(called(self.tools, plugin, name), arguments, principal=context.principal)

    async def ask_hooks(self, plugin: str, name: str, arguments: JsonObject, context: CallContext) -> HookAnswer:
        """Return what guard and approval hook of a function say to a call, before it runs."""
        return await hook_answer(called(self.tools, plugin, name), arguments, principal=context.principal)

    async def aclose(self) -> None:
        """Call the ``aclose`` or ``close`` of what was constructed."""
        for name in ("aclose", "close"):
            method = getattr(self.owner, name, None)
            if method is not None and takes_nothing(method):
                outcome = await in_thread(method)
                if inspect.isawaitable(outcome):
                    await outcome
                return


def called(tools: Mapping[str, T], plugin: str, name: str) -> T:
    """Return the tool of this name; raises ``ToolUnavailableError`` where it has gone."""
    if name not in tools:
        raise ToolUnavailableError(f"plugin '{plugin}' has no tool '{name}' any more.")
    return tools[name]


def takes_nothing(method: object) -> bool:
    """Return whether a method can be called without arguments."""
    try:
        parameters = inspect.signature(cast("Callable[..., Any]", method)).parameters.values()
    except (TypeError, ValueError):
        return False
    return all(p.default is not p.empty or p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in parameters)
