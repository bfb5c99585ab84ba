"""Edits of single values: what is meant changes, and no character outside of the lines of its key."""

import json
import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.config.documents import json_text, yaml_text
from pegboard.config.documents.value_edits import is_written_alike, with_value, without_value
from pegboard.errors import ConfigError

Path = tuple[str, ...]
KEYS = ("a", "b", "a b", "1", "true", "key", "a.b", "é", "#x", "no")
SCALARS: tuple[Any, ...] = (
    None, True, 0, 12, 1.5, "", "plain", "a: b", "with # no comment", "tab\there", "yes", "12", "${NAME}", "é 漢", "*",
    "two\nlines\n", "- dash", "'", '"', "0o17", "1_000",
)  # fmt: skip


@dataclass
class File:
    """A file that is written at random; ``spans`` are the first and the last line of each key."""

    dice: random.Random
    comments: bool = True
    lines: list[str] = field(default_factory=list[str])
    spans: dict[Path, tuple[int, int]] = field(default_factory=dict[Path, tuple[int, int]])
    anchors: dict[str, Any] = field(default_factory=dict[str, Any])

    def tree(self, depth: int) -> Any:
        """Return a value."""
        kind = self.dice.choice(("scalar", "scalar", "list", "mapping")) if depth else "scalar"
        if kind == "scalar":
            return self.dice.choice(SCALARS)
        if kind == "list":
            return [self.tree(0) for _ in range(self.dice.randrange(4))]
        return {name: self.tree(depth - 1) for name in self.dice.sample(KEYS, self.dice.randrange(4))}

    def note(self) -> str:
        """Return a comment behind a line, or nothing."""
        return self.dice.choice(("", "", "  # it's: [noted]", " #")) if self.comments else ""

    def mapping(self, value: dict[str, Any], lead: str, path: Path) -> None:
        """Write the lines of a block mapping."""
        for name, inner in value.items():
            if self.comments and self.dice.random() < 0.2:
                self.lines += self.dice.choice(([""], [f"{lead}# {name}: commented"], ["# at the margin", ""]))
            first = len(self.lines)
            self.member(f"{lead}{quoted(name)}:", inner, lead, (*path, name))
            self.spans[(*path, name)] = first, len(self.lines) - 1

    def member(self, head: str, value: Any, lead: str, path: Path) -> None:
        """Write a key and its value in one of the ways in which that is possible."""
        if self.dice.random() < 0.15:
            name = f"n{len(self.anchors)}"
            self.anchors[name] = value
            head += f" &{name}"
        inner = lead + " " * self.dice.choice((2, 2, 4))
        if isinstance(value, dict) and value and self.dice.random() < 0.7:
            self.lines.append(head + self.note())
            self.mapping(value, inner, path)
        elif isinstance(value, list) and value and self.dice.random() < 0.5:
            self.lines.append(head + self.note())
            at = self.dice.choice((lead, inner))
            self.lines += [f"{at}- {flow(item)}{self.note()}" for item in value]
        elif isinstance(value, str) and "\n" in value:
            self.lines += [f"{head} |", *(f"{inner}{line}" for line in value.splitlines())]
        elif isinstance(value, list | dict) and value and self.dice.random() < 0.3:
            self.lines += [f"{head} {self.broken(value, inner)[0]}", *self.broken(value, inner)[1:]]
        elif value is None and self.dice.random() < 0.5:
            self.lines.append(head + self.note())
        else:
            self.lines.append(f"{head} {flow(value)}{self.note()}")

    def broken(self, value: Any, lead: str) -> list[str]:
        """Return a collection in brackets over several lines."""
        parts = (
            [flow(part) for part in value]
            if isinstance(value, list)
            else [flow({k: v})[1:-1] for k, v in value.items()]
        )
        opening, closing = "[]" if isinstance(value, list) else "{}"
        return [opening, *(f"{lead}{part}," for part in parts[:-1]), f"{lead}{parts[-1]}", f"{lead}{closing}"]


def quoted(name: str) -> str:
    return name if name in ("a", "b", "key", "a.b", "é", "a b") else json.dumps(name, ensure_ascii=False)


def flow(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def paths(value: Any, path: Path = ()) -> list[Path]:
    own = [path] if path else []
    return own + (
        [found for name, inner in value.items() for found in paths(inner, (*path, name))]
        if isinstance(value, dict)
        else []
    )


def at(value: Any, path: Path) -> Any:
    for name in path:
        value = value[name]
    return value


def changed(value: Any, path: Path, new: Any, *, gone: bool = False) -> Any:
    name, *rest = path
    found = dict(value)
    if rest:
        found[name] = changed(found.get(name) or {}, tuple(rest), new, gone=gone)
    elif gone:
        del found[name]
    else:
        found[name] = new
    return found


def edited(text: str, path: Path, new: Any, *, gone: bool) -> str | None:
    """Return the text after the edit, None where it is refused."""
    try:
        return without_value(text, path, file="f") if gone else with_value(text, path, new, file="f")
    except ConfigError:
        return None


def outside(before: list[str], after: str, span: tuple[int, int], end: str) -> bool:
    """Return whether every line in front of a span and behind it is as it was."""
    first, last = span
    head = "".join(line + end for line in before[:first])
    tail = end.join(before[last + 1 :])
    return after.startswith(head) and after.endswith(tail)


@given(
    seed=st.integers(0, 2**32), action=st.sampled_from(("set", "remove", "add")), end=st.sampled_from(("\n", "\r\n"))
)
def test_an_edit_changes_nothing_but_the_lines_of_its_key(seed: int, action: str, end: str) -> None:
    """Comments, anchors, aliases, brackets and block scalars stay; only an anchor may be a reason to refuse."""
    dice = random.Random(seed)
    file = File(dice)
    root = {"first": 1, **{name: file.tree(3) for name in dice.sample(KEYS, dice.randrange(1, 5))}, "last": {"z": 1}}
    file.mapping(root, "", ())
    aliased = bool(file.anchors) and dice.random() < 0.5
    if aliased:
        name = dice.choice(list(file.anchors))
        root["alias"] = file.anchors[name]
        file.spans["alias",] = len(file.lines), len(file.lines)
        file.lines.append(f"alias: *{name}")
    text = end.join([*file.lines, ""])
    assert is_written_alike(yaml_text.compose(text, "f").value, root)
    path = dice.choice([path for path in paths(root) if path[0] != "alias" or path == ("alias",)])
    whole = path
    if action == "remove" and at(root, path[:-1]).keys() == {path[-1]}:
        whole = path[:-1]  # it is `{}` then
    span = next(file.spans[whole[:length]] for length in range(len(whole), 0, -1) if whole[:length] in file.spans)
    new = dice.choice((*SCALARS, ["x", {"y": 1}], {"m": {"n": "o"}, "t": "line\nline"}))
    if action == "add":
        path = (*path, "new") if isinstance(at(root, path), dict | None) else path
    after = edited(text, path, new, gone=action == "remove")
    if after is None:
        assert file.anchors
        return
    expected = changed(root, path, new, gone=action == "remove")
    assert is_written_alike(yaml_text.compose(after, "f").value, expected)
    assert outside([*file.lines, ""], after, span, end)


@pytest.mark.parametrize(
    ("before", "path", "new", "after"),
    [
        ("a: 1  # why\nb: 2\n", ("a",), 3, "a: 3  # why\nb: 2\n"),
        ("a:   'x'   # why\n", ("a",), "y z", "a:   y z   # why\n"),
        ("a: |\n  one\n  two\n# next\nb: 2\n", ("a",), "x", "a: x\n# next\nb: 2\n"),
        ("a: x\nb: 2\n", ("a",), "one\ntwo\n", 'a: "one\\ntwo\\n"\nb: 2\n'),
        ("a:\n  # 1st\n  x: 1\n  # 2nd\n  y: 2\n", ("a",), {"x": 1, "y": 3}, "a:\n  # 1st\n  x: 1\n  # 2nd\n  y: 3\n"),
        ("t:\n  - a # one\n  - b # two\n  - c\n", ("t",), ["a", "c", "d"], "t:\n  - a # one\n  - c\n  - d\n"),
        ("a: &x {k: 1}\nb: *x\n", ("b", "k"), 2, "a: &x {k: 1}\nb: {k: 2}\n"),
        ("a: &x\n  k: 1\nb:\n  <<: *x\n", ("b", "k"), 2, "a: &x\n  k: 1\nb:\n  <<: *x\n  k: 2\n"),
        ("s: {a: {}, # one\n    b: {}}\n", ("s", "b"), {"c": 1}, "s: {a: {}, # one\n    b: {c: 1}}\n"),
        ("s: {\n  a: {},\n  b: {} # two\n}\n", ("s", "c"), {}, "s: {\n  a: {},\n  b: {}, # two\n  c: {}\n}\n"),
        ("a:\n- x\nb: 1", ("a",), ["x", "y"], "a:\n- x\n- y\nb: 1"),
        ("a:\tx\t# tab\n", ("a",), "y", "a:\ty\t# tab\n"),
    ],
)  # fmt: skip
def test_the_form_of_what_is_there_stays(before: str, path: Path, new: Any, after: str) -> None:
    assert with_value(before, path, new, file="f.yaml") == after


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a: &x {k: 1}\nb: *x\n", ("a", "k")),
        ("base: &x {k: 1}\nb:\n  <<: *x\n", ("base", "k")),
        ("? a\n: 1\n", ("a",)),
        ("a: 1\na: 2\n", ("a",)),
        ("a: [", ("a",)),
    ],
)
def test_what_would_change_something_else_is_refused_whole(text: str, path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        with_value(text, path, "new", file="f.yaml")
    assert refused.value.code in {"not_rewritable", "syntax"}


def test_a_key_that_comes_of_a_merge_cannot_be_taken_out() -> None:
    with pytest.raises(ConfigError):
        without_value("base: &x {k: 1}\nb:\n  <<: *x\n  l: 1\n", ("b", "k"), file="f.yaml")


MCP = """{
  // the servers
  "mcpServers": {
    "a": {"command": "x", "args": ["1", "2"]}, // one
    "b": {
      "url": "https://example.invalid" /* two */
    }
  }
}
"""


@pytest.mark.parametrize(
    ("path", "new", "after"),
    [
        (("mcpServers", "a", "command"), "y", MCP.replace('"x"', '"y"')),
        (("mcpServers", "a", "args"), ["1", "3"], MCP.replace('"2"', '"3"')),
        (("mcpServers", "b", "type"), "http", MCP.replace(' /* two */', ', /* two */\n      "type": "http"')),
        (("mcpServers", "c"), {}, MCP.replace('    }\n  }', '    },\n    "c": {}\n  }')),
    ],
)  # fmt: skip
def test_json_keeps_its_comments(path: Path, new: Any, after: str) -> None:
    found = with_value(MCP, path, new, file="x.json")
    assert found == after
    assert json_text.compose(found, "x.json").problems == ()


def test_a_server_leaves_a_json_file_without_a_trace() -> None:
    without = without_value(MCP, ("mcpServers", "b"), file=".mcp.json")
    assert json_text.compose(without, "f").value == {"mcpServers": {"a": {"command": "x", "args": ["1", "2"]}}}
    assert "// the servers" in without
