"""What a configuration would run, import, read and send, read off its text: nothing of it is resolved (P11)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pegboard.config.client_files.server_files import compose
from pegboard.config.clients.literal_secrets import secret_part_of
from pegboard.config.code_and_secrets import may_run_code_by
from pegboard.config.documents.document import UnreadableError, is_list, is_mapping
from pegboard.config.documents.expansion import REFERENCE
from pegboard.core.model.masking import MASK

_FUNCTION: Final = re.compile(r"[\w.]+:[\w.]+")
_COMMANDS: Final = ("command", "cmd")
_ADDRESSES: Final = ("url", "httpUrl", "serverUrl", "uri", "issuer", "store")
_CODE: Final = ("python", "when")
_VARIABLES: Final = ("env", "envs", "environment")
_VARIABLE_FILES: Final = ("envFile", "env_file")
_CODE_FOLLOWS: Final = ("-c", "-e", "--eval")
_MAY_BE_SECRET: Final = re.compile(r"[\w./+=~-]+")
"""What a secret looks like; what looks otherwise may be code, and is shown."""
_LONGEST: Final = 500


def would_run(name: str, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Return what a configuration would do on this machine, one line each; secrets in its text are not shown.

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
        found.update(dict.fromkeys(map(_visible_line, _lines(value, ""))))
    return tuple(found)


def _visible_line(text: str) -> str:
    """Return a line that shows what it has of control characters, and that no one has to scroll through."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: _LONGEST + 1])
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"


def _lines(value: Any, at: str) -> Iterator[str]:
    if is_mapping(value):
        yield from _commands_of_entry(value, at)
        for key, inner in value.items():
            yield from _lines(inner, f"{at}.{key}" if at else str(key))
    elif is_list(value):
        for index, inner in enumerate(value):
            yield from _lines(inner, f"{at}[{index}]")
    elif isinstance(value, str):
        yield from (f"{at}: read ${{{found}}}" for found in REFERENCE.findall(value))


def _commands_of_entry(value: Mapping[str, Any], at: str) -> Iterator[str]:
    for key, inner in value.items():
        where = at or str(key)
        if key in _COMMANDS and (words := _words(inner, value.get("args"))):
            yield f"{where}: run {words}"
        elif key in _ADDRESSES and isinstance(inner, str):
            yield f"{where}: connect to {_address(inner)}"
        elif key == "cwd" and isinstance(inner, str):
            yield f"{where}: in the folder {inner}"
        elif key in _VARIABLE_FILES and isinstance(inner, str):
            yield f"{where}: read the variables in {inner}"
        elif key in _VARIABLES and is_mapping(inner):
            yield from (f"{where}: with {_variable(str(name), told)}" for name, told in inner.items())
        elif key in _CODE:
            for target in inner.values() if is_mapping(inner) else (inner,):
                if isinstance(target, str) and (key == "python" or _FUNCTION.fullmatch(target)):
                    yield f"{where}: import {target}"


def _variable(name: str, value: Any) -> str:
    """Return a variable with its value, or the name alone where that is plain data and may be a secret."""
    return _masked_word("", f"{name}={value}") if may_run_code_by(name) else name


def _words(command: Any, args: Any) -> str:
    """Return a command line without the secrets that stand behind a flag which says so."""
    first = command if is_list(command) else [command.get("path") if is_mapping(command) else command]
    words = [word for word in (*first, *(args if is_list(args) else ())) if isinstance(word, str)]
    return shlex.join(_masked_word(before, word) for before, word in pairwise(["", *words]))


def _masked_word(before: str, word: str) -> str:
    secret = secret_part_of(before, word)[1]
    if before in _CODE_FOLLOWS or not _MAY_BE_SECRET.fullmatch(secret):
        return word
    return f"{word.removesuffix(secret)}{MASK}"


def _address(text: str) -> str:
    """Return an address without what may be a secret in it: a user with a password, values behind the question mark."""
    head, query, _ = text.partition("#")[0].partition("?")
    scheme, slashes, rest = head.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{slashes}{host.rpartition('@')[2]}{slash}{path}{'?…' if query else ''}"
