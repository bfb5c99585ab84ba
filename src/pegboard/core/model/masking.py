"""The masking of secrets in everything that is written (X5)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, cast
from urllib.parse import quote

from pegboard.core.model.references import only_refers
from pegboard.core.model.tools import JsonObject

LONG: Final = 16
"""How many characters a value has at least, all of one word, that is found by how it ends."""
_END: Final = 8
"""How many last characters tell values apart: tokens of one kind begin alike."""
_WORD: Final = re.compile(rf"\S{{{LONG},}}")


def is_long(value: str) -> bool:
    """Return whether a value is looked for here.

    >>> is_long("eyJhbGciOiJSUzI1NiJ9.e30"), is_long("hunter22"), is_long("a sentence of many words")
    (True, False, False)
    """
    return _WORD.fullmatch(value) is not None


class LongValues:
    """Long values by how they end: what a text costs, or one value more, does not depend on how many there are.

    >>> known = LongValues()
    >>> known.add(["access-0123456789", "access-0123456789abc"])
    >>> list(known.spans('{"token":"access-0123456789abc"}'))
    [(10, 30)]
    """

    __slots__ = ("_by_end", "_counts", "longest")

    def __init__(self) -> None:
        self._by_end: dict[str, tuple[str, ...]] = {}  # the longest first
        self._counts: Counter[str] = Counter()
        self.longest = 0

    def __bool__(self) -> bool:
        return bool(self._by_end)

    def __contains__(self, value: str) -> bool:
        return value in self._counts

    @property
    def values(self) -> Iterable[str]:
        """Return what is looked for."""
        return self._counts

    def add(self, values: Iterable[str]) -> None:
        """Look for these, too, once more for each time that they are given."""
        for value in values:
            self._counts[value] += 1
            if self._counts[value] == 1:
                end = value[-_END:]
                self._by_end[end] = tuple(sorted((*self._by_end.get(end, ()), value), key=len, reverse=True))
                self.longest = max(self.longest, len(value))

    def remove(self, values: Iterable[str]) -> None:
        """Look for these no more, as often as they were given."""
        for value in values:
            self._counts[value] -= 1
            if self._counts[value] <= 0:
                del self._counts[value]
                end = value[-_END:]
                left = tuple(other for other in self._by_end[end] if other != value)
                if left:
                    self._by_end[end] = left
                else:
                    del self._by_end[end]

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where values begin and end in a text, in order and apart; values that overlap are one span."""
        for word in _WORD.finditer(text) if self._by_end else ():
            joined: list[tuple[int, int]] = []
            for start, end in self._ends(text, word.start(), word.end()):
                first = start
                while joined and joined[-1][1] > first:
                    first = min(first, joined.pop()[0])
                joined.append((first, end))
            yield from joined

    def _ends(self, text: str, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the longest value that ends at each place of a word."""
        values = self._by_end
        for end in range(first + LONG, last + 1):
            if (tail := text[end - _END : end]) in values:
                found = next((value for value in values[tail] if text.endswith(value, first, end)), None)
                if found is not None:
                    yield end - len(found), end


MASK = "***"
_SHORTEST = 4
_MOST_OF_A_SOURCE = 16
"""How many values one source has that are masked; a token that is renewed each hour has no end of them."""
_LONG_LINE = 16
"""How many characters a line of a secret has that is one by itself; shorter ones may stand in any text."""
_SECRET_KEY = re.compile(
    r"(?i)(?:^|[_-]|(?-i:(?<=[a-z0-9])(?=[A-Z])))"
    r"(password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key|credential"
    r"|authorization|dsn)s?$"
)
_COUNT_KEY = re.compile(r"(?i)tokens$")
_USERINFO = re.compile(r"(?<=://)[^/\s'\"]+(?=@)")
_UNFINISHED = re.compile(r"[^/\s'\"]+\Z")
"""What may be the beginning of the userinfo of a URL, at the end of a text that is cut there."""


class Masker:
    """A replacer of secret values, and of the userinfo of URLs, in text.

    Values shorter than four characters are masked only where they stand alone under their own key:
    in running text they would hide half of it. What becomes known while it is in use is masked from then on;
    ``forms`` is another set then.
    """

    __slots__ = ("_given", "_learned", "_long", "_longest", "_pattern", "_short", "_short_forms", "forms", "values")

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._given: frozenset[str] = frozenset(v for v in values if v and not only_refers(v))
        self._learned: dict[str, tuple[str, ...]] = {}
        self._short: frozenset[str] = frozenset()
        self._short_forms: frozenset[str] = frozenset()
        self._long = LongValues()  # of what was learned
        self.values: frozenset[str] = frozenset()
        self.forms: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self._longest = 0
        self._compile()

    def add(self, values: Iterable[str]) -> None:
        """Mask these values, too."""
        self._given |= frozenset(v for v in values if v and not only_refers(v))
        self._compile()

    def learn(self, source: str, value: str) -> None:
        """Mask what a source gave, too, and what it gave before: of each source the newest 16 values.

        >>> masker = Masker()
        >>> masker.learn("${keyring:DB}", "hunter22")
        >>> masker.text("login with hunter22")
        'login with ***'
        """
        known = self._learned.get(source, ())
        if known[-1:] == (value,):
            return
        kept = self._learned[source] = (*(v for v in known if v != value), value)[-_MOST_OF_A_SOURCE:]
        new, old = {*kept} - {*known}, {*known} - {*kept}
        long = {one for one in new | old if is_long(one)}
        self._long.add(form for one in new & long for form in {*_forms(one)})
        self._long.remove(form for one in old & long for form in {*_forms(one)})
        if long == new | old:
            gone = {one for one in old if one not in self._long and one not in self._short}
            self._update_secrets(new, gone)
        else:
            self._compile()

    def _update_secrets(self, new: set[str], gone: set[str]) -> None:
        """Know these values too and those no more, without a look at all others: there may be very many."""
        self.values = self.values - gone | new
        gone_forms, new_forms = ({form for one in some for form in _forms(one)} for some in (gone, new))
        self.forms = self.forms - gone_forms | new_forms

    def _compile(self) -> None:
        learned = [v for values in self._learned.values() for v in values]
        short = self._given.union(v for v in learned if not is_long(v))
        if short != self._short:
            self._short = short
            self._short_forms = frozenset(form for v in short if len(v) >= _SHORTEST for form in _forms(v))
            ordered = sorted(self._short_forms, key=len, reverse=True)
            self._longest = len(ordered[0]) if ordered else 0
            self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None
        values = self._given.union(learned)
        if values != self.values:
            self.values, self.forms = values, self._short_forms.union(self._long.values)

    def text(self, text: str) -> str:
        """Return the text without secrets.

        >>> Masker(["hunter22"]).text("login with hunter22 at postgres://ada:pw@db/x")
        'login with *** at postgres://***@db/x'
        """
        return self.userinfo(self.replaced(text, _mask_of))

    def text_around(self, text: str, names: Callable[[], Iterable[str]]) -> str:
        """Return the text without secrets, but with these names: the person who reads it has to use them.

        >>> Masker(["postgres"]).text_around("postgres__ask wants postgres", lambda: ["postgres__ask"])
        'postgres__ask wants ***'
        """
        masked = self.text(text)
        if masked == text:
            return text
        kept = sorted((name for name in names() if self.text(name) != name), key=len, reverse=True)
        if not kept:
            return masked
        whole = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, kept))})(?![\w-])")
        return "".join(part if at % 2 else self.text(part) for at, part in enumerate(whole.split(text)))

    def beginning(self, text: str, most: int) -> str:
        """Return the first characters of a text without secrets, at most so many; a secret at the cut is whole.

        >>> Masker(["hunter22"]).beginning("login with hunter22 and more", 14)
        'login with ***'
        """
        if len(text) <= most:
            return self.text(text)
        end = most
        matches = () if self._pattern is None else self._pattern.finditer(text, 0, most + self._longest)
        for spans in ((found.span() for found in matches), self._long.spans(text[: most + self._long.longest])):
            for start, stop in spans:
                if start >= most:
                    break
                end = max(end, stop)
        found = self.text(text[:end])
        authority = found.rfind("://") + 3
        if authority > 2 and _UNFINISHED.match(found, authority):
            found = f"{found[:authority]}{MASK}"
        return found[:most]

    def replaced(self, text: str, mark: Callable[[str], str]) -> str:
        """Return a text with what ``mark`` returns of it in place of each value that is known to be secret."""
        pieces, done = list[str](), 0
        for start, end in self._long.spans(text):
            pieces += (self._replace_secrets(text[done:start], mark), mark(text[start:end]))
            done = end
        return (
            "".join((*pieces, self._replace_secrets(text[done:], mark)))
            if pieces
            else self._replace_secrets(text, mark)
        )

    def _replace_secrets(self, text: str, mark: Callable[[str], str]) -> str:
        return text if self._pattern is None else self._pattern.sub(lambda found: mark(found[0]), text)

    def userinfo(self, text: str, mark: Callable[[str], str] = lambda _: MASK) -> str:
        """Return a text with what ``mark`` returns of it in place of the userinfo of each URL."""
        return _USERINFO.sub(lambda found: mark(found[0]), text) if "://" in text else text

    def value(self, value: Any, *, secret_keys: frozenset[str] = frozenset()) -> Any:
        """Return a JSON value without secrets, wherever they stand in it, in keys too.

        >>> Masker(["hunter22"]).value({"hunter22": 1, "a hunter22": ["hunter22"], "hunter22 ": 2})
        {'***': 1, 'a ***': ['***'], '*** ': 2}
        """
        match value:
            case str():
                return MASK if value in self.values else self.text(value)
            case dict():
                inner = cast("dict[Any, Any]", value)
                return _distinct((self._key(k), self._item(k, v, secret_keys)) for k, v in inner.items())
            case list() | tuple():
                items = cast("Sequence[Any]", value)
                return [self.value(item, secret_keys=secret_keys) for item in items]
            case int() | float() if not isinstance(value, bool) and str(value) in self.values:
                return MASK
            case _:
                return value

    def _key(self, key: Any) -> Any:
        return self.text(key) if isinstance(key, str) else key

    def _item(self, key: Any, value: Any, secret_keys: frozenset[str]) -> Any:
        secret = key in secret_keys or is_secret(key, value)
        return MASK if secret else self.value(value, secret_keys=secret_keys)


def _mask_of(_: str) -> str:
    return MASK


def _distinct(items: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return a mapping in which keys that are one once they are masked are told apart by a number.

    >>> _distinct([("***", 1), ("b", 2), ("***", 3)])
    {'***': 1, 'b': 2, '*** (2)': 3}
    """
    found: dict[Any, Any] = {}
    for key, value in items:
        name, number = key, 1
        while name in found:
            number += 1
            name = f"{key} ({number})"
        found[name] = value
    return found


def names_secret(key: str) -> bool:
    """Return whether the value of a key of this name is never shown.

    >>> names_secret("X-Api-Key"), names_secret("name")
    (True, False)
    """
    return _SECRET_KEY.search(key) is not None


def is_secret(key: object, value: object) -> bool:
    """Return whether a value is not shown because of its key.

    >>> is_secret("api_key", "x"), is_secret("max_tokens", 5)
    (True, False)
    """
    return names_secret(str(key)) and not _counts(key, value)


def _counts(key: Any, value: Any) -> bool:
    """Return whether a value is a number of tokens (``max_tokens``)."""
    return isinstance(value, int | float) and _COUNT_KEY.search(str(key)) is not None


def _forms(value: str) -> Iterator[str]:
    """Yield the ways in which a secret is written in text: as it is, line by line, in a URL, in JSON."""
    yield value
    if "\n" in value:  # a log is read by lines
        yield from (line for line in map(str.strip, value.splitlines()) if len(line) >= _LONG_LINE)
    yield quote(value, safe="")
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]


def mask_overrides(overrides: JsonObject, masker: Masker, secret_keys: frozenset[str]) -> JsonObject:
    """Return overrides that may be shown."""
    return masker.value(dict(overrides), secret_keys=secret_keys)
