"""What a framework's agent does with a call whose server wants a login, asked of each of them (G11)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from framework_drivers import Driver, Script, Talk, call
from langchain.agents import create_agent
from langchain_driver import LangChain, ScriptedChat
from pydantic_ai import Agent
from pydantic_ai_driver import scripted

from authorization.conftest import running_site, site
from authorization.site import LoginSite
from pegboard import Pegboard
from pegboard.core.model.tools import JsonObject
from pegboard.frameworks.langchain import SessionTools as LangChainTools
from pegboard.frameworks.langchain.approvals import decided_by
from pegboard.frameworks.loop import Loop
from pegboard.frameworks.pydantic_ai import SessionTools as PydanticTools

__all__ = ["running_site", "site"]

WHO = call("linear__whoami")


@pytest.fixture
async def board(site: LoginSite, tmp_path: Path) -> AsyncIterator[Pegboard]:
    configuration = {
        "store": f"sqlite:///{tmp_path}/pegboard.db",
        "servers": {"linear": {"url": site.url}},
        "plugins": {"sums": {"python": "framework_tools:Sums"}},
        "agents": {"default": {"tools": ["linear", "sums"]}},
    }
    async with Pegboard.open(configuration) as board:
        yield board


async def talk_of(driver: Driver, board: Pegboard, principal: str) -> Talk:
    return driver.talk(await board.session(agent="default", session_id="s", principal=principal))


async def log_in(address: str, account: str) -> None:
    async with httpx2.AsyncClient(follow_redirects=True, trust_env=False) as browser:
        assert (await browser.get(f"{address}&account={account}")).status_code == 200


def address_in(text: str) -> str:
    return next(word for word in text.split() if word.startswith("http"))


async def test_a_call_waits_for_the_login_of_its_principal_and_goes_on_after_it(
    driver: Driver, board: Pegboard
) -> None:
    """Each of two users logs in at an address of their own; no one's call runs with the login of another."""
    for principal, account in (("ada", "ada"), ("bob", "ben")):
        talk = await talk_of(driver, board, principal)
        ran = await talk.run("Who am I?", WHO, "Log in, please.")
        if driver.cannot.get("login"):
            await log_in(address_in(ran.calls[1].results[0]), account)
            done = await talk.run("I have.", WHO, "There.")
            result = done.calls[1].results[0]
        else:
            [address] = ran.logins
            assert (ran.waiting, ran.answer) == (("linear__whoami",), "")
            await log_in(address, account)
            done = await talk.decide("There.", allow=True)
            result = done.calls[0].results[0]
        assert account in result
        assert done.answer == "There."


async def test_who_goes_on_without_a_login_is_not_asked_for_ever(driver: Driver, board: Pegboard) -> None:
    """The model reads where the user logs in, as it does of a call that no framework lets wait."""
    talk = await talk_of(driver, board, "ada")
    ran = await talk.run("Who am I?", WHO, "Log in, please.")
    done = ran if driver.cannot.get("login") else await talk.decide("Log in, please.", allow=True)
    assert "'linear' requires a login." in done.calls[-1].results[0]
    assert done.answer == "Log in, please."


async def test_who_does_not_log_in_says_so(driver: Driver, board: Pegboard) -> None:
    talk = await talk_of(driver, board, "ada")
    if driver.cannot.get("login"):  # nothing waits that could be refused: the model has read where to log in
        done = await talk.run("Who am I?", WHO, "Never mind.")
        assert "'linear' requires a login." in done.calls[-1].results[0]
    else:
        await talk.run("Who am I?", WHO)
        done = await talk.decide("Never mind.", allow=False, reason="Not with that server.")
        assert "Not with that server." in done.calls[-1].results[0]
    assert done.answer == "Never mind."


def reply(call_id: str) -> JsonObject:
    """Return a reply of a model in which it asks who it is."""
    function = {"name": "linear__whoami", "arguments": "{}"}
    calls = [{"id": call_id, "type": "function", "function": function}]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}


async def test_in_a_plain_loop_a_call_waits_under_its_id_for_a_login(board: Pegboard) -> None:
    """The history and the session are enough to go on; nothing comes of it before someone has logged in."""
    for principal, account in (("ada", "ada"), ("bob", "ben")):
        loop = Loop(await board.session(session_id="l", principal=principal), form="chat", model="gpt-5.4")
        messages: list[Any] = [{"role": "user", "content": "Who am I?"}]
        await loop.request(messages)
        messages += await loop.answer(reply("7"))
        assert (list(loop.logins), loop.waiting, len(messages)) == (["7"], {}, 2)
        assert await loop.resume(messages) == []
        await log_in(loop.logins["7"].url, account)
        [result] = await loop.resume(messages)
        assert (result["tool_call_id"], loop.logins) == ("7", {})
        assert account in result["content"]


async def test_in_a_plain_loop_the_model_reads_that_nobody_logs_in(board: Pegboard) -> None:
    loop = Loop(await board.session(session_id="l"), form="chat", model="gpt-5.4")
    messages: list[Any] = [{"role": "user", "content": "Who am I?"}]
    await loop.request(messages)
    messages += await loop.answer(reply("7"))
    [result] = await loop.resume(messages, {"7": "The user does not log in."})
    assert (result["content"], loop.logins) == ("Error: The user does not log in.", {})


async def test_two_calls_of_one_step_of_langchain_go_on_after_one_login_with_their_own_arguments(
    board: Pegboard, site: LoginSite
) -> None:
    session = await board.session(agent="default", session_id="s", principal="ada")
    both = [call("linear__echo", text="A"), call("linear__echo", text="B")]
    talk = LangChain().talk(session)
    ran = await talk.run("Say A and B.", both)
    first, second = ran.logins
    assert first == second
    await log_in(first, "ada")
    done = await talk.decide("There.", allow=True)
    assert (done.calls[0].results, done.answer) == (("A", "B"), "There.")
    assert site.counts["calls"] == 2


async def test_an_approved_login_of_langchain_goes_on_with_the_call_that_it_was_asked_for(board: Pegboard) -> None:
    """The login may be completed after the calls have been made again, and before they are resumed."""
    session = await board.session(agent="default", session_id="s", principal="ada")
    waiting = [await session.call("linear__echo", {"text": text}) for text in "AB"]
    assert waiting[0].login is not None
    await log_in(waiting[0].login.url, "ada")
    done = [await decided_by(answer, {"type": "approve"}, session) for answer in waiting]
    assert [answer.result.content[0]["text"] for answer in done] == ["A", "B"]


async def test_where_no_run_of_langchain_is_kept_the_model_reads_where_to_log_in(board: Pegboard) -> None:
    """Without a checkpointer nothing could be gone on with."""
    model = ScriptedChat(script=Script(WHO, "Log in, please."))
    agent: Any = create_agent(model, middleware=[LangChainTools(await board.session(session_id="s"))])
    done = await agent.ainvoke({"messages": [("user", "Who am I?")]})
    assert "'linear' requires a login." in done["messages"][-2].text
    assert done["messages"][-1].text == "Log in, please."


async def test_where_an_agent_of_pydantic_ai_ends_with_an_answer_only_the_model_reads_it(board: Pegboard) -> None:
    script = Script(WHO, "Log in, please.")
    tools = [PydanticTools(await board.session(session_id="s"))]
    agent: Any = Agent(scripted(lambda: script), capabilities=tools)
    assert (await agent.run("Who am I?")).output == "Log in, please."
    assert "'linear' requires a login." in script.calls[1].results[0]
