"""`pegboard init`: write a configuration to begin with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from pegboard.cli.common import DONE, JsonOption, Options, guarded, problem_json
from pegboard.cli.rendering import Printer, plural
from pegboard.errors import ConfigError, PegboardError

if TYPE_CHECKING:
    from pegboard.core.tools import Problem

EXAMPLE = "pegboard init --from ~/.cursor/mcp.json"
TARGET: Final = Path("pegboard.yaml")
BESIDE: Final = Path(".mcp.json")

HEAD: Final = """\
# Pegboard: which tools a language model sees at each step, why, and what that costs.
# Written by `pegboard init`{source}. `pegboard check` says whether it is right, `pegboard schema` helps editors.

# Sessions, switches and the audit trail are kept here; the path is relative to this file.
store: sqlite:///.pegboard/pegboard.db
"""
SERVERS: Final = """
# MCP servers, in the shape that every client uses. Write ${{NAME}} for what should come from the environment.
{servers}"""
TOOLKITS: Final = """
# Tools that are loaded and switched as one.
{toolkits}"""
AGENTS: Final = """
agents:
  default:
    # Every server may be loaded when it is needed. Name those under `tools` that should always be out.
    discoverable: ["*"]
    {toolkits}
    # tools: [{example}]
    # permissions: {{{example}: false}}     # switches by toolkit, plugin or tool
    # lease: {{kind: idle, turns: 5}}     # hang back what was not used for five turns
    # budget: {{tools: 40, tokens: 8000}}
"""
STARTER: Final = """
# MCP servers, in the shape that every client uses. Write ${NAME} for what should come from the environment.
# servers:
#   git: {command: mcp-server-git, args: [--repository, .]}

# Plugins written in Python: a module beside this file, or an installed one. These only read the current folder.
plugins:
  files: {python: pegboard.quickstart.files, category: Filesystem}
  text: {python: pegboard.quickstart.text, category: Search}
  git: {python: pegboard.quickstart.git, category: Git}

# Tools that are loaded and switched as one.
toolkits:
  code:
    description: Search and compare text files, and read the git history
    tools: [text, git]

agents:
  default:
    tools: [files]                # always out
    allowed_toolkits: [code]      # may be loaded when they are needed
    # permissions: {code: false}    # switches by toolkit, plugin or tool
    # lease: {kind: idle, turns: 5}   # hang back what was not used for five turns
    # budget: {tools: 40, tokens: 8000}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Hold what a client's file says, in our own shape."""

    servers: Mapping[str, Any]
    filters: Mapping[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    problems: tuple[Problem, ...] = ()


def init(
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="A client's file with MCP servers. [default: ./.mcp.json]"),
    ] = None,
    config: Annotated[Path, typer.Option("--config", metavar="PATH", help="What to write.")] = TARGET,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file that is there; it is kept as a backup.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Write a commented pegboard.yaml to begin with.

    It takes over the MCP servers of a client's configuration where there is one.
    """

    async def written(printer: Printer) -> int:
        chosen = source if source is not None else BESIDE if BESIDE.is_file() else None
        taken = read_client(chosen) if chosen is not None else None
        text = client_text(taken, chosen.name) if taken and chosen else HEAD.format(source="") + STARTER
        backup = write(config, text, force=force, like=chosen)
        problems = [*(taken.problems if taken else ()), *_problems(config)]
        servers = list(taken.servers) if taken else []
        if printer.as_json:
            printer.document(
                {
                    "written": str(config),
                    "source": str(chosen) if chosen else None,
                    "servers": servers,
                    "backup": str(backup) if backup else None,
                    "problems": [problem_json(problem) for problem in problems],
                }
            )
            return DONE
        _tell(printer, config, chosen, servers, backup)
        for problem in problems:
            printer.note(f"{problem.severity}: {problem}")
        return DONE

    return guarded(Options(as_json=as_json), written)


def _tell(printer: Printer, config: Path, chosen: Path | None, servers: list[str], backup: Path | None) -> None:
    if chosen is not None:
        printer.say(
            f"Wrote {config} with {plural(len(servers), 'server')} from {chosen}: {', '.join(servers) or 'none'}."
        )
    else:
        printer.say(f"Wrote {config}, a start with tools that read the current folder.")
    if backup is not None:
        printer.say(f"What was there is kept as {backup}.")
    option = "" if config == TARGET else f" --config {config}"
    printer.say(f"Next: pegboard check{option}, then pegboard surface{option}, then pegboard serve{option}.")


def read_client(path: Path) -> Taken:
    """Return the servers of a client's file; raises ``ConfigError`` where it has none that can be read."""
    from pegboard.config import jsontext, yaml
    from pegboard.config.documents import UnreadableError, is_mapping, read_text, shown
    from pegboard.config.mcpjson import client_file, servers_root

    path = path.expanduser()
    file = shown(path)
    try:
        text = read_text(path, file=file)
        written_in_yaml = path.suffix.lower() in (".yaml", ".yml")
        document = (yaml if written_in_yaml else jsontext).compose(text, file)
    except UnreadableError as error:
        place, said = error.problem.place, error.problem.message
        raise ConfigError(said, code=error.problem.code, hint=error.problem.hint, location=place) from None
    root = servers_root(document.value, json_file=not written_in_yaml)
    if root is None:
        hint = 'It should hold {"mcpServers": {"name": {"command": …}}}.'
        raise ConfigError(f"{file}: there are no MCP servers in it.", code="no_servers", hint=hint)
    client = client_file(document, document.value, root)
    servers = client.value.get("servers")
    if not is_mapping(servers):
        raise ConfigError(f"{file}: {'.'.join(root)} is not an object of servers.", code="no_servers")
    folder = path.absolute().parent
    return Taken(
        servers={str(name): _localised(entry, folder) for name, entry in servers.items()},
        filters=client.filters,
        problems=client.problems,
    )


def _localised(value: Any, folder: Path) -> Any:
    """Return a value with the editor's own variables filled in: nobody else knows them."""
    match value:
        case str():
            workspace = folder.parent if folder.name in (".vscode", ".cursor") else folder
            known = {"workspaceFolder": str(workspace), "userHome": str(Path.home()), "pathSeparator": os.sep}
            for name, filled in known.items():
                value = value.replace(f"${{{name}}}", filled)
            return value
        case dict():
            pairs = cast("dict[str, Any]", value)
            return {key: _localised(inner, folder) for key, inner in pairs.items()}
        case list():
            return [_localised(inner, folder) for inner in cast("list[Any]", value)]
        case _:
            return value


def client_text(taken: Taken, source: str) -> str:
    """Return a configuration in which every server may be loaded when it is needed."""
    example = next(iter(taken.servers), "name")
    toolkits = {name: {"tools": [{name: rule}]} for name, rule in taken.filters.items()}
    allowed = f"allowed_toolkits: {_inline(list(toolkits))}" if toolkits else "# allowed_toolkits: []"
    shown = TOOLKITS.format(toolkits=_yaml({"toolkits": toolkits})) if toolkits else ""
    return "".join(
        (
            HEAD.format(source=f" from {source}"),
            SERVERS.format(servers=_yaml({"servers": dict(taken.servers)})),
            shown,
            AGENTS.format(toolkits=allowed, example=_inline(example)),
        )
    )


def _yaml(value: Any) -> str:
    import yaml

    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120)


def _inline(value: Any) -> str:
    import yaml

    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.removesuffix("...\n").strip()


def write(path: Path, text: str, *, force: bool, like: Path | None) -> Path | None:
    """Write the file, readable by whom ``like`` is; return where a file that was there is kept.

    Raises ``PegboardError`` where there is one already, unless ``force``.
    """
    backup: Path | None = None
    if path.exists() or path.is_symlink():
        if not force:
            hint = "Add --force to replace it, or --config PATH to write another one."
            raise PegboardError(f"{path} exists already and is left as it is.", code="file_exists", hint=hint)
        backup = _free(path)
        shutil.copy2(path, backup)
    with path.open("w" if force else "x", encoding="utf-8") as stream:
        if like is not None:
            path.chmod(like.expanduser().stat().st_mode & 0o666)
        stream.write(text)
    return backup


def _free(path: Path) -> Path:
    """Return a name for a backup that no file has."""
    number = 0
    while (found := path.with_name(f"{path.name}.bak{number or ''}")).exists():
        number += 1
    return found


def _problems(path: Path) -> list[Problem]:
    """Return what is to be put right in the file that was written."""
    from pegboard.assembly import registered
    from pegboard.config.loading import inspect

    return inspect(path, registered=registered())[1]
