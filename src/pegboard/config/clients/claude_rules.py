"""The permission rules of Claude Code that name tools of a server, and what they become behind Pegboard."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pegboard.config.client_files.claude_code import settings_files, settings_in
from pegboard.config.client_files.client import ClientScope
from pegboard.config.documents.document import display_path, is_list, is_mapping
from pegboard.config.location import Machine
from pegboard.core.model.selectors import EXCLUDE, INCLUDE

RuleKind = Literal["allow", "ask", "deny"]
_KINDS: Final[tuple[RuleKind, ...]] = ("allow", "ask", "deny")
_SAFE: Final = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeRule:
    """A rule about a server, or about one tool of it; ``file`` is where it stands."""

    kind: RuleKind
    text: str
    server: str
    tool: str
    file: str

    @property
    def every_tool(self) -> bool:
        """Return whether it is about all tools of the server."""
        return self.tool in ("", "*")

    @property
    def line(self) -> str:
        """Return what it becomes, in one sentence."""
        new = f"mcp__pegboard__{self.server}__{'*' if self.every_tool else self.tool}"
        head = f"{self.kind} {self.text} ({self.file}) no longer matches:"
        if self.kind == "deny":
            return f"{head} Pegboard does not give Claude Code what it denies."
        through = "mcp__pegboard__call_tool runs it too, under the rules for that name"
        if self.kind == "ask":
            approve = "" if self.every_tool else f", or `approve: {{{self.tool}: always}}` under servers.{self.server}"
            return f"{head} write {self.kind} {new}{approve}; {through}."
        return f"{head} write {self.kind} {new} for what is loaded; {through}."


def claude_rules(servers: Mapping[str, Any], machine: Machine, scope: ClientScope, folder: Path) -> list[ClaudeRule]:
    """Return the rules that name servers, or tools of them.

    Args:
        servers: those that are moved.
        machine: where files lie.
        scope: whose servers they are; the rules of a project are not about those of the user.
        folder: the folder of the project.
    """
    places = settings_files(machine, folder, personal=scope == "user")
    by_name = {_SAFE.sub("_", name): name for name in servers}
    return [rule for place in places for rule in _rules_in(place, by_name)]


def deny_in_filters(rules: list[ClaudeRule], filters: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the filters of servers with what rules deny of their tools taken out.

    >>> rule = ClaudeRule(kind="deny", text="mcp__git__git_push", server="git", tool="git_push", file="settings.json")
    >>> deny_in_filters([rule], {})
    {'git': {'exclude_tools': ['git_push']}}
    """
    found = {name: dict(rule) for name, rule in filters.items()}
    for rule in rules:
        if rule.kind != "deny" or rule.every_tool:
            continue
        said = found.setdefault(rule.server, {})
        if INCLUDE in said:
            said[INCLUDE] = [name for name in said[INCLUDE] if name != rule.tool]
        elif rule.tool not in said.get(EXCLUDE, ()):
            said[EXCLUDE] = [*said.get(EXCLUDE, ()), rule.tool]
    return found


def _rules_in(path: Path, by_name: Mapping[str, str]) -> Iterator[ClaudeRule]:
    file, permissions = display_path(path), settings_in(path).get("permissions")
    for kind in _KINDS:
        rules = permissions.get(kind) if is_mapping(permissions) else None
        for text in rules if is_list(rules) else ():
            if isinstance(text, str) and (rule := _rule(kind, text, by_name, file)) is not None:
                yield rule


def _rule(kind: RuleKind, text: str, by_name: Mapping[str, str], file: str) -> ClaudeRule | None:
    head, mark, rest = text.partition("mcp__")
    if head or not mark:
        return None
    for bare, name in by_name.items():  # a name may have two underscores in it
        if rest == bare or rest.startswith(f"{bare}__"):
            return ClaudeRule(kind=kind, text=text, server=name, tool=rest[len(bare) + 2 :], file=file)
    return None
