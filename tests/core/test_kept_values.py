"""What is kept of JSON values: masked first, then cut, and the work is bounded (X4, X5)."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.model.kept_values import kept_blocks, kept_json, kept_text
from pegboard.core.model.masking import Masker

SECRET = "hunter22-and-more"
MASKER = Masker([SECRET, "ab", "multi\nline secret of two lines"])


def test_x5_no_part_of_a_secret_is_left_wherever_the_cut_falls() -> None:
    text = f"login {SECRET} then {SECRET}{SECRET} at https://ada:pass-word@host/x"
    for most in range(1, 60):
        found, cut = kept_text(MASKER, text, most)
        assert cut == (most < len(text))
        assert len(found) <= most
        assert not any(part in found for part in (SECRET[:4], SECRET[-4:], "pass", "ada")), most


@given(st.text(max_size=30), st.text(max_size=30), st.integers(1, 80))
def test_x5_what_stands_before_and_behind_a_secret_does_not_let_it_through(before: str, behind: str, most: int) -> None:
    text = f"{before}{SECRET}{behind}"
    found, _ = kept_text(MASKER, text, most)
    assert SECRET[:8] not in found.replace(before, "") or SECRET[:8] in before


def test_arguments_are_kept_as_they_are_or_it_is_known_that_they_are_not() -> None:
    plain = {"text": "hello", "numbers": [1, 2.5, None, True], "deep": {"a": {"b": []}}}
    kept = kept_json(MASKER, plain, 1_000)
    assert (json.loads(kept.text), kept.cut, kept.exact) == (plain, False, True)
    for other in ({"text": SECRET}, {SECRET: 1}, {"password": "x"}, {"a": "ab"}):
        masked = kept_json(MASKER, other, 1_000)
        assert (masked.exact, masked.cut) == (False, False)
        assert SECRET not in masked.text
    cut = kept_json(MASKER, {"text": "x" * 5_000}, 100)
    assert (cut.exact, cut.cut) == (False, True)
    assert len(cut.text) < 200


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


LARGE: dict[str, Callable[[], Any]] = {
    "depth": lambda: nested(1_000_000),
    "width": lambda: [[]] * 1_000_000,
    "keys": lambda: {str(at): at for at in range(100_000)},
    "text": lambda: "x" * 50_000_000,
    "number": lambda: 10**5_000,
}


@pytest.mark.parametrize("name", LARGE)
def test_x4_however_large_a_value_is_what_is_kept_is_small_and_quick(name: str) -> None:
    value = LARGE[name]()
    started = time.process_time()
    kept = kept_json(MASKER, {"value": value}, 4_000)
    assert time.process_time() - started < 0.2
    assert kept.cut
    assert len(kept.text) < 20_000
    json.loads(kept.text)
    while isinstance(value, list) and value and isinstance(value[0], list) and len(value) == 1:
        value = value.pop()  # a value of this depth is not let go of at once


def test_what_is_no_text_is_named_and_not_kept() -> None:
    content = (
        {"type": "text", "text": f"see {SECRET}"},
        {"type": "image", "mimeType": "image/png", "data": "A" * 4_000},
        {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA"}},
        {"type": "resource_link", "uri": "file:///c", "name": "c"},
    )
    kept = kept_blocks(MASKER, content, {"same": True}, 4_000)
    assert json.loads(kept.text) == [
        {"type": "text", "text": "see ***"},
        {"type": "image", "mimeType": "image/png", "bytes": 3_000},
        {"type": "resource", "uri": "file:///a", "mimeType": "text/plain", "text": "inside"},
        {"type": "resource", "uri": "file:///b", "bytes": 3},
        {"type": "resource_link", "uri": "file:///c", "name": "c"},
    ]
    alone = kept_blocks(MASKER, (), {"token": SECRET, "n": 1}, 4_000)
    assert json.loads(alone.text) == [{"type": "structured", "value": {"token": "***", "n": 1}}]


@pytest.mark.parametrize(("key", "most"), [("uri", 2_000), ("name", 2_000), ("mimeType", 2_000), ("type", 40)])
def test_x5_what_a_block_is_called_is_masked_before_it_is_cut(key: str, most: int) -> None:
    block = {"type": "resource_link", key: f"{'x' * (most - 6)}{SECRET}"}
    (kept,) = json.loads(kept_blocks(MASKER, (block,), None, 4_000).text)
    assert kept[key].removesuffix("…") == f"{'x' * (most - 6)}***"
