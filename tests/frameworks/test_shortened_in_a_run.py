"""A host that shortens the history in the middle of a run: what is loaded is defined again there, once."""

import json
from collections.abc import Mapping
from typing import Any

import openai_agents_driver
import pydantic_ai_driver
import pytest
from agents import Agent as OpenAIAgent
from agents import RunConfig, Runner
from agents.run import CallModelData, ModelInputData
from framework_drivers import definitions_of
from framework_tools import RAN
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, ProcessHistory
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart

from pegboard import Pegboard, Session
from pegboard.frameworks.openai_agents import equip
from pegboard.frameworks.pydantic_ai import SessionTools
from pegboard.testing import ModelAnswer, StrictProvider

SUMMARY = "The notes were loaded and read."


class Reader:
    """A model that loads the notes, reads them three times, and answers; it calls what its request lets it call."""

    def __init__(self) -> None:
        self.requests = 0

    def __call__(self, body: Mapping[str, Any]) -> ModelAnswer:
        self.requests += 1
        if self.requests == 1:
            return [("load_tools", {"names": ["notes"]})]
        if self.requests == 5:
            return "Done."
        listed = json.dumps(body.get("tools"))
        direct = '"call_tool"' not in listed
        return [("note_list", {}) if direct else ("call_tool", {"name": "note_list", "arguments": {}})]


@pytest.fixture
async def session(board: Pegboard) -> Session:
    RAN.clear()
    return await board.session(agent="traveller", session_id="s")


class Shortens:
    """What keeps of a history a summary and the newest call with its result, once, as the third request is made."""

    def __init__(self) -> None:
        self.asked = 0

    def of_messages(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        self.asked += 1
        if self.asked != 3:
            return messages
        return [ModelRequest(parts=[UserPromptPart(SUMMARY)]), *messages[-2:]]

    def of_items(self, data: CallModelData[Any]) -> ModelInputData:
        self.asked += 1
        items: list[Any] = list(data.model_data.input)
        if self.asked >= 3:
            items = [{"role": "user", "content": SUMMARY}, *items[3:]]
        return ModelInputData(input=items, instructions=data.model_data.instructions)


class Compacts(AbstractCapability[Any]):
    """A host's own capability, which shortens the history as the framework's does."""

    def __init__(self) -> None:
        self._shortens = Shortens()

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        messages = self._shortens.of_messages(list(request_context.messages))
        request_context.messages, ctx.messages[:] = [*messages], messages
        return request_context


@pytest.mark.parametrize("behind", [False, True], ids=["before", "behind"])
@pytest.mark.parametrize("model", ["anthropic", "chat"])
async def test_pydantic_ai_defines_again_with_the_request_that_is_shortened(
    session: Session, model: str, behind: bool
) -> None:
    """D4: wherever the processor is in the list, and no request after it has a second definition."""
    shortens = ProcessHistory(Shortens().of_messages)
    own = SessionTools(session)
    with StrictProvider(model=Reader()) as server:
        agent = Agent(
            pydantic_ai_driver.model_of_form(model, server.url),
            capabilities=[own, shortens] if behind else [shortens, own],
        )
        done = await agent.run("Read my notes.")

    assert [definitions_of("note_add", body) for body in server.bodies] == [0, 1, 1, 1, 1]
    assert (done.output, server.refusals, RAN) == ("Done.", [], ["note_list"] * 3)
    assert SUMMARY in json.dumps(server.bodies[2])


async def test_pydantic_ai_defines_again_behind_a_capability_of_the_hosts_own(session: Session) -> None:
    """D4: one that runs behind the session's is seen at the next request."""
    with StrictProvider(model=Reader()) as server:
        agent = Agent(
            pydantic_ai_driver.model_of_form("chat", server.url), capabilities=[SessionTools(session), Compacts()]
        )
        done = await agent.run("Read my notes.")

    assert [definitions_of("note_add", body) for body in server.bodies] == [0, 1, 0, 1, 1]
    assert (done.output, server.refusals) == ("Done.", [])


@pytest.mark.parametrize("form", ["anthropic", "responses"])
async def test_a_history_that_reveals_tools_reveals_them_again(session: Session, form: str) -> None:
    """D4: with models whose history adds tools the framework says again what joined."""
    with StrictProvider(model=Reader()) as server:
        model = pydantic_ai_driver.model_of_form(form, server.url, claude="claude-opus-5")
        agent = Agent(model, capabilities=[SessionTools(session), ProcessHistory(Shortens().of_messages)])
        done = await agent.run("Read my notes.")

    assert (done.output, server.refusals, RAN) == ("Done.", [], ["note_list"] * 3)
    assert all("note_add" in json.dumps(body) for body in server.bodies[1:])


@pytest.mark.parametrize("form", ["responses", "chat"])
async def test_openai_agents_defines_again_with_the_request_that_is_shortened(session: Session, form: str) -> None:
    """D4: whatever `call_model_input_filter` leaves of the input."""
    config = RunConfig(call_model_input_filter=Shortens().of_items)
    with StrictProvider(model=Reader()) as server:
        agent: Any = equip(OpenAIAgent(name="A", model=openai_agents_driver.model_of_form(form, server.url)), session)
        done = await Runner.run(agent, "Read my notes.", run_config=config)

    assert [definitions_of("note_add", body) for body in server.bodies] == [0, 1, 1, 1, 1]
    assert (done.final_output, server.refusals, RAN) == ("Done.", [], ["note_list"] * 3)
