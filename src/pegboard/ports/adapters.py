"""A host's own adapters, in place of those that Pegboard would pick: token counts, focus rules, conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import JsonObject
from pegboard.ports.calls import ArgumentValidator
from pegboard.ports.ranking import Ranker
from pegboard.ports.sources import Source
from pegboard.ports.stores import Store


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


class TokenCounter(Protocol):
    """A counter of tokens, with a real tokenizer (F4)."""

    def count(self, text: str) -> int:
        """Return how many tokens a text takes."""
        ...


class FocusRules(Protocol):
    """The focus rules of a configuration, matched against messages (F3)."""

    def matches(self, pattern: str, message: str) -> bool:
        """Return whether a pattern that ``check`` has accepted is found anywhere in a message, in bounded time."""
        ...

    async def ask(self, hook: str, message: str, tools: Sequence[str]) -> object:
        """Return what a hook, ``module:function``, answers to a message and the wire names of the visible tools.

        It raises what the function raised; ``TimeoutError`` where it took too long.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """The adapters that a host hands to ``Pegboard.open``; None stands for Pegboard's own.

    ``sources`` are asked before Pegboard's: the first that handles a plugin brings it in, whatever
    the configuration says of where it comes from. The board opens and closes what it is handed.
    """

    store: Store | None = None
    sources: Sequence[Source] = ()
    ranker: Ranker | None = None
    counter: TokenCounter | None = None
    validator: ArgumentValidator | None = None
    focus: FocusRules | None = None
    hooks: HookRunner | None = None
