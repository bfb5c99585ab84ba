"""Tokens of arguments and results, counted and estimated, and what all of it costs at the prices of a configuration."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.clients import edit
from pegboard import Pegboard
from pegboard.board.observability.call_texts import COUNTED, KEPT, PIECE, CallTexts
from pegboard.core.model.delivery import Cache, Host
from pegboard.core.model.prices import KINDS, Prices, Tokens, amount, cost, millionths
from pegboard.core.model.tools import CallResult, text_result
from pegboard.core.state.call_plans import CallAnswer
from pegboard.operators.bill import Bill, BillQuery, BillReader, BillRow
from pegboard.operators.subjects import make_subjects
from pegboard.operators.usage import Usage, UsageQuery
from pegboard.ports.adapters import Adapters
from pegboard.testing import MemoryStore
from pegboard.tokens import OfflineTokenCounter

CONFIG = """
models:
  default: {prices: {input: 3.00, cached: 0.30, written: 3.75, output: 15.00, currency: USD}}
  euro: {prices: {input: "0.1", output: 0.2, currency: EUR}}
  free: {provider: local, id: own}
plugins: {notes: {python: note_tools}}
agents:
  ada: {tools: [notes], dialect: pegboard}
  eve: {tools: [notes], model: euro, dialect: pegboard}
  own: {tools: [notes], model: free, dialect: pegboard}
"""
NOTES = '''
def note(text: str) -> str:
    """Take a note."""
    return f"taken: {text}"


def fail(text: str) -> str:
    """Fail."""
    raise ValueError(text)
'''
KEY = ("ada", "agent", "session")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "note_tools.py").write_text(NOTES)
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def lasting(config: Path) -> Path:
    """Return a configuration whose store outlives a process."""
    config.write_text(f"store: sqlite:///own.db\n{CONFIG}")
    return config


@pytest.fixture
async def board(config: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(config, adapters=Adapters(store=MemoryStore())) as opened:
        yield opened


async def bill_of(board: Pegboard, **wanted: Any) -> Bill:
    return await BillReader(board.services).bill(BillQuery(**wanted))


async def only(board: Pegboard, **wanted: Any) -> BillRow:
    (row,) = (await bill_of(board, **{"by": "agent", **wanted})).rows
    return row


async def usage_of(board: Pegboard) -> Usage:
    subjects = make_subjects(board.services)
    try:
        return await subjects.usage.usage(UsageQuery(seconds=3_600))
    finally:
        await subjects.aclose()


def tokens_of(*texts: str) -> int:
    counter = OfflineTokenCounter()
    return sum(map(counter.count, texts))


def written(**arguments: object) -> str:
    return json.dumps(arguments, separators=(",", ":"), ensure_ascii=False)


async def test_what_a_model_writes_and_is_answered_is_counted_as_a_tokenizer_counts_it(board: Pegboard) -> None:
    """F4: also what fails, is refused, or manages tools; on the bill and by tool."""
    session = await board.session(agent="ada", session_id="s", principal="carl")
    taken = await session.call("note", {"text": "größer als 3 €"})
    failed = await session.call("fail", {"text": "no"})
    refused = await session.call("nothing_such", {"a": [1, {"b": None}]})
    found = await session.call("search_tools", {"queries": ["take a note"]})
    arguments = (
        written(text="größer als 3 €"),
        written(text="no"),
        written(a=[1, {"b": None}]),
        written(queries=["take a note"]),
    )
    results = [block["text"] for one in (taken, failed, refused, found) for block in one.result.content]
    row = await only(board)
    assert (row.arguments, row.results, row.estimated) == (tokens_of(*arguments), tokens_of(*results), 0)
    usage = await usage_of(board)
    by_tool = {one.name: (one.arguments, one.results) for one in usage.tools}
    assert by_tool["notes/note"] == (tokens_of(arguments[0]), tokens_of(results[0]))
    assert by_tool["notes/fail"] == (tokens_of(arguments[1]), tokens_of(results[1]))
    assert (usage.totals.arguments, usage.totals.results) == (row.arguments, row.results)
    (agent,) = usage.agents
    assert (agent.arguments, agent.results, agent.money) == (row.arguments, row.results, row.money)


async def test_a_bill_in_money_is_what_its_tokens_cost(board: Pegboard) -> None:
    """F4: without a prompt cache a list is plain input."""
    session = await board.session(agent="ada", session_id="s")
    await session.surface()
    await session.call("note", {"text": "x"})
    row = await only(board)
    (money,) = row.money
    millionth = 1_000_000
    assert (row.written, row.cached, row.unpriced, money.currency) == (0, 0, 0, "USD")
    assert float(money.lists) == pytest.approx(3 * row.tokens / millionth)
    assert float(money.arguments) == pytest.approx(15 * row.arguments / millionth)
    assert float(money.results) == pytest.approx(3 * row.results / millionth)
    assert float(money.total) == pytest.approx(float(money.lists) + float(money.arguments) + float(money.results))
    assert float(money.saved) == pytest.approx(3 * row.saved / millionth)


async def test_under_a_prompt_cache_a_list_is_written_once_and_read_from_then_on(board: Pegboard) -> None:
    """F4, D1: over bills too; another list is written again, everything listed would have been written once."""
    session = await board.session(agent="ada", session_id="s", host=Host(cache=Cache(tokens=100)))
    first = (await session.surface()).tokens.total
    await session.surface()
    row = await only(board)
    assert (row.written, row.cached) == (first, first)
    await session.surface()
    row = await only(board)
    assert (row.tokens, row.written, row.cached, row.texts) == (3 * first, first, 2 * first, row.texts)
    everything = first + row.saved // 3
    assert (row.saved_written, row.saved_cached) == (everything - first, 2 * (everything - first))
    (money,) = row.money
    assert float(money.lists) == pytest.approx((3.75 + 2 * 0.30) * first / 1_000_000, abs=1e-6)


async def test_each_currency_is_a_sum_of_its_own_and_what_has_no_price_stays_in_tokens(board: Pegboard) -> None:
    """F4: there is no price that no one wrote down, and who has none is named."""
    for agent in ("ada", "eve", "own"):
        session = await board.session(agent=agent, session_id="s", principal="carl")
        await session.call("note", {"text": "one two three"})
    bill = await bill_of(board, by="principal")
    (row,) = bill.rows
    assert (row.principal, [one.currency for one in row.money]) == ("carl", ["EUR", "USD"])
    alone = await only(board, agent="own")
    assert (alone.money, alone.unpriced) == ((), alone.tokens + alone.arguments + alone.results)
    assert bill.totals.unpriced == alone.unpriced > 0
    assert [(one.agent, one.model) for one in bill.without_prices] == [("own", "free")]
    assert bill.totals.money == row.money
    assert [one.money for one in bill.steps if one.money] == [row.money]
    usage = await usage_of(board)
    assert (usage.money, usage.unpriced) == (row.money, row.unpriced)


async def test_an_edit_of_a_price_counts_at_once_for_what_is_past(board: Pegboard, config: Path) -> None:
    """F4, P10: tokens are stored, money is not; a price widens nothing that has to be accepted."""
    session = await board.session(agent="ada", session_id="s")
    await session.call("note", {"text": "x"})
    (before,) = (await only(board)).money
    edit(config, "output: 15.00", "output: 30.00")
    async with Pegboard.open(config, adapters=Adapters(store=board.services.store)) as again:
        (after,) = (await only(again)).money
    assert float(after.arguments) == pytest.approx(2 * float(before.arguments))
    assert after.results == before.results


async def test_the_curve_of_a_bill_has_all_of_it_by_days_and_by_hours(board: Pegboard) -> None:
    """F4: hours are known of agents; of a principal it is days."""
    today = datetime.now(UTC).date()
    session = await board.session(agent="ada", session_id="s", principal="carl")
    await session.surface()
    await session.call("note", {"text": "x"})
    for hours, principal, count, seconds in ((1, None, 24, 3_600), (None, None, 1, 86_400), (1, "carl", 1, 86_400)):
        bill = await bill_of(board, since=today, step_hours=hours, principal=principal)
        assert [one.end - one.start for one in bill.steps] == [seconds] * count
        assert sum(one.tokens for one in bill.steps) == bill.totals.tokens > 0
        assert sum(one.results for one in bill.steps) == bill.totals.results > 0
        assert [one.money for one in bill.steps if one.money] == [bill.totals.money]


async def test_a_bill_of_some_seconds_ago_is_given_again_where_that_is_enough(board: Pegboard) -> None:
    """F4: to whoever asks for the same, of the same agents."""
    subjects, session = make_subjects(board.services), await board.session(agent="ada", session_id="s")
    await session.surface()
    first = await subjects.bills.bill(BillQuery(), 60.0)
    await session.surface()
    assert await subjects.bills.bill(BillQuery(), 60.0) is first
    other = await subjects.bills.bill(BillQuery(agents=frozenset({"eve"})), 60.0)
    assert (other.totals.requests, first.totals.requests) == (0, 1)
    assert (await subjects.bills.bill(BillQuery())).totals.requests == 2


async def test_what_was_counted_when_a_process_ends_is_an_estimate_and_reads_no_vocabulary(
    lasting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F4, L6: a command that calls once does not wait a third of a second for it."""
    monkeypatch.setattr("pegboard.tokens.vocabulary", lambda: pytest.fail("the vocabulary is read"))
    async with Pegboard.open(lasting) as board:
        await (await board.session(agent="ada", session_id="s")).call("note", {"text": "x" * 700})
    async with Pegboard.open(lasting) as later:
        row = await only(later)
    assert row.estimated == row.arguments + row.results
    assert 200 <= row.results <= 210


async def test_no_argument_and_no_result_is_kept_with_the_counts(board: Pegboard, tmp_path: Path) -> None:
    """X5: the file of counts has digests of tools only; a digest of an argument could be guessed."""
    counter = OfflineTokenCounter(tmp_path / "counts.json")
    assert list(await counter.count_apart(["hunter22", "a b"])) == [tokens_of("hunter22"), tokens_of("a b")]
    counter.rest()
    assert not (tmp_path / "counts.json").exists()


def answered(text: str) -> CallAnswer:
    return CallAnswer(status="ok", result=text_result(text))


async def count(texts: Any) -> list[int]:
    return [len(text) // 2 for text in texts]


async def test_beyond_a_bound_texts_are_estimated_by_what_was_counted_before() -> None:
    """F4: how much is an estimate is said; memory and time are bounded however much is called."""
    texts = CallTexts()
    for _ in range(3 * KEPT):
        texts.add(KEY, {}, answered("x" * 10), meta=False)
    (one,) = await texts.take(count)
    assert one.results == 3 * KEPT * 5
    assert one.arguments == 3 * KEPT
    assert one.estimated > 0
    texts.add(KEY, None, answered("y" * (PIECE + 1_000)), meta=False)
    (one,) = await texts.take(count)
    assert (one.results, one.estimated, one.arguments) == ((PIECE + 1_000) // 2, 500, 0)
    for _ in range(COUNTED // PIECE + 1):
        texts.add(KEY, None, answered("y" * PIECE), meta=False)
    await texts.take(count)
    texts.add(KEY, None, answered("z" * 100), meta=False)
    (one,) = await texts.take(count)
    assert (one.results, one.estimated) == (50, 50)
    assert list(await texts.take(count)) == []


@pytest.mark.parametrize("text", ["hello there", "привет всем"])
async def test_arguments_are_estimated_by_their_size_whatever_their_alphabet(text: str) -> None:
    """F4: what is estimated is not written as JSON for it: the trail has its size, in which all else is escaped."""
    texts, sent = CallTexts(), len(json.dumps({"text": text}))
    for _ in range(3 * KEPT):
        texts.add(KEY, {"text": text}, answered(""), meta=False, sent=sent)
    (one,) = await texts.take(count)
    assert one.arguments == 3 * KEPT * (len(json.dumps({"text": text}, separators=(",", ":"), ensure_ascii=False)) // 2)
    assert one.estimated > 0


async def test_what_is_structured_counts_where_there_is_no_text_and_a_picture_does_not() -> None:
    """F4: a model reads one of both; what a picture takes is up to its provider."""
    texts = CallTexts()
    for result, expected in (
        (CallResult(structured={"a": 1}), '{"a":1}'),
        (CallResult(content=({"type": "text", "text": "abcd"},), structured={"a": 1}), "abcd"),
        (CallResult(content=({"type": "image", "data": "AAAA", "mimeType": "image/png"},)), ""),
        (CallResult(content=({"type": "resource", "resource": {"uri": "a:b", "text": "ef"}},)), "ef"),
    ):
        texts.add(KEY, None, CallAnswer(status="ok", result=result), meta=False)
        (one,) = await texts.take(count)
        assert one.results == len(expected) // 2


prices = st.integers(0, 10**9)
tokens = st.integers(-(10**12), 10**12)


@given(st.lists(st.tuples(tokens, tokens, tokens, tokens), max_size=20), st.tuples(prices, prices, prices, prices))
def test_money_adds_up_to_the_last_millionth(rows: list[tuple[int, ...]], of: tuple[int, ...]) -> None:
    """F4: the cost of a sum is the sum of the costs."""
    given: dict[str, Any] = dict(zip(KINDS, of, strict=True))
    at = Prices(**given)
    parts = [Tokens(**dict(zip(KINDS, row, strict=True))) for row in rows]
    whole = Tokens(**{kind: sum(getattr(one, kind) for one in parts) for kind in KINDS})
    assert cost(whole, at) == sum(cost(one, at) for one in parts)


@given(st.integers(0, 10**12), st.integers(0, 6))
def test_a_price_is_as_it_was_written(digits: int, places: int) -> None:
    """F4: no float ever rounds it."""
    text = f"{digits:07}"
    written_price = f"{text[:-places]}.{text[-places:]}" if places else text
    if float(written_price) <= 1_000_000:
        assert millionths(written_price) == digits * 10 ** (6 - places)


@given(st.integers(-(10**20), 10**20))
def test_an_amount_is_a_plain_decimal_number(value: int) -> None:
    text = amount(value)
    assert abs(float(text) * 10**12 - value) <= 500_000 + abs(value) * 1e-12
    assert "e" not in text.lower()
    assert not text.endswith(".")
