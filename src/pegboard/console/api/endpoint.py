"""One address of the JSON interface, whose function's signature says what it takes, and the values of a request."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Final, Literal, NoReturn, TypeVar, dataclass_transform, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from starlette.requests import Request

from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.core.principals.bearer_tokens import Right
from pegboard.errors import UsageError

T = TypeVar("T")

JSON: Final = "application/json"
Method = Literal["GET", "POST", "PUT", "DELETE"]


@dataclass_transform(frozen_default=True, kw_only_default=True)
def request_class(kind: type[T]) -> type[T]:
    """Return a class as a frozen dataclass that is read from a request: names that it does not have are refused."""
    made = dataclass(frozen=True, slots=True, kw_only=True)(kind)
    made.__pydantic_config__ = ConfigDict(extra="forbid", use_attribute_docstrings=True)  # type: ignore[attr-defined]
    return made


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address with its method.

    Attributes:
        method: the method.
        path: the address, with ``{name}`` for a segment that may be any text.
        function: takes the context and the visit; by keyword the segments, ``query`` and ``body``, which are classes
            that are ``received``. What it returns becomes JSON, unless it is a response already.
        codes: those of the errors that it answers with, beside what every endpoint does.
        right: what the operator has to have.
        media: of what media types the answer is.
    """

    method: Method
    path: str
    function: Callable[..., Awaitable[object]]
    codes: tuple[str, ...] = ()
    right: Right = "see"
    media: tuple[str, ...] = (JSON,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What an endpoint takes beside context and visit, and what it returns."""

    segments: tuple[str, ...]
    query: Any
    body: Any
    answer: Any


@cache
def signature_of(endpoint: Endpoint) -> Signature:
    """Return what an endpoint takes and returns."""
    hints = get_type_hints(endpoint.function, include_extras=True)
    query, body, answer = (hints.pop(name, None) for name in ("query", "body", "return"))
    segments = tuple(name for name in hints if name not in ("context", "visit"))
    return Signature(segments=segments, query=query, body=body, answer=answer)


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Return what reads and writes values of a type."""
    return TypeAdapter(kind)


LARGEST: Final = 256 * 1024
"""How many bytes a body has at most."""
_SHOWN: Final = 5
_SEE: Final = "See `/api/openapi.json`."
_UNKNOWN: Final = "unexpected_keyword_argument"


def query_of(request: Request, kind: Any) -> Any:
    """Return the query of an address.

    Raises:
        UsageError: something is missing, unknown, given twice, or does not fit.
    """
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in given:
            raise _unfit_error("query", [f"`{_short_name(name)}` is given twice"])
        given[name] = value
    try:
        return adapter(kind).validate_python(given)
    except ValidationError as error:
        raise _misfit_error("query", kind, error) from None


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
            f"The body has {len(body):,} bytes; at most {LARGEST:,} are allowed.", code="body_too_large", hint=_SEE
        )
    _require_plain(body)
    try:
        return adapter(kind).validate_json(body, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            raise _invalid_body_error(str(first.get("ctx", {}).get("error", ""))) from None
        raise _misfit_error("body", kind, error) from None


def _require_plain(body: bytes) -> None:
    """Refuse what readers of JSON read differently: a name given twice, and numbers that JSON does not have."""
    try:
        json.loads(body.decode(), object_pairs_hook=_refuse_duplicates, parse_constant=_no_number, parse_float=_finite)
    except RecursionError:
        raise _invalid_body_error("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise _invalid_body_error("it is not UTF-8") from None
    except ValueError as error:
        raise _invalid_body_error(str(error)) from None


def _refuse_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"`{_short_name(name)}` is given twice")
        found[name] = value
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _invalid_body_error(why: str) -> UsageError:
    return UsageError(f"The body is not valid JSON: {why}.", code="bad_json", hint=_SEE)


def _misfit_error(part: str, kind: Any, error: ValidationError) -> UsageError:
    """Return what does not fit, each name once."""
    names = [field.name for field in fields(kind)]
    wrong: dict[str, list[str]] = {}
    hint = ""
    for one in error.errors(include_url=False, include_input=False):
        name = str(one["loc"][0]) if one["loc"] else part
        wrong.setdefault(name, []).append(_reason(one))
        if one["type"] == _UNKNOWN:
            hint = hint or did_you_mean(name, names)
    return _unfit_error(
        part, [f"`{_short_name(name)}` {' or '.join(dict.fromkeys(why))}" for name, why in wrong.items()], hint
    )


def _unfit_error(part: str, wrong: Sequence[str], hint: str = "") -> UsageError:
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


def _short_name(name: str) -> str:
    return one_line(name, limit=100)
