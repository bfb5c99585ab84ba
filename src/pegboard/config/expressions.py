"""Regular expressions that take linear time, whatever the pattern and the text (F3).

They are those of Rust's ``regex``, which comes with pydantic: no look-around, no back-references.
"""

from __future__ import annotations

from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, core_schema


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> SchemaValidator:
    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))


def pattern_fault(pattern: str) -> str:
    """Return what is wrong with a pattern, or nothing.

    >>> pattern_fault("(?i)deploy|部署"), pattern_fault("(")
    ('', 'unclosed group')
    >>> pattern_fault("(?=x)")
    'look-around, including look-ahead and look-behind, is not supported'
    """
    try:
        _compiled(pattern)
    except SchemaError as error:
        last = str(error).strip().splitlines()[-1]
        return last.rpartition("error: ")[2].removeprefix("SchemaError: ").strip().rstrip(".")
    return ""


def matches(pattern: str, text: str) -> bool:
    """Return whether the pattern is found anywhere in the text.

    >>> matches("(?i)deploy", "Please Deploy it"), matches("^it", "Please Deploy it")
    (True, False)
    """
    return _compiled(pattern).isinstance_python(text)
