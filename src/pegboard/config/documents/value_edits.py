"""Change or add one value in a text in YAML or JSON, and leave every other character as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

from pegboard.config.documents import json_text, yaml_text
from pegboard.config.documents.document import Document, Node, UnreadableError, is_list, is_mapping
from pegboard.config.documents.written import (
    WrittenValue,
    as_json,
    member_lines,
    written_json,
    written_yaml,
    yaml_in_line,
    yaml_in_lines,
)
from pegboard.errors import ConfigError

Path = Sequence[str]
_Edit = tuple[int, int, str]
_COLON: Final = re.compile(r"[ \t]*:")
_STEP: Final = 2
_IN_LINE: Final = 80
"""How many characters of a mapping stand where another one stood in a line."""
_JSON: Final = (".json", ".jsonc")


def with_value(text: str, path: Path, value: Any, *, file: str) -> str:
    """Return the text with a value at a path of keys: what leads there is made, what is there is replaced.

    Of a mapping or list that is there only the lines of what differs in it change.

    Raises:
        ConfigError: it cannot be written without changing something else.
    """
    document = _read_document(text, file)
    expected: dict[str, Any] = _copy_value(document.value)
    owner = expected
    for key in path[:-1]:
        inner = owner.get(key)
        if inner is not None and not is_mapping(inner):
            raise not_rewritable_error(file)
        if inner is None:
            inner = owner[key] = {}
        owner = inner
    owner[path[-1]] = _copy_value(value)
    return _rewritten(text, document, expected, file)


def with_items(text: str, path: Path, items: Sequence[str], *, file: str) -> str:
    """Return the text with items at the end of a list, which is made where there is none.

    Raises:
        ConfigError: it cannot be written without changing something else.
    """
    before = value_at(text, path, file=file)
    if before is not None and not is_list(before):
        raise not_rewritable_error(file)
    return with_value(text, path, [*(before or ()), *items], file=file)


def with_member(text: str, path: Path, key: str, value: Mapping[str, Any], *, file: str) -> str:
    """Return the text with a member at the end of a mapping, which is made where there is none.

    Raises:
        ConfigError: it cannot be written without changing something else.
    """
    owner = value_at(text, path, file=file)
    if (owner is not None and not is_mapping(owner)) or key in (owner or ()):
        raise not_rewritable_error(file)
    return with_value(text, (*path, key), dict(value), file=file)


def without_value(text: str, path: Path, *, file: str) -> str:
    """Return the text without the key at the end of a path, and without its lines; the same where it is not there.

    Raises:
        ConfigError: it cannot be removed without changing something else.
    """
    document = _read_document(text, file)
    expected: dict[str, Any] = _copy_value(document.value)
    owner: Any = expected
    for key in path[:-1]:
        owner = owner.get(key) if is_mapping(owner) else None
    if not is_mapping(owner) or path[-1] not in owner:
        return text
    del owner[path[-1]]
    return _rewritten(text, document, expected, file)


def value_at(text: str, path: Path, *, file: str) -> Any:
    """Return what is at a path of keys, None where there is nothing; raises ``ConfigError`` for what cannot be read."""
    value: Any = _read_document(text, file).value
    for key in path:
        value = value.get(key) if is_mapping(value) else None
    return value


def not_rewritable_error(file: str) -> ConfigError:
    """Return the error that a file cannot be changed in this place without changing another."""
    return ConfigError(
        f"{file} cannot be edited without changing something else, so it was not changed.",
        code="not_rewritable",
        hint="Write each list and mapping once, without anchors and merges.",
    )


def is_json(file: str) -> bool:
    """Return whether a file is JSON by its name."""
    return file.lower().endswith(_JSON)


def _read_document(text: str, file: str) -> Document:
    try:
        document = json_text.compose(text, file) if is_json(file) else yaml_text.compose(text, file)
    except UnreadableError as error:
        found = error.problem
        raise ConfigError(found.message, code=found.code, hint=found.hint, location=found.place) from None
    if document.problems:
        raise not_rewritable_error(file)
    return document


def _copy_value(value: Any) -> Any:
    """Return a value in which nothing is shared: an alias counts as written out."""
    if is_mapping(value):
        return {key: _copy_value(inner) for key, inner in value.items()}
    return [_copy_value(inner) for inner in value] if is_list(value) else value


def _rewritten(text: str, document: Document, expected: dict[str, Any], file: str) -> str:
    """Return the text that says what is expected; raises ``ConfigError`` where no edit of these lines alone does."""
    if is_written_alike(document.value, expected):
        return text
    as_json = is_json(file)
    tree = written_json(text, document) if as_json else written_yaml(text)
    writer = _EditedJson(text) if as_json else _EditedYaml(text)
    try:
        edits = writer.edits_inside(tree, document.root, expected)
    except _NotEditableError:
        raise not_rewritable_error(file) from None
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    try:
        found = _read_document(text, file)
    except ConfigError:
        raise not_rewritable_error(file) from None
    if not is_written_alike(found.value, expected):
        raise not_rewritable_error(file)
    return text


def is_written_alike(one: Any, other: Any) -> bool:
    """Return whether two values are written alike: `1`, `1.0` and `true` are three."""
    if is_mapping(one) and is_mapping(other):
        return one.keys() == other.keys() and all(is_written_alike(value, other[key]) for key, value in one.items())
    if is_list(one) and is_list(other):
        return len(one) == len(other) and all(map(is_written_alike, one, other))
    return type(one) is type(other) and repr(one) == repr(other)


class _NotEditableError(Exception):
    """The value cannot be changed from the inside: it has to be replaced whole."""


class _EditedText:
    """A text with values in it; each method returns the edits of a change, none of which reaches into another."""

    def __init__(self, text: str) -> None:
        self.text = text

    def edits_inside(self, at: WrittenValue, node: Node, new: Any) -> list[_Edit]:
        """Return what makes a mapping or list a different one, entry by entry."""
        if at.kind == "mapping" and is_mapping(new) and new and at.values:
            return self._edits_of_mapping(at, node, new)
        if at.kind == "list" and is_list(new) and new and at.values:
            return self._list(at, node, new)
        raise _NotEditableError

    # -- mappings ------------------------------------------------------------------------------

    def _edits_of_mapping(self, at: WrittenValue, node: Node, new: Mapping[str, Any]) -> list[_Edit]:
        gone = [index for index, name in enumerate(at.names) if name not in new and name != "<<"]
        if any(name not in new and name not in at.names for name in node.value):
            raise _NotEditableError  # it comes of a merge
        edits = [edit for first, last in _runs(gone) for edit in self._edits_to_remove(at, at.keys, first, last)]
        for index, name in enumerate(at.names):
            if name in new and not is_written_alike(node.value[name], new[name]):
                edits += self._edits_of_value(at, index, node.children[name], new[name])
        own = {name for name in at.names if name != "<<"}
        added = {
            name: value
            for name, value in new.items()
            if name not in own and not (name in node.value and is_written_alike(node.value[name], value))
        }
        if added and not at.block and gone and gone[-1] == len(at.values) - 1:
            raise _NotEditableError
        return [*edits, *self._edits_to_add(at, added)] if added else edits

    def _edits_of_value(self, at: WrittenValue, index: int, node: Node, new: Any) -> list[_Edit]:
        try:
            return self.edits_inside(at.values[index], node, new)
        except _NotEditableError:
            value = at.values[index]
            alike = (value.kind == "mapping" and is_mapping(new)) or (value.kind == "list" and is_list(new))
            if value.block and alike and new:
                raise  # there may be comments in it
            return [self.edit_of_value(at, index, new)]

    def _edits_to_add(self, at: WrittenValue, members: Mapping[str, Any]) -> list[_Edit]:
        if at.block:
            lines = [line for name, value in members.items() for line in member_lines(name, value, at.column)]
            top = at.start == at.keys[0].start and at.column == 0
            return [self._lines(self._next_line(at.end), ["", *lines] if top else lines)]
        return self._edits_in_flow(at, [self.member(name, value, at) for name, value in members.items()])

    # -- lists ---------------------------------------------------------------------------------

    def _list(self, at: WrittenValue, node: Node, new: Sequence[Any]) -> list[_Edit]:
        old = [repr(value) for value in node.value]
        steps = SequenceMatcher(None, old, [repr(value) for value in new], autojunk=False).get_opcodes()
        edits: list[_Edit] = []
        for kind, first, end, begin, finish in steps:
            if kind == "equal":
                continue
            both = min(end - first, finish - begin)
            for offset in range(both):
                edits += self._item(at, first + offset, node.children[first + offset], new[begin + offset])
            if first + both < end:
                edits += self._edits_to_remove(at, at.values, first + both, end - 1)
            if begin + both < finish:
                edits += self._edits_to_insert(at, first + both, new[begin + both : finish])
        return edits

    def _item(self, at: WrittenValue, index: int, node: Node, new: Any) -> list[_Edit]:
        item = at.values[index]
        try:
            return self.edits_inside(item, node, new)
        except _NotEditableError:
            end = self._line_end(item.end) if item.block else item.end
            space = " " if item.start == item.end else ""
            return [(item.start, end, space + self.value(new, item))]

    def _edits_to_insert(self, at: WrittenValue, index: int, new: Sequence[Any]) -> list[_Edit]:
        if at.block:
            lines = [f"{' ' * at.column}- {self.value(value, at)}" for value in new]
            if index == len(at.values):
                return [self._lines(self._next_line(at.values[-1].end), lines)]
            return [self._lines(self._item_line(at, index), lines)]
        texts = [self.value(value, at) for value in new]
        if index == len(at.values):
            return self._edits_in_flow(at, texts)
        start = at.values[index].start
        return [(start, start, "".join(f"{text}, " for text in texts))]

    def _item_line(self, at: WrittenValue, index: int) -> int:
        """Return where the line of an item of a block list begins; the first may stand behind something else."""
        dash = self.text.rfind("-", 0, at.values[index].start)
        return self._start_of_line(dash)

    # -- both ----------------------------------------------------------------------------------

    def _edits_to_remove(self, at: WrittenValue, heads: Sequence[WrittenValue], first: int, last: int) -> list[_Edit]:
        """Return what takes some entries out that follow each other."""
        if at.block:
            begins = self._start_of_line(heads[first].start) if at.kind == "mapping" else self._item_line(at, first)
            return [(begins, self._next_line(at.values[last].end), "")]
        if last + 1 < len(at.values):
            return [(heads[first].start, heads[last + 1].start, "")]
        start = at.values[first - 1].end if first else heads[first].start
        return [(start, at.values[last].end, "")]

    def _edits_in_flow(self, at: WrittenValue, texts: Sequence[str]) -> list[_Edit]:
        """Return what adds entries to the end of a collection in brackets, on lines of their own where others are."""
        closing = at.end - 1
        if not at.values:
            return [(at.start + 1, closing, self.join_in_brackets(texts, at))]
        end = at.values[-1].end
        head = (at.keys or at.values)[-1]
        lead = self._indentation_at(head.start)
        spaces = re.compile(r"[ \t]*").match(self.text, end)
        comma = self.text[spaces.end() : spaces.end() + 1] == "," if spaces else False
        after = spaces.end() + 1 if comma and spaces else end
        line_end = self._line_end(after)
        if lead is None or closing <= line_end:
            return [(end, end, f", {', '.join(texts)}")]
        newline = self._newline(line_end)
        joined = f",{newline}{lead}".join(texts) + ("," if comma else "")
        added = line_end, line_end, newline + lead + joined
        if comma:
            return [added]
        return [(end, end, f",{added[2]}")] if end == line_end else [(end, end, ","), added]

    def edit_of_value(self, at: WrittenValue, index: int, new: Any) -> _Edit:
        """Return what puts a value in the place of one of a mapping."""
        value = at.values[index]
        if not at.block:
            return value.start, value.end, self.value(new, value)
        colon = _COLON.match(self.text, at.keys[index].end)
        if colon is None:
            raise _NotEditableError
        after, first_end = colon.end(), self._line_end(colon.end())
        lines = yaml_in_lines(
            new, (value.column if value.block and value.keys else 0) or self._column(at, index) + _STEP
        )
        newline = self._newline(first_end)
        below = "".join(f"{newline}{line}" for line in lines or ())
        if value.block:
            beside = self.text[after:first_end].rstrip("\r") if value.start > first_end else ""
            end = self._line_end(value.end)
            return after, end, beside + below if lines else f" {self.value(new, value)}{beside}"
        space = " " if value.start == value.end else ""
        beside = self.text[value.end : self._line_end(value.end)].strip()
        if lines and not beside and (space or len(self.value(new, value)) > _IN_LINE):
            return after, self._line_end(value.end), below
        return (after if space else value.start), value.end if not space else after, space + self.value(new, value)

    def _column(self, at: WrittenValue, index: int) -> int:
        return at.column if index else at.keys[0].start - self._line_start(at.keys[0].start)

    def value(self, value: Any, at: WrittenValue) -> str:  # noqa: ARG002
        """Return a value for a place in a line."""
        return yaml_in_line(value)

    def member(self, name: str, value: Any, at: WrittenValue) -> str:  # noqa: ARG002
        """Return a member of a mapping in brackets."""
        return yaml_in_line({name: value})[1:-1]

    def join_in_brackets(self, texts: Sequence[str], at: WrittenValue) -> str:  # noqa: ARG002
        """Return what is in brackets that were empty."""
        return ", ".join(texts)

    # -- lines ---------------------------------------------------------------------------------

    def _line_start(self, at: int) -> int:
        return self.text.rfind("\n", 0, at) + 1

    def _line_end(self, at: int) -> int:
        """Return where the line of a position ends, in front of its line break."""
        found = self.text.find("\n", at)
        end = len(self.text) if found < 0 else found
        return end - 1 if at < end and self.text[end - 1] == "\r" else end

    def _next_line(self, at: int) -> int:
        found = self.text.find("\n", at)
        return len(self.text) if found < 0 else found + 1

    def _start_of_line(self, at: int) -> int:
        """Return where the line of what is first on it begins."""
        start = self._line_start(at)
        if self.text[start:at].strip():
            raise _NotEditableError
        return start

    def _indentation_at(self, at: int) -> str | None:
        """Return the white space in front of what is first on its line, else None."""
        lead = self.text[self._line_start(at) : at]
        return None if lead.strip() else lead

    def _newline(self, at: int) -> str:
        """Return how the line of a position ends; the last one as the line in front of it."""
        found = self.text.find("\n", at)
        found = self.text.rfind("\n") if found < 0 else found
        return "\r\n" if found > 0 and self.text[found - 1] == "\r" else "\n"

    def _lines(self, at: int, lines: Sequence[str]) -> _Edit:
        """Return what puts lines in front of a line."""
        newline = self._newline(max(0, at - 1))
        open_end = at > 0 and self.text[at - 1] != "\n"
        return at, at, (newline if open_end else "") + "".join(line + newline for line in lines)


class _EditedYaml(_EditedText):
    """A text in YAML."""


class _EditedJson(_EditedText):
    """A text in JSON: entries stand on lines of their own where the text has several."""

    def value(self, value: Any, at: WrittenValue) -> str:
        """Return a value for the place of another."""
        return self._render_value(value, at.start)

    def member(self, name: str, value: Any, at: WrittenValue) -> str:
        """Return a member of an object."""
        head = at.keys[-1].start if at.keys else at.start
        lead = None if at.keys else self._indent(at.start) + (self._unit() or "")
        return f"{as_json(name, unit=None, lead='', newline='')}: {self._render_value(value, head, lead)}"

    def join_in_brackets(self, texts: Sequence[str], at: WrittenValue) -> str:
        """Return what is in brackets that were empty."""
        unit, lead = self._unit(), self._indent(at.start)
        if unit is None:
            return ", ".join(texts)
        newline = "\r\n" if "\r\n" in self.text else "\n"
        return newline + f",{newline}".join(f"{lead}{unit}{text}" for text in texts) + newline + lead

    def _render_value(self, value: Any, at: int, lead: str | None = None) -> str:
        newline = "\r\n" if "\r\n" in self.text else "\n"
        return as_json(value, unit=self._unit(), lead=self._indent(at) if lead is None else lead, newline=newline)

    def _unit(self) -> str | None:
        """Return the indentation of one level, None where the text has one line."""
        if "\n" not in self.text.strip():
            return None
        found = re.search(r"\n([ \t]+)\S", self.text)
        return found[1] if found else "  "

    def _indent(self, at: int) -> str:
        line = self.text[self._line_start(at) : at]
        return line[: len(line) - len(line.lstrip(" \t"))]


def _runs(indexes: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and last of numbers that follow each other.

    >>> _runs([1, 2, 5])
    [(1, 2), (5, 5)]
    """
    found: list[tuple[int, int]] = []
    for index in indexes:
        if found and found[-1][1] == index - 1:
            found[-1] = found[-1][0], index
        else:
            found.append((index, index))
    return found
