"""What an operator finds while typing: what the model would find, what the agent may not use, and names."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import asdict, is_dataclass
from itertools import product
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from pegboard import Pegboard, UsageError
from pegboard.core.model.delivery import GATEWAY
from pegboard.errors import UnknownAgentError
from pegboard.operators.search import SearchAnswer, SearchHit
from pegboard.operators.subjects import make_subjects

MAIL = '''
def send_email(recipient: str, text: str) -> str:
    """Send mail to a person. Attachments are files."""
    return text


def list_folders() -> str:
    """List the folders of the mailbox."""
    return ""
'''
NOTES = '''
def write_note(text: str) -> str:
    """Write a note for later."""
    return text


def read_note(name: str) -> str:
    """Read a note that was written before."""
    return name


def erase_notes() -> str:
    """Erase every note."""
    return ""
'''
WEATHER = '''
def forecast(city: str) -> str:
    """Say how the weather of a city will be tomorrow."""
    return city


def tides(port: str) -> str:
    """Say when the water in a port is high."""
    return port
'''
SECRET = "hunter22-and-more"
CONFIG = """
store: sqlite:///state.db
plugins:
  mail: {python: mailing}
  notes: {python: noting}
  weather: {python: skies, needs: {tides: {env: [TIDES_KEY]}}}
servers:
  remote:
    command: pegboard-test-no-such-command
    env: {KEY: "${KEY}"}
    description: Ships and harbours of hunter22-and-more
toolkits:
  writing: {tools: [notes], label: Writing, description: Write things down.}
  correspondence: {tools: [mail], description: Letters and post.}
loadouts:
  calm: {plugins: [notes]}
agents:
  assistant:
    {dialect: pegboard, allowed_toolkits: [writing], discoverable: [weather], permissions: {erase_notes: false}}
  postman: {dialect: pegboard, discoverable: ["*"], permissions: {mail: true}}
  kits: {dialect: toolkits, allowed_toolkits: [writing, correspondence]}
"""
QUERIES = (
    "send mail", "weather tomorrow", "write_note", "forcast", "note", "read what I wrote", "list folders", "writing",
    "harbours", "zzzz", "category:Memory", "w", "we", "wea", "weat",
)  # fmt: skip


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    for name, text in (("mailing", MAIL), ("noting", NOTES), ("skies", WEATHER)):
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(tmp_path / "pegboard.yaml", env={"KEY": SECRET}) as board:
        await board.ready("mail", "notes", "weather")
        yield board


async def searched(
    board: Pegboard, agent: str, query: str, session: str = "", principal: str = "local"
) -> SearchAnswer:
    """Return the answer once everything is indexed."""
    subjects = make_subjects(board.services)
    found = await subjects.search.for_agent(agent, query, session=session, principal=principal)
    while found.indexing:
        found = await subjects.search.for_agent(agent, query, session=session, principal=principal)
    return found


def names(hits: tuple[SearchHit, ...]) -> list[str]:
    return [hit.name for hit in hits]


async def test_f5_the_hits_are_those_of_the_model_in_its_order_with_its_scores(board: Pegboard) -> None:
    await board.ready("remote")
    for number, (agent, query) in enumerate(product(("assistant", "postman", "kits"), QUERIES)):
        found = await searched(board, agent, query)
        session = await board.session(agent=agent, session_id=f"new-{number}")
        of_model = await session.search(query, limit=20)
        assert [(hit.kind, hit.name, hit.plugin, hit.score, hit.sentence) for hit in found.hits] == [
            (result.kind, result.name, result.plugin, result.score, result.sentence.replace(SECRET, "***"))
            for result in of_model.results
        ], (agent, query)
        assert [hit.standing for hit in found.hits] == [result.status for result in of_model.results], (agent, query)
        assert all(hit.permitted for hit in found.hits)
        for hit in (*found.hits, *found.rest):
            assert hit.score is not None
            assert sum(part.value for part in hit.parts) == pytest.approx(hit.score, abs=6e-5)


async def test_a_session_counts_with_its_loadout_its_messages_and_its_past_use(board: Pegboard) -> None:
    session = await board.session(agent="assistant", session_id="s", principal="ada")
    await session.surface(message="How is the weather in Oslo?")
    await session.search("sky")
    await session.load("forecast")
    await session.call("forecast", {"city": "Oslo"})
    found = await searched(board, "assistant", "and there?", session="s", principal="ada")
    of_model = await session.search("and there?", limit=20)
    assert [(hit.name, hit.score) for hit in found.hits] == [(hit.name, hit.score) for hit in of_model.results]
    (forecast,) = (hit for hit in found.hits if hit.name == "forecast")
    assert forecast.standing == "callable"
    assert {"words", "used"} <= {part.kind for part in forecast.parts}
    await session.use_loadout("calm")
    narrowed = await searched(board, "assistant", "weather tomorrow", session="s", principal="ada")
    assert "forecast" not in names(narrowed.hits)
    (forecast,) = (hit for hit in narrowed.rest if hit.name == "forecast")
    assert (forecast.standing, forecast.permitted) == ("excluded", True)
    assert forecast.reason is not None
    assert forecast.reason.code == "narrowed_loadout"


async def test_where_no_message_is_seen_earlier_searches_count_as_they_do_for_the_model(board: Pegboard) -> None:
    """In a gateway a search that says too little leans on those before it: in the operator's look, too."""
    session = await board.session(agent="postman", session_id="g", host=GATEWAY)
    await session.surface()
    await session.search("weather of tomorrow")
    found = await searched(board, "postman", "xylophones there", session="g")
    of_model = await session.search("xylophones there", limit=20)
    assert [(hit.name, hit.score) for hit in found.hits] == [(hit.name, hit.score) for hit in of_model.results]
    assert found.hits[0].name in ("forecast", "weather")
    words = [word for part in found.hits[0].parts for word in part.words]
    assert ("weather", True) in [(word.asked, word.before) for word in words]


async def test_p3_the_mail_tool_that_an_agent_lacks_is_found_with_the_first_reason(board: Pegboard) -> None:
    found = await searched(board, "assistant", "send mail to Ada")
    assert names(found.rest)[:2] == ["send_email", "correspondence"]
    assert {(hit.standing, hit.permitted) for hit in found.rest[:2]} == {("denied", False)}
    assert names((await searched(board, "assistant", "send mail")).names) == ["send_email"]
    reason = found.rest[0].reason
    assert reason is not None
    assert reason.code == "not_granted"
    assert reason.text == "Nothing grants it to agent 'assistant'."
    assert reason.where.partition(":")[0].endswith("pegboard.yaml")
    assert reason.where.split(":")[1:] == ["18", "3"]
    off = await searched(board, "assistant", "erase every note")
    denied = {hit.name: hit.reason for hit in off.rest}["erase_notes"]
    assert denied is not None
    assert (denied.code, denied.where.split(":")[1:]) == ("denied_switch", ["19", "93"])
    assert "send_email" not in names((await searched(board, "postman", "send mail to Ada")).rest)


async def test_p3_what_a_model_gets_is_the_same_before_and_after_an_operator_searched(board: Pegboard) -> None:
    session = await board.session(agent="assistant", session_id="s")
    before = [await session.search(query, limit=20) for query in QUERIES]
    for query in QUERIES:
        await searched(board, "assistant", query, session="s")
    assert [await session.search(query, limit=20) for query in QUERIES] == before


async def test_typing_leaves_no_trace(board: Pegboard, tmp_path: Path) -> None:
    """X4, S4: nothing stored, recorded, remembered, loaded or started, and no need of the turn added."""
    session = await board.session(agent="assistant", session_id="s", principal="ada")
    await session.load("writing")
    await session.search("note")
    await board.services.store.entries()  # writes what is still to be written
    await board.services.store.digest_key()  # is made once, where anything first needs a digest
    happened: list[object] = []
    for event in ("loaded", "called", "catalog_changed", "evicted", "permissions_changed"):
        board.on(event, happened.append)
    stored, conversation = dump(tmp_path), session.info.conversation
    catalog, searches = board.world.catalog, conversation.searches_before([])
    for agent in ("assistant", "postman"):
        for query in ("send mail", "harbours", "note", "remote"):
            await searched(board, agent, query, session="s", principal="ada")
            await searched(board, agent, query, session="another", principal="ada")
            await searched(board, agent, query)
    await board.services.store.entries()
    assert dump(tmp_path) == stored
    assert conversation.searches_before([]) == searches
    assert conversation.add_call("notes/write_note", 1) == ("note",)
    assert board.world.catalog is catalog
    assert not happened


def dump(folder: Path) -> list[str]:
    with sqlite3.connect(folder / "state.db") as connection:
        return list(connection.iterdump())


@pytest.mark.parametrize(
    ("typed", "kind", "name", "match"),
    [
        ("send_email", "tool", "send_email", "exact"),
        ("SEND email", "tool", "send_email", "exact"),
        ("mail/send_email", "tool", "send_email", "exact"),
        ("sned_email", "tool", "send_email", "near"),
        ("foreccast", "tool", "forecast", "near"),
        ("send_e", "tool", "send_email", "beginning"),
        ("writing", "toolkit", "writing", "exact"),
        ("Corespondence", "toolkit", "correspondence", "near"),
        ("weather", "plugin", "weather", "exact"),
        ("wether", "plugin", "weather", "near"),
        ("plugin:mail", "plugin", "mail", "exact"),
        ("remote", "plugin", "remote", "exact"),
    ],
)
async def test_a_name_comes_first_as_what_it_is(board: Pegboard, typed: str, kind: str, name: str, match: str) -> None:
    first = (await searched(board, "assistant", typed)).names[0]
    assert (first.kind, first.name, first.match) == (kind, name, match)


async def test_each_name_says_where_it_stands(board: Pegboard) -> None:
    async def first(agent: str, typed: str) -> tuple[str, str | None]:
        hit = (await searched(board, agent, typed)).names[0]
        return hit.standing, hit.reason.code if hit.reason else None

    assert await first("assistant", "writing") == ("loadable", None)
    assert await first("assistant", "correspondence") == ("denied", "not_granted")
    assert await first("assistant", "mail") == ("denied", "not_granted")
    assert await first("assistant", "weather") == ("loadable", None)
    assert await first("assistant", "tides") == ("unavailable", "unavailable")
    assert await first("assistant", "remote") == ("denied", "not_granted")
    assert await first("postman", "remote") == ("loadable", None)
    assert await first("postman", "send_email") == ("loadable", None)
    await board.permissions.set("assistant", "writing", False)
    assert await first("assistant", "writing") == ("denied", "denied_switch")


async def test_what_an_agent_of_toolkits_finds_by_no_tool_is_in_the_rest(board: Pegboard) -> None:
    found = await searched(board, "kits", "write a note for later")
    assert {hit.kind for hit in found.hits} == {"toolkit"}
    note = next(hit for hit in found.rest if hit.name == "write_note")
    assert (note.permitted, note.standing) == (True, "loadable")


async def test_a_changed_catalog_is_followed(board: Pegboard) -> None:
    subjects = make_subjects(board.services)
    assert not (await subjects.search.for_agent("assistant", "gardens")).names
    board.toolkits.register({"name": "gardens", "tools": ["notes"], "description": "Flowers and trees."})
    found = await subjects.search.for_agent("assistant", "gardens")
    assert (names(found.names), found.names[0].standing) == (["gardens"], "denied")
    assert names((await subjects.search.for_agent("assistant", "flowers")).rest) == ["gardens"]


async def test_x5_no_secret_is_shown(board: Pegboard) -> None:
    found = await searched(board, "postman", f"harbours of {SECRET}")
    assert SECRET not in str(found)
    assert "***" in next(hit for hit in found.hits if hit.name == "remote").sentence


async def test_the_answer_is_plain_values_that_json_can_carry(board: Pegboard) -> None:
    found = await searched(board, "assistant", "send mail to Ada")
    text = TypeAdapter(SearchAnswer).dump_json(found)
    assert TypeAdapter(SearchAnswer).validate_json(text) == found
    assert is_dataclass(found)
    assert asdict(found)["rest"][0]["name"] == "send_email"


async def test_odd_texts_are_answered(board: Pegboard) -> None:
    for text in ("", "   ", "\x00", "x" * 1_000_000, "天气", "<script>", "toolkit:", "\u202e", "''\"", "category:"):
        await searched(board, "assistant", text)
    subjects = make_subjects(board.services)
    with pytest.raises(UnknownAgentError, match="There is no agent 'nobody'"):
        await subjects.search.for_agent("nobody", "mail")
    with pytest.raises(UsageError, match="The limit is 0"):
        await subjects.search.for_agent("assistant", "mail", limit=0)
    assert len((await subjects.search.for_agent("assistant", "note", limit=1)).hits) == 1
