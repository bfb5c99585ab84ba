"""Take the configuration file of any MCP client as ours: its servers, each a toolkit of its own, and their logins."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, get_args

from pydantic_core import PydanticCustomError

from pegboard.config.documents.document import Document, is_list, is_mapping
from pegboard.config.schema.sandboxes import KEYS, UnsupportedRuleError, confine_of
from pegboard.config.schema.sections import File, ServerSection, Transport, known_keys
from pegboard.config.schema.values import seconds
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.core.model.tools import EMPTY
from pegboard.problems import Problem

_ROOTS: Final = (("mcpServers",), ("servers",), ("mcp", "servers"))
_KNOWN_TOP: Final = frozenset({"mcpServers", "servers", "inputs", "$schema", "sandbox"})
_RENAMED: Final = {"serverUrl": "url", "httpUrl": "url", "environment": "env"}
_ONLY: Final = ("includeTools", "enabledTools", "tools")
_WITHOUT: Final = ("excludeTools", "disabledTools")
_IN_VIEW: Final = {"alwaysLoad": True, "deferTools": "never"}
_IGNORED: Final = frozenset(
    {"name", "id", "gallery", "version", "icon", "$schema", "enabled", "disableToolCache", *_IN_VIEW, *_ONLY, *_WITHOUT}
)
_LIMITS: Final = ("timeout", "start")
_MOST_SECONDS: Final = 3600
"""What a number without a unit is at most where it counts seconds: no client lets a call take longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedClientFile:
    """What a client's file says, in our own shape.

    ``unavailable`` says why a server cannot run; ``filters`` are the overrides that let only some of
    its functions through; ``in_view`` are the servers whose tools the client is to load always. ``sandboxed`` are those
    that VS Code runs in a sandbox: why no confinement keeps it, or nothing where ``confine`` says it.
    """

    document: Document
    value: dict[str, Any]
    problems: tuple[Problem, ...] = ()
    unavailable: Mapping[str, str] = field(default=EMPTY)
    filters: Mapping[str, dict[str, Any]] = field(default=EMPTY)
    in_view: tuple[str, ...] = ()
    sandboxed: Mapping[str, str] = field(default=EMPTY)


def servers_root(value: Mapping[str, Any], *, json_file: bool) -> tuple[str, ...] | None:
    """Return where the servers of a client's file stand, or None for a file of our own.

    ``servers`` alone is in both; in a JSON file it is VS Code's, unless another section of ours
    stands beside it.
    """
    if any(key in value for key in known_keys(File) if key != "servers"):
        return None
    if "mcpServers" in value:
        return ("mcpServers",)
    if not json_file:
        return None
    for root in _ROOTS:
        inner: Any = value
        for part in root:
            inner = inner.get(part) if is_mapping(inner) else None
        if is_mapping(inner):
            return root
    return None


def client_file(
    document: Document, value: dict[str, Any], root: tuple[str, ...], *, folder: Path | None = None
) -> ParsedClientFile:
    """Return a client's file in our own shape; what we do not know is warned about and ignored.

    ``folder`` is where its client starts its servers, if known.
    """
    document = replace(document, heads={"servers": root})
    problems = [_meaningless_key_problem(key, document) for key in value if key not in _KNOWN_TOP and key != root[0]]
    entries: Any = value
    beside: Any = None
    for part in root:
        beside = entries.get("sandbox")
        entries = entries[part]
    if not is_mapping(entries):
        return ParsedClientFile(document=document, value={"servers": entries}, problems=tuple(problems))
    servers: dict[str, Any] = {}
    unavailable: dict[str, str] = {}
    filters: dict[str, dict[str, Any]] = {}
    sandboxed: dict[str, str] = {}
    for name, entry in entries.items():
        if not is_mapping(entry):
            servers[name] = entry
            continue
        servers[name], others = with_auth(_server(entry))
        problems += [_meaningless_login_warning(name, key, why, document) for key, why in others.items()]
        problems += _limit_warnings(name, servers[name], document)
        if (why := _apply_sandbox(servers[name], beside, folder)) is not None:
            sandboxed[name] = why
        problems += _unknown(servers[name], name, document)
        filters[name] = _filter(entry)
        kind = entry.get("type", entry.get("transport"))
        if isinstance(kind, str) and kind not in get_args(Transport):
            servers[name].pop("type", None)
            servers[name].pop("transport", None)
            unavailable[name] = f"its type '{one_line(kind, limit=40)}' is not one of stdio, http and sse"
    return ParsedClientFile(
        document=document,
        value={"servers": servers},
        problems=tuple(problems),
        unavailable={**unavailable, **{name: why for name, why in sandboxed.items() if why}},
        sandboxed=sandboxed,
        filters={name: rule for name, rule in filters.items() if rule},
        in_view=tuple(name for name, entry in entries.items() if is_mapping(entry) and _stays_in_view(entry)),
    )


def _stays_in_view(entry: Mapping[str, Any]) -> bool:
    return any(entry.get(key) == mark for key, mark in _IN_VIEW.items())


def _meaningless_key_problem(key: str, document: Document) -> Problem:
    return Problem(
        severity="warning",
        code="unknown_key",
        message=f"the key '{key}' has no meaning here and is ignored.",
        hint=did_you_mean(key, _KNOWN_TOP) if key.casefold().startswith("mcp") else "",
        place=document.place((key,), key=True),
    )


def _meaningless_login_warning(name: str, key: str, why: str, document: Document) -> Problem:
    """Return the warning that a key of a server's login has no meaning here."""
    section, _, inner = key.partition(".")
    message = f"the key '{one_line(key, limit=60)}' is ignored: {why}."
    place = document.place(("servers", name, section, inner), key=True)
    return Problem(severity="warning", code="unknown_key", message=message, place=place)


def _server(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return one server in our own shape, whichever client wrote it."""
    server = {_RENAMED.get(key, key): value for key, value in entry.items() if key not in _IGNORED}
    command = server.get("command")
    if is_list(command) and command:
        server["command"] = command[0]
        given = server.get("args", [])
        server["args"] = [*command[1:], *given] if is_list(given) else given
    if entry.get("enabled") is False:
        server["disabled"] = True
    if is_list(args := server.get("args")):
        server["args"] = [_text(part) for part in args]
    for key in ("env", "headers"):
        if is_mapping(server.get(key)):
            server[key] = {name: _text(value) for name, value in server[key].items() if value is not None}
    return server


def _limit_warnings(name: str, server: dict[str, Any], document: Document) -> list[Problem]:
    """Return a warning for each limit whose unit is a guess, or that is no time and is taken out.

    Where the unit of a client is known, its limits are texts with a unit already.
    """
    problems: list[Problem] = []
    for key in _LIMITS:
        limit = server.get(key)
        if limit is None or (isinstance(limit, str) and "${" in limit):
            continue
        message = ""
        if key == "timeout" and isinstance(limit, int | float) and not isinstance(limit, bool):
            server[key] = limit if limit <= _MOST_SECONDS else limit / 1000
            message = f"the unit of {limit} is not known here; it is taken for {server[key]:g} s."
        try:
            seconds(server[key])
        except PydanticCustomError:
            del server[key]
            message = "is not a possible duration and is ignored."
        if message:
            hint = "Write it with its unit: 60s, 2m, 500ms."
            place = document.place(("servers", name, key))
            problems.append(Problem(severity="warning", code="bad_duration", message=message, hint=hint, place=place))
    return problems


def _apply_sandbox(server: dict[str, Any], beside: Any, folder: Path | None) -> str | None:
    """Confine a server as its sandbox does; return why that cannot be, nothing where it is, None without a sandbox."""
    try:
        said, why = confine_of(server, beside, folder), ""
    except UnsupportedRuleError as error:
        said, why = None, f"VS Code runs it in a sandbox {error}"
    for key in KEYS:
        server.pop(key, None)
    if said is not None:
        server["confine"] = said
    return None if said is None and not why else why


def _text(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, bool | int | float) else value


def _unknown(server: dict[str, Any], name: str, document: Document) -> list[Problem]:
    """Return a warning for every key that we do not know, and take it out."""
    problems: list[Problem] = []
    known = known_keys(ServerSection)
    for key in [key for key in server if key not in known]:
        del server[key]
        message = f"the key '{key}' is not known here and is ignored."
        place = document.place(("servers", name, key), key=True)
        at = replace(place, path=place.path.removesuffix(f".{key}"))
        problems.append(
            Problem(severity="warning", code="unknown_key", message=message, hint=did_you_mean(key, known), place=at)
        )
    return problems


def _filter(entry: Mapping[str, Any]) -> dict[str, Any]:
    rule: dict[str, Any] = {}
    for keys, name in ((_ONLY, "include_tools"), (_WITHOUT, "exclude_tools")):
        for key in keys:
            names = entry.get(key)
            if is_list(names) and all(isinstance(n, str) for n in names) and "*" not in names:
                rule[name] = names
    return rule


_OF_OAUTH: Final = {
    "clientId": "client_id",
    "client_id": "client_id",
    "clientSecret": "client_secret",
    "client_secret": "client_secret",
    "scopes": "scopes",
    "scope": "scopes",
}
"""The keys of `oauth` in Claude Code, VS Code, Gemini CLI and opencode, and in Codex."""
_OF_AUTH: Final = {"CLIENT_ID": "client_id", "CLIENT_SECRET": "client_secret", "scopes": "scopes"}
"""The keys of `auth` in Cursor."""
_ANSWERED_TO: Final = frozenset({"callbackPort", "callback_port", "callback_url", "redirectUri"})
_SWITCHED: Final = "enabled"
_OFF: Final[Mapping[str, Any]] = {"kind": "none"}


def with_auth(server: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a server with our `auth`, and why each other key of its login means nothing here.

    Where a client logs in by itself there is nothing to say: we do so, too. What has no form of a client is left as it
    stands, and is reported as anything that is written wrongly.

    >>> with_auth({"url": "u", "oauth": {"clientId": "x", "scope": "read write"}})
    ({'url': 'u', 'auth': {'client_id': 'x', 'scopes': ['read', 'write']}}, {})
    >>> with_auth({"url": "u", "oauth": False})[0]
    {'url': 'u', 'auth': {'kind': 'none'}}
    """
    found = dict(server)
    oauth, auth = found.get("oauth"), found.get("auth")
    said: dict[str, Any] = {}
    others: dict[str, str] = {}
    if is_mapping(oauth) or isinstance(oauth, bool):
        del found["oauth"]
        off = oauth is False or (is_mapping(oauth) and oauth.get(_SWITCHED) is False)
        said = dict(_OFF) if off else _rename_keys(oauth if is_mapping(oauth) else {}, _OF_OAUTH)
        others = {} if off or not is_mapping(oauth) else _unknown_keys("oauth", oauth, {*_OF_OAUTH, _SWITCHED})
    if auth == "oauth":
        del found["auth"]
    elif is_mapping(auth) and any(key in _OF_AUTH for key in auth if key.isupper()):
        del found["auth"]
        said, others = {**said, **_rename_keys(auth, _OF_AUTH)}, {**others, **_unknown_keys("auth", auth, {*_OF_AUTH})}
    if said and "auth" not in found and found.get("url") is not None:
        found["auth"] = said
    return found, others


def _rename_keys(section: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    values = {names[key]: value for key, value in section.items() if key in names and value not in (None, "")}
    if isinstance(scopes := values.get("scopes"), str):
        values["scopes"] = scopes.split()
    return {key: value for key, value in values.items() if not (is_list(value) and not value)}


def _unknown_keys(section: str, value: Mapping[str, Any], known: set[str]) -> dict[str, str]:
    """Return why each key that is not known has no meaning here."""
    own = "Pegboard uses its own redirect address for logins"
    return {
        f"{section}.{key}": own if key in _ANSWERED_TO else "it is not known here" for key in value if key not in known
    }
