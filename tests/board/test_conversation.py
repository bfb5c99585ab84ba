"""What a conversation adds to a search: what was said or searched for before, and what was called after which need."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard, Session, UsageError
from pegboard.board.observability.conversations import MOST_CONVERSATIONS, Conversation, Conversations, RememberedUse
from pegboard.core.model.tools import Tool
from pegboard.ports import USE_LIFETIME, PastUse, Ranked, Ranking, SessionKey, UseRecord
from pegboard.ports.adapters import Adapters
from pegboard.stores.sql import MemoryStore
from pegboard.testing import FakeRanker, ManualClock

MODULE = '''
def forecast(city: str) -> str:
    """Return the weather of tomorrow."""
    if city == "nowhere":
        raise ValueError("there is no such city")
    return f"{city}: rain"


def tides(port: str) -> str:
    """Return when the water is high."""
    return f"{port}: noon"
'''
CONFIG = """
store: sqlite:///state.db
plugins:
  weather: {{python: weather, guards: {{tides: {{port: {{deny: [secret*]}}}}}}}}
  notes: {{python: weather, prefix: notes}}
servers:
  remote: {{url: "https://example.invalid/mcp", headers: {{Authorization: "${{KEY}}"}}, disabled: false}}
loadouts: {{shells: {{categories: [Shell]}}}}
defaults: {{remember: {default}}}
agents:
  assistant: {{discoverable: [weather], unloaded_call: run}}
  other: {{discoverable: [weather], unloaded_call: run}}
  listed: {{tools: [weather]}}
  silent: {{discoverable: [weather], unloaded_call: run, remember: {silent}}}
"""
SECRET = "hunter22-and-more"
FORECAST = "weather/forecast"

Open = Callable[..., AbstractAsyncContextManager[tuple[Pegboard, FakeRanker]]]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Return what opens a board over one folder, with a ranker that finds the forecast and logs what it is given."""
    (tmp_path / "weather.py").write_text(MODULE)

    @asynccontextmanager
    async def opened(
        *, default: str = "true", silent: str = "false", finds: str = FORECAST, store: MemoryStore | None = None
    ) -> AsyncIterator[tuple[Pegboard, FakeRanker]]:
        (tmp_path / "pegboard.yaml").write_text(CONFIG.format(default=default, silent=silent))
        ranker = FakeRanker(finds)
        adapters = Adapters(ranker=ranker, store=store)
        async with Pegboard.open(tmp_path / "pegboard.yaml", env={"KEY": SECRET}, adapters=adapters) as board:
            yield board, ranker

    return opened


async def session_of(board: Pegboard, principal: str = "ada", agent: str = "assistant", name: str = "s") -> Session:
    return await board.session(agent=agent, session_id=name, principal=principal)


async def used(board: Pegboard, ranker: FakeRanker, principal: str = "ada", agent: str = "assistant") -> list[PastUse]:
    """Return the uses that a search of this principal and agent ranks by, in a session of its own."""
    await (await session_of(board, principal, agent, name="another")).search("anything")
    return list(ranker.contexts[-1].used)


async def call(session: Session, name: str = "forecast", **arguments: str) -> str:
    return (await session.call(name, arguments or {"city": "Oslo"})).status


def stored_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.glob("state.db*"))


# What was said before


async def test_a_search_is_ranked_with_the_newest_messages_of_the_user(opened: Open) -> None:
    """P3: three, the newest last; a step more with the same message is the same message."""
    async with opened() as (board, ranker):
        session = await session_of(board)
        for message in ("I am in Oslo", "What should I wear?", "What should I wear?", "Tomorrow", "and on Sunday"):
            await session.surface(message=message)
        await session.search("weather")
        assert ranker.contexts[-1].messages == ("What should I wear?", "Tomorrow", "and on Sunday")


async def test_messages_are_known_to_every_object_of_a_session_and_to_no_other_session(opened: Open) -> None:
    """S1: of another principal, another agent, another id, and of none."""
    async with opened() as (board, ranker):
        await (await session_of(board)).surface(message="I am in Oslo")
        nameless = await board.session(agent="assistant", principal="ada")
        await nameless.surface(message="nobody else's")
        for principal, agent, name in (("bob", "assistant", "s"), ("ada", "other", "s"), ("ada", "assistant", "t")):
            await (await session_of(board, principal, agent, name)).search("weather")
            assert ranker.contexts[-1].messages == ()
        await (await session_of(board)).search("weather")
        assert ranker.contexts[-1].messages == ("I am in Oslo",)
        await nameless.search("weather")
        assert ranker.contexts[-1].messages == ("nobody else's",)
        await (await board.session(agent="assistant", principal="ada")).search("weather")
        assert ranker.contexts[-1].messages == ()


async def test_the_context_of_a_search_can_be_given(opened: Open) -> None:
    """P3: it takes the place of what is remembered; an empty one is none."""
    async with opened() as (board, ranker):
        session = await session_of(board)
        await session.surface(message="I am in Oslo")
        await session.search("weather", context=["one", "two", " ", "three", "four" * 10_000])
        assert ranker.contexts[-1].messages == ("two", "three", ("four" * 10_000)[:2000])
        await session.search("weather", context=[])
        assert ranker.contexts[-1].messages == ()


@pytest.mark.parametrize("message", [b"weather", 5, ["weather"], {"text": "weather"}])
async def test_a_message_that_is_no_text_is_an_error_and_no_part_of_the_conversation(
    opened: Open, message: object
) -> None:
    """P3: later searches do not meet it."""
    async with opened() as (board, ranker):
        session = await session_of(board)
        with pytest.raises(UsageError, match=r"not a text\. It is the text that the user wrote"):
            await session.surface(message=message)  # type: ignore
        await session.search("weather")
        assert ranker.contexts[-1].messages == ()


@pytest.mark.parametrize(
    ("queries", "options", "message"),
    [
        ((["weather"],), {}, "Query 1 is of the type 'list'"),
        (("weather", None), {}, "Query 2 is of the type 'NoneType'"),
        (("weather",), {"limit": 0}, "The limit is 0."),
        (("weather",), {"limit": -1}, "The limit is -1."),
        (("weather",), {"limit": "5"}, "The limit is '5'."),
        (("weather",), {"context": "I am in Oslo"}, "The context is no list of texts"),
        (("weather",), {"context": [None]}, "The context is no list of texts"),
        (("weather",), {"context": 5}, "The context is no list of texts"),
    ],
)
async def test_a_search_that_cannot_be_meant_is_one_clear_error(
    opened: Open, queries: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    """P3: of the host; a model's arguments are checked against the schema (X2)."""
    async with opened() as (board, _):
        with pytest.raises(UsageError, match=re.escape(message)):
            await (await session_of(board)).search(*queries, **options)


async def test_earlier_searches_are_no_context_where_the_host_sees_the_messages(opened: Open) -> None:
    """P3: in the library; those of the model neither, whatever they find."""
    async with opened(finds="nothing") as (board, ranker):
        session = await session_of(board)
        await session.search("a flight to Oslo")
        await session.call("search_tools", {"queries": ["a hotel", "a train"]})
        assert [context.messages for context in ranker.contexts] == [(), ()]


async def test_nothing_of_a_conversation_is_stored_with_the_session(opened: Open, tmp_path: Path) -> None:
    """S4: a session that only looked and searched stores nothing."""
    async with opened() as (board, _):
        session = await session_of(board)
        await session.surface(message="a private message")
        await session.search("a private search")
        await session.load("weather")
        await session.end_turn()
    assert b"a private" not in stored_in(tmp_path)


# What was called after which need


async def test_what_is_called_after_a_search_is_remembered_for_later_sessions(opened: Open) -> None:
    """P3, S2: in another process, too; never across principals or agents."""
    async with opened() as (board, ranker):
        session = await session_of(board)
        await session.search("will it rain")
        assert await call(session) == "ok"
        assert await used(board, ranker) == [PastUse(need="will it rain", tool=FORECAST)]
    async with opened() as (board, ranker):
        assert await used(board, ranker) == [PastUse(need="will it rain", tool=FORECAST)]
        assert await used(board, ranker, principal="bob") == []
        assert await used(board, ranker, agent="other") == []


async def test_what_is_called_in_the_turn_of_a_message_is_remembered_for_it(opened: Open) -> None:
    """P3: for the message of that turn alone, and each pair once a turn."""
    async with opened() as (board, ranker):
        session = await session_of(board)
        await session.surface(message="Do I need an umbrella?")
        await call(session)
        await call(session, city="Bergen")
        await session.surface(message="When is high water?")
        await call(session, "tides", port="Bergen")
        await session.end_turn()
        await call(session, "tides", port="Oslo")
        assert await used(board, ranker) == [
            PastUse(need="Do I need an umbrella?", tool=FORECAST),
            PastUse(need="When is high water?", tool="weather/tides"),
        ]


async def test_a_child_remembers_for_its_parents_principal_and_agent(opened: Open) -> None:
    """S1, L8: what its parent was asked is not its own need."""
    async with opened() as (board, ranker):
        parent = await session_of(board)
        await parent.surface(message="Plan my week")
        child = await parent.child("general")
        await child.search("rain")
        assert ranker.contexts[-1].messages == ()
        await call(child)
        assert await used(board, ranker) == [PastUse(need="rain", tool=FORECAST)]


async def test_a_call_that_fails_or_is_refused_is_not_remembered(opened: Open) -> None:
    """P3, T10: only what answered the need."""
    async with opened() as (board, ranker):
        session = await session_of(board)
        await session.search("will it rain")
        assert await call(session, city="nowhere") == "error"
        assert await call(session, wrong="x") == "invalid_arguments"
        assert await call(session, "tides", port="secret port") == "refused"
        assert await call(session, "nothing_like_it") == "not_found"
        assert await used(board, ranker) == []


async def test_a_tool_that_was_denied_since_leaves_no_trace(opened: Open) -> None:
    """P9, P4: as soon as it is denied, and only as long; a session's loadout excludes as well (L7)."""
    async with opened() as (board, ranker):
        session = await session_of(board)
        await session.search("will it rain")
        await call(session)
        await board.permissions.set("assistant", "forecast", False)
        assert await used(board, ranker) == []
        await board.permissions.set("assistant", "forecast", None)
        assert [use.tool for use in await used(board, ranker)] == [FORECAST]
        await session.use_loadout("shells")
        await session.search("anything")
        assert ranker.contexts[-1].used == ()


async def test_a_tool_that_is_gone_leaves_no_trace(opened: Open) -> None:
    """P9: neither one that no configuration brings any longer nor one that never was."""
    store = MemoryStore()
    store.remember_later(UseRecord(2e9, "ada", "assistant", "will it rain", "gone/forecast"))
    store.remember_later(UseRecord(2e9, "ada", "assistant", "will it rain", "no id"))
    async with opened(store=store) as (board, ranker):
        assert await used(board, ranker) == []


async def test_a_secret_in_a_need_is_masked_before_it_is_stored(opened: Open, tmp_path: Path) -> None:
    """X5: in a message, in a search, in a long text that is cut, and in a URL."""
    async with opened() as (board, ranker):
        session = await session_of(board)
        await session.surface(message=f"{'x' * 1990} {SECRET}")
        await call(session)
        await session.surface(message=f"My key is {SECRET}, is that safe in the rain?")
        await session.search(f"rain {SECRET}")
        await call(session)
        await session.surface(message="fetch https://ada:open-sesame@example.invalid/x")
        await call(session)
        needs = {use.need for use in await used(board, ranker)}
        assert needs >= {"My key is ***, is that safe in the rain?", "rain ***"}
        assert len(needs) == 4
    stored = stored_in(tmp_path)
    assert b"is that safe" in stored
    assert SECRET.encode() not in stored
    assert b"hunter" not in stored
    assert b"open-sesame" not in stored


async def test_a_need_is_stored_as_one_line_of_sane_length_and_without_words_not_at_all(opened: Open) -> None:
    """S1: a megabyte, control characters, only punctuation."""
    async with opened() as (board, ranker):
        session = await session_of(board)
        for message in ("word " * 200_000, "two\nlines \x1b[31m", "?!\x00 …", "   "):
            await session.surface(message=message)
            await call(session)
        needs = [use.need for use in await used(board, ranker)]
        assert [need[:12] for need in needs] == ["word word wo", "two lines [3"]
        assert len(needs[0]) == 300


@pytest.mark.parametrize(("default", "silent", "agent"), [("true", "false", "silent"), ("false", "null", "assistant")])
async def test_an_agent_that_shall_not_remember_stores_and_uses_nothing(
    opened: Open, tmp_path: Path, default: str, silent: str, agent: str
) -> None:
    """P3: `remember: false`, of the agent or of `defaults`; what was stored before does not count either."""
    store = MemoryStore()
    store.remember_later(UseRecord(2e9, "ada", agent, "earlier", FORECAST))
    async with opened(default=default, silent=silent, store=store) as (board, ranker):
        session = await session_of(board, agent=agent)
        await session.surface(message="will it rain")
        await session.search("rain")
        await call(session)
        assert await used(board, ranker, agent=agent) == []
        assert [use.need for use in await store.uses("ada", agent)] == ["earlier"]


async def test_an_agent_may_remember_where_the_others_do_not(opened: Open) -> None:
    """P3: its own `remember` wins over `defaults`."""
    async with opened(default="false", silent="true") as (board, ranker):
        session = await session_of(board, agent="silent")
        await session.search("will it rain")
        await call(session)
        assert [use.tool for use in await used(board, ranker, agent="silent")] == [FORECAST]


async def test_forgetting_ends_what_is_remembered_and_what_was_said(opened: Open) -> None:
    """S1: of one principal or agent; it is in the audit trail, without what was forgotten."""
    async with opened() as (board, ranker):
        for principal, agent in (("ada", "assistant"), ("ada", "other"), ("bob", "assistant")):
            session = await session_of(board, principal, agent)
            await session.surface(message="will it rain")
            await call(session)
        assert await board.forget(principal="ada", agent="other") == 1
        assert await board.forget(principal="ada") == 1
        assert await board.forget(principal="ada") == 0
        assert await used(board, ranker) == []
        assert len(await used(board, ranker, principal="bob")) == 1
        await (await session_of(board)).search("rain")
        assert ranker.contexts[-1].messages == ()
        trail = await board.services.store.entries(kind="forget")
        assert [(entry.principal, entry.agent, entry.outcome) for entry in trail][::-1] == [
            ("ada", "other", "1"),
            ("ada", "", "1"),
            ("ada", "", "0"),
        ]
        assert "rain" not in repr(trail)
        assert await board.forget() == 1


async def test_uses_count_for_30_days(opened: Open) -> None:
    """S1: also in a process that runs on, where nothing else is stored."""
    clock = ManualClock(2e9)
    async with opened() as (board, _):
        snapshot = await (await session_of(board)).snapshot()
        await board.ready("weather")
        snapshot = await (await session_of(board)).snapshot()
        uses = RememberedUse(board.services.store, clock)
        key = snapshot.info.key

        async def needs() -> list[str]:
            return [use.need for use in await uses.within_reach(key, snapshot.permissions, snapshot.state)]

        uses.remember(key, ["one"], FORECAST)
        clock.advance(100)
        uses.remember(key, ["two"], FORECAST)
        assert await needs() == ["one", "two"]
        clock.advance(USE_LIFETIME - 101)
        assert await needs() == ["one", "two"]
        clock.advance(2)
        assert await needs() == ["two"]
        clock.advance(100)
        assert await needs() == []


# Which need a call answers


def found(*tools: str) -> Ranking:
    """Return a ranking that has found each of these tools for the need of its place."""
    hits = [
        Ranked(found=Tool(plugin="p", name=name), score=1.0, need=need)
        for need, names in enumerate(tools)
        for name in names.split()
    ]
    return Ranking(hits=tuple(hits))


def test_of_several_needs_a_call_answers_the_one_that_found_its_tool() -> None:
    """P3: the list of needs of one search."""
    conversation = Conversation()
    conversation.add_search(["read a file", "send a mail"], found("read cat", "send"), 1)
    assert conversation.add_call("p/send", 1) == ("send a mail",)
    assert conversation.add_call("p/cat", 1) == ("read a file",)
    assert conversation.add_call("p/send", 1) == ()
    assert conversation.add_call("p/unrelated", 1) == ()


def test_a_search_that_missed_is_answered_by_what_is_called_next() -> None:
    """P3: so the next one with its words finds it; a later call is no answer to it."""
    conversation = Conversation()
    conversation.add_search(["umbrella"], found("shop"), 1)
    conversation.add_search(["forecast"], found("forecast"), 1)
    assert conversation.add_call("p/forecast", 1) == ("umbrella", "forecast")
    assert conversation.add_call("p/log", 1) == ()
    conversation.add_search(["umbrella"], found("forecast"), 1)
    assert conversation.add_call("p/forecast", 1) == ()


def test_needs_end_with_their_turn() -> None:
    """P3: and with the next message; a call of another turn answers none."""
    conversation = Conversation()
    conversation.add_message("first", 1)
    conversation.add_search(["rain"], found("forecast"), 1)
    assert conversation.add_call("p/forecast", 2) == ()
    conversation.add_message("second", 1)
    assert conversation.add_call("p/forecast", 1) == ("second",)
    conversation.add_search(["rain"], found("forecast"), 3)
    assert conversation.add_call("p/forecast", 3) == ("rain",)


def test_of_more_conversations_than_are_kept_the_ones_not_opened_for_longest_go() -> None:
    """S1: one that is opened again stays, and is the same for all that open it."""
    conversations = Conversations()
    keys = [SessionKey(principal="ada", agent="a", session=str(number)) for number in range(MOST_CONVERSATIONS)]
    for key in keys:
        conversations.conversation_of(key).add_message(f"message of {key.session}", 1)
    assert conversations.conversation_of(keys[0]).messages_before([]) == ("message of 0",)
    conversations.conversation_of(SessionKey(principal="ada", agent="a", session="one more"))
    assert conversations.conversation_of(keys[0]).messages_before([]) == ("message of 0",)
    assert conversations.conversation_of(keys[2]).messages_before([]) == ("message of 2",)
    assert conversations.conversation_of(keys[1]).messages_before([]) == ()


def test_a_conversation_stays_small() -> None:
    """S1: a thousand needs, each of a megabyte."""
    conversation = Conversation()
    for number in range(10):
        queries = [f"{number}/{place} {'x' * 100_000}" for place in range(100)]
        conversation.add_search(queries, found(*["tool"] * 100), 1)
    answered = conversation.add_call("p/tool", 1)
    assert [need.split()[0] for need in answered] == [f"9/{place}" for place in range(84, 100)]
    assert {len(text) for text in (*answered, *conversation.searches_before([]))} == {2000}
    assert len(conversation.searches_before([])) == 3
