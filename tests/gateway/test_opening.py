"""The first answers on stdio come before the SDK is imported, and are those of the SDK."""

import json
from pathlib import Path
from typing import Any

import pytest

from .clients import ERAS, MODERN, modern_request
from .test_differential import AROUND_THE_WAY_AROUND, HANDSHAKE_VERSION, hello, ready
from .test_stdio import answers, start

Message = dict[str, Any]


def first_requests(era: str) -> list[Message]:
    """Return what a client of this era sends first."""
    if era == MODERN:
        return [modern_request("server/discover", 1)[0], modern_request("tools/list", 2)[0]]
    return [hello(), ready(), {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}]


def typed(messages: list[Message]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


@pytest.mark.parametrize("era", ERAS)
async def test_early_answers_are_those_of_the_sdk(config: Path, era: str) -> None:
    """G4, G5, G8: byte for byte the same list, whoever answers."""
    plain = first_requests(era)
    odd = [{**message, **AROUND_THE_WAY_AROUND} for message in plain]
    await answers(await start(config), typed(plain))  # what is known from now on is known to both
    early, _ = await answers(await start(config), typed(plain))
    late, _ = await answers(await start(config), typed(odd))
    late = [message for message in late if "id" in message]
    assert sorted(early, key=lambda m: m["id"]) == sorted(late, key=lambda m: m["id"])
    assert len(early) == 2


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_began_early_goes_on_with_the_sdk(config: Path, era: str) -> None:
    """G5: the handshake that was answered early counts, and is answered once."""
    call: Message = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "echo"}}
    if era == MODERN:
        call = modern_request("tools/call", 3, name="echo", arguments={"text": "x"})[0]
    else:
        call["params"]["arguments"] = {"text": "x"}
    unknown = {**call, "id": 4, "method": "tools/nothing"}
    said, err = await answers(await start(config), typed([*first_requests(era), call, unknown]))
    by_id = {message["id"]: message for message in said if "id" in message}
    assert len(by_id) == sum("id" in message for message in said) == 4
    assert by_id[3]["result"]["content"] == [{"type": "text", "text": "x"}]
    assert by_id[4]["error"]["code"] == -32601
    assert err == ""


async def test_a_version_that_nobody_knows_is_negotiated_by_the_sdk(config: Path) -> None:
    """G5: it answers with the newest of the handshake era."""
    strange = hello()
    strange["params"]["protocolVersion"] = "1999-01-01"
    (said,), _ = await answers(await start(config), typed([strange]))
    assert said["result"]["protocolVersion"] == HANDSHAKE_VERSION


@pytest.mark.parametrize("sent", [b"", b"\n", b"\n\n"])
async def test_a_client_that_says_nothing_costs_no_start(config: Path, sent: bytes) -> None:
    """G1: the end of the input is the end."""
    said, err = await answers(await start(config), sent)
    assert (said, err) == ([], "")
