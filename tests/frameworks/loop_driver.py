"""A plain loop for the shared tests: the provider's real client, whose requests a scripted model answers."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

import httpx2
from anthropic import AsyncAnthropic, BadRequestError
from framework_drivers import Final, Form, ModelCall, Ran, Script, Step, Wish

from pegboard import Host, Pegboard, Session
from pegboard.board.blocking import SyncSession
from pegboard.frameworks.loop import Loop, SyncLoop
from pegboard.testing import ModelAnswer, StrictProvider

MODEL = "claude-opus-5"
NOTE = "<tools>"


class PlainLoop:
    """The driver: Anthropic's Messages; lists change, as with the models of tests that frameworks have."""

    name = "loop"
    tools_change: Literal["call", "run"] = "call"
    form: Form = "anthropic"
    cannot: Mapping[Wish, str] = MappingProxyType(
        {
            "structured": "The object is between the host and its provider.",
            "usage": "Usage is the host's own to count.",
            "deps": "What runs a delegated task is the host's own code.",
        }
    )

    def talk(
        self,
        session: Session,
        *,
        deps: str | None = None,
        structured: bool = False,
        stored: bytes | None = None,
        url: str | None = None,
    ) -> "LoopTalk":
        return LoopTalk(session, stored, url)

    def delegate(self, board: Pegboard, *steps: Step) -> Script:
        script = Script(*steps)

        async def run(child: Session, task: str) -> str:
            return (await LoopTalk(child, script=script).run(task)).answer

        board.on_delegate = run
        return script


class LoopTalk:
    """A conversation whose host keeps the messages, and the approvals that the newest reply waits for."""

    def __init__(
        self,
        session: Any,
        stored: bytes | None = None,
        url: str | None = None,
        script: Script | None = None,
    ) -> None:
        self._session, self._script, self._given = session, script or Script(), script is not None
        self._client = AsyncAnthropic(
            api_key="none",
            max_retries=0,
            base_url=url,
            http_client=None if url else httpx2.AsyncClient(transport=httpx2.MockTransport(self._answered)),
        )
        if url is None:
            session.host = Host()
        self._loop = (
            SyncLoop(session, form="anthropic", model=MODEL)
            if isinstance(session, SyncSession)
            else Loop(session, form="anthropic", model=MODEL)
        )
        self._said: ModelAnswer = ""
        self._provider = StrictProvider(model=lambda _: self._said)
        self._messages: list[Any] = []
        self._waiting: list[str] = []
        if stored is not None:
            self._messages, self._waiting = json.loads(stored)

    async def run(self, message: str, *steps: Step, stream: bool = False) -> Ran:
        self._messages.append({"role": "user", "content": message})
        return await self._go_on(steps, stream)

    async def decide(self, *steps: Step, allow: bool, reason: str = "") -> Ran:
        """Decide about what waits by now: what was said of another call, or under other rules, does not count."""
        asked = set(self._waiting)
        await self._resume()
        if set(self._waiting) - asked:
            return self._ran(Script())
        for number in self._waiting:
            if allow:
                await self._session.approvals.allow(number, by="grace")
            else:
                await self._session.approvals.refuse(number, by="grace", reason=reason)
        said = reason if not allow else "'{0.plugin}' requires a login."
        await self._resume({number: said.format(login) for number, login in self._loop.logins.items()})
        return await self._go_on(steps)

    async def summarise(self, text: str) -> None:
        self._messages = [{"role": "user", "content": text}]

    def stored(self) -> bytes:
        return json.dumps([self._messages, self._waiting]).encode()

    async def _resume(self, results: Mapping[str, str] = MappingProxyType({})) -> None:
        self._messages += await self._of(self._loop.resume, self._messages, results)
        self._waiting = [approval.id for approval in self._loop.waiting.values()]

    async def _go_on(self, steps: Sequence[Step], stream: bool = False) -> Ran:
        if not self._given:
            self._script = Script(*steps)
        script, pieces = self._script, list[str]()
        while True:
            request = await self._of(self._loop.request, self._messages)
            try:
                if stream:
                    async with self._client.messages.stream(**request, max_tokens=100) as events:
                        pieces += [text async for text in events.text_stream]
                        reply = await events.get_final_message()
                else:
                    reply = await self._client.messages.create(**request, max_tokens=100)
            except BadRequestError as error:
                if not await self._of(self._loop.rejected, error):
                    raise
                continue
            self._messages += await self._of(self._loop.answer, reply)
            self._waiting = [approval.id for approval in self._loop.waiting.values()]
            if self._loop.done or self._waiting or self._loop.logins:
                return self._ran(script, pieces)

    def _ran(self, script: Script, pieces: Sequence[str] = ()) -> Ran:
        replies = [one["content"] for one in self._messages if one["role"] == "assistant"]
        called = {block["id"]: block["name"] for block in (replies or [[]])[-1] if block["type"] == "tool_use"}
        waiting = (*self._loop.waiting, *self._loop.logins)
        return Ran(
            calls=tuple(script.calls),
            answer="" if waiting else self._loop.text,
            pieces=tuple(pieces),
            waiting=tuple(called[number] for number in waiting),
            logins=tuple(login.url for login in self._loop.logins.values()),
        )

    async def _of(self, use: Any, *given: Any) -> Any:
        """Return what a loop returns; one that blocks does so in a thread."""
        return await (asyncio.to_thread(use, *given) if isinstance(self._loop, SyncLoop) else use(*given))

    async def _answered(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        answer = await self._script.answer(carried(body))
        assert not isinstance(answer, Final)
        said = answer if isinstance(answer, str) else [(one.name, dict(one.arguments)) for one in answer]
        self._said = said
        status, kind, data, _ = self._provider.answer(request.url.path, request.headers, body)
        assert not self._provider.refusals
        return httpx2.Response(status, content=data, headers={"content-type": kind})


def carried(body: Mapping[str, Any]) -> ModelCall:
    tools = {tool["name"]: tool["input_schema"] for tool in body.get("tools", ())}
    messages = body["messages"]
    since = max((place for place, one in enumerate(messages) if one["role"] == "assistant"), default=len(messages))
    notes = [text for one in messages for text in texts(one["content"]) if text.startswith(NOTE)]
    return ModelCall(
        tools=tuple(tools),
        schemas=tools,
        system="\n".join([*texts(body.get("system", ())), *notes]),
        results=tuple(
            "\n".join(texts(block["content"]))
            for one in messages[since + 1 :]
            for block in one["content"]
            if block["type"] == "tool_result"
        ),
        required=body.get("tool_choice") == {"type": "any"},
    )


def texts(blocks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    return (block["text"] for block in blocks if block["type"] == "text")
