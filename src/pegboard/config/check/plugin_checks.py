"""Servers and plugins: what they start, their prefixes, what their tools need, overrides that they do not take (T1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pegboard.config.check.member_names import MemberNames, check_members
from pegboard.config.compile import UncheckedConfig
from pegboard.config.documents.document import PathKey
from pegboard.config.problem_codes import error, warning_problem
from pegboard.config.schema.sections import File
from pegboard.config.schema.validation import ValidatedDocument
from pegboard.config.schema.values import EntryWithOverrides
from pegboard.core.model.agents import Agent
from pegboard.core.model.loadouts import matches_any
from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.references import ByReference, Reference
from pegboard.core.model.selectors import Member, member
from pegboard.core.model.specs import HTTP_SPACE, PluginSettings, RegisteredSpec, ServerSpec
from pegboard.core.model.toolkits import HOST_TOOLS
from pegboard.core.model.tools import variant_key
from pegboard.problems import Problem


def check_plugins(config: UncheckedConfig, names: MemberNames) -> Iterator[Problem]:
    """Yield what is wrong with the servers and plugins of a file."""
    yield from _servers(config)
    yield from _prefixes(config)
    yield from _plugins_with_reserved_names(config)
    yield from _unknown_plugins(config, names)
    for spec in (*config.written.values(), *config.settings.values()):
        section = "servers" if isinstance(spec, ServerSpec) else "plugins"
        yield from _requires(spec, section, config, names)


def _unknown_plugins(config: UncheckedConfig, names: MemberNames) -> Iterator[Problem]:
    """Yield what is said of plugins that are neither written here nor registered."""
    known = [spec.name for spec in names.plugins.values() if isinstance(spec, RegisteredSpec)]
    for name in sorted(names.unregistered - config.written.keys()):
        message = f"'python' is missing, and no registered plugin is called '{name}'."
        hint = did_you_mean(name, known) or "Write `python: module`, or `python: module:object`."
        yield error("missing_key", message, config.settings[name].place, hint)


def _servers(config: UncheckedConfig) -> Iterator[Problem]:
    validated = config.validated
    for name, part in validated.section.servers.items():
        if name in validated.section.plugins:
            place = validated.place("plugins", name, key=True)
            message = f"'{name}' is a server and a plugin."
            yield error("duplicate_plugin", message, place, "Rename one of them.")
        if part.disabled is True:
            continue
        if isinstance(part.disabled, str):
            message = f"server '{name}' is not available: {part.disabled.rstrip('.')}."
            hint = "Correct the problem and remove `disabled`."
            yield warning_problem("unavailable", message, validated.place("servers", name, "disabled"), hint)
        spec = config.written[name]
        lost = {"command", "url"} & validated.wrote("servers", name) - part.model_fields_set
        if isinstance(spec, ServerSpec) and not spec.unavailable and not lost:
            yield from check_target(part.command, part.url, name, validated, spec.references)


def _prefixes(config: UncheckedConfig) -> Iterator[Problem]:
    """Yield prefixes that two plugins of one agent have: tools of one name would clash (G10)."""
    prefixes: dict[str, str] = {}
    agents = [agent for agent in config.agents.values() if agent.loadout is None]
    if len(agents) < len(config.agents):
        agents.append(Agent(name="", discoverable=("*",)))
    for name, spec in config.written.items():
        section = "servers" if isinstance(spec, ServerSpec) else "plugins"
        prefix = name if spec.prefix is None and section == "servers" else spec.prefix or ""
        first = prefixes.setdefault(prefix, name)
        if prefix and first != name and any(_may_have(a, first, config) and _may_have(a, name, config) for a in agents):
            message = f"the tools of '{first}' and '{name}' both begin with '{prefix}__'."
            hint = "Give one of them another prefix: two tools of one name cannot both be listed."
            yield warning_problem("shared_prefix", message, config.validated.place(section, name, "prefix"), hint)


def _may_have(agent: Agent, plugin: str, config: UncheckedConfig) -> bool:
    """Return whether an agent names a plugin, or a pattern or toolkit that has it."""
    kits = (config.toolkits.get(name) for name in (*agent.allowed_toolkits, *agent.initial_toolkits))
    members = [*agent.static, *agent.essential, *(one for kit in kits if kit is not None for one in kit.members)]
    return matches_any(agent.discoverable, plugin) is not None or any(one.name == plugin for one in members)


def _plugins_with_reserved_names(config: UncheckedConfig) -> Iterator[Problem]:
    """Yield plugins that an agent's ``tools`` cannot mean by their names alone."""
    for name in sorted(HOST_TOOLS & config.written.keys()):
        section = "servers" if isinstance(config.written[name], ServerSpec) else "plugins"
        message = f"'{name}' in an agent's `tools` is run by Pegboard itself and is not this plugin."
        place = config.validated.place(section, name, key=True)
        yield warning_problem("reserved", message, place, f"Rename it, or write 'plugin:{name}'.")


def _requires(spec: PluginSettings, section: str, config: UncheckedConfig, names: MemberNames) -> Iterator[Problem]:
    for tool, others in spec.requires.items():
        places = [config.validated.place(section, spec.name, "requires", tool, i) for i in range(len(others))]
        items = [
            Member(name=_full_tool_name(n, spec.name, names), place=p) for n, p in zip(others, places, strict=True)
        ]
        yield from check_members(items, names, f"requires of '{tool}'")


def _full_tool_name(name: str, plugin: str, names: MemberNames) -> str:
    """Return the name of a tool of the same plugin in full."""
    return f"{plugin}/{name}" if names.meaning_of(name).kind in ("unknown", "unsure") else name


def check_target(
    command: str | None,
    url: str | None,
    name: str,
    validated: ValidatedDocument[File],
    references: Sequence[ByReference],
) -> Iterator[Problem]:
    """Yield why it is not known what a server is: a program, or an address."""
    place = validated.place("servers", name, key=True)
    begins_later = any(one.part == "url" and isinstance(one.pieces[0], Reference) for one in references)
    if command is None and url is None:
        hint = "Write `command:` for a program to start, or `url:` for a remote server."
        yield error("server_target", "has neither a command nor a url.", place, hint)
    elif command is not None and url is not None:
        yield error("server_target", "has both a command and a url.", place, "Leave one of them out.")
    elif command == "":
        yield error("server_target", "its command is empty.", validated.place("servers", name, "command"))
    elif url is not None and not begins_later and not url.strip(HTTP_SPACE).lower().startswith(("http://", "https://")):
        place = validated.place("servers", name, "url")
        yield error("server_target", "its url does not begin with http:// or https://.", place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """An override that a plugin was asked about and does not take; ``key`` is that of the variant (T5)."""

    plugin: str
    key: str
    override: str
    message: str
    hint: str = ""


def check_overrides(config: UncheckedConfig, names: MemberNames, misfits: Sequence[Misfit]) -> Iterator[Problem]:
    """Yield the overrides that do not fit, wherever they are written."""
    by_variant = {(misfit.plugin, misfit.key): misfit for misfit in misfits}
    for path, (name, overrides) in _entries(config) if misfits else ():
        key = variant_key(member(name, overrides).overrides)
        misfit = by_variant.get((names.meaning_of(name).plugin, key))
        if misfit is not None:
            place = config.validated.place(*path, name, misfit.override, key=True)
            yield error("bad_override", misfit.message, place, misfit.hint)


def _entries(config: UncheckedConfig) -> Iterator[tuple[tuple[PathKey, ...], EntryWithOverrides]]:
    """Yield every entry of a list of tools with its path in the file."""
    file = config.validated.section
    lists: list[tuple[tuple[PathKey, ...], Sequence[EntryWithOverrides]]] = [
        (("defaults", "tools"), file.defaults.tools)
    ]
    lists += [(("toolkits", name, "tools"), part.tools) for name, part in file.toolkits.items()]
    lists += [(("sub_apps", name, "tool_names"), part.tool_names) for name, part in file.sub_apps.items()]
    for name, part in (file.agents or {}).items():
        lists += [(("agents", name, "tools"), part.tools), (("agents", name, "essential"), part.essential)]
    return (((*path, index), entry) for path, entries in lists for index, entry in enumerate(entries))
