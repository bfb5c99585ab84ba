"""Until when a tool is loaded, and because of what."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from states import Desk, access_of, plugin, toolkit

from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import ALWAYS, TURN, UNLOAD, Lease, LeaseReason, LeaseTerm

UNTILS = st.one_of(st.sampled_from([TURN, UNLOAD, ALWAYS]), st.integers(0, 9).map(lambda n: LeaseTerm("idle", n)))
LEASES = st.builds(
    Lease,
    subject=st.just(Ref("plugin", "git")),
    until=UNTILS,
    because=st.sampled_from(LeaseReason),
    loaded_turn=st.integers(1, 9),
    used_turn=st.integers(1, 9),
    excluded=st.frozensets(st.sampled_from(["git/log", "git/diff"])),
)
DAY = [TURN, LeaseTerm("idle", 0), LeaseTerm("idle", 5), LeaseTerm("idle", 6), UNLOAD, ALWAYS]


def test_each_until_is_weaker_than_the_next() -> None:
    """S5: turn < idle(n) < unload < always."""
    assert all(weak < strong for weak, strong in pairwise(DAY))


@given(left=LEASES, right=LEASES)
def test_an_upgrade_never_weakens_a_lease(left: Lease, right: Lease) -> None:
    """S5: the strongest until counts, and so does the latest use."""
    both = left.upgraded(right)
    assert both.until == max(left.until, right.until)
    assert both.used_turn == max(left.used_turn, right.used_turn)
    stronger, weaker = (right, left) if right.until > left.until else (left, right)
    assert both.because == (weaker.because if stronger.because is LeaseReason.ANTICIPATED else stronger.because)


def test_what_was_loaded_ahead_is_loaded_for_good_once_it_is_asked_for() -> None:
    """S5: anticipated is the weakest reason; a load upgrades it, in its place."""
    ahead = Lease(subject=Ref("plugin", "git"), until=UNLOAD, because=LeaseReason.ANTICIPATED)
    assert ahead.upgraded(Lease(subject=ahead.subject, until=TURN)).because is LeaseReason.LOADED
    assert ahead.upgraded(Lease(subject=ahead.subject, until=TURN)).until is UNLOAD


@pytest.mark.parametrize(
    ("until", "idle", "lapses"),
    [
        (TURN, 0, True),
        (LeaseTerm("idle", 5), 5, False),
        (LeaseTerm("idle", 5), 6, True),
        (LeaseTerm("idle", 0), 0, False),
        (LeaseTerm("idle", 0), 1, True),
        (UNLOAD, 1000, False),
        (ALWAYS, 1000, False),
    ],
)
def test_a_lease_lapses_when_its_until_says_so(until: LeaseTerm, idle: int, lapses: bool) -> None:
    """S7, MI8: five idle turns stay, six go."""
    assert Lease(subject=Ref("tool", "git/log"), until=until, used_turn=3).lapses(3 + idle) is lapses


def test_loading_again_upgrades_and_never_downgrades() -> None:
    """S5, S8: a shorter lease on what is loaded changes nothing, a longer one stands."""
    desk = Desk(access_of(plugin("git", "log"), discoverable=("*",)))
    desk.load("git", until=LeaseTerm("idle", 2))
    for until, stands in (
        (TURN, LeaseTerm("idle", 2)),
        (UNLOAD, UNLOAD),
        (LeaseTerm("idle", 9), UNLOAD),
        (TURN, UNLOAD),
    ):
        assert desk.load("git", until=until).items[0].status == "already_loaded"
        assert desk.surface.tools[0].until == stands


def test_a_tool_has_every_reason_that_holds_it_and_the_strongest_until() -> None:
    """S5: two leases on one tool; when the stronger goes, the other still stands."""
    permissions = access_of(
        plugin("git", "log", "diff"), toolkits=[toolkit("review", "git")], allowed_toolkits=("review",),
        discoverable=("*",),
    )  # fmt: skip
    desk = Desk(permissions)
    desk.load("log", until=LeaseTerm("idle", 3))
    desk.load("review", until=UNLOAD)
    log = desk.surface.find("log")
    assert log is not None
    assert (log.until, log.because) == (UNLOAD, (LeaseReason.LOADED,))
    desk.unload("review")
    log = desk.surface.find("log")
    assert log is not None
    assert (log.until, desk.out) == (LeaseTerm("idle", 3), ["log"])


def test_a_tool_that_is_static_and_initial_names_both_reasons_the_one_that_placed_it_first() -> None:
    """S5: several reasons stand side by side."""
    permissions = access_of(
        plugin("git", "log"), static=["git"], toolkits=[toolkit("review", "git")],
        allowed_toolkits=("review",), initial_toolkits=("review",),
    )  # fmt: skip
    only = Desk(permissions).surface.tools[0]
    assert (only.until, only.because) == (ALWAYS, (LeaseReason.STATIC, LeaseReason.INITIAL))


def test_a_required_tool_stands_as_long_as_the_strongest_that_needs_it() -> None:
    """S5, T8: the until of what is required follows an upgrade."""
    permissions = access_of(
        plugin("git", "push", "auth", requires={"push": "git/auth"}),
        toolkits=[toolkit("release", "push")],
        allowed_toolkits=("release",),
        discoverable=("*",),
    )
    desk = Desk(permissions)
    desk.load("push", until=LeaseTerm("idle", 2))
    desk.load("release", until=UNLOAD)
    auth = desk.surface.find("auth")
    assert auth is not None
    assert (auth.until, auth.because, auth.needed_by) == (UNLOAD, (LeaseReason.REQUIRED,), ("git/push",))
