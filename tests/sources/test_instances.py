"""What plugins of this process construct belongs to someone (G9)."""

import asyncio
import gc
import sys
import tracemalloc
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gateway.clients import until
from pegboard.core.model.tools import CallResult, Tool
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext
from pegboard.sources.python import PythonSource
from pegboard.sources.signatures.instances import BEGAN_ANEW
from sources.conftest import Workshop

CART = '''
import threading

HANG = threading.Event()
MADE = []
CLOSED = []
FAULTS = []


class Cart:
    """Keep what is bought."""

    def __init__(self, shop: str = "corner"):
        MADE.append(self)
        if FAULTS and FAULTS[0] == len(MADE):
            raise OSError("no cart is left")
        if FAULTS and FAULTS[0] == -len(MADE):
            HANG.wait(60)
        self.items = []

    def add(self, item: str) -> str:
        self.items.append(item)
        return "added"

    def show(self) -> list[str]:
        return self.items

    def close(self):
        CLOSED.append(self)


def factory():
    items = []

    def put(item: str) -> str:
        items.append(item)
        return "put"

    def look() -> list[str]:
        return items

    return [put, look]


def plain() -> int:
    return len(MADE)
'''


class Shop:
    """A plugin of the workshop, called under scopes, and the module that it comes from."""

    def __init__(self, workshop: Workshop, target: str = "cart:Cart", **settings: Any) -> None:
        workshop.write("cart.py", CART)
        self.spec = workshop.spec(target, **settings)
        self.source: PythonSource = workshop.source

    async def call(self, scope: str, tool: str, overrides: Mapping[str, Any] | None = None, **given: Any) -> CallResult:
        found = Tool(plugin=self.spec.name, name=tool, description="", input_schema={})
        return await self.source.call(self.spec, overrides or {}, found, given, CallContext(scope=scope))

    async def imported(self) -> Any:
        """Return the module, imported; nothing of it is constructed."""
        await self.source.describe(replace(self.spec, target="cart"), {})
        return self.module

    @property
    def module(self) -> Any:
        return sys.modules["cart"]


def text(result: CallResult) -> str:
    return result.content[0]["text"]


async def test_each_scope_has_the_object_of_a_class_for_itself(workshop: Workshop) -> None:
    """G9: what one keeps in it, another does not read."""
    shop = Shop(workshop)
    await shop.call("user:ada", "add", item="ring")
    assert text(await shop.call("user:bob", "show")) == "[]"
    assert text(await shop.call("user:ada", "show")) == '["ring"]'


async def test_each_scope_has_what_a_factory_returned_for_itself(workshop: Workshop) -> None:
    """G9: its functions are made for that scope."""
    shop = Shop(workshop, "cart:factory")
    await shop.call("user:ada", "put", item="ring")
    assert text(await shop.call("user:bob", "look")) == "[]"


async def test_the_object_that_described_a_plugin_is_taken_over_by_its_first_user_alone(workshop: Workshop) -> None:
    """G9: nothing is constructed for someone who has called nothing."""
    shop = Shop(workshop)
    for _ in range(3):
        await shop.source.describe(shop.spec, {})
    assert len(shop.module.MADE) == 1
    await shop.call("user:ada", "add", item="ring")
    assert len(shop.module.MADE) == 1
    await shop.call("user:bob", "show")
    await shop.source.describe(shop.spec, {})
    assert len(shop.module.MADE) == 2


async def test_of_a_module_there_is_one_for_all(workshop: Workshop) -> None:
    """G9: its functions share their globals."""
    shop = Shop(workshop, "cart")
    assert [text(await shop.call(scope, "plain")) for scope in ("user:ada", "user:bob")] == ["0", "0"]


async def test_who_calls_at_once_while_an_object_is_made_gets_one_for_each_scope(workshop: Workshop) -> None:
    """G9: also where it is the first of all."""
    shop = Shop(workshop)
    scopes = [f"user:{name}" for name in ("ada", "bob", "ada", "bob", "cleo")]
    await asyncio.gather(*(shop.call(scope, "add", item=scope) for scope in scopes))
    assert len(shop.module.MADE) == 3
    assert text(await shop.call("user:ada", "show")) == '["user:ada", "user:ada"]'
    assert text(await shop.call("user:cleo", "show")) == '["user:cleo"]'


@pytest.mark.parametrize("number", [1, 2], ids=["the first of all", "a later one"])
async def test_a_constructor_that_hangs_for_one_keeps_no_other_waiting(workshop: Workshop, number: int) -> None:
    """G9: they wait for one construction of their own."""
    shop = Shop(workshop)
    module = await shop.imported()
    module.FAULTS.append(-number)
    if number == 2:
        await shop.call("user:cleo", "add", item="hat")
    hanging = asyncio.create_task(shop.call("user:ada", "show"))
    try:
        await until(lambda: len(module.MADE) == number)
        async with asyncio.timeout(10):
            assert text(await shop.call("user:bob", "show")) == "[]"
        assert not hanging.done()
    finally:
        module.HANG.set()
    assert text(await hanging) == "[]"


async def test_a_constructor_that_raises_for_one_serves_the_others_and_is_tried_again(workshop: Workshop) -> None:
    """G9: each waits for its own alone."""
    shop = Shop(workshop)
    await shop.call("user:ada", "add", item="ring")
    shop.module.FAULTS.append(2)
    with pytest.raises(ToolUnavailableError, match="no cart is left"):
        await shop.call("user:bob", "show")
    assert text(await shop.call("user:ada", "show")) == '["ring"]'
    assert text(await shop.call("user:bob", "show")) == "[]"


async def test_an_object_that_nobody_used_for_a_while_is_closed_and_the_next_answer_says_so(workshop: Workshop) -> None:
    """G9, P6: a failure is not kept."""
    shop = Shop(workshop, idle=0.05)
    await shop.call("user:ada", "add", item="ring")
    await until(lambda: len(shop.module.CLOSED) == 1)
    answer = await shop.call("user:ada", "show")
    assert [block["text"] for block in answer.content] == [
        "[]",
        "'mine' started again: it was not used for a while, and what it kept is gone.",
    ]
    assert answer.meta[BEGAN_ANEW] is True
    assert [block["text"] for block in (await shop.call("user:ada", "show")).content] == ["[]"]
    assert [block["text"] for block in (await shop.call("user:bob", "show")).content] == ["[]"]


async def test_an_object_in_use_is_not_closed(workshop: Workshop) -> None:
    """G9: it is made again for the next call."""
    workshop.write(
        "slow.py",
        """
        import threading
        GO, CLOSED, BEGUN = threading.Event(), [], []
        class Slow:
            def wait(self) -> bool:
                BEGUN.append(self)
                return GO.wait(60)
            def ping(self) -> None: ...
            def close(self):
                CLOSED.append(self)
        """,
    )
    shop = Shop(workshop, "slow:Slow", idle=0.05)
    waiting = asyncio.create_task(shop.call("user:ada", "wait"))
    await until(lambda: bool(getattr(sys.modules.get("slow"), "BEGUN", ())))
    slow = sys.modules["slow"]
    await shop.call("user:bob", "ping")
    await until(lambda: bool(slow.CLOSED))
    assert slow.BEGUN[0] not in slow.CLOSED
    slow.GO.set()
    assert text(await waiting) == "true"
    await until(lambda: slow.BEGUN[0] in slow.CLOSED)


async def test_an_object_that_is_ended_while_it_is_used_is_closed_after_that(workshop: Workshop) -> None:
    """G9: meanwhile its scope begins again."""
    workshop.write(
        "ended.py",
        """
        import threading
        GO, CLOSED, BEGUN = threading.Event(), [], []
        class Ended:
            def wait(self) -> int:
                BEGUN.append(self)
                GO.wait(60)
                return len(CLOSED)
            def number(self) -> bool:
                return self in BEGUN
            def close(self):
                CLOSED.append(self)
        """,
    )
    shop = Shop(workshop, "ended:Ended")
    waiting = asyncio.create_task(shop.call("user:ada", "wait"))
    await until(lambda: bool(getattr(sys.modules.get("ended"), "BEGUN", ())))
    await shop.source.end_scope("user:ada")
    assert text(await shop.call("user:ada", "number")) == "false"
    ended = sys.modules["ended"]
    ended.GO.set()
    assert text(await waiting) == "0"
    await until(lambda: ended.CLOSED == ended.BEGUN)


async def test_an_object_whose_end_hangs_or_raises_keeps_nobody_waiting(workshop: Workshop) -> None:
    """G9: a call that lasts is use."""
    workshop.write(
        "ends.py",
        """
        import threading
        GO, CLOSED = threading.Event(), []
        class Ends:
            def work(self) -> str:
                return "done"
            def close(self):
                CLOSED.append(self)
                if len(CLOSED) == 1:
                    raise SystemExit(3)
                GO.wait(60)
        """,
    )
    shop = Shop(workshop, "ends:Ends", idle=0.02)
    await shop.call("user:ada", "work")
    await shop.call("user:bob", "work")
    await until(lambda: len(sys.modules["ends"].CLOSED) == 2)
    try:
        async with asyncio.timeout(5):
            assert text(await shop.call("user:ada", "work")) == "done"
    finally:
        sys.modules["ends"].GO.set()


async def test_no_object_is_lost_where_one_for_predicates_could_not_be_made(workshop: Workshop) -> None:
    """G9: what describes the plugin then answers them; all that was made is closed in the end."""
    shop = Shop(workshop)
    module = await shop.imported()
    module.FAULTS.append(1)
    for _ in range(2):
        with pytest.raises(ToolUnavailableError):
            await shop.source.holds(shop.spec, {}, "is_available", "ada", "a", None, scope="user:ada")
        await shop.source.describe(shop.spec, {})
    assert len(module.MADE) == 2
    await shop.source.aclose()
    assert module.MADE[1:] == module.CLOSED


async def test_no_predicate_of_one_reaches_the_object_of_another(workshop: Workshop) -> None:
    """G9, T12: before someone has an object, one is asked that no call reaches."""
    workshop.write(
        "seats.py",
        """
        class Seats:
            def __init__(self):
                self.known = []
            def is_available(self, principal, agent, sub_app):
                self.known.append(principal)
                return True
            def show(self) -> list[str]:
                return self.known
        """,
    )
    shop = Shop(workshop, "seats:Seats")
    await shop.source.describe(shop.spec, {})
    assert await shop.source.holds(shop.spec, {}, "is_available", "ada", "a", None, scope="user:ada") is True
    assert text(await shop.call("user:ada", "show")) == "[]"
    assert text(await shop.call("user:bob", "show")) == "[]"
    await shop.source.holds(shop.spec, {}, "is_available", "ada", "a", None, scope="user:ada")
    assert text(await shop.call("user:ada", "show")) == '["ada"]'
    assert text(await shop.call("user:bob", "show")) == "[]"


async def test_somebody_whose_object_was_closed_costs_less_than_five_kilobytes(workshop: Workshop) -> None:
    """G9: `make bench ARGS=objects` prints what 500 cost, live ones too."""
    workshop.source = PythonSource(idle=0.05)
    shop, many = Shop(workshop), 100
    await shop.call("user:first", "show")
    await until(lambda: len(shop.module.CLOSED) == 1)
    for kept in (shop.module.MADE, shop.module.CLOSED):
        kept.clear()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(many):
            await shop.call(f"user:{number}", "add", item="ring")
        await until(lambda: len(shop.module.CLOSED) == many)
        for kept in (shop.module.MADE, shop.module.CLOSED):
            kept.clear()
        gc.collect()
        assert (tracemalloc.get_traced_memory()[0] - before) / many < 5 * 1024
    finally:
        tracemalloc.stop()
    await shop.source.aclose()
