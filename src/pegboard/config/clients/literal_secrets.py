"""Find what is secret in the servers of a client's file, wherever it was written down (X5)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from pegboard.config.documents import json_text, yaml_text
from pegboard.config.documents.document import UnreadableError, is_list, is_mapping
from pegboard.config.documents.expansion import REFERENCE
from pegboard.config.documents.value_edits import is_json
from pegboard.core.model.masking import MASK, Masker, mask_overrides
from pegboard.core.model.references import refers, without_references

SHORTEST: Final = 6
"""How long a value under ``env`` or ``headers`` must be to be hidden whatever its name."""
PAIRS: Final = frozenset({"env", "envs", "environment", "headers", "http_headers"})
HARMLESS: Final = re.compile(r"(?i)(true|false|debug|warning|error|default|production|development)")
_PATH: Final = re.compile(r"~?(?:/[\w. @+-]+)+/?")
_RANDOM: Final = re.compile(r"(?=[A-Za-z_-]*[0-9])(?=[0-9_-]*[A-Za-z])[A-Za-z0-9_-]{20,}")
PAIR: Final = re.compile(r"^-{0,2}([A-Za-z][\w.-]*)\s*[=:]\s*(.+)$", re.DOTALL)
SCHEME: Final = re.compile(r"(?i)\b(?:bearer|basic|token)\s+(\S+)")
FLAG: Final = re.compile(r"^-{1,2}([A-Za-z][\w-]*)$")
_MIXED: Final = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[^\s/\\]+")
_SERVERS: Final = frozenset({"servers", "mcpServers", "mcp"})
_WRITTEN: Final = re.compile(r"""([A-Za-z][\w.-]*)["']?[ \t]*[:=][ \t]*["']?([^\s"',{}\[\]]+)""")


def secrets_in(value: Any) -> frozenset[str]:
    """Return every text in servers, or in a whole file with some, that must not be shown.

    Values of ``env`` and ``headers``, arguments that follow a telling flag, pairs of a telling name,
    what is in the query of a URL, and what looks random.
    """
    return frozenset(text for text in _secrets_inside("", value, _secrets_in_pairs) if text.strip())


def secrets_in_text(text: str, file: str) -> frozenset[str]:
    """Return every text in a configuration that must not be shown, as far as that is known where it cannot be read."""
    try:
        value = json_text.compose(text, file).value if is_json(file) else yaml_text.compose(text, file).value
    except UnreadableError:
        return frozenset(found for line in text.splitlines() for found in _secrets_in_line(line) if found.strip())
    found = (
        _secrets_inside(section, inner, _telling_pairs) if section in _SERVERS else _secrets_by_key(section, inner)
        for section, inner in value.items()
    )
    return frozenset(text for texts in found for text in texts if text.strip())


def _secrets_by_key(key: str, value: Any) -> Iterator[str]:
    """Yield the texts whose key says that they are secret."""
    if is_mapping(value):
        for name, inner in value.items():
            yield from _secrets_by_key(name, inner)
    elif is_list(value):
        for inner in value:
            yield from _secrets_by_key("", inner)
    elif isinstance(value, str) and key and names_a_secret(key) and not _names_another(value):
        yield value


def _names_another(value: str) -> bool:
    """Return whether a value stands elsewhere: in a variable, or where a reference says."""
    return value.startswith("${") or refers(value)


def _secrets_in_line(line: str) -> Iterator[str]:
    line = REFERENCE.sub("", line)
    yield from _secrets_in_text(line)
    yield from (value for name, value in _WRITTEN.findall(line) if names_a_secret(name))


def names_in(value: Any) -> frozenset[str]:
    """Return the names of all variables and headers in servers, or in a whole file with some."""
    if is_list(value):
        return frozenset(name for inner in value for name in names_in(inner))
    if not is_mapping(value):
        return frozenset()
    here = (inner for key, inner in value.items() if key in PAIRS and is_mapping(inner))
    return frozenset(name for pairs in here for name in pairs).union(*map(names_in, value.values()))


def _secrets_inside(key: str, value: Any, of_pairs: Callable[[Mapping[str, Any]], Iterator[str]]) -> Iterator[str]:
    if is_mapping(value):
        yield from of_pairs(value) if key in PAIRS else ()
        for name, inner in value.items():
            yield from _secrets_inside(name, inner, of_pairs)
    elif is_list(value):
        yield from _secrets_in_arguments([part for part in value if isinstance(part, str)])
        for inner in value:
            yield from _secrets_inside("", inner, of_pairs)
    elif isinstance(value, str):
        yield from _secrets_in_text(value)
        if key and names_a_secret(key) and not _names_another(value):
            yield value


def _secrets_in_pairs(pairs: Mapping[str, Any]) -> Iterator[str]:
    texts = (
        value
        for name, value in pairs.items()
        if isinstance(value, str) and not value.startswith("${") and not (_is_path(value) and not names_a_secret(name))
    )
    hidden = (text for text in texts if len(text) >= SHORTEST and not HARMLESS.fullmatch(text))
    yield from (text for text in hidden if not refers(text))


def _is_path(text: str) -> bool:
    """Return whether a value is a path by its look: what names a folder is to be read in a reason."""
    return _PATH.fullmatch(text) is not None and _RANDOM.search(text) is None


def _telling_pairs(pairs: Mapping[str, Any]) -> Iterator[str]:
    """Yield the values that may be secret by their look: of letters and digits, without a word or a path among them."""
    yield from (text for text in _secrets_in_pairs(pairs) if _MIXED.fullmatch(text))


def _secrets_in_arguments(arguments: list[str]) -> Iterator[str]:
    for number, argument in enumerate(arguments):
        yield from _secrets_in_text(argument)
        before = FLAG.match(arguments[number - 1]) if number else None
        if before and names_a_secret(before[1]) and not argument.startswith("${"):
            yield argument
        if (pair := PAIR.match(argument)) and names_a_secret(pair[1]) and not pair[2].startswith("${"):
            yield pair[2]


def _secrets_in_text(text: str) -> Iterator[str]:
    text = without_references(text)
    yield from SCHEME.findall(text)
    yield from _RANDOM.findall(text)
    if "://" in text and "?" in text:
        yield from (value for _, value in parse_qsl(urlsplit(text).query) if len(value) >= SHORTEST)


def looks_secret(text: str) -> bool:
    """Return whether a text is one by its look: as random as a key."""
    return _RANDOM.fullmatch(text) is not None


def secret_part_of(before: str, argument: str) -> tuple[str, str]:
    """Return which name says that an argument is secret, and what of it is; nothing where none does."""
    flag = FLAG.match(before)
    if flag and names_a_secret(flag[1]) and not argument.startswith("-"):
        return flag[1], argument
    pair = PAIR.match(argument)
    return (pair[1], pair[2]) if pair and names_a_secret(pair[1]) else ("", "")


def names_a_secret(name: str) -> bool:
    """Return whether the values of this name are secrets.

    >>> names_a_secret("GITHUB_TOKEN"), names_a_secret("LOG_LEVEL")
    (True, False)
    """
    return mask_overrides({name: "value"}, Masker(), frozenset())[name] == MASK
