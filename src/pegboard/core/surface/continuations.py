"""How a run of a model goes on while its tools change: what it is to know, and when it has to answer (D2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

LIMIT: Final = 4
"""How often in a row the tools of a run change without one being used."""
_OVER: Final = "The tools have changed too often without being used. Answer now, with what you know."


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """Where a run is at one request to its model.

    Attributes:
        limit: how many changes in a row there are before the model has to answer.
        tools: the tools of the newest request; None before the first.
        changes: how often in a row they have changed without one being used.
        changed_by: the meta-tool that was called last.
        over: whether the model has to answer without calling anything.
        note: what the model is to know of the newest change.
    """

    limit: int = LIMIT
    tools: tuple[str, ...] | None = None
    changes: int = 0
    changed_by: str = ""
    over: bool = False
    note: str = ""

    def next(self, tools: tuple[str, ...], beside: tuple[str, ...] = ()) -> Continuation:
        """Return where the run is at a request with these tools.

        ``tools`` are their wire names in order, ``beside`` those of what is loaded beside the list: the model has read
        of them where it was loaded.
        """
        listed, tools = tools, (*tools, *beside) if beside else tools
        if tools == self.tools:
            note = _OVER if self.over else ""
            return self if self.note == note else replace(self, note=note)
        before, now = frozenset(tools if self.tools is None else self.tools), frozenset(tools)
        if before == now:
            return replace(self, tools=tools, note=_OVER if self.over else "")
        unnamed = frozenset(beside).difference(listed)
        new = [name for name in tools if name not in before and name not in unnamed]
        gone = [name for name in self.tools or () if name not in now]
        changes = self.changes + 1
        over = self.over or changes > self.limit
        return replace(self, tools=tools, changes=changes, over=over, note=_OVER if over else _change_note(new, gone))

    def after_call(self, name: str, *, meta: bool, ran: str = "") -> Continuation:
        """Return where the run stands after a call.

        After any other tool than a meta-tool changes are counted again. ``ran`` is the wire name of the tool that ran;
        where that was loaded by its call it is no news.
        """
        if meta:
            return self if self.changed_by == name else replace(self, changed_by=name)
        if ran and self.tools is not None and ran not in self.tools:
            return replace(self, tools=(*self.tools, ran), changes=0)
        return replace(self, changes=0) if self.changes else self

    def after_retry(self) -> Continuation | None:
        """Return where the run stands when an empty answer right after a change is asked for once more, or None.

        It counts as a change.
        """
        if not 0 < self.changes < self.limit:
            return None
        return replace(self, changes=self.changes + 1)

    def closing(self) -> str:
        """Return what the user reads of a run that had to answer, or nothing."""
        if not self.over:
            return ""
        times = f"more than {self.limit} times in a row, the last time by '{self.changed_by}'"
        return f"(Stopped: the tools changed {times}, and none of them was used.)"


def _change_note(new: list[str], gone: list[str]) -> str:
    parts = (("Can be called now", new), ("Cannot be called any more", gone))
    news = (f"{what}: {', '.join(names)}." for what, names in parts if names)
    return " ".join((*news, "Go on with the request."))
