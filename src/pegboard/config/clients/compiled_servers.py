"""Make servers that can be started out of a client's file, and one agent that may load them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any, Final

from pegboard.config.check.plugin_checks import check_target
from pegboard.config.client_files.server_files import (
    ServerFile,
    read_client_file,
    unknown_reference_text,
    variables_of,
    with_guesses,
)
from pegboard.config.clients.literal_secrets import secrets_in
from pegboard.config.compile import UncheckedConfig, compile_file, may_refer
from pegboard.config.documents.document import dotted_path, is_list, is_mapping
from pegboard.config.documents.expansion import Expansion, MissingValue
from pegboard.config.location import Machine, find
from pegboard.config.schema.sections import File
from pegboard.config.schema.validation import validate
from pegboard.core.model.agents import Agent, World
from pegboard.core.model.loadouts import BUILT_IN
from pegboard.core.model.selectors import EXCLUDE, INCLUDE
from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.toolkits import Toolkit
from pegboard.core.model.tools import EMPTY

OFF: Final = "it is switched off"
WRONG: Final = "its entry is not valid"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledServers:
    """The servers of a client's file that can be started, and why others cannot.

    ``off`` says why a server of the file is not started; ``filters`` let only some of a server's
    tools through; ``guessed`` names the inputs of a server that a placeholder stands for. ``in_view`` are the servers
    whose tools the client is to load always.
    """

    specs: Mapping[str, ServerSpec] = field(default=EMPTY)
    off: Mapping[str, str] = field(default=EMPTY)
    filters: Mapping[str, Mapping[str, Any]] = field(default=EMPTY)
    guessed: Mapping[str, tuple[str, ...]] = field(default=EMPTY)
    toolkits: Mapping[str, Toolkit] = field(default=EMPTY)
    in_view: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    def world(self) -> World:
        """Return a world in which one agent may load every server; it has no catalog yet."""
        initial = tuple(name for name in self.toolkits if name in self.in_view)
        agent = Agent(name="default", allowed_toolkits=tuple(self.toolkits), initial_toolkits=initial)
        return World(toolkits=self.toolkits, loadouts=BUILT_IN, agents={agent.name: agent})

    def lets_through(self, server: str, tool: str) -> bool:
        """Return whether the client shows a tool to its model."""
        rule = self.filters.get(server, EMPTY)
        return tool in rule.get(INCLUDE, (tool,)) and tool not in rule.get(EXCLUDE, ())

    def joined(self, others: CompiledServers) -> CompiledServers:
        """Return these servers and others; of two with one name these come first."""
        return CompiledServers(
            specs={**others.specs, **self.specs},
            off={**others.off, **self.off},
            filters={**others.filters, **self.filters},
            guessed={**others.guessed, **self.guessed},
            toolkits={**others.toolkits, **self.toolkits},
            in_view=(*self.in_view, *others.in_view),
            secrets=self.secrets | others.secrets,
        )


def servers_of(file: ServerFile, machine: Machine) -> CompiledServers:
    """Return the servers of a client's file.

    Where Pegboard itself is in it, the servers behind it are taken instead. Raises
    ``ConfigError`` where its configuration cannot be read.
    """
    behind = CompiledServers()
    entries: dict[str, Any] = {}
    for name, entry in file.entries.items():
        path = own_configuration(entry, machine, file.spot.folder)
        if path is None:
            entries[name] = entry
            continue
        inner = read_client_file(path, machine)
        folder = inner.spot.folder
        rest = {n: e for n, e in inner.entries.items() if own_configuration(e, machine, folder) is None}
        behind = behind.joined(_compile_file(replace(inner, entries=rest), machine))
    return _compile_file(replace(file, entries=entries), machine).joined(behind)


def own_configuration(entry: Any, machine: Machine, folder: Path | None) -> Path | None:
    """Return the configuration with which a server runs Pegboard, or None where it is another server.

    Args:
        entry: the server as it is written in a client's file.
        machine: where files lie.
        folder: the project whose file it is; None is the current one.
    """
    words = own_command(entry)
    programs = {PurePath(word).name.removesuffix(".exe").partition("@")[0] for word in words}
    if "pegboard" not in programs:
        return None
    folder = folder or machine.folder
    named = Expansion(env=machine.env, also=variables_of(folder, machine)).value(own_argument(entry, "--config"))
    return folder / str(named) if named else find(folder) or folder / "pegboard.yaml"


def own_command(entry: Any) -> Sequence[str]:
    """Return the words of a server's command in front of ``serve``, none where it does not serve."""
    words = _words(entry)
    return words[: words.index("serve")] if "serve" in words else ()


def own_argument(entry: Any, option: str) -> str:
    """Return what an option of the command of a server says, nothing where it is not there."""
    words = _words(entry)
    named = next((b for a, b in pairwise(words) if a == option), "")
    return named or next((w.partition("=")[2] for w in words if w.startswith(f"{option}=")), "")


def _words(entry: Any) -> Sequence[str]:
    if not is_mapping(entry):
        return ()
    command, arguments = entry.get("command", entry.get("cmd")), entry.get("args")
    if is_mapping(command):
        command, arguments = command.get("path"), command.get("args")
    first = command if is_list(command) else [command]
    return [word for word in (*first, *(arguments if is_list(arguments) else [])) if isinstance(word, str)]


def _compile_file(file: ServerFile, machine: Machine) -> CompiledServers:
    inputs = file.document.value.get("inputs")
    filled = {name: with_guesses(entry, inputs) for name, entry in file.entries.items()}
    client = replace(file, entries={name: entry for name, (entry, _) in filled.items()}).translate_servers()
    folder = file.spot.folder or machine.folder
    expansion = Expansion(env=machine.env, also=variables_of(folder, machine))
    value = expansion.value(client.value)
    off = dict(client.unavailable)
    for path in expansion.references:
        if len(path) > 1 and not may_refer(path):
            off.setdefault(str(path[1]), f"{WRONG}: a value that is read when it starts cannot be used in `{path[2]}`")
    for missing in expansion.missing:
        if len(missing.path) > 1 and missing.kind != "syntax":
            off.setdefault(str(missing.path[1]), _why_missing(missing, file.spot.client.title))
    validated = validate(File, client.document, value)
    for problem in validated.problems:
        at = problem.place.path if problem.place else ""
        for name in file.entries:
            if problem.severity == "error" and f"{at}.".startswith(f"{dotted_path((*file.root, name))}."):
                off.setdefault(name, f"{WRONG}: {problem.message}".rstrip("."))
    config = compile_file(
        validated,
        folder,
        loadouts={},
        unavailable={},
        filters=client.filters,
        client=True,
        references={path: pieces for path, pieces in expansion.references.items() if may_refer(path)},
    )
    for name, section in validated.section.servers.items():
        written = config.written.get(name)
        references = written.references if isinstance(written, ServerSpec) else ()
        for problem in check_target(section.command, section.url, name, validated, references):
            off.setdefault(name, f"{WRONG}: it {problem.message}".rstrip("."))
    return _without_unstartable(
        CompiledServers(
            specs=_started_in(config, file.spot.folder),
            off={**dict.fromkeys(config.off, OFF), **off},
            filters=client.filters,
            guessed={name: names for name, (_, names) in filled.items() if names},
            toolkits=config.toolkits,
            in_view=client.in_view,
            secrets=frozenset(expansion.secrets) | secrets_in(dict(file.entries)),
        )
    )


def _why_missing(missing: MissingValue, client: str) -> str:
    match missing.kind:
        case "variable":
            return f"the environment variable {missing.name} is not set"
        case "input":
            return f"it asks for the input '{missing.name}', which only its client can ask for"
        case _:
            return f"{WRONG}: {unknown_reference_text(missing, client)}"


def _started_in(config: UncheckedConfig, folder: Path | None) -> dict[str, ServerSpec]:
    """Return the servers, started in the project's folder where the file belongs to one."""
    specs = {name: spec for name, spec in config.written.items() if isinstance(spec, ServerSpec)}
    if folder is None:
        return specs
    return {name: replace(s, cwd=str(folder)) if s.cwd is None and s.command else s for name, s in specs.items()}


def _without_unstartable(servers: CompiledServers) -> CompiledServers:
    """Return the servers without those that cannot be started."""
    specs = {name: spec for name, spec in servers.specs.items() if name not in servers.off}
    return replace(servers, specs=specs, toolkits={n: t for n, t in servers.toolkits.items() if n in specs})
