"""What servers send that is no message, or no strict JSON: reported once, and never passed on (G8)."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, NoReturn

import pytest
from mcp_helpers import SERVERS, call, gateway, plain, requests_of, text

from pegboard.core.model.tools import JsonObject
from pegboard.errors import UsageError
from pegboard.sources.mcp import McpSource
from pegboard.support.odd_json import depth_of

BABBLE = "<b>starting, token=swordfish-1</b> " + "x" * 500
NUMBERS = ("NaN", "Infinity", "-Infinity", "1e999")
Answers = dict[int, dict[str, Any]]


def refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is no JSON")


def serve(
    tmp_path: Path, server: JsonObject, *calls: tuple[str, JsonObject], fast_path: bool = True
) -> tuple[Answers, str]:
    """Return the answers of the gateway over stdio to these calls, and its log."""
    out, log = gateway(tmp_path, {"up": server}, fast_path=fast_path).communicate(requests_of(*calls), timeout=60)
    lines = [json.loads(line, parse_constant=refuse) for line in out.splitlines()]
    return {line["id"]: line for line in lines if "id" in line}, log


def test_a_server_that_prints_garbage_is_reported_once_in_the_log_of_the_gateway(tmp_path: Path) -> None:
    """G8, X5: with its name and what it printed, shortened and without secrets; its answers are passed on."""
    args = [str(SERVERS / "plain_server.py"), "--babble", BABBLE]
    server = {"command": sys.executable, "args": args, "env": {"TOKEN": "swordfish-1"}}
    answers, log = serve(tmp_path, server, *[("up__echo", {"text": "on"})] * 3)
    assert [answers[number]["result"]["content"][0]["text"] for number in (1, 2, 3)] == ["on"] * 3
    [line] = [line for line in log.splitlines() if "server 'up' prints lines that are not messages" in line]
    assert "<b>starting, token=" in line
    assert "swordfish" not in log
    assert len(line) < 400


@pytest.fixture(params=["stdio", "http"])
def fast_server(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    script = str(SERVERS / "fast_server.py")
    if request.param == "stdio":
        yield {"command": sys.executable, "args": [script, "stdio"]}
        return
    with Popen([sys.executable, script, "http"], stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        yield {"url": f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"}
        process.kill()


def raw(answer: str) -> tuple[str, dict[str, Any]]:
    return "up__raw", {"lines": [answer], "body": answer}


def test_numbers_that_strict_json_does_not_have_reach_clients_as_null(
    tmp_path: Path, fast_server: dict[str, Any]
) -> None:
    """G7: as JavaScript writes them: the rest of the result is worth more than a refusal of all of it."""
    template = (
        '{"jsonrpc": "2.0", "id": "$ID", "result": {"content": [], "structuredContent": {"n": %s, "m": [1, %s]}}}'
    )
    answers, _ = serve(tmp_path, fast_server, *(raw(template % (each, each)) for each in NUMBERS))
    found = [answers[number]["result"]["structuredContent"] for number, _ in enumerate(NUMBERS, 1)]
    assert found == [{"n": None, "m": [1, None]}] * len(NUMBERS)


ODD_RESULTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"structuredContent": {"n": 1}}, {"content": [], "structuredContent": {"n": 1}}),
    ({"content": None, "structuredContent": {}}, {"content": [], "structuredContent": {}}),
    ({}, {"content": []}),
    ({"content": "as text"}, {"content": [{"type": "text", "text": "as text"}]}),
    ({"content": {"type": "text", "text": "one"}}, {"content": [{"type": "text", "text": "one"}]}),
    (
        {"content": [None, 7, {"type": "x"}]},
        {"content": [{"type": "text", "text": "7"}, {"type": "x"}], "isError": False},
    ),
    ({"structuredContent": [1, "é"]}, {"content": [{"type": "text", "text": '[1, "é"]'}]}),
    ({"structuredContent": 7, "content": []}, {"content": [{"type": "text", "text": "7"}]}),
    (
        {"structuredContent": [1], "content": [{"type": "text", "text": "one"}]},
        {"content": [{"type": "text", "text": "one"}]},
    ),
    ({"content": [], "isError": 1}, {"content": [], "isError": True}),
    ({"content": [], "isError": "false", "_meta": None}, {"content": []}),
    (
        {"content": [], "task": {"id": 1}, "x-more": None},
        {"task": {"id": 1}, "x-more": None, "content": [], "isError": False},
    ),
    (
        {"content": [{"type": "hologram", "of": {"any": [1]}}]},
        {"content": [{"type": "hologram", "of": {"any": [1]}}], "isError": False},
    ),
]


def test_results_that_the_protocol_does_not_know_pass(tmp_path: Path, fast_server: dict[str, Any]) -> None:
    """G7: the tool has run: what it gave is not lost for a field that is missing, unknown or of another type."""
    template = '{"jsonrpc": "2.0", "id": "$ID", "result": %s}'
    answers, _ = serve(tmp_path, fast_server, *(raw(template % json.dumps(given)) for given, _ in ODD_RESULTS))
    for number, (given, expected) in enumerate(ODD_RESULTS, 1):
        assert answers[number]["result"] == {"isError": False, **expected}, given


@pytest.mark.parametrize("fast_path", [True, False])
def test_a_deep_result_reaches_the_client(tmp_path: Path, fast_server: dict[str, Any], *, fast_path: bool) -> None:
    """G7: as trees of documents and programs are; nothing else is held up by one that is too deep."""
    template = '{"jsonrpc": "2.0", "id": "$ID", "result": {"content": [], "structuredContent": %s}}'
    depths = (250, 900, 3000, 1)
    answers, log = serve(
        tmp_path, fast_server, *(raw(template % ('{"d":' * n + "1" + "}" * n)) for n in depths), fast_path=fast_path
    )
    for number in (1, 2, 4):
        assert depth_of(answers[number]["result"]["structuredContent"]) == depths[number - 1]
    assert "nested too deeply" in json.dumps(answers[3])
    assert "Traceback" not in log


@pytest.mark.parametrize("depth", [300, 900, 5000])
def test_a_call_that_is_nested_too_deeply_is_told_so(tmp_path: Path, depth: int) -> None:
    """G8: in place of that it is no message; the next call runs."""
    server = {"command": sys.executable, "args": [str(SERVERS / "plain_server.py")]}
    deep = requests_of(("up__echo", {"text": "$HERE"}), ("up__echo", {"text": "on"}))
    sent = deep.replace('"$HERE"', "[" * depth + "]" * depth)
    out, log = gateway(tmp_path, {"up": server}, fast_path=True).communicate(sent, timeout=60)
    assert "nested too deeply" in next(line for line in out.splitlines() if '"error"' in line)
    assert '"on"' in out
    assert "Traceback" not in log


def test_half_of_a_character_costs_itself(tmp_path: Path, fast_server: dict[str, Any]) -> None:
    """G7, G8: no UTF-8 stands for it: U+FFFD does, in results and in errors; the rest passes unchanged."""
    template = '{"jsonrpc": "2.0", "id": "$ID", "result": {"content": [{"type": "text", "text": "%s"}]}}'
    error = '{"jsonrpc": "2.0", "id": "$ID", "error": {"code": 1, "message": "\\udc00"}}'
    sent = [
        template % "a\\ud800b",
        template % "\\udfff\\ud800",
        template % "\\ud83d\\ude00",
        template % "\\\\ud800",
        error,
    ]
    answers, log = serve(tmp_path, fast_server, *map(raw, sent))
    texts = [answers[number]["result"]["content"][0]["text"] for number in (1, 2, 3, 4)]
    assert texts == ["a\ufffdb", "\ufffd\ufffd", "\U0001f600", "\\ud800"]
    assert "\ufffd" in json.dumps(answers[5], ensure_ascii=False)
    assert "Traceback" not in log


@pytest.mark.parametrize("given", [{"text": "\ud800"}, {"\ud800": 1}], ids=["value", "key"])
async def test_arguments_that_cannot_be_written_are_refused(source: McpSource, given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="What was given to 'echo' cannot be written as JSON"):
        await call(source, plain(), "echo", **given)
    assert text(await call(source, plain(), "echo", text="on")) == "on"
