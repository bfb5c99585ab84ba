"""A conversation over a plain loop with the provider's real client, against a provider on 127.0.0.1."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from anthropic import AsyncAnthropic, BadRequestError
from openai import AsyncOpenAI
from openai import BadRequestError as OpenAIBadRequest

from pegboard import Session
from pegboard.frameworks.loop import FormName, Loop
from pegboard.testing import ScriptedModel, StrictProvider

REFUSED = (BadRequestError, OpenAIBadRequest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form of a provider with one of its models; `reveals` is whether that model takes tools within a history."""

    form: FormName
    model: str
    reveals: bool

    def __str__(self) -> str:
        return f"{self.form}-{self.model}"


ANTHROPIC = Form(form="anthropic", model="claude-opus-5", reveals=True)
OLDER_ANTHROPIC = Form(form="anthropic", model="claude-sonnet-4-6", reveals=False)
RESPONSES = Form(form="responses", model="gpt-5.4", reveals=True)
CHAT = Form(form="chat", model="gpt-5.4", reveals=False)
FORMS = (ANTHROPIC, OLDER_ANTHROPIC, RESPONSES, CHAT)


@dataclass(kw_only=True)
class Talk:
    """A user's conversation; what has been said is kept as text, as a host stores it."""

    loop: Loop
    form: Form
    server: StrictProvider
    client: Any
    stored: str = "[]"
    errors: list[str] = field(default_factory=list)

    @property
    def messages(self) -> list[Any]:
        return json.loads(self.stored)

    @property
    def requests(self) -> list[list[Any]]:
        """Return the messages of each request."""
        return [body.get("messages") or body["input"] for body in self.server.bodies]

    async def ask(self, request: Mapping[str, Any]) -> Any:
        match self.form.form:
            case "anthropic":
                return await self.client.messages.create(**request, max_tokens=100)
            case "responses":
                return await self.client.responses.create(**request)
            case "chat":
                return await self.client.chat.completions.create(**request)

    async def streamed(self, request: Mapping[str, Any]) -> Any:
        """Return what a stream ended with."""
        match self.form.form:
            case "anthropic":
                async with self.client.messages.stream(**request, max_tokens=100) as stream:
                    return await stream.get_final_message()
            case "responses":
                events = [event async for event in await self.client.responses.create(**request, stream=True)]
                return events[-1]
            case "chat":
                async with self.client.chat.completions.stream(**request) as stream:
                    return await stream.get_final_completion()

    async def say(self, text: str, *, stream: bool = False) -> str:
        """Return what the user reads; nothing where calls wait for a person."""
        self.stored = json.dumps([*self.messages, {"role": "user", "content": text}])
        return await self.go_on(stream=stream)

    async def go_on(self, *, stream: bool = False) -> str:
        while True:
            request = await self.loop.request(self.messages)
            try:
                reply = await (self.streamed(request) if stream else self.ask(request))
            except REFUSED as error:
                self.errors.append(str(error))
                if not await self.loop.rejected(error):
                    raise
                continue
            self.stored = json.dumps([*self.messages, *await self.loop.answer(reply)])
            if self.loop.done or self.loop.waiting:
                return "" if self.loop.waiting else self.loop.text


@asynccontextmanager
async def talk(session: Session, form: Form, model: ScriptedModel, stored: str = "[]") -> AsyncIterator[Talk]:
    """Open a conversation; `stored` is what an earlier process has stored of it."""
    loop = Loop(session, form=form.form, model=form.model, system="You are Mira.")
    with StrictProvider(model=model) as server:
        common: dict[str, Any] = {"api_key": "none", "max_retries": 0}
        anthropic = form.form == "anthropic"
        make: Any = AsyncAnthropic if anthropic else AsyncOpenAI
        async with make(**common, base_url=server.url if anthropic else f"{server.url}/v1") as client:
            yield Talk(loop=loop, form=form, server=server, client=client, stored=stored)


def results_of(messages: list[Any]) -> list[tuple[str, bool]]:
    """Return the results in messages of any form, in order: the text, and whether it is marked as failed."""
    found: list[tuple[str, bool]] = []
    for message in messages:
        if message.get("role") == "tool" or message.get("type") == "function_call_output":
            text = message.get("content", message.get("output"))
            found.append((text, isinstance(text, str) and text.startswith("Error")))
        for block in message["content"] if isinstance(message.get("content"), list) else ():
            if block.get("type") == "tool_result":
                texts = [part["text"] for part in block["content"] if part["type"] == "text"]
                found.append(("\n".join(texts), block.get("is_error", False)))
    return found


def revealed(messages: list[Any]) -> list[str]:
    """Return the names that messages reveal, in order."""
    found: list[str] = []
    for message in messages:
        found += [tool["name"] for tool in message.get("tools", ())]
        for block in message["content"] if isinstance(message.get("content"), list) else ():
            if block.get("type") == "tool_addition":
                found.append(block["tool"]["name"])
    return found


def unmarked(value: Any) -> Any:
    """Return a value without its cache breakpoints, which are no part of what is cached."""
    if isinstance(value, dict):
        return {key: unmarked(part) for key, part in value.items() if key != "cache_control"}
    return [unmarked(part) for part in value] if isinstance(value, list) else value
