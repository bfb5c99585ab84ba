"""Read the files of one configuration: sections with their references filled in, and loadouts (L6)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from pegboard.config.accepted_files import MAPPING, AcceptedFiles, accepted_files, known_as
from pegboard.config.additions import joined_plugins, with_settings
from pegboard.config.check.loadout_checks import WrittenLoadout
from pegboard.config.compile import UncheckedConfig, compile_file, env_file_of, loadout_of, may_refer
from pegboard.config.documents import json_text, mapping, yaml_text
from pegboard.config.documents.document import (
    Document,
    PathKey,
    UnreadableError,
    display_path,
    fault,
    is_list,
    is_mapping,
    read_text,
)
from pegboard.config.documents.expansion import ROOT, Expansion, MissingValue, read_variables
from pegboard.config.location import Machine
from pegboard.config.problem_codes import error, warning_problem
from pegboard.config.schema import mcp_json
from pegboard.config.schema.sections import File, LoadoutSection
from pegboard.config.schema.validation import ValidatedDocument, validate
from pegboard.core.model.loadouts import BUILT_IN, Loadout, category_of
from pegboard.core.model.naming import one_line
from pegboard.core.model.references import PARTS, WRITTEN, Reference
from pegboard.core.model.specs import RegisteredSpec
from pegboard.core.model.tools import EMPTY, Frozen
from pegboard.problems import Problem
from pegboard.support import user_folders

S = TypeVar("S", bound=BaseModel)
LOADOUTS: Final = "loadouts"
_MOST_ENTRIES: Final = 10_000
_MALFORMED: Final = ("syntax", "reference")
_TEXT_KEYS: Final = frozenset(
    (key,) for key in ("command", "args", "env", "cwd", "url", "headers", "description", "category", "prefix")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableServer:
    """The first error of a server that costs no others (P6); ``misnamed`` where its name is the error."""

    problem: Problem
    misnamed: bool

    @property
    def warning(self) -> Problem:
        """Return what is reported of it: what becomes of the server, too."""
        state = "left out" if self.misnamed else "unavailable"
        message = f"{self.problem.message.rstrip('.')}; the server is {state}."
        return replace(self.problem, severity="warning", message=message)


@dataclass(slots=True, kw_only=True)
class ConfigurationReading:
    """One reading of the files of a configuration: what was found, and what is wrong.

    ``text`` is read in place of what is in the file, or ``value``, a mapping that a program gives. ``unusable`` are the
    servers that an earlier reading found an error in, which costs no others. ``as_written``: files count as they are,
    also those that something confined may write, of which else counts what was accepted (A7).
    """

    path: Path
    env: Mapping[str, str]
    text: str | None = field(default=None, repr=False)
    value: Mapping[str, Any] | None = field(default=None, repr=False)
    unusable: Mapping[str, UnusableServer] = field(default=EMPTY)
    as_written: bool = False
    accepted: AcceptedFiles | None = field(init=False)
    secrets: set[str] = field(default_factory=set[str])
    references: dict[tuple[PathKey, ...], tuple[str | Reference, ...]] = field(
        default_factory=dict[tuple[PathKey, ...], tuple[str | Reference, ...]]
    )
    problems: list[Problem] = field(default_factory=list[Problem])
    files: list[Path] = field(default_factory=list[Path])

    def __post_init__(self) -> None:
        self.accepted = None if self.as_written else accepted_files(known_as(self.path, in_code=self.value is not None))

    def without_unusable(self, unusable: Mapping[str, UnusableServer]) -> ConfigurationReading:
        """Return a reading of the same files in which servers with an error are unavailable, or not there."""
        known = {**self.unusable, **unusable}
        return replace(self, unusable=known, secrets=set(), references={}, problems=[], files=[])

    @property
    def folder(self) -> Path:
        """Return the folder of the file."""
        return self.path.absolute().parent

    @property
    def file(self) -> str:
        """Return the file as problems name it."""
        return display_path(self.path) if self.value is None else MAPPING

    def folders(self) -> Iterable[Path]:
        """Return where files of loadouts may lie, nearest first."""
        return self.folder / LOADOUTS, user_folders.configuration(self.env) / LOADOUTS

    def unchecked_config(self) -> tuple[UncheckedConfig, list[WrittenLoadout]]:
        """Return the core values of the file, and the loadouts that people wrote."""
        document = self._document(self.path)
        value: dict[str, Any] = document.value
        root = mcp_json.servers_root(value, json_file=_is_json(self.path))
        self.problems += document.problems
        client = self._client_file(document, root) if root else None
        unavailable: dict[str, str] = dict(client.unavailable) if client else {}
        if client is not None:
            document, value = client.document, client.value
            self.problems += [*client.problems, *_unavailable(client)]
        if self.unusable:
            value = self._usable(value, unavailable)
        if user_folders.is_of_user(self.folder):
            value = with_roots(value)
        also = self._client_variables() if client else None
        validated = self._validate_document(File, document, value, unavailable=unavailable, also=also)
        self.problems += validated.problems
        files = self._loadout_files()
        config = compile_file(
            validated,
            self.folder,
            loadouts={name: item.loadout for name, item in files.items()},
            unavailable=unavailable,
            filters=client.filters if client else {},
            client=client is not None,
            in_view=client.in_view if client else (),
            references=self.references,
            variables=self._variables,
        )
        stated = (part.env_file for part in validated.section.servers.values() if part.env_file)
        self.files += [env_file_of(text, self.folder) for text in stated]
        own = [
            WrittenLoadout(
                loadout=loadout_of(name, part, validated, "loadouts", name),
                validated=validated,
                path=("loadouts", name),
            )
            for name, part in validated.section.loadouts.items()
        ]
        shadowed = {item.loadout.name.casefold() for item in own}
        return config, [*own, *(item for name, item in files.items() if name not in shadowed)]

    def _usable(self, value: dict[str, Any], unavailable: dict[str, str]) -> dict[str, Any]:
        """Return what a file says without servers that cannot be; it is noted why others are unavailable."""
        servers: dict[str, Any] = dict(value["servers"])
        for name, server in self.unusable.items():
            self.problems.append(server.warning)
            if server.misnamed:
                del servers[name]
                continue
            servers[name] = servers[name] if is_mapping(servers[name]) else {}
            unavailable[name] = f"{server.problem.message.rstrip('.')}. {server.problem.hint}".strip()
        return {**value, "servers": servers}

    def _client_file(self, document: Document, root: tuple[str, ...]) -> mcp_json.ParsedClientFile:
        from pegboard.config.client_files.server_files import as_configuration

        return as_configuration(document, root, self.path, self._machine())

    def _client_variables(self) -> Mapping[str, str]:
        from pegboard.config.client_files.server_files import variables_of

        machine = self._machine()
        return variables_of(machine.folder, machine)

    def _machine(self) -> Machine:
        from pegboard.config.client_files.server_files import workspace

        return Machine(folder=workspace(self.folder), env=self.env)

    def _document(self, path: Path) -> Document:
        if self.value is not None and path == self.path:
            return mapping.compose(self.value, self.file)
        file = display_path(path)
        text = (
            self.text
            if self.text is not None and path == self.path
            else read_text(self._accepted_path(path), file=file)
        )
        self.files.append(path)
        return json_text.compose(text, file) if _is_json(path) else yaml_text.compose(text, file)

    def _accepted_path(self, path: Path) -> Path:
        """Return the file that counts: what was accepted of one that something confined may write (A7)."""
        found = path if self.accepted is None else self.accepted.in_force(path, "text")
        if found is None:
            message = "can be written by a confined server or plugin, and its current text was not accepted."
            raise fault(display_path(path), "file_waits", message, hint="`pegboard accept` shows what waits.")
        return found

    def _variables(self, path: Path) -> tuple[dict[str, str], str]:
        """Return the variables of a file, and why there are none, or nothing."""
        try:
            return read_variables(self._accepted_path(path))
        except UnreadableError:
            return {}, f"its envFile {path} was changed or created and waits for a person. `pegboard accept` shows it."

    def _validate_document(
        self,
        model: type[S],
        document: Document,
        value: dict[str, Any],
        *,
        unavailable: dict[str, str] | None = None,
        also: Mapping[str, str] | None = None,
    ) -> ValidatedDocument[S]:
        """Return a validated file with its references filled in.

        ``unavailable`` takes the servers that miss a variable. ``also`` are what a client's file may
        refer to besides; in such a file what we cannot read stays unchanged.
        """
        expansion = Expansion(env=self.env, also=also or {})
        filled = expansion.value(value)
        self.secrets |= expansion.secrets
        gone: list[tuple[PathKey, ...]] = []
        for missing in expansion.missing:
            server = _server(missing) if unavailable is not None else None
            if server is not None and missing.kind == "syntax" and also is not None:
                continue
            if unavailable is not None and server is not None and missing.kind not in _MALFORMED:
                if not _is_off(filled, server):
                    unavailable.setdefault(server, _why_missing(missing))
                    self.problems.append(_missing_problem(missing, document, in_server=True))
            else:
                self.problems.append(_missing_problem(missing, document, in_server=False))
            if server is None or missing.path[2:3] not in _TEXT_KEYS:
                gone.append(missing.path)
        for path, pieces in expansion.references.items():
            if unavailable is not None and may_refer(path):
                self.references[path] = pieces
            else:
                self.problems.append(_misplaced_problem(path, document, in_server=path[:1] == ("servers",)))
                gone += [] if path[2:3] in _TEXT_KEYS else [path]
        return validate(model, document, filled, gone=gone)

    def _loadout_files(self) -> dict[str, WrittenLoadout]:
        """Return the loadouts in files by their case-folded names; the nearest file wins (L6)."""
        found: dict[str, WrittenLoadout] = {}
        beside, personal = self.folders()
        for folder in (beside, personal):
            for path in self._files_of_folder(folder):
                if path.stem.casefold() in found:
                    continue
                before = len(self.problems)
                item = self._loadout_file(path)
                if item is not None:
                    found[path.stem.casefold()] = item
                if folder == personal:
                    self.problems[before:] = [replace(p, severity="warning") for p in self.problems[before:]]
        return found

    def _files_of_folder(self, folder: Path) -> list[Path]:
        if self.accepted is not None and self.accepted.covers_file(folder / "any.yaml"):
            return [path for path in self.accepted.listed(folder) if path.suffix in (".yaml", ".yml")]
        return listed_loadouts(folder)

    def _loadout_file(self, path: Path) -> WrittenLoadout | None:
        try:
            document = self._document(path)
        except UnreadableError as error:
            self.problems.append(error.problem)
            return None
        self.problems += document.problems
        validated = self._validate_document(LoadoutSection, document, document.value)
        self.problems += validated.problems
        return WrittenLoadout(loadout=loadout_of(path.stem, validated.section, validated), validated=validated, path=())


def with_roots(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the user's own configuration with servers that work in the folder of a client where an argument says so.

    >>> with_roots({"servers": {"files": {"command": "files", "args": ["."]}}})["servers"]["files"]["cwd"]
    '${root}'
    """
    servers = value.get("servers")
    if not is_mapping(servers):
        return dict(value)
    return {**value, "servers": {name: _with_client_root(server) for name, server in servers.items()}}


def _with_client_root(server: Any) -> Any:
    args = server.get("args") if is_mapping(server) else None
    if not is_list(args) or "cwd" in server or "command" not in server:
        return server
    relative = (isinstance(text, str) and (text in (".", "..") or text.startswith(("./", "../"))) for text in args)
    return {**server, "cwd": f"${{{ROOT}}}"} if any(relative) else server


def listed_loadouts(folder: Path) -> list[Path]:
    """Return the files of loadouts in a folder as it is, not more than a person writes."""
    try:
        with os.scandir(folder) as found:
            names = [each.name for each in islice(found, _MOST_ENTRIES)]
    except OSError:
        return []
    return [folder / name for name in sorted(names) if name.endswith((".yaml", ".yml"))]


def _is_json(path: Path) -> bool:
    return path.suffix.lower() in (".json", ".jsonc")


def _server(missing: MissingValue) -> str | None:
    """Return the server in whose settings a variable is missing."""
    path = missing.path
    return str(path[1]) if len(path) > 2 and path[0] == "servers" else None


def _is_off(filled: Mapping[str, Any], server: str) -> bool:
    part = filled.get("servers", {}).get(server)
    return is_mapping(part) and part.get("disabled") not in (None, False)


def _unavailable(client: mcp_json.ParsedClientFile) -> Iterator[Problem]:
    """Yield a warning for each server of a client's file that only its client can start."""
    for name, why in client.unavailable.items():
        message = f"server '{one_line(name, limit=80)}' is not available: {why.rstrip('.')}."
        yield warning_problem("unavailable", message, client.document.place(("servers", name), key=True))


def _why_missing(missing: MissingValue) -> str:
    if missing.kind == "input":
        return f"it asks for the input '{missing.name}', which only its own client can. Write ${{NAME}} and set NAME."
    return f"the environment variable {missing.name} is not set. Set it, or write ${{{missing.name}:-default}}."


def _missing_problem(missing: MissingValue, document: Document, *, in_server: bool) -> Problem:
    place = document.place(missing.path)
    if missing.kind == "syntax":
        message = "'${' does not begin the name of an environment variable."
        hint = "Write ${NAME}, ${NAME:-default} or, for the two signs, $${."
        return error("env_syntax", message, place, hint)
    if missing.kind == "reference":
        hint = f"Write {WRITTEN}, ${{NAME}} for a variable of the environment or, for the two signs, $${{."
        return error("bad_reference", missing.name, place, hint)
    message, hint = _why_missing(missing).split(". ", 1)
    if in_server:
        message += "; the server is unavailable until then"
    return (warning_problem if in_server else error)("env_missing", f"{message}.", place, hint)


def _misplaced_problem(path: tuple[PathKey, ...], document: Document, *, in_server: bool) -> Problem:
    """Return the problem of a reference where nothing is read when a server starts (G13)."""
    message = "a value that is read when a server starts cannot be used here."
    hint = f"Such values can be used in `{'`, `'.join(PARTS)}` of a server."
    if not in_server:
        hint += ' Write ${NAME} here, and set it where Pegboard is started: NAME="$(op read …)" pegboard serve.'
    return error("misplaced_reference", message, document.place(path), hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLoadouts:
    """Loadouts by case-folded names, plugins with their categories, and why nothing could be read."""

    loadouts: Mapping[str, Loadout] = field(default=BUILT_IN)
    plugins: Mapping[str, str | None] = field(default=EMPTY)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    fault: Problem | None = None


def loadouts_of(
    path: Path, *, registered: Mapping[str, RegisteredSpec], env: Mapping[str, str] | None = None
) -> ReadLoadouts:
    """Return the loadouts of a file that need not pass any check; of one that cannot be read, the built-in ones."""
    reading = ConfigurationReading(path=path, env=os.environ if env is None else env)
    try:
        config, _ = reading.unchecked_config()
    except UnreadableError as error:
        return ReadLoadouts(secrets=frozenset(reading.secrets), fault=error.problem)
    specs = joined_plugins(config, with_settings(config, registered))
    return ReadLoadouts(
        loadouts=Frozen({**BUILT_IN, **config.loadouts}),
        plugins=Frozen({name: spec.category or category_of(name) for name, spec in specs.items()}),
        secrets=frozenset(reading.secrets),
    )
