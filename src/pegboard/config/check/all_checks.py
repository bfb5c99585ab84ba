"""Everything that a file must keep to besides its shape."""

from __future__ import annotations

from collections.abc import Iterator

from pegboard.config.check.agent_checks import check_agent
from pegboard.config.check.member_checks import DEFAULTS, check_members
from pegboard.config.check.member_names import MemberNames
from pegboard.config.check.model_checks import check_models
from pegboard.config.check.plugin_checks import check_plugins
from pegboard.config.check.text_checks import check_texts
from pegboard.config.check.toolkit_checks import check_toolkits
from pegboard.config.compile import UncheckedConfig
from pegboard.config.problem_codes import error
from pegboard.core.model.masking import Masker
from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.selectors import Member
from pegboard.problems import Problem


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
    """Yield tokens that let in nobody, anybody or the wrong one."""
    validated = config.validated
    declared = validated.declared("agents") | config.agents.keys()
    owners: dict[str, str] = {}
    for token in config.tokens:
        if not token.value.strip():
            hint = "An empty token would let anybody in."
            yield error("empty_token", "the token is empty.", token.place, hint)
        elif owners.setdefault(token.value, token.principal) != token.principal:
            message = f"'{owners[token.value]}' has the same token."
            yield error("duplicate_token", message, token.place, "Give each principal a token of its own.")
        for index, name in enumerate(token.agents or ()):
            if name not in declared:
                message = f"agent '{name}' is not defined."
                place = validated.place("tokens", token.principal, "agents", index)
                yield error("unknown_agent", message, place, did_you_mean(name, declared))
