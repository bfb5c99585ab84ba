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
    return [part async for part in agent.astream(asked, stream_mode="values")][-1]["messages"][-1].text


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
FORMS: list[tuple[Runs, str]] = [*((runs, "chat") for runs in RUNS), (in_pydantic_ai, "responses"),
                                 (in_langchain, "responses"), (in_agno, "responses")]  # fmt: skip
"""The SDK of OpenAI itself ends a run whose answer of Responses is incomplete."""


@pytest.mark.parametrize(("runs", "form"), FORMS)
@pytest.mark.parametrize(("stream", "asks"), [(False, False), (True, False), (False, True)],
                         ids=["whole", "streamed", "a person is asked"])  # fmt: skip
async def test_no_tool_of_the_agents_own_runs_of_an_answer_that_was_cut(
    board: Pegboard, runs: Runs, form: str, stream: bool, asks: bool
) -> None:
    """X2: what there is of the arguments may be valid, and is not what the model meant; no person is asked either."""
    SENT.clear()
    session = await board.session(agent="assistant", session_id="s")
    arguments = {"to": "everybody"}
    cut = CutReply(name="send_mail", written=json.dumps(arguments), read=arguments)
    with StrictProvider(cut, "Done.") as server:
        said = await runs(session, form, server.url, stream, asks)

    assert (str(said).endswith("Done."), SENT, server.refusals) == (True, [], [])
    assert "None of them has run" in json.dumps(server.bodies[-1])
