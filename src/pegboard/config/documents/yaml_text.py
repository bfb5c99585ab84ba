"""Read YAML with the place of everything; no value is taken for something else than what was written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import yaml

from pegboard.config.documents.document import (
    DEEPEST,
    MOST_VALUES,
    Document,
    Node,
    UnreadableError,
    YamlWord,
    duplicate_key,
    fault,
    is_list,
    is_mapping,
    mapping_node,
    sequence,
)
from pegboard.config.problem_codes import ProblemCode
from pegboard.problems import Problem

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG: Final = "tag:yaml.org,2002:"
_TYPED: Final = frozenset({f"{_TAG}{kind}" for kind in ("null", "bool", "int", "float")})
_PLAIN: Final = frozenset({f"{_TAG}{kind}" for kind in ("str", "seq", "map")})
_CONSTANTS: Final[Mapping[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_WORDS: Final = frozenset(form for word in ("yes", "no", "on", "off") for form in (word, word.title(), word.upper()))
_NUMERIC: Final = frozenset("-+.0123456789")
_INT: Final = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]*|[1-9][0-9_]*)")
_FLOAT: Final = re.compile(r"(?:[-+]?[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


def compose(text: str, file: str) -> Document:
    """Return what a YAML text says.

    Raises :class:`UnreadableError` at the first thing that cannot be read. Duplicate keys do not
    stop the reading; the first one counts.
    """
    reader = _YamlReader(text, file)
    try:
        root = reader.document()
    except yaml.MarkedYAMLError as error:
        raise _syntax(error, file) from None
    except yaml.YAMLError as error:
        message = str(error).partition("\n")[0]
        raise fault(file, "syntax", f"is not valid YAML: {message}.", at=_position(error, text)) from None
    if not is_mapping(root.value):
        message = f"expected a mapping of sections, found {'a list' if is_list(root.value) else 'a single value'}."
        hint = "Begin with a section such as `agents:`."
        raise fault(file, "not_mapping", message, hint=hint, at=(root.line, root.column))
    return Document(file=file, root=root, problems=tuple(reader.problems))


def _syntax(error: yaml.MarkedYAMLError, file: str) -> UnreadableError:
    mark = error.problem_mark or error.context_mark
    at = (mark.line + 1, mark.column + 1) if mark is not None else None
    while_ = f" {error.context}" if error.context else ""
    problem = error.problem or "it cannot be read"
    hint = "Indent with spaces, not with tabs." if "'\\t'" in problem or "tab" in problem else ""
    return fault(file, "syntax", f"is not valid YAML: {problem}{while_}.", hint=hint, at=at)


def _position(error: yaml.YAMLError, text: str) -> tuple[int, int] | None:
    offset = getattr(error, "position", None)
    if not isinstance(offset, int):
        return None
    before = text.encode()[:offset].decode(errors="replace")
    return before.count("\n") + 1, len(before) - before.rfind("\n")


class _YamlReader:
    """The reader of one text: from events to nodes."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self._events: Iterator[Any] = cast("Iterator[Any]", yaml.parse(text, Loader=_LOADER))
        self._anchors: dict[str, Node | None] = {}

    def document(self) -> Node:
        """Return the node of the only document."""
        root: Node | None = None
        for event in self._events:
            if not isinstance(event, yaml.DocumentStartEvent):
                continue
            if root is not None:
                hint = "Put everything into one, without a second `---`."
                raise self._fault("several_documents", "contains several YAML documents.", event, hint=hint)
            root = self._node(next(self._events), 0)
        if root is None or root.value is None:
            hint = "`pegboard init` writes a configuration to start from."
            raise fault(self.file, "file_empty", "is empty.", hint=hint)
        return root

    def _fault(self, code: ProblemCode, message: str, event: Any, *, hint: str = "") -> UnreadableError:
        return fault(self.file, code, message, hint=hint, at=_spot(event))

    def _node(self, event: Any, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if depth > DEEPEST:
            raise self._fault("too_deep", f"is nested more than {DEEPEST} levels deep.", event)
        anchor = event.anchor
        if anchor is not None:
            self._anchors[anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            node = Node(self._scalar(event), *_spot(event))
        else:
            tag = event.tag
            if tag is not None and tag not in _PLAIN:
                raise self._fault("bad_tag", f"the tag '{tag}' is not supported.", event)
            is_list = isinstance(event, yaml.SequenceStartEvent)
            node = self._sequence(event, depth) if is_list else self._read_mapping(event, depth)
            if node.size > MOST_VALUES:
                raise self._fault("too_large", f"expands to more than {MOST_VALUES} values.", event)
        if anchor is not None:
            self._anchors[anchor] = node
        return node

    def _alias(self, event: Any) -> Node:
        if event.anchor not in self._anchors:
            raise self._fault("bad_alias", f"the anchor '&{event.anchor}' is not defined above.", event)
        node = self._anchors[event.anchor]
        if node is None:
            raise self._fault("cyclic_alias", f"the alias '*{event.anchor}' is inside the value that it names.", event)
        return node

    def _scalar(self, event: Any) -> Any:
        tag, text = event.tag, event.value
        if tag is not None and tag not in _TYPED:
            if tag not in _PLAIN and tag != "!":
                raise self._fault("bad_tag", f"the tag '{tag}' is not supported.", event)
            return text
        return plain_value(text) if tag is not None or event.implicit[0] else text

    def _sequence(self, start: Any, depth: int) -> Node:
        nodes: list[Node] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            nodes.append(self._node(event, depth + 1))
        return sequence(nodes, _spot(start))

    def _read_mapping(self, start: Any, depth: int) -> Node:
        children: dict[str, Node] = {}
        keys: dict[str, tuple[int, int]] = {}
        merged: list[Node] = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent) or (event.value == "" and event.implicit[0]):
                raise self._fault("bad_key", "expected a name as key.", event, hint="Quote it if it is one.")
            key, spot = str(event.value), _spot(event)
            if event.anchor is not None:
                self._anchors[event.anchor] = Node(key, *spot)
            node = self._node(next(self._events), depth + 1)
            if key == "<<" and event.implicit[0]:
                merged += self._merged_nodes(node, event)
            elif key in keys:
                self.problems.append(duplicate_key(self.file, key, spot, keys[key]))
            else:
                children[key], keys[key] = node, spot
        for other in merged:
            for key, node in other.children.items():
                if key not in keys:
                    children[key], keys[key] = node, other.keys[key]
        return mapping_node(children, keys, _spot(start))

    def _merged_nodes(self, node: Node, event: Any) -> list[Node]:
        many = list(node.children.values()) if is_list(node.value) else [node]
        if not all(is_mapping(one.value) for one in many):
            raise self._fault("bad_key", "`<<` takes a mapping, or a list of mappings.", event)
        return many


def _spot(event: Any) -> tuple[int, int]:
    mark = event.start_mark
    return mark.line + 1, mark.column + 1


def plain_value(text: str) -> Any:
    """Return what unquoted text stands for; dates and clock times stay text.

    >>> [plain_value(text) for text in ("5", "1_000", "0x10", "1.5", "12:30", "~")]
    [5, 1000, 16, 1.5, '12:30', None]
    >>> plain_value("no"), type(plain_value("no")).__name__
    ('no', 'YamlWord')
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text in _WORDS:
        return YamlWord(text)
    if text[0] not in _NUMERIC:
        return text
    try:
        if _INT.fullmatch(text):
            return _integer(text.replace("_", ""))
        if _FLOAT.fullmatch(text) or _NOT_FINITE.fullmatch(text):
            return float(text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        return text
    return text


def _integer(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-").lower()
    if digits.startswith("0") and digits.isdigit() and len(digits) > 1:
        return sign * int(digits, 8)
    return sign * int(digits, 0)
