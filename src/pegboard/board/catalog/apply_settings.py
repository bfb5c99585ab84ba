"""What the configuration says of a plugin's tools, beside what its source says of them (T8, T10, T12)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final

from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import Manifest, Tool
from pegboard.errors import ToolUnavailableError

_PATTERN: Final = frozenset("*?[")


def misnamed_tools(manifest: Manifest, spec: PluginSpec) -> Iterator[ToolUnavailableError]:
    """Yield an error for every name in the settings of a plugin that is not one of its tools; wire names count too.

    A pattern may mean no tool yet; no name at all in ``needs`` and ``when`` means the whole plugin.
    """
    tables: dict[str, Collection[str]] = {
        "requires": spec.requires,
        "policy": spec.policy,
        "needs": [name for name in {**spec.needs, **spec.when} if name],
        "guards": spec.guards,
        "approve": [name for name in spec.approve if not _PATTERN.intersection(name)],
    }
    if not any(tables.values()):
        return
    names = [tool.name for tool in manifest.tools]
    known = {*names, *(tool.wire for tool in manifest.tools if tool.wire)}  # of a plugin it may not be given yet
    for key, name in ((key, name) for key, table in tables.items() for name in table if name not in known):
        yield ToolUnavailableError(
            f"plugin '{spec.name}': '{key}' names '{name}', which is not one of its tools.",
            hint=did_you_mean(name, names) or f"Its tools are {', '.join(names)}.",
            location=spec.place,
        )


def with_configuration(manifest: Manifest, spec: PluginSpec) -> Manifest:
    """Return a manifest with what the configuration adds to each tool."""
    if not (spec.requires or spec.needs or spec.when or spec.policy):
        return manifest
    own = frozenset(tool.name for tool in manifest.tools)
    return replace(manifest, tools=tuple(_with_settings(tool, spec, own) for tool in manifest.tools))


def _with_settings(tool: Tool, spec: PluginSpec, siblings: Collection[str]) -> Tool:
    def texts_for(table: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        return table.get(tool.name) or table.get(tool.wire) or ()

    requires = (f"{spec.name}/{name}" if name in siblings else name for name in texts_for(spec.requires))
    whens = (spec.when.get(name, "") for name in dict.fromkeys((tool.name, tool.wire, "")))
    return replace(
        tool,
        requires=tuple(dict.fromkeys((*tool.requires, *requires))),
        needs=tuple(dict.fromkeys((*tool.needs, *texts_for(spec.needs), *spec.needs.get("", ())))),
        when=tuple(dict.fromkeys((*tool.when, *filter(None, whens)))),
        policy=spec.policy.get(tool.name) or spec.policy.get(tool.wire) or tool.policy,
    )
