"""Focus over a real board: rules, hooks, and what it does to calls."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Pegboard, Session
from pegboard.core.model.delivery import GATEWAY

HOOKS = """
import asyncio


def activation(message, tools):
    if "activate only" in message:
        return None
    return {"tools": tools, "choice": "required"} if "evolve" in message else None


async def later(message, tools):
    return ["note_add"] if "async" in message else None


def broken(message, tools):
    if "break" in message:
        raise RuntimeError("the hook is ill")


async def hanging(message, tools):
    if "hang" in message:
        await asyncio.sleep(3600)
"""
CONFIG = """
store: sqlite:///state.db
plugins:
  forge: {python: forge_tools}
  notes: {python: notes_tools}
  spare: {python: spare_tools}
toolkits:
  evolution:
    tools: [forge]
    focus:
      - {when: '(?i)\\bdeploy(ment)? status\\b', tools: [forge_check], choice: required}
      - {when: 'deploy|部署'}
      - {when: '(a+)+$', tools: [forge_check]}
      - {python: 'hooks:activation'}
      - {python: 'hooks:broken'}
      - {python: 'hooks:missing'}
      - {python: 'hooks:hanging'}
  writing: {tools: [notes], focus: {python: 'hooks:later'}}
agents:
  ada:
    allowed_toolkits: [evolution, writing]
    initial_toolkits: [evolution, writing]
    discoverable: [spare]
  plain: {tools: [forge, notes]}
"""


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    for name, tools in {"forge": ("check", "deploy"), "notes": ("add",), "spare": ("go",)}.items():
        prefix = "note" if name == "notes" else name
        text = "".join(f'def {prefix}_{t}() -> str:\n    """Do {t}."""\n    return "{t}"\n' for t in tools)
        (tmp_path / f"{name}_tools.py").write_text(text)
    (tmp_path / "hooks.py").write_text(HOOKS)
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(tmp_path / "pegboard.yaml", env={"HOME": str(tmp_path)}) as board:
        yield board


@pytest.fixture
async def ada(board: Pegboard) -> Session:
    return await board.session(agent="ada", session_id="thread")


META = ["search_tools", "load_tools", "unload_tools"]


async def narrowed(session: Session, message: str) -> tuple[list[str], str] | None:
    focus = (await session.surface(message=message)).focus
    if focus is None:
        return None
    return [name for name in focus["allowed_tools"] if name not in META], focus["tool_choice"]


async def test_a_rule_narrows_the_step_to_its_tools(ada: Session) -> None:
    """F3, SJ15, SJ16: the union of what matches; the list of tools and its order stay as they are."""
    plain = await ada.surface()
    assert plain.focus is None
    surface = await ada.surface(message="What is the Deployment Status?")
    assert surface.names == plain.names
    assert surface.focus == {"allowed_tools": [*META, "forge_check"], "tool_choice": "required"}
    assert await narrowed(ada, "deploy it") == (["forge_check", "forge_deploy"], "auto")
    assert await narrowed(ada, "请部署") == (["forge_check", "forge_deploy"], "auto")
    assert await narrowed(ada, "write a poem") is None


async def test_a_message_that_only_activates_gives_no_focus(ada: Session) -> None:
    """SJ17, F3: a hook decides over the message, with the visible tools at hand."""
    assert await narrowed(ada, "evolve yourself") == (["forge_check", "forge_deploy"], "required")
    assert await narrowed(ada, "activate only, then evolve") is None
    assert await narrowed(ada, "async please") == (["note_add"], "auto")


async def test_an_agent_without_rules_has_no_focus(board: Pegboard) -> None:
    """F3: off by default."""
    plain = await board.session(agent="plain", session_id="thread")
    assert await narrowed(plain, "deploy status") is None


async def test_a_call_outside_the_focus_is_refused_until_the_next_surface(board: Pegboard, ada: Session) -> None:
    """F3, X4: nothing has run or was loaded; the audit says why."""
    assert (await narrowed(ada, "deploy status")) is not None
    refused = await ada.call("note_add")
    assert (refused.status, refused.is_error) == ("refused", True)
    assert "focus" in refused.message
    assert "forge_check" in refused.message
    assert (await ada.call("spare_go")).status == "refused"
    assert not ((await ada.snapshot()).state).leases
    assert (await ada.call("nonsense")).status == "not_found"
    assert (await ada.call("forge_check")).status == "ok"
    assert (await ada.call("search_tools", {"queries": ["go"]})).status == "ok"
    denied = await board.services.store.entries(kind="deny")
    assert [(record.subject, record.outcome) for record in denied][-2:] == [
        ("spare/spare_go", "focus"),
        ("notes/note_add", "focus"),
    ]
    assert (await narrowed(ada, "a poem")) is None
    assert (await ada.call("note_add")).status == "ok"
    assert (await narrowed(ada, "deploy status")) is not None
    await ada.surface()
    assert (await ada.call("note_add")).status == "ok"


async def test_a_focus_binds_one_session_alone(board: Pegboard, ada: Session) -> None:
    """F3, S1: another session object, and the gateway's, see nothing of it."""
    await ada.surface(message="deploy status")
    other = await board.session(agent="ada", session_id="thread", host=GATEWAY)
    assert (await other.call("note_add")).status == "ok"


async def test_a_tool_that_is_switched_off_in_a_focus_is_not_found(board: Pegboard, ada: Session) -> None:
    """P4, P9: focus grants nothing."""
    await ada.surface(message="deploy status")
    await board.permissions.set("ada", "forge_check", False)
    assert (await ada.call("forge_check")).status == "not_found"
    assert await narrowed(ada, "deploy status") == (["forge_deploy"], "auto")


@pytest.mark.timeout(30)
async def test_a_pattern_takes_bounded_time(ada: Session) -> None:
    """F3: one on which a backtracking engine does not end, over a message of a megabyte."""
    await ada.surface(message="warm up")
    assert await narrowed(ada, "a" * 1_000_000 + "!") == (["forge_check"], "auto")
    assert await narrowed(ada, "aaaa" * 20 + "!\ud800") is None


async def test_a_hook_that_fails_narrows_nothing(ada: Session, caplog: pytest.LogCaptureFixture) -> None:
    """F3: it was skipped, with a warning; so is one that is missing, or hangs."""
    assert await narrowed(ada, "break the deploy") == (["forge_check", "forge_deploy"], "auto")
    assert "hooks:broken of toolkit evolution was skipped: RuntimeError: the hook is ill" in caplog.text
    assert "hooks:missing of toolkit evolution was skipped" in caplog.text
    assert await narrowed(ada, "hang") is None
    assert "hooks:hanging of toolkit evolution was skipped: TimeoutError" in caplog.text
