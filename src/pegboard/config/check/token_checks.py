"""Tokens of the gateway (G2)."""

from __future__ import annotations

from collections.abc import Iterator

from pegboard.config.check.found import error
from pegboard.config.compile import UncheckedConfig
from pegboard.core.model.naming import did_you_mean
from pegboard.problems import Problem


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
