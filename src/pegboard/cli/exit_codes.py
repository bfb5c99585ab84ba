"""The exit codes of every command, and which errors, answers and outcomes give which; docs/command.md has the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from pegboard.errors import PegboardError, UsageError

if TYPE_CHECKING:
    from pegboard.core.state.call_plans import CallAnswer, CallStatus

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
REFUSED: Final = 3
NEEDS_PERSON: Final = 4
NEEDS_LOGIN: Final = 5
UNAVAILABLE: Final = 6
INTERRUPTED: Final = 130

MEANINGS: Final[Mapping[int, str]] = {
    DONE: "Done.",
    FAILED: "The tool ran and failed, or the checked thing is not valid.",
    USAGE: "The command line, or an argument of a tool, is wrong.",
    REFUSED: "Refused, wholly or in part; also where there is nothing of that name.",
    NEEDS_PERSON: "A person has to approve or accept something first.",
    NEEDS_LOGIN: "A person has to log in to the server first.",
    UNAVAILABLE: "A needed program or server cannot be reached or started now.",
    INTERRUPTED: "Interrupted.",
}
"""Every exit code with what it means."""

_CODES: Final[Mapping[int, str]] = {
    USAGE: "bad_arguments bad_fields tokens_required",
    REFUSED: (
        "unknown_agent unknown_sub_app unknown_name unknown_loadout unknown_approval unknown_secret approval_ended "
        "approval_kind approval_changed pin_changed switch_changed every_agent_required file_exists file_changed "
        "server_exists server_in_use not_editable not_installed not_lasting "
        "declined store_not_empty store_not_own store_in_use"
    ),
    NEEDS_PERSON: "needs_operator not_accepted confirmation_required",
    NEEDS_LOGIN: "needs_login login_failed",
    UNAVAILABLE: (
        "tool_unavailable upstream_failed upstream_timeout store_busy store_unavailable store_missing keyring_failed "
        "key_not_available mcp_missing no_source no_console console_failed server_failed server_not_started "
        "port_in_use address_unavailable"
    ),
}
OF_ERRORS: Final[Mapping[str, int]] = {code: status for status, codes in _CODES.items() for code in codes.split()}
"""The exit codes of errors by their code; without one here, a ``UsageError`` exits 2 and any other 1."""

OF_CALLS: Final[Mapping[CallStatus, int]] = {
    "ok": DONE,
    "error": FAILED,
    "timeout": FAILED,
    "invalid_arguments": USAGE,
    "not_found": REFUSED,
    "not_loaded": REFUSED,
    "next_request": REFUSED,
    "conflict": REFUSED,
    "over_budget": REFUSED,
    "scope_incompatible": REFUSED,
    "refused": REFUSED,
    "stopped": REFUSED,
    "needs_approval": NEEDS_PERSON,
    "needs_login": NEEDS_LOGIN,
    "tool_unavailable": UNAVAILABLE,
}
"""The exit codes of calls by their status; a tool that ran and answered with an error exits 1."""


def exit_code_of_error(error: PegboardError) -> int:
    """Return the exit code of an error."""
    return OF_ERRORS.get(error.code, USAGE if isinstance(error, UsageError) else FAILED)


def exit_code_of_call(answer: CallAnswer) -> int:
    """Return the exit code of a call."""
    return FAILED if answer.status == "ok" and answer.result.is_error else OF_CALLS[answer.status]


def exit_code_of_outcome(status: str, items: Iterable[str]) -> int:
    """Return the exit code of an outcome: unavailable where nothing else stood in the way of any item.

    >>> exit_code_of_outcome("ok", ["loaded"]), exit_code_of_outcome("partial", ["loaded", "tool_unavailable"])
    (0, 3)
    >>> exit_code_of_outcome("refused", ["tool_unavailable"])
    6
    >>> exit_code_of_outcome("refused", ["tool_unavailable", "not_found"])
    3
    """
    if status == "ok":
        return DONE
    return UNAVAILABLE if status == "refused" and set(items) == {"tool_unavailable"} else REFUSED
