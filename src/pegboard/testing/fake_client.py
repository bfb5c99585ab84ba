"""A client for calls in the library: it answers what upstreams ask, and keeps what they report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pegboard.core.model.tools import JsonObject
from pegboard.ports import AskRefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A request or notification of the protocol: its method and parameters."""

    method: str
    params: JsonObject


class FakeListener:
    """A listener that keeps what upstreams report outside of any call."""

    def __init__(self, *, level: str | None = None) -> None:
        """Begin to listen.

        Args:
            level: The lowest level of log messages that is wanted; None where none is chosen.
        """
        self.open = True
        self.received: list[Notification] = []
        self._level = level
        self._watchers: list[Callable[[], None]] = []

    @property
    def level(self) -> str | None:
        """The lowest level of log messages that is wanted."""
        return self._level

    @level.setter
    def level(self, level: str | None) -> None:
        self._level = level
        for changed in tuple(self._watchers):
            changed()

    def tell(self, method: str, params: JsonObject) -> None:
        """Keep a notification."""
        self.received.append(Notification(method=method, params=params))

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call back when the level changes; returns what ends it."""
        self._watchers.append(changed)
        return lambda: self._watchers.remove(changed) if changed in self._watchers else None


class FakeClient:
    """A client with given answers, for ``session.call(…, client=…)``.

    ``asked`` is the log of requests, ``received`` that of notifications.
    """

    def __init__(
        self,
        answers: Mapping[str, JsonObject | AskRefusedError] | None = None,
        *,
        level: str | None = None,
        listener: FakeListener | None = None,
    ) -> None:
        """Set the answers.

        Args:
            answers: Results, or errors to raise, by method: ``elicitation/create``,
                ``sampling/createMessage``, ``roots/list``.
            level: The lowest level of log messages that is wanted; None where none is chosen.
            listener: What outlives the call, where anything does.
        """
        self.asked: list[Notification] = []
        self.received: list[Notification] = []
        self.level = level
        self.listener = listener
        self.declares: JsonObject = {}
        self.wanted_task: JsonObject | None = None
        self._answers = dict(answers or {})

    async def ask(self, method: str, params: JsonObject, *, about: str = "") -> JsonObject:  # noqa: ARG002
        """Record a request, and return the given answer.

        Raises:
            AskRefusedError: It was given as the answer, or none was given.
        """
        self.asked.append(Notification(method=method, params=params))
        answer = self._answers.get(method)
        if answer is None:
            raise AskRefusedError(f"no answer was given for '{method}'", code=-32601)
        if isinstance(answer, AskRefusedError):
            raise answer
        return answer

    async def tell(self, method: str, params: JsonObject) -> None:
        """Keep a notification."""
        self.received.append(Notification(method=method, params=params))
