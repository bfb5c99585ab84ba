"""What a configuration would run, import, read and send, read off its text: nothing of it is resolved (P11)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pegboard.config.clients.literal_secrets import flagged
from pegboard.config.clients.server_files import compose
from pegboard.config.documents.document import UnreadableError, is_list, is_mapping
from pegboard.core.model.masking import MASK

_REFERENCE: Final = re.compile(r"(?<!\$)\$\{([^}]*)\}")
_FUNCTION: Final = re.compile(r"[\w.]+:[\w.]+")
_COMMANDS: Final = ("command", "cmd")
_ADDRESSES: Final = ("url", "httpUrl", "serverUrl", "uri", "issuer", "store")
_CODE: Final = ("python", "when")


def would_run(name: str, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Return what a configuration would do on this machine, one line each; secrets in its text are not shown.

    Args:
        name: how messages name it.
        texts: what is in its files, the configuration itself first.

    Raises:
        UnreadableError: its own text is no configuration.
    """
    found: dict[str, None] = {}
    for number, (file, text) in enumerate(texts.items()):
        try:
            value = compose(text, name, Path(file).suffix.lower()).value
        except UnreadableError:
            if number == 0:
                raise
            continue  # a loadout that is refused
        found.update(dict.fromkeys(_lines(value, "")))
    return tuple(found)


def _lines(value: Any, at: str) -> Iterator[str]:
    if is_mapping(value):
        yield from _of_entry(value, at)
        for key, inner in value.items():
            yield from _lines(inner, f"{at}.{key}" if at else str(key))
    elif is_list(value):
        for index, inner in enumerate(value):
            yield from _lines(inner, f"{at}[{index}]")
    elif isinstance(value, str):
        yield from (f"{at}: read ${{{found}}}" for found in _REFERENCE.findall(value))


def _of_entry(value: Mapping[str, Any], at: str) -> Iterator[str]:
    for key, inner in value.items():
        where = at or str(key)
        if key in _COMMANDS and (words := _words(inner, value.get("args"))):
            yield f"{where}: run {words}"
        elif key in _ADDRESSES and isinstance(inner, str):
            yield f"{where}: connect to {_address(inner)}"
        elif key in _CODE:
            for target in inner.values() if is_mapping(inner) else (inner,):
                if isinstance(target, str) and (key == "python" or _FUNCTION.fullmatch(target)):
                    yield f"{where}: import {target}"


def _words(command: Any, args: Any) -> str:
    """Return a command line without the secrets that stand behind a flag which says so."""
    first = command if is_list(command) else [command.get("path") if is_mapping(command) else command]
    words = [word for word in (*first, *(args if is_list(args) else ())) if isinstance(word, str)]
    return shlex.join(_shown(before, word) for before, word in pairwise(["", *words]))


def _shown(before: str, word: str) -> str:
    secret = flagged(before, word)[1]
    return word.replace(secret, MASK) if secret and "${" not in secret else word


def _address(text: str) -> str:
    """Return an address without what may be a secret in it: a user with a password, values behind the question mark."""
    head, query, _ = text.partition("?")
    scheme, slashes, rest = head.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{slashes}{host.rpartition('@')[2]}{slash}{path}{'?…' if query else ''}"
