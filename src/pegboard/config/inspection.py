"""Read, check and compile configurations."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pegboard.config.additions import Addition, joined, with_additions, with_settings
from pegboard.config.check.agent_checks import check_reach
from pegboard.config.check.all_checks import check
from pegboard.config.check.confinement_checks import check_confined
from pegboard.config.check.loadout_checks import check_loadouts
from pegboard.config.check.member_names import MemberNames
from pegboard.config.check.override_checks import Misfit, check_overrides
from pegboard.config.check.shared_globals import check_globals
from pegboard.config.compile import UncheckedConfig, hooks_of, store_url
from pegboard.config.documents.document import UnreadableError, display_path
from pegboard.config.reading import Reading
from pegboard.config.schema.configuration import Configuration
from pegboard.core.model.addresses import STORE_GRACE, store_secrets
from pegboard.core.model.loadouts import BUILT_IN
from pegboard.core.model.masking import MASK, Masker, masked
from pegboard.core.model.references import refers
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
    names = MemberNames(config, registered, tools, joined=specs.keys())
    masker = Masker(reading.secrets | _literal_secrets(config, reading.secrets))
    found = [
        *reading.problems,
        *wrong,
        *check(config, names, masker),
        *check_loadouts(config, written, names),
        *check_reach(config, specs),
        *check_overrides(config, names, misfits),
    ]
    if not any(p.severity == "error" for p in found):
        found += [*check_confined(config, specs), *check_globals(config, specs)]
    problems = sorted(dict.fromkeys(_masked(p, masker) for p in found), key=lambda p: _order(p, reading.file))
    if any(p.severity == "error" for p in problems):
        return None, problems
    return _configuration(config, reading, specs, masker, problems), problems


def _configuration(
    config: UncheckedConfig,
    reading: Reading,
    specs: Mapping[str, PluginSpec],
    masker: Masker,
    problems: Sequence[Problem],
) -> Configuration:
    store = config.validated.section.store
    return Configuration(
        path=reading.path,
        toolkits=Frozen(config.toolkits),
        loadouts=Frozen({**BUILT_IN, **config.loadouts}),
        agents=Frozen(config.agents),
        sub_apps=Frozen(config.sub_apps),
        specs=Frozen(specs),
        models=Frozen(config.validated.section.models),
        tokens=config.tokens,
        store=store_url(store.url if store else None, reading.path),
        store_grace=store.grace if store else STORE_GRACE,
        secrets=masker.values,
        problems=tuple(problems),
        reload=config.validated.section.reload,
        notify=hooks_of(config.validated),
        console_url=config.validated.section.console_url or "",
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
    found |= {hook.url for hook in hooks_of(config.validated) if not any(secret in hook.url for secret in known)}
    if config.validated.section.store is not None:
        found |= store_secrets(config.validated.section.store.url)
    for spec in config.written.values():
        for pairs in (spec.env, spec.headers) if isinstance(spec, ServerSpec) else ():
            for key, value in pairs.items():
                named = masked({key: value}, Masker(), frozenset())[key] == MASK
                if named and not refers(value) and not any(secret in value for secret in known):
                    found.update((value, value.rpartition(" ")[2]))
    return {value for value in found if value.strip()}
