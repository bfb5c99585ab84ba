"""Read, check and compile configurations."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pegboard.config.additions import GivenParts, joined_plugins, with_additions, with_settings
from pegboard.config.check.agent_checks import check_agent, check_models, check_reach
from pegboard.config.check.isolation_checks import check_confined, check_globals
from pegboard.config.check.loadout_checks import check_loadouts
from pegboard.config.check.member_names import DEFAULTS, MemberNames, check_members
from pegboard.config.check.plugin_checks import Misfit, check_overrides, check_plugins
from pegboard.config.check.text_checks import check_texts
from pegboard.config.check.toolkit_checks import check_toolkits
from pegboard.config.compile import UncheckedConfig, hooks_of, store_url
from pegboard.config.documents.document import UnreadableError, display_path, is_mapping
from pegboard.config.documents.expansion import references_as_written
from pegboard.config.problem_codes import error
from pegboard.config.reading import ConfigurationReading, UnusableServer
from pegboard.config.schema.configuration import Configuration
from pegboard.core.model.addresses import STORE_GRACE, store_secrets
from pegboard.core.model.loadouts import BUILT_IN
from pegboard.core.model.masking import MASK, Masker, mask_overrides
from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.references import refers
from pegboard.core.model.selectors import Member
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
    additions: Sequence[GivenParts] = (),
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
    additions: Sequence[GivenParts] = (),
    as_written: bool = False,
) -> tuple[Configuration | None, list[Problem]]:
    """Return a configuration, or None if it has an error, and every problem by its place.

    ``misfits`` are overrides that plugins were asked about and do not take. ``text`` is read in place of
    what is in the file, which need not be there, and so is ``value``, a mapping that a program gives. ``additions``
    are toolkits and loadouts from elsewhere, those that count first first (T11). ``as_written``: of what something
    confined may write counts what is there, not what was accepted (A7).
    """
    reading = ConfigurationReading(
        path=path, env=os.environ if env is None else env, text=text, value=value, as_written=as_written
    )
    while True:
        configuration, problems, unusable = _inspect_reading(reading, registered, tools, misfits, additions)
        if configuration is not None or not unusable:
            return configuration, problems
        reading = reading.without_unusable(unusable)


_WRITTEN_WRONGLY: Final = frozenset({"bad_reference", "misplaced_reference"})


def _unusable_servers(problems: Sequence[Problem], config: UncheckedConfig) -> dict[int, str]:
    """Return which errors cost one server only (P6): its name by the position of the problem.

    Those are all errors of servers in a client's file, and in our own those of what comes from the environment. A
    reference that is written wrongly in our own is a mistake of who wrote it.
    """
    validated = config.validated
    servers = validated.raw.get("servers")
    found: dict[int, str] = {}
    for name, entry in servers.items() if is_mapping(servers) else ():
        own = [validated.place("servers", name).path]
        if not config.generated:
            filled = (
                [key for key, value in entry.items() if references_as_written(value) is not None]
                if is_mapping(entry)
                else ()
            )
            own = [validated.place("servers", name, key).path for key in filled]
        for position, problem in enumerate(problems):
            if not config.generated and problem.code in _WRITTEN_WRONGLY:
                continue
            at = problem.place.path if problem.place and problem.severity == "error" else ""
            if any(f"{at}.".startswith((f"{path}.", f"{path}[")) for path in own):
                found[position] = name
    return found


def _inspect_reading(
    reading: ConfigurationReading,
    registered: Mapping[str, RegisteredSpec],
    tools: Mapping[str, Collection[str]],
    misfits: Sequence[Misfit],
    additions: Sequence[GivenParts],
) -> tuple[Configuration | None, list[Problem], dict[str, UnusableServer]]:
    """Return what ``inspect`` does, and the servers with an error that costs no others."""
    try:
        config, written = reading.unchecked_config()
    except UnreadableError as error:
        return None, [error.problem], {}
    config, written, wrong = with_additions(config, written, additions)
    registered = with_settings(config, registered)
    specs = joined_plugins(config, registered)
    names = MemberNames(config, registered, tools, joined=specs.keys())
    secrets = frozenset(reading.secrets | _literal_secrets(config, reading.secrets))
    masker = Masker(secrets)
    found = [
        *reading.problems,
        *wrong,
        *check(config, names, masker),
        *check_loadouts(config, written, names),
        *check_reach(config, specs),
        *check_overrides(config, names, misfits),
    ]
    unusable: dict[str, UnusableServer] = {}
    own = _unusable_servers(found, config)
    for position, name in own.items():
        problem = found[position]
        if name not in reading.unusable:
            whole = problem.place is not None and problem.place.path == config.validated.place("servers", name).path
            unusable.setdefault(name, UnusableServer(problem=problem, misnamed=whole and problem.code == "bad_value"))
    known = [position for position, name in own.items() if name in reading.unusable]
    found = [problem for position, problem in enumerate(found) if position not in known]
    if not any(p.severity == "error" for p in found):
        found += [*check_confined(config, specs), *check_globals(config, specs)]
    problems = sorted(dict.fromkeys(_mask_problem(p, masker) for p in found), key=lambda p: _order(p, reading.file))
    if any(p.severity == "error" for p in problems):
        return None, problems, unusable
    return _configuration(config, reading, specs, secrets, problems), problems, unusable


def _configuration(
    config: UncheckedConfig,
    reading: ConfigurationReading,
    specs: Mapping[str, PluginSpec],
    secrets: frozenset[str],
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
        secrets=secrets,
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


def _mask_problem(item: Problem, masker: Masker) -> Problem:
    """Return a problem that can be printed anywhere and gives nothing away (X5)."""

    def mask_and_escape(text: str) -> str:
        return masker.text(text).encode(errors="backslashreplace").decode()

    place = replace(item.place, path=mask_and_escape(item.place.path)) if item.place else None
    return replace(item, message=mask_and_escape(item.message), hint=mask_and_escape(item.hint), place=place)


def _literal_secrets(config: UncheckedConfig, known: AbstractSet[str]) -> set[str]:
    """Return the secrets that were written into the file itself: tokens, and what is named like one."""
    found = {token.value for token in config.tokens}
    found |= {hook.url for hook in hooks_of(config.validated) if not any(secret in hook.url for secret in known)}
    if config.validated.section.store is not None:
        found |= store_secrets(config.validated.section.store.url)
    for spec in config.written.values():
        for pairs in (spec.env, spec.headers) if isinstance(spec, ServerSpec) else ():
            for key, value in pairs.items():
                named = mask_overrides({key: value}, Masker(), frozenset())[key] == MASK
                if named and not refers(value) and not any(secret in value for secret in known):
                    found.update((value, value.rpartition(" ")[2]))
    return {value for value in found if value.strip()}


def check(config: UncheckedConfig, names: MemberNames, masker: Masker) -> Iterator[Problem]:
    """Yield every problem of a file that has the right shape."""
    yield from check_plugins(config, names)
    yield from check_toolkits(config, names)
    for name, items in config.sub_apps.items():
        yield from check_members(items, names, f"sub-app '{name}'")
    yield from _defaults(config, names)
    yield from check_models(config)
    for agent in config.agents.values():
        yield from check_agent(agent, config, names, masker)
    yield from check_tokens(config)
    yield from check_texts(config, names)


def _defaults(config: UncheckedConfig, names: MemberNames) -> Iterator[Problem]:
    entries = config.validated.section.defaults.tools
    places = [config.validated.place("defaults", "tools", index) for index in range(len(entries))]
    items = [Member(name=name, place=place) for (name, _), place in zip(entries, places, strict=True)]
    yield from check_members(items, names, DEFAULTS)


def check_tokens(config: UncheckedConfig) -> Iterator[Problem]:
    """Yield tokens that let in no one, anyone or the wrong one."""
    validated = config.validated
    declared = validated.declared_names("agents") | config.agents.keys()
    owners: dict[str, str] = {}
    for token in config.tokens:
        if not token.value.strip():
            hint = "An empty token would let anyone in."
            yield error("empty_token", "the token is empty.", token.place, hint)
        elif owners.setdefault(token.value, token.principal) != token.principal:
            message = f"'{owners[token.value]}' has the same token."
            yield error("duplicate_token", message, token.place, "Give each principal a token of its own.")
        for index, name in enumerate(token.agents or ()):
            if name not in declared:
                message = f"agent '{name}' is not defined."
                place = validated.place("tokens", token.principal, "agents", index)
                yield error("unknown_agent", message, place, did_you_mean(name, declared))
