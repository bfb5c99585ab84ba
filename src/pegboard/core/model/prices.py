"""What a model's tokens cost, as the configuration says, and amounts of money that are exact (F4)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

PLACES: Final = 6
"""How many decimals a price has at most."""
MOST: Final = 1_000_000
"""The greatest price of a million tokens."""
KINDS: Final = ("input", "cached", "written", "output")
"""What there are prices of: input, input that is read from the provider's cache or written to it, output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The prices of a million tokens of each of ``KINDS``, in millionths of the currency, which is any short text."""

    input: int
    cached: int
    written: int
    output: int
    currency: str = "USD"


def millionths(price: object) -> int:
    """Return a price as it is written, in millionths of its currency.

    Raises:
        ValueError: it is no number, negative, too great, or has too many decimals; the text says what it has to be.

    >>> millionths(3.75), millionths("0.30"), millionths(0)
    (3750000, 300000, 0)
    """
    if isinstance(price, bool) or not isinstance(price, int | float | str):
        raise ValueError("a price is a number, such as 3.00.")
    try:
        exact = Decimal(str(price).strip())
    except InvalidOperation:
        raise ValueError("a price is a number, such as 3.00.") from None
    if not exact.is_finite():
        raise ValueError("a price is a finite number, such as 3.00.")
    if exact < 0:
        raise ValueError("a price is not negative.")
    if exact > MOST:
        raise ValueError(f"a price of a million tokens is {MOST:,} at most.")
    scaled = exact.scaleb(PLACES)
    if scaled != scaled.to_integral_value():
        raise ValueError(f"a price has {PLACES} decimals at most.")
    return int(scaled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Numbers of tokens by what they are billed as; see ``KINDS``. Differences may be negative."""

    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0


def cost(tokens: Tokens, prices: Prices) -> int:
    """Return what tokens cost, in millionths of millionths of the currency: exact, and adds up.

    >>> prices = Prices(input=3_000_000, cached=300_000, written=3_750_000, output=15_000_000)
    >>> amount(cost(Tokens(input=100_000, cached=1_000), prices))
    '0.3003'
    """
    return (
        tokens.input * prices.input
        + tokens.cached * prices.cached
        + tokens.written * prices.written
        + tokens.output * prices.output
    )


def amount(cost: int) -> str:
    """Return a cost in its currency as a decimal number of six decimals at most, without trailing zeros.

    >>> amount(300_000_000_000), amount(-1_500_000_000_000), amount(1), amount(0)
    ('0.3', '-1.5', '0', '0')
    """
    whole, part = divmod((abs(cost) + 500_000) // 1_000_000, 1_000_000)
    text = f"{whole}.{part:06}".rstrip("0").rstrip(".")
    return f"-{text}" if cost < 0 and text != "0" else text
