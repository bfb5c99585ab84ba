"""The arguments of calls that wait for a person, where they hold a secret that no store is to have (X5)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from pegboard.core.model.tools import JsonObject

_MOST: Final = 256


class UnkeptArguments:
    """Arguments by the approval that they wait for, in the memory of this process; the newest ``_MOST`` of them."""

    def __init__(self) -> None:
        self._by_approval: OrderedDict[str, JsonObject] = OrderedDict()

    def put(self, approval_id: str, arguments: JsonObject) -> None:
        """Keep the arguments that an approval is for."""
        self._by_approval[approval_id] = arguments
        while len(self._by_approval) > _MOST:
            self._by_approval.popitem(last=False)

    def get(self, approval_id: str) -> JsonObject | None:
        """Return the arguments that an approval is for, where they are kept here."""
        return self._by_approval.get(approval_id)

    def drop(self, approval_id: str) -> None:
        """Forget the arguments of an approval that is used or refused."""
        self._by_approval.pop(approval_id, None)
