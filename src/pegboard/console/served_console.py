"""The console while it is served: its app, and how people and `pegboard console` find it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pegboard.console.entry.operator_access import OperatorAccess
from pegboard.console.entry.running_consoles import RunningConsole
from pegboard.core.model.specs import any_reaches
from pegboard.support.user_token import UserToken

if TYPE_CHECKING:
    from pegboard.console.app import ConsoleApp
    from pegboard.console.console_board import ConsoleBoard
    from pegboard.operators.attention import HookFault

PREFIXES: Final = ("/console", "/api")
_ANYWHERE: Final = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104  (recognised, not bound)


class ServedConsole:
    """The console of one board while that is served over HTTP; its app is imported when someone opens it."""

    def __init__(self, board: ConsoleBoard, hooks: Callable[[], Sequence[HookFault]] = tuple) -> None:
        self._board = board
        self._hooks = hooks
        self.address = ""
        """Where it is served, once it is."""
        self._access = OperatorAccess(lambda: board.configuration.tokens)
        self._file: Path | None = None

    def app(self) -> ConsoleApp:
        """Return the app, for the paths ``PREFIXES``."""
        from pegboard.console.app import ConsoleApp

        return ConsoleApp(self._board, self._access, self._hooks)

    def announce_console(self, gateway: str) -> str:
        """Let `pegboard console` find it; return the line that says where it is and how one gets in.

        ``gateway`` is where the protocol is served. Where the file cannot be written, only the line says it.
        """
        url = gateway.removesuffix("/mcp") + PREFIXES[0]
        hides_codes = self._hides_codes(url)
        with suppress(OSError):
            running = self._console_address(url, hides_codes=hides_codes)
            self.address = running.url
            self._file = running.save()
        return f"Console: {url}{self._code_part(hides_codes=hides_codes)}"

    def _console_address(self, url: str, *, hides_codes: bool) -> RunningConsole:
        for anywhere, here in _ANYWHERE.items():
            url = url.replace(f"//{anywhere}:", f"//{here}:", 1)
        return RunningConsole(
            url=url,
            configuration=str(self._board.configuration.path.resolve()),
            pid=os.getpid(),
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            secret=self._access.secret,
            hides_codes=hides_codes,
        )

    def _hides_codes(self, url: str) -> bool:
        """Return whether something confined could use a code that it reads in an output or a command line."""
        own = UserToken(urlsplit(url).port or 80)
        reached = any_reaches((spec.confine for spec in self._board.configuration.specs.values()), own.port)
        return own.needs_token(by_itself=reached)

    def _code_part(self, *, hides_codes: bool) -> str:
        if self._access.by_code and hides_codes:  # what is confined may read where this line is kept
            return " (`pegboard console` opens it)"
        if self._access.by_code:
            return f"?code={self._access.codes.new()}"
        if any(token.rights for token in self._board.configuration.tokens):
            return " (sign in with a token that has `console: true`)"
        return " (sign-in is not possible: no token has `console: true`)"

    def remove_from_list(self) -> None:
        """Let no one find it any longer."""
        if self._file is not None:
            with suppress(OSError):
                self._file.unlink()
