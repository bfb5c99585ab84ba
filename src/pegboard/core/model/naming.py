"""Names on the wire (G10), what someone may have meant, what tells one text from others; and names of sessions."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

LIMIT = 64
_AS_GOOD = 0.1
"""How much worse than the best a suggestion may be."""
_VALID = re.compile(rf"[A-Za-z0-9_-]{{1,{LIMIT}}}")
_INVALID = re.compile(r"[^A-Za-z0-9_-]+")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_]+")
_SAYS_NOTHING = frozenset(
    {
        *("a", "an", "and", "for", "of", "the", "with"),
        *("api", "context", "mcp", "model", "official", "protocol", "reference", "server", "simple", "tool", "tools"),
    }
)
_THAT_IT_IS_A_SERVER = re.compile(
    r"(?:(?:an?|the|official|simple)\s+)*(?:mcp|model context protocol)(?:\s+\(mcp\))?\s+server"
    r"(?:\s+(?:for|to|that|which))?(?:\s+(?:provid|expos|offer)(?:ing|es))?(?:\s+tools\s+(?:for|to))?[:,]?\s+",
    re.IGNORECASE,
)


def wire_name(plugin: str, tool: str, *, prefix: str | None = None) -> str:
    """Return the name of a tool on the wire: valid everywhere, at most 64 characters, stable.

    ``prefix`` None puts the plugin's name in front, ``""`` nothing. A name that had to be changed
    or cut carries a digest of its full id, so that two such names never become equal.

    >>> wire_name("git", "git_log")
    'git__git_log'
    >>> wire_name("git", "log", prefix="")
    'log'
    >>> wire_name("my files", "read it")
    'my_files__read_it_4f130f7b'
    """
    lead = plugin if prefix is None else prefix
    full = f"{lead}__{tool}" if lead else tool
    if _VALID.fullmatch(full):
        return full
    safe = _INVALID.sub("_", full)
    digest = hashlib.sha256(f"{plugin}/{tool}\0{full}".encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{safe[: LIMIT - 9]}_{digest}"


def may_be_of(name: str, plugin: str, *, prefix: str | None = None) -> bool:
    """Return whether a name on the wire may be that of something of a plugin.

    >>> may_be_of("my_files__read_it_4f130f7b", "my files"), may_be_of("git__log", "my files")
    (True, False)
    """
    lead = plugin if prefix is None else prefix
    return name.startswith(_INVALID.sub("_", f"{lead}__" if lead else "")[: LIMIT - 9])


def nearest(name: str, candidates: Iterable[str], *, limit: int = 3) -> tuple[str, ...]:
    """Return the candidates that someone who wrote ``name`` may have meant, best first.

    >>> nearest("devop", ["devops", "research"])
    ('devops',)
    """
    by_fold: dict[str, str] = {}
    for candidate in candidates:
        by_fold.setdefault(candidate.casefold(), candidate)
    wanted = name.casefold()[:200]
    if len(by_fold) > 2000:  # difflib is quadratic: keep what shares a beginning or contains it
        by_fold = {f: c for f, c in by_fold.items() if f[:2] == wanted[:2] or wanted in f}
    import difflib  # most starts suggest nothing

    found = difflib.get_close_matches(wanted, list(by_fold)[:2000], n=limit, cutoff=0.6)
    ratios = {fold: difflib.SequenceMatcher(None, fold, wanted).ratio() for fold in found}
    best = max(ratios.values(), default=0.0)
    return tuple(by_fold[fold] for fold in found if ratios[fold] > best - _AS_GOOD)


def is_within(one: str, other: str, slips: int) -> bool:
    """Return whether so many slips make one text of another: only what is so near to the diagonal is looked at.

    A slip is a letter more, less or other, or two neighbours that changed places.

    >>> is_within("devop", "devops", 1), is_within("gti", "git", 1), is_within("a", "abc", 1)
    (True, True, False)
    """
    if abs(len(one) - len(other)) > slips:
        return False
    same = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    one, other = one[same:], other[same:]
    far = slips + 1
    before: dict[int, int] = {}
    last = {column: column for column in range(min(slips, len(other)) + 1)}
    for row, letter in enumerate(one, 1):
        now: dict[int, int] = {0: row} if row <= slips else {}
        for column in range(max(1, row - slips), min(len(other), row + slips) + 1):
            sought = other[column - 1]
            cost = last.get(column - 1, far) + (letter != sought)
            cost = min(cost, last.get(column, far) + 1, now.get(column - 1, far) + 1)
            if row > 1 < column and letter == other[column - 2] and one[row - 2] == sought:
                cost = min(cost, before.get(column - 2, far) + 1)
            now[column] = cost
        if min(now.values(), default=far) > slips:
            return False
        before, last = last, now
    return last.get(len(other), far) <= slips


SUGGESTS: Final = "Did you mean "
"""What a question that names candidates begins with."""


def did_you_mean(name: str, candidates: Iterable[str], *, kind: str = "") -> str:
    """Return a question that names the nearest candidates, or nothing; ``kind`` is in front of each.

    >>> did_you_mean("devop", ["devops", "research"])
    "Did you mean 'devops'?"

    What was written is no suggestion:

    >>> did_you_mean("devops", ["devops"])
    ''
    """
    lead = f"{kind}:" if kind else ""
    found = [repr(f"{lead}{near}") for near in nearest(name, candidates) if f"{lead}{near}" != name]
    return f"{SUGGESTS}{' or '.join(found)}?" if found else ""


def one_line(text: str, *, limit: int | None = None) -> str:
    """Return the text as one line without control characters, cut at ``limit`` characters (F2)."""
    flat = text
    if not text.isprintable() or "  " in text or text != text.strip():
        flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if limit is not None and len(flat) > limit:
        return flat[: limit - 1].rstrip() + "…"
    return flat


def visible(text: str, *, limit: int) -> str:
    r"""Return the text with an escape for every character that cannot be printed, cut at ``limit`` characters.

    >>> visible("\x1b[31mred\tline", limit=40)
    '\\x1b[31mred\\tline'
    """
    cut = text[: limit + 1]
    if not cut.isprintable():
        cut = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
    return cut if len(cut) <= limit else f"{cut[: limit - 1]}…"


def sentences(text: str) -> list[str]:
    """Return the sentences of a description, each on one line.

    >>> sentences("List files. Use v1.2 of it, with care!")
    ['List files.', 'Use v1.2 of it, with care!']
    >>> sentences("列出文件。读取文件。")
    ['列出文件。', '读取文件。']
    """
    return [sentence for sentence in _SENTENCE.split(one_line(text)) if sentence]


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, on one line.

    >>> first_sentence("List files. Use it with care.")
    'List files.'
    """
    return _SENTENCE.split(one_line(text), maxsplit=1)[0]


def first_purpose(text: str) -> str:
    """Return what the first sentence of a description says something is for, without that it is a server.

    >>> first_purpose("A Model Context Protocol server providing tools to read Git repositories. Fast.")
    'read Git repositories.'
    >>> first_purpose("MCP server for filesystem access"), first_purpose("Serves files.")
    ('filesystem access', 'Serves files.')
    """
    sentence = first_sentence(text)
    return _THAT_IT_IS_A_SERVER.sub("", sentence, count=1) if _THAT_IT_IS_A_SERVER.match(sentence) else sentence


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name, snake and camel case taken apart, in lower case.

    >>> words_of("readFile_HTTP")
    ('read', 'file', 'http')
    """
    return tuple(word.casefold() for word in _WORD.findall(name))


def says_more(text: str, name: str) -> bool:
    """Return whether a text has a word that the name does not have, and that says something.

    >>> says_more("GitHub MCP Server", "github"), says_more("Issues and pull requests", "github")
    (False, True)
    """
    known = {*words_of(name), name.casefold()}
    return any(w not in known and w not in _SAYS_NOTHING and w not in name.casefold() for w in words_of(text))


def some_of(names: Sequence[str], most: int = 8) -> str:
    """Return as many of the names as may stand in a sentence, and how many more there are.

    >>> some_of(["csv", "docker", "sql"], 2)
    'csv, docker and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def agents_named(names: Iterable[str]) -> tuple[str, str]:
    """Return agents as the subject of a sentence, and the word that stands for them in the rest of it.

    >>> agents_named(["a"]), agents_named(["a", "b"])
    (("agent 'a'", 'it'), ("agents 'a', 'b'", 'they'))
    """
    quoted = [f"'{name}'" for name in names]
    return (f"agent {quoted[0]}", "it") if len(quoted) == 1 else (f"agents {some_of(quoted)}", "they")


# -- what tells one text from others: the sentence with words of its own ---------------------------


SENTENCE_CHARACTERS: Final = 60
"""How long a sentence in an answer is at most."""
_READ_CHARACTERS: Final = 4_000
"""How much of a description is read for sentences."""
_AS_DISTINCT: Final = 0.5
"""How much of the most distinct sentence's share of own words an earlier one needs to be preferred."""


def distinct_sentences(descriptions: Sequence[str]) -> tuple[str, ...]:
    """Return of each description the first sentence with words that the other descriptions lack, on one line.

    Where no sentence has any, it is the first one.

    >>> distinct_sentences(["Part of the bank. Opens an account.", "Part of the bank. Closes an account."])
    ('Opens an account.', 'Closes an account.')
    >>> distinct_sentences(["List files. Use with care.", "Read a file. Use with care."])
    ('List files.', 'Read a file.')
    """
    split = [sentences(text[:_READ_CHARACTERS]) for text in descriptions]
    words = [[frozenset(words_of(sentence)) for sentence in of_one] for of_one in split]
    times = Counter(word for of_one in words for word in frozenset[str]().union(*of_one))
    return tuple(_most_distinct(of_one, sets, times) for of_one, sets in zip(split, words, strict=True))


def _most_distinct(split: list[str], words: list[frozenset[str]], times: Mapping[str, int]) -> str:
    if not split:
        return ""
    shares = [sum(times[word] == 1 for word in own) / max(len(own), 1) for own in words]
    enough = max(shares) * _AS_DISTINCT
    chosen = next(place for place, share in enumerate(shares) if share >= enough)
    sentence = split[chosen]
    return sentence if len(sentence) <= SENTENCE_CHARACTERS else one_line(sentence, limit=SENTENCE_CHARACTERS)


LONGEST: Final = 512
"""How many characters such a text may have."""


def label_problem(value: object) -> str:
    """Return what is wrong with a session id, a principal or a turn label, or nothing.

    >>> label_problem("thread-42"), label_problem("")
    ('', 'is empty.')
    """
    if not isinstance(value, str):
        return "is not a string."
    if not value:
        return "is empty."
    if len(value) > LONGEST:
        return f"has {len(value)} characters; at most {LONGEST} are allowed."
    try:
        value.encode()
    except UnicodeEncodeError:
        return "is not valid Unicode."
    return ""
