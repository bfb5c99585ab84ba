"""A span for each call that a session answers, with the real SDK of OpenTelemetry."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pegboard import Pegboard

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CONFIG: dict[str, Any] = {
    "store": "memory:",
    "plugins": {
        "calc": {"python": "pegboard.quickstart.calc"},
        "text": {"python": "pegboard.quickstart.text"},
        "clock": {"python": "pegboard.quickstart.clock", "approve": {"current_time": "always"}},
        "doors": {"python": "spans_doors:open_door"},
    },
    "toolkits": {"numbers": {"description": "Arithmetic", "tools": ["calc"]}},
    "defaults": {"anticipate": False},
    "agents": {
        "assistant": {
            "dialect": "pegboard",
            "tools": ["clock", "doors"],
            "allowed_toolkits": ["numbers"],
            "discoverable": ["text"],
            "permissions": {"convert_unit": False},
        }
    },
}
DOORS = '''
from opentelemetry import trace

def open_door(code: str) -> str:
    """Open the door."""
    with trace.get_tracer("doors").start_as_current_span("lock"):
        if code == "wrong":
            raise RuntimeError(f"the code {code} opens nothing")
    return f"open with {code}"
'''


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> InMemorySpanExporter:
    """Let the process trace for one test; what has ended is kept."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    (tmp_path / "spans_doors.py").write_text(DOORS)
    monkeypatch.syspath_prepend(tmp_path)
    return exporter


@pytest.fixture
async def board(spans: InMemorySpanExporter) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(CONFIG, env={"DOOR": "s3cr3t"}) as board:
        yield board


def about(span: ReadableSpan) -> dict[str, Any]:
    return {name.removeprefix("pegboard."): value for name, value in (span.attributes or {}).items()}


async def called(board: Pegboard, exporter: InMemorySpanExporter, *calls: tuple[str, dict[str, Any]]) -> Any:
    """Return the last of the spans that these calls of a session have."""
    session = await board.session(agent="assistant", session_id="thread-42")
    for name, arguments in calls:
        await session.call(name, arguments, call_id="call_1")
    return exporter.get_finished_spans()[-1]


async def test_a_call_has_one_span_by_the_conventions(board: Pegboard, spans: InMemorySpanExporter) -> None:
    span = await called(board, spans, ("open_door", {"code": "right"}))

    assert (span.name, span.kind, span.status.status_code) == (
        "execute_tool open_door",
        trace.SpanKind.INTERNAL,
        trace.StatusCode.UNSET,
    )
    assert about(span) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "open_door",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.agent.name": "assistant",
        "gen_ai.conversation.id": "thread-42",
        "decision": "allowed",
        "status": "ok",
        "plugin": "doors",
        "lease": "always",
        "lease.reason": "static",
        "list_changed": False,
    }


async def test_a_span_stands_between_the_caller_s_and_the_tool_s(board: Pegboard, spans: InMemorySpanExporter) -> None:
    with trace.get_tracer("agent").start_as_current_span("invoke_agent"):
        await called(board, spans, ("open_door", {"code": "right"}))

    lock, own, agent = spans.get_finished_spans()
    assert (lock.name, own.name, agent.name) == ("lock", "execute_tool open_door", "invoke_agent")
    assert (lock.parent, own.parent) == (own.context, agent.context)


async def test_a_load_says_that_the_list_has_changed(board: Pegboard, spans: InMemorySpanExporter) -> None:
    """F1: the next request has other tools; a call that changes none says so too."""
    load = await called(board, spans, ("load_tools", {"names": ["numbers"]}))
    use = await called(board, spans, ("calculate", {"expression": "6*7"}))

    assert (about(load)["list_changed"], about(use)["list_changed"]) == (True, False)
    assert (about(use)["lease"], about(use)["lease.reason"]) == ("unload", "loaded")


async def test_a_denial_has_its_true_reason_and_the_model_has_not(board: Pegboard, spans: InMemorySpanExporter) -> None:
    """P1, P9: the code of the audit trail."""
    await called(board, spans, ("convert_unit", {}), ("format_disk", {}))

    denied, unknown = (about(span) for span in spans.get_finished_spans())
    assert (denied["status"], unknown["status"]) == ("not_found", "not_found")
    assert (denied["decision"], denied["reason"]) == ("refused", "denied_switch")
    assert unknown["reason"] == "unknown"


async def test_a_call_that_waits_and_its_resumption_name_the_approval(
    board: Pegboard, spans: InMemorySpanExporter
) -> None:
    """A3: the one that runs is under the name of its tool, too."""
    session = await board.session(agent="assistant", session_id="s")
    waiting = await session.call("current_time", {})
    assert waiting.approval is not None
    await board.approvals.allow(waiting.approval.id, by="grace")
    await session.resume(waiting.approval.id, call_id="call_2")

    asked, ran = spans.get_finished_spans()
    assert (asked.name, ran.name) == ("execute_tool current_time", "execute_tool current_time")
    assert (about(asked)["decision"], about(ran)["decision"]) == ("needs_approval", "allowed")
    assert about(asked)["approval.id"] == about(ran)["approval.id"] == waiting.approval.id
    assert about(ran)["gen_ai.tool.call.id"] == "call_2"


async def test_a_call_of_what_is_not_loaded_says_so(board: Pegboard, spans: InMemorySpanExporter) -> None:
    """X1."""
    found = about(await called(board, spans, ("count_words", {"path": "a"})))

    assert (found["decision"], found["status"], found["list_changed"]) == ("refused", "not_loaded", True)


async def test_a_failure_is_the_status_of_its_span_without_its_words(
    board: Pegboard, spans: InMemorySpanExporter
) -> None:
    span = await called(board, spans, ("open_door", {"code": "wrong"}))

    assert (span.status.status_code, span.status.description) == (trace.StatusCode.ERROR, "error")
    assert (about(span)["error.type"], about(span)["decision"]) == ("error", "allowed")
    assert "opens nothing" not in span.to_json()
    assert span.events == ()


async def test_arguments_and_results_are_there_where_the_user_wants_them(
    board: Pegboard, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    await called(board, spans, ("open_door", {"code": "1234"}))
    assert "1234" not in "".join(span.to_json() for span in spans.get_finished_spans())

    monkeypatch.setenv(CONTENT, "true")
    found = about(await called(board, spans, ("open_door", {"code": "1234"})))

    assert json.loads(found["gen_ai.tool.call.arguments"]) == {"code": "1234"}
    assert json.loads(found["gen_ai.tool.call.result"]) == [{"type": "text", "text": "open with 1234"}]


async def test_secrets_are_masked_there_too(
    tmp_path: Path, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X5."""
    monkeypatch.setenv(CONTENT, "SPAN_ONLY")
    (tmp_path / "pegboard.yaml").write_text(
        "store: 'memory:'\nplugins: {doors: {python: 'spans_doors:open_door'}}\n"
        "agents: {a: {tools: [doors]}}\ntokens: {ada: {token: '${DOOR}', agents: [a]}}\n"
    )
    async with Pegboard.open(tmp_path / "pegboard.yaml", env={"DOOR": "s3cr3t-of-ada-123"}) as board:
        session = await board.session(agent="a", session_id="s")
        await session.call("open_door", {"code": "s3cr3t-of-ada-123"})

    [_, span] = spans.get_finished_spans()
    assert "open_door" in span.to_json()
    assert "s3cr3t" not in span.to_json()


def test_a_call_of_a_thread_has_its_span_under_the_thread_s_own(spans: InMemorySpanExporter) -> None:
    """A program without an event loop."""
    with Pegboard.open_sync(CONFIG) as board, trace.get_tracer("agent").start_as_current_span("invoke_agent"):
        board.session(agent="assistant", session_id="s").call("open_door", {"code": "right"}, call_id="call_3")

    own, agent = spans.get_finished_spans()[1:]
    assert (own.parent, about(own)["gen_ai.tool.call.id"]) == (agent.context, "call_3")


PROGRAM = """
import asyncio, sys
from pegboard import Pegboard

async def main():
    async with Pegboard.open({"store": "memory:", "plugins": {"calc": {"python": "pegboard.quickstart.calc"}},
                              "agents": {"a": {"tools": ["calc"]}}}) as board:
        session = await board.session(agent="a", session_id="s")
        print((await session.call("calculate", {"expression": "6*7"})).status)

asyncio.run(main())
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""


def test_nothing_of_opentelemetry_is_imported_where_nobody_traces() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout == "ok\n[]\n"
