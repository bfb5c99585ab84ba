"""Indexes are made beside everything else, kept while in use, and never torn."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from pegboard.core.surface.searchable import Searchable
from pegboard.ports import RankContext
from pegboard.search.index import Index
from pegboard.search.meaning.embedding import Embedding
from pegboard.search.ranker import KEPT, ToolRanker
from search.making import NOUNS, among, names, office, ranked, tool


async def test_the_event_loop_goes_on_while_a_large_index_is_made() -> None:
    """P3: the build runs in a thread; what waits for it is woken."""
    ranker = ToolRanker()
    within = among(*office(20))
    building = asyncio.ensure_future(ranker.prepare(within))
    steps = 0
    while not building.done():
        await asyncio.sleep(0)
        steps += 1
    assert steps > 1
    assert names(ranked("archive photo of office 7", within, ranker=ranker))[0] == "office7/archive_photo"


async def test_two_that_wait_for_one_index_get_the_same() -> None:
    """P3: it is made once."""
    ranker = ToolRanker()
    within = among(*office(20))
    await asyncio.gather(ranker.prepare(within), ranker.prepare(within))
    assert ranker.index(within) is ranker.index(within)


async def test_a_build_that_is_cancelled_leaves_nothing_torn() -> None:
    """P3: who asks next gets a whole index."""
    ranker = ToolRanker()
    within = among(*office(20))
    waiting = asyncio.ensure_future(ranker.prepare(within))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert names(ranked("archive photo of office 7", within, ranker=ranker))[0] == "office7/archive_photo"


class Failing(Embedding):
    """An embedding that fails once."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = 1

    def prepare(self, index: Index) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("no space left")

    def fuse_scores(self, query, context, lexical, index):
        return None


async def test_a_build_that_fails_is_reported_and_made_again() -> None:
    """P3: to the one that waits for it; the next finds no half of an index."""
    ranker = ToolRanker(Failing())
    within = among(*office(20))
    with pytest.raises(OSError, match="no space left"):
        await ranker.prepare(within)
    await ranker.prepare(within)
    assert names(ranked("archive photo of office 7", within, ranker=ranker))[0] == "office7/archive_photo"


def test_few_indexes_are_kept() -> None:
    """P3: those that were used last."""
    ranker = ToolRanker()
    tools = office(1)
    sets = [among(*tools[n:]) for n in range(KEPT + 1)]
    made = [ranker.index(within) for within in sets]
    assert ranker.index(sets[-1]) is made[-1]
    assert ranker.index(sets[0]) is not made[0]


def test_searches_beside_a_changing_catalog_are_whole() -> None:
    """P3: 32 threads; each answer is that of the catalog that was asked, to the last bit."""
    versions: list[Searchable] = []
    tools = list(office(8))
    for number in range(6):
        at = 100 * number
        tools[at] = replace(tools[at], description=f"Changes the {NOUNS[number % len(NOUNS)]} of version {number}.")
        versions.append(among(*tools))
    queries = ("archive the photo of office 3", "change a flight", "versions of the invoice", "delete_ticket")
    wanted = {(n, query): ranked(query, within) for n, within in enumerate(versions) for query in queries}
    ranker = ToolRanker()
    start = threading.Barrier(32)

    def search(number: int) -> list[bool]:
        start.wait(30)
        turns = [(number + step) % len(versions) for step in range(len(versions))]
        return [
            ranker.rank([query], versions[n], RankContext(), limit=5) == wanted[n, query]
            for n in turns
            for query in queries
        ]

    with ThreadPoolExecutor(32) as pool:
        assert all(all(right) for right in pool.map(search, range(32)))


def test_indexes_that_are_begun_at_once_number_words_alike() -> None:
    """F5: what one of them has read counts in the other, so that both must mean the same by a number."""
    first, second = among(tool("mail", "delete_message")), among(tool("shop", "find_product"))
    start = threading.Barrier(2)

    def begun(ranker: ToolRanker, wanted: Searchable) -> Index:
        start.wait(30)
        return ranker.index(wanted)

    with ThreadPoolExecutor(2) as pool:
        for _ in range(50):
            ranker = ToolRanker()
            one, other = pool.map(begun, (ranker, ranker), (first, second))
            assert one.vocabulary is other.vocabulary
