"""Change the members of one mapping of a YAML text, and leave everything else as it is, comments included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import yaml

from pegboard.config.documents.json_edits import Raw
from pegboard.config.documents.yaml_edits import end_of_block, inline, member_lines, node_at, with_new_member

_STEP: Final = 2


class YamlText:
    """One YAML text whose members below a key can be read as they are written, and replaced."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def members(self, path: Sequence[str]) -> dict[str, Any]:
        """Return the members below a key as they are written: the lines of each, with the comments before it."""
        node = self._block(path)
        if node is None:
            return {}
        found: dict[str, Any] = {}
        start = self._start(node)
        for key, value in _pairs(node):
            end = self._end(value)
            found[str(key.value)] = Raw(self._text[start:end])
            start = end
        return found

    def with_object(self, path: Sequence[str], members: Mapping[str, Any]) -> str:
        """Return the text with these members below a key instead of those that stand there.

        Nothing is changed where members stand in braces.
        """
        node, block = node_at(self._text, path), self._block(path)
        if node is None:
            return with_new_member(self._text, path[:-1], path[-1], dict(members))
        if block is not None:
            start, end = self._start(block), self._end(_pairs(block)[-1][1])
            return self._text[:start] + self._lines(members, block.start_mark.column) + self._text[end:]
        if node.value or len(path) > 1:
            return self._text
        beside, newline, after = self._text[node.end_mark.index :].partition(self._newline)
        before = self._text[: node.start_mark.index].rstrip(" ")
        return f"{before}{beside}{newline or self._newline}{self._lines(members, _STEP)}{after}"

    def _block(self, path: Sequence[str]) -> yaml.MappingNode | None:
        node = node_at(self._text, path)
        return node if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value else None

    def _start(self, node: yaml.MappingNode) -> int:
        """Return where the first member begins, with the comments before it."""
        lines = self._text[: self._text.rfind("\n", 0, node.start_mark.index) + 1].splitlines(keepends=True)
        while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
            lines.pop()
        return sum(map(len, lines))

    def _end(self, node: yaml.Node) -> int:
        """Return where the line after the last one of a value begins."""
        if isinstance(node, yaml.CollectionNode) and not node.flow_style:
            return end_of_block(self._text, node)
        end = self._text.find("\n", node.end_mark.index)
        return len(self._text) if end < 0 else end + 1

    def _lines(self, members: Mapping[str, Any], column: int) -> str:
        parts: list[str] = [] if members else [f"{' ' * column}{inline({})}{self._newline}"]
        for name, value in members.items():
            if isinstance(value, Raw):
                parts.append(value if value.endswith("\n") else f"{value}{self._newline}")
            else:
                parts += [line + self._newline for line in member_lines(name, value, column)]
        return "".join(parts)


def _pairs(node: yaml.MappingNode) -> list[tuple[yaml.Node, yaml.Node]]:
    return cast("list[tuple[yaml.Node, yaml.Node]]", node.value)
