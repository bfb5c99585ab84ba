"""Change the members of one mapping of a YAML text, and leave everything else as it is, comments included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import yaml

from pegboard.config.documents.json_edits import Raw
from pegboard.config.documents.value_edits import with_value
from pegboard.config.documents.written import member_lines, yaml_in_line

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STEP: Final = 2
_FOLDED: Final = ("|", ">")


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
            end = self._end_of_value(value)
            found[str(key.value)] = Raw(self._text[start:end])
            start = end
        return found

    def with_object(self, path: Sequence[str], members: Mapping[str, Any]) -> str:
        """Return the text with these members below a key instead of those that stand there.

        Nothing is changed where members stand in braces.
        """
        node, block = _node_at(self._text, path), self._block(path)
        if node is None:
            return with_value(self._text, path, dict(members), file="")
        if block is not None:
            start, end = self._start(block), self._end_of_value(_pairs(block)[-1][1])
            return self._text[:start] + self._lines(members, block.start_mark.column) + self._text[end:]
        if node.value or len(path) > 1:
            return self._text
        beside, newline, after = self._text[node.end_mark.index :].partition(self._newline)
        before = self._text[: node.start_mark.index].rstrip(" ")
        return f"{before}{beside}{newline or self._newline}{self._lines(members, _STEP)}{after}"

    def _block(self, path: Sequence[str]) -> yaml.MappingNode | None:
        node = _node_at(self._text, path)
        return node if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value else None

    def _start(self, node: yaml.MappingNode) -> int:
        """Return where the first member begins, with the comments before it."""
        lines = self._text[: self._text.rfind("\n", 0, node.start_mark.index) + 1].splitlines(keepends=True)
        while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
            lines.pop()
        return sum(map(len, lines))

    def _end_of_value(self, node: yaml.Node) -> int:
        """Return where the line after the last one of a value begins."""
        if isinstance(node, yaml.CollectionNode) and not node.flow_style:
            return _end_of_block(self._text, node)
        end = self._text.find("\n", node.end_mark.index)
        return len(self._text) if end < 0 else end + 1

    def _lines(self, members: Mapping[str, Any], column: int) -> str:
        parts: list[str] = [] if members else [f"{' ' * column}{yaml_in_line({})}{self._newline}"]
        for name, value in members.items():
            if isinstance(value, Raw):
                parts.append(value if value.endswith("\n") else f"{value}{self._newline}")
            else:
                parts += [line + self._newline for line in member_lines(name, value, column)]
        return "".join(parts)


def _pairs(node: yaml.MappingNode) -> list[tuple[yaml.Node, yaml.Node]]:
    return cast("list[tuple[yaml.Node, yaml.Node]]", node.value)


def _node_at(text: str, path: Sequence[str]) -> Any:
    """Return what is at a path of a text, or None."""
    node: Any = yaml.compose(text, Loader=_LOADER)
    for part in path:
        pairs = _pairs(node) if isinstance(node, yaml.MappingNode) else []
        node = next((value for name, value in pairs if name.value == part), None)
    return node


def _end_of_block(text: str, node: yaml.Node) -> int:
    """Return where the line after the last one of a block begins; comments and empty lines behind it stay there."""
    end: int = node.end_mark.index
    last = node
    while isinstance(last, yaml.CollectionNode) and not last.flow_style and (inner := _children(last)):
        last = inner[-1]
    if isinstance(last, yaml.ScalarNode) and last.style in _FOLDED and node.start_mark.index < last.start_mark.index:
        return last.end_mark.index
    lines = text[:end].splitlines(keepends=True)
    if end < len(text) and lines and not lines[-1].endswith("\n"):
        lines.pop()  # white space in front of what comes next
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    return sum(map(len, lines))


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [value for _, value in _pairs(node)]
    return cast("list[yaml.Node]", node.value) if isinstance(node, yaml.SequenceNode) else []
