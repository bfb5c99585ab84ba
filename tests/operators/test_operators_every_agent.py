"""Search for several agents at once, who may use what was found, and toolkits and plugins as a whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Pegboard
from pegboard.errors import UnknownAgentError
from pegboard.operators.explain import explain_for_operator
from pegboard.operators.search import CommonAnswer, who_may_use
from pegboard.operators.servers import ask_plugins, unasked_plugins
from pegboard.operators.subjects import make_subjects

MAIL = '''
def send_mail(to: str) -> str:
    """Send a mail to a person."""
    return to


def list_folders() -> str:
    """List the folders of the mailbox."""
    return ""
'''
CONFIG = """
store: sqlite:///state.db
plugins: {mail: {python: mailing}, post: {python: mailing, prefix: post, description: Of hunter22-and-more}}
servers: {ships: {command: pegboard-test-no-such-command, env: {KEY: "${KEY}"}}}
toolkits: {post: {tools: [mail], description: Letters and post.}}
agents:
  bare: {}
  off: {dialect: pegboard, allowed_toolkits: [post], permissions: {"toolkit:post": false}}
  all: {dialect: pegboard, discoverable: ["*"]}
"""
AGENTS = ("bare", "off", "all")


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    (tmp_path / "mailing.py").write_text(MAIL)
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(tmp_path / "pegboard.yaml", env={"KEY": "hunter22-and-more"}) as board:
        yield board


async def searched(board: Pegboard, query: str) -> CommonAnswer:
    """Return the answer once everything is indexed."""
    await board.ready("mail", "post")
    subjects = make_subjects(board.services)
    while (found := await subjects.search.for_agents(AGENTS, query)).indexing:
        pass
    return found


async def test_f5_each_hit_says_for_how_many_agents_it_is_permitted(board: Pegboard) -> None:
    found = await searched(board, "mail a person")
    assert (found.agents, found.hits[0].name, found.hits[0].agents) == (3, "send_mail", 1)
    assert found.hits[0].parts
    assert "hunter22" not in str(await searched(board, "of"))


async def test_what_the_text_names_comes_first_once(board: Pegboard) -> None:
    found = await searched(board, "post")
    assert [(hit.kind, hit.name, hit.match) for hit in found.hits][:2] == [
        ("toolkit", "post", "exact"),
        ("plugin", "post", "exact"),
    ]
    assert len({(hit.kind, hit.name) for hit in found.hits}) == len(found.hits)


async def test_p1_who_may_use_something_and_what_would_permit_it(board: Pegboard) -> None:
    """P1, F5: doing what is said permits it."""
    await board.ready("mail", "post")
    for name in ("send_mail", "toolkit:post", "plugin:post", "plugin:ships"):
        told = await who_may_use(board.services, AGENTS, name)
        assert [one.agent for one in told] == list(AGENTS)
        assert [one.permitted for one in told][2] is (name != "toolkit:post")
        for one in told:
            assert one.reason is not None or one.permitted
            assert bool(one.fixes) is not one.permitted
            for fix in one.fixes:
                await board.permissions.set(one.agent, fix.switch, fix.value)
        assert all(one.permitted for one in await who_may_use(board.services, AGENTS, name))
    assert await who_may_use(board.services, AGENTS, "nothing") == ()
    with pytest.raises(UnknownAgentError):
        await who_may_use(board.services, ("nobody",), "send_mail")


async def test_f5_a_toolkit_is_explained_until_all_of_it_is_loaded(board: Pegboard) -> None:
    """F5, S1: what is said is done, one after the other."""
    await board.ready("mail", "post")
    denied = await explain_for_operator(board.services, "off", "toolkit:post", session="s")
    assert denied.verdict.startswith(
        "Agent 'off' may not load toolkit 'post'. The toolkit 'toolkit:post' is switched off"
    )
    assert (denied.kind, denied.members, denied.tools) == ("toolkit", ("send_mail", "list_folders"), 2)
    await board.permissions.set("off", denied.fixes[0].switch, True)
    allowed = await explain_for_operator(board.services, "off", "toolkit:post", session="s")
    assert (allowed.permitted, allowed.loaded, [fix.kind for fix in allowed.fixes]) == (True, False, ["load"])
    await (await board.session(agent="off", session_id="s")).load(allowed.fixes[0].subject)
    loaded = await explain_for_operator(board.services, "off", "toolkit:post", session="s")
    assert (loaded.loaded, loaded.fixes) == (True, ())
    assert loaded.verdict == "Agent 'off' may use 2 of 2 tools of toolkit 'post'; 2 are loaded."


async def test_p9_plugins_that_nobody_asked_are_named_and_asked(board: Pegboard) -> None:
    """P9, G8: a server that cannot run has answered as well."""
    assert {"mail", "post", "ships"} <= set(unasked_plugins(board.services))
    late = set(await ask_plugins(board.services))
    while late & {"mail", "post", "ships"}:
        late = set(await ask_plugins(board.services))
    assert {tool.name for tool in board.world.catalog} >= {"send_mail", "list_folders"}
