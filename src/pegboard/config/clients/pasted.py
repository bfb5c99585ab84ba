"""Read servers out of what someone pastes: any client's file, a part of one, or one server (X5)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from pegboard.config.client_files.client import input_variable
from pegboard.config.client_files.known import every_spot
from pegboard.config.client_files.server_files import ServerFile, compose, read_client_file, server_file
from pegboard.config.clients.compiled_servers import own_configuration
from pegboard.config.clients.generated import ServersToTake, servers_to_take
from pegboard.config.clients.installing import inputs_as_variables
from pegboard.config.clients.literal_secrets import looks_secret, names_a_secret, secret_part_of
from pegboard.config.documents.document import UnreadableError, is_list, is_mapping
from pegboard.config.location import Machine
from pegboard.core.model.tools import EMPTY
from pegboard.errors import ConfigError
from pegboard.problems import Problem

PASTED: Final = "pasted text"
LONGEST: Final = 256 * 1024
_ROOTS: Final = ("mcpServers", "servers", "mcp_servers", "context_servers", "mcp")
_STARTS: Final = ("command", "url", "httpUrl", "serverUrl")
_TOML: Final = re.compile(r"\s*(?:#[^\n]*\n\s*)*\[[\w.\"'-]+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadServer:
    """A server in our own shape, with a reference in place of each secret that was written into it.

    ``variables`` are those secrets by the name of the reference, ``rule`` is which of its tools its client showed.
    ``unsupported_reason`` says why only its client can start it; empty where Pegboard can.
    """

    name: str
    entry: Mapping[str, Any] = field(repr=False)
    variables: Mapping[str, str] = field(default=EMPTY, repr=False)
    rule: Mapping[str, Any] = field(default=EMPTY)
    unsupported_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadServers:
    """The servers of one text or file, whose it is, and what is wrong with it."""

    title: str
    file: str
    servers: tuple[ReadServer, ...]
    problems: tuple[Problem, ...] = ()


def read_pasted(text: str, machine: Machine) -> ReadServers:
    """Return the servers of a text.

    Raises:
        ConfigError: it cannot be read, or has no servers.
    """
    if len(text) > LONGEST:
        raise ConfigError("The text is too long for servers.", code="no_servers", hint="Paste the servers alone.")
    if not text.strip():
        raise _no_servers_error()
    try:
        text, suffix = _file_text_and_suffix(text)
        document = compose(text, PASTED, suffix)
    except UnreadableError as error:
        found = error.problem
        raise ConfigError(found.message, code=found.code, hint=found.hint, location=found.place) from None
    if document.problems:
        found = document.problems[0]
        raise ConfigError(found.message, code=found.code, hint=found.hint, location=found.place)
    return read_servers(server_file(text, document, Path(f"{PASTED}{suffix}"), machine, None), machine)


def installed_client_files(machine: Machine) -> Iterator[ServerFile]:
    """Yield the files of this machine's clients that have servers; what cannot be read is passed over."""
    for spot in every_spot(machine):
        try:
            if spot.path.is_file() and (file := read_client_file(spot.path, machine, spot=spot)).entries:
                yield file
        except (ConfigError, OSError):
            continue


def read_servers(file: ServerFile, machine: Machine) -> ReadServers:
    """Return the servers of a client's file, but for Pegboard itself; raises ``ConfigError`` where it has none."""
    folder = file.spot.folder
    own = {name for name, entry in file.entries.items() if own_configuration(entry, machine, folder) is not None}
    file = replace(file, entries={name: entry for name, entry in file.entries.items() if name not in own})
    if not file.entries:
        raise _no_servers_error()
    client_only, taken = dict(file.client_only_servers()), servers_to_take(file)
    servers = dict(inputs_as_variables(dict(taken.servers)))
    found = [_server(name, servers.get(name), taken, client_only.get(name, "")) for name in map(str, file.entries)]
    return ReadServers(
        title=file.spot.client.title, file=file.label, servers=tuple(found), problems=tuple(taken.problems)
    )


def _server(name: str, entry: Any, taken: ServersToTake, unsupported_reason: str) -> ReadServer:
    if not is_mapping(entry):
        why = unsupported_reason or taken.excluded.get(name, "") or "its entry is not valid"
        return ReadServer(name=name, entry={}, unsupported_reason=why)
    plain, variables = with_references(name, entry)
    return ReadServer(
        name=name,
        entry=plain,
        variables=variables,
        rule=taken.filters.get(name, EMPTY),
        unsupported_reason=unsupported_reason,
    )


def _file_text_and_suffix(text: str) -> tuple[str, str]:
    """Return a text that is a client's whole file, and how such a file's name ends."""
    bare = text.strip().removesuffix(",")
    if bare.startswith('"') and not bare.startswith('"""'):
        bare = f"{{{bare}}}"
    suffix = ".json" if bare.startswith(("{", "//", "/*")) else ".toml" if _TOML.match(bare) else ".yaml"
    value: Any = compose(bare, PASTED, suffix).value
    if any(is_mapping(value.get(root)) for root in _ROOTS):
        return bare, suffix
    if any(isinstance(value.get(key), str) for key in _STARTS):
        return json.dumps({"mcpServers": {_name_of(value): value}}), ".json"
    if value and all(is_mapping(part) and any(key in part for key in _STARTS) for part in value.values()):
        return json.dumps({"mcpServers": value}), ".json"
    raise _no_servers_error()


def _no_servers_error() -> ConfigError:
    hint = 'It should contain {"mcpServers": {"name": {"command": …}}}, or the same in the format of another client.'
    return ConfigError(f"{PASTED}: there are no MCP servers in it.", code="no_servers", hint=hint)


def _name_of(server: Mapping[str, Any]) -> str:
    """Return a name for a server that was pasted without one, after its address or the program that it starts."""
    if isinstance(url := server.get("url"), str):
        host = (urlsplit(url).hostname or "").split(".")
        return next((part for part in reversed(host[:-1]) if part not in ("www", "mcp", "api")), "") or "server"
    args = server.get("args")
    words = [str(server.get("command", "")), *(map(str, args) if is_list(args) else ())]
    named = [PurePath(word).name.partition("@")[0] for word in words if "mcp" in word.casefold() or "server" in word]
    bare = re.sub(r"(?i)(^|[-_])(mcp|server)(?=[-_]|$)", "", (named or words)[0]).strip("-_")
    return re.sub(r"[^\w-]+", "-", bare) or "server"


# -- secrets ---------------------------------------------------------------------------------------


def with_references(name: str, entry: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a server with a reference in place of each secret, and the secrets by the names of the references.

    >>> with_references("gh", {"command": "x", "env": {"GH_TOKEN": "abc", "MODE": "fast"}})
    ({'command': 'x', 'env': {'GH_TOKEN': '${GH_TOKEN}', 'MODE': 'fast'}}, {'GH_TOKEN': 'abc'})
    """
    references = _References(name)
    changed = dict(entry)
    if is_mapping(env := entry.get("env")):
        changed["env"] = {key: references.value(key, value) for key, value in env.items()}
    if is_mapping(headers := entry.get("headers")):
        changed["headers"] = {key: references.header(key, value) for key, value in headers.items()}
    if is_list(args := entry.get("args")):
        changed["args"] = references.arguments(args)
    if isinstance(url := entry.get("url"), str):
        changed["url"] = references.address(url)
    return changed, references.found


class _References:
    """The references of one server."""

    def __init__(self, server: str) -> None:
        self._server = server
        self.found: dict[str, str] = {}

    def value(self, name: str, value: Any) -> Any:
        """Return the value of a variable: a reference where its name or its look says that it is secret."""
        if not isinstance(value, str) or "${" in value or not value.strip():
            return value
        return (
            self._reference_for(name, value)
            if names_a_secret(name) or looks_secret(value)
            else self._with_references(name, value)
        )

    def header(self, name: str, value: Any) -> Any:
        """Return the value of a header, with its scheme."""
        if not isinstance(value, str) or "${" in value or not value.strip():
            return value
        scheme, space, rest = value.partition(" ")
        own = "TOKEN" if name.casefold() == "authorization" else name
        if space and scheme.casefold() in ("bearer", "basic", "token"):
            return f"{scheme} {self._reference_for(f'{self._server}_{own}', rest)}"
        return (
            self._reference_for(f"{self._server}_{own}", value)
            if names_a_secret(name) or looks_secret(value)
            else value
        )

    def arguments(self, args: list[Any]) -> list[Any]:
        """Return arguments: what follows a telling flag, and what looks secret, as references."""
        found: list[Any] = []
        for index, argument in enumerate(args):
            if not isinstance(argument, str) or "${" in argument:
                found.append(argument)
                continue
            flag, secret = secret_part_of(str(args[index - 1]) if index else "", argument)
            plain = (
                argument.replace(secret, self._reference_for(f"{self._server}_{flag}", secret)) if secret else argument
            )
            found.append(self._with_references(self._server, plain))
        return found

    def address(self, url: str) -> str:
        """Return an address without what is secret in it."""
        if "${" in url:
            return url
        parts = urlsplit(url)
        if "@" in parts.netloc:
            userinfo = parts.netloc.rpartition("@")[0]
            url = url.replace(f"{userinfo}@", f"{self._reference_for(f'{self._server}_LOGIN', userinfo)}@", 1)
        for key, value in parse_qsl(parts.query):
            if value and (names_a_secret(key) or looks_secret(value)) and f"={value}" in url:
                url = url.replace(f"={value}", f"={self._reference_for(f'{self._server}_{key}', value)}", 1)
        return self._with_references(self._server, url)

    def _with_references(self, name: str, text: str) -> str:
        """Return a text with a reference for each word in it that looks secret, and for logins in addresses."""
        if "${" not in text and "://" in text and "@" in (netloc := urlsplit(text).netloc):
            userinfo = netloc.rpartition("@")[0]
            return text.replace(f"{userinfo}@", f"{self._reference_for(f'{name}_LOGIN', userinfo)}@", 1)
        if looks_secret(text):
            return self._reference_for(f"{name}_SECRET", text)
        return text

    def _reference_for(self, name: str, secret: str) -> str:
        variable = base = input_variable(name)
        number = 1
        while self.found.get(variable, secret) != secret:
            number += 1
            variable = f"{base}_{number}"
        self.found[variable] = secret
        return f"${{{variable}}}"
