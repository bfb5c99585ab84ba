"""An answer of a model that was cut: no call of it runs, of the agent's own tools neither."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import openai_agents_driver
import pydantic_ai_driver
import pytest
from agents import Agent as OpenAIAgent
from agents import Runner, function_tool
from agno.agent import Agent as AgnoAgent
from agno.models.openai import OpenAIChat, OpenAIResponses
from agno.tools import tool as agno_tool
from broken_streams import broken
from langchain.agents import create_agent
from langchain_core.tools import tool as langchain_tool
from langchain_openai import ChatOpenAI
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai import Tool as PydanticTool

from pegboard import Pegboard, Session
from pegboard.frameworks.agno import equip as equip_agno
from pegboard.frameworks.langchain import SessionTools as SessionMiddleware
from pegboard.frameworks.openai_agents import equip
from pegboard.frameworks.pydantic_ai import SessionTools
from pegboard.testing import CutReply, StrictProvider

SENT: list[str] = []


def send_mail(to: str) -> str:
    """Send a mail."""
    SENT.append(to)
    return "sent"


async def in_pydantic_ai(session: Session, form: str, url: str, stream: bool, asks: bool) -> Any:
    model, own = pydantic_ai_driver.model_of_form(form, url), PydanticTool(send_mail, requires_approval=asks)
    agent = Agent(model, tools=[own], output_type=[str, DeferredToolRequests], capabilities=[SessionTools(session)])

    async def handles(_: Any, events: Any) -> None:
        _ = [event async for event in events]

    return (await agent.run("Write.", event_stream_handler=handles if stream else None)).output


async def in_openai_agents(session: Session, form: str, url: str, stream: bool, asks: bool) -> Any:
    model, own = openai_agents_driver.model_of_form(form, url), function_tool(send_mail, needs_approval=asks)
    agent: Any = equip(OpenAIAgent(name="A", model=model, tools=[own]), session)
    if not stream:
        return (await Runner.run(agent, "Write.")).final_output
    streaming = Runner.run_streamed(agent, "Write.")
    _ = [event async for event in streaming.stream_events()]
    return streaming.final_output


async def in_langchain(session: Session, form: str, url: str, stream: bool, asks: bool) -> Any:
    about: Any = {"model": "gpt-4.1", "base_url": f"{url}/v1", "api_key": "none", "max_retries": 0}
    model = ChatOpenAI(**about, use_responses_api=form == "responses")
    agent: Any = create_agent(model, [langchain_tool(send_mail)], middleware=[SessionMiddleware(session)])
    asked: Any = {"messages": [{"role": "user", "content": "Write."}]}
    if not stream:
        return (await agent.ainvoke(asked))["messages"][-1].text
    parts: Any = [part async for part in agent.astream(asked, stream_mode=["messages", "values"])]
    return parts[-1][1]["messages"][-1].text


async def in_agno(session: Session, form: str, url: str, stream: bool, asks: bool) -> Any:
    kind: Any = OpenAIResponses if form == "responses" else OpenAIChat
    model, own = (
        kind(id="gpt-4.1", base_url=f"{url}/v1", api_key="none", retries=0),
        agno_tool(requires_confirmation=asks),
    )
    agent: Any = equip_agno(AgnoAgent(model=model, tools=[own(send_mail)]), session)
    if not stream:
        return (await agent.arun("Write.")).content
    return "".join([str(event.content) async for event in agent.arun("Write.", stream=True) if event.content])


Runs = Callable[[Session, str, str, bool, bool], Awaitable[Any]]
RUNS: list[Runs] = [in_pydantic_ai, in_openai_agents, in_langchain, in_agno]
ASKING: list[Runs] = [in_pydantic_ai, in_openai_agents, in_agno]
FORMS: list[tuple[Runs, str]] = [*((runs, "chat") for runs in RUNS), (in_pydantic_ai, "responses"),
                                 (in_langchain, "responses"), (in_agno, "responses")]  # fmt: skip
"""The SDK of OpenAI itself ends a run whose answer of Responses is incomplete."""


WRITTEN = {"whole arguments": '{"to": "everybody"}', "half of them": '{"to": "every'}
"""What there is of the arguments of a call."""


@pytest.fixture(params=WRITTEN)
def written(request: pytest.FixtureRequest) -> str:
    return WRITTEN[request.param]


@pytest.fixture
async def session(board: Pegboard) -> Session:
    SENT.clear()
    return await board.session(agent="assistant", session_id="s")


def cut_reply(written: str) -> CutReply:
    read = {"to": "everybody"} if written == WRITTEN["whole arguments"] else {}
    return CutReply(name="send_mail", written=written, read=read)


def reads_why(server: StrictProvider, written: str = WRITTEN["half of them"]) -> bool:
    """Return whether the call was answered; what is no JSON some frameworks answer themselves."""
    sent = json.dumps(server.bodies[-1])
    answered = '"tool_call_id"' in sent or "function_call_output" in sent
    return answered and ("None of them has run" in sent or written == WRITTEN["half of them"])


@pytest.mark.parametrize(("runs", "form"), FORMS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_no_tool_of_the_agents_own_runs_of_an_answer_that_was_cut(
    session: Session, runs: Runs, form: str, stream: bool, written: str
) -> None:
    """X2: what there is of the arguments may be valid, and is not what the model meant."""
    with StrictProvider(cut_reply(written), "Done.") as server:
        said = await runs(session, form, server.url, stream, False)

    assert (str(said).endswith("Done."), SENT, server.refusals) == (True, [], [])
    assert reads_why(server, written)


@pytest.mark.cover(1)
@pytest.mark.parametrize(("runs", "form"), [one for one in FORMS if one[0] in ASKING])
async def test_no_person_is_asked_about_a_call_of_an_answer_that_was_cut(
    session: Session, runs: Runs, form: str, written: str
) -> None:
    """X2: the model reads at once that it has not run."""
    with StrictProvider(cut_reply(written), "Done.") as server:
        said = await runs(session, form, server.url, False, True)

    assert (str(said).endswith("Done."), SENT, server.refusals) == (True, [], [])
    assert reads_why(server, written)


@pytest.mark.parametrize(("runs", "form"), [one for one in FORMS if one[0] is not in_openai_agents])
async def test_no_tool_of_the_agents_own_runs_of_a_stream_that_only_ends_in_its_arguments(
    session: Session, runs: Runs, form: str
) -> None:
    """X2: no reason is given, and what there is of the arguments may look like a call without some.

    Agno takes no call of Responses that is not whole, so that there the run only ends.
    """
    with StrictProvider(model=broken(form, [WRITTEN["half of them"]], False, "send_mail")) as server:
        said = await runs(session, form, server.url, True, False)

    goes_on = (runs, form) != (in_agno, "responses")
    assert (str(said).endswith("Done."), SENT, server.refusals) == (goes_on, [], [])
    assert reads_why(server) or not goes_on


@pytest.mark.parametrize("form", ["chat", "responses"])
async def test_openai_agents_ends_a_run_whose_stream_only_ends(session: Session, form: str) -> None:
    """X2: with one error, and without a call."""
    with StrictProvider(model=broken(form, [WRITTEN["half of them"]], False, "send_mail")) as server:
        with pytest.raises(Exception, match=r"(?i)stream|ended|final") as failed:
            await in_openai_agents(session, form, server.url, True, False)
        assert "\n" not in str(failed.value)

    assert (SENT, server.refusals) == ([], [])
