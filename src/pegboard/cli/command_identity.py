"""As whom a command of a thin client acts: as the agent of the command line, unless a person agrees to more (A5)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from pegboard.cli.caller import CALLER, AgreementNeeded
from pegboard.cli.common import Options, run_guarded
from pegboard.cli.exit_codes import DONE
from pegboard.cli.person import NotAgreedError, ask_agreement, owner_of
from pegboard.config.location import Machine, find

if TYPE_CHECKING:
    from pathlib import Path

    from pegboard.assembly import Pegboard
    from pegboard.cli.rendering import Printer

AGENT: Final = "cli"
"""The agent that `init --install cli` makes for coding agents with a shell."""


def require_own_identity(board: Pegboard, options: Options) -> None:
    """Let a command that the daemon runs act as another agent, or for another principal, only where a person agrees.

    Raises:
        AgreementNeeded: the person at the terminal has to be asked.
        NotAgreedError: the token of the operator does not suffice.
    """
    caller = CALLER.get()
    if caller is None or caller.agreed:
        return
    if not (others := _differences(board, options, caller.folder)):
        return
    if caller.token:
        agent = options.agent or board.world.default_agent()
        owner_of(caller.token, board.configuration.tokens, "configure", agent)
        return
    raise AgreementNeeded([f"This command acts {' and '.join(others)}. Run it?"])


def _differences(board: Pegboard, options: Options, folder: Path) -> list[str]:
    """Return in what a command differs from what the command line is in this folder."""
    found: list[str] = []
    if options.agent is not None and options.agent not in (AGENT, board.world.default_agent()):
        found.append(f"as agent '{options.agent[:100]}'")
    if options.principal != "local":
        found.append(f"for '{options.principal[:100]}'")
    if options.config is not None and not _is_own(folder / options.config, folder):
        found.append(f"by the configuration {options.config}")
    return found


def _is_own(path: Path, folder: Path) -> bool:
    """Return whether a configuration is that of the folder, or that of the user."""
    own = (find(folder), Machine().configuration / "pegboard.yaml")
    return any(one is not None and os.path.realpath(one) == os.path.realpath(path) for one in own)


def agreed_at_terminal(lines: list[str]) -> int:
    """Ask the person at the terminal; return 0 where they agree, else the exit code, and report why."""

    async def ask_person(printer: Printer) -> int:  # noqa: ARG001
        agreed = await ask_agreement(lines)
        if agreed is None:
            raise NotAgreedError(
                f"{lines[-1].removesuffix(' Run it?')} A person has to agree, and there is no terminal to ask in.",
                code="needs_operator",
                hint="Run it at a terminal, set PEGBOARD_OPERATOR_TOKEN, or omit the option.",
            )
        if not agreed:
            raise NotAgreedError("You said no: nothing was done.", code="declined")
        return DONE

    return run_guarded(Options(), ask_person)
