"""Add to lists and mappings of a YAML text, or set one value, and leave every other character as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.config.documents.document import is_list, is_mapping
from pegboard.config.documents.value_edits import Path, not_rewritable, value_at, with_value


def with_items(text: str, path: Path, items: Sequence[str], *, file: str) -> str:
    """Return the text with items at the end of a list, which is made where there is none.

    Raises:
        ConfigError: it cannot be written without changing something else.
    """
    before = value_at(text, path, file=file)
    if before is not None and not is_list(before):
        raise not_rewritable(file)
    return with_value(text, path, [*(before or ()), *items], file=file)


def with_member(text: str, path: Path, key: str, value: Mapping[str, Any], *, file: str) -> str:
    """Return the text with a member at the end of a mapping, which is made where there is none.

    Raises:
        ConfigError: it cannot be written without changing something else.
    """
    owner = value_at(text, path, file=file)
    if (owner is not None and not is_mapping(owner)) or key in (owner or ()):
        raise not_rewritable(file)
    return with_value(text, (*path, key), dict(value), file=file)
