"""JSON in odd spellings: what is judged, what a person approves and what the tool receives are one reading of it."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard
from pegboard.core.access.approvals.digests import canonical

from .clients import MODERN
from .test_differential import Ask, Message, by_http, by_stdio, request

pytestmark = pytest.mark.cover(1)

SERVER = Path(__file__).resolve().parent.parent / "servers" / "writing_server.py"
TOOL = "up__write"

SPELLINGS = {
    "plain": '"arguments": {"path": "a"}',
    "no arguments": "",
    "a key of the arguments twice": '"arguments": {"path": "a", "path": "secret"}',
    "a key twice, the harmless one last": '"arguments": {"path": "secret", "path": "a"}',
    "a key twice, once escaped": '"arguments": {"path": "a", "p\\u0061th": "secret"}',
    "a key twice in an object within": '"arguments": {"text": {"a": 1, "a": 2}, "path": {"b": 1, "b": [2]}}',
    "arguments twice": '"arguments": {"path": "a"}, "arguments": {"path": "secret"}',
    "arguments twice, the harmless ones last": '"arguments": {"path": "secret"}, "arguments": {"path": "a"}',
    "an escaped key of the parameters": '"\\u0061rguments": {"path": "secret"}',
    "arguments twice, once escaped": '"arguments": {"path": "a"}, "\\u0061rguments": {"path": "secret"}',
    "arguments twice, once null": '"arguments": {"path": "secret"}, "arguments": null',
    "arguments in another case": '"Arguments": {"path": "secret"}, "arguments": {"path": "a"}',
    "the name twice": '"name": "up__write", "arguments": {"path": "a"}',
    "the name twice, once of another tool": '"arguments": {"path": "a"}, "name": "echo"',
    "an escaped name": '"n\\u0061me": "up\\u005f_write", "arguments": {"path": "a"}',
    "a value with escapes": '"arguments": {"path": "\\u0073ecret", "text": "\\u00fc\\ud83d\\ude00\\/\\b"}',
    "characters that do not show": '"arguments": {"path": "\\u0000\\u202e\\u200b\\ufeff", "text": "\u202e\u200b"}',
    "composed and decomposed": '"arguments": {"path": "\u00e9", "text": {"\u00e9": 1, "e\u0301": 2}}',
    "half of a character": '"arguments": {"path": "\\ud83d"}',
    "the other half": '"arguments": {"text": {"\\ude00": 1}}',
    "NaN": '"arguments": {"text": NaN}',
    "Infinity": '"arguments": {"text": [-Infinity]}',
    "a number that is too large": '"arguments": {"text": 1e400}',
    "a small one that is too large": '"arguments": {"text": [{"a": -1e400}]}',
    "a number that is too near to nothing": '"arguments": {"text": 1e-400}',
    "nothing with a sign": '"arguments": {"text": [-0, -0.0, 0]}',
    "whole numbers with a point": '"arguments": {"text": [1, 1.0, 1e0, 10E1, true]}',
    "more digits than a number keeps": '"arguments": {"text": [0.10000000000000000555111512, 1.7976931348623157e308]}',
    "long whole numbers": '"arguments": {"text": [9007199254740993, 123456789012345678901234567890]}',
    "a whole number of thousands of digits": '"arguments": {"text": ' + "9" * 5000 + "}",
    "a number with a zero before it": '"arguments": {"text": 01}',
    "deep": '"arguments": {"text": ' + "[" * 90 + "]" * 90 + "}",
    "deeper": '"arguments": {"text": ' + "[" * 190 + "]" * 190 + "}",
    "too deep": '"arguments": {"text": ' + '{"a":' * 3000 + "1" + "}" * 3000 + "}",
    "white space": '"arguments"\t:\r{ "path" : \t"a"\r}',
    "a space that is none": '"arguments":\u00a0{"path": "a"}',
    "a comma at the end": '"arguments": {"path": "a",}',
    "a comment": '"arguments": {/* "path": "secret" */ "path": "a"}',
    "a list of pairs": '"arguments": [["path", "secret"]]',
    "a text of JSON": '"arguments": "{\\"path\\": \\"secret\\"}"',
    "a tab in a text": '"arguments": {"path": "a\tb"}',
    "parameters twice": '"arguments": {"path": "a"}}, "params": {"name": "up__write", "arguments": {"path": "secret"}',
    "a prototype": '"arguments": {"__proto__": {"path": "secret"}, "path": "a"}',
}
"""What is in the parameters of a call beside its name and `_meta`."""


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """Return the file to which the tool writes each call as it reads it."""
    return tmp_path / "calls"


def configured(folder: Path, calls: Path, rules: Message) -> Path:
    server = {"command": sys.executable, "args": [str(SERVER), str(calls)], **rules}
    config = folder / "pegboard.yaml"
    agents = {"default": {"tools": ["up"]}}
    config.write_text(json.dumps({"store": "sqlite:///state.db", "servers": {"up": server}, "agents": agents}))
    return config


class Sender:
    """What sends a call in one spelling, by the fast path and around it, in a session of its own each."""

    def __init__(self, ask: Ask, era: str, spelling: str) -> None:
        self._ask, self._era, self._spelling = ask, era, spelling
        self._number = 100

    async def send(self, session: str, *, plain: bool) -> Any:
        """Return the answer, but for what differs from call to call; a key more makes the call one for the SDK."""
        self._number += 1
        body = request({"name": TOOL}, era=self._era, session=session, number=self._number)
        meta = json.dumps(body["params"]["_meta"])
        members = ", ".join(filter(None, (f'"name": "{TOOL}"', f'"_meta": {meta}', self._spelling)))
        more = "" if plain else ', "another": "key"'
        text = f'{{"jsonrpc": "2.0", "id": {self._number}, "method": "tools/call", "params": {{{members}}}{more}}}'
        return _answer(await self._ask(body, text))


def _answer(found: Any) -> Any:
    """Return the result or the error in an answer, without the ids of approvals."""
    for message in _objects(found):
        if "result" in message:
            result = message["result"]
            status = (result.get("structuredContent") or {}).get("status")
            return status if status == "needs_approval" else (result.get("isError", False), result["content"])
        if "error" in message:
            return message["error"]["code"]
    return found


def _objects(found: Any) -> Iterator[Message]:
    if isinstance(found, dict):
        yield found
    elif isinstance(found, list | tuple):
        for one in found:
            yield from _objects(one)


def received(calls: Path) -> list[Any]:
    """Return the arguments that the tool has read so far, as text that equal ones share."""
    lines = calls.read_text().splitlines() if calls.exists() else []
    return [canonical(json.loads(line)["params"].get("arguments", {})) for line in lines]


@pytest.mark.both_paths
@pytest.mark.parametrize("way", [by_http, by_stdio], ids=["http", "stdio"])
async def test_what_a_person_approved_is_what_the_tool_receives_however_it_was_spelt(
    tmp_path: Path, calls: Path, way: Any
) -> None:
    """A2, G5: and both readers of the gateway ask, refuse and pass on the same."""
    config = configured(tmp_path, calls, {"approve": {"write": "always"}})
    wrong = []
    async with Pegboard.open(config) as operator, way(config, MODERN) as ask:
        for what, spelling in SPELLINGS.items():
            sender, seen = Sender(ask, MODERN, spelling), []
            for plain in (True, False):
                session, before = f"{what} {plain}", received(calls)
                first = await sender.send(session, plain=plain)
                if received(calls) != before:
                    wrong.append(f"{what}: it ran unasked")
                waits = [one for one in await operator.approvals.list() if one.binding.session == session]
                shown = [canonical(one.arguments) for one in waits]
                for one in waits:
                    await operator.approvals.allow(one.id, by="ada")
                second = await sender.send(session, plain=plain) if waits else first
                ran = received(calls)[len(before) :]
                if ran != shown or len(ran) > 1:
                    wrong.append(f"{what}: shown {shown}, the tool received {ran}: {first}, {second}")
                seen.append((first, second, ran))
            if seen[0] != seen[1]:
                wrong.append(f"{what}:\n  around  {seen[0]}\n  through {seen[1]}")
    assert not wrong, "\n".join(wrong)
    assert len(received(calls)) > len(SPELLINGS)


@pytest.mark.both_paths
@pytest.mark.parametrize(
    "rules",
    [{"approve": {"write": {"path": ["secret*"]}}}, {"guards": {"write": {"path": {"deny": ["secret*"]}}}}],
    ids=["approve", "guards"],
)
async def test_a_rule_about_an_argument_judges_what_the_tool_receives_however_it_was_spelt(
    tmp_path: Path, calls: Path, rules: Message
) -> None:
    """A1, T10: by the last of what stands twice, whatever the first says."""
    config = configured(tmp_path, calls, rules)
    wrong, unasked = [], 0
    async with by_http(config, MODERN) as ask:
        for what, spelling in SPELLINGS.items():
            sender, seen = Sender(ask, MODERN, spelling), []
            for plain in (True, False):
                before = received(calls)
                answer = await sender.send(f"{what} {plain}", plain=plain)
                ran = received(calls)[len(before) :]
                if any(str(json.loads(text).get("path")).startswith("secret") for text in ran):
                    wrong.append(f"{what}: the tool received {ran}")
                seen.append((answer, ran))
                unasked += len(ran)
            if seen[0] != seen[1]:
                wrong.append(f"{what}:\n  around  {seen[0]}\n  through {seen[1]}")
    assert not wrong, "\n".join(wrong)
    assert unasked > len(SPELLINGS) / 2
