"""Secrets that stand in plain in the servers of a file, and what replaces each (G13).

What :mod:`pegboard.config.clients.literal_secrets` hides may be harmless; what is reported here is named like a secret,
or has the form of a provider's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pegboard.config.clients.literal_secrets import FLAG, HARMLESS, PAIR, PAIRS, SCHEME, SHORTEST, names_a_secret
from pegboard.config.documents.document import KeyPath, is_list, is_mapping
from pegboard.support import own_folder

_KNOWN: Final = re.compile(
    r"(?:gh[pousr]_|github_pat_|glpat-|sk-|xox[abprs]-|AKIA|AIza|ntn_|hf_|pypi-|npm_|dop_v1_|shpat_|sbp_)[\w-]{10,}"
)
"""How the keys of providers begin."""
_PATH: Final = re.compile(r"(?:~|\.{1,2})?[/\\]|[A-Za-z]:[/\\]|\$\w+$")
"""What is a path, or a variable of a shell."""
_PASSWORD: Final = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")
KEYRING: Final = "keyring:{name}"
"""What refers to a secret in the keyring, by its name."""
_QUERY: Final = re.compile(r"[?&]([\w.-]+)=([^&#\s]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainSecret:
    """A secret in the settings of a server: where it stands, and under which name it may be kept elsewhere."""

    server: str
    path: KeyPath
    name: str
    text: str = field(repr=False)
    value: str = field(repr=False)

    def with_reference(self, reference: str = KEYRING) -> str:
        """Return the text with a reference in place of the secret."""
        return self.text.replace(self.value, f"${{{reference.format(name=self.name)}}}")

    @property
    def line(self) -> str:
        """Return what is to be written in its place."""
        key = self.path[-1]
        return (
            f'"{self.with_reference()}"'
            if isinstance(key, int) or key == "url"
            else f'{key}: "{self.with_reference()}"'
        )


def file_reference_in(configuration: Path) -> str:
    """Return what refers to a secret in a file of its own, by its name, in the folder that a configuration has."""
    folder = own_folder.folder_of(configuration) / own_folder.SECRETS
    with suppress(ValueError, RuntimeError):  # it is elsewhere, or there is no home folder
        return f"file:~/{folder.relative_to(Path.home()).as_posix()}/{{name}}"
    return f"file:{folder.as_posix()}/{{name}}"


def plain_secrets(servers: Mapping[str, Any]) -> tuple[PlainSecret, ...]:
    """Return the secrets that stand in plain in servers, each once for each place; equal ones have one name.

    >>> [(one.path, one.line) for one in plain_secrets({"gh": {"headers": {"Authorization": "Bearer abcdef12"}}})]
    [(('headers', 'Authorization'), 'Authorization: "Bearer ${keyring:GH_TOKEN}"')]
    """
    names: dict[str, str] = {}
    found: list[PlainSecret] = []
    for server, entry in servers.items():
        for path, text, value, label in _secrets_of_server(entry):
            name = _free_name(label if path[0] in ("env", "environment") else f"{server}_{label}", server, value, names)
            found.append(PlainSecret(server=server, path=path, name=name, text=text, value=value))
    return tuple(found)


def without_plain(servers: Mapping[str, Any], secrets: Iterable[PlainSecret], reference: str) -> dict[str, Any]:
    """Return servers with a reference in place of each of these secrets: ``KEYRING``, or that of :func:`in_file`."""
    changed = dict(servers)
    for secret in secrets:
        changed[secret.server] = _replace_secret(changed[secret.server], secret.path, secret, reference)
    return changed


def _replace_secret(value: Any, path: KeyPath, secret: PlainSecret, reference: str) -> Any:
    if not path:
        return str(value).replace(secret.value, f"${{{reference.format(name=secret.name)}}}")
    key, *rest = path
    inner = tuple(rest)
    if is_list(value):
        return [_replace_secret(one, inner, secret, reference) if n == key else one for n, one in enumerate(value)]
    return {n: _replace_secret(one, inner, secret, reference) if n == key else one for n, one in value.items()}


def _free_name(wanted: str, server: str, value: str, names: dict[str, str]) -> str:
    """Return a name that no other value has."""
    bare, owner = (re.sub(r"\W+", "_", text).strip("_").upper() for text in (wanted, server))
    longer = bare if bare.startswith(owner) else f"{owner}_{bare}"
    for name in (bare or "SECRET", longer):
        if names.setdefault(name, value) == value:
            return name
    number = 2
    while names.setdefault(f"{longer}_{number}", value) != value:
        number += 1
    return f"{longer}_{number}"


_FoundSecret = tuple[KeyPath, str, str, str]
"""Where, the whole text, the secret in it, what it is."""


def _secrets_of_server(entry: Any) -> Iterator[_FoundSecret]:
    if not is_mapping(entry):
        return
    for part in PAIRS & entry.keys():
        for key, text in entry[part].items() if is_mapping(entry[part]) else ():
            if isinstance(text, str) and (value := _secret_in_pair(key, text)):
                yield (part, key), text, value, "TOKEN" if key.lower() == "authorization" else key
    for part in ("args", "command"):
        if is_list(entry.get(part)):
            yield from _secrets_of_arguments(part, entry[part])
    for key in ("url", "serverUrl", "httpUrl"):
        if isinstance(entry.get(key), str):
            yield from (((key,), entry[key], value, label) for value, label in _secrets_in_url(entry[key]))


def _secret_in_pair(key: str, text: str) -> str:
    """Return the secret in the value of a variable or header, or nothing."""
    scheme = SCHEME.search(text)
    value = scheme[1] if scheme else text
    if (names_a_secret(key) or scheme is not None or _KNOWN.fullmatch(value)) and _may_be_secret(value):
        return value
    return next((inner for inner, _ in _secrets_in_url(text)), "")


def _secrets_of_arguments(part: str, arguments: list[Any]) -> Iterator[_FoundSecret]:
    before: re.Match[str] | None = None
    for number, text in enumerate(arguments):
        if not isinstance(text, str):
            continue
        pair, scheme = PAIR.match(text), SCHEME.search(text)
        candidates = [
            (text, before[1]) if before and names_a_secret(before[1]) else ("", ""),
            (scheme[1], "TOKEN") if scheme else ("", ""),
            (pair[2], pair[1]) if pair and "://" not in pair[0] and names_a_secret(pair[1]) else ("", ""),
            *_secrets_in_url(text),
            *((known, "TOKEN") for known in _KNOWN.findall(text)),
        ]
        found = next(((value, label) for value, label in candidates if value and _may_be_secret(value)), None)
        if found is not None:
            yield (part, number), text, *found
        before = FLAG.match(text)


def _secrets_in_url(text: str) -> Iterator[tuple[str, str]]:
    """Yield the passwords and keys in a URL, and what each is."""
    if "://" in text:
        yield from ((found[1], "PASSWORD") for found in _PASSWORD.finditer(text) if _may_be_secret(found[1]))
        pairs = ((found[1], found[2]) for found in _QUERY.finditer(text))
        yield from ((value, name) for name, value in pairs if names_a_secret(name) and _may_be_secret(value))


def _may_be_secret(value: str) -> bool:
    plain = len(value) >= SHORTEST and not HARMLESS.fullmatch(value) and not value.isdecimal()
    return plain and "${" not in value and not _PATH.match(value) and not value.isspace()
