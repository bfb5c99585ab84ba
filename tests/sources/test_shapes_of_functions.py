"""Functions as people write them: each shape is a tool that can be called (T9, G8)."""

from __future__ import annotations

import asyncio
import datetime as dt
import functools
import sys
import textwrap
import threading
import types
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from function_plugins import called, session_with
from pydantic import BaseModel, ConfigDict, Strict


def blocking(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an asynchronous function in a blocking one."""

    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return asyncio.run(function(*args, **kwargs))

    return inner


def passing_on(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an asynchronous function in one that returns what is to be awaited."""

    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return inner


def awaiting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a blocking function in an asynchronous one."""

    @functools.wraps(function)
    async def inner(*args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0)
        return function(*args, **kwargs)

    return inner


@blocking
async def wrapped_to_block(host: str) -> str:
    """Answer from a loop of its own."""
    await asyncio.sleep(0)
    return f"pong {host}"


@passing_on
async def wrapped_to_pass_on(host: str) -> str:
    """Answer from the board's loop."""
    await asyncio.sleep(0)
    return f"pong {host}"


@awaiting
def wrapped_to_await(host: str) -> str:
    """Answer in a coroutine."""
    return f"pong {host}"


@functools.cache
def cached(host: str) -> str:
    """Answer from a cache."""
    return f"pong {host}"


@functools.lru_cache(maxsize=2)
def cached_with_size(host: str) -> str:
    """Answer from a small cache."""
    return f"pong {host}"


@functools.singledispatch
def dispatched(host: str) -> str:
    """Answer by the type of the host."""
    return f"pong {host}"


def with_greeting(greeting: str, host: str) -> str:
    """Greet a host."""
    return f"{greeting} {host}"


class Pinger:
    """A callable object, with a method under a cache."""

    def __call__(self, host: str) -> str:
        return f"pong {host}"

    @functools.lru_cache  # noqa: B019
    def cached(self, host: str) -> str:
        """Answer from a cache."""
        return f"pong {host}"


class AsyncPinger:
    """A callable object that is asynchronous."""

    async def __call__(self, host: str) -> str:
        await asyncio.sleep(0)
        return f"pong {host}"


SHAPES: dict[str, Callable[..., Any]] = {
    "wrapped_to_block": wrapped_to_block,
    "wrapped_to_pass_on": wrapped_to_pass_on,
    "wrapped_to_await": wrapped_to_await,
    "cached": cached,
    "cached_with_size": cached_with_size,
    "dispatched": dispatched,
    "partial": functools.partial(with_greeting, "pong"),
    "partial_of_async": functools.partial(wrapped_to_pass_on),
    "bound": Pinger().__call__,
    "object": Pinger(),
    "async_object": AsyncPinger(),
}


@pytest.mark.parametrize("shape", SHAPES)
async def test_each_shape_of_a_function_is_called_once_and_answers(shape: str) -> None:
    answer = await called({shape: SHAPES[shape]}, shape, {"host": "a"})
    assert (answer.status, answer.text) == ("ok", "pong a")


async def test_a_blocking_wrapper_runs_in_a_thread_also_around_an_async_function() -> None:
    """Not in the event loop, whose other tasks it would hold up; and once."""
    threads: list[threading.Thread] = []

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inner(amount: int) -> str:
            threads.append(threading.current_thread())
            function(amount).close()
            return "counted"

        return inner

    @counted
    async def charge(amount: int) -> str:
        """Charge."""
        return f"never {amount}"

    answer = await called({"charge": charge}, "charge", {"amount": 1})
    assert answer.text == "counted"
    assert [one is threading.main_thread() for one in threads] == [False]


class Order(BaseModel):
    """An order whose fields take no other type."""

    model_config = ConfigDict(strict=True)
    when: dt.datetime
    id: uuid.UUID
    tags: tuple[str, ...]


def strict_order(order: Order) -> str:
    """Take an order."""
    return f"{order.when.year} {order.id.version} {order.tags}"


def strict_day(day: Annotated[dt.date, Strict()], parts: Annotated[tuple[int, int], Strict()]) -> str:
    """Take a day."""
    return f"{day.year} {sum(parts)}"


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        (
            strict_order,
            {"order": {"when": "2026-01-02T03:04:05Z", "id": "12345678-1234-4678-9234-567812345678", "tags": ["a"]}},
            "2026 4 ('a',)",
        ),
        (strict_day, {"day": "2026-01-02", "parts": [1, 2]}, "2026 3"),
    ],
)
async def test_a_strict_annotation_takes_what_json_has_for_it(
    function: Callable[..., Any], arguments: dict[str, Any], said: str
) -> None:
    assert (await called(function, function.__name__, arguments)).text == said
    refused = await called(function, function.__name__, dict.fromkeys(arguments, "no"))
    assert refused.is_error or refused.status == "invalid_arguments"


def nullable(name: str = None, times: list[int] = None, either: int | None = None) -> str:  # type: ignore[assignment]  # noqa: RUF013
    """Take defaults that two of the annotations forbid."""
    return f"{name} {times} {either}"


@pytest.mark.parametrize("arguments", [{}, {"name": None, "times": None, "either": None}, {"times": [1]}])
async def test_a_default_of_none_may_be_given(arguments: dict[str, Any]) -> None:
    answer = await called(nullable, "nullable", arguments)
    assert (answer.status, answer.text) == ("ok", f"None {arguments.get('times')} None")


class Temperature(BaseModel):
    """Its own method beside those of pydantic."""

    unit: str = "C"

    def temperature(self, city: str) -> str:
        """Return the temperature."""
        return f"20 {self.unit} in {city}"


class Watcher(threading.Thread):
    """Its own method beside those of a thread."""

    def state(self) -> str:
        """Tell the state."""
        return "idle"


class Warmer(Temperature):
    """One that inherits within its own package."""

    def warm(self, city: str) -> str:
        """Warm a city."""
        return city


@pytest.mark.parametrize(
    ("owner", "tools"),
    [(Temperature, ["temperature"]), (Watcher, ["state"]), (Warmer, ["temperature", "warm"]), (Pinger, ["cached"])],
)
async def test_methods_of_other_packages_are_no_tools(owner: type, tools: list[str]) -> None:
    async with session_with(owner) as session:
        assert list((await session.surface()).names) == tools


@pytest.fixture
def checked_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """A module with result types that only a type checker can read."""
    (tmp_path / "checked_types.py").write_text(
        textwrap.dedent('''
        from __future__ import annotations
        import functools
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from pandas import DataFrame
        def rows(n: int) -> DataFrame:
            """Return rows."""
            return [n]
        @functools.cache
        def frames(n: int) -> dict[str, DataFrame]:
            """Return frames."""
            return {"n": n}
        async def later(n: int) -> DataFrame | None:
            """Return later."""
            return n
        ''')
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import importlib

    yield importlib.import_module("checked_types")
    del sys.modules["checked_types"]


async def test_the_type_of_a_result_need_not_be_readable(checked_types: types.ModuleType) -> None:
    async with session_with(checked_types) as session:
        surface = await session.surface()
        assert surface.names == ("rows", "frames", "later")
        for name in surface.names:
            found = surface.find(name)
            assert found is not None
            assert found.tool.input_schema["properties"]["n"] == {"type": "integer"}
            assert (await session.call(name, {"n": 1})).status == "ok"


async def failing_in_a_group() -> None:
    """Fail within a task group."""

    async def part(number: int) -> None:
        raise PermissionError(f"token {number} has expired")

    async with asyncio.TaskGroup() as group:
        for number in range(2):
            group.create_task(part(number))


def failing_in_nested_groups() -> None:
    """Fail with a group in a group."""
    raise ExceptionGroup(
        "outer", [ValueError("token 0 has expired"), ExceptionGroup("inner", [KeyError("token 1 has expired")])]
    )


def failing_with_many() -> None:
    """Fail with very many errors."""
    raise ExceptionGroup("many", [ValueError(f"token {number} has expired") for number in range(5_000)])


@pytest.mark.parametrize("function", [failing_in_a_group, failing_in_nested_groups, failing_with_many])
async def test_of_a_group_of_failures_each_is_told(function: Callable[..., Any]) -> None:
    answer = await called(function, function.__name__, {})
    assert answer.is_error
    assert "token 0 has expired" in answer.text
    assert "token 1 has expired" in answer.text
    assert len(answer.text) < 2_000
