"""Why an agent cannot call a tool, and what would make it callable: the same for the page and the command."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from pegboard import Pegboard
from pegboard.errors import UnknownAgentError
from pegboard.operators.explain import Fix, OperatorExplanation, explain_for_operator

MODULE = '''
def send_email(recipient: str) -> str:
    """Send mail to a person."""
    return recipient


def list_folders() -> str:
    """List the folders of the mailbox."""
    return ""
'''
SECRET = "hunter22-and-more"
CONFIG = """
store: sqlite:///state.db
plugins:
  mail: {python: mailing}
  keyed: {python: mailing, prefix: keyed, needs: {list_folders: {env: [MAIL_KEY]}}}
servers:
  down: {command: pegboard-test-no-such-command, env: {KEY: "${KEY}"}}
  lacking: {command: "run-${NOT_SET_ANYWHERE}"}
toolkits:
  letters: {tools: [mail], description: Letters and post.}
  later: {tools: [docker]}
loadouts:
  closed: {plugins: [mail], disabled: [docker]}
  narrow: {plugins: [keyed]}
agents:
  bare: {}
  off: {dialect: pegboard, allowed_toolkits: [letters], permissions: {letters: false}}
  assistant: {dialect: pegboard, discoverable: [mail, keyed, down, lacking]}
  closed: {dialect: pegboard, loadout: closed, allowed_toolkits: [later]}
  filtered: {tools: [{mail: {include_tools: [list_folders]}}]}
  slow: {dialect: pegboard, discoverable: [mail], activation: next_request}
"""


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    (tmp_path / "mailing.py").write_text(MODULE)
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(tmp_path / "pegboard.yaml", env={"KEY": SECRET}) as board:
        await board.ready("mail", "keyed", "down")
        yield board


async def explained(board: Pegboard, agent: str, name: str, session: str = "") -> OperatorExplanation:
    return await explain_for_operator(board.services, agent, name, session=session)


def line(where: str) -> int:
    return int(where.split(":")[-2])


async def test_p1_a_switch_that_is_off_is_named_and_where_it_is_written(board: Pegboard) -> None:
    found = await explained(board, "off", "send_email")
    assert found.verdict.startswith("Agent 'off' may not use 'send_email'. The toolkit 'letters' is switched off")
    (fix,) = found.fixes
    assert (fix.kind, fix.switch, fix.value, fix.code) == ("switch", "letters", True, "denied_switch")
    assert line(fix.where) == 17
    await board.permissions.set("off", fix.switch, bool(fix.value))
    assert (await explained(board, "off", "send_email")).permitted


async def test_each_thing_in_the_way_has_its_fix_and_doing_all_of_them_makes_it_callable(board: Pegboard) -> None:
    """F5: denied by a switch of its own, then not loaded."""
    await board.permissions.set("assistant", "mail", False)
    await board.permissions.set("assistant", "letters", False)
    for _ in range(6):
        found = await explain_for_operator(board.services, "assistant", "send_email", session="s")
        if found.callable:
            break
        fix = found.fixes[0]
        if fix.kind == "switch":
            await board.permissions.set("assistant", fix.switch, fix.value)
        else:
            assert fix.kind == "load"
            await (await board.session(agent="assistant", session_id="s")).load(fix.subject)
    assert found.callable
    assert found.fixes == ()


@pytest.mark.parametrize(
    ("agent", "name", "kinds"),
    [
        ("bare", "send_email", ["grant"]),
        ("filtered", "send_email", ["edit"]),
        ("assistant", "send_email", ["load"]),
        ("assistant", "keyed__list_folders", ["environment", "load"]),
        ("assistant", "down", ["restart"]),
        ("assistant", "lacking", ["environment"]),
        ("filtered", "list_folders", []),
        ("assistant", "nonsense", ["look_up"]),
        ("assistant", "mail", ["load"]),
        ("off", "letters", ["switch"]),
        ("assistant", "load_tools", []),
    ],
)
async def test_what_is_to_be_done(board: Pegboard, agent: str, name: str, kinds: list[str]) -> None:
    found = await explained(board, agent, name)
    assert [fix.kind for fix in found.fixes] == kinds
    assert all(fix.text for fix in found.fixes)
    assert SECRET not in str(found)


async def test_a_new_session_differs_from_one_that_has_loaded_something(board: Pegboard) -> None:
    session = await board.session(agent="assistant", session_id="s")
    await session.load("send_email")
    assert (await explained(board, "assistant", "send_email", "s")).callable
    for other in ("", "another"):
        found = await explained(board, "assistant", "send_email", other)
        assert (found.permitted, found.loaded) == (True, False)
    assert (await explained(board, "assistant", "load_tools")).callable
    assert [key.session for key, _ in await board.services.store.sessions()] == ["s"]


async def test_it_agrees_with_what_the_session_itself_explains(board: Pegboard) -> None:
    """F5: the predicates and the codes are the session's own."""
    for agent in board.world.agents:
        session = await board.session(agent=agent, session_id="s")
        for name in ("send_email", "list_folders", "keyed__send_email", "docker/list", "down", "nonsense"):
            own, found = await session.explain(name), await explained(board, agent, name, "s")
            assert (own.permitted, own.loaded, own.visible, own.callable) == (
                found.permitted, found.loaded, found.visible, found.callable,
            )  # fmt: skip
            assert [reason.code for reason in own.reasons] == [reason.code for reason in found.reasons]


async def test_what_is_loaded_for_the_next_turn_waits_for_it(board: Pegboard) -> None:
    """D2: loaded and not callable yet."""
    session = await board.session(agent="slow", session_id="s")
    await session.load("send_email")
    found = await explained(board, "slow", "send_email", "s")
    assert (found.loaded, found.callable, [fix.kind for fix in found.fixes]) == (True, False, ["turn"])
    await session.end_turn()
    assert (await explained(board, "slow", "send_email", "s")).callable


async def test_a_loadout_that_excludes_it_is_left_before_it_is_loaded(board: Pegboard) -> None:
    """L7: the active loadout of the session."""
    session = await board.session(agent="assistant", session_id="s")
    await session.use_loadout("narrow")
    found = await explained(board, "assistant", "send_email", "s")
    assert [fix.kind for fix in found.fixes] == ["loadout"]


@pytest.mark.parametrize("name", ["docker/list_containers", "docker__list_containers", "docker"])
async def test_p9_a_tool_of_a_plugin_that_is_denied_and_was_never_asked_is_explained(
    board: Pegboard, name: str
) -> None:
    """F5: its tools are not known, and who denies the plugin."""
    found = await explained(board, "closed", name)
    assert (found.permitted, found.known) == (False, True)
    assert found.verdict == f"Agent 'closed' may not use '{name}'. Loadout 'closed' disables plugin 'docker'."
    assert [reason.code for reason in found.reasons][:1] == ["denied_loadout"]
    assert found.fixes[0].kind == "edit"
    assert line(found.fixes[0].where) == 13


async def test_a_name_that_says_nothing_of_its_plugin_may_be_one_of_those_that_were_never_asked(
    board: Pegboard,
) -> None:
    found = await explained(board, "closed", "list_containers")
    assert not found.known
    assert found.verdict.startswith("There is no tool 'list_containers' in the catalog.")
    said = [reason.text for reason in found.reasons if reason.code == "not_seen"]
    assert any(
        text == "The tools of plugin 'docker' are not known yet. Loadout 'closed' disables plugin 'docker'."
        for text in said
    )


async def test_an_explanation_is_plain_values_that_json_can_carry(board: Pegboard) -> None:
    found = await explained(board, "off", "send_email")
    adapter = TypeAdapter(OperatorExplanation)
    assert adapter.validate_json(adapter.dump_json(found)) == found
    assert isinstance(found.fixes[0], Fix)


async def test_an_agent_that_is_not_there_is_refused(board: Pegboard) -> None:
    with pytest.raises(UnknownAgentError, match="There is no agent 'nobody'"):
        await explained(board, "nobody", "send_email")
