"""Policy text over a real board: in the prefix, in a load's answer, in the gateway's instructions."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Pegboard, Session
from pegboard.config.inspection import inspect
from pegboard.core.model.delivery import GATEWAY, LIBRARY, Host

TOOLS = """
def check() -> str:
    \"\"\"Check a deployment.\"\"\"
    return "checked"


def deploy() -> str:
    \"\"\"Deploy.\"\"\"
    return "deployed"
"""
CONFIG = """
store: sqlite:///state.db
plugins:
  forge: {python: forge_tools, prefix: forge, policy: {deploy: "Ask before forge__deploy."}}
  notes: {python: notes_tools}
  quiet: {python: quiet_tools}
toolkits:
  evolution: {tools: [forge], policy: "Prefer {tools} to anything else."}
  writing: {tools: [notes], policy: "Notes are for ${TEAM_SECRET}."}
agents:
  plain: {allowed_toolkits: [evolution], discoverable: [quiet]}
  eager: {allowed_toolkits: [evolution, writing], initial_toolkits: [evolution, writing]}
  seed0: {allowed_toolkits: [evolution], dialect: toolkits}
  seed2: {allowed_toolkits: [evolution], dialect: invokeother}
"""
KIT = "Prefer forge__check, forge__deploy to anything else."
BOTH = f"{KIT}\n\nAsk before forge__deploy."


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    (tmp_path / "forge_tools.py").write_text(TOOLS)
    for name in ("notes", "quiet"):
        (tmp_path / f"{name}_tools.py").write_text(f'def {name}_add() -> str:\n    """Add."""\n    return "added"\n')
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    async with Pegboard.open(path, env={"HOME": str(tmp_path), "TEAM_SECRET": "the heron team"}) as board:
        yield board


async def begun(board: Pegboard, agent: str, host: Host = LIBRARY) -> Session:
    return await board.session(agent=agent, session_id="thread", host=host)


async def blocks(session: Session, tool: str, **arguments: object) -> list[str]:
    answer = await session.call(tool, arguments)
    assert not answer.is_error, answer
    return [str(block["text"]) for block in answer.result.content]


async def test_initial_policy_stands_on_the_surface_and_is_counted(board: Pegboard) -> None:
    """T6, F4, X5: what came from the environment is masked."""
    surface = await (await begun(board, "eager")).surface()
    assert surface.policy.startswith(KIT)
    assert surface.policy.endswith("Ask before forge__deploy.")
    assert "Notes are for" in surface.policy
    assert "heron" not in surface.policy
    assert surface.tokens.text >= board.services.counter.count(surface.policy) > 0
    assert (await (await begun(board, "plain")).surface()).policy == ""


async def test_initial_policy_stands_in_the_instructions_of_the_gateway(board: Pegboard) -> None:
    """T6, F2: with or without anything to load."""
    eager = await (await begun(board, "eager", GATEWAY)).instructions()
    assert eager.startswith(KIT)
    plain = await (await begun(board, "plain", GATEWAY)).instructions()
    assert "load_tools" in plain
    assert "Prefer" not in plain


@pytest.mark.parametrize(
    ("agent", "host", "call", "keys"),
    [
        ("plain", LIBRARY, ("load_tools", {"names": ["evolution"]}), ["policy"]),
        ("plain", GATEWAY, ("load_tools", {"names": ["evolution"]}), ["policy"]),
        ("seed0", GATEWAY, ("load_tools", {"toolkit": "evolution"}), ["tools", "policy"]),
        ("seed0", LIBRARY, ("load_tools", {"toolkit": "evolution"}), ["policy"]),
        ("seed2", GATEWAY, ("invokeother_tool", {"mode": "load", "query": "evolution"}), ["tools", "policy"]),
        ("seed2", GATEWAY, ("invokeother_tool", {"mode": "fallback"}), ["tools", "policy"]),
    ],
)
async def test_a_load_answers_with_its_policy_in_the_second_block(
    board: Pegboard, agent: str, host: Host, call: tuple[str, dict[str, object]], keys: list[str]
) -> None:
    """T6: policy only where the payload has the schemas, or where the host lists the tools itself."""
    session = await begun(board, agent, host)
    _, second, *_ = await blocks(session, call[0], **call[1])
    told = json.loads(second)
    assert list(told) == keys
    assert told["policy"] == BOTH
    assert (await session.surface()).policy == "", "the prefix stays as it was"


async def test_what_has_no_policy_brings_no_block_of_it(board: Pegboard) -> None:
    """T6: a load that has nothing to say says nothing."""
    assert len(await blocks(await begun(board, "plain"), "load_tools", names=["quiet"])) == 1


async def test_a_load_by_the_host_and_a_call_that_loads_say_it_too(board: Pegboard) -> None:
    """T6, X1: a call of what is not loaded brings that tool alone, and speaks of it alone."""
    session = await begun(board, "plain")
    assert (await session.load("evolution")).policy == BOTH
    assert (await session.unload("evolution")).policy == ""
    await session.end_turn()
    answer = await session.call("forge__check")
    assert answer.status == "not_loaded"
    assert json.loads(str(answer.result.content[1]["text"]))["policy"] == "Prefer forge__check to anything else."


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("toolkits: {{t: {{tools: [p], policy: {policy}}}}}", "toolkits.t.policy"),
        ("agents: {{a: {{tools: [p]}}}}", "plugins.p.policy.one"),
    ],
)
def test_a_policy_that_no_model_could_read_is_refused(tmp_path: Path, text: str, where: str) -> None:
    """T6: the bound, and where it is broken."""
    path = tmp_path / "pegboard.yaml"
    (tmp_path / "p_tools.py").write_text("def one() -> None: ...\n")
    long = "x" * 20_001
    plugins = f"plugins: {{p: {{python: p_tools, policy: {{one: {long if where.startswith('plug') else 'y'}}}}}}}\n"
    path.write_text(plugins + text.format(policy=long))
    problems = inspect(path, registered={}, env={})[1]
    (problem,) = [p for p in problems if p.severity == "error"]
    assert problem.place is not None
    assert problem.place.path == where
    assert problem.message == "the policy has 20,001 characters; at most 20,000 go to a model."
    path.write_text(path.read_text().replace(long, long[:-1]))
    assert not [p for p in inspect(path, registered={}, env={})[1] if p.severity == "error"]
