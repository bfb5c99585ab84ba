"""The prices of models: numbers that money can be counted with, and no kind of token without one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from pegboard.config.compile import UncheckedConfig
from pegboard.config.problem_codes import error
from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.prices import KINDS, millionths
from pegboard.problems import Problem

_KEYS: Final = (*KINDS, "currency")
_LONGEST: Final = 12
"""How many characters a currency has at most."""
_EXAMPLE: Final = "Write {input: 3.00, cached: 0.30, written: 3.75, output: 15.00, currency: USD}."


def check_models(config: UncheckedConfig) -> Iterator[Problem]:
    """Yield what is wrong with the prices of models; the other keys of a model are free."""
    for name, model in config.validated.section.models.items():
        if "prices" not in model:
            continue
        prices = model["prices"]
        if not isinstance(prices, Mapping):
            place = config.validated.place("models", name, "prices")
            yield error("bad_price", "prices are a mapping of numbers.", place, _EXAMPLE)
            continue
        yield from _prices(config, name, cast("Mapping[str, Any]", prices))


def _prices(config: UncheckedConfig, name: str, prices: Mapping[str, Any]) -> Iterator[Problem]:
    place = config.validated.place
    for key, value in prices.items():
        if key not in _KEYS:
            message = f"'{key}' is no price."
            yield error("bad_price", message, place("models", name, "prices", key, key=True), did_you_mean(key, _KEYS))
        elif key == "currency":
            if not isinstance(value, str) or not 0 < len(value.strip()) <= _LONGEST or not value.isprintable():
                message = f"a currency is a text of 1 to {_LONGEST} characters."
                yield error("bad_price", message, place("models", name, "prices", key), "Write a code such as USD.")
        else:
            try:
                millionths(value)
            except ValueError as problem:
                hint = "It is what a million tokens cost."
                yield error("bad_price", str(problem), place("models", name, "prices", key), hint)
    for key in ("input", "output"):
        if key not in prices:
            message = f"the price of '{key}' is missing."
            yield error("bad_price", message, place("models", name, "prices"), _EXAMPLE)
