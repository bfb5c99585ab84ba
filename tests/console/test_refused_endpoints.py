"""What confinement refused, on a server's page, in `/api` and where a tool is explained."""

import html
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from pegboard import Pegboard

from .programs import ORIGIN, program, serving

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")

SERVER = Path(__file__).resolve().parent.parent / "servers" / "needing_server.py"
CONFIG = """
store: "memory:"
servers:
  reads: {{command: {python}, args: [{server}, "open('{there}')"], confine: {{write: [own]}}}}
plugins: {{charts: {{python: charts, confine: {{write: [own]}}}}}}
agents: {{one: {{tools: [reads, charts]}}}}
tokens: {{ada: {{token: ada-ada-ada-ada-ada-ada, agents: ["*"], console: true}}}}
"""


@pytest.fixture
def there() -> Iterator[Path]:
    """Return a file that no default grants."""
    with tempfile.TemporaryDirectory(prefix=".pegboard-outside-", dir=Path.home()) as folder:
        (path := Path(folder) / "there").write_text("x")
        yield path


@pytest.fixture
def config(tmp_path: Path, there: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "charts.py").write_text(f"print('begun')\nopen({str(there)!r})\n")
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG.format(python=sys.executable, server=SERVER, there=there))
    return path


async def test_what_was_refused_stands_with_its_line_wherever_operators_look(config: Path, there: Path) -> None:
    """A7: of a server, and of a plugin whose process was stopped since it could not be constructed."""
    own = config.parent / "own"
    line = f"`confine: {{write: [{own}], read: [{there}]}}`"
    async with Pegboard.open(config) as board, serving(board) as (app, _):
        await board.ready()
        async with program(app, "ada-ada-ada-ada-ada-ada") as ada:
            for name, what in (("reads", "Server"), ("charts", "Plugin")):
                state = await ada.ask("GET", f"/api/servers/{name}")
                assert state["refused"] == [
                    {"kind": "read", "what": str(there), "line": line, "why": "", "by": "process"}
                ]
                assert state["state"] in {"down", "backing_off", "unavailable"}
                log = (await ada.ask("GET", f"/api/servers/{name}/log"))["lines"]
                said = f"it says that it could not read '{there}': {line} would allow it"
                assert said in [one["text"] for one in log if one["kind"] == "event"]
                found = await ada.ask("GET", f"/api/explain?agent=one&name={name}")
                texts = [one["text"] for one in found["reasons"] if one["code"] == "refused_confined"]
                assert texts == [f"{what} '{name}' is confined, and {said}."]
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url=ORIGIN, follow_redirects=True) as client:
            await client.post("/console/sign-in", data={"secret": "ada-ada-ada-ada-ada-ada"})
            page = html.unescape(re.sub("<[^>]*>", "", (await client.get("/console/server?name=charts")).text))
            assert "Refused by the confinement" in page
            assert f"confine: {{write: [{own}], read: [{there}]}}" in page
            assert "begun" in (await client.get("/console/server/log?name=charts")).text
