"""Write a configuration of our own: a start, or what a client's file says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from pegboard.config.client_files.client import editor_variables, literal_text, texts_in, with_texts
from pegboard.config.client_files.server_files import ServerFile, read_client_file
from pegboard.config.clients.kept_copies import keep
from pegboard.config.documents.document import dotted_path, is_mapping
from pegboard.config.documents.expansion import REFERENCE, escape_references
from pegboard.config.inspection import inspect
from pegboard.config.location import Machine
from pegboard.core.model.references import SCHEMES
from pegboard.core.model.toolkits import UNCONFINED
from pegboard.errors import ConfigError, PegboardError
from pegboard.problems import Problem
from pegboard.support import own_folder

HEAD: Final = """\
# Pegboard: which tools a language model sees at each step, why, and what that costs.
# Written by `pegboard init`{source}. `pegboard check` says whether it is right, `pegboard schema` helps editors.
"""
SERVERS: Final = """
# MCP servers, in the shape that every client uses. Write ${{NAME}} for what should come from the environment.
{servers}"""
TOOLKITS: Final = """
# Tools that are loaded and switched as one.
{toolkits}"""
AGENTS: Final = """
agents:
  # {may} may be loaded when needed. Name under `tools` those that should always be loaded: tools: [{example}].
  # `permissions: {{{example}: false}}` switches by toolkit, plugin or tool, `lease: {{kind: idle, turns: 5}}` unloads
  # what was not used for five turns, `budget: {{tools: 40, tokens: 8000}}` bounds what is loaded.
  default:
    dialect: pegboard             # the model searches, loads and unloads by itself
    discoverable: {discoverable}
{lists}"""
STARTER: Final = """
# MCP servers, in the shape that every client uses. Write ${NAME} for what should come from the environment.
# servers:
#   git: {command: mcp-server-git, args: [--repository, .]}

# Plugins written in Python: a module beside this file, or an installed one. These only read the current folder.
plugins:
  files: {python: pegboard.quickstart.files, category: Filesystem}
  text: {python: pegboard.quickstart.text, category: Search}
  git: {python: pegboard.quickstart.git, category: Git}
  # shell: {confine: true}        # likewise for NAMES: they write or run, past every guard

# Tools that are loaded and switched as one.
toolkits:
  code:
    description: Search and compare text files, and read the git history
    tools: [text, git]

agents:
  default:
    dialect: pegboard             # the model searches, loads and unloads by itself
    tools: [files]                # always loaded
    allowed_toolkits: [code]      # may be loaded when they are needed
    # permissions: {code: false}    # switches by toolkit, plugin or tool
    # lease: {kind: idle, turns: 5}   # unload what was not used for five turns
    # budget: {tools: 40, tokens: 8000}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServersToTake:
    """The servers of a client's file, in our own shape; the tools of those ``in_view`` are always loaded.

    ``sandboxed`` are those that are confined as the client's sandbox confined them, ``excluded`` those that are not
    among the servers, since only the client can use them or no confinement is as narrow as that sandbox, each with the
    reason.
    """

    servers: Mapping[str, Any]
    filters: Mapping[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    in_view: tuple[str, ...] = ()
    sandboxed: tuple[str, ...] = ()
    excluded: Mapping[str, str] = field(default_factory=dict[str, str])
    problems: tuple[Problem, ...] = ()


def read_client(path: Path) -> ServersToTake:
    """Return the servers of a client's file, without those that only it can use.

    Raises ``ConfigError`` where it has none that can be read.
    """
    file = read_client_file(path, Machine())
    value: Any = file.document.value
    for key in file.root:
        value = value.get(key)
        if value is None:
            hint = 'It should contain {"mcpServers": {"name": {"command": …}}}.'
            raise ConfigError(f"{file.label}: there are no MCP servers in it.", code="no_servers", hint=hint)
    client_only = file.client_only_servers()
    entries = {name: entry for name, entry in file.entries.items() if name not in client_only}
    taken = servers_to_take(replace(file, entries=entries))
    servers, misnamed = _usable(taken.servers, file.spot.client.title)
    return replace(taken, servers=servers, excluded={**client_only, **misnamed})


def _usable(servers: Mapping[str, Any], client: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return servers as a configuration can have them, and why it can have no server of another's name.

    One that cannot be used as it is written is switched off, with the reason: it costs no other (P6).
    """
    usable: dict[str, Any] = {}
    misnamed: dict[str, str] = {}
    for name, entry in servers.items():
        written = _with_fault(name, with_texts(entry, escape_references), client)
        if isinstance(written, str):
            misnamed[name] = written
        else:
            usable[name] = written
    return usable, misnamed


def _with_fault(name: str, entry: Any, client: str) -> Any:
    """Return a server, switched off where it has a fault, or a text: why its name is one."""
    why = ""
    while (fault := _fault(name, entry)) is not None:
        problem, key = fault
        if key is None and why:  # being off does not help
            return problem.message.rstrip(".")
        reference = _unknown_reference(entry[key]) if key is not None and problem.code == "bad_reference" else ""
        known = f"it refers to {reference}, which only {client} knows" if reference else problem.message
        why = why or f"{f'in {key}, ' if key else ''}{known}".rstrip(".")
        rest = {k: v for k, v in entry.items() if k not in (key, "disabled")} if is_mapping(entry) else {}
        kept = {key: with_texts(entry[key], literal_text)} if reference and key else {}
        entry = {"disabled": literal_text(why), **rest, **kept}
    return entry


def _unknown_reference(part: Any) -> str:
    """Return a reference of which only a client knows the kind."""
    found = (reference for text in texts_in(part) for reference in REFERENCE.finditer(text))
    kinds = ((one[0], one[1].partition(":")) for one in found)
    return next((text for text, (kind, colon, _) in kinds if colon and kind not in (*SCHEMES, "env", "input")), "")


def _fault(name: str, entry: Any) -> tuple[Problem, str | None] | None:
    """Return the first error of a server in a configuration of its own, and in which of its keys it is."""
    for problem in inspect(Path("pegboard.yaml"), registered={}, value={"servers": {name: entry}})[1]:
        at = f"{problem.place.path}." if problem.place else ""
        if problem.severity == "error":
            keys = (str(key) for key in entry) if is_mapping(entry) else ()
            return problem, next(
                (key for key in keys if at.startswith(f"{dotted_path(('servers', name, key))}.")), None
            )
    return None


def servers_to_take(file: ServerFile, *, beside: bool = False) -> ServersToTake:
    """Return the servers of a client's file, with what only their client can fill in filled in.

    ``beside``: they go into a configuration in the folder of the file's project, which others have a copy of.
    """
    client = file.translate_servers()
    folder = file.spot.folder or file.spot.path.expanduser().absolute().parent
    filled = (
        _shareable_entry
        if beside
        else partial(_fill_editor_variables, known=editor_variables(str(folder), str(Path.home())))
    )
    excluded = {name: why for name, why in client.sandboxed.items() if why}
    taken = {str(name): entry for name, entry in client.value["servers"].items() if name not in excluded}
    return ServersToTake(
        servers={name: filled(entry) for name, entry in taken.items()},
        filters=client.filters,
        in_view=client.in_view,
        sandboxed=tuple(name for name in client.sandboxed if name not in excluded),
        excluded=excluded,
        problems=client.problems,
    )


def _shareable_entry(entry: Any) -> Any:
    """Return a server that is the same in every copy of a project: with paths from the folder of the configuration."""
    found = _fill_editor_variables(entry, known=editor_variables(".", "${HOME}"))
    if not is_mapping(found) or found == entry or "command" not in found:
        return found
    return {**found, "cwd": found.get("cwd") or "."}


def _fill_editor_variables(value: Any, known: Mapping[str, str]) -> Any:
    """Return a value with the editor's own variables filled in: no one else knows them."""

    def fill_variables(text: str) -> str:
        for name, own in known.items():
            text = text.replace(f"${{{name}}}", own)
        return text

    return with_texts(value, fill_variables)


def client_text(
    taken: ServersToTake,
    source: str,
    *,
    servers: Mapping[str, Any] | None = None,
    discoverable: Sequence[str] = ("*",),
) -> str:
    """Return a configuration in which every server may be loaded when it is needed.

    Args:
        taken: the servers of a client.
        source: the name of the file that they come from.
        servers: the servers as they are to be written, where that is otherwise than in the file.
        discoverable: the servers that the agent may load by name.
    """
    example = next(iter(taken.servers), "name")
    toolkits = {name: {"tools": [{name: rule}]} for name, rule in taken.filters.items()}
    static = [{name: taken.filters[name]} if name in taken.filters else name for name in taken.in_view]
    lists = {key: items for key, items in (("allowed_toolkits", list(toolkits)), ("tools", static)) if items}
    shown = TOOLKITS.format(toolkits=_yaml({"toolkits": toolkits})) if toolkits else ""
    return "".join(
        (
            HEAD.format(source=f" from {source}" if source else ""),
            SERVERS.format(servers=_yaml({"servers": dict(taken.servers if servers is None else servers)})),
            shown,
            AGENTS.format(
                may="Every server" if "*" in discoverable else "These servers",
                discoverable=json.dumps(list(discoverable), ensure_ascii=False),
                lists="".join(f"    {key}: {_yaml_in_line(items)}\n" for key, items in lists.items()),
                example=_yaml_in_line(example),
            ),
        )
    )


def starter_text() -> str:
    """Return a configuration whose tools read the current folder."""
    others = ", ".join(name for name in UNCONFINED if name != "shell")
    return HEAD.format(source="") + STARTER.replace("NAMES", others)


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120)


def _yaml_in_line(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.removesuffix("...\n").strip()


def write(path: Path, text: str, *, force: bool, like: Path | None, allowed: int = 0o666) -> Path | None:
    """Write the file, readable by whom ``like`` is, at most ``allowed``; return where a file that was there is kept.

    Raises ``PegboardError`` where there is one already, unless ``force``.
    """
    backup: Path | None = None
    require_free(path, force=force)
    if path.exists() or path.is_symlink():
        backup = keep(path.read_bytes(), path.name, own_folder.folder_of(path))
    with path.open("w" if force else "x", encoding="utf-8") as stream:
        if like is not None:
            path.chmod(like.expanduser().stat().st_mode & allowed)
        stream.write(text)
    return backup


def require_free(path: Path, *, force: bool) -> None:
    """Raise ``PegboardError`` where there is a file already, unless ``force``."""
    if not force and (path.exists() or path.is_symlink()):
        hint = "Add --force to replace it, or --config PATH to write another one."
        raise PegboardError(f"{path} already exists and was not changed.", code="file_exists", hint=hint)
