"""The toolkits and loadouts in use, to which code adds at run time (T11, L9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pegboard.core.model.loadout_registry import LoadoutRegistry, require_loadout
from pegboard.core.model.loadouts import Loadout
from pegboard.core.model.toolkits import Toolkit


class Toolkits:
    """The toolkits in use: those of the file, of code and of packages, in this order on one name."""

    def __init__(self, current: Callable[[], Mapping[str, Toolkit]], add: Callable[[Mapping[str, Any]], None]) -> None:
        self._current = current
        self._add = add

    def register(self, toolkit: Mapping[str, Any]) -> None:
        """Add a toolkit, in place of one that code gave under its name; live sessions have it with their next request.

        Args:
            toolkit: its ``name``, and the keys that a file has under ``toolkits``.

        Raises:
            ConfigError: it cannot be used; it has every problem with its place, and nothing has changed.
        """
        self._add(toolkit)

    def get(self, name: str) -> Toolkit | None:
        """Return the toolkit of this name, or None.

        Args:
            name: the toolkit's name.
        """
        return self._current().get(name)

    def all(self) -> tuple[Toolkit, ...]:
        """Return every toolkit."""
        return tuple(self._current().values())


class Loadouts(LoadoutRegistry):
    """The loadouts in use: those of the file, of code, of packages and the built-in ones, in this order on one name."""

    def __init__(self, current: Callable[[], Mapping[str, Loadout]], add: Callable[[Loadout], None]) -> None:
        super().__init__()
        self._current = current
        self._add = add

    def register(self, loadout: Loadout) -> None:
        """Add a loadout, in place of one that code gave under the same name; agents, sessions and children can name it.

        Args:
            loadout: the loadout. Where the file has one of its name, the file's counts.

        Raises:
            UsageError: it is not a loadout, or has no name.
            ConfigError: it cannot be used; it has every problem with its place, and nothing has changed.
        """
        self._add(require_loadout(loadout))

    def _known_loadouts(self) -> Mapping[str, Loadout]:
        """Return the loadouts of now; what was merged and resolved of others is forgotten."""
        if (current := self._current()) is not self._loadouts:
            self._loadouts = current
            self._forget()
        return current
