"""A provider's stream that breaks within a call: no call of it runs, the user reads one error, the next run works."""

import contextlib
import json
import logging
from typing import Any

import agno_driver
import langchain_driver
import openai_agents_driver
import pydantic_ai_driver
import pytest
from agents import Agent as OpenAIAgent
from agents import Runner
from agno.models.anthropic import Claude
from agno.models.base import Model
from agno.models.openai import OpenAIChat, OpenAIResponses
from agno.models.response import ModelResponse
from broken_streams import broken
from framework_tools import RAN
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from loop_talk import CHAT, OLDER_ANTHROPIC, RESPONSES, Form, talk
from pydantic_ai import Agent

from pegboard import Pegboard, Session
from pegboard.frameworks.agno import equip as equip_agno
from pegboard.frameworks.agno.answer_ends import AnswerEnd, with_end
from pegboard.frameworks.langchain import SessionTools as SessionMiddleware
from pegboard.frameworks.openai_agents import equip
from pegboard.frameworks.pydantic_ai import SessionTools
from pegboard.frameworks.runs import warn_once
from pegboard.testing import CutReply, StrictProvider

WHOLE = json.dumps({"name": "note_add", "arguments": {"text": "eggs"}})
CALLS = {
    "half a call": [WHOLE[:-9]],
    "a call, then half of one": [WHOLE, WHOLE[:-9]],
    "a call without its end": [WHOLE],
}
"""What there is of the arguments of the calls, in order."""


@pytest.fixture
async def session(board: Pegboard) -> Session:
    RAN.clear()
    session = await board.session(agent="assistant", session_id="s")
    await session.load("notes")
    return session


@pytest.fixture(params=["lost", "ended"])
def lost(request: pytest.FixtureRequest) -> bool:
    return request.param == "lost"


@pytest.fixture(params=CALLS)
def calls(request: pytest.FixtureRequest) -> list[str]:
    return CALLS[request.param]


def may_run(form: str, calls: list[str], lost: bool) -> bool:
    """Return whether nothing tells that the stream broke: some servers of Chat Completions never say why one ends."""
    return form == "chat" and not lost and calls == [WHOLE]


@pytest.mark.parametrize("form", ["responses", "chat"])
async def test_openai_agents_ends_the_run(session: Session, form: str, calls: list[str], lost: bool) -> None:
    """X2: also where the server only closes, which the SDK takes as the end of a completion."""
    with StrictProvider(model=broken(form, calls, lost)) as server:
        agent: Any = equip(OpenAIAgent(name="A", model=openai_agents_driver.model_of_form(form, server.url)), session)
        streaming = Runner.run_streamed(agent, "Note eggs.")
        failed: list[Exception] = []
        try:
            assert [event async for event in streaming.stream_events()]
        except Exception as error:
            failed.append(error)
        assert [str(one).count("\n") for one in failed] == ([] if may_run(form, calls, lost) else [0])
        assert (await Runner.run(agent, "Again.")).final_output == "Done."

    assert (RAN, server.refusals) == (["note_add"] if may_run(form, calls, lost) else [], [])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("filtered", [False, True], ids=["too long", "filtered"])
async def test_openai_agents_runs_no_call_of_a_completion_that_was_cut(
    session: Session, stream: bool, filtered: bool
) -> None:
    """X2: also one whose arguments are whole; the model reads why, and the run goes on."""
    cut = CutReply(name="call_tool", written=WHOLE, read={}, filtered=filtered)
    with StrictProvider(cut, "Done.") as server:
        agent: Any = equip(OpenAIAgent(name="A", model=openai_agents_driver.model_of_form("chat", server.url)), session)
        done: Any = Runner.run_streamed(agent, "Note eggs.") if stream else await Runner.run(agent, "Note eggs.")
        _ = [event async for event in done.stream_events()] if stream else []

    assert (done.final_output, server.refusals, RAN) == ("Done.", [], [])
    assert "None of them has run" in json.dumps(server.bodies[-1])


@pytest.mark.parametrize("form", ["anthropic", "responses", "chat"])
async def test_pydantic_ai_ends_the_run_or_has_the_model_make_its_calls_again(
    session: Session, form: str, calls: list[str], lost: bool
) -> None:
    """X2: the client raises where the connection is lost; else the model reads of each call that it has not run.

    What is no JSON the framework answers itself.
    """

    async def handles(_: Any, stream: Any) -> None:
        _ = [event async for event in stream]

    with StrictProvider(model=broken(form, calls, lost)) as server:
        agent = Agent(pydantic_ai_driver.model_of_form(form, server.url), capabilities=[SessionTools(session)])
        if lost:
            with pytest.raises(Exception, match=r"(?i)stream|connection|body|closed|incomplete") as failed:
                await agent.run("Note eggs.", event_stream_handler=handles)
            assert "\n" not in str(failed.value)
        else:
            done = await agent.run("Note eggs.", event_stream_handler=handles)
            ran = may_run(form, calls, lost)
            said = json.dumps(server.bodies[-1]).count("None of them has run")
            assert (done.output, said) == ("Done.", 0 if ran else calls.count(WHOLE))
        assert (await agent.run("Again.")).output == "Done."

    assert (RAN, server.refusals) == (["note_add"] if may_run(form, calls, lost) else [], [])


@pytest.mark.parametrize("form", [OLDER_ANTHROPIC, RESPONSES, CHAT], ids=str)
async def test_a_loop_runs_no_call(session: Session, form: Form, calls: list[str], lost: bool) -> None:
    """X2: the client's error is the host's, or the loop says what there was; the turn can be asked for again."""
    async with talk(session, form, broken(form.form, calls, lost)) as going:
        with contextlib.suppress(Exception):
            await going.say("Note eggs.", stream=True)
        if not going.loop.done:
            await going.go_on()
        assert going.loop.text == "Done."

    assert (RAN, going.server.refusals) == (["note_add"] if may_run(form.form, calls, lost) else [], [])


def model_of_langchain(form: str, url: str) -> BaseChatModel:
    if form == "anthropic":
        return langchain_driver.claude(url)
    about: Any = {"model": "gpt-4.1", "base_url": f"{url}/v1", "api_key": "none", "max_retries": 0}
    return ChatOpenAI(**about, use_responses_api=form == "responses")


class OtherModel(AgentMiddleware[Any, Any, Any]):
    """Gives each request another model, as a middleware that falls back does."""

    def __init__(self, model: BaseChatModel) -> None:
        super().__init__()
        self.model = model

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(model=self.model))


@pytest.mark.parametrize("form", ["anthropic", "responses", "chat"])
@pytest.mark.parametrize("behind", [False, True], ids=["its own", "of middleware behind"])
async def test_langchain_ends_the_run_or_has_the_model_make_its_calls_again(
    session: Session, form: str, calls: list[str], lost: bool, behind: bool
) -> None:
    """X2: the client raises where the connection is lost; else the model reads that nothing of it has run."""
    with StrictProvider(model=broken(form, calls, lost)) as server:
        model, middleware = model_of_langchain(form, server.url), [SessionMiddleware(session)]
        if behind:
            agent: Any = create_agent(
                langchain_driver.claude("http://127.0.0.1:9"), middleware=[*middleware, OtherModel(model)]
            )
        else:
            agent = create_agent(model, middleware=middleware)
        asked: Any = {"messages": [{"role": "user", "content": "Note eggs."}]}
        failed: list[str] = []
        try:
            _ = [part async for part in agent.astream(asked, stream_mode="messages")]
        except Exception as error:
            failed.append(str(error))
        assert [error.count("\n") for error in failed] == ([0] if lost else [])
        done = await agent.ainvoke({"messages": [{"role": "user", "content": "Again."}]})
        assert done["messages"][-1].text == "Done."

    assert (RAN, server.refusals) == (["note_add"] if may_run(form, calls, lost) else [], [])


def model_of_agno(form: str, url: str) -> Model:
    match form:
        case "anthropic":
            return Claude(id="claude-opus-5", api_key="none", client_params={"base_url": url}, retries=0)
        case "responses":
            return OpenAIResponses(id="gpt-4.1", base_url=f"{url}/v1", api_key="none", retries=0)
        case _:
            return OpenAIChat(id="gpt-4.1", base_url=f"{url}/v1", api_key="none", retries=0)


AGNO_FORMS = ["anthropic", "responses", "chat"]


@pytest.mark.parametrize("form", AGNO_FORMS)
async def test_agno_ends_the_run_or_has_the_model_make_its_calls_again(
    session: Session, form: str, calls: list[str], lost: bool
) -> None:
    """X2: by what the provider has sent, since Agno hands on no reason; what is no JSON Agno answers itself.

    Where Agno hands on no call, an error ends the run.
    """
    with StrictProvider(model=broken(form, calls, lost)) as server:
        agent: Any = equip_agno(agno_driver.agent_of(model_of_agno(form, server.url)), session)
        asked: dict[str, Any] = {"session_id": "talk", "stream": True, "stream_events": True}
        *_, newest = [event.content async for event in agent.arun("Note eggs.", **asked)]
        assert newest if lost else newest == "Done." or "stopped before its end" in newest
        assert (await agent.arun("Again.", session_id="talk")).content == "Done."

    assert (RAN, server.refusals) == (["note_add"] if may_run(form, calls, lost) else [], [])


@pytest.mark.parametrize("form", AGNO_FORMS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("filtered", [False, True], ids=["too long", "filtered"])
async def test_agno_runs_no_call_of_an_answer_that_was_cut(
    session: Session, form: str, stream: bool, filtered: bool
) -> None:
    """X2: also one whose arguments are whole; the model reads why, and the run goes on.

    Agno itself takes no call of a whole answer of Anthropic that was cut: that one ends the run.
    """
    cut = CutReply(name="call_tool", written=WHOLE, read=json.loads(WHOLE), filtered=filtered)
    with StrictProvider(cut, "Done.") as server:
        agent: Any = equip_agno(agno_driver.agent_of(model_of_agno(form, server.url)), session)
        if stream:
            said = [event.content async for event in agent.arun("Note eggs.", session_id="talk", stream=True)]
        else:
            said = [(await agent.arun("Note eggs.", session_id="talk")).content]

    assert (RAN, server.refusals) == ([], [])
    if stream or form != "anthropic":
        assert "".join(map(str, said)).endswith("Done.")
        assert "None of them has run" in json.dumps(server.bodies[-1])


@pytest.mark.parametrize(("sent", "runs"), [({"candidates": [{"finish_reason": "MAX_TOKENS"}]}, False),
                                            ({"candidates": [{"finish_reason": None}]}, False),
                                            ({"candidates": [{"finish_reason": "STOP"}]}, True),
                                            ({"messageStop": {"stopReason": "max_tokens"}}, False),
                                            ({"data": {"choices": [{"finish_reason": "length"}]}}, False),
                                            ({"done_reason": "length"}, False), ({"text": "."}, True)])  # fmt: skip
def test_the_reason_of_an_end_is_read_in_every_form(sent: dict[str, Any], runs: bool) -> None:
    """X2: Gemini's own, Bedrock, Mistral, Ollama, and one that says nothing."""
    end = AnswerEnd()
    end.take(with_end(ModelResponse(), sent))

    assert (end.why_cut([{"name": "note_add", "arguments": "{}"}]) == "") is runs


async def test_a_model_of_agno_that_tells_no_reason_is_warned_of_once(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    """X2: its calls run."""

    class Silent(OpenAIChat):
        def _parse_provider_response_delta(self, response_delta: Any) -> ModelResponse:
            response_delta = response_delta.model_copy()
            return super()._parse_provider_response_delta(response_delta)

        async def ainvoke_stream(self, *args: Any, **options: Any) -> Any:
            async for part in super().ainvoke_stream(*args, **options):
                vars(part).pop("pegboard_end", None)
                yield part

    warn_once.cache_clear()
    call = [("call_tool", json.loads(WHOLE))]
    with caplog.at_level(logging.WARNING, "pegboard.frameworks"), StrictProvider(call, "Done.") as server:
        model = Silent(id="gpt-4.1", base_url=f"{server.url}/v1", api_key="none", retries=0)
        agent: Any = equip_agno(agno_driver.agent_of(model), session)
        _ = [event async for event in agent.arun("Note eggs.", session_id="talk", stream=True)]

    assert (RAN, ["Silent" in one.getMessage() for one in caplog.records]) == (["note_add"], [True])
