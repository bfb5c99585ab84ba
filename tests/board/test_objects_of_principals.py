"""What plugins keep in objects belongs to someone, through the library (G9)."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from benchmarks.objects import CART

from pegboard import Pegboard, Session
from pegboard.operators.sessions import remove_session


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cart.py").write_text(CART)
    monkeypatch.chdir(tmp_path)


@asynccontextmanager
async def opened(plugin: Any = None, b: Any = None, **agent: Any) -> AsyncIterator[Pegboard]:
    plugins = {"cart": {"python": "cart:Cart", **(plugin or {})}}
    agents = {"a": {"tools": ["cart"], **agent}, "b": {"tools": ["cart"], **(b or agent)}}
    configuration = {"store": "memory:", "plugins": plugins, "agents": agents}
    async with Pegboard.open(configuration) as board:
        yield board


async def shown(session: Session) -> str:
    return (await session.call("show")).result.content[0]["text"]


WHO: dict[str, dict[str, Any]] = {
    "the same": {},
    "another client": {"client": "two"},
    "another session": {"session_id": "two", "client": "two"},
    "another agent": {"agent": "b", "client": "two"},
    "another principal": {"principal": "bob", "client": "two"},
}
SHARED = {
    ("all", "shared"): set(WHO),
    ("all", "user"): set(WHO) - {"another principal"},
    ("all", "user_agent"): {"the same", "another client", "another session"},
    ("principal", "shared"): set(WHO) - {"another principal"},
    ("principal", "user"): set(WHO) - {"another principal"},
    ("principal", "user_agent"): {"the same", "another client", "another session"},
    ("session", "shared"): {"the same", "another client"},
    ("session", "user_agent"): {"the same", "another client"},
    ("client", "shared"): {"the same"},
    ("client", "user_agent"): {"the same"},
    (None, "shared"): set(WHO) - {"another principal"},
    (None, "private"): {"the same", "another client", "another session"},
}


@pytest.mark.parametrize(("instance", "scope"), SHARED)
async def test_instance_says_who_shares_an_object_and_the_scope_narrows_it(instance: str | None, scope: str) -> None:
    """G9: what the plugin says is narrowed by what agent and session say."""
    agent = {"private": {"per": "user"}} if scope == "private" else {"worker_scope": scope}
    async with opened({"instance": instance} if instance else {}, **agent) as board:
        first: dict[str, Any] = {"agent": "a", "session_id": "one", "principal": "ada", "client": "one"}
        await (await board.session(**first)).call("add", {"item": "ring"})
        found = {who for who, other in WHO.items() if await shown(await board.session(**{**first, **other})) != "[]"}
    assert found == SHARED[cast("Any", (instance, scope))]


async def test_what_is_shared_only_is_shared_by_all() -> None:
    """G9, P5: it cannot reach an agent that works apart."""
    async with opened({"shared_only": True}) as board:
        await (await board.session(agent="a", principal="ada")).call("add", {"item": "ring"})
        assert await shown(await board.session(agent="b", principal="bob")) == '["ring"]'


async def test_sessions_without_an_id_are_sessions_of_their_own(tmp_path: Path) -> None:
    """G9, S4: whether or not something is stored of them."""
    async with opened({"instance": "session"}) as board:
        one, two = [await board.session(agent="a", principal="ada") for _ in range(2)]
        await one.call("add", {"item": "ring"})
        assert (await shown(two), await shown(one)) == ("[]", '["ring"]')


async def test_a_session_narrows_who_shares_an_object_and_never_widens_it(tmp_path: Path) -> None:
    """G9, P5: the narrower of both counts."""
    async with opened({"instance": "all"}, worker_scope="user") as board:
        await (await board.session(agent="a", principal="ada")).call("add", {"item": "ring"})
        assert await shown(await board.session(agent="b", principal="ada")) == '["ring"]'
        assert await shown(await board.session(agent="b", principal="ada", worker_scope="user_agent")) == "[]"
        assert await shown(await board.session(agent="a", principal="bob", worker_scope="shared")) == "[]"


async def test_a_session_that_is_deleted_takes_its_own_objects_with_it() -> None:
    """G9: and no other's."""
    async with opened({"instance": "session"}) as board:
        one, two = [await board.session(agent="a", session_id=name, principal="ada") for name in ("one", "two")]
        for session in (one, two):
            await session.call("add", {"item": "ring"})
            await session.surface()
        assert await remove_session(board.services, one.key, by="ops")
        assert await shown(await board.session(agent="a", session_id="one", principal="ada")) == "[]"
        assert await shown(two) == '["ring"]'


async def test_names_that_look_like_scopes_share_nothing() -> None:
    """G9: each part of a scope stands for itself."""
    async with opened(worker_scope="user_agent", b={"worker_scope": "user"}) as board:
        await (await board.session(agent="a", principal="ada")).call("add", {"item": "ring"})
        for principal in ("shared", "ada:agent:a", "user:ada:agent:a", "ADA", "ada%3Aagent%3Aa", ""):
            assert await shown(await board.session(agent="b", principal=principal)) == "[]"


async def test_a_scope_that_changes_while_an_object_lives_shows_nobody_what_it_kept(tmp_path: Path) -> None:
    """G9: neither a plugin's instance nor an agent's scope."""
    file = tmp_path / "pegboard.yaml"

    def write(instance: str, scope: str) -> None:
        file.write_text(
            f"store: 'memory:'\nplugins: {{cart: {{python: 'cart:Cart', instance: {instance}}}}}\n"
            f"agents: {{a: {{tools: [cart], worker_scope: {scope}}}}}\n"
        )

    write("principal", "shared")
    async with Pegboard.open(file) as board:
        ada, bob = [await board.session(principal=name) for name in ("ada", "bob")]
        await ada.call("add", {"item": "ring"})
        for instance, scope in (("all", "shared"), ("all", "user"), ("session", "shared"), ("principal", "user_agent")):
            write(instance, scope)
            await board.reload()
            assert await shown(bob) == "[]"
        write("principal", "shared")
        await board.reload()
        assert (await shown(ada), await shown(bob)) == ('["ring"]', "[]")


async def test_lists_and_searches_construct_nothing_for_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """G9, X1: the first call does."""
    async with opened() as board:
        await board.ready("cart")
        cart, made = sys.modules["cart"].Cart, list[object]()
        begin = cart.__init__
        monkeypatch.setattr(cart, "__init__", lambda self: (made.append(self), begin(self))[1])
        sessions = [await board.session(agent="a", session_id="s", principal=f"user {n}") for n in range(5)]
        for session in sessions:
            await session.surface(message="cart")
            await session.search("cart")
        assert made == []
        await sessions[0].call("add", {"item": "ring"})
        await sessions[1].call("add", {"item": "ring"})
        assert len(made) == 1  # the first has what described the plugin
