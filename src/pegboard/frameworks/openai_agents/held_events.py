"""Events of a streamed answer: those of a call through ``call_tool`` come once the tool that it names is known."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from openai.types.responses import (
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseFunctionCallArgumentsDoneEvent,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
)

from pegboard.wire.passed_on import THROUGH


class HeldEvents:
    """What of one answer is held back: the events of its calls through ``call_tool``, by their place in the answer."""

    def __init__(self, own: Collection[str]) -> None:
        """Make it for an answer.

        Args:
            own: names of tools that the agent runs itself.
        """
        self._through = frozenset(THROUGH) - frozenset(own)
        self._held: dict[int, list[Any]] = {}
        self._number = -1

    def events_to_send(self, event: Any) -> Iterator[Any]:
        """Yield what is sent once this event has come: it, nothing yet, or all of a call under its tool's name."""
        for one in self._events_to_show(event):
            yield self._renumber_event(one)

    def _events_to_show(self, event: Any) -> Sequence[Any]:
        place = getattr(event, "output_index", None)
        if isinstance(event, ResponseOutputItemAddedEvent) and self._may_name_another(event.item):
            self._held[event.output_index] = [event]
            return ()
        if place not in self._held:
            return (event,)
        self._held[place].append(event)
        if not isinstance(event, ResponseOutputItemDoneEvent):
            return ()
        held = self._held.pop(place)
        return held if self._may_name_another(event.item) else [*_events_of_tool(held, event.item)]

    def _may_name_another(self, item: Any) -> bool:
        return item.type == "function_call" and item.name in self._through and not getattr(item, "namespace", None)

    def _renumber_event(self, event: Any) -> Any:
        """Return an event whose number is above that of the event before, also behind what was held back."""
        number = getattr(event, "sequence_number", None)
        if number is None:
            return event
        self._number = max(number, self._number + 1)
        return event if number == self._number else event.model_copy(update={"sequence_number": self._number})


def _events_of_tool(held: Sequence[Any], item: Any) -> Iterator[Any]:
    """Yield the events of a call as those of the tool that it names, with all its arguments in one piece."""
    begun = False
    for event in held:
        match event:
            case ResponseOutputItemAddedEvent():
                began: Any = event.item
                shown = {"name": item.name, "arguments": item.arguments if began.arguments else ""}
                yield event.model_copy(update={"item": began.model_copy(update=shown)})
            case ResponseFunctionCallArgumentsDeltaEvent() if begun:
                pass
            case ResponseFunctionCallArgumentsDeltaEvent():
                begun = True
                yield event.model_copy(update={"delta": item.arguments})
            case ResponseFunctionCallArgumentsDoneEvent():
                named = {"name": item.name} if hasattr(event, "name") else {}
                yield event.model_copy(update={"arguments": item.arguments, **named})
            case _:
                yield event
