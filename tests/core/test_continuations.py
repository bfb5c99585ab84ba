"""Test what a run knows of its tools between the requests to its model."""

from pegboard.core.surface.continuations import Continuation


def through(going: Continuation, *requests: tuple[str, ...]) -> Continuation:
    for tools in requests:
        going = going.next(tools)
    return going


def test_the_first_request_is_no_change() -> None:
    going = through(Continuation(), ("a", "b"))
    assert (going.changes, going.note, going.over) == (0, "", False)


def test_a_note_names_what_has_come_and_what_has_gone() -> None:
    """D2: in the order of the list; a request with the same tools has none."""
    going = through(Continuation(), ("a", "b"), ("c", "a", "d"))
    assert going.note == "Can be called now: c, d. Cannot be called any more: b. Go on with the request."
    assert going.next(("c", "a", "d")).note == ""


def test_what_is_loaded_beside_the_list_counts_as_a_change_and_is_not_named_again() -> None:
    """D2, D4: the answer to its load has said so."""
    going = Continuation().next(("a",)).next(("a",), ("b", "c"))
    assert (going.changes, going.note) == (1, "Go on with the request.")


def test_a_tool_that_its_call_loaded_is_no_news() -> None:
    """X1: it has run."""
    going = (
        Continuation().next(("call_tool",)).after_call("call_tool", meta=False, ran="b").next(("call_tool",), ("b",))
    )
    assert (going.changes, going.note) == (0, "")


def test_one_change_too_many_in_a_row_is_the_last() -> None:
    """MR72: what the user reads names the meta-tool that was called last."""
    going = through(Continuation(limit=2), ("a",), ("b",), ("a",)).after_call("load_tools", meta=True)
    assert not going.over
    going = going.next(("b",))
    assert going.over
    assert "Answer now" in going.note
    assert "more than 2 times in a row, the last time by 'load_tools'" in going.closing()
    assert going.next(("b",)).note == going.note


def test_a_tool_that_is_used_begins_the_count_anew() -> None:
    going = through(Continuation(limit=2), ("a",), ("b",), ("a",)).after_call("a", meta=False)
    assert not through(going, ("b",), ("a",)).over


def test_an_empty_answer_is_asked_for_again_only_after_a_change_and_within_the_limit() -> None:
    """MR74: it counts as a change."""
    going = through(Continuation(limit=2), ("a",))
    assert going.after_retry() is None
    retried = going.next(("b",)).after_retry()
    assert retried is not None
    assert retried.changes == 2
    assert retried.after_retry() is None
