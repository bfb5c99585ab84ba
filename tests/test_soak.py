"""Load while faults are injected, on one gateway and on three replicas; `python -m benchmarks soak` runs longer."""

import pytest
from benchmarks import soak, soaking
from benchmarks.replicas import soak as replicas
from benchmarks.soaking import FAULTS


async def test_a_gateway_under_load_and_faults_leaves_nothing_behind_and_answers_every_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G8, G9: upstreams are killed and frozen, clients leave, the configuration changes, garbage comes in."""
    monkeypatch.setattr(soaking, "EVERY", 0.4)
    report = await soak.run(seconds=6)
    assert report.problems == []
    assert set(report.faults) == {name for name, _ in FAULTS}
    assert report.calls["answered"] > 100


@pytest.mark.postgres
@pytest.mark.timeout(400)
async def test_three_replicas_lose_nothing_that_was_answered_while_one_after_the_other_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G14, S2: behind a plain proxy, in both eras, with three kills and two restarts of the database."""
    monkeypatch.setattr(replicas, "KILL_EVERY", 6.0)
    monkeypatch.setenv("PEGBOARD_KEY", "")  # the run sets its own
    outcome = await replicas.on_a_server(18, principals=12, quiet=False)
    assert outcome.problems == []
    assert (outcome.kills, outcome.restarts) == (3, 2)
    kinds = ("leases", "loads", "switches", "approvals", "used", "pins", "grants", "calls")
    assert [kind for kind in kinds if not outcome.expected[kind]] == []
    assert outcome.delays
