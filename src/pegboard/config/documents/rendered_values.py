"""Values as YAML and JSON write them, for a place in a text that is there already."""

from __future__ import annotations

import json
from typing import Any, Final

import yaml

from pegboard.config.documents.document import YamlWord, is_list, is_mapping
from pegboard.config.documents.yaml_text import resolved

_STEP: Final = 2


class _Dumper(yaml.SafeDumper):
    """The dumper of YAML that is read here: what is read as a number is quoted where it is a text."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Return that everything is written out."""
        return True


def _text(dumper: Any, value: str) -> yaml.Node:
    other = not isinstance(found := resolved(value), str) or isinstance(found, YamlWord)
    style = '"' if "\n" in value else "'" if other else None
    node: yaml.Node = dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)
    return node


def _word(dumper: Any, value: YamlWord) -> yaml.Node:
    node: yaml.Node = dumper.represent_scalar("tag:yaml.org,2002:bool", str(value))
    return node


_Dumper.add_representer(str, _text)
_Dumper.add_representer(YamlWord, _word)
_Dumper.add_multi_representer(str, _text)


def in_line(value: Any) -> str:
    """Return a value as YAML in one line, quoted where it would mean something else.

    >>> in_line({"a": ["1", 1, "yes", "x: y"]}), in_line("")
    ("{a: ['1', 1, 'yes', 'x: y']}", "''")
    """
    shown = value if is_list(value) or is_mapping(value) else [value]
    text = yaml.dump(
        shown, Dumper=_Dumper, default_flow_style=True, allow_unicode=True, width=float("inf"), sort_keys=False
    )
    line = text.strip()
    return line if shown is value else line[1:-1]


def in_lines(value: Any, column: int) -> list[str] | None:
    """Return a value as the lines of a block below its key; None for what stands better behind the key."""
    if not is_mapping(value) or not value:
        return None
    return [line for name, inner in value.items() for line in member_lines(name, inner, column)]


def member_lines(key: str, value: Any, column: int) -> list[str]:
    """Return a member of a block mapping as lines; lists stand in one line, a text of several lines as it is."""
    lead, name = " " * column, in_line(key)
    if (lines := in_lines(value, column + _STEP)) is not None:
        return [f"{lead}{name}:", *lines]
    if isinstance(value, str) and _reads_as_lines(value):
        header = "|" if value.endswith("\n") else "|-"
        return [f"{lead}{name}: {header}", *(f"{lead}  {line}" if line else "" for line in value.splitlines())]
    return [f"{lead}{name}: {in_line(value)}"]


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
