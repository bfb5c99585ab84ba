"""Environments that remember what is asked for, and those that answer with markers instead of values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

_BEGINNING: Final = re.compile(r"[a-z][a-z0-9+.-]{0,15}://|~?[/\\]|[A-Za-z]:[/\\]|")
"""What a value may show of itself, so that a URL stays one and a path absolute."""


class Lookups(Mapping[str, str]):
    """An environment that remembers in ``names`` which variables were looked up."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        """Return the value of a variable."""
        self.names.add(name)
        return self._env[name]

    def __iter__(self) -> Iterator[str]:
        """Yield every name."""
        return iter(self._env)

    def __len__(self) -> int:
        """Return how many variables there are."""
        return len(self._env)


class Marked(Lookups):
    """An environment whose variables have markers for values: each but the beginning of a URL or path."""

    def __init__(self, env: Mapping[str, str], salt: str) -> None:
        super().__init__(env)
        self._salt = salt
        self.markers: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        """Return a value that shows nothing of the real one; the user's own folder of configurations must stay."""
        value = super().__getitem__(name)
        if not value or name == "XDG_CONFIG_HOME":
            return value
        beginning, marker = beginning_of(value), f"marked{self._salt}n{len(self.markers)}n"
        marker = self.markers.setdefault(name, marker)
        return beginning + marker


def beginning_of(value: str) -> str:
    """Return the part of a value that is no secret: the scheme of a URL, the root of a path.

    >>> beginning_of("https://ada@example.org"), beginning_of("/srv/x"), beginning_of("hunter22")
    ('https://', '/', '')
    """
    found = _BEGINNING.match(value)
    return found[0] if found else ""
