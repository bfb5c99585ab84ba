"""A run of a framework that tells no end: it is over once what the framework keeps for it is gone, or has failed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any
from weakref import ref

from pegboard.board.session import Session
from pegboard.frameworks.runs import AnySession, SessionRun


class OwnedRun(SessionRun):
    """A run over a session that the framework has an object for, its owner.

    Args:
        opens: what returns or opens the session, with its first use.
        name: the conversation that it belongs to, and its own name.
        owner: what the framework keeps as long as the run goes on, or None where it has no such thing.
        about: as `SessionRun` has it.
    """

    def __init__(
        self,
        opens: Callable[[], AnySession | Awaitable[Session]],
        name: tuple[str, str],
        owner: object | None,
        **about: Any,
    ) -> None:
        super().__init__(opens, lambda: name, is_over=None if owner is None else self.is_over, **about)
        self.name = name
        self._owner = None if owner is None else ref(owner)
        self._failed = False

    def is_over(self) -> bool:
        """Return whether the run was given up, and nothing goes on with it now."""
        return self._failed or (self._owner is not None and self._owner() is None)

    def give_up(self) -> None:
        """Note that nothing goes on with the run, unless something does."""
        self._failed = True

    def go_on(self, owner: object | None) -> None:
        """Note that something goes on with the run, also for another owner than before."""
        self._failed = False
        if owner is not None:
            self._owner = ref(owner)

    @contextmanager
    def under_way(self, owner: object | None) -> Generator[None, None, None]:
        """Let the run go on meanwhile; what fails in it, or is cancelled, gives it up."""
        self.go_on(owner)
        try:
            yield
        except BaseException:
            self.give_up()
            raise
