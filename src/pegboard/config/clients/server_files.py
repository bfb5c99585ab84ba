"""Read the servers out of the file of any MCP client, in our own shape."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pegboard.config.clients.known import CODEX, GEMINI, PEGBOARD, VSCODE, ZED, Machine, Root, Spot, spot_of
from pegboard.config.documents import json_text, yaml_text
from pegboard.config.documents.document import (
    Document,
    Node,
    UnreadableError,
    fault,
    is_list,
    is_mapping,
    read_text,
    shown,
)
from pegboard.config.schema.mcp_json import ClientFile, client_file
from pegboard.core.model.tools import EMPTY
from pegboard.errors import ConfigError

PLACEHOLDER: Final = "placeholder"
"""What stands for an input that only the client can ask for, where tools are merely listed."""
_INPUT: Final = re.compile(r"\$\{input:([^}]*)\}")
_SHELL: Final = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_TOML_SPOT: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_RENAMED: Final[Mapping[str, Mapping[str, str]]] = {
    CODEX.name: {
        "http_headers": "headers",
        "tool_timeout_sec": "timeout",
        "enabled_tools": "enabledTools",
        "disabled_tools": "disabledTools",
    },
}
_REFERRED: Final = "env_http_headers"
_CODEX_OWN: Final = frozenset({"bearer_token_env_var", _REFERRED, "env_vars"})
_LEFT_OUT: Final[Mapping[str, frozenset[str]]] = {
    CODEX.name: frozenset(
        {*_CODEX_OWN, "startup_timeout_sec", "startup_timeout_ms", "required", "scopes", "tools", "oauth"}
    ),
    GEMINI.name: frozenset({"trust", "oauth", "authProviderType"}),
    VSCODE.name: frozenset({"dev", "sandbox", "sandboxEnabled", "gallery"}),
    ZED.name: frozenset({"source", "settings", "remote"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFile:
    """Hold the file of a client as it was read.

    ``root`` is where its servers stand, or should; ``entries`` are they as they are written, those
    of the current folder's own project (Claude Code) before those of the user. ``elsewhere`` names
    the other projects in the file that have servers.
    """

    spot: Spot
    text: str
    document: Document
    root: Root
    entries: Mapping[str, Any]
    elsewhere: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """Return the name under which the file is spoken of."""
        return self.document.file

    def translated(self) -> ClientFile:
        """Return the servers in our own shape."""
        client = self.spot.client.name
        entries = {name: _entry(client, entry) for name, entry in self.entries.items()}
        value: Any = entries
        for key in reversed(self.root):
            value = {key: value}
        found = client_file(self.document, value, self.root)
        return replace(found, unavailable={**found.unavailable, **self.only_its_own()})

    def only_its_own(self) -> Mapping[str, str]:
        """Return the servers that nobody but this client can start, and why."""
        client = self.spot.client.name
        return {name: message for name, entry in self.entries.items() if (message := _lost(client, entry))}


def read(path: Path, machine: Machine, *, spot: Spot | None = None) -> ServerFile:
    """Return what a client's file says; raises ``ConfigError`` where it cannot be read.

    ``spot`` says whose file it is; without it that is told from its name and from what stands in it.
    """
    path = path.expanduser()
    file = shown(path)
    try:
        text = read_text(path, file=file)
        document = compose(text, file, path.suffix.lower())
    except UnreadableError as error:
        found = error.problem
        raise ConfigError(found.message, code=found.code, hint=found.hint, location=found.place) from None
    value: dict[str, Any] = document.value
    spot = spot or spot_of(path, value, machine)
    root = next((root for root in spot.client.roots if is_mapping(_at(value, root))), spot.client.roots[0])
    own = _at(value, root)
    if own is not None and not is_mapping(own):
        place = document.place(root)
        raise ConfigError(f"{'.'.join(root)} is not an object of servers.", code="no_servers", location=place)
    project, elsewhere = _projects(value, machine)
    return ServerFile(
        spot=spot,
        text=text,
        document=document,
        root=root,
        entries={**(own or {}), **project},
        elsewhere=elsewhere,
    )


def compose(text: str, file: str, suffix: str) -> Document:
    """Return what a text in JSON, YAML or TOML says; raises :class:`UnreadableError`."""
    match suffix:
        case ".toml":
            return _toml(text, file)
        case ".yaml" | ".yml":
            return yaml_text.compose(text, file)
        case _:
            return json_text.compose(text, file)


def _toml(text: str, file: str) -> Document:
    import tomllib

    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        found = _TOML_SPOT.search(message)
        at = (int(found[1]), int(found[2])) if found and found[1] else None
        message = message[: found.start()] if found else message
        raise fault(file, "syntax", f"is not valid TOML: {message[:1].lower()}{message[1:]}.", at=at) from None
    return Document(file=file, root=Node(value, 1, 1))


def _at(value: Any, path: Root) -> Any:
    for part in path:
        value = value.get(part) if is_mapping(value) else None
    return value


def _projects(value: Mapping[str, Any], machine: Machine) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the servers of the current folder's project in ``.claude.json``, and the other projects."""
    projects = value.get("projects")
    if not is_mapping(projects):
        return EMPTY, ()
    having = {
        name: servers
        for name, project in projects.items()
        if is_mapping(project) and is_mapping(servers := project.get("mcpServers")) and servers
    }
    here = next((str(f) for f in (machine.folder, *machine.folder.parents) if str(f) in having), None)
    return having.get(here or "", EMPTY), tuple(name for name in having if name != here)


# -- what each client writes in its own way --------------------------------------------------------


def _entry(client: str, entry: Any) -> Any:
    """Return one server as most clients write it."""
    if not is_mapping(entry):
        return entry
    left_out, renamed = _LEFT_OUT.get(client, frozenset[str]()), _RENAMED.get(client, {})
    found = {renamed.get(key, key): value for key, value in entry.items() if key not in left_out}
    if is_list(command := found.get("command")) and command and not is_list(found.get("args") or []):
        found["command"] = command[0]  # what is wrong is told of `args`
    match client:
        case CODEX.name:
            return _codex(entry, found)
        case GEMINI.name:
            return _gemini(found)
        case ZED.name:
            return _zed(entry, found)
        case PEGBOARD.name:
            return found
        case _:
            if found.get("trust") != "annotations":
                found.pop("trust", None)
            return found


def _codex(entry: Mapping[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Codex names variables instead of referring to them, and refers to none in text."""
    found = _strings(found, lambda text: text.replace("${", "$${"))
    headers, env, referred = (_pairs(part) for part in (found.get("headers"), found.get("env"), entry.get(_REFERRED)))
    if headers is None or env is None or referred is None:
        return found
    headers |= {name: f"${{{variable}}}" for name, variable in referred.items()}
    if isinstance(variable := entry.get("bearer_token_env_var"), str):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    passed = entry.get("env_vars")
    names = [name for name in passed if isinstance(name, str)] if is_list(passed) else []
    env = {**{name: f"${{{name}:-}}" for name in names}, **env}
    return {**found, **({"headers": headers} if headers else {}), **({"env": env} if env else {})}


def _pairs(value: Any) -> dict[str, Any] | None:
    """Return a mapping of one's own, an empty one for nothing, or None for what is no mapping."""
    return {} if value is None else dict(value) if is_mapping(value) else None


def _gemini(found: dict[str, Any]) -> dict[str, Any]:
    """Gemini's ``url`` is that of a server of the older kind, and ``$NAME`` refers to a variable."""
    if isinstance(env := found.get("env"), dict):
        found["env"] = _strings(env, lambda text: _SHELL.sub(lambda m: f"${{{m[1] or m[2]}}}", text))
    if "url" in found and "httpUrl" not in found:
        found.setdefault("type", "sse")
    return found


def _zed(entry: Mapping[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Zed has written the command in a mapping of its own, called ``command`` or ``source``."""
    for key in ("source", "command"):
        if is_mapping(nested := entry.get(key)):
            found.pop("command", None)
            parts = {("command" if name == "path" else name): value for name, value in nested.items() if name != "type"}
            found = {**parts, **found}
    return found


def _lost(client: str, entry: Any) -> str:
    """Return why a server is known to its client only, or nothing."""
    found = _entry(client, entry)
    if client == ZED.name and is_mapping(found) and not (found.get("command") or found.get("url")):
        return "an extension of Zed starts it, and only Zed knows how"
    return ""


def _strings(value: Any, change: Callable[[str], str]) -> Any:
    """Return a value with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if is_mapping(value):
        return {key: _strings(inner, change) for key, inner in value.items()}
    return [_strings(inner, change) for inner in value] if is_list(value) else value


# -- inputs ----------------------------------------------------------------------------------------


def with_inputs(entry: Any, inputs: Any) -> tuple[Any, tuple[str, ...]]:
    """Return a server with its inputs filled in, and the names of those that a placeholder stands for.

    ``inputs`` is that section of the file: what has a default or choices takes the first of them.
    """
    if not is_mapping(entry) or entry.get("url") is not None:
        return entry, ()
    known = {i.get("id"): i for i in inputs if is_mapping(i)} if is_list(inputs) else {}
    guessed: dict[str, None] = {}

    def filled(found: re.Match[str]) -> str:
        asked = known.get(found[1], {})
        options = asked.get("options")
        first = asked.get("default", options[0] if is_list(options) and options else None)
        if isinstance(first, str):
            return first.replace("${", "$${")
        guessed[found[1]] = None
        return PLACEHOLDER

    return _strings(entry, lambda text: _INPUT.sub(filled, text)), tuple(guessed)
