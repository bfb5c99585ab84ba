"""Edits of other programs' files: what is meant changes, every other character stays."""

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.config.documents import json_text
from pegboard.config.documents.json_edits import JsonText
from pegboard.config.documents.toml_edits import TomlText

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


@pytest.mark.parametrize("key", ["s", "t", "new"])
def test_tables_are_replaced_and_the_rest_of_the_toml_says_the_same(key: str) -> None:
    added = {"p": {"command": 'c "d"', "args": ["é"], "env": {"K k": "v"}}}
    after = TomlText(TOML).with_object((key,), added)
    assert tomllib.loads(after) == {**tomllib.loads(TOML), key: added}
    assert [line for line in ("# head", "# of two", "# tail") if line not in after] == []


@pytest.mark.parametrize("key", ["s", "t", "new"])
def test_tables_that_are_put_back_say_what_they_said(key: str) -> None:
    before = TomlText(TOML)
    members = before.members((key,))
    back = TomlText(before.with_object((key,), {"p": {"command": "c"}})).with_object((key,), members)
    assert tomllib.loads(back) == {key: {}} | tomllib.loads(TOML)
    assert "x = 1 # one" in back
    assert [back.count(line) for line in ("# head", "# of two", "# tail")] == [1, 1, 1]


@pytest.mark.parametrize(
    ("text", "rest"), [("s.a.x = 1\ns.b = 2\ny = 3\n", "y = 3"), ("s = { a = { x = 1 } }\n[y]\n", "[y]"), ("", "")]
)
def test_what_has_no_header_of_its_own_is_replaced_by_tables_too(text: str, rest: str) -> None:
    after = TomlText(text).with_object(("s",), {"p": {"command": "c"}})
    assert tomllib.loads(after) == {**tomllib.loads(rest), "s": {"p": {"command": "c"}}}
