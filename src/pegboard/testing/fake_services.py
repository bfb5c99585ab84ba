"""Twins of what decides inside one board: ranking, token counts, argument checks, focus rules."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pegboard.core.access.named_paths import OwnKind
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.core.surface.searchable import Group, Searchable
from pegboard.ports import Evidence, RankContext, Ranked, Ranking, ScorePart


class FakeRanker:
    """A ranker with a given order: of the permitted tools those that it names, in that order.

    ``queries`` is the log of what was searched for, ``contexts`` that of what was known of the conversation.
    """

    def __init__(self, *names: str, evidence: Evidence | None = None) -> None:
        """Set the order.

        Args:
            names: Ids (``plugin/tool``), wire names or own names of tools, or names of groups, the best one first.
            evidence: What is known of the answers to each need; by default that something fits where it does.
        """
        self.queries: list[tuple[str, ...]] = []
        self.contexts: list[RankContext] = []
        self._names = names
        self._evidence = evidence

    async def prepare(self, among: Searchable) -> None:
        """Do nothing: there is no index."""

    def rank(
        self,
        queries: Sequence[str],
        among: Searchable,
        context: RankContext,
        *,
        limit: int,
        without: Searchable | None = None,
    ) -> Ranking:
        """Record the queries and the context, and return the named tools and groups with falling scores."""
        self.queries.append(tuple(queries))
        self.contexts.append(context)
        found = self._find_named(among)
        hidden = () if without is None else (*without.tools, *without.groups)
        hits = [Ranked(found=each, score=score) for each, score in found if each not in hidden][:limit]
        known = self._evidence or Evidence(fits=1.0 if found else 0.0)
        return Ranking(hits=tuple(hits), needs=tuple(known for _ in queries))

    def parts(
        self,
        query: str,  # noqa: ARG002
        among: Searchable,
        context: RankContext,  # noqa: ARG002
        found: Sequence[Tool | Group],
    ) -> tuple[tuple[ScorePart, ...], ...]:
        """Return each score as one part, that of its meaning; none of what is not named."""
        scores = self._find_named(among)
        return tuple(
            tuple(ScorePart(kind="meaning", value=score) for known, score in scores if known == each) for each in found
        )

    def _find_named(self, among: Searchable) -> list[tuple[Tool | Group, float]]:
        found: list[Tool | Group] = []
        for name in self._names:
            found += [tool for tool in among.tools if name in (tool.id, tool.wire, tool.name)]
            found += [group for group in among.groups if name == group.name]
        return [(each, 1 - place / (len(found) + 1)) for place, each in enumerate(found)]


class WordCounter:
    """A token counter that counts words, so that a test can say what a text costs."""

    def count(self, text: str) -> int:
        """Return how many runs without a blank a text has."""
        return len(text.split())


class FakeOwnFiles:
    """Files of Pegboard's own, which are named by the texts that it was given."""

    def __init__(self, names: Mapping[str, OwnKind] | None = None) -> None:
        """Set the names.

        Args:
            names: What each is for, by the text that names it.
        """
        self._names: dict[str, OwnKind] = dict(names or {})

    @property
    def names(self) -> frozenset[str]:
        """Return the names in lower case."""
        return frozenset(name.casefold() for name in self._names)

    @property
    def server_folder(self) -> str:
        """Return the root: no folder is that of a server."""
        return "/"

    def has_all_of(self, folder: str) -> bool:  # noqa: ARG002
        """Return False: no folder is full of them."""
        return False

    def named(
        self,
        tool: str,  # noqa: ARG002
        arguments: JsonObject,
        folders: Iterable[str],  # noqa: ARG002
        *,
        reading: bool,  # noqa: ARG002
    ) -> tuple[str, OwnKind] | None:
        """Return the first argument that is one of the names."""
        kinds: dict[str, OwnKind] = {
            name: self._names[str(value)] for name, value in arguments.items() if str(value) in self._names
        }
        return next(iter(kinds.items()), None)


class FakeValidator:
    """An argument check that finds the problems it was given, and none elsewhere."""

    def __init__(self, problems: Mapping[str, Sequence[str]] | None = None) -> None:
        """Set the problems.

        Args:
            problems: Sentences by the id of a tool (``plugin/tool``).
        """
        self._problems = dict(problems or {})

    def fits(self, tool: Tool, arguments: JsonObject) -> bool:  # noqa: ARG002
        """Return whether a tool was given no problems."""
        return not self._problems.get(tool.id)

    async def problems(self, tool: Tool, arguments: JsonObject) -> list[str]:  # noqa: ARG002
        """Return the problems of a tool."""
        return list(self._problems.get(tool.id, ()))


class FakeHooks:
    """The functions that a configuration names as ``module:function``, given as functions."""

    def __init__(self, hooks: Mapping[str, Callable[..., Any]] | None = None) -> None:
        """Set the functions.

        Args:
            hooks: Plain or async functions by their names in the configuration.
        """
        self._hooks = dict(hooks or {})

    async def prepare(self, hook: str) -> None:
        """Check that a function was given.

        Raises:
            KeyError: No function was given under this name.
        """
        self._hooks[hook]

    async def ask(self, hook: str, *given: object) -> object:
        """Return the answer of a function.

        Raises:
            KeyError: No function was given under this name.
        """
        answer = self._hooks[hook](*given)
        return await answer if inspect.isawaitable(answer) else answer


class FakeFocusRules:
    """Focus rules with hooks that are given as functions; patterns are Python's."""

    def __init__(self, hooks: Mapping[str, Callable[[str, Sequence[str]], Any]] | None = None) -> None:
        """Set the hooks.

        Args:
            hooks: Functions of a message and the visible tools, plain or async, by the name that
                the configuration has (``module:function``).
        """
        self._hooks = dict(hooks or {})

    def matches(self, pattern: str, message: str) -> bool:
        """Return whether a pattern is found in a message."""
        return re.search(pattern, message) is not None

    async def ask(self, hook: str, message: str, tools: Sequence[str]) -> object:
        """Return the answer of a hook.

        Raises:
            KeyError: No function was given under this name.
        """
        answer = self._hooks[hook](message, tools)
        return await answer if inspect.isawaitable(answer) else answer
