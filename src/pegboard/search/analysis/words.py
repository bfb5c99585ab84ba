"""How texts are cut: into sentences, values and words, which words say nothing, and what forms of a word share."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

LONGEST: Final = 40
"""Longer words are cut."""
_NAME: Final = re.compile(
    r"[A-Za-z]{1,3}[0-9]{1,20}(?![a-z0-9])|[A-Z]{1,40}(?![a-z])|[A-Z]?[a-z]{1,40}|[0-9]{1,40}",
)
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|[\n\r]+|(?<=[。！？；।។။])")
_PIECE: Final = re.compile("[\0\1]?[^\0\1]+")
_UNSPACED: Final = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x0F00, 0x0FFF),  # Tibetan
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19DF),  # Tai
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x3005, 0x3007),
    (0x3040, 0x30FF),  # kana
    (0x31F0, 0x31FF),
    (0x3400, 0x9FFF),  # Han
    (0xA9E0, 0xA9FF),
    (0xAA60, 0xAADF),
    (0xAC00, 0xD7AF),  # Hangul: words carry particles
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
_LATER_SCRIPTS: Final = "\u0590"
"""Before it stand the alphabets whose accents can be left away."""

VALUE_WEIGHT: Final = 0.6
KIND_WEIGHT: Final = 0.3

_KINDS: Final = {
    "email": r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+",
    "url": r"https?://[^\s\"'<>]{1,500}|www\.[^\s\"'<>]{1,500}",
    "coordinates": r"-?\d{1,3}\.\d{2,}\s*,\s*-?\d{1,3}\.\d{2,}",
    "price": r"[$€£¥]\s?\d[\d,.]*|\b\d[\d,.]*\s?(?:dollars|euros|usd|eur|gbp)\b",
    "date": (
        r"\b\d{4}-\d{1,2}-\d{1,2}\b|\b\d{1,2}/\d{1,2}/\d{2,4}\b"
        r"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.? \d{1,2}(?:st|nd|rd|th)?\b"
    ),
    "time": r"\b\d{1,2}:\d{2}(?::\d{2})?(?:\s?(?:am|pm))?\b|\b\d{1,2}\s?(?:am|pm)\b",
    "phone": r"\+?\d{3}[-. ]\d{3,4}[-. ]\d{4}",
    "file": r"(?<![\w./~-])(?:[~.]?/)?(?:[\w.-]{1,64}/)*[\w-]{1,64}\.[a-z]{2,5}\d?\b|(?<!\w)~?/[\w./-]{2,200}",
    "quoted": r"\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|(?<!\w)'[^'\n]{1,200}'(?!\w)|`[^`\n]{1,200}`",
    "id": r"(?<![\w.])\d{5,}\b",
    "number": r"(?<![\w.])-?\d[\d,.]*\b",
}
_VALUE: Final = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()), re.IGNORECASE)
_DATES: Final = """
january february march april june july august september october november december monday tuesday wednesday thursday
friday saturday sunday week month year weekend today tomorrow yesterday
"""
_TIMES: Final = "tonight noon midnight clock morning afternoon evening"
KIND_OF_WORD: Final = {**dict.fromkeys(_DATES.split(), "date"), **dict.fromkeys(_TIMES.split(), "time")}
"""What kind of value a word stands for."""
_HINT: Final = re.compile(r"[0-9\"`“@/$€£¥]|(?<!\w)'|\w\.[a-zA-Z]")
"""Where nothing of this stands, there is no value."""
_UNNAMED: Final = frozenset({"quoted", "number"})

_WORDS: Final = """
a about after again all also am an and any anything are aren as at be because been before being both but by
can cannot could d did didn do does doesn doing don done each either else every few for from further gonna
got had has have having he hello hence her here hers hey hi him his how however i if in instead into is isn
it its itself just kindly let lets like ll m make many may maybe me might mine more most much must my myself
need needed needs neither no nor not now of off ok okay on once one only onto or other others our ours out
over own per perhaps please quite rather re really s same shall she should since so some something soon such
sure t than thank thanks that the their theirs them themselves then there therefore these they thing things
this those though through thus to together too toward towards under until up upon us use used uses using ve
very via want wants was wasn way we well were what whatever when whenever where whether which while who whom
whose why will with within without won would yes yet you your yours yourself
"""
STOP_WORDS: Final = frozenset(_WORDS.split())
"""English function words, forms of politeness and the pieces that apostrophes leave; names keep theirs."""


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without what is empty.

    >>> sentences("Lists files. Takes v1.2 paths!")
    ['Lists files.', 'Takes v1.2 paths!']
    """
    return [part for sentence in _SENTENCE.split(text) if (part := sentence.strip())]


def split_values(text: str) -> tuple[str, list[str], list[str]]:
    """Return a text without its values, the values, and the names of their kinds.

    >>> split_values("Mail 'Hi there' to ada@example.org at 10:30")
    ('Mail   to   at  ', ["'Hi there'", 'ada@example.org', '10:30'], ['email', 'time'])
    """
    if not _HINT.search(text):
        return text, [], []
    values: list[str] = []
    kinds: list[str] = []
    last = 0
    rest: list[str] = []
    for match in _VALUE.finditer(text):
        values.append(match[0])
        if match.lastgroup and match.lastgroup not in _UNNAMED:
            kinds.append(match.lastgroup)
        rest.append(text[last : match.start()])
        last = match.end()
    return " ".join([*rest, text[last:]]), values, list(dict.fromkeys(kinds))


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case.

    >>> words("readFile from_disk HTTPServer v2 S3Bucket")
    ['read', 'file', 'from', 'disk', 'http', 'server', 'v2', 's3', 'bucket']
    >>> words("文件搜索 café")
    ['文件', '件搜', '搜索', 'cafe']
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_CLASSES)
        if not text.isascii() or "\0" in text:
            return [word for token in text.split() for word in _words_of_mixed(token)]
    return [word.lower() for word in _NAME.findall(text)]


def _words_of_mixed(token: str) -> list[str]:
    """Return the words of a token with letters beyond ASCII."""
    found: list[str] = []
    run: list[str] = []
    for piece in _PIECE.findall(token):
        if piece[0] == "\0":
            run.append(piece[1])
            rest = piece[2:]
        elif piece[0] == "\1":
            if run:
                run[-1] += piece[1]
            rest = piece[2:]
        else:
            rest = piece
        if rest:
            found += _pairs(run) + _fold_word(rest)
            run = []
    return found + _pairs(run)


def _pairs(run: list[str]) -> list[str]:
    """Return letters as overlapping pairs; one alone stays alone."""
    return [first + second for first, second in pairwise(run)] or run


def _fold_word(word: str) -> list[str]:
    """Return a word in lower case; in Latin, Greek and Cyrillic without accents."""
    if word.isascii():
        return [part.lower() for part in _NAME.findall(word)]
    folded = word.casefold()
    if max(folded) < _LATER_SCRIPTS:
        folded = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    return [folded[:LONGEST]]


class _Classes(dict[int, str]):
    """What a character becomes before a text is split: itself, a space, or itself behind a mark.

    NUL stands before each letter of a script without spaces, SOH before what belongs to the letter before it.
    """

    def __missing__(self, point: int) -> str:
        self[point] = made = _class_of(point)
        return made


def _class_of(point: int) -> str:
    letter = chr(point)
    kind = unicodedata.category(letter)[0]
    unspaced = any(first <= point <= last for first, last in _UNSPACED)
    if kind == "M":
        return f"\1{letter}" if unspaced else letter
    if kind == "L" and unspaced:
        return f"\0{letter}"
    return letter if kind == "L" or unicodedata.category(letter) == "Nd" else " "


_CLASSES: Final = _Classes()


# -- the stem that the forms of an English word share: light, without a dictionary ----------------


_SINGULAR: Final = ("ss", "us", "is")
_INFLECTIONS: Final = (("ings", 2), ("ing", 2), ("edly", 2), ("ed", 2))
_DERIVATIONS: Final = (
    ("ization", 2), ("isation", 2), ("ation", 4), ("ition", 3), ("ion", 3), ("ment", 3), ("ator", 4), ("er", 3),
    ("or", 3), ("ly", 3), ("ate", 4), ("able", 3), ("ive", 3), ("e", 2),
)  # fmt: skip
"""Endings, and how many letters have to stand before them."""
_VOWEL: Final = re.compile("[aeiouy]")
_DOUBLE: Final = frozenset("bdfgmnprt")


def singular(word: str) -> str:
    """Return the singular of an English word, as far as its ending tells.

    >>> [singular(word) for word in ("queries", "boxes", "files", "status", "address")]
    ['query', 'box', 'file', 'status', 'address']
    """
    if len(word) < 4 or not word.endswith("s") or word.endswith(_SINGULAR):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("xes", "ches", "shes", "sses", "zes")):
        return word[:-2]
    return word[:-1]


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return what the forms of a word share.

    >>> sorted({stem(word) for word in ("create", "creates", "created", "creating", "creation")})
    ['creat']
    >>> sorted({stem(word) for word in ("transfer", "transferred", "transfers", "transferring")})
    ['transf']
    """
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    root = _without_double_end(_strip_ending(singular(word), _INFLECTIONS))
    root = _without_double_end(_strip_ending(root, _DERIVATIONS))
    if len(root) > 5 and root.endswith("at"):
        root = root[:-2]
    return root[:-1] + "i" if len(root) > 3 and root.endswith("y") else root


def _strip_ending(word: str, endings: tuple[tuple[str, int], ...]) -> str:
    """Return a word without the first of these endings that leaves enough of it."""
    for ending, least in endings:
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= least and _VOWEL.search(rest):
            return rest
    return word


def _without_double_end(word: str) -> str:
    """Return a word with one letter where its end has two."""
    doubled = len(word) > 3 and word[-1] == word[-2] and (word[-1] in _DOUBLE or (word[-1] == "l" and len(word) > 5))
    return word[:-1] if doubled else word


def name_text(parts: Sequence[str]) -> str:
    """Return the words of a name, which its spellings share: case, separators, the plural.

    >>> name_text(("getFiles",)), name_text(("get", "file"))
    ('get file', 'get file')
    """
    return " ".join(singular(word) for part in parts for word in words(part))
