"""Test what the tools of a run come to (F4)."""

from dataclasses import replace

import pytest

from pegboard.core.model.delivery import Cache
from pegboard.core.surface.run_cost import AlternativeCosts, RequestPart, SentRequest, run_cost

CACHE = Cache(read=0.1, write=1.25)
HEAD = SentRequest(head=(RequestPart("load", 100), RequestPart(("hints",), 50)), note=10)
LOADED = replace(HEAD, history=(RequestPart("answer", 40),))
CATALOG = AlternativeCosts(catalog=1000, lines=60, joined=[(300, 1)], loading=1)


def test_what_a_request_begins_with_as_the_one_before_is_read() -> None:
    """F4: head and history are written once and read by later requests; the note is written each time."""
    found = run_cost([HEAD, LOADED, LOADED], before=None, cache=CACHE, otherwise=None)

    assert (found.requests, found.tokens, found.breaks) == (3, 160 + 200 + 200, 0)
    read = 150 + 190
    assert (found.read, found.predicted) == (read / 560, True)
    assert found.cost == pytest.approx(0.1 * read + 1.25 * (560 - read))
    assert (found.deferred, found.listed) == (None, None)


@pytest.mark.parametrize(
    ("head", "read"),
    [
        ((RequestPart("load", 100), RequestPart(("other hints",), 50)), 100),
        ((RequestPart("load", 100), RequestPart("joined", 30), RequestPart(("hints",), 50)), 100),
        ((RequestPart("other", 100), RequestPart(("hints",), 50)), 0),
    ],
)
def test_another_head_is_a_break_and_all_behind_it_is_written_anew(head: tuple[RequestPart, ...], read: int) -> None:
    """D1: behind the first piece that differs nothing is read, the history neither."""
    found = run_cost([LOADED, replace(LOADED, head=head)], before=None, cache=CACHE, otherwise=CATALOG)

    assert (found.breaks, found.read) == (1, read / found.tokens)
    assert "deferred" not in found.line()
    assert "1 break" in found.line()


def test_the_other_ways_cost_what_they_write_once_and_read_later() -> None:
    """F4: a plugin joins with the request that first called it; all listed needs no request that only loads."""
    found = run_cost([HEAD] * 4, before=None, cache=CACHE, otherwise=CATALOG)

    assert found.listed == pytest.approx(1000 * (1.25 + 2 * 0.1))
    assert found.deferred == pytest.approx(60 * (1.25 + 3 * 0.1) + 300 * (1.25 + 2 * 0.1))


def test_a_later_run_reads_what_the_one_before_it_wrote() -> None:
    """F4: own tools as well as those of the other ways are in the cache."""
    known = AlternativeCosts(catalog=1000, lines=60, joined=[(300, -1)])
    found = run_cost([HEAD, HEAD], before=HEAD, cache=CACHE, otherwise=known)

    assert found.read == 300 / 320
    assert found.listed == pytest.approx(1000 * 0.2)
    assert found.deferred == pytest.approx(360 * 0.2)


def test_one_line_says_it_all() -> None:
    """F4: the line names the source of its share, and compares only where it can."""
    assert run_cost([HEAD] * 12, before=None, cache=CACHE, otherwise=CATALOG).line() == (
        "1,920 tokens of tools in 12 requests, 86% read from cache (predicted), 0 breaks; "
        "38% less than deferred, 78% less than all listed"
    )
    small = AlternativeCosts(catalog=100, lines=10)
    assert run_cost([HEAD], before=None, cache=CACHE, otherwise=small, reported=0.5).line() == (
        "160 tokens of tools in 1 request, 50% read from cache (of all input, as reported), 0 breaks; "
        "1500% more than deferred, 60% more than all listed"
    )
    assert run_cost([HEAD], before=None, cache=CACHE, otherwise=None).line().endswith("0 breaks")
