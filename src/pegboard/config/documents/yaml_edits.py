"""Add to lists and mappings of a YAML text, and leave every other character as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import yaml

from pegboard.config.documents.document import UnreadableError, is_list, is_mapping
from pegboard.config.documents.yaml_text import compose
from pegboard.errors import ConfigError

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STEP: Final = 2
_FOLDED: Final = ("|", ">")

Path = Sequence[str]


def with_items(text: str, path: Path, items: Sequence[str], *, file: str) -> str:
    """Return the text with items at the end of a list, which is made where there is none.

    Args:
        text: a configuration.
        path: the keys that lead to the list.
        items: plain texts.
        file: its name, for the error.

    Raises:
        ConfigError: it cannot be written without changing something else.
    """
    expected = _value(text, file)
    owner = _owner(expected, path)
    before: Any = owner.get(path[-1])
    owner[path[-1]] = [*(before or ()), *items]
    node = node_at(text, path)
    if node is None or _is_null(node):
        after = with_new_member(text, path[:-1], path[-1], list(items))
    elif isinstance(node, yaml.SequenceNode):
        after = _appended(text, node, [inline(item) for item in items])
    else:
        raise not_rewritable(file)
    return _checked(after, expected, file)


def with_member(text: str, path: Path, key: str, value: Mapping[str, Any], *, file: str) -> str:
    """Return the text with a member at the end of a mapping, which is made where there is none.

    Args:
        text: a configuration.
        path: the keys that lead to the mapping.
        key: the name of the member, which is not there yet.
        value: texts, and lists of texts, by their names.
        file: its name, for the error.

    Raises:
        ConfigError: it cannot be written without changing something else.
    """
    expected = _value(text, file)
    owner = _owner(expected, (*path, key))
    if key in owner:
        raise not_rewritable(file)
    owner[key] = dict(value)
    return _checked(with_new_member(text, path, key, value), expected, file)


def not_rewritable(file: str) -> ConfigError:
    """Return the error that a file cannot be changed in this place without changing another."""
    return ConfigError(
        f"{file} cannot be rewritten without changing something else, and is left as it is.",
        code="not_rewritable",
        hint="Write each list and mapping once, without anchors and merges.",
    )


# -- what is expected ------------------------------------------------------------------------------


def _value(text: str, file: str) -> dict[str, Any]:
    return _copied(compose(text, file).value)


def _copied(value: Any) -> Any:
    """Return a value in which nothing is shared: an alias counts as written out."""
    if is_mapping(value):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if is_list(value) else value


def _owner(value: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the mapping that has the last key of a path, made where there is none."""
    for key in path[:-1]:
        inner = value.get(key)
        if not is_mapping(inner):
            inner = value[key] = {}
        value = inner
    return value


def _checked(text: str, expected: dict[str, Any], file: str) -> str:
    try:
        found = compose(text, file)
    except UnreadableError:
        raise not_rewritable(file) from None
    if found.value != expected or found.problems:
        raise not_rewritable(file)
    return text


# -- where it stands -------------------------------------------------------------------------------


def node_at(text: str, path: Path) -> yaml.Node | None:
    """Return what stands at a path of a text, or None."""
    node: yaml.Node | None = yaml.compose(text, Loader=_LOADER)
    for part in path:
        node = _child(node, part)
    return node


def _child(node: yaml.Node | None, key: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    pairs = cast("list[tuple[yaml.Node, yaml.Node]]", node.value)
    return next((value for name, value in pairs if name.value == key), None)


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [value for _, value in cast("list[tuple[yaml.Node, yaml.Node]]", node.value)]
    return cast("list[yaml.Node]", node.value) if isinstance(node, yaml.SequenceNode) else []


def end_of_block(text: str, node: yaml.Node) -> int:
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


def _end_in_flow(text: str, node: yaml.Node) -> tuple[int, str]:
    """Return where to add to a flow collection, and what separates it from what is there."""
    children = _children(node)
    closing = node.end_mark.index - 1
    if not children:
        return closing, ""
    if children[-1].start_mark.index > node.start_mark.index:
        return children[-1].end_mark.index, ", "
    return len(text[:closing].rstrip()), ", "


# -- writing ---------------------------------------------------------------------------------------


def _appended(text: str, node: yaml.SequenceNode, items: list[str]) -> str:
    if node.flow_style:
        at, separator = _end_in_flow(text, node)
        return text[:at] + separator + ", ".join(items) + text[at:]
    lead = " " * node.start_mark.column
    return _with_lines(text, end_of_block(text, node), [f"{lead}- {item}" for item in items])


def with_new_member(text: str, path: Path, key: str, value: Any) -> str:
    """Return the text with a member at the end of a mapping, unchecked."""
    node = node_at(text, path)
    if node is None:
        return with_new_member(text, path[:-1], path[-1], {key: value})
    if _is_null(node):
        start, end = node.start_mark.index, node.end_mark.index
        space = "" if start < end else " "
        return f"{text[:start]}{space}{inline({key: value})}{text[end:]}"
    if not isinstance(node, yaml.MappingNode):
        return text
    if node.flow_style:
        at, separator = _end_in_flow(text, node)
        return text[:at] + separator + inline({key: value})[1:-1] + text[at:]
    first = cast("list[tuple[yaml.Node, yaml.Node]]", node.value)[0][0]
    lines = member_lines(key, value, first.start_mark.column)
    return _with_lines(text, end_of_block(text, node), lines if path else ["", *lines])


def _with_lines(text: str, at: int, lines: list[str]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    before = text[:at]
    if before and not before.endswith("\n"):
        before += newline
    return before + "".join(line + newline for line in lines) + text[at:]


def member_lines(key: str, value: Any, column: int) -> list[str]:
    """Return a member in lines; lists stand in one line."""
    lead = " " * column
    if not is_mapping(value) or not value:
        return [f"{lead}{inline(key)}: {inline(value)}"]
    inner = [line for name, part in value.items() for line in member_lines(name, part, column + _STEP)]
    return [f"{lead}{inline(key)}:", *inner]


def inline(value: Any) -> str:
    """Return a value in one line, quoted where it would mean something else."""
    shown = value if is_list(value) or is_mapping(value) else [value]
    text = yaml.safe_dump(shown, default_flow_style=True, allow_unicode=True, width=float("inf"), sort_keys=False)
    line = text.strip()
    return line if shown is value else line[1:-1]
