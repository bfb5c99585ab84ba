"""Encoders that are set up once write what those of the standard library write."""

import json
from typing import Any

import pytest

from pegboard.support.encodable import pieces_by

VALUES: list[Any] = [
    {},
    [],
    'é 你 \ud800 \x00 " \\ /',
    {"b": [1, 2.5, 1e16, -0.0, True, None], "a": {"é": ("x", {"y": object})}},
    {"n": [float("inf"), float("-inf"), float("nan")], "big": 10**40},
    {1: "a", 2.5: "b", None: "c", False: "d"},
]


def encoded(value: Any, encoder: json.JSONEncoder) -> str:
    return "".join(pieces_by(encoder)(value, 0))


ENCODERS = [
    json.JSONEncoder(default=str),
    json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str),
    json.JSONEncoder(skipkeys=True, default=str),
]


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_value_is_written_as_the_standard_library_writes_it(encoder: json.JSONEncoder) -> None:
    for value in VALUES:
        assert encoded(value, encoder) == encoder.encode(value)
    ordered = json.JSONEncoder(sort_keys=True, ensure_ascii=encoder.ensure_ascii)
    assert encoded({"b": 1, "a": {"d": 2, "c": 3}}, ordered) == ordered.encode({"b": 1, "a": {"d": 2, "c": 3}})


def test_what_is_no_json_is_refused_as_there() -> None:
    strict = json.JSONEncoder(allow_nan=False)
    with pytest.raises(ValueError, match="Out of range"):
        encoded({"n": float("nan")}, strict)
    with pytest.raises(TypeError, match="not JSON serializable"):
        encoded({"n": object()}, strict)
    with pytest.raises(TypeError, match="keys must be"):
        encoded({(1, 2): "n"}, strict)


def test_what_contains_itself_ends_in_an_error_and_not_the_process() -> None:
    round_and_round: dict[str, Any] = {}
    round_and_round["again"] = round_and_round
    with pytest.raises(RecursionError):
        encoded(round_and_round, json.JSONEncoder())


def test_without_the_accelerator_the_encoder_itself_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)
    assert encoded({"b": 1, "a": 2}, json.JSONEncoder(sort_keys=True)) == '{"a": 2, "b": 1}'
