"""How a file that waits for a person differs from what was accepted of it, in lines that show no secret (A7, X5)."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from pegboard.config.accepted_files import AcceptedFiles, FileKind, read_counted
from pegboard.config.clients.literal_secrets import secrets_in_text
from pegboard.config.documents.expansion import variables
from pegboard.core.access.grants import GrantChange
from pegboard.core.model.masking import Masker

_MOST_LINES: Final = 200
_LONGEST: Final = 500
_CONFIGURATIONS: Final = (".yaml", ".yml", ".json", ".jsonc", ".toml")


def difference(accepted: AcceptedFiles, change: GrantChange, masker: Masker) -> tuple[str, ...]:
    """Return the lines of a difference; of a file of variables the names of those that differ."""
    kind: FileKind = "code" if change.key[1] == "code" else "text"
    path = accepted.path(change.key[-1])
    before, after = _text(accepted.copy(path, kind)), _text(path)
    if before is None or after is None:
        return ("its text cannot be shown: it is empty or too large.",)
    if kind == "text" and path.suffix not in _CONFIGURATIONS:
        lines = _variables(before, after)
    else:
        secrets = {secret for text in (before, after) for secret in _secrets(text, path)}
        hidden = Masker(masker.values | secrets)
        found = difflib.unified_diff(before.splitlines(), after.splitlines(), "accepted", "now", n=1, lineterm="")
        lines = (hidden.text(line) for line in found)
    shown = [_printable_line(line) for line in islice(lines, _MOST_LINES + 1)]
    return tuple(shown if len(shown) <= _MOST_LINES else [*shown[:_MOST_LINES], "…"])


def _printable_line(line: str) -> str:
    """Return a line with its spaces, and in words what else of it does not print."""
    whole = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in line[:_LONGEST])
    return whole if len(line) <= _LONGEST else f"{whole}…"


def _text(path: Path) -> str | None:
    data = read_counted(path)
    if data is None:
        return "" if not path.exists() else None
    return None if b"\0" in data else data.decode("utf-8", errors="replace")


def _secrets(text: str, path: Path) -> frozenset[str]:
    return secrets_in_text(text, path.name) if path.suffix in _CONFIGURATIONS else frozenset()


def _variables(before: str, after: str) -> Iterator[str]:
    had, has = variables(before), variables(after)
    for name in sorted(had.keys() | has.keys()):
        if had.get(name) != has.get(name):
            yield f"{name}: {'new' if name not in had else 'gone' if name not in has else 'another value'}"
