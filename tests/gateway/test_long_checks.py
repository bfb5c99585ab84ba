"""One schema, or one client's arguments, delay no one else's calls."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from .clients import ADA, BOB, HERE, modern_request, process

SERVER = str(HERE.parent / "servers" / "listed_server.py")


def nested(depth: int, width: int) -> dict[str, Any]:
    """Return a schema of alternatives in alternatives, none of which takes a number."""
    levels = {f"l{n}": {"anyOf": [{"$ref": f"#/$defs/l{n + 1}"}] * width} for n in range(depth)}
    inner = {**levels, f"l{depth}": {"type": "string"}}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/l0"}}, "$defs": inner}


def patterned(pattern: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}


TREE = {"anyOf": [{"properties": {"c": {"$ref": "#/$defs/tree"}}, "required": ["c", "missing"]}] * 3}
RECURSIVE = {"type": "object", "properties": {"a": {"$ref": "#/$defs/tree"}}, "$defs": {"tree": TREE}}
LOOK_AROUND = r"(?:(?=(x*))x)*\1c"
TOOLS = {
    "levels": nested(14, 10),
    "recursive": RECURSIVE,
    "doubled": patterned("^(a+)+$"),
    "look_around": patterned(LOOK_AROUND),
    "with_digit": patterned(r"^(?=.*\d)(.).*\1$"),
    "large": {"type": "object", "properties": {"a": {"anyOf": [{"const": f"{n:0100}"} for n in range(10_000)]}}},
    "texts": {"type": "object", "additionalProperties": {"type": "string"}},
}


def deep(depth: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(depth):
        value = {"c": value}
    return {"a": value}


@pytest.fixture
def served(config_with_tokens: Path, tmp_path: Path) -> Path:
    """Return a configuration with a server whose tools have these schemas."""
    listed = tmp_path / "tools.json"
    listed.write_text(
        json.dumps(
            {name: {"inputSchema": schema, "annotations": {"readOnlyHint": True}} for name, schema in TOOLS.items()}
        )
    )
    given = json.dumps([SERVER, str(listed)])
    text = config_with_tokens.read_text().replace(
        "servers:\n", f'servers:\n  odd: {{command: "{sys.executable}", args: {given}, trust: annotations}}\n'
    )
    config_with_tokens.write_text(text.replace("{tools: [talk], disc", "{tools: [talk, odd], disc"))
    return config_with_tokens


async def called(
    http: httpx2.AsyncClient, url: str, token: str, name: str, arguments: dict[str, Any]
) -> dict[str, Any]:
    message, headers = modern_request("tools/call", name=name, arguments=arguments)
    answer = await http.post(url, json=message, headers={**headers, "authorization": f"Bearer {token}"})
    return json.loads(answer.text.rpartition("data: ")[2])  # the last of a stream, or all of it


def text_of(answer: dict[str, Any]) -> str:
    return answer["result"]["content"][0]["text"]


TAKE_FOR_EVER: list[tuple[str, dict[str, Any], str]] = [
    ("levels", {"a": 1}, "cannot be checked against its input schema: that takes more than 2 s"),
    ("recursive", deep(30), "they do not fit the schema, which is too large"),
    ("look_around", {"a": "x" * 100_000}, "cannot be checked against its input schema: that takes more than 2 s"),
]


async def test_a_schema_that_takes_for_ever_delays_nobody(served: Path) -> None:
    """X2: the call is answered with the reason; another's calls and the state of the gateway are answered before."""
    async with process(served) as running, httpx2.AsyncClient(timeout=60) as http:
        assert text_of(await called(http, running.url, BOB, "echo", {"text": "first"})) == "first"
        for name, arguments, why in TAKE_FOR_EVER:
            bad = asyncio.create_task(called(http, running.url, ADA, f"odd__{name}", arguments))
            await asyncio.sleep(0)
            for number in range(5):
                assert text_of(await called(http, running.url, BOB, "echo", {"text": f"{name} {number}"}))
                assert (await http.get(f"{running.base}/healthz")).status_code == 200
            assert not bad.done(), name
            answer = await bad
            assert answer["result"]["isError"], name
            assert why in text_of(answer)
            assert text_of(await called(http, running.url, ADA, "echo", {"text": f"after {name}"})) == f"after {name}"


async def test_arguments_are_checked_by_patterns_of_every_kind(served: Path) -> None:
    """X2: nested repetition, look-around with a reference back, and a schema of a megabyte."""
    async with process(served) as running, httpx2.AsyncClient(timeout=60) as http:

        async def text(name: str, value: str) -> str:
            return text_of(await called(http, running.url, ADA, f"odd__{name}", {"a": value}))

        assert await text("doubled", "a" * 100) == "ran doubled"
        assert "do not fit" in await text("doubled", "a" * 200_000 + "!")
        assert await text("with_digit", "a1a") == "ran with_digit"
        assert "does not match" in await text("with_digit", "a1b")
        assert await text("large", f"{9_999:0100}") == "ran large"
        assert "not valid under any" in await text("large", "none")


async def test_an_object_of_many_keys_delays_nobody(served: Path) -> None:
    """X2: 40,000 values that do not fit are refused; another's calls are answered before."""
    async with process(served) as running, httpx2.AsyncClient(timeout=60) as http:
        assert text_of(await called(http, running.url, BOB, "echo", {"text": "first"})) == "first"
        bad = asyncio.create_task(called(http, running.url, ADA, "odd__texts", {f"key{n}": n for n in range(40_000)}))
        answered = 0
        while not bad.done():
            assert text_of(await called(http, running.url, BOB, "echo", {"text": "x"})) == "x"
            answered += 1
        assert "do not fit" in text_of(await bad)
        assert answered > 1


@pytest.mark.parametrize("how", ["keys", "list in a megabyte", "unsaid length"])
async def test_a_message_of_too_many_values_is_refused_before_it_is_read(served: Path, how: str) -> None:
    """G1: 300,000 keys; a text of as many bytes is passed on, and another's calls go on."""
    many: dict[str, Any] = (
        {f"{n:x}": 1 for n in range(300_000)} if how != "list in a megabyte" else {"a": [1] * 200_000}
    )
    async with process(served) as running, httpx2.AsyncClient(timeout=60) as http:
        message, headers = modern_request("tools/call", name="echo", arguments=many)
        sent = json.dumps(message, separators=(",", ":")).encode()

        async def pieces() -> AsyncIterator[bytes]:
            yield sent

        content = pieces() if how == "unsaid length" else sent
        headers = {**headers, "authorization": f"Bearer {ADA}", "content-type": "application/json"}
        refused, other = await asyncio.gather(
            http.post(running.url, content=content, headers=headers),
            called(http, running.url, BOB, "echo", {"text": "x"}),
        )
        assert (refused.status_code, "at most 50,000 values" in refused.text) == (413, True)
        assert text_of(other) == "x"
        large = "a, " * 200_000
        assert text_of(await called(http, running.url, ADA, "echo", {"text": large})) == large
