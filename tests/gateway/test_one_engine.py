"""One conversation in all four dialects: whatever the words, the same engine."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pegboard.assembly import Pegboard
from pegboard.core.state.subjects import leased_tools

from .clients import MODERN, Connected, connected, gateway

PLUGINS = ("weather", "calendar", "email", "spare")
CONFIG = """
store: sqlite:///state.db
plugins:
  weather: {{python: weather_tools}}
  calendar: {{python: calendar_tools}}
  email: {{python: email_tools}}
  spare: {{python: spare_tools}}
toolkits:
  weather_kit: {{tools: [weather]}}
  calendar_kit: {{tools: [calendar]}}
agents:
  {agents}
"""
AGENT = (
    "{name}: {{dialect: {name}, tools: [spare], discoverable: [email], allowed_toolkits: [weather_kit, calendar_kit], "
    "lease: {{kind: idle, turns: 3}}}}"
)
Turn = dict[str, str]
Load = Callable[[Connected, str, Turn], Awaitable[bool]]


async def through(client: Connected, tool: str, turn: Turn, **arguments: object) -> bool:
    return not (await client.call(tool, turn, **arguments)).is_error


LOADS: dict[str, Load] = {
    "pegboard": lambda c, n, t: through(c, "load_tools", t, names=[f"{n}_kit"]),
    "toolkits": lambda c, n, t: through(c, "load_tools", t, toolkit=f"{n}_kit"),
    "invokeother": lambda c, n, t: through(c, "invokeother_tool", t, mode="load", query=f"{n}_kit"),
    "discovery": lambda c, n, t: through(c, "activate_tool", t, plugin=n),
}


async def converse(client: Connected, load: Load) -> list[bool]:
    """Go through nine turns; return what was done and what was refused."""
    done: list[bool] = []
    for number in range(1, 10):
        turn = {"pegboard/turn": f"t{number}"}
        match number:
            case 1:
                done += [await load(client, "weather", turn), await through(client, "weather_do", turn)]
                done += [await load(client, "nonsense", turn), await through(client, "weather_do", turn, x="no")]
            case 2:
                done += [await load(client, "calendar", turn), await through(client, "calendar_do", turn)]
                done += [await load(client, "calendar", turn)]
            case 4:
                done += [await through(client, "call_tool", turn, name="calendar_do")]
            case 5:
                done += [await through(client, "email_do", turn), await through(client, "email_do", turn)]
            case 6 | 8:
                done += [await load(client, "weather", turn)]
            case _:
                done += [await through(client, "spare_do", turn)]
    return done


async def leases(config: Path, agent: str) -> tuple[int, list[tuple[list[str], str, int, int]]]:
    """Return the turn, and for every lease its tools, until when, when it was loaded and when it was used."""
    async with Pegboard.open(config) as board:
        await board.ready()
        session = await board.session(agent=agent, session_id="default")
        permissions, state = (await session.snapshot()).permissions, (await session.snapshot()).state
    held = [
        (
            [tool.wire for tool, _ in leased_tools(permissions, lease)],
            str(lease.until),
            lease.loaded_turn,
            lease.used_turn,
        )
        for lease in state.leases
    ]
    return state.turn, held


@pytest.mark.parametrize("dialect", LOADS)
async def test_every_dialect_ends_in_the_same_leases(tmp_path: Path, dialect: str) -> None:
    """S5, S7, X1, G3: load, use, refuse, call what is not loaded, idle, load again."""
    for name in PLUGINS:
        text = f'def {name}_do(x: int = 1) -> str:\n    """Do {name}."""\n    return "{name}"\n'
        (tmp_path / f"{name}_tools.py").write_text(text)
    config = tmp_path / "pegboard.yaml"
    config.write_text(CONFIG.format(agents="\n  ".join(AGENT.format(name=name) for name in LOADS)))
    async with gateway(config) as running, connected(f"{running.url}/{dialect}", MODERN) as client:
        done = await converse(client, LOADS[dialect])
    assert done == [
        *(True, True, False, False),
        *(True, True, True),
        True,
        True,
        *(False, True),
        True,
        True,
        True,
        True,
    ]
    turn, held = await leases(config, dialect)
    assert turn == 9
    assert held == [
        (["email_do"], "idle(3)", 5, 5),
        (["weather_do"], "idle(3)", 6, 8),
    ]
