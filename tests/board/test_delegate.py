"""Tasks that an agent hands to another one: the managed tool `delegate`, and who runs what it opens."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Pegboard, Session, UsageError

TOOLS = {"git": "log", "shell": "run", "web": "fetch", "notes": "add"}
CONFIG = """
store: sqlite:///state.db
plugins:
  git: {python: git_tools}
  shell: {python: shell_tools}
  web: {python: web_tools}
  notes: {python: notes_tools}
agents:
  lead: {tools: [delegate, git, shell], may_delegate: [reviewer, lead], discoverable: [web]}
  reviewer: {tools: [notes, delegate], role: Reads what others wrote. Says what is wrong., may_delegate: [lead]}
  outsider: {tools: [web, notes]}
"""


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    for name, tool in TOOLS.items():
        (tmp_path / f"{name}_tools.py").write_text(f'def {tool}() -> str:\n    """Do {tool}."""\n    return "{tool}"\n')
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    async with Pegboard.open(path, env={"HOME": str(tmp_path)}) as board:
        yield board


async def opened(board: Pegboard, agent: str = "lead") -> Session:
    return await board.session(agent=agent, session_id="thread", principal="ada")


async def names(session: Session) -> list[str]:
    """Return the wire names of what is loaded, without the meta-tools that load more."""
    managed = ("load_tools", "unload_tools", "search_tools")
    return [name for name in (await session.surface()).names if name not in managed]


async def names_of_child(child: Session, task: str) -> str:
    return f"{child.key.agent} does {task} with {', '.join(await names(child))}"


def text(answer: object) -> str:
    return getattr(answer, "result").content[0]["text"]  # noqa: B009


async def test_without_a_callback_it_is_not_listed_and_says_why(board: Pegboard) -> None:
    """P6, P8: what the host does not run is unavailable, not unknown."""
    lead = await opened(board)
    assert await names(lead) == ["log", "run"]
    answer = await lead.call("delegate", {"task": "look"})
    assert (answer.status, answer.message) == (
        "tool_unavailable",
        "'delegate' is not available now: No subagents can run here: the host program has not set board.on_delegate.",
    )
    explained = await lead.explain("delegate")
    assert (explained.permitted, explained.visible, [r.code for r in explained.reasons]) == (
        True, False, ["granted_static", "unavailable"],
    )  # fmt: skip


async def test_an_agent_that_does_not_list_it_has_none(board: Pegboard) -> None:
    """P8, P9: no one gets it by itself."""
    board.on_delegate = names_of_child
    outsider = await opened(board, "outsider")
    assert await names(outsider) == ["fetch", "add"]
    assert (await outsider.call("delegate", {"task": "look"})).status == "not_found"
    assert [r.code for r in (await outsider.explain("delegate")).reasons] == ["not_granted"]


async def test_a_named_agent_works_under_its_own_profile(board: Pegboard) -> None:
    """P8: that grant is the operator's; the definition names who there is."""
    board.on_delegate = names_of_child
    lead = await opened(board)
    found = (await lead.surface()).find("delegate")
    assert found is not None
    assert [reason.value for reason in found.because] == ["static", "meta"]
    assert found.tool.input_schema["properties"]["agent"]["description"] == (
        "Who does it: reviewer (Reads what others wrote); lead."
    )
    answer = await lead.call("delegate", {"task": "it", "agent": "reviewer"})
    assert (answer.status, text(answer)) == ("ok", "reviewer does it with add, delegate")


async def test_without_an_agent_it_is_a_child_of_the_kind(board: Pegboard) -> None:
    """P8, L8: cut to what the parent may; the smallest kind where none is stated."""
    board.on_delegate = names_of_child
    lead = await opened(board)
    assert text(await lead.call("delegate", {"task": "it"})) == "lead does it with run, delegate"
    assert text(await lead.call("delegate", {"task": "it", "kind": "plan"})) == "lead does it with log, run, delegate"


async def test_an_agent_that_the_file_does_not_list_is_not_found(board: Pegboard) -> None:
    """P8, P9: one that there is looks like one that there is not."""
    board.on_delegate = names_of_child
    lead = await opened(board)
    for other in ("outsider", "nobody"):
        answer = await lead.call("delegate", {"task": "it", "agent": other})
        assert (answer.status, answer.message) == (
            "not_found",
            f"Agent '{other}' was not found. There are: reviewer, lead.",
        )


async def test_delegating_in_a_circle_ends_with_one_clear_answer(board: Pegboard) -> None:
    """P8: agents that delegate to each other get at most three levels deep."""
    depth: list[str] = []

    async def passes_it_on(child: Session, task: str) -> str:
        depth.append(child.key.agent)
        other = "lead" if child.key.agent == "reviewer" else "reviewer"
        return text(await child.call("delegate", {"task": task, "agent": other}))

    board.on_delegate = passes_it_on
    answer = await (await opened(board)).call("delegate", {"task": "it", "agent": "reviewer"})
    assert depth == ["reviewer", "lead", "reviewer"]
    assert text(answer) == ("A child of this session would be more than 3 levels deep. Do the work in this session.")


async def test_a_child_that_is_cut_delegates_to_nobody_else_than_its_parent(board: Pegboard) -> None:
    """P8: what an agent's own file entry allows does not widen the session that it is a child of."""
    board.on_delegate = names_of_child
    outsider = await opened(board, "outsider")
    child = await outsider.child("general", agent="reviewer")
    assert await names(child) == ["add"]
    assert (await child.call("delegate", {"task": "it", "agent": "lead"})).status == "not_found"


async def test_the_host_opens_a_delegate_too(board: Pegboard) -> None:
    """P8: `session.child` with an agent that the file lists keeps that agent's tools, another one is cut."""
    lead = await opened(board)
    assert await names(await lead.child("review", agent="reviewer")) == ["add"]
    assert await names(await lead.child("general", agent="outsider")) == ["fetch"]


async def test_it_is_switched_off_like_any_tool(board: Pegboard) -> None:
    """P2, P4: a switch binds the next call, the child's as well."""
    board.on_delegate = names_of_child
    lead = await opened(board)
    child = await lead.child("general")
    assert "delegate" in await names(child)
    await board.permissions.set("lead", "delegate", value=False)
    assert ("delegate" in await names(lead), "delegate" in await names(child)) == (False, False)
    assert (await lead.call("delegate", {"task": "it"})).status == "not_found"
    assert [r.code for r in (await lead.explain("delegate")).reasons] == ["denied_switch"]


async def test_what_a_callback_raises_is_the_error_of_that_call(board: Pegboard) -> None:
    """X4: it is audited, and nothing else stops."""

    async def fails(child: Session, task: str) -> str:
        raise RuntimeError(f"no model for {child.key.agent}: {task}")

    board.on_delegate = fails
    seen: list[str] = []
    board.on("called", lambda record: seen.append(f"{record['subject']} {record['outcome']}"))
    answer = await (await opened(board)).call("delegate", {"task": "it"})
    assert (answer.status, text(answer)) == ("error", "The task was not done. RuntimeError: no model for lead: it")
    assert seen == ["delegate error"]


async def test_a_session_without_an_id_delegates_too(board: Pegboard) -> None:
    """S4: it needs no state of its own."""
    board.on_delegate = names_of_child
    lead = await board.session(agent="lead", principal="ada")
    assert (
        text(await lead.call("delegate", {"task": "it", "agent": "reviewer"})) == "reviewer does it with add, delegate"
    )


async def test_a_child_too_deep_is_refused_to_the_host(board: Pegboard) -> None:
    """P8: the same bound for anyone who opens one."""
    child = await opened(board)
    for _ in range(3):
        child = await child.child("general")
    with pytest.raises(UsageError, match="more than 3 levels deep"):
        await child.child("general", agent="reviewer")


def test_a_blocking_board_runs_the_task_in_a_thread(tmp_path: Path) -> None:
    """P8: the callback uses the child as any other blocking session."""
    (tmp_path / "git_tools.py").write_text('def log() -> str:\n    """Log."""\n    return "log"\n')
    path = tmp_path / "pegboard.yaml"
    path.write_text("store: 'memory:'\nplugins: {git: {python: git_tools}}\nagents: {a: {tools: [git, delegate]}}\n")
    with Pegboard.open_sync(path, env={"HOME": str(tmp_path)}) as board:
        board.on_delegate = lambda child, task: f"{task}: {text(child.call('log'))}"
        assert board.on_delegate is not None
        session = board.session(session_id="thread")
        assert text(session.call("delegate", {"task": "ask", "kind": "general"})) == "ask: log"
