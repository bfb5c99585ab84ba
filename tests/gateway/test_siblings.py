"""What comes with a load, for clients that hide the user's message from the gateway."""

from pathlib import Path

import pytest

from .clients import MODERN, connected, gateway

CONFIG = """
store: sqlite:///state.db
plugins:
  weather: {python: weather_tools}
agents:
  default: {discoverable: ["*"]}
  asks: {discoverable: ["*"], anticipate: false}
"""
TOOLS = '''
def forecast(city: str) -> str:
    """Forecast the weather of a city."""
    return f"rain in {city}"


def temperature(city: str) -> str:
    """Measure the temperature in a city."""
    return f"12 degrees in {city}"
'''


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "weather_tools.py").write_text(TOOLS)
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    return tmp_path / "pegboard.yaml"


async def test_a_load_brings_the_siblings_and_their_schemas(config: Path) -> None:
    """S5, G4, G5: one load, and the next call of the same plugin needs none, in both eras."""
    async with gateway(config) as running, connected(running.url, MODERN) as client:
        answer = await client.load("forecast")
        assert [item["status"] for item in answer["items"]] == ["loaded"]
        (sibling,) = answer["also_loaded"]
        assert (sibling["name"], list(sibling["arguments"])) == ("temperature", ["city"])
        called = await client.text("call_tool", name="temperature", arguments={"city": "Bergen"})
        assert called == "12 degrees in Bergen"
