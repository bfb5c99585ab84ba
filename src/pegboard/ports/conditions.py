"""Code of the configuration and of plugins that is asked whether something holds now (T12, T6)."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import JsonObject


class HookRunner(Protocol):
    """The functions that a configuration names as ``module:function``."""

    async def prepare(self, hook: str) -> None:
        """Import the function of a ``module:function``, once; raises what its import raises."""
        ...

    async def ask(self, hook: str, *given: object) -> object:
        """Return what a function answers, plain or async; raises what it raises."""
        ...


@runtime_checkable
class ConditionalSource(Protocol):
    """A source whose plugins have predicates of their own in their code."""

    async def holds(
        self, spec: PluginSpec, overrides: JsonObject, condition: str, *given: object, scope: str = ""
    ) -> object:
        """Return what a predicate of a plugin answers; raises what it raises.

        Args:
            spec: The plugin.
            overrides: Those of the variant that is asked.
            condition: The predicate, as ``Tool.when`` names it.
            given: What it is called with.
            scope: Whose object is asked (G9); where there is none, none is constructed for it.
        """
        ...
