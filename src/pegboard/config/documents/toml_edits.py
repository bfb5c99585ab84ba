"""Change the tables below one key of a TOML text, and leave everything else as it is, comments included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import tomlkit
from tomlkit.items import AoT, Comment, Item, Table, Whitespace

from pegboard.config.documents.document import is_list, is_mapping


class TomlText:
    """One TOML text whose tables below a key can be read as they are written, and replaced.

    Raises ``tomlkit.exceptions.TOMLKitError`` for what is not TOML.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._document = tomlkit.parse(text)

    def members(self, path: Sequence[str]) -> dict[str, Any]:
        """Return the values below a key as they are written, without the comments after them."""
        values: Any = cast("Any", tomlkit.parse(self._text))
        for key in path:
            values = values.get(key, {})
        found: dict[str, Item] = dict(values.items())
        for item in found.values():
            _take_comments(item)
        return found

    def with_object(self, path: Sequence[str], members: Mapping[str, Any]) -> str:
        """Return the text with these values below a key instead of those that stand there.

        Comments after a table that goes stay: they belong to what follows. Below several keys nothing
        is changed.
        """
        key, *deeper = path
        if deeper:
            return self._text
        document = self._document
        parts = [(name, item) for name, item in document.body if name is not None and name.key == key]
        comments = [comment for _, item in parts for comment in _take_comments(item)]
        table = tomlkit.table(is_super_table=bool(members))
        for name, value in members.items():
            table.add(name, value if isinstance(value, Item) else _table(value))
        _add_comments(table, comments)
        if parts and all(isinstance(item, Table) and not name.is_dotted() for name, item in parts):
            document[key] = table
            return tomlkit.dumps(document)
        if parts:  # what has no header of its own: a table in its place would take in what follows
            document.remove(key)
        if self._text.strip():
            document.add(tomlkit.nl())
        document.add(key, table)
        return tomlkit.dumps(document)


def _take_comments(item: Item) -> list[str]:
    """Take the comments at the end of a table, and of those in it, out; return them."""
    if isinstance(item, AoT):
        return [comment for table in item.body for comment in _take_comments(table)]
    if not isinstance(item, Table):
        return []
    found = [comment for _, inner in item.value.body for comment in _take_comments(inner)]
    body = item.value.body
    end = len(body)
    while end and isinstance(body[end - 1][1], Comment | Whitespace):
        end -= 1
    found += [inner.as_string().strip() for _, inner in body[end:] if isinstance(inner, Comment)]
    del body[end:]
    return found


def _add_comments(table: Table, comments: Sequence[str]) -> None:
    """Add comments to the end of a table, so that they stand before what follows it."""
    last: Any = next(reversed(table.value.body), (None, table))[1]
    if isinstance(last, AoT):
        last = last.body[-1]
    if not comments or not isinstance(last, Table):
        return
    last.add(tomlkit.nl())
    for comment in comments:
        last.add(tomlkit.comment(comment.removeprefix("#").strip()))
    last.add(tomlkit.ws(""))


def _table(value: Mapping[str, Any]) -> Table:
    table = tomlkit.table()
    for key, inner in value.items():
        table.add(key, _toml_inline(inner))
    return table


def _toml_inline(value: Any) -> Any:
    if is_mapping(value):
        table = tomlkit.inline_table()
        for key, inner in value.items():
            table.add(key, _toml_inline(inner))
        return table
    if is_list(value):
        return cast("Item", tomlkit.item([_toml_inline(inner) for inner in value]))
    return cast("Item", tomlkit.item(value))
