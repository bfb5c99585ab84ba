"""Edits of other programs' files: what is meant changes, every other character stays."""

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.config.documents import json_text
from pegboard.config.documents.json_edits import JsonText
from pegboard.config.documents.toml_edits import rendered, replaced, tables, written

TEXT = st.text(alphabet='ab "\\/{}[],:#é\n', max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=4)


def edited(text: str, path: tuple[str, ...], members: dict[str, Any]) -> str:
    return JsonText(text, json_text.compose(text, "f")).with_object(path, members)


@given(
    others=OBJECTS,
    servers=st.none() | OBJECTS,
    members=OBJECTS,
    indent=st.sampled_from([None, 2, 4, "\t"]),
    after=OBJECTS,
    newline=st.sampled_from(["\n", "\r\n"]),
)
def test_an_object_is_replaced_or_added_and_the_rest_of_the_json_says_the_same(
    others: dict[str, Any],
    servers: dict[str, Any] | None,
    members: dict[str, Any],
    indent: int | str | None,
    after: dict[str, Any],
    newline: str,
) -> None:
    value = {**others, **({} if servers is None else {"servers": servers}), **after}
    if servers is not None:
        value["servers"] = servers
    text = json.dumps(value, indent=indent, ensure_ascii=False).replace("\n", newline)
    expected = {**value, "servers": members}
    assert json_text.compose(edited(text, ("servers",), members), "f").value == expected


def test_comments_and_layout_around_the_object_stay() -> None:
    text = '{\n    "a": 1, // one "servers": {\n    "servers": {"x": {}, /* y */ }, // two\n    "b": [2,],\n}\n'
    before, after = '{\n    "a": 1, // one "servers": {\n    "servers": ', ' // two\n    "b": [2,],\n}\n'
    new = '{\n        "p": {\n            "command": "c"\n        }\n    },'
    assert edited(text, ("servers",), {"p": {"command": "c"}}) == before + new + after


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{}", '{"mcp": {"servers":{"p":1}}}'),
        ('{\n  "a": 1\n}\n', '{\n  "a": 1,\n  "mcp": {\n    "servers": {\n      "p": 1\n    }\n  }\n}\n'),
        ('{\n  "a": 1, // x\n}\n', '{\n  "a": 1,\n  "mcp": {\n    "servers": {\n      "p": 1\n    }\n  }, // x\n}\n'),
        ('{"mcp": {"b": 2}}', '{"mcp": {"b": 2,"servers": {"p":1}}}'),
    ],
)
def test_what_is_missing_of_a_path_is_added(text: str, result: str) -> None:
    assert edited(text, ("mcp", "servers"), {"p": 1}) == result


TOML = """\
# head
a = "[s.x]" # not a table
b = '''
[s.y]
'''
c = [ # more
  "]", { d = "}" },
]
[s.one]
x = 1 # one

# of two
[ "s" . two ] # named oddly
[s.two.env]
K = \"\"\"v
[s.z]
\"\"\"
[[s.three]]
y = 2

# tail
[t]
z = 3
"""


def test_the_tables_of_a_toml_text_are_found_whatever_stands_in_its_values() -> None:
    assert [table.path for table in tables(TOML)] == [
        (), ("s", "one"), ("s", "two"), ("s", "two", "env"), ("s", "three"), ("t",),
    ]  # fmt: skip
    assert written(TOML, ("s", "one")) == "[s.one]\nx = 1 # one\n"


@pytest.mark.parametrize("path", [("s",), ("s", "two"), ("t",), ("new",)])
def test_tables_are_replaced_and_the_rest_of_the_toml_says_the_same(path: tuple[str, ...]) -> None:
    after = replaced(TOML, path, rendered((path[0], "p"), {"command": 'c "d"', "args": ["é"], "env": {"K k": "v"}}))
    value, expected = tomllib.loads(after), tomllib.loads(TOML)
    added = {"p": {"command": 'c "d"', "args": ["é"], "env": {"K k": "v"}}}
    if len(path) == 1:
        expected[path[0]] = added
    else:
        del expected["s"]["two"]
        expected["s"] |= added
    assert value == expected
    assert [line for line in ("# head", "# of two", "# tail") if line not in after] == []
