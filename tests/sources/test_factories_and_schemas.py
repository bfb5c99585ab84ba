"""Factories are found without being called, or refused; schemas and tool objects are taken as they are written."""

from __future__ import annotations

import asyncio
import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from function_plugins import session_with

from pegboard import tool
from pegboard.sources.signatures.factories import is_factory

NAMES = ("alpha", "beta")
LOOPS: list[asyncio.AbstractEventLoop] = []


def pad(text: str = "x") -> str:
    """Pad a text."""
    return f"pad {text}"


def made(name: str) -> Any:
    """Make one function, of another name."""

    def inner(text: str = "x") -> str:
        """Answer."""
        return f"{name} {text}"

    inner.__name__ = name
    return inner


def through_a_variable():
    """Collect, then return."""
    tools = [pad]
    return tools  # noqa: RET504


def by_appending() -> list:
    """Append one after the other."""
    tools = []
    for name in NAMES:
        tools.append(made(name))  # noqa: PERF401
    return tools


def by_comprehension(root: str = "."):
    """Comprehend calls of another factory."""
    return [made(name) for name in NAMES]


def by_names() -> dict:
    """Put them under names."""
    tools = {}
    tools["alpha"] = made("alpha")
    tools["beta"] = functools.partial(pad, "y")
    return tools


def by_adding():
    """Add lists, with a starred one."""
    first = [pad]
    return [*first] + [made(name) for name in NAMES]


def by_yielding():
    """Yield one after the other."""
    yield pad
    yield made("alpha")


async def later():
    """Make them in the loop of the board."""
    await asyncio.sleep(0)
    LOOPS.append(asyncio.get_running_loop())
    tools = (pad, made("alpha"))
    return tools  # noqa: RET504


async def later_by_yielding():
    """Yield them in the loop of the board."""
    await asyncio.sleep(0)
    LOOPS.append(asyncio.get_running_loop())
    yield pad


FACTORIES: dict[Callable[..., Any], set[str]] = {
    through_a_variable: {"pad"},
    by_appending: set(NAMES),
    by_comprehension: set(NAMES),
    by_names: set(NAMES),
    by_adding: {"pad", *NAMES},
    by_yielding: {"pad", "alpha"},
    later: {"pad", "alpha"},
    later_by_yielding: {"pad"},
}


@pytest.mark.parametrize("factory", FACTORIES)
async def test_a_factory_is_found_by_its_source(factory: Callable[..., Any]) -> None:
    async with session_with(factory) as session:
        assert set((await session.surface()).names) == FACTORIES[factory]
        for name in FACTORIES[factory]:
            assert (await session.call(name, {})).status == "ok"


async def test_an_async_factory_runs_in_the_loop_of_the_board() -> None:
    LOOPS.clear()
    for factory in (later, later_by_yielding):
        async with session_with(factory) as session:
            await session.surface()
    assert [asyncio.get_running_loop()] * 2 == LOOPS


def texts() -> list:
    """Return a list of texts."""
    names = []
    for name in NAMES:
        names.append(name)  # noqa: PERF402
    return names


def sorted_texts():
    """Sort with a function, and return no function."""
    return sorted(NAMES, key=lambda name: name[-1])


def called_texts():
    """Call a function."""
    return [pad(name) for name in NAMES]


def empty() -> list:
    """Return nothing."""
    found = []
    return found  # noqa: RET504


@pytest.mark.parametrize("function", [texts, sorted_texts, called_texts, empty, pad])
async def test_what_returns_data_is_a_tool(function: Callable[..., Any]) -> None:
    assert not is_factory(function, {})
    async with session_with(function) as session:
        assert (await session.call(function.__name__, {})).status == "ok"


def hidden() -> Any:
    """Return functions in a way that no source shows."""
    return list(vars(types.SimpleNamespace(a=pad)).values())


async def hidden_later() -> Any:
    """Return a function in a way that no source shows."""
    return globals()["pad"]


@pytest.mark.parametrize("function", [hidden, hidden_later])
async def test_functions_are_never_a_result(function: Callable[..., Any]) -> None:
    async with session_with(function) as session:
        answer = await session.call(function.__name__, {})
        assert answer.is_error
        assert "@tool(factory=True)" in answer.result.content[0]["text"]
        assert "0x" not in answer.result.content[0]["text"]


async def test_such_a_function_is_a_factory_once_it_is_marked() -> None:
    async with session_with(tool(factory=True)(functools.wraps(hidden)(lambda: hidden()))) as session:
        assert (await session.surface()).names == ("pad",)


@pytest.fixture
def module() -> Iterator[types.ModuleType]:
    """A module of a function and a factory."""
    made_of = types.ModuleType("factories_m")
    for function in (pad, through_a_variable):
        copy = types.FunctionType(function.__code__, globals(), function.__name__, function.__defaults__)
        copy.__module__, copy.__doc__ = "factories_m", function.__doc__
        setattr(made_of, function.__name__, copy)
    sys.modules["factories_m"] = made_of
    yield made_of
    del sys.modules["factories_m"]


async def test_a_factory_among_the_functions_of_a_module_is_no_tool(module: types.ModuleType) -> None:
    async with session_with(module) as session:
        assert (await session.surface()).names == ("pad",)


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "pattern": "^[A-Z]"}, "days": {"type": "integer", "maximum": 7}},
    "required": ["city"],
}


@tool(schema=SCHEMA)
def forecast(city: int, days: str = "1") -> str:
    """Forecast."""
    return f"{city} {days!r}"


@tool(schema=SCHEMA)
def open_forecast(**params: Any) -> str:
    """Forecast, with whatever is given."""
    return f"{params['city']} {params.get('days', '1')!r}"


@tool(schema=SCHEMA)
async def later_forecast(city: Any, /, days: Any = "1") -> str:
    """Forecast later."""
    return f"{city} {days!r}"


class WeatherTool:
    """Tells the weather."""

    name = "weather_tool"
    simple_description = "Get weather forecasts and conditions for any location"
    anthropic_schema = {"name": "weather_tool", "description": "Forecasts, by city.", "input_schema": SCHEMA}  # noqa: RUF012

    def run(self, **params: Any) -> str:
        return open_forecast(**params)

    def helper(self) -> str:
        """Help; it is no tool."""
        return "no"


class PlainTool:
    """One without a definition."""

    name = "plain_tool"
    simple_description = "Plain."

    def run(self, city: str, days: int = 1) -> str:
        return f"{city} '1'"


@pytest.mark.parametrize(
    ("plugin", "name"),
    [
        (forecast, "forecast"),
        (open_forecast, "open_forecast"),
        (later_forecast, "later_forecast"),
        (WeatherTool, "weather_tool"),
    ],
)
async def test_a_ready_schema_is_the_model_s_and_what_fits_arrives_as_it_is(plugin: Any, name: str) -> None:
    async with session_with(plugin) as session:
        surface = await session.surface()
        assert surface.names == (name,)
        assert surface.tools[0].tool.input_schema == SCHEMA
        assert (await session.call(name, {"city": "Rome"})).result.content[0]["text"] == "Rome '1'"
        assert (await session.call(name, {"city": "Rome", "days": 2})).result.content[0]["text"] == "Rome 2"
        for wrong in ({}, {"city": "rome"}, {"city": "Rome", "days": 8}):
            assert (await session.call(name, wrong)).status == "invalid_arguments"


async def test_a_tool_object_has_its_own_name_and_descriptions() -> None:
    async with session_with(WeatherTool) as session:
        assert (await session.surface()).tools[0].tool.description == "Forecasts, by city."
    async with session_with(PlainTool()) as session:
        assert (await session.surface()).names == ("plain_tool",)
        assert (await session.call("plain_tool", {"city": "Rome"})).result.content[0]["text"] == "Rome '1'"


@tool(schema={"type": "array"})
def not_an_object() -> str:
    """Have no schema of an object."""
    return ""


@tool(schema={"type": "object", "properties": {"town": {}}})
def other_names(city: str = "") -> str:
    """Take another name."""
    return city


@tool(schema={"type": "object", "properties": {"city": {}}})
def not_required(city: str) -> str:
    """Need what may be missing."""
    return city


@pytest.mark.parametrize(
    ("function", "said"),
    [(not_an_object, "is not the JSON Schema"), (other_names, "names 'town'"), (not_required, "needs 'city'")],
)
async def test_a_schema_that_does_not_fit_its_function_is_refused(function: Callable[..., Any], said: str) -> None:
    async with session_with(function) as session:
        (missing,) = (await session.surface()).missing
        assert said in missing.reason
