"""Inline overrides that a plugin does not take, each at its own place (T1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pegboard.config.check.member_names import MemberNames
from pegboard.config.compile import UncheckedConfig
from pegboard.config.documents.document import PathKey
from pegboard.config.problem_codes import error
from pegboard.config.schema.values import EntryWithOverrides
from pegboard.core.model.selectors import member
from pegboard.core.model.tools import variant_key
from pegboard.problems import Problem


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
        misfit = by_variant.get((names.meaning(name).plugin, key))
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
