"""Who widens: a person at the controlling terminal, or an operator by a token; narrowing asks no one (A5)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from pegboard.cli.operator_token import VARIABLE, taken_token
from pegboard.errors import PegboardError
from pegboard.support.visible_text import visible

if TYPE_CHECKING:
    from pegboard.core.principals.bearer_tokens import Right, Token

TERMINAL: Final = "/dev/tty"
LONGEST_ANSWER: Final = 1024
_GLANCE: Final = 0.05
"""How often a terminal is looked at while it is asked, in seconds."""


class NotAgreedError(PegboardError):
    """No one who may has agreed to what would be widened."""


async def require_operator(
    tokens: Sequence[Token], right: Right, question: str, *, about: Sequence[str] = (), agent: str | None = None
) -> str | None:
    """Return the principal of the operator's token, or None where the person at the terminal agreed.

    Args:
        agent: the agent that it is about, None where it is about every one.

    Raises:
        NotAgreedError: ``needs_operator`` where there is neither, or the token does not suffice; ``declined`` where the
            person said no.
    """
    if given := taken_token():
        return owner_of(given, tokens, right, agent)
    if not await _ask_at_terminal([*about, question], tokens, right):
        raise NotAgreedError("You said no: nothing was changed.", code="declined")
    return None


async def require_typed(
    tokens: Sequence[Token], right: Right, name: str, *, about: Sequence[str], confirmed: Sequence[str]
) -> str | None:
    """Return the principal of the operator's token, or None where the person at the terminal has typed a name.

    Raises:
        NotAgreedError: ``needs_operator`` as :func:`require_operator`; ``confirmation_required`` where the name was not
            given or not typed.
    """
    if given := taken_token():
        owner, agreed = owner_of(given, tokens, right, None), name in confirmed
    else:
        owner, typed = (
            None,
            await _read_answer([*about, f"Type '{name}' to accept it; anything else keeps it blocked:"], tokens, right),
        )
        agreed = typed.decode(errors="replace") == name
    if not agreed:
        raise NotAgreedError(
            f"'{name}' contains text for models that a person should read first. Nothing was accepted.",
            code="confirmation_required",
            hint=f"Read its warnings, and type its name, or accept it with `--confirm {name}`.",
        )
    return owner


async def ask_agreement(lines: Sequence[str]) -> bool | None:
    """Return whether the person at the terminal says yes to the last of these lines, None where no one can be asked."""
    try:
        return await _ask_at_terminal(lines, (), "configure")
    except NotAgreedError:
        return None


def owner_of(given: str, tokens: Sequence[Token], right: Right, agent: str | None) -> str:
    """Return the principal of an operator's token; raises ``NotAgreedError`` where it does not suffice."""
    from pegboard.core.principals.bearer_tokens import token_of

    token = token_of(given, tokens)
    if token is None:
        raise _needs_operator(f"The token in {VARIABLE} is not in `tokens:`.", tokens, right)
    if right not in token.rights:
        raise _needs_operator(f"The token of '{token.principal}' does not have the right '{right}'.", tokens, right)
    if token.agents is not None and agent not in token.agents:
        which = "every agent" if agent is None else f"agent '{agent}'"
        raise _needs_operator(f"The token of '{token.principal}' is not for {which}.", tokens, right)
    return token.principal


def _needs_operator(why: str, tokens: Sequence[Token], right: Right) -> NotAgreedError:
    token = f"set {VARIABLE} to a token of `tokens:` with the right '{right}'"
    if not tokens:
        token = f"write a token with the right '{right}' into `tokens:` of the configuration and set {VARIABLE} to it"
    return NotAgreedError(
        f"{why} Nothing was changed.",
        code="needs_operator",
        hint=f"Run it at a terminal (in a container with `-it`), use the console, or {token}.",
    )


async def _ask_at_terminal(lines: Sequence[str], tokens: Sequence[Token], right: Right) -> bool:
    """Return whether a person at the controlling terminal agrees."""
    return (await _read_answer([*lines[:-1], f"{lines[-1]} [y/N]"], tokens, right)).lower() in (b"y", b"yes")


async def _read_answer(lines: Sequence[str], tokens: Sequence[Token], right: Right) -> bytes:
    """Return what a person at the controlling terminal types behind the last of these lines."""
    with _terminal(tokens, right) as terminal:
        try:
            _write(terminal, "".join(f"{visible(line)}\n" for line in lines[:-1]) + f"{visible(lines[-1])} ")
            answer = await _line(terminal)
        except OSError:
            answer = None
    if answer is None:
        raise _needs_operator("The terminal was closed before an answer.", tokens, right)
    return answer.strip()


@contextmanager
def _terminal(tokens: Sequence[Token], right: Right) -> Generator[int]:
    """Open the terminal that this process is controlled by; what was typed before the question does not answer it."""
    try:
        import termios

        terminal = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY)
    except (OSError, ImportError):
        raise _needs_operator("A person has to agree, and there is no terminal to ask in.", tokens, right) from None
    hung_up = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a terminal that closes is an answer here
    try:
        with suppress(OSError):  # it has been closed meanwhile, which the question will show
            if os.tcgetpgrp(terminal) != os.getpgrp():
                raise _needs_operator("A person has to agree, and this process runs in the background.", tokens, right)
        with suppress(termios.error):
            termios.tcflush(terminal, termios.TCIFLUSH)
        yield terminal
    finally:
        signal.signal(signal.SIGHUP, hung_up)
        os.close(terminal)


def _write(terminal: int, text: str) -> None:
    rest = text.encode(errors="backslashreplace")
    while rest:
        rest = rest[os.write(terminal, rest) :]


async def _line(terminal: int) -> bytes | None:
    """Return what is typed before the end of the line, or None where the terminal is closed before it."""
    import select

    answer = b""
    while not answer.endswith(b"\n"):
        if not select.select([terminal], [], [], 0)[0]:
            await asyncio.sleep(_GLANCE)  # Ctrl-C ends it here
        elif read := os.read(terminal, LONGEST_ANSWER):
            answer = (answer + read)[-LONGEST_ANSWER:]
        else:
            return None
    return answer
