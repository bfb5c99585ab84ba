"""Messages before the SDK are read and written as after it: the standard library beside pydantic-core."""

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json, to_json

from pegboard.gateway.protocol import jsonrpc

TEXTS = st.text() | st.sampled_from(["\x00\x1f\x7f", '"\\/\b\f\n\r\t', "\u2028\u2029", "\U0001f600", "\ud800"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)
ODD = [
    b'{"a": NaN}', b'{"a": Infinity}', b'{"a": "\\ud800"}', b'{"a": "\\uD83D\\ude00"}', b"\xef\xbb\xbf{}", b"\xff{}",
    '{"a": 1}'.encode("utf-16"), b'{"a":' * 150 + b"1" + b"}" * 150, b'{"a": 1} x', b'{"a": "\t"}', b"", b"[]",
    b'{"a": 01}',
    b'{"a": 1, "a": 2}', b'{"a": 1e999}', b'{"a": 1e-7}', b'{"a": -0}', b'{"a": 123456789012345678901234567890}',
    b'{"a": ' + b"9" * 5000 + b"}", b" {} \n", b'{"a": "\xed\xa0\x80"}', b"{'a': 1}", b'{"a": 1,}', b'{"a": "\x7f"}',
]  # fmt: skip


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the reader believe that pydantic-core has not been imported yet."""
    monkeypatch.delitem(sys.modules, "pydantic_core")
    jsonrpc._pydantic_core.cache_clear()


def theirs(data: bytes) -> Any:
    try:
        found = from_json(data)
    except ValueError:
        return None
    return found if type(found) is dict else None


@given(value=st.dictionaries(TEXTS, VALUES, max_size=5))
def test_what_is_written_is_the_same(value: dict[str, Any]) -> None:
    if jsonrpc._writes_plainly(value):
        try:
            expected = to_json(value, inf_nan_mode="null")
        except (ValueError, UnicodeError):
            return
        assert json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() == expected


@given(value=st.dictionaries(TEXTS, VALUES, max_size=5))
def test_what_is_read_is_the_same_or_left_to_the_other(value: dict[str, Any]) -> None:
    data = json.dumps(value).encode()
    if jsonrpc._is_plain(data):
        try:
            found = jsonrpc._load_json(data)
        except ValueError:
            return
        assert repr(found) == repr(theirs(data))


@pytest.mark.parametrize("data", ODD)
@pytest.mark.usefixtures("early")
def test_odd_lines_are_read_the_same_or_left_to_the_sdk(data: bytes) -> None:
    found = jsonrpc.parse_message(data)
    assert found is None or repr(found) == repr(theirs(data))


@pytest.mark.parametrize("value", [{"a": 1e-7}, {"a": float("inf")}, {"a": (1,)}, {"a": {1: 2}}])
@pytest.mark.usefixtures("early")
def test_what_only_the_other_writes_alike_is_left_to_it(value: dict[str, Any]) -> None:
    before = jsonrpc.dump_message(value)
    assert "pydantic_core" in sys.modules
    assert jsonrpc.dump_message(value) == before


def test_plain_messages_are_read_and_written_without_pydantic_core() -> None:
    code = (
        "import sys; from pegboard.gateway.protocol.jsonrpc import dump_message, parse_message;"
        "print(dump_message(parse_message(b'{\"a\": [1, null, true]}')).decode(), 'pydantic_core' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown == '{"a":[1,null,true]} False\n'
