"""What reaches a provider through pydantic-ai, by the provider's real client against a server on 127.0.0.1."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from benchmarks.bill.adapters import model_of
from benchmarks.bill.conversations import SMALL_TALK, Turn, hundred, ten
from benchmarks.bill.model import Called, ScriptedModel
from benchmarks.bill.provider import Provider
from benchmarks.bill.requests_read import FORMS, Form, Read
from benchmarks.bill.toolkits import Toolkit, read, write
from framework_tools import RAN
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults

from pegboard import Host, Pegboard, Session
from pegboard.frameworks.pydantic_ai import SessionTools


@pytest.fixture(scope="module")
def toolkits() -> tuple[Toolkit, ...]:
    return read()


@pytest.fixture(scope="module")
def config(toolkits: tuple[Toolkit, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("bill")
        patch.syspath_prepend(folder)
        yield write(toolkits, folder)


@pytest.fixture
async def session(config: Path) -> AsyncIterator[Session]:
    async with Pegboard.open(config) as board:
        await board.ready()
        yield await board.session(agent="assistant", session_id="s")


class Asked:
    """A conversation with a provider: what it was asked, and what the newest run came to."""

    def __init__(self, provider: Provider, model: ScriptedModel, agent: Agent[None, Any]) -> None:
        self.provider, self.model, self.agent = provider, model, agent
        self.messages: list[Any] = []

    async def say(self, *turns: Turn) -> Any:
        run: Any = None
        for turn in turns:
            self.model.begin(turn)
            run = await self.agent.run(turn.message, message_history=self.messages)
            self.messages = run.all_messages()
        return run

    def heads(self) -> Sequence[tuple[str, ...]]:
        return [request.head for request in self.provider.requests]


@asynccontextmanager
async def asked(form: Form, session: Session, model: ScriptedModel | None = None) -> AsyncIterator[Asked]:
    model = model or ScriptedModel("loads")
    with Provider(form, model, len) as provider:
        agent = Agent(
            model_of(form, provider.url),
            output_type=[str, DeferredToolRequests],
            capabilities=[SessionTools(session)],
            model_settings={"cache": True},
        )
        yield Asked(provider, model, agent)


@pytest.mark.parametrize("form", ["anthropic", "responses"])
async def test_what_is_there_at_a_runs_first_request_is_revealed_in_the_history(
    form: Form, session: Session, toolkits: tuple[Toolkit, ...]
) -> None:
    """S5, D4: where the provider's history adds tools, what is loaded ahead is called by its name, at once."""
    first, second, *_ = ten(toolkits)
    async with asked(form, session) as talk:
        await talk.say(first, second)

    newest = talk.provider.requests[-1]
    assert first.tool is not None
    assert second.tool is not None
    assert {first.tool.name, second.tool.name} <= newest.visible
    assert not any(second.tool.name in block for block in newest.head)
    assert not any('"call_tool"' in block for block in newest.messages)


async def test_a_history_that_reveals_nothing_has_the_definitions_behind_the_message(
    session: Session, toolkits: tuple[Toolkit, ...]
) -> None:
    """S5, D4: they stand there once, and stay; the list is that of the first request."""
    first, second, *_ = ten(toolkits)
    async with asked("chat", session) as talk:
        await talk.say(first, second)

    newest = talk.provider.requests[-1]
    ahead = [text for text in newest.texts if text.startswith("Loaded, to be called through call_tool:")]
    assert len(ahead) == len(set(ahead)) == 2
    assert "call_tool" in newest.visible


@pytest.mark.parametrize("form", FORMS)
async def test_small_talk_changes_no_list(form: Form, session: Session, toolkits: tuple[Toolkit, ...]) -> None:
    """S5: what a message does not need is not loaded; neither head nor tools change."""
    async with asked(form, session) as talk:
        await talk.say(ten(toolkits)[0])
        before = talk.provider.requests[-1]
        await talk.say(*(Turn(message=text, tool=None) for text in SMALL_TALK[:5]))

    after = talk.provider.requests[-1]
    assert (after.head, after.visible) == (before.head, before.visible)


@pytest.mark.parametrize("form", FORMS)
async def test_a_conversation_with_another_need_each_turn_only_grows(
    form: Form, session: Session, toolkits: tuple[Toolkit, ...]
) -> None:
    """D3, D4: tools and system text break once at most, and each request goes on with the history of the last.

    The suffix stays where it stands, and what idles away in the turns behind stays declared.
    """
    async with asked(form, session) as talk:
        await talk.say(*ten(toolkits))
        heads = talk.heads()
        assert sum(one != other for one, other in pairwise(heads)) <= 1
        assert len(heads) <= 24
        await talk.say(*([] if form == "responses" else list(hundred(toolkits)[:8])))

    for one, other in pairwise(talk.provider.requests):
        assert other.messages[: len(one.messages)] == one.messages


async def test_a_denied_tool_stands_in_no_deferred_list(config: Path, toolkits: tuple[Toolkit, ...]) -> None:
    """D4, P9: also not one that the history has revealed before."""
    turn = ten(toolkits)[0]
    assert turn.tool is not None
    async with Pegboard.open(config) as board:
        session = await board.session(agent="assistant", session_id="s")
        async with asked("anthropic", session) as talk:
            await talk.say(turn)
            assert turn.tool.name in str(talk.provider.bodies[-1]["tools"])
            await board.permissions.set("assistant", turn.tool.name, False)
            await talk.say(Turn(message="Thanks!", tool=None))

    assert turn.tool.name not in str(talk.provider.bodies[-1]["tools"])


class Once(ScriptedModel):
    """A model that makes one call, then is done."""

    def __init__(self, call: Called) -> None:
        super().__init__("loads")
        self._calls = [call]

    def answer(self, request: Any) -> Called | str:
        return self._calls.pop() if self._calls else "Done."


async def test_a_person_is_asked_about_the_tool_that_would_run(tmp_path: Path) -> None:
    """A1, D4: where the model calls through `call_tool` the call that waits is shown as one of the real tool."""
    (tmp_path / "pegboard.yaml").write_text(
        'store: "memory:"\n'
        "plugins: {shredder: {python: 'framework_tools:Shredder', approve: {shred: always}}}\n"
        "agents: {clerk: {discoverable: [shredder], dialect: pegboard}}\n"
    )
    RAN.clear()
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        clerk = await board.session(agent="clerk", session_id="s")
        await clerk.load("shred")
        model = Once(Called(name="call_tool", arguments={"name": "shred", "arguments": {"paper": "draft"}}))
        async with asked("chat", clerk, model) as talk:
            waiting = await talk.say(Turn(message="Go on.", tool=None))
            [call] = waiting.output.approvals
            assert (call.tool_name, call.args, RAN) == ("shred", {"paper": "draft"}, [])

            results = DeferredToolResults(approvals={call.tool_call_id: True})
            done = await talk.agent.run(message_history=talk.messages, deferred_tool_results=results)

    assert (done.output, RAN) == ("Done.", ["shred"])


class Strict(ScriptedModel):
    """A provider that takes no additions to a history."""

    rejected = 0

    def answer(self, request: Read) -> Called | str:
        if any('"tool_addition"' in block for block in request.messages):
            self.rejected += 1
            raise ValueError("tool_addition is not supported")
        return super().answer(request)


async def test_a_form_that_the_provider_rejects_falls_back_once(
    session: Session, toolkits: tuple[Toolkit, ...]
) -> None:
    """D4: the run goes on without additions, and so does what follows."""
    model = Strict("loads")
    async with asked("anthropic", session, model) as talk:
        run = await talk.say(*ten(toolkits)[:4])

    assert (run.output, model.rejected) == ("That is done.", 1)
    assert session.host == Host(delivery=("result",))


class Picky(ScriptedModel):
    """A provider that does not take one of the tools."""

    def __init__(self, unwanted: str) -> None:
        super().__init__("loads")
        self._unwanted = unwanted

    def answer(self, request: Read) -> Called | str:
        if self._unwanted in request.visible:
            raise ValueError(f"Invalid schema for function '{self._unwanted}'.")
        return super().answer(request)


@pytest.mark.parametrize("form", ["anthropic", "responses"])
async def test_a_tool_that_the_provider_rejects_is_revealed_no_more(
    session: Session, toolkits: tuple[Toolkit, ...], form: Form
) -> None:
    """D4: neither the list nor the history refers to it; what was revealed beside it stays."""
    turn, later = ten(toolkits)[:2]
    assert turn.tool is not None
    kit = next(one for one in toolkits if turn.tool in one.tools)
    unwanted = next(tool.name for tool in kit.tools if tool is not turn.tool)
    await session.load(kit.name)
    async with asked(form, session, Picky(unwanted)) as talk:
        run = await talk.say(turn, later)

    assert run.output == "That is done."
    assert [unwanted in str(body) for body in talk.provider.bodies] == [True] + [False] * (
        len(talk.provider.bodies) - 1
    )
    assert turn.tool.name in talk.provider.requests[-1].visible


async def test_the_host_that_was_given_counts(config: Path, toolkits: tuple[Toolkit, ...]) -> None:
    """D1: whoever says how loads are delivered is not overruled by the model."""
    async with Pegboard.open(config) as board:
        given = await board.session(agent="assistant", session_id="s", host=Host(delivery=("result",)))
        async with asked("anthropic", given) as talk:
            await talk.say(ten(toolkits)[0])

    assert given.host == Host(delivery=("result",))
    assert "call_tool" in talk.provider.requests[-1].visible
