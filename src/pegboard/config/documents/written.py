"""Values in texts of YAML and JSON: where each begins and ends, an alias as that, and how one is written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import yaml

from pegboard.config.documents.document import Document, Node, YamlWord, is_list, is_mapping
from pegboard.config.documents.json_edits import JsonText
from pegboard.config.documents.yaml_text import plain_value

_STEP: Final = 2


class _Dumper(yaml.SafeDumper):
    """The dumper of YAML that is read here: what is read as a number is quoted where it is a text."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Return that everything is written out."""
        return True


def _text(dumper: Any, value: str) -> yaml.Node:
    other = not isinstance(found := plain_value(value), str) or isinstance(found, YamlWord)
    style = '"' if "\n" in value else "'" if other else None
    node: yaml.Node = dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)
    return node


def _represent_word(dumper: Any, value: YamlWord) -> yaml.Node:
    node: yaml.Node = dumper.represent_scalar("tag:yaml.org,2002:bool", str(value))
    return node


_Dumper.add_representer(str, _text)
_Dumper.add_representer(YamlWord, _represent_word)
_Dumper.add_multi_representer(str, _text)


def yaml_in_line(value: Any) -> str:
    """Return a value as YAML in one line, quoted where it would mean something else.

    >>> yaml_in_line({"a": ["1", 1, "yes", "x: y"]}), yaml_in_line("")
    ("{a: ['1', 1, 'yes', 'x: y']}", "''")
    """
    shown = value if is_list(value) or is_mapping(value) else [value]
    text = yaml.dump(
        shown, Dumper=_Dumper, default_flow_style=True, allow_unicode=True, width=float("inf"), sort_keys=False
    )
    line = text.strip()
    return line if shown is value else line[1:-1]


def yaml_in_lines(value: Any, column: int) -> list[str] | None:
    """Return a value as the lines of a block below its key; None for what stands better behind the key."""
    if not is_mapping(value) or not value:
        return None
    return [line for name, inner in value.items() for line in member_lines(name, inner, column)]


def member_lines(key: str, value: Any, column: int) -> list[str]:
    """Return a member of a block mapping as lines; lists stand in one line, a text of several lines as it is."""
    lead, name = " " * column, yaml_in_line(key)
    if (lines := yaml_in_lines(value, column + _STEP)) is not None:
        return [f"{lead}{name}:", *lines]
    if isinstance(value, str) and _reads_as_lines(value):
        header = "|" if value.endswith("\n") else "|-"
        return [f"{lead}{name}: {header}", *(f"{lead}  {line}" if line else "" for line in value.splitlines())]
    return [f"{lead}{name}: {yaml_in_line(value)}"]


def _reads_as_lines(text: str) -> bool:
    """Return whether a text means the same as a block scalar."""
    lines = text.split("\n")
    body = lines[:-1] if text.endswith("\n") else lines
    plain = all(line == line.rstrip() and line.isprintable() and line == line.lstrip("\ufeff") for line in body)
    return len(body) > 1 and plain and bool(body[0]) and bool(body[-1]) and not body[0].startswith(" ")


def as_json(value: Any, *, unit: str | None, lead: str, newline: str) -> str:
    """Return a value as JSON; ``unit`` is the indentation of one level, None for one line."""
    if unit is None or not (is_list(value) or is_mapping(value)):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline + lead)


_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LIST_END: Final[Any] = yaml.SequenceEndEvent
_MAPPING_END: Final[Any] = yaml.MappingEndEvent
_FOLDED: Final = ("|", ">")
_KEY: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenValue:
    """A value as it is written; positions count characters from 0, ``end`` is behind its last one.

    ``block`` is whether its lines say where it ends: a block mapping or list, or a block scalar. ``column`` is that of
    its first key or item. ``keys`` are those of a mapping, in the order of ``values``; ``names`` what they say.
    """

    kind: Literal["scalar", "list", "mapping", "alias"]
    start: int
    end: int
    block: bool = False
    column: int = 0
    keys: tuple[WrittenValue, ...] = ()
    names: tuple[str, ...] = ()
    values: tuple[WrittenValue, ...] = ()


def written_yaml(text: str) -> WrittenValue:
    """Return the value of a YAML text that can be read."""
    events: Iterator[Any] = cast("Iterator[Any]", yaml.parse(text, Loader=_LOADER))
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            break
    return _node(text, next(events), events)


def _node(text: str, event: Any, events: Iterator[Any]) -> WrittenValue:
    start, end = event.start_mark.index, event.end_mark.index
    if isinstance(event, yaml.AliasEvent):
        return WrittenValue(kind="alias", start=start, end=end)
    if isinstance(event, yaml.ScalarEvent):
        block = event.style in _FOLDED
        return WrittenValue(
            kind="scalar", start=start, end=_end_of_block(text, start, end) if block else end, block=block
        )
    return (
        _list(text, event, events) if isinstance(event, yaml.SequenceStartEvent) else _read_mapping(text, event, events)
    )


def _end_of_block(text: str, start: int, end: int) -> int:
    """Return where the last line of a block scalar ends; empty lines behind it are its own where it keeps them."""
    header = text[start : _line_end(text, start)].partition("#")[0]
    if "+" in header:
        return end - 1 if text[:end].endswith("\n") else end
    return start + len(text[start:end].rstrip())


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found


def _list(text: str, start: Any, events: Iterator[Any]) -> WrittenValue:
    items: list[WrittenValue] = []
    while not isinstance(event := next(events), _LIST_END):
        items.append(_node(text, event, events))
    block = not start.flow_style
    end = items[-1].end if block and items else event.end_mark.index
    column = _column_of_dash(text, items[0].start) if block and items else 0
    return WrittenValue(
        kind="list", start=start.start_mark.index, end=end, block=block, column=column, values=tuple(items)
    )


def _column_of_dash(text: str, at: int) -> int:
    """Return the column of the dash in front of an item."""
    begin = text.rfind("\n", 0, text.rfind("-", 0, at)) + 1
    return text.rfind("-", 0, at) - begin


def _read_mapping(text: str, start: Any, events: Iterator[Any]) -> WrittenValue:
    keys: list[WrittenValue] = []
    names: list[str] = []
    values: list[WrittenValue] = []
    column: int | None = None
    while not isinstance(event := next(events), _MAPPING_END):
        column = event.start_mark.column if column is None else column
        keys.append(_node(text, event, events))
        names.append(str(getattr(event, "value", "")))
        values.append(_node(text, next(events), events))
    block = not start.flow_style
    return WrittenValue(
        kind="mapping",
        start=start.start_mark.index,
        end=values[-1].end if block and values else event.end_mark.index,
        block=block,
        column=column or 0,
        keys=tuple(keys),
        names=tuple(names),
        values=tuple(values),
    )


def written_json(text: str, document: Document) -> WrittenValue:
    """Return the value of a JSON text."""
    return _written_value_of_json(JsonText(text, document), document.root)


def _written_value_of_json(text: JsonText, node: Node) -> WrittenValue:
    start, end = text.span(node)
    values = tuple(_written_value_of_json(text, child) for child in node.children.values())
    if is_mapping(node.value):
        names = tuple(str(name) for name in node.children)
        keys = tuple(_json_key(text, text.at(*node.keys[name])) for name in names)
        return WrittenValue(kind="mapping", start=start, end=end, keys=keys, names=names, values=values)
    return WrittenValue(kind="list" if is_list(node.value) else "scalar", start=start, end=end, values=values)


def _json_key(text: JsonText, start: int) -> WrittenValue:
    found = _KEY.match(text.text, start)
    return WrittenValue(kind="scalar", start=start, end=found.end() if found else start)
