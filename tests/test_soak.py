"""Half a minute of load with faults; `python -m benchmarks soak` runs longer."""

from benchmarks import soak
from benchmarks.soaking import FAULTS


async def test_a_gateway_under_load_and_faults_leaves_nothing_behind_and_answers_every_call() -> None:
    """G8, G9: upstreams are killed and frozen, clients leave, the configuration changes, garbage comes in."""
    report = await soak.run(seconds=30)
    assert report.problems == []
    assert set(report.faults) == {name for name, _ in FAULTS}
    assert report.calls["answered"] > 100
