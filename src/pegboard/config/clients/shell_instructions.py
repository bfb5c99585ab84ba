"""What a coding agent with a shell reads of Pegboard: a few lines in its own instructions, which can be taken out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pegboard.config.clients.merging import may_load
from pegboard.config.documents.document import is_mapping
from pegboard.config.documents.value_edits import value_at, with_value, without_value
from pegboard.config.location import Machine
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import EMPTY
from pegboard.errors import ConfigError

InstructionScope = Literal["user", "project"]
MOST_LINES: Final = 15
"""How many lines are written into instructions that others read, too."""
BEGIN: Final = "<!-- pegboard: begin -->"
END: Final = "<!-- pegboard: end -->"
_DEFAULT: Final = "default"
_MOST_SERVERS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionFile:
    """A file with instructions of a coding agent; one that is ``whole`` has nothing but ours."""

    agent: str
    path: Path
    whole: bool = False


def files_of(machine: Machine, scope: InstructionScope) -> list[InstructionFile]:
    """Return the files of the coding agents that are here: of the user, or in the project's folder."""
    base = machine.home if scope == "user" else machine.folder
    claude, gemini = base / ".claude", base / ".gemini"
    found: list[InstructionFile] = []
    if claude.is_dir() or (scope == "project" and (base / "CLAUDE.md").is_file()):
        skill = claude / "skills" / "pegboard" / "SKILL.md"
        found.append(InstructionFile(agent="Claude Code", path=skill, whole=True))
    if scope == "user":
        if (base / ".codex").is_dir():
            found.append(InstructionFile(agent="Codex", path=base / ".codex" / "AGENTS.md"))
        if gemini.is_dir():
            found.append(InstructionFile(agent="Gemini CLI", path=gemini / "GEMINI.md"))
        return found
    if gemini.is_dir() or (base / "GEMINI.md").is_file():
        found.append(InstructionFile(agent="Gemini CLI", path=base / "GEMINI.md"))
    if (base / "AGENTS.md").is_file() or not found:
        found.append(InstructionFile(agent="Codex and others", path=base / "AGENTS.md"))
    return found


def with_agent(text: str, agent: str, *, file: str) -> tuple[str, str]:
    """Return the text of a configuration with the agent of the command line, and its name.

    It may do what the usual agent may. An only agent of another name is that of the command line as well: a second one
    would take from it that it is meant where none is named.
    """
    value: Mapping[str, Any] = value_at(text, (), file=file) or EMPTY
    agents = value.get("agents")
    if is_mapping(agents) and agent in agents:
        return text, agent
    if is_mapping(agents) and len(agents) == 1 and _DEFAULT not in agents:
        return text, next(iter(agents))
    if is_mapping(agents) and agents:
        usual = agents.get(_DEFAULT) or next(iter(agents.values()))
        profile = dict(usual) if is_mapping(usual) else {}
        for key in ("display_name", "role", "rooms"):
            profile.pop(key, None)
    else:
        every = [*_section(value, "servers"), *_section(value, "plugins")]
        profile = {"dialect": "pegboard", "discoverable": every}
        text = with_value(text, ("agents", _DEFAULT), profile, file=file)
    return with_value(text, ("agents", agent), {"dialect": "pegboard", **profile}, file=file), agent


def without_agent(text: str, agent: str, *, file: str) -> str:
    """Return the text of a configuration without the agent of the command line."""
    value: Mapping[str, Any] = value_at(text, (), file=file) or EMPTY
    agents = value.get("agents")
    return without_value(text, ("agents", agent), file=file) if is_mapping(agents) and agent in agents else text


def instructions(text: str, agent: str, *, file: str, program: str, config: str) -> list[str]:
    """Return the lines for a coding agent: which servers there are for what, its name, and three commands.

    Args:
        text: the configuration.
        agent: the name of the agent that it is.
        file: the name of the configuration.
        program: how the command is started.
        config: the option that names the configuration, or nothing.
    """
    value: Mapping[str, Any] = value_at(text, (), file=file) or EMPTY
    options = f" --agent {agent}{f' --config {config}' if config else ''}"
    return [
        "## Tools by `pegboard`",
        "",
        *_purposes(value, agent),
        f"You are the agent `{agent}` there. In the shell:",
        "",
        f"- `{program} search 'what you need'{options}` finds tools.",
        f"- `{program} call NAME --help{options}` shows what a tool takes.",
        f"- `{program} call NAME key=value{options}` runs it. Exit 3: refused. 4: a person has to approve it.",
    ]


def _purposes(value: Mapping[str, Any], agent: str) -> Iterator[str]:
    """Yield a line for each server that the agent may load, and one for the rest."""
    named = {**_section(value, "servers"), **_section(value, "plugins")}
    own = [name for name in named if agent in may_load(value, name)]
    for name in own[:_MOST_SERVERS]:
        entry = named[name]
        said = entry.get("description") or entry.get("category") if is_mapping(entry) else ""
        yield f"- {name}{f': {one_line(str(said), limit=120)}' if said else ''}"
    if len(own) > _MOST_SERVERS:
        yield f"- and {', '.join(own[_MOST_SERVERS:])}"
    yield ""


def text_with_instructions(file: InstructionFile, lines: Sequence[str]) -> str:
    """Return the text of a file with the instructions in it, in the place of those that it has."""
    if file.whole:
        head = ["---", "name: pegboard", "description: Find and run tools of MCP servers by the shell.", "---", BEGIN]
        return "\n".join([*head, *lines[2:], END]) + "\n"
    block = [BEGIN, *lines, END]
    text = file.path.read_text("utf-8") if file.path.is_file() else ""
    before, after = _split_around_instructions(text, file.path)
    if before is None:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}" + "\n".join(block) + "\n"
    return before + "\n".join(block) + "\n" + after


def text_without_instructions(file: InstructionFile) -> str | None:
    """Return the text of a file without the instructions, empty where nothing else is in it; None without any."""
    if not file.path.is_file():
        return None
    text = file.path.read_text("utf-8")
    before, after = _split_around_instructions(text, file.path)
    if before is None:
        return None
    if file.whole:
        return ""
    rest = before.removesuffix("\n") if not after and before.endswith("\n\n") else before
    return rest + after


def _split_around_instructions(text: str, path: Path) -> tuple[str | None, str]:
    """Return what stands before and behind the instructions; None where there are none."""
    if BEGIN not in text:
        return None, ""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end or BEGIN in after:
        message = f"{path}: the lines of Pegboard begin with {BEGIN} but there is not exactly one {END}."
        raise ConfigError(message, code="not_editable", hint="Remove them by hand, then run it again.")
    return before, after.removeprefix("\n")


def _section(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if is_mapping(found) else EMPTY
