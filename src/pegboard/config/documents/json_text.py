"""Read JSON, with the comments and trailing commas that clients allow, and the place of everything."""

from __future__ import annotations

import re
from bisect import bisect_right
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final

from pegboard.config.documents.document import (
    DEEPEST,
    MOST_VALUES,
    Document,
    Node,
    UnreadableError,
    duplicate_key,
    fault,
    is_mapping,
    mapping_node,
    sequence,
)
from pegboard.problems import Problem

_DECODER: Final = JSONDecoder()
_GAP: Final = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<rest>(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)")
_CONSTANT: Final = re.compile(r"true|false|null")
_CONSTANTS: Final = {"true": True, "false": False, "null": None}


def compose(text: str, file: str) -> Document:
    """Return what a JSON text says; raises :class:`UnreadableError` where it is not valid.

    Duplicate keys do not stop the reading; the first one counts.
    """
    reader = _JsonReader(text, file)
    root, end = reader.value(reader.skip_gap(0), 0)
    if (end := reader.skip_gap(end)) != len(text):
        raise reader.fault("expected the end of the file", end)
    if not is_mapping(root.value):
        message = 'expected an object, as in {"mcpServers": {…}}.'
        raise fault(file, "not_mapping", message, at=(root.line, root.column))
    return Document(file=file, root=root, problems=tuple(reader.problems))


class _JsonReader:
    """The reader of one text; positions count characters from 0."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        self.problems: list[Problem] = []
        self._lines = [0, *(m.end() for m in re.finditer("\n", text))]
        self._count = 0

    def line_and_column(self, at: int) -> tuple[int, int]:
        """Return line and column of a position."""
        line = bisect_right(self._lines, at)
        return line, at - self._lines[line - 1] + 1

    def fault(self, message: str, at: int) -> UnreadableError:
        """Return the error that the text is not JSON from here on."""
        return fault(self.file, "syntax", f"is not valid JSON: {message}.", at=self.line_and_column(at))

    def skip_gap(self, at: int) -> int:
        """Return the position of what follows white space and comments."""
        found = _GAP.match(self.text, at)
        return found.end() if found else at

    def value(self, at: int, depth: int) -> tuple[Node, int]:
        """Return the value that begins here and the position behind it."""
        self._count += 1
        if depth > DEEPEST or self._count > MOST_VALUES:
            deep = f"is nested more than {DEEPEST} levels deep."
            code, message = (
                ("too_deep", deep) if depth > DEEPEST else ("too_large", f"contains more than {MOST_VALUES} values.")
            )
            raise fault(self.file, code, message, at=self.line_and_column(at))
        match self.text[at : at + 1]:
            case "{":
                return self._object(at, depth)
            case "[":
                return self._array(at, depth)
            case '"':
                value, end = self._string(at)
                return Node(value, *self.line_and_column(at)), end
            case _:
                return self._read_constant(at)

    def _read_constant(self, at: int) -> tuple[Node, int]:
        if found := _CONSTANT.match(self.text, at):
            return Node(_CONSTANTS[found[0]], *self.line_and_column(at)), found.end()
        found = _NUMBER.match(self.text, at)
        if found is None:
            raise self.fault("expected a value", at)
        try:
            number: Any = float(found[0]) if found["rest"] else int(found[0])
        except ValueError:
            raise self.fault("the number is too long", at) from None
        return Node(number, *self.line_and_column(at)), found.end()

    def _string(self, at: int) -> tuple[str, int]:
        try:
            read: tuple[str, int] = _DECODER.raw_decode(self.text, at)
        except JSONDecodeError as error:
            message = error.msg[0].lower() + error.msg[1:]
            raise self.fault(message.removesuffix(" starting at"), min(error.pos, len(self.text))) from None
        return read

    def _object(self, start: int, depth: int) -> tuple[Node, int]:
        children: dict[str, Node] = {}
        keys: dict[str, tuple[int, int]] = {}
        at = self.skip_gap(start + 1)
        while self.text[at : at + 1] != "}":
            if self.text[at : at + 1] != '"':
                raise self.fault("expected a key in double quotes, or `}`", at)
            spot = self.line_and_column(at)
            key, at = self._string(at)
            at = self.skip_gap(at)
            if self.text[at : at + 1] != ":":
                raise self.fault("expected `:` after the key", at)
            node, at = self.value(self.skip_gap(at + 1), depth + 1)
            if key in keys:
                self.problems.append(duplicate_key(self.file, key, spot, keys[key]))
            else:
                children[key], keys[key] = node, spot
            at = self._next_position(at, "}")
        return mapping_node(children, keys, self.line_and_column(start)), at + 1

    def _array(self, start: int, depth: int) -> tuple[Node, int]:
        nodes: list[Node] = []
        at = self.skip_gap(start + 1)
        while self.text[at : at + 1] != "]":
            node, at = self.value(at, depth + 1)
            nodes.append(node)
            at = self._next_position(at, "]")
        return sequence(nodes, self.line_and_column(start)), at + 1

    def _next_position(self, at: int, closing: str) -> int:
        at = self.skip_gap(at)
        if self.text[at : at + 1] == ",":
            return self.skip_gap(at + 1)
        if self.text[at : at + 1] != closing:
            raise self.fault(f"expected `,` or `{closing}`", at)
        return at
