"""The ids of tasks as clients know them: each says whose server it is at, and whose it is (G7, G9)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pegboard.core.access.extensions import with_task_ids
from pegboard.gateway.clients.handshake import tasks_of
from pegboard.gateway.protocol.board_port import LOCAL

if TYPE_CHECKING:
    from mcp.server.connection import Connection

    from pegboard.gateway.replicas.request_state import StateSeal

_MOST: Final = 10_000
"""Of how many tasks it is remembered that they were begun here."""
_MARK: Final = "#"


class TaskNames:
    """The way from the id of a task at its server to the one that its client is given, and back.

    The id of a principal with a token has a mark that no one else's request can have: a server that several of them
    share knows the tasks of all. It counts at every replica and after a restart, unless someone else has begun a task
    of that id since: a server that has started again may count from one.
    """

    def __init__(self, seal: StateSeal) -> None:
        self._seal = seal
        self._begun: OrderedDict[str, str] = OrderedDict()  # by id at the server, whose it is

    def shown(self, number: str, principal: str) -> str:
        """Return the id for a principal."""
        return number if principal == LOCAL else f"{number}{_MARK}{self._seal.mark(principal, number)}"

    def own(self, shown: str, principal: str) -> str | None:
        """Return the id that a principal was given, without the mark; None where it is not theirs."""
        if principal == LOCAL:
            return shown
        number = shown.rpartition(_MARK)[0]
        is_theirs = self._begun.get(number, principal) == principal and self.shown(number, principal) == shown
        return number if number and is_theirs else None

    def begin_task(self, result: Mapping[str, Any], principal: str, connection: Connection | None) -> dict[str, Any]:
        """Return the result of a call that is a task, with the id for its client, which is notified of it from now on.

        ``connection`` is that of the handshake era.
        """

        def task_name_for(number: str) -> str:
            self._begun[number] = principal
            self._begun.move_to_end(number)
            while len(self._begun) > _MOST:
                self._begun.popitem(last=False)
            known = self.shown(number, principal)
            if connection is not None:
                tasks_of(connection)[number] = known
            return known

        return with_task_ids(result, task_name_for)

    def in_answer(self, result: Mapping[str, Any], principal: str) -> dict[str, Any]:
        """Return another result about tasks with the ids for a principal; a list has those that they have begun."""
        tasks: object = result.get("tasks")
        if isinstance(tasks, list | tuple) and principal != LOCAL:
            result = {**result, "tasks": [task for task in tasks if self._is_own(task, principal)]}
        return with_task_ids(result, lambda number: self.shown(number, principal))

    def _is_own(self, task: object, principal: str) -> bool:
        return isinstance(task, Mapping) and self._begun.get(str(task.get("taskId"))) == principal
