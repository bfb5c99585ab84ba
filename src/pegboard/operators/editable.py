"""What the editing of a configuration needs of its file, as the assembly makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pegboard.core.access.grants import GrantChange
from pegboard.core.model.agents import World
from pegboard.operators.configuration import ShownProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationChange:
    """One change of a configuration: what is to stand at a path of keys, or that nothing is to stand there."""

    path: tuple[str, ...]
    value: Any = field(default=None, repr=False)
    remove: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenText:
    """A configuration as it is written now; ``secrets`` are the texts in it that are never shown."""

    file: str
    text: str = field(repr=False)
    digest: str
    secrets: frozenset[str] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditJudgement:
    """What a text would be as the configuration.

    ``world`` is None where it cannot be used; it is without what waits, and has the catalog as far as it is known.
    ``changes`` are those of what was accepted last, ``waiting`` those among them that the file makes already: they
    wait, or count once it is read. ``added`` are the
    problems that it has more than the file has now.
    """

    problems: tuple[ShownProblem, ...]
    added: tuple[ShownProblem, ...] = ()
    world: World | None = None
    changes: tuple[GrantChange, ...] = ()
    waiting: tuple[GrantChange, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


class EditableConfiguration(Protocol):
    """The file of a configuration, for operators who may edit it."""

    async def read(self) -> WrittenText:
        """Return what is in the file; raises ``ConfigError`` where there is none that could be edited."""
        ...

    def value(self, text: str, path: Sequence[str]) -> Any:
        """Return what stands at a path of keys in a text, as it is written; None where nothing does."""
        ...

    def servers(self, text: str) -> tuple[str, ...]:
        """Return the keys under which the servers of a text stand."""
        ...

    def edited(self, text: str, changes: Sequence[ConfigurationChange]) -> str:
        """Return a text with changes in it; raises ``ConfigError`` where one would change something else."""
        ...

    def lines(self, value: Mapping[str, Any]) -> list[str]:
        """Return the lines of a text which says this alone."""
        ...

    def secrets(self, text: str) -> frozenset[str]:
        """Return what is never shown of a text."""
        ...

    async def judged(self, text: str) -> EditJudgement:
        """Return what a text would be as the configuration; nothing is stored or started."""
        ...

    async def save(self, text: str, *, expected: str, by: str, decision: str, reason: str) -> str:
        """Put a text in the place of the one with a digest, take it up in somebody's name, and return its digest.

        Raises:
            ConfigError: it was changed meanwhile, or cannot be written.
        """
        ...
