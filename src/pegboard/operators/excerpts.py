"""The lines of a configuration around a problem, as they are written, without the secrets in them (X5).

A refused edit may be any text: what is secret is found by how YAML and JSON are written, line by line, and where that
leaves a doubt a value is hidden.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pegboard.core.model.masking import MASK, Masker, names_secret

AROUND: Final = 2
"""How many lines are shown before and after the one that is wrong."""
BEFORE: Final = 100
AFTER: Final = 200
"""How many characters of a line are shown before and after what is wrong in it."""
_SHORTEST: Final = 4
_WORD: Final = re.compile(r"\"[^\"]*\"?|'[^']*'?|[\w.$-]+|\S")
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|\'(?:[^\']|\'\')*\'?')
_KEY: Final = re.compile(r"[^\s\"'#{}\[\],:][^\"'{}\[\],\n]{0,200}?(?=[ \t]{0,20}:(?:\s|$))")
_COLON: Final = re.compile(r"[ \t]*:")
_IN_FLOW: Final = re.compile(r"(?:[^{}\[\],#]|(?<=\S)#)+")
_HIDDEN_IN_FLOW: Final = re.compile(r"[^{}\[\],]+")
_IN_BLOCK: Final = re.compile(r"(?:[^#]|(?<=\S)#)+")
_AT_END: Final = re.compile(r"\s*(?:[,}\]#]|$)")
_NUMBER: Final = re.compile(r"\d[\d_.]*\s*")
_REFERENCE: Final = re.compile(r"[\"']?\$\{[A-Za-z_][\w:]*\}[\"']?\s*")
_NAMES: Final = re.compile(r"[A-Za-z][\w.-]*")
_LAST: Final = re.compile(r"(?<![\w.])[A-Za-z][\w.-]*$")
_GAP: Final = re.compile(r"[\s\"':=,\[({|>]*")
_NEXT_KEY: Final = re.compile(r"[\w.-]+[\"']?[ \t]*:(?:\s|$)")
_PART: Final = re.compile(r"[^\"',{}\[\]&]+")
_USER: Final = re.compile(r"(?<=//)[^/\s'\"]+(?=@)")
_FLAG: Final = re.compile(r"[\"']?--?([A-Za-z][\w.-]{0,100})\W*")
_NESTED: Final = re.compile(r"[ \t]*(?:[|>&!][^\s]*[ \t]*)*(?:#.*)?$")
_TOP: Final = re.compile(r"[A-Za-z_]")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcerptLine:
    """One line of a file, cut; ``marked`` is what is wrong in it, nothing where that is another line."""

    number: int
    before: str
    marked: str = ""
    after: str = ""


class WrittenLines:
    """The lines of a file, with the place of every secret in them."""

    def __init__(self, text: str, masker: Masker) -> None:
        self._lines = re.split(r"\r\n|\r|\n", text)
        hiding = _Hiding()
        self._spans = list(hiding.spans(self._lines))
        self._masker = Masker(masker.values | hiding.found)

    def around(self, line: int, column: int | None) -> tuple[ExcerptLine, ...]:
        """Return the lines around a place, which counts from 1; none where the file is shorter."""
        if line == len(self._lines) + 1:  # the end of the file, where something is missing
            line, column = line - 1, None
        if not 0 < line <= len(self._lines):
            return ()
        first, last = max(1, line - AROUND), min(len(self._lines), line + AROUND)
        return tuple(self._shown(number, column if number == line else None) for number in range(first, last + 1))

    def _shown(self, number: int, column: int | None) -> ExcerptLine:
        text = self._without(number, None)
        prefix = self._without(number, column - 1) if column is not None else ""
        found = _WORD.match(text, len(prefix)) if column is not None and text.startswith(prefix) else None
        if found is None:
            return ExcerptLine(number=number, before=_end_cut(text))
        return ExcerptLine(
            number=number,
            before=_start_cut(text[: found.start()]),
            marked=_end_cut(found[0]),
            after=_end_cut(text[found.end() :]),
        )

    def _without(self, number: int, end: int | None) -> str:
        """Return a line without secrets, or what is before a place in it."""
        line, parts, at = self._lines[number - 1][:end], list[str](), 0
        for start, stop in self._spans[number - 1]:
            if start >= len(line):
                break
            if start >= at:
                parts += (line[at:start], MASK)
            at = max(at, stop)
        return self._masker.text("".join((*parts, line[at:])))


def _start_cut(text: str) -> str:
    return text if len(text) <= BEFORE else f"… {text[-BEFORE:]}"


def _end_cut(text: str) -> str:
    return text if len(text) <= AFTER else f"{text[:AFTER]} …"


class _Hiding:
    """A reader of lines that knows under which keys it is: it finds values, and which of them are secret."""

    def __init__(self) -> None:
        self.found = set[str]()
        """The secrets by themselves, to be hidden wherever else they stand."""
        self._depth = 0
        self._below: int | None = None
        """The indentation of a secret key; what stands deeper belongs to it."""
        self._inside: int | None = None
        """The depth of brackets that opened under a secret key."""
        self._secret = False
        """Whether the value that comes next is that of a secret key, or of a flag of that name."""
        self._comment: int | None = None
        """Where the comment of a line begins."""
        self._may_count = False
        """Whether it is a number of tokens where it is a number."""

    def spans(self, lines: Sequence[str]) -> Iterator[list[Span]]:
        """Yield the places of the secrets in each line."""
        for line in lines:
            self._enter(line)
            spans = list(self._of(line))
            comment = self._comment if self._comment is not None else len(line)
            yield sorted((*spans, *_beside_names(line, spans, comment)))
            if self._below is None and _ends_with_name(line):
                self._below = len(line) - len(line.lstrip())

    def _enter(self, line: str) -> None:
        text = line.lstrip()
        indent = len(line) - len(text)
        if not text:
            return
        if indent == 0 and _TOP.match(text):
            # Brackets that were left open above a key of the file are forgotten.
            self._depth, self._inside, self._secret = 0, None, False
        if self._below is not None and not (indent > self._below or (indent == self._below and text[0] == "-")):
            self._below = None

    def _of(self, line: str) -> Iterator[Span]:
        at, begins, flow, self._comment = 0, True, False, None
        while at < len(line):
            character = line[at]
            if character == "#":
                self._comment = at
                return
            if character.isspace() or (begins and character in "-?" and (at + 1 == len(line) or line[at + 1] == " ")):
                at += 1
            elif character in "{[}],":
                flow, begins, at = flow or character in "{[", True, at + 1
                self._bracket(character)
            elif (end := _key_end(line, at, begins=begins)) is not None:
                self._enter_key(line, at, end, flow=flow)
                at, begins = _past_colon(line, end), False
            else:
                end = _value_end(line, at, flow=flow, hidden=self._hidden)
                yield from self._value(line, at, end)
                at, begins = end, False

    @property
    def _hidden(self) -> bool:
        return self._secret or self._below is not None or self._inside is not None

    def _enter_key(self, line: str, at: int, end: int, *, flow: bool) -> None:
        key = line[at:end].strip("\"' ")
        self._secret, self._may_count = names_secret(key), key.endswith("tokens")
        if self._secret and not flow:
            self._below = at
            self._secret = _NESTED.match(line, _past_colon(line, end)) is None

    def _bracket(self, character: str) -> None:
        if character in "{[":
            self._depth += 1
            if self._secret and self._inside is None:
                self._inside = self._depth
            self._secret = False
        elif character in "}]":
            if self._inside is not None and self._depth <= self._inside:
                self._inside = None
            self._depth, self._secret = max(0, self._depth - 1), False

    def _value(self, line: str, start: int, end: int) -> Iterator[Span]:
        text = line[start:end]
        open_ = _REFERENCE.fullmatch(text) or (self._may_count and _NUMBER.fullmatch(text))
        if self._hidden and not open_:
            bare = text.strip().strip("\"'")
            if self._secret and len(bare) >= _SHORTEST:
                self.found |= {bare, bare.rpartition(" ")[2]}
            yield start, end
        flag = _FLAG.fullmatch(text) if not self._hidden else None
        self._secret, self._may_count = flag is not None and names_secret(flag[1]), False


def _beside_names(line: str, known: Sequence[Span], comment: int) -> Iterator[Span]:
    """Yield what stands beside a name of secrets and is not known to be one: in a command, an address, a comment."""
    done = 0
    yield from ((found.start(), found.end()) for found in _USER.finditer(line) if not _covered(known, found.start()))
    for name in _NAMES.finditer(line):
        start = _past_gap(line, name)
        if name.start() < done or start >= len(line) or not names_secret(name[0].rstrip(".-")):
            continue
        counts = name[0].endswith("tokens") and _NUMBER.match(line, start)
        if counts or _REFERENCE.match(line, start) or _NEXT_KEY.match(line, start) or _covered(known, start):
            continue
        if _belongs(line, name, start):
            done = len(line) if name.start() > comment else _end_beside(line, start)
            yield start, done


def _past_gap(line: str, name: re.Match[str]) -> int:
    gap = _GAP.match(line, name.end())
    return gap.end() if gap is not None else name.end()


def _belongs(line: str, name: re.Match[str], start: int) -> bool:
    """Return whether what follows a name may be its value: not so where both are words of a sentence."""
    before = line[max(0, name.start() - 20) : name.start()].rstrip(" \t\"'")
    return line[name.end() : start].strip(" \t") != "" or before[-1:] in ("", "-", "{", "[", ",")


def _end_beside(line: str, start: int) -> int:
    quote = line[start - 1]
    if quote in ("'", '"'):
        end = line.find(quote, start)
        return end if end >= 0 and _AT_END.match(line, end + 1) else len(line)
    part = _PART.match(line, start)
    return part.end() if part is not None else len(line)


def _ends_with_name(line: str) -> bool:
    """Return whether a line ends with a name of secrets, whatever signs are behind it: its value may follow."""
    tail = line.rstrip(" \t\"':|>{[,&")[-100:]
    name = _LAST.search(tail)
    return name is not None and tail[name.start() - 1 : name.start()] != "-" and names_secret(name[0])


def _covered(spans: Sequence[Span], at: int) -> bool:
    before = bisect_right(spans, at, key=lambda span: span[0])
    return before > 0 and at < spans[before - 1][1]


def _key_end(line: str, at: int, *, begins: bool) -> int | None:
    """Return where a key ends that begins here."""
    quoted = _QUOTED.match(line, at)
    if quoted is not None:
        return quoted.end() if _COLON.match(line, quoted.end()) else None
    plain = _KEY.match(line, at) if begins else None
    return plain.end() if plain is not None else None


def _past_colon(line: str, at: int) -> int:
    colon = _COLON.match(line, at)
    return colon.end() if colon is not None else at


def _value_end(line: str, at: int, *, flow: bool, hidden: bool) -> int:
    """Return where a value ends; one that may be secret rather late than early."""
    quoted = _QUOTED.match(line, at)
    if quoted is not None:
        return quoted.end() if not hidden or _AT_END.match(line, quoted.end()) else len(line)
    if hidden:
        plain = _HIDDEN_IN_FLOW.match(line, at) if flow else None
        return plain.end() if plain is not None and _closes(line, plain.end()) else len(line)
    plain = (_IN_FLOW if flow else _IN_BLOCK).match(line, at)
    return plain.end() if plain is not None else at + 1


def _closes(line: str, at: int) -> bool:
    """Return whether a plain value in brackets may end here: no quote that it lost is closed behind it."""
    return line[at : at + 1] not in ("{", "[") and not any(line.count(quote, at) % 2 for quote in "\"'")
