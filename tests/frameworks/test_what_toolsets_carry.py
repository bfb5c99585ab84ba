"""What a toolset of pydantic-ai that is a plugin carries beside its results, and what it gives when its code fails."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from framework_drivers import Call, Script, call
from pydantic_ai import Agent
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import BinaryContent, ModelRequest, ToolReturnPart, UserPromptPart
from pydantic_ai_driver import scripted

from pegboard import Host, Pegboard, Session
from pegboard.frameworks.pydantic_ai import SessionTools
from pegboard.sources.pydantic_ai_toolsets import run_around

MODULE = '''
from pydantic_ai import BinaryContent, CallDeferred, FunctionToolset, ModelRetry, RunContext, ToolReturn

shop = FunctionToolset()


@shop.tool_plain
def look(name: str) -> ToolReturn:
    """Look at a thing."""
    picture = BinaryContent(data=b"png", media_type="image/png")
    return ToolReturn(f"{name} is red", content=["A picture of it:", picture], metadata={"shelf": 7})


@shop.tool_plain
def weigh(grams: int) -> str:
    """Weigh a thing."""
    if grams < 5:
        raise ModelRetry("use grams=5")
    return f"{grams} g"


def even(ctx: RunContext[str], count: int) -> None:
    if count % 2:
        raise ModelRetry(f"{ctx.deps} takes pairs")


async def few(ctx: RunContext[str], count: int) -> None:
    if count > 4:
        raise ModelRetry("at most 4")


@shop.tool_plain(args_validator=even)
def buy(count: int) -> str:
    """Buy some."""
    return f"{count} bought"


@shop.tool_plain(args_validator=few)
def take(count: int) -> str:
    """Take some."""
    return f"{count} taken"


@shop.tool
def whose(ctx: RunContext[str]) -> str:
    """Say whose shop it is, and with which call."""
    return f"{ctx.deps}'s, {ctx.tool_name}, {ctx.tool_call_id is not None}"


@shop.tool_plain
def later() -> str:
    """Deliver."""
    raise CallDeferred


def broken(ctx, definition):
    raise KeyError("no tenant")


async def prepared(ctx, definitions):
    raise LookupError("no tenant")

failing = shop.filtered(broken)
preparing = shop.prepared(prepared)
'''


@pytest.fixture
def target(request: pytest.FixtureRequest) -> str:
    return getattr(request, "param", "shop")


@pytest.fixture
async def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> AsyncIterator[Session]:
    (tmp_path / "shop_of_toolsets.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    plugins = {"shop": {"python": f"shop_of_toolsets:{target}"}, "clock": {"python": "pegboard.quickstart.clock"}}
    agents = {"a": {"tools": ["shop"], "discoverable": ["clock"], "dialect": "pegboard", "anticipate": False}}
    async with Pegboard.open({"store": "memory:", "plugins": plugins, "agents": agents}) as board:
        yield await board.session(agent="a", session_id="s", host=Host(delivery=("result",)))


def of(tool: str, through: bool, /, **arguments: Any) -> Call:
    return call("call_tool", name=tool, arguments=arguments) if through else call(tool, **arguments)


async def run(session: Session, *steps: Call | str) -> list[Any]:
    """Return the parts that a run gave to its model."""
    script = Script(*steps)
    agent = Agent(scripted(lambda: script), deps_type=str, capabilities=[SessionTools(session)], retries=1)
    done = await agent.run("Go on.", deps="ada")
    return [part for one in done.all_messages() if isinstance(one, ModelRequest) for part in one.parts]


@pytest.mark.parametrize("through", [False, True], ids=["direct", "through"])
async def test_what_a_tool_says_beside_its_result_reaches_the_model(session: Session, through: bool) -> None:
    """T13: content as the user's, and what the program alone reads with the result."""
    parts = await run(session, of("look", through, name="egg"), "done")
    [result] = [part for part in parts if isinstance(part, ToolReturnPart)]
    assert (result.content, result.metadata) == ("egg is red", {"shelf": 7})
    [said] = [part for part in parts if isinstance(part, UserPromptPart) and part.content != "Go on."]
    assert said.content == ["A picture of it:", BinaryContent(data=b"png", media_type="image/png")]


@pytest.mark.parametrize("through", [False, True], ids=["direct", "through"])
async def test_a_tool_that_wants_another_try_takes_one_of_the_retries(session: Session, through: bool) -> None:
    """T13: its words reach the model; the last try ends the run, as in the framework alone."""
    parts = await run(session, of("weigh", through, grams=1), of("weigh", through, grams=5), "done")
    results = [(part.content, part.outcome) for part in parts if isinstance(part, ToolReturnPart)]
    assert results == [("use grams=5", "retried"), ("5 g", "success")]

    with pytest.raises(UnexpectedModelBehavior, match="retries"):
        await run(session, of("weigh", through, grams=1), of("weigh", through, grams=1), "not reached")


@pytest.mark.parametrize("through", [False, True], ids=["direct", "through"])
@pytest.mark.parametrize(("name", "why"), [("buy", "ada takes pairs"), ("take", "at most 4")])
async def test_a_tool_checks_its_arguments_itself(session: Session, name: str, why: str, through: bool) -> None:
    """X2: with the context of the run, before it runs."""
    parts = await run(session, of(name, through, count=5), of(name, through, count=2), "done")
    results = [part.content for part in parts if isinstance(part, ToolReturnPart)]
    assert results == [why, f"2 {'bought' if name == 'buy' else 'taken'}"]


@pytest.mark.parametrize("through", [False, True], ids=["direct", "through"])
async def test_a_tool_has_the_context_of_its_run(session: Session, through: bool) -> None:
    """P6: dependencies, its own name and the id of its call; what decides in its code to be deferred says why not."""
    parts = await run(session, of("whose", through), of("later", through), "done")
    context, later = [part.content for part in parts if isinstance(part, ToolReturnPart)]
    assert (context, "ExternalToolset" in str(later)) == ("ada's, whose, True", True)


async def test_outside_of_a_run_what_a_tool_carries_is_its_result(session: Session) -> None:
    """P6: a picture or words for a model of pydantic-ai have no other place."""
    assert (await session.call("look", {"name": "egg"})).result.content[0]["text"] == "egg is red"
    assert (await session.call("weigh", {"grams": 1})).is_error


@pytest.mark.parametrize("target", ["failing", "preparing"], indirect=True)
@pytest.mark.parametrize("through", [False, True], ids=["direct", "through"])
async def test_a_toolset_whose_filter_raises_has_no_tools_and_ends_no_run(session: Session, through: bool) -> None:
    """P6: the reason is the error's; the other tools are there."""
    load = call("load_tools", names=["clock"])
    parts = await run(session, of("weigh", through, grams=5), load, "done")
    refused, loaded = [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]
    assert ("no tenant" in refused, "clock" in loaded) == (True, True)


async def test_a_version_that_tells_no_run_is_warned_of_once(
    session: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """P6: calls go on without it, and in a run of the adapter with its dependencies."""
    monkeypatch.delattr("pydantic_ai._run_context.get_current_run_context")
    run_around.cache_clear()
    try:
        for _ in range(2):
            assert (await session.call("weigh", {"grams": 5})).result.content[0]["text"] == "5 g"
        parts = await run(session, of("whose", False), "done")
    finally:
        run_around.cache_clear()
    assert [str(part.content)[:5] for part in parts if isinstance(part, ToolReturnPart)] == ["ada's"]
    assert len([one for one in caplog.records if one.name == "pegboard.sources"]) == 1
