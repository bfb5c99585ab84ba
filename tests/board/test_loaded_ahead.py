"""Tools that are there before a model asks for them, through the library."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pegboard import Cache, Host, Pegboard, StoreError
from pegboard.ports.adapters import Adapters
from pegboard.stores.sql import MemoryStore

CONFIG = """
store: "memory:"
plugins:
  weather: {python: weather_tools, description: The weather.}
  orders: {python: orders_tools, description: Orders in a shop.}
  broken: {python: missing_tools}
servers:
  far: {command: there-is-no-such-command}
toolkits: {forecasts: {description: All about the weather., tools: [weather]}}
agents:
  default: {discoverable: ["*"]}
  kits: {allowed_toolkits: [forecasts], discoverable: ["*"]}
  few: {discoverable: ["*"], budget: {tools: 5}}
  asks: {discoverable: ["*"], anticipate: false}
  belts: {discoverable: ["*"], dialect: discovery}
  both: {discoverable: ["*"], dialect: discovery, anticipate: {tools: 2}}
"""
WEATHER = '''
def forecast(city: str) -> str:
    """Forecast the weather of a city for the coming days."""
    return "rain"


def temperature(city: str) -> str:
    """Measure the temperature outside in a city now."""
    return "12"


def wind_speed(city: str) -> str:
    """Measure the speed of the wind in a city now."""
    return "3"
'''
ORDERS = '''
def place_order(item: str) -> str:
    """Place an order for an item in the shop."""
    return "placed"


def cancel_order(number: int) -> str:
    """Cancel an order that was placed, by its number."""
    return "cancelled"
'''
RAIN = "Will it rain: what is the weather forecast for the city of Bergen?"
CANCEL = "Please cancel my order number 12."
META = ("search_tools", "load_tools", "unload_tools")
WEATHER_TOOLS = ("forecast", "temperature", "wind_speed")


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    (tmp_path / "weather_tools.py").write_text(WEATHER)
    (tmp_path / "orders_tools.py").write_text(ORDERS)
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(tmp_path / "pegboard.yaml") as opened:
        yield opened


async def test_a_model_calls_at_once_what_the_users_message_needs(board: Pegboard) -> None:
    """S5: no search and no load stands between a message and the call that it needs."""
    session = await board.session(session_id="s")
    surface = await session.surface(message=RAIN)
    assert (surface.names, surface.find("forecast") is not None) == ((*META, *WEATHER_TOOLS), True)
    assert [str(reason) for reason in surface.tools[3].because] == ["anticipated"]
    assert [tool.wire for tool in surface.anticipated] == list(WEATHER_TOOLS)
    answered = await session.call("forecast", {"city": "Bergen"})
    assert answered.status == "ok"


async def test_a_surface_stays_the_same_for_a_turn_and_grows_at_its_end(board: Pegboard) -> None:
    """F1, S5: a message is weighed once a turn, and what it brings joins behind everything else."""
    session = await board.session(session_id="s")
    first = await session.surface(message=RAIN)
    assert (await session.surface(message=RAIN)).tools == first.tools
    other = await board.session(session_id="s")
    assert (await other.surface(message=RAIN)).tools == first.tools
    await session.end_turn()
    second = await session.surface(message=CANCEL)
    assert second.names == (*first.names, "place_order")
    assert [tool.plugin for tool in second.anticipated] == ["orders"]


async def test_each_sentence_of_a_message_may_need_something(board: Pegboard) -> None:
    """S5: what the second sentence needs is there too, though the whole is about the first."""
    session = await board.session(session_id="s")
    whole = await session.surface(message=f"{RAIN} How strong is the wind there? Place an order for an umbrella.")
    assert whole.names == (*META, *WEATHER_TOOLS, "place_order")
    talk = await board.session(session_id="talk")
    assert (await talk.surface(message=f"{RAIN} Have a nice evening, and thanks again!")).names == (
        *META,
        *WEATHER_TOOLS,
    )


async def test_what_a_model_used_brings_its_siblings_to_the_next_step(board: Pegboard) -> None:
    """S5: with the first use of a plugin the rest of it comes, where that is cheap."""
    session = await board.session(session_id="s")
    await session.surface(message="hello")
    await session.load("wind_speed")
    await session.call("wind_speed", {"city": "Bergen"})
    surface = await session.surface(message="hello")
    assert surface.names == (*META, "wind_speed", "forecast", "temperature")


MESSAGES = Path(__file__).resolve().parents[2] / "benchmarks" / "messages"


async def test_small_talk_in_ten_languages_loads_nothing(board: Pegboard) -> None:
    """S5: at most 2% of it; what the messages are measured over else is in `python -m benchmarks anticipated`."""
    rows = [line.split("\t") for file in MESSAGES.iterdir() for line in file.read_text("utf-8").splitlines()]
    talk = [row[1] for row in rows if len(row) == 2]
    assert (len(talk), len({row[0] for row in rows if len(row) == 2})) == (200, 10)
    loading: list[str] = []
    for number, message in enumerate(talk):
        session = await board.session(session_id=f"talk-{number}")
        if (await session.surface(message=message)).anticipated:
            loading.append(message)
    assert len(loading) <= 4, loading


@pytest.mark.parametrize("message", ["Is it windy in Bergen?", "order a lamp", "how warm is it outside?"])
async def test_a_short_request_has_its_tool_at_once(board: Pegboard, message: str) -> None:
    """S5: few words are enough where they stand out."""
    session = await board.session(session_id="s")
    assert (await session.surface(message=message)).anticipated


async def test_thanks_after_work_changes_nothing(board: Pegboard) -> None:
    """S5: not in a session that has used something either."""
    session = await board.session(session_id="s")
    first = await session.surface(message=RAIN)
    await session.call("forecast", {"city": "Bergen"})
    await session.end_turn()
    assert (await session.surface(message="Thanks!")).tools == first.tools


async def test_a_destructive_tool_is_never_loaded_ahead(board: Pegboard) -> None:
    """S5: neither by the message that names it nor beside its plugin; a load of the plugin brings it."""
    session = await board.session(session_id="s")
    surface = await session.surface(message=CANCEL)
    assert "cancel_order" not in surface.names
    await session.load("place_order")
    await session.call("place_order", {"item": "lamp"})
    assert "cancel_order" not in (await session.surface(message="Order another lamp, please")).names
    await session.load("orders")
    assert (await session.surface()).names[-1] == "cancel_order"


async def test_what_was_loaded_ahead_and_nobody_used_goes_again(board: Pegboard) -> None:
    """S7, D3: after five idle turns, also where the list of tools stays unchanged."""
    session = await board.session(session_id="s", host=Host(delivery=("result",)))
    await session.surface(message=RAIN)
    assert {tool.wire for tool in (await session.surface(message=RAIN)).anticipated} == set(WEATHER_TOOLS)
    ended = [await session.end_turn() for _ in range(7)]
    assert [bool(one.removed) for one in ended] == [False] * 6 + [True]


class FullStore(MemoryStore):
    """A store in which there is no room for anything new."""

    async def save(self, *args: Any, **kwargs: Any) -> Any:
        raise StoreError("The disk is full.")


async def test_a_full_disk_takes_nothing_but_what_would_have_been_loaded(board: Pegboard) -> None:
    """S5: a model sees what it has, and finds what there is, where nothing can be stored."""
    async with Pegboard.open(board.configuration.path, adapters=Adapters(store=FullStore())) as full:
        session = await full.session(session_id="s")
        assert (await session.surface(message=RAIN)).names == META
        answered = await session.call("search_tools", {"queries": ["forecast the weather of a city"]})
        assert (answered.status, "forecast" in answered.message) == ("ok", True)
        with pytest.raises(StoreError, match="full"):
            await session.load("forecast")


async def test_a_host_loads_exactly_what_it_names(board: Pegboard) -> None:
    """S10: siblings come with what a model does, not with what a host or an operator says."""
    session = await board.session(session_id="s")
    assert (await session.load("forecast")).loaded == ("forecast",)


async def test_it_can_be_switched_off_and_is_off_in_other_dialects(board: Pegboard) -> None:
    """S5: `anticipate` is the default of the pegboard dialect, and written it holds in any."""
    for agent in ("asks", "belts"):
        surface = await (await board.session(agent=agent, session_id="s")).surface(message=RAIN)
        assert surface.anticipated == ()
    surface = await (await board.session(agent="both", session_id="s")).surface(message=RAIN)
    assert surface.anticipated


async def test_without_a_message_or_an_id_nothing_is_loaded_ahead(board: Pegboard) -> None:
    """S4, S5: what only looks stores nothing."""
    assert (await (await board.session(session_id="s")).surface()).names == META
    assert (await (await board.session()).surface(message=RAIN)).names == ()


async def test_nothing_joins_an_array_that_is_cached(board: Pegboard) -> None:
    """S5, D1: an addition to the list would write again what is behind it."""
    host = Host(delivery=("array",), cache=Cache(tokens=20_000), context=20_000)
    warm = await board.session(session_id="s", host=host)
    assert (await warm.surface(message=RAIN)).anticipated == ()


async def test_a_load_that_needs_the_room_gets_it(board: Pegboard) -> None:
    """S9, X4: what no one asked for ends, and the trail says so."""
    evicted: list[Any] = []
    board.on("evicted", lambda record: evicted.append(record["subject"]))
    session = await board.session(agent="few", session_id="s")
    assert len((await session.surface(message=RAIN)).tools) == 5
    outcome = await session.load("orders")
    assert (outcome.status, evicted) == ("ok", ["tool:weather/forecast", "tool:weather/temperature"])
    assert (await session.surface()).names == (*META, "place_order", "cancel_order")


async def test_what_is_loaded_ahead_is_audited_and_explained(board: Pegboard) -> None:
    """X4, F5: who asks why a tool is there learns that no one asked for it."""
    loaded: list[Any] = []
    board.on("loaded", loaded.append)
    session = await board.session(session_id="s")
    await session.surface(message=RAIN)
    assert [(record["subject"], record["outcome"]) for record in loaded] == [("plugin:weather", "anticipated")]
    (record,) = list(await board.services.store.entries(kind="load"))
    assert (record.subject, record.outcome, record.reason) == (
        "plugin:weather",
        "anticipated",
        "It was loaded in advance.",
    )
    codes = [reason.code for reason in (await session.explain("forecast")).reasons]
    assert "loaded_anticipated" in codes


async def test_what_was_unloaded_stays_away_for_the_turn(board: Pegboard) -> None:
    """S10: nothing that is loaded ahead is sticky."""
    session = await board.session(session_id="s")
    await session.surface(message=RAIN)
    assert (await session.unload("weather")).status == "ok"
    assert (await session.surface(message=RAIN)).names == META


async def test_what_is_unloaded_by_name_takes_what_was_loaded_ahead_of_it_along(board: Pegboard) -> None:
    """S5: a toolkit that was loaded after its plugin had been anticipated goes whole, and stays away for the turn."""
    session = await board.session(agent="kits", session_id="s")
    other = await board.session(agent="kits", session_id="s", principal="bob")
    for one in (session, other):
        assert set(WEATHER_TOOLS) <= set((await one.surface(message=RAIN)).names)
        assert (await one.load("forecasts")).status == "ok"
    outcome = await session.unload("forecasts")
    assert set(outcome.removed) == set(WEATHER_TOOLS)
    assert (await session.surface(message=f"Again: {RAIN}")).names == META
    assert (await session.call("forecast", {"city": "Bergen"})).status == "not_loaded"
    assert set(WEATHER_TOOLS) <= set((await other.surface()).names)


@pytest.mark.parametrize("message", ["", " \n", "?!…", "x" * 100_000, "\x00\x1b[31m.*(", "天気 погода hava عاصفة"])
async def test_any_message_is_taken(board: Pegboard, message: str) -> None:
    """S5: what means nothing brings nothing."""
    session = await board.session(session_id="s")
    assert (await session.surface(message=message)).names == META
