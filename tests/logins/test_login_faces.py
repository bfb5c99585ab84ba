"""A login that is wanting, as the blocking twin and the spans have it (G11)."""

from typing import Any

import httpx2
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pegboard import Pegboard


def test_a_session_that_blocks_waits_for_a_login_and_goes_on_by_its_id(
    configuration: dict[str, Any],
) -> None:
    with Pegboard.open_sync(configuration) as board:
        session = board.session(session_id="t", principal="ada")
        refused = session.call("linear__whoami", {})
        assert (refused.status, refused.login is not None) == ("needs_login", True)
        assert refused.login is not None
        assert httpx2.get(f"{refused.login.url}&account=ada", follow_redirects=True).status_code == 200
        done = session.resume(refused.login.id)
        assert (done.status, (done.result.structured or {})["account"]) == ("ok", "ada")


async def test_the_span_of_a_call_that_waits_for_a_login_says_so_and_has_no_address(
    board: Pegboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    await (await board.session(session_id="t", principal="ada")).call("linear__whoami", {})
    attributes = dict(exporter.get_finished_spans()[-1].attributes or {})
    assert (attributes["pegboard.decision"], attributes["pegboard.status"]) == ("needs_login", "needs_login")
    assert "http" not in str(attributes)
