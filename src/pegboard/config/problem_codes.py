"""The codes of everything that can be wrong with a configuration, and problems as checks report them."""

from __future__ import annotations

from typing import Final, Literal, get_args

from pegboard.problems import Place, Problem

ProblemCode = Literal[
    "ambiguous_name",
    "bad_alias",
    "bad_duration",
    "bad_key",
    "bad_override",
    "bad_pattern",
    "bad_price",
    "bad_reference",
    "bad_store",
    "bad_switch",
    "bad_tag",
    "bad_value",
    "conflict",
    "cyclic_alias",
    "duplicate_key",
    "duplicate_loadout",
    "duplicate_member",
    "duplicate_name",
    "duplicate_plugin",
    "duplicate_token",
    "empty_token",
    "env_missing",
    "env_syntax",
    "file_binary",
    "file_empty",
    "file_missing",
    "file_too_large",
    "file_unreadable",
    "file_waits",
    "harmless_later",
    "hook_failed",
    "initial_not_allowed",
    "keyring_missing",
    "loadout_cycle",
    "many_tools",
    "mcp_missing",
    "misplaced_reference",
    "missing_key",
    "name_clash",
    "named_and_disabled",
    "needs_login",
    "no_tool",
    "not_accepted",
    "not_mapping",
    "not_passed",
    "nothing_granted",
    "out_of_reach",
    "over_budget",
    "pin_waits",
    "plain_secret",
    "read_only_later",
    "reserved",
    "server_target",
    "several_documents",
    "shadowed",
    "shared_globals",
    "shared_only",
    "shared_prefix",
    "shared_with_nobody",
    "syntax",
    "too_deep",
    "too_large",
    "tool_excluded",
    "unavailable",
    "unconfined",
    "unknown_agent",
    "unknown_category",
    "unknown_focus",
    "unknown_key",
    "unknown_loadout",
    "unknown_model",
    "unknown_parent",
    "unknown_plugin",
    "unknown_sub_app",
    "unknown_switch",
    "unknown_tool",
    "unknown_toolkit",
    "unresolved_tool",
    "waits",
    "wrong_type",
]
PROBLEM_CODES: Final[frozenset[str]] = frozenset(get_args(ProblemCode))


def error(code: ProblemCode, message: str, place: Place | None, hint: str = "") -> Problem:
    """Return a problem with which a file cannot be used."""
    return Problem(severity="error", code=code, message=message, hint=hint, place=place)


def warning_problem(code: ProblemCode, message: str, place: Place | None, hint: str = "") -> Problem:
    """Return a problem with which a file can be used."""
    return Problem(severity="warning", code=code, message=message, hint=hint, place=place)
