"""Read, check and compile configurations."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pegboard.config.check.all_checks import check
from pegboard.config.check.loadout_checks import check_loadouts
from pegboard.config.check.member_names import Names
from pegboard.config.check.override_checks import Misfit, check_overrides
from pegboard.config.check.reach_checks import check_reach
from pegboard.config.compile import UncheckedConfig, store_url
from pegboard.config.documents.document import UnreadableError, display_path
from pegboard.config.joining.additions import Addition, GivenLoadout, GivenToolkit, with_additions
from pegboard.config.joining.joining_plugins import joined, with_settings
from pegboard.config.reading import MAPPING, Reading
from pegboard.config.schema.configuration import Configuration
from pegboard.core.model.loadouts import BUILT_IN, Loadout
from pegboard.core.model.masking import MASK, Masker, masked
from pegboard.core.model.specs import PluginSpec, RegisteredSpec, ServerSpec
from pegboard.core.model.tools import Frozen
from pegboard.errors import ConfigError
from pegboard.problems import Problem

_NO_TOOLS: Final[Mapping[str, Collection[str]]] = {}


def load(
    path: Path,
    *,
    registered: Mapping[str, RegisteredSpec],
    env: Mapping[str, str] | None = None,
    tools: Mapping[str, Collection[str]] = _NO_TOOLS,
    additions: Sequence[Addition] = (),
) -> Configuration:
    """Return a configuration; raises ``ConfigError`` with all of its problems if it has an error.

    ``registered`` are the plugins that may be named without being written; ``tools`` the own names
    of the tools of plugins that were asked before; ``additions`` are as ``inspect`` takes them.
    """
    configuration, problems = inspect(path, registered=registered, env=env, tools=tools, additions=additions)
    if configuration is None:
        raise refusal(display_path(path), problems)
    return configuration


def refusal(name: str, problems: Sequence[Problem]) -> ConfigError:
    """Return the error of a configuration that cannot be used, with everything that is wrong with it."""
    errors = [p for p in problems if p.severity == "error"]
    count = "one problem" if len(errors) == 1 else f"{len(errors)} problems"
    listed = "\n".join(f"  {p}" for p in errors)
    return ConfigError(f"{name} cannot be used, {count}:\n{listed}", problems=problems)


def inspect(
    path: Path,
    *,
    registered: Mapping[str, RegisteredSpec],
    env: Mapping[str, str] | None = None,
    tools: Mapping[str, Collection[str]] = _NO_TOOLS,
    misfits: Sequence[Misfit] = (),
    text: str | None = None,
    value: Mapping[str, Any] | None = None,
    additions: Sequence[Addition] = (),
) -> tuple[Configuration | None, list[Problem]]:
    """Return a configuration, or None if it has an error, and every problem by its place.

    ``misfits`` are overrides that plugins were asked about and do not take. ``text`` is read in place of
    what is in the file, which need not be there, and so is ``value``, a mapping that a program gives. ``additions``
    are toolkits and loadouts from elsewhere, those that count first first (T11).
    """
    reading = Reading(path=path, env=os.environ if env is None else env, text=text, value=value)
    try:
        config, written = reading.unchecked()
    except UnreadableError as error:
        return None, [error.problem]
    config, written, wrong = with_additions(config, written, additions)
    registered = with_settings(config, registered)
    specs = joined(config, registered)
    names = Names(config, registered, tools, joined=specs.keys())
    masker = Masker(reading.secrets | _literal_secrets(config, reading.secrets))
    found = [
        *reading.problems,
        *wrong,
        *check(config, names, masker),
        *check_loadouts(config, written, names),
        *check_reach(config, specs),
        *check_overrides(config, names, misfits),
    ]
    problems = sorted((_masked(p, masker) for p in found), key=lambda p: _order(p, reading.file))
    if any(p.severity == "error" for p in problems):
        return None, problems
    return _configuration(config, reading, specs, masker, problems), problems


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationSource:
    """What a configuration is read from: a file or a mapping, and what code gives beside it (T11)."""

    path: Path
    value: Mapping[str, Any] | None = None
    toolkits: tuple[GivenToolkit, ...] = ()
    loadouts: tuple[GivenLoadout, ...] = ()

    @property
    def name(self) -> str:
        """Return how messages name it."""
        return display_path(self.path) if self.value is None else MAPPING

    @property
    def is_file(self) -> bool:
        """Return whether a file is all of it."""
        return self.value is None and not self.toolkits and not self.loadouts

    def with_toolkit(self, toolkit: GivenToolkit) -> ConfigurationSource:
        """Return it with a toolkit more, in place of one of the same name."""
        kept = (one for one in self.toolkits if one.get("name") != toolkit.get("name"))
        return replace(self, toolkits=(*kept, toolkit))

    def with_loadout(self, loadout: Loadout) -> ConfigurationSource:
        """Return it with a loadout more, in place of one of the same name."""
        kept = (one for one in self.loadouts if _name(one).casefold() != loadout.name.casefold())
        return replace(self, loadouts=(*kept, loadout))

    def inspect(
        self,
        *,
        registered: Mapping[str, RegisteredSpec],
        packages: Sequence[Addition],
        env: Mapping[str, str],
        tools: Mapping[str, Collection[str]] = _NO_TOOLS,
    ) -> tuple[Configuration | None, list[Problem]]:
        """Return the configuration of now, or None if it has an error, and every problem."""
        code = Addition(toolkits=self.toolkits, loadouts=self.loadouts)
        additions = (code, *packages) if self.toolkits or self.loadouts else tuple(packages)
        return inspect(self.path, registered=registered, env=env, tools=tools, value=self.value, additions=additions)


def _name(loadout: GivenLoadout) -> str:
    return loadout.name if isinstance(loadout, Loadout) else str(loadout.get("name", ""))


def _configuration(
    config: UncheckedConfig,
    reading: Reading,
    specs: Mapping[str, PluginSpec],
    masker: Masker,
    problems: Sequence[Problem],
) -> Configuration:
    return Configuration(
        path=reading.path,
        toolkits=Frozen(config.toolkits),
        loadouts=Frozen({**BUILT_IN, **config.loadouts}),
        agents=Frozen(config.agents),
        sub_apps=Frozen(config.sub_apps),
        specs=Frozen(specs),
        models=Frozen(config.validated.section.models),
        tokens=config.tokens,
        store=store_url(config.validated.section.store, reading.folder),
        transformer=config.validated.place("search", "transformer")
        if config.validated.section.search.transformer
        else None,
        secrets=masker.values,
        problems=tuple(problems),
        files=tuple(reading.files),
        folders=tuple(reading.folders()),
    )


def _order(item: Problem, main: str) -> tuple[bool, str, int, int]:
    place = item.place
    if place is None:
        return False, "", 0, 0
    return place.file != main, place.file, place.line or 0, place.column or 0


def _masked(item: Problem, masker: Masker) -> Problem:
    """Return a problem that can be printed anywhere and gives nothing away (X5)."""

    def safe(text: str) -> str:
        return masker.text(text).encode(errors="backslashreplace").decode()

    place = replace(item.place, path=safe(item.place.path)) if item.place else None
    return replace(item, message=safe(item.message), hint=safe(item.hint), place=place)


def _literal_secrets(config: UncheckedConfig, known: AbstractSet[str]) -> set[str]:
    """Return the secrets that were written into the file itself: tokens, and what is named like one."""
    found = {token.value for token in config.tokens}
    for spec in config.written.values():
        for pairs in (spec.env, spec.headers) if isinstance(spec, ServerSpec) else ():
            for key, value in pairs.items():
                named = masked({key: value}, Masker(), frozenset())[key] == MASK
                if named and not any(secret in value for secret in known):
                    found.update((value, value.rpartition(" ")[2]))
    return {value for value in found if value.strip()}
