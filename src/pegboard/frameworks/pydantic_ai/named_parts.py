"""Parts of a streamed answer: those of a call through ``call_tool`` come once the tool that it names is known."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import (
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    ToolCallPart,
)
from pydantic_ai.models import StreamedResponse

from pegboard.frameworks.pydantic_ai.messages import arguments_in, with_tool_names
from pegboard.frameworks.runs import make_twin
from pegboard.wire.passed_on import THROUGH


class _NamedStream:
    """What a stream of a model is besides its own class: its calls through ``call_tool`` are held back, then named."""

    pegboard_own: Collection[str]
    pegboard_events: AsyncIterator[ModelResponseStreamEvent] | None
    pegboard_held: dict[int, PartStartEvent]
    """The calls that are held back, by their place in the answer."""
    pegboard_sent: set[int]
    """The places of those that were sent since."""

    def __aiter__(self) -> AsyncIterator[ModelResponseStreamEvent]:
        """Return the events; where the framework has put others in their place meanwhile, those."""
        whole: Any = self
        if self.pegboard_events is None:
            own: Any = super()
            self.pegboard_events = whole._event_iterator = self._pegboard_released(own.__aiter__())  # noqa: SLF001
        return whole._event_iterator  # noqa: SLF001

    def get(self) -> ModelResponse:
        """Return the answer so far, without what is held back, and with the tools that its calls name."""
        own: Any = super()
        response: ModelResponse = own.get()
        if response.state != "complete":
            sent = [
                part
                for place, part in enumerate(response.parts)
                if place in self.pegboard_sent or not self._pegboard_may_name_another(part)
            ]
            response = replace(response, parts=sent)
        return with_tool_names(response, self.pegboard_own)

    async def _pegboard_released(
        self, events: AsyncIterator[ModelResponseStreamEvent]
    ) -> AsyncIterator[ModelResponseStreamEvent]:
        async for event in events:
            if isinstance(event, PartStartEvent) and self._pegboard_may_name_another(event.part):
                self.pegboard_held[event.index] = event
            elif isinstance(event, PartEndEvent) and event.index in self.pegboard_held:
                if isinstance(event.part, ToolCallPart) and arguments_in(event.part) is not None:
                    for one in self._pegboard_sent_now(event):
                        yield one
            elif not (
                isinstance(event, PartDeltaEvent) and event.index in (self.pegboard_held.keys() | self.pegboard_sent)
            ):
                yield event
        own: Any = super()
        whole: ModelResponse = own.get()
        for index in [*self.pegboard_held] if whole.state == "complete" else ():
            for one in self._pegboard_sent_now(PartEndEvent(index=index, part=whole.parts[index])):
                yield one

    def _pegboard_may_name_another(self, part: Any) -> bool:
        return isinstance(part, ToolCallPart) and part.tool_name in THROUGH and part.tool_name not in self.pegboard_own

    def _pegboard_sent_now(self, end: PartEndEvent) -> Iterator[ModelResponseStreamEvent]:
        """Yield the beginning and the end of a call that was held back, which has all its arguments from the start."""
        start = self.pegboard_held.pop(end.index)
        self.pegboard_sent.add(end.index)
        [part] = with_tool_names(ModelResponse(parts=[end.part]), self.pegboard_own).parts
        yield replace(start, part=part)
        yield replace(end, part=part)


def name_calls(stream: StreamedResponse, own: Collection[str]) -> StreamedResponse:
    """Return a stream whose calls through ``call_tool`` are those of the tools that they name.

    Args:
        stream: what the model has opened; all that comes to be known of it is known of both.
        own: names of tools that the agent runs itself.
    """
    if isinstance(stream, _NamedStream):
        return stream
    made = make_twin(stream, _NamedStream)
    made.__dict__ = stream.__dict__
    made.pegboard_own, made.pegboard_events, made.pegboard_held, made.pegboard_sent = own, None, {}, set()
    return made
