"""Change one object of a JSON text, comments allowed, and leave every other character as it is."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pegboard.config.documents.document import Document, Node, is_mapping

_SKIPPED: Final = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[\[\]{}]', re.DOTALL)
_SCALAR: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s,\]}/]+', re.DOTALL)
_GAP: Final = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_INDENT: Final = "  "


class Raw(str):
    """A value as it stood in a file."""

    __slots__ = ()


class JsonText:
    """One JSON text whose objects can be read as they are written, and replaced."""

    def __init__(self, text: str, document: Document) -> None:
        self.text = text
        self.root = document.root
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def at(self, line: int, column: int) -> int:
        """Return the position of a line and column, both from 1."""
        return self._starts[line - 1] + column - 1

    def node(self, path: Sequence[str]) -> Node | None:
        """Return what is at a path of keys."""
        node: Node | None = self.root
        for part in path:
            node = node.children.get(part) if node is not None else None
        return node

    def span(self, node: Node) -> tuple[int, int]:
        """Return where a value begins and ends."""
        start = self.at(node.line, node.column)
        if self.text[start] not in "{[":
            found = _SCALAR.match(self.text, start)
            return start, found.end() if found else start
        depth = 0
        for found in _SKIPPED.finditer(self.text, start):
            depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(found[0], 0)
            if depth == 0 and found[0] in "}]":
                return start, found.end()
        return start, len(self.text)

    def object(self, path: Sequence[str]) -> Raw | None:
        """Return the object at a path as it is written, or None where there is none."""
        node = self.node(path)
        if node is None or not is_mapping(node.value):
            return None
        start, end = self.span(node)
        return Raw(self.text[start:end])

    def members(self, path: Sequence[str]) -> dict[str, Raw]:
        """Return the values of an object as they are written."""
        node = self.node(path)
        if node is None:
            return {}
        spans = {str(key): self.span(child) for key, child in node.children.items()}
        return {key: Raw(self.text[start:end]) for key, (start, end) in spans.items()}

    def with_object(self, path: Sequence[str], members: Mapping[str, Any] | Raw) -> str:
        """Return the text with this object at a path instead of what is there, or with it added."""
        node = self.node(path)
        if node is None:
            return self._text_with_addition(path, members)
        start, end = self.span(node)
        return self.text[:start] + self._render_value(members, self._indentation_at(start)) + self.text[end:]

    def _text_with_addition(self, path: Sequence[str], members: Mapping[str, Any] | Raw) -> str:
        """Return the text with what is missing of a path added as the last member of its owner."""
        depth = next(n for n in range(len(path), 0, -1) if self.node(path[: n - 1]) is not None) - 1
        value: Any = members
        for key in reversed(path[depth + 1 :]):
            value = {key: value}
        owner = self.node(path[:depth])
        assert owner is not None
        start, end = self.span(owner)
        compact = self._unit() is None
        lead = self._indentation_at(start) + (self._unit() or "")
        separator = "" if compact else self._newline() + lead
        member = f"{separator}{json.dumps(path[depth], ensure_ascii=False)}: {self._render_value(value, lead)}"
        if not owner.children:
            closing = "" if compact else self._newline() + self._indentation_at(start)
            return self.text[: start + 1] + member + closing + self.text[end - 1 :]
        last = max(self.span(child)[1] for child in owner.children.values())
        after = self._after_gap(last)
        comma = self.text[after : after + 1] == ","
        at = after + 1 if comma else last
        return self.text[:at] + ("" if comma else ",") + member + ("," if comma else "") + self.text[at:]

    def _after_gap(self, at: int) -> int:
        found = _GAP.match(self.text, at)
        return found.end() if found else at

    def _render_value(self, value: Any, lead: str) -> str:
        if isinstance(value, Raw):
            return str(value)
        unit = self._unit()
        if not is_mapping(value):
            dumped = json.dumps(value, ensure_ascii=False, indent=unit)
            return dumped.replace("\n", self._newline() + lead)
        if unit is None:
            return "{" + ",".join(f"{json.dumps(k)}:{self._render_value(v, lead)}" for k, v in value.items()) + "}"
        if not value:
            return "{}"
        inner = lead + unit
        break_ = self._newline()
        names = {name: json.dumps(name, ensure_ascii=False) for name in value}
        lines = [f"{inner}{names[name]}: {self._render_value(item, inner)}" for name, item in value.items()]
        return f"{{{break_}" + f",{break_}".join(lines) + f"{break_}{lead}}}"

    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    def _unit(self) -> str | None:
        """Return the indent of one level; None where the text has one line only."""
        if "\n" not in self.text.strip():
            return None
        for child in self.root.keys.values():
            if lead := self._indentation_at(self.at(*child)):
                return lead
        return _INDENT

    def _indentation_at(self, at: int) -> str:
        """Return the white space at the beginning of a position's line."""
        line = self.text[self._starts[bisect_right(self._starts, at) - 1] : at]
        return line[: len(line) - len(line.lstrip(" \t"))]
