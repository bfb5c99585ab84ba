"""What people mean by everyday words: the words that tools use for it, and whether something is to be read or written.

They stand in `everyday_words.txt`. A line has words and phrases of requests, a colon, and words of tools; it goes on in
lines that begin with two spaces. `*` ends the beginning of a word, `..` is up to five words, and a value of a request,
such as a path or the key of an issue, is there as its kind in brackets. The words of tools are added to a request,
so that they count only where what may be found has them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Final, Literal

from pegboard.search.analysis.words import words

Intent = Literal["read", "write", ""]

_TABLE: Final = Path(__file__).with_name("everyday_words.txt")

_VALUES: Final = (
    ("url", ":.", re.compile(r"https?://\S+|www\.\S+")),
    ("email", "@", re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+")),
    ("channel", "#", re.compile(r"(?<![\w&])#[a-z][\w-]{1,40}\b")),
    ("xlsx", ".", re.compile(r"[\w./~-]{1,200}\.(?:xlsx|xls|xlsm|ods|csv)\b", re.IGNORECASE)),
    ("db", ".", re.compile(r"[\w./~-]{1,200}\.(?:db|sqlite3?)\b", re.IGNORECASE)),
    ("issue", "-", re.compile(r"\b[A-Z][A-Z0-9]{1,9}-\d{1,6}\b(?!-)")),
    ("path", "/.", re.compile(r"(?<![\w/])(?:~|\.{1,2})?/[\w./-]{2,200}|(?<![\w/.])[\w-]{1,64}\.[a-z]{2,4}\b")),
    ("repo", "/", re.compile(r"(?<![\w/.~@])[a-z][\w.-]{1,40}/[a-z][\w.-]{1,60}(?![\w/])", re.IGNORECASE)),
    ("sha", "", re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")),
    ("cell", "", re.compile(r"\b[A-Z]{1,2}\d{1,4}(?::[A-Z]{1,2}\d{1,4})?\b")),
    ("time", "", re.compile(r"\b\d{1,2}:\d{2}\b|\b\d{1,2}\s?[ap]m\b", re.IGNORECASE)),
    ("number", "", re.compile(r"\b\d+\b")),
)
"""Kinds of values, the most telling first: each replaces what its pattern matches.

The second text has the characters of which one is in every match; it is empty where a digit is.
"""
_DIGIT: Final = re.compile(r"\d")
ONE_WORD, SEVERAL = 0.7, 1.0
"""How much the words of tools count that one word, or a phrase, stands for."""
_ANY: Final = "<word>"
_GAP: Final = ".."
MOST_BETWEEN: Final = 5
"""How many words a gap in a phrase may be."""
_ITEM: Final = re.compile(r"<\w+>|[^\s<>]+")

_QUESTION_WORDS_WITHIN: Final = """
what which who whom whose why how whats hows whos welche welcher welches wer warum quel quelle quels quelles combien
pourquoi cual cuales cuantos quien quali quale quanto chi
"""
_QUESTION_WORDS: Final = f"""
{_QUESTION_WORDS_WITHIN}
when where is are am was were do does did has have had any anything wheres wie wo wann gibt que ou quand donde cuando
como por hay quando dove come
"""
_POLITE_WORDS: Final = """
please can could would will you pls hey hi hello ok okay so and now just kindly bitte kannst du konntest puedes podrias
peux tu puoi i we ich need want to like d
"""
_READING_VERBS: Final = """
show list find search look see read get check give display view summarize summarise explain describe count compare
fetch print inspect verify zeig zeige finde suche lies muestra busca lee montre cherche lis mostra cerca leggi liste
dime sag tldr
"""
_WRITING_VERBS: Final = """
add create make new write send post delete remove set change update edit rename move copy put save store remember
forget log book schedule invite cancel start stop restart run kill close open mark assign merge push commit fill click
type press turn leave shut throw choose clean wipe note notify install deploy scale roll bring reply answer report
file upload share archive label mute react approve reject insert append draw colour color highlight replace fix undo
convert clear empty erstelle erstell lege losche loesch losch schick schicke sende verschieb verschiebe benenne andere
stopp stoppe starte merk buche crea elimina borra envia mueve cambia anade cree supprime envoie deplace ajoute modifie
cancella invia sposta aggiungi
"""
_COURTESIES: Final = """
thanks thank thx sorry apologies awesome amazing great cool nice perfect lovely brilliant wonderful excellent wow haha
lol congrats congratulations cheers welcome danke entschuldigung gracias perdon merci pardon grazie scusa obrigado
obrigada desculpa
"""
LONGEST_COURTESY: Final = 7
"""A longer text that begins with thanks or praise may ask for something behind it."""
LONGEST_WORD: Final = 40
"""The first word of a courtesy ends within so many characters."""
_TO_WHOM: Final = {"tell": frozenset(("me", "us")), "sag": frozenset(("mir", "uns"))}
"""Verbs that ask for something before these words, and say something to others before any other."""
_QUESTIONS, _ASKS, _POLITE, _READS, _WRITES, _COURTEOUS = (
    frozenset(text.split())
    for text in (_QUESTION_WORDS, _QUESTION_WORDS_WITHIN, _POLITE_WORDS, _READING_VERBS, _WRITING_VERBS, _COURTESIES)
)


@dataclass(frozen=True, slots=True)
class _PhraseMeaning:
    items: tuple[str, ...]
    means: dict[str, float]


def _items(text: str) -> tuple[str, ...]:
    found: list[str] = []
    for item in _ITEM.findall(text):
        if item.startswith("<") or item == _GAP:
            found.append(item)
        elif item.endswith("*"):
            found.append(f"{''.join(words(item[:-1]))}*")
        else:
            found += words(item)
    return tuple(found)


def _phrases() -> tuple[Mapping[str, Sequence[_PhraseMeaning]], Mapping[str, Sequence[_PhraseMeaning]]]:
    """Return the phrases by their first word, and those whose first is the beginning of a word."""
    whole: dict[str, list[_PhraseMeaning]] = {}
    begun: dict[str, list[_PhraseMeaning]] = {}
    for line in _TABLE.read_text("utf-8").replace("\n  ", " ").splitlines():
        asked, _, meant = line.partition(":")
        for text in asked.split(",") if line else ():
            if items := _items(text):
                first = items[0]
                known = begun.setdefault(first[:-1], []) if first.endswith("*") else whole.setdefault(first, [])
                weight = ONE_WORD if len(items) == 1 else SEVERAL
                known.append(_PhraseMeaning(items, dict.fromkeys(meant.split(), weight)))
    return whole, begun


_WHOLE, _BEGUN = _phrases()
_SHORTEST, _LONGEST = min(map(len, _BEGUN)), max(map(len, _BEGUN))


def with_kinds(text: str) -> list[str]:
    """Return the words of a text, in lower case, with the kind of each value in its place.

    >>> with_kinds("Move ~/a.txt to #ops")
    ['move', '<path>', 'to', '<channel>']
    """
    found: list[str] = []
    digits = _DIGIT.search(text) is not None
    for name, signs, pattern in _VALUES:
        if any(sign in text for sign in signs) if signs else digits:
            text = pattern.sub(f" \x00{name}\x00 ", text)
    for at, part in enumerate(text.split("\x00")):
        found += [f"<{part}>"] if at % 2 else words(part)
    return found


def meant_words(text: str) -> Mapping[str, float]:
    """Return the words of tools that the everyday words of a text stand for, each with how much it counts.

    >>> meant_words("which files are modified")["diff"]
    0.7
    """
    tokens = with_kinds(text)
    words_alone: dict[str, float] = {}
    of_phrases: dict[str, float] = {}
    for at, token in enumerate(tokens):
        alone, phrases = _meanings_beginning(token)
        words_alone |= alone
        for phrase in phrases:
            if _matches_at(phrase.items[1:], tokens, at + 1):
                of_phrases |= phrase.means
    return words_alone | of_phrases


@lru_cache(maxsize=4_096)
def _meanings_beginning(token: str) -> tuple[Mapping[str, float], Sequence[_PhraseMeaning]]:
    """Return what a word means alone, and the phrases that begin with it."""
    starts = (token[:length] for length in range(_SHORTEST, min(len(token), _LONGEST) + 1))
    found = (*_WHOLE.get(token, ()), *chain.from_iterable(_BEGUN.get(start, ()) for start in starts))
    alone: dict[str, float] = {}
    for phrase in found:
        if len(phrase.items) == 1:
            alone |= phrase.means
    return alone, [phrase for phrase in found if len(phrase.items) > 1]


def _matches_at(items: Sequence[str], tokens: Sequence[str], at: int) -> bool:
    """Return whether a phrase is in a text from a place on."""
    for number, item in enumerate(items):
        if item == _GAP:
            rest, last = items[number + 1 :], min(len(tokens), at + MOST_BETWEEN + 1)
            return any(_matches_at(rest, tokens, place) for place in range(at, last))
        if at >= len(tokens) or not _matches_item(item, tokens[at]):
            return False
        at += 1
    return True


def _matches_item(item: str, token: str) -> bool:
    return item in (token, _ANY) or (item.endswith("*") and token.startswith(item[:-1]))


def intent_of(text: str) -> Intent:
    """Return whether a request is one to read or to write something; nothing where it does not say.

    >>> intent_of("which files are modified"), intent_of("please rename it"), intent_of("the roof")
    ('read', 'write', '')
    """
    tokens = words(text[:1_000])
    asked = next((at for at, token in enumerate(tokens) if token not in _POLITE), None)
    if asked is None:
        return ""
    if tokens[asked] in _QUESTIONS:
        return "read"
    pairs = list(pairwise([*tokens[asked:], ""]))
    begins = _verb_intent(*pairs[0])
    if begins or "?" in text:
        return begins or "read"
    for one, after in pairs:
        if intent := "read" if one in _ASKS else _verb_intent(one, after):
            return intent
    return ""


def _verb_intent(word: str, after: str) -> Intent:
    """Return what a word asks for before another one: to tell others something writes, and so does to get rid of it."""
    if word in _TO_WHOM:
        return "read" if after in _TO_WHOM[word] else "write"
    if word == "get" and after in ("rid", "it"):
        return "write"
    return "read" if word in _READS else "write" if word in _WRITES else ""


def is_courtesy(text: str) -> bool:
    """Return whether a text is thanks, praise or an apology and nothing else.

    >>> is_courtesy("sorry for the late reply"), is_courtesy("thanks, now mail it to ada@b.org")
    (True, False)
    """
    if not _COURTEOUS.intersection(words(text.lstrip()[:LONGEST_WORD])):
        return False
    tokens = with_kinds(text[:1_000])
    return (
        0 < len(tokens) <= LONGEST_COURTESY
        and tokens[0] in _COURTEOUS
        and not any(token.startswith("<") for token in tokens)
    )
