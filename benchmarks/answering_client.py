"""OpenAI's client, that answers in the process: what a framework does for a request is done, and nothing is sent."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion

MODEL = "gpt-5.4"


class AnsweringClient(AsyncOpenAI):
    """A client whose Chat completions are answered at once: by a call of ``tool_0`` as long as the clock runs.

    Args:
        called: notes that the model is called; whether it is to go on.
        answers: notes that it answers.
    """

    def __init__(self, called: Callable[[], bool], answers: Callable[[], None]) -> None:
        super().__init__(api_key="none", base_url="http://127.0.0.1:9")
        self._called = called
        self._answers = answers
        self._calls = 0
        raw = SimpleNamespace(create=self._raw)
        self._completions = SimpleNamespace(create=self._create, with_raw_response=raw)

    @property
    def chat(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(completions=self._completions)

    def with_options(self, **_: object) -> AnsweringClient:  # type: ignore[override]
        return self

    async def _create(self, **_: object) -> ChatCompletion:
        goes_on = self._called()
        self._calls += 1
        answer = _answer(self._calls if goes_on else 0)
        self._answers()
        return answer

    async def _raw(self, **request: object) -> SimpleNamespace:
        answer = await self._create(**request)
        return SimpleNamespace(parse=lambda: answer, headers={})


def _answer(number: int) -> ChatCompletion:
    """Return a call with this number, or the last answer."""
    call = {"id": f"call_{number}", "type": "function", "function": {"name": "tool_0", "arguments": '{"text": "x"}'}}
    message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [call]}
    if not number:
        message = {"role": "assistant", "content": "done"}
    return ChatCompletion.model_validate(
        {
            "id": "chat",
            "object": "chat.completion",
            "created": 1,
            "model": MODEL,
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if number else "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
    )
