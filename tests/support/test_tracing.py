"""Whether the process traces is asked once for calls that came together."""

import time

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from pegboard.support.tracing import Tracing


def test_what_was_said_after_a_call_came_is_enough_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tracing, came = Tracing(), time.monotonic()
    assert tracing.tracer() is None
    monkeypatch.setattr(trace, "get_tracer_provider", TracerProvider)

    assert tracing.tracer(came) is None
    assert tracing.tracer(time.monotonic()) is not None
    assert tracing.tracer() is not None
