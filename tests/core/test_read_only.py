"""Which tools of servers count as read-only."""

from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.access.read_only import TrustChange, claimed_read_only, compare_claims, reads_only
from pegboard.core.model.tools import Plugin, Tool

SERVER = Plugin(name="up", kind="server", trusted=True)
LISTS = st.dictionaries(st.sampled_from("abcd"), st.booleans())


def listed(**hints: object) -> list[Tool]:
    return [Tool(plugin="up", name=name, annotations={"readOnlyHint": hint}) for name, hint in hints.items()]


def test_a_first_list_counts_as_it_stands() -> None:
    """G6: as first seen; only a plain true is a claim."""
    assert claimed_read_only(listed(look=True, wipe=False, odd="true", peek=True, one=1)) == ("look", "peek")


def test_a_tool_that_says_both_does_not_count() -> None:
    """G6: a server that lists a name twice does not choose which of them is believed."""
    assert claimed_read_only([*listed(wipe=False), *listed(wipe=True)]) == ()
    assert claimed_read_only([*listed(wipe=True), *listed(wipe=False)]) == ()


def test_a_server_that_turns_its_hint_after_the_first_list_is_not_believed() -> None:
    """G6: the attack that first sight is there for."""
    counted = frozenset(claimed_read_only(listed(look=True, wipe=False)))
    judgement = compare_claims(counted, listed(look=True, wipe=True))
    assert judgement == TrustChange(pending=("wipe",))
    (_, wipe) = listed(look=True, wipe=True)
    assert not reads_only(SERVER, wipe, counted)
    assert reads_only(SERVER, wipe, counted | {"wipe"})


def test_a_destructive_tool_under_a_new_name_is_not_believed() -> None:
    """G6: what is new to a known server counts only once it is accepted."""
    counted = frozenset(claimed_read_only(listed(look=True, wipe=False)))
    assert compare_claims(counted, listed(look=True, tidy=True)).pending == ("tidy",)
    assert not reads_only(SERVER, listed(tidy=True)[0], counted)


def test_a_claim_once_taken_back_does_not_return_by_itself() -> None:
    """G6: changing to read-only later needs to be accepted, whatever the tool said before that."""
    counted = frozenset(claimed_read_only(listed(look=True)))
    counted -= compare_claims(counted, listed(look=False)).retracted
    assert compare_claims(counted, listed(look=True)).pending == ("look",)


def test_a_tool_that_is_only_missing_from_a_list_keeps_its_standing() -> None:
    """G6: servers take tools away and bring them back."""
    counted = frozenset(claimed_read_only(listed(look=True, peek=True)))
    assert compare_claims(counted, listed(peek=True)) == TrustChange()


def test_only_servers_have_to_be_trusted_and_seen() -> None:
    """G6: own plugins are believed; a server only with `trust: annotations`."""
    (look,) = listed(look=True)
    own, stranger = Plugin(name="up"), Plugin(name="up", kind="server")
    assert reads_only(own, look, frozenset())
    assert not reads_only(stranger, look, frozenset({"look"}))
    assert not reads_only(SERVER, look, frozenset())
    assert not reads_only(own, listed(look=False)[0], frozenset({"look"}))


@given(first=LISTS, later=st.lists(LISTS))
def test_no_sequence_of_lists_lets_more_count_than_the_first(
    first: dict[str, bool], later: list[dict[str, bool]]
) -> None:
    """G6: without an operator what counts only shrinks."""
    counted = frozenset(claimed_read_only(listed(**first)))
    start = counted
    for hints in later:
        judgement = compare_claims(counted, listed(**hints))
        counted -= judgement.retracted
        assert set(judgement.pending).isdisjoint(counted)
    assert counted <= start
