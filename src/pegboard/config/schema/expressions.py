"""Regular expressions whose time is bounded, whatever the pattern and the text (F3).

They are those of Rust's ``regex``, as the JSON Schema validator brings it: its time grows with the
size of the pattern times the length of the text, and both are bounded. There is no look-around and
there are no back-references, which no such engine has.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

SIZE: Final = 100_000
"""How large a compiled pattern may be, in bytes."""


@lru_cache(maxsize=1024)
def _compile_pattern(pattern: str) -> Any:
    from jsonschema_rs import Draft202012Validator, RegexOptions

    return Draft202012Validator({"pattern": pattern}, pattern_options=RegexOptions(size_limit=SIZE))


def pattern_fault(pattern: str) -> str:
    """Return what is wrong with a pattern, or nothing.

    >>> pattern_fault("(?i)deploy|部署"), pattern_fault("(")
    ('', 'unclosed group')
    >>> pattern_fault("(?=x)")
    'look-around, including look-ahead and look-behind, is not supported'
    >>> pattern_fault("(.{1,999}){1,999}")
    'it is too large'
    """
    from jsonschema_rs import ValidationError

    try:
        _compile_pattern(pattern)
    except (ValidationError, ValueError):
        return _why_invalid(pattern)
    return ""


def _why_invalid(pattern: str) -> str:
    """Return the same engine's words for what is wrong; the validator does not pass them on."""
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    try:
        SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError as error:
        _, found, message = str(error).rpartition("error: ")
        if found:
            return message.strip().rstrip(".")
    return "it is too large"


def pattern_matches(pattern: str, text: str) -> bool:
    """Return whether the pattern is found anywhere in the text.

    >>> pattern_matches("(?i)deploy", "Please Deploy it"), pattern_matches("^it", "Please Deploy it")
    (True, False)
    """
    found: bool = _compile_pattern(pattern).is_valid(text.encode(errors="replace").decode())
    return found
