"""Read the servers out of the file of any MCP client, in our own shape."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pegboard.config.client_files.client import ClientFilePlace, Root, editor_variables, with_inputs
from pegboard.config.client_files.known import ANY, PEGBOARD, spot_of
from pegboard.config.documents import json_text, yaml_text
from pegboard.config.documents.document import (
    Document,
    Node,
    UnreadableError,
    display_path,
    fault,
    is_list,
    is_mapping,
    read_input,
    read_text,
)
from pegboard.config.documents.expansion import MissingValue
from pegboard.config.location import Machine
from pegboard.config.schema.mcp_json import ParsedClientFile, client_file
from pegboard.core.model.tools import EMPTY
from pegboard.errors import ConfigError

STANDARD_INPUT: Final = "standard input"
PLACEHOLDER: Final = "placeholder"
"""What stands for an input that only the client can ask for, where tools are merely listed."""
_FOLDERS_OF_CLIENTS: Final = (".vscode", ".cursor", ".gemini", ".roo", ".kilocode", ".amazonq", ".codex", ".github")
"""Those in a project's folder in which clients keep their files."""
_TOML_SPOT: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFile:
    """The file of a client as it was read.

    ``root`` is where its servers stand, or should; ``entries`` are they as they are written, those of the current
    folder's own project (Claude Code) before those of the user. ``project`` is the name of that project, None where it
    has none; ``elsewhere`` are those of the others that have some. ``unconfinable`` says why this system cannot confine
    what the client runs in a sandbox. ``start`` is within how many seconds the client wants each to have started.
    """

    spot: ClientFilePlace
    text: str
    document: Document
    root: Root
    entries: Mapping[str, Any]
    project: str | None = None
    elsewhere: tuple[str, ...] = ()
    unconfinable: str = ""
    start: float | None = None

    @property
    def label(self) -> str:
        """Return the name under which messages name the file."""
        return self.document.file

    @property
    def part(self) -> str:
        """Return which part of the file its servers are, nothing where they are the usual one."""
        return "/".join(self.root) if self.spot.scope == "local" else ""

    def translate_servers(self) -> ParsedClientFile:
        """Return the servers in our own shape."""
        found = self._client_file()
        return replace(found, unavailable={**found.unavailable, **self._client_only_servers(found)})

    def _client_file(self) -> ParsedClientFile:
        value: Any = {name: self.server(entry) for name, entry in self.entries.items()}
        for key in reversed(self.root):
            value = {key: value}
        if (beside := _value_at(self.document.value, (*self.root[:-1], "sandbox"))) is not None:
            holding: Any = _value_at(value, self.root[:-1])
            holding["sandbox"] = beside
        return client_file(self.document, value, self.root, folder=self.spot.folder)

    def server(self, entry: Any) -> Any:
        """Return one server as most clients write it, with the limit of the file for its start."""
        found = self.spot.client.server(entry)
        if self.start is None or not is_mapping(found) or "command" not in found:
            return found
        return {"start": self.start, **found}

    def sandboxed_servers(self) -> Mapping[str, str]:
        """Return the servers that the client runs in a sandbox: why no confinement keeps it, nothing where one does."""
        return self._client_file().sandboxed

    def client_only_servers(self) -> Mapping[str, str]:
        """Return the servers that only this client can start, each with the reason."""
        return self._client_only_servers(self._client_file())

    def _client_only_servers(self, found: ParsedClientFile) -> Mapping[str, str]:
        client = self.spot.client
        here = f"VS Code runs it in a sandbox, and Pegboard cannot confine it here: {self.unconfinable}"
        reasons = {
            name: client.unstartable(entry)
            or found.unavailable.get(name, "")  # of a kind that is not known, or in a sandbox that nothing keeps
            or (here if self.unconfinable and name in found.sandboxed else "")
            for name, entry in self.entries.items()
        }
        return {name: reason for name, reason in reasons.items() if reason}


def read_client_file(path: Path, machine: Machine, *, spot: ClientFilePlace | None = None) -> ServerFile:
    """Return what a client's file says; raises ``ConfigError`` where it cannot be read.

    ``spot`` says whose file it is; without it, its name and what is in it do.
    """
    with suppress(RuntimeError):  # no such user: the file does not exist
        path = path.expanduser()
    file = display_path(path)
    with _as_config_errors():
        try:
            text = read_text(path, file=file)
        except UnreadableError as error:
            if error.problem.code != "file_empty":
                raise
            return _without_servers(path, machine, spot)
        return server_file(text, compose(text, file, path.suffix.lower()), path, machine, spot)


def missing_client_file(spot: ClientFilePlace, machine: Machine) -> ServerFile:
    """Return a client's file that is not there yet: without servers."""
    return _without_servers(spot.path, machine, spot)


def _without_servers(path: Path, machine: Machine, spot: ClientFilePlace | None) -> ServerFile:
    """Return a client's file in which nothing is written yet."""
    suffix = path.suffix.lower()
    spot = spot or spot_of(path, {}, machine)
    none = {".toml": "# MCP servers\n", ".yaml": f"{spot.client.roots[0][0]}: {{}}\n"}
    text = none.get(suffix, "{\n}\n")
    return server_file(text, compose(text, display_path(path), suffix), path, machine, spot)


def read_standard_input(machine: Machine) -> ServerFile:
    """Return what a client's file in JSON says that arrives on standard input; raises ``ConfigError``."""
    with _as_config_errors():
        if sys.stdin.isatty():
            raise fault(STANDARD_INPUT, "file_unreadable", "is a terminal.", hint="Write a file to it: … < FILE.")
        text = read_input(sys.stdin.fileno(), file=STANDARD_INPUT)
        document = json_text.compose(text, STANDARD_INPUT)
        return server_file(text, document, Path(STANDARD_INPUT), machine, None)


@contextmanager
def _as_config_errors() -> Generator[None]:
    try:
        yield
    except UnreadableError as error:
        found = error.problem
        raise ConfigError(found.message, code=found.code, hint=found.hint, location=found.place) from None


def server_file(
    text: str, document: Document, path: Path, machine: Machine, spot: ClientFilePlace | None
) -> ServerFile:
    """Return a client's file that was read; raises ``ConfigError`` where its servers are no object."""
    value: dict[str, Any] = document.value
    spot = spot or spot_of(path, value, machine)
    root = next((root for root in spot.client.roots if is_mapping(_value_at(value, root))), spot.client.roots[0])
    own = _value_at(value, root)
    if own is not None and not is_mapping(own):
        place = document.place(root)
        raise ConfigError(f"{'.'.join(root)} is not an object of servers.", code="no_servers", location=place)
    here, project, elsewhere = _projects(value, machine)
    return ServerFile(
        spot=spot,
        text=text,
        document=document,
        root=root,
        entries={**(own or {}), **project},
        project=here,
        elsewhere=elsewhere,
        start=spot.client.start_limit(value, machine),
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


def _value_at(value: Any, path: Root) -> Any:
    for part in path:
        value = value.get(part) if is_mapping(value) else None
    return value


def _projects(value: Mapping[str, Any], machine: Machine) -> tuple[str | None, Mapping[str, Any], tuple[str, ...]]:
    """Return the name and the servers of the current folder's project in ``.claude.json``, and the other projects."""
    projects = value.get("projects")
    if not is_mapping(projects):
        return None, EMPTY, ()
    having = {
        name: servers
        for name, project in projects.items()
        if is_mapping(project) and is_mapping(servers := project.get("mcpServers")) and servers
    }
    here = next((str(f) for f in (machine.folder, *machine.folder.parents) if str(f) in having), None)
    return here, having.get(here or "", EMPTY), tuple(name for name in having if name != here)


# -- read as a configuration -----------------------------------------------------------------------


def as_configuration(document: Document, root: Root, path: Path, machine: Machine) -> ParsedClientFile:
    """Return what a client's file says, whose servers are served as they stand in it.

    Args:
        document: the file that was read.
        root: where its servers stand.
        path: where it lies.
        machine: where files lie; its folder is that in which the client works.
    """
    value: dict[str, Any] = document.value
    entries = _value_at(value, root)
    spot = spot_of(path, value, machine)
    if spot.client is PEGBOARD:
        spot = replace(spot, client=ANY)
    if not is_mapping(entries):
        return client_file(document, value, root, folder=machine.folder)
    start = spot.client.start_limit(value, machine)
    file = ServerFile(spot=spot, text="", document=document, root=root, entries=entries, start=start)
    servers = {name: file.server(entry) for name, entry in entries.items()}
    found = client_file(document, _with_value_at(value, root, servers), root, folder=machine.folder)
    return replace(found, unavailable={**found.unavailable, **file.client_only_servers()})


def _with_value_at(value: Mapping[str, Any], path: Root, inner: Any) -> dict[str, Any]:
    """Return a mapping with something else at a path that is there."""
    first, *rest = path
    return {**value, first: _with_value_at(value[first], tuple(rest), inner) if rest else inner}


def workspace(folder: Path) -> Path:
    """Return the folder in which the client of a file in this one works."""
    return folder.parent if folder.name in _FOLDERS_OF_CLIENTS else folder


def variables_of(folder: Path, machine: Machine) -> Mapping[str, str]:
    """Return what an editor that works in a folder knows besides the environment."""
    return editor_variables(str(folder), str(machine.home), separator="\\" if machine.system == "win32" else "/")


def unknown_reference_text(missing: MissingValue, client: str) -> str:
    """Return what is wrong with a reference that has no meaning here."""
    return f"`{missing.path[2]}` refers to {missing.text}, which only {client} knows"


# -- inputs ----------------------------------------------------------------------------------------


def with_guesses(entry: Any, inputs: Any) -> tuple[Any, tuple[str, ...]]:
    """Return a server with its inputs filled in, and the names of those that a placeholder stands for.

    ``inputs`` is that section of the file: what has a default or choices takes the first of them.
    """
    if not is_mapping(entry) or entry.get("url") is not None:
        return entry, ()
    known = {i.get("id"): i for i in inputs if is_mapping(i)} if is_list(inputs) else {}
    guessed: dict[str, None] = {}

    def fill_input(name: str) -> str:
        asked = known.get(name, {})
        options = asked.get("options")
        first = asked.get("default", options[0] if is_list(options) and options else None)
        if isinstance(first, str):
            return first.replace("${", "$${")
        guessed[name] = None
        return PLACEHOLDER

    return with_inputs(entry, fill_input), tuple(guessed)
