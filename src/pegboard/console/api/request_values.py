"""What stands in a request, as values: whatever does not fit gets one error that says where, and what would."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final, NoReturn

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from starlette.requests import Request

from pegboard.console.api.endpoint import JSON, adapter
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.errors import UsageError

LARGEST: Final = 256 * 1024
"""How many bytes a body has at most."""
_SHOWN: Final = 5
_SEE: Final = "`/api/openapi.json` says what it takes."
_UNKNOWN: Final = "unexpected_keyword_argument"


def query_of(request: Request, kind: Any) -> Any:
    """Return the query of an address.

    Raises:
        UsageError: something is missing, unknown, given twice, or does not fit.
    """
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in given:
            raise _unfit("query", [f"`{_short(name)}` is given twice"])
        given[name] = value
    try:
        return adapter(kind).validate_python(given)
    except ValidationError as error:
        raise _misfit("query", kind, error) from None


async def body_of(request: Request, kind: Any) -> Any:
    """Return the body of a request.

    Raises:
        UsageError: it is no JSON, too large, or something in it is missing, unknown, given twice, or does not fit.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise UsageError(f"A body here is JSON: its Content-Type is {JSON}.", code="not_json", hint=_SEE)
    body = await request.body()
    if len(body) > LARGEST:
        raise UsageError(
            f"The body has {len(body):,} bytes; at most {LARGEST:,} are read.", code="body_too_large", hint=_SEE
        )
    _require_plain(body)
    try:
        return adapter(kind).validate_json(body, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            raise _broken(str(first.get("ctx", {}).get("error", ""))) from None
        raise _misfit("body", kind, error) from None


def _require_plain(body: bytes) -> None:
    """Refuse what readers of JSON read differently: a name given twice, and numbers that JSON does not have."""
    try:
        json.loads(body.decode(), object_pairs_hook=_once, parse_constant=_no_number, parse_float=_finite)
    except RecursionError:
        raise _broken("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise _broken("it is not UTF-8") from None
    except ValueError as error:
        raise _broken(str(error)) from None


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"`{_short(name)}` is given twice")
        found[name] = value
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _broken(why: str) -> UsageError:
    return UsageError(f"The body is not valid JSON: {why}.", code="bad_json", hint=_SEE)


def _misfit(part: str, kind: Any, error: ValidationError) -> UsageError:
    """Return what does not fit, each name once."""
    names = [field.name for field in fields(kind)]
    wrong: dict[str, list[str]] = {}
    hint = ""
    for one in error.errors(include_url=False, include_input=False):
        name = str(one["loc"][0]) if one["loc"] else part
        wrong.setdefault(name, []).append(_reason(one))
        if one["type"] == _UNKNOWN:
            hint = hint or did_you_mean(name, names)
    return _unfit(part, [f"`{_short(name)}` {' or '.join(dict.fromkeys(why))}" for name, why in wrong.items()], hint)


def _unfit(part: str, wrong: Sequence[str], hint: str = "") -> UsageError:
    more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    problems = "; ".join(wrong[:_SHOWN])
    return UsageError(f"The {part} does not fit: {problems}{more}.", code="bad_request", hint=hint or _SEE)


def _reason(error: ErrorDetails) -> str:
    match error["type"]:
        case "missing":
            return "is missing"
        case "unexpected_keyword_argument":
            return "is not known here"
        case _:
            return error["msg"].replace("Input should", "should", 1)


def _short(name: str) -> str:
    return one_line(name, limit=100)
