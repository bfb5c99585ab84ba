"""A quarter of a minute of load with every fault twice; `python -m benchmarks soak` runs longer."""

import pytest
from benchmarks import soak, soaking
from benchmarks.soaking import FAULTS


async def test_a_gateway_under_load_and_faults_leaves_nothing_behind_and_answers_every_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G8, G9: upstreams are killed and frozen, clients leave, the configuration changes, garbage comes in."""
    monkeypatch.setattr(soaking, "EVERY", 0.6)
    report = await soak.run(seconds=15)
    assert report.problems == []
    assert set(report.faults) == {name for name, _ in FAULTS}
    assert report.calls["answered"] > 100
