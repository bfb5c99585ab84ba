"""The audit trail as a file: the person who reads it, or leaves, holds up no one (X4)."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.clients import until
from pegboard import Pegboard
from pegboard.ports import AuditFilter, AuditPart, AuditRecord
from pegboard.ports.adapters import Adapters
from pegboard.stores.sql import MemoryStore

from .programs import program, serving
from .sites import site

ADA = "ada-ada-ada-ada-ada-ada"
BOB = "bob-bob-bob-bob-bob-bob"
RECORDS = 20_000
ADDRESSES = ("/api/audit/export", "/api/audit/export?format=csv", "/console/activity/export")
RECORD = AuditRecord(
    at=datetime(2026, 7, 28, tzinfo=UTC), kind="call", principal="carl", agent="a% b é", session="s", turn=1,
    subject="read_mail", decision="allowed", reason="r" * 200, duration=1.0, outcome="ok", arguments="0" * 16,
    by="carl",
)  # fmt: skip


class ReadStore(MemoryStore):
    """A store that counts the records which were read."""

    def __init__(self) -> None:
        super().__init__(audit_keep=RECORDS)
        self.read = 0
        self.begun = asyncio.Event()

    async def part(self, wanted: AuditFilter, **options: Any) -> AuditPart:
        part = await super().part(wanted, **options)
        self.read += len(part.records)
        self.begun.set()
        return part


@pytest.fixture
async def store() -> ReadStore:
    store = ReadStore()
    await store.record(*[RECORD] * RECORDS)
    return store


@pytest.fixture
async def board(mailer_config: Path, store: ReadStore) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(mailer_config, adapters=Adapters(store=store)) as board:
        yield board


def bearing(token: str, origin: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, base_url=origin, timeout=60)


@pytest.mark.parametrize("address", [ADDRESSES[0], ADDRESSES[2]])
async def test_an_export_ends_where_its_reader_leaves(board: Pegboard, store: ReadStore, address: str) -> None:
    """X4: an operator has two under way at once, another one has two of their own, and a gone one frees its place."""
    async with (
        serving(board) as (app, _),
        site(app) as origin,
        bearing(ADA, origin) as ada,
        bearing(BOB, origin) as bob,
    ):
        requests = [ada.build_request("GET", address) for _ in range(8)]
        answers = await asyncio.gather(*(ada.send(request, stream=True) for request in requests))
        assert sorted(answer.status_code for answer in answers) == [200] * 2 + [429] * 6
        async with bob.stream("GET", address) as answer:
            assert answer.status_code == 200
        await asyncio.gather(*(answer.aclose() for answer in answers))

        async def free() -> bool:
            async with ada.stream("GET", address) as answer:
                return answer.status_code == 200

        await until(free)
        assert store.read < RECORDS


async def test_a_third_export_is_refused_and_says_why(board: Pegboard) -> None:
    async with (
        serving(board) as (app, _),
        site(app) as origin,
        bearing(ADA, origin) as ada,
        ada.stream("GET", ADDRESSES[0]),
        ada.stream("GET", ADDRESSES[0]),
    ):
        refused = await ada.get(ADDRESSES[0])
        error = refused.json()["error"]
        assert (refused.status_code, error["code"]) == (429, "too_many_exports")
        assert error["message"] == "Two of your exports are running."
        head = await ada.head(ADDRESSES[2])
        assert (head.status_code, head.content) == (200, b"")


async def test_a_whole_export_lets_others_in_at_every_part(board: Pegboard, store: ReadStore) -> None:
    """What else is asked is answered long before the file is whole."""
    async with serving(board) as (app, _), program(app, ADA) as ada, program(app, BOB) as bob:
        file = asyncio.create_task(ada.client.get("/api/audit/export"))
        await store.begun.wait()
        await bob.ask("GET", "/api/agents")
        assert not file.done()
        assert store.read < RECORDS / 10
        assert (await file).text.count("\n") == RECORDS
