"""A configuration with proposals in it that no one has written yet: checked as it would be, and shown as a diff."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml

from pegboard.config.clients.generated import client_text, read_client
from pegboard.config.documents import json_text, yaml_text
from pegboard.config.documents.document import display_path, is_list, is_mapping, read_text
from pegboard.config.documents.value_edits import not_rewritable_error, with_items, with_member
from pegboard.config.inspection import inspect
from pegboard.config.schema import mcp_json
from pegboard.config.schema.configuration import Configuration
from pegboard.core.model.agents import Agent
from pegboard.core.model.masking import Masker
from pegboard.core.model.specs import RegisteredSpec
from pegboard.core.proposals.proposal import Proposal
from pegboard.errors import ConfigError

NEW: Final = "pegboard.yaml"
Judge = Callable[[Configuration], str]
"""Why a changed configuration will not do, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedConfiguration:
    """The text of a configuration as it is (``before``) and with what was accepted (``text``).

    ``there`` is whether that file is there to be changed: an MCP client's file is not ours to change,
    and the packaged one (``packaged``) is no one's. ``problems`` are those that it had before.
    """

    path: Path
    before: str = field(repr=False)
    text: str = field(repr=False)
    there: bool
    packaged: bool
    registered: Mapping[str, RegisteredSpec] = field(repr=False)
    tools: Mapping[str, Collection[str]] = field(repr=False)
    problems: frozenset[tuple[str, str]] = frozenset()

    @property
    def file(self) -> str:
        """Return the file as people know it."""
        return display_path(self.path)

    def with_proposal(self, proposal: Proposal, agent: Agent, judge: Judge) -> ProposedConfiguration | str:
        """Return it with a proposal in it, or why that cannot be (T1 to T3, P5)."""
        try:
            text = _insert_proposal(self.text, self.file, proposal, agent)
        except ConfigError as error:
            return error.message
        configuration, problems = inspect(self.path, registered=self.registered, tools=self.tools, text=text)
        fresh = (problem for problem in problems if (problem.code, problem.message) not in self.problems)
        if (problem := next(fresh, None)) is not None:
            return problem.message
        reason = judge(configuration) if configuration is not None else "It is not valid."
        return reason or replace(self, text=text)

    def diff(self, masker: Masker) -> str:
        """Return the change as `patch -p0` and `git apply` take it; nothing where nothing changes.

        Lines around the change have no secrets: there are as many of them, up to three, as that allows (X5).
        """
        if self.text == self.before or not self.there:
            return ""
        shown = ""
        for context in (3, 2, 1, 0):
            shown = _unified_diff(self.before, self.text, self.file, context)
            if masker.text(shown) == shown:
                break
        return shown

    def to_write(self) -> str:
        """Return what a new file would say, as YAML: the packaged one whole, else its sections beside the servers."""
        if self.packaged:
            return self.text
        value = yaml_text.compose(self.text, self.file).value
        kept = {name: _plain_yaml(value[name]) for name in ("toolkits", "agents") if value.get(name)}
        return yaml.safe_dump(kept, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)


def configuration_of(
    path: Path,
    *,
    registered: Mapping[str, RegisteredSpec],
    tools: Mapping[str, Collection[str]],
    packaged: bool,
) -> ProposedConfiguration:
    """Return a configuration as it is; for one that is not ours to change, the one that `init` would write.

    Raises:
        ConfigError: the file cannot be read any longer.
    """
    there = False
    if packaged:
        here, text = Path(NEW), path.read_text("utf-8").replace('store: "memory:"\n', "")
    elif is_client_file(path):
        here, text = path.with_name(NEW), client_text(read_client(path), path.name)
    else:
        here, text, there = path, _read_text(path), True
    problems = inspect(here, registered=registered, tools=tools, text=text)[1]
    return ProposedConfiguration(
        path=here,
        before=text,
        text=text,
        there=there,
        packaged=packaged,
        registered=registered,
        tools=tools,
        problems=frozenset((problem.code, problem.message) for problem in problems),
    )


def is_client_file(path: Path) -> bool:
    """Return whether a configuration is the file of an MCP client.

    Raises:
        ConfigError: it is one of our own in JSON, which is not changed here.
    """
    as_json, file = path.suffix.lower() in (".json", ".jsonc"), display_path(path)
    text = _read_text(path)
    document = json_text.compose(text, file) if as_json else yaml_text.compose(text, file)
    root = mcp_json.servers_root(document.value, json_file=as_json)
    if as_json and not root:
        raise not_rewritable_error(file)
    return bool(root)


def _read_text(path: Path) -> str:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        text = stream.read()
    return text or read_text(path, file=display_path(path))


def _insert_proposal(text: str, file: str, proposal: Proposal, agent: Agent) -> str:
    """Return the text with a proposal in it; the agent of a file that names none is written out first."""
    value: Any = yaml_text.compose(text, file).value
    if "agents" not in value:
        implied = {"allowed_toolkits": list(agent.allowed_toolkits), "discoverable": list(agent.discoverable)}
        shown = {key: names for key, names in implied.items() if names}
        text = with_member(text, ("agents",), proposal.agent, shown, file=file)
    own = ("agents", proposal.agent)
    if proposal.static:
        text = with_items(text, (*own, "tools"), proposal.static, file=file)
    if proposal.initial:
        text = with_items(text, (*own, "initial_toolkits"), proposal.initial, file=file)
    kit = proposal.toolkit
    if kit is not None:
        body = {"description": kit.description, "tools": list(kit.members)}
        text = with_member(text, ("toolkits",), kit.name, body, file=file)
        text = with_items(text, (*own, "allowed_toolkits"), (kit.name,), file=file)
    return text


def _unified_diff(before: str, after: str, file: str, context: int) -> str:
    lines = difflib.unified_diff(_lines(before), _lines(after), file, file, n=context)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Return the lines as `patch` counts them: only a line feed ends one."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _plain_yaml(value: Any) -> Any:
    """Return a value as YAML writes it: without types of our own."""
    if is_mapping(value):
        return {str(key): _plain_yaml(inner) for key, inner in value.items()}
    if is_list(value):
        return [_plain_yaml(inner) for inner in value]
    return str(value) if isinstance(value, str) else value
