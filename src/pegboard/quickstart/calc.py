"""Calculate: arithmetic, statistics and units."""

from __future__ import annotations

import ast
import math
import operator
import statistics
from collections.abc import Mapping
from typing import Any, Final

from pegboard.marks import tool

__all__ = ["calculate", "convert_unit", "summarize_numbers"]

_OPERATORS: Final[Mapping[type[ast.AST], Any]] = {
    kind: getattr(operator, name)
    for kind, name in (
        (ast.Add, "add"),
        (ast.Sub, "sub"),
        (ast.Mult, "mul"),
        (ast.Div, "truediv"),
        (ast.FloorDiv, "floordiv"),
        (ast.Mod, "mod"),
        (ast.UAdd, "pos"),
        (ast.USub, "neg"),
    )
}
_FUNCTIONS: Final[Mapping[str, Any]] = {
    **{
        name: getattr(math, name)
        for name in ("sqrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "floor", "ceil")
    },
    "abs": abs,
    "round": round,
    "min": min,
    "max": max,
    "hypot": math.hypot,
    "degrees": math.degrees,
    "radians": math.radians,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "gcd": math.gcd,
}
_CONSTANTS: Final[Mapping[str, float]] = {"pi": math.pi, "e": math.e, "tau": math.tau}
_LARGEST: Final = 10**300

_UNITS: Final[Mapping[str, Mapping[str, float]]] = {
    "length": {"mm": 0.001, "cm": 0.01, "m": 1, "km": 1000, "in": 0.0254, "ft": 0.3048, "yd": 0.9144, "mi": 1609.344},
    "mass": {"mg": 1e-6, "g": 0.001, "kg": 1, "t": 1000, "oz": 0.028349523125, "lb": 0.45359237},
    "time": {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86400, "week": 604800},
    "volume": {"ml": 0.001, "l": 1, "m3": 1000, "gal": 3.785411784, "cup": 0.2365882365},
    "data": {"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 1024, "mib": 1024**2, "gib": 1024**3},
    "speed": {"m/s": 1, "km/h": 1 / 3.6, "mph": 0.44704, "kn": 0.5144444444444445},
}


@tool(read_only=True)
def calculate(expression: str) -> float | int:
    """Work out an arithmetic expression such as 'sqrt(2) * (3 + 4) ** 2'.

    Args:
        expression: Numbers, + - * / // % **, parentheses, pi, e, and functions such as sqrt, log, sin, round, max.
    """
    if len(expression) > 1000:
        raise ValueError("the expression is longer than 1000 characters.")
    try:
        tree = ast.parse(expression.strip().replace("^", "**"), mode="eval")
        return _check_number(_value(tree.body))
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"'{expression}' is not an arithmetic expression.") from None
    except ZeroDivisionError:
        raise ValueError("division by zero.") from None
    except (OverflowError, TypeError) as error:
        raise ValueError(f"cannot be worked out: {error}.") from None


@tool(read_only=True)
def convert_unit(value: float, unit: str, to: str) -> float:
    """Convert a length, mass, time, volume, amount of data, speed or temperature to another unit.

    Args:
        value: How many.
        unit: The unit of the value, such as 'km', 'lb', 'GiB', 'mph' or 'C'.
        to: The unit wanted.
    """
    one, two = unit.casefold(), to.casefold()
    if {one, two} <= {"c", "f", "k"}:
        return round(_from_kelvin(_to_kelvin(value, one), two), 10)
    for units in _UNITS.values():
        if one in units and two in units:
            return value * units[one] / units[two]
    known = "; ".join(f"{kind}: {', '.join(units)}" for kind, units in _UNITS.items())
    raise ValueError(f"cannot convert '{unit}' to '{to}'. Known are {known}; temperature: C, F, K.")


@tool(read_only=True)
def summarize_numbers(numbers: list[float]) -> dict[str, float]:
    """Give count, sum, mean, median, standard deviation, least and greatest of some numbers."""
    if not numbers:
        raise ValueError("'numbers' is empty.")
    return {
        "count": len(numbers),
        "sum": math.fsum(numbers),
        "mean": statistics.fmean(numbers),
        "median": statistics.median(numbers),
        "standard_deviation": statistics.stdev(numbers) if len(numbers) > 1 else 0.0,
        "least": min(numbers),
        "greatest": max(numbers),
    }


def _value(node: ast.AST) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _check_power(_value(left), _value(right))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _check_number(_OPERATORS[type(op)](_value(left), _value(right)))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(operand))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return _check_number(_FUNCTIONS[name](*map(_value, arguments)))
        case _:
            raise ValueError(
                f"'{ast.unparse(node)}' cannot be used; write numbers, operators and {', '.join(_FUNCTIONS)}."
            )


def _check_power(base: Any, exponent: Any) -> Any:
    if base and abs(exponent) * math.log10(max(abs(base), 2)) > 300:
        raise ValueError("the number would be too large.")
    return _check_number(base**exponent)


def _check_number(number: Any) -> Any:
    if isinstance(number, complex):
        raise ValueError("the result is not a real number.")
    if abs(number) > _LARGEST:
        raise ValueError("the number is too large.")
    return number


def _to_kelvin(value: float, unit: str) -> float:
    return {"k": value, "c": value + 273.15, "f": (value + 459.67) * 5 / 9}[unit]


def _from_kelvin(value: float, unit: str) -> float:
    return {"k": value, "c": value - 273.15, "f": value * 9 / 5 - 459.67}[unit]
