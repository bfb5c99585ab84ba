"""Keep secrets out of everything that is written (X5)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, cast
from urllib.parse import quote

from pegboard.core.tools import JsonObject

MASK = "***"
_SHORTEST = 4
_SECRET_KEY = re.compile(
    r"(?i)(^|[_-])(password|passwd|secret|token|api_?key|access_?key|private_?key|credentials?|authorization|dsn)s?$"
)
_USERINFO = re.compile(r"(?<=://)[^/\s@'\"]+(?=@)")


class Masker:
    """Replace secret values, and the userinfo of URLs, in text.

    Values shorter than four characters are masked only where they stand alone under their own key:
    in running text they would hide half of it.
    """

    __slots__ = ("_pattern", "values")

    def __init__(self, values: Iterable[str] = ()) -> None:
        self.values: frozenset[str] = frozenset(v for v in values if v)
        forms = {form for v in self.values if len(v) >= _SHORTEST for form in (v, quote(v, safe=""))}
        ordered = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def text(self, text: str) -> str:
        """Return the text without secrets.

        >>> Masker(["hunter22"]).text("login with hunter22 at postgres://ada:pw@db/x")
        'login with *** at postgres://***@db/x'
        """
        if self._pattern is not None:
            text = self._pattern.sub(MASK, text)
        return _USERINFO.sub(MASK, text) if "://" in text else text

    def value(self, value: Any, *, secret_keys: frozenset[str] = frozenset()) -> Any:
        """Return a JSON value without secrets, wherever they stand in it."""
        match value:
            case str():
                return MASK if value in self.values else self.text(value)
            case dict():
                inner = cast("dict[Any, Any]", value)
                return {k: self._item(k, v, secret_keys) for k, v in inner.items()}
            case list() | tuple():
                items = cast("Sequence[Any]", value)
                return [self.value(item, secret_keys=secret_keys) for item in items]
            case int() | float() if not isinstance(value, bool) and str(value) in self.values:
                return MASK
            case _:
                return value

    def _item(self, key: Any, value: Any, secret_keys: frozenset[str]) -> Any:
        secret = key in secret_keys or _SECRET_KEY.search(str(key)) is not None
        return MASK if secret else self.value(value, secret_keys=secret_keys)


def masked(overrides: JsonObject, masker: Masker, secret_keys: frozenset[str]) -> JsonObject:
    """Return overrides that may be shown."""
    return masker.value(dict(overrides), secret_keys=secret_keys)
