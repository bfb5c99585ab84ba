"""Values in a request: what is passed to a tool rather than what it does, and what kind of value it is."""

from __future__ import annotations

import re
from typing import Final

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
