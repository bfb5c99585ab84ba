"""Fill in ``${NAME}`` from the environment, and remember what must never be shown (X5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pegboard.config.documents.document import Expanded, Key, is_list, is_mapping

_REFERENCE: Final = re.compile(r"\$\$\{|\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{(?:input:([^}]*)\})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A variable that a value needs and the environment does not have."""

    path: tuple[Key, ...]
    name: str
    kind: str = "variable"


@dataclass(slots=True, kw_only=True)
class Expansion:
    """One filling-in of references: it collects the secrets, and what is missing or malformed.

    ``also`` gives values that are no secrets and count where the environment has none.
    """

    env: Mapping[str, str]
    also: Mapping[str, str] = field(default_factory=dict[str, str])
    secrets: set[str] = field(default_factory=set[str])
    missing: list[Missing] = field(default_factory=list[Missing])

    def value(self, value: Any, path: tuple[Key, ...] = ()) -> Any:
        """Return the value with every reference in it filled in; ``$${`` is written for ``${``."""
        if isinstance(value, str):
            return self._text(value, path) if "${" in value else value
        if is_mapping(value):
            return {key: self.value(inner, (*path, key)) for key, inner in value.items()}
        if is_list(value):
            return [self.value(inner, (*path, index)) for index, inner in enumerate(value)]
        return value

    def _text(self, text: str, path: tuple[Key, ...]) -> str:
        def filled(found: re.Match[str]) -> str:
            if found[0] == "$${":
                return "${"
            name, default, asked = found.groups()
            if name is None:
                kind = "syntax" if asked is None else "input"
                self.missing.append(Missing(path=path, name=asked or "", kind=kind))
                return found[0]
            value = self.env.get(name)
            if default is not None and not value:
                return default
            if value is None and name in self.also:
                return self.also[name]
            if value is None:
                self.missing.append(Missing(path=path, name=name))
                return found[0]
            if value:
                self.secrets.add(value)
            return value

        return Expanded(_REFERENCE.sub(filled, text))
