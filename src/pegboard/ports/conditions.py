"""Code of the configuration and of plugins that is asked whether something holds now (T12, T6)."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import JsonObject


class HookRunner(Protocol):
    """The functions that a configuration names as ``module:function``."""

    async def prepare(self, hook: str) -> None:
        """Import a function, once.

        Args:
            hook: ``module:function``.

        Raises:
            Exception: What its import raised.
        """
        ...

    async def ask(self, hook: str, *given: object) -> object:
        """Return the answer of a function, plain or async.

        Args:
            hook: ``module:function``.
            given: What it is called with.

        Returns:
            What it returned.

        Raises:
            Exception: What it raised.
        """
        ...


@runtime_checkable
class ConditionalSource(Protocol):
    """A source whose plugins have predicates of their own in their code."""

    async def holds(
        self, spec: PluginSpec, overrides: JsonObject, condition: str, *given: object, scope: str = ""
    ) -> object:
        """Return the answer of a predicate of a plugin.

        Args:
            spec: The plugin.
            overrides: Those of the variant that is asked.
            condition: The predicate, as ``Tool.when`` names it.
            given: What it is called with.
            scope: Whose object is asked (G9); where there is none, none is constructed for it.

        Returns:
            What it returned.

        Raises:
            Exception: What it raised.
        """
        ...
