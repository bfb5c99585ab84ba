"""What `pegboard check` warns of beside the file stands on the Configuration page: claims, clashes, budgets, faults."""

import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard

from .programs import Program, program, serving

ROOT, ADA = "root-root-root-root-root", "ada-ada-ada-ada-ada-ada"
SERVERS = Path(__file__).resolve().parent.parent / "servers"
ADDRESS = "/console/settings"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a configuration of which much is wrong, but for its file."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text('def add_note() -> str:\n    """Write."""\n    return ""\n')
    (tmp_path / "list.json").write_text(json.dumps({"look": True, "wipe": False, "burn": False}))
    listed = {"command": sys.executable, "args": [str(SERVERS / "listed_server.py"), str(tmp_path / "list.json")]}
    quiet = {"command": sys.executable, "args": [str(SERVERS / "plain_server.py"), "--log", str(tmp_path / "log")]}
    document = {
        "store": "sqlite:///state.db",
        "servers": {
            "up": {**listed, "trust": "annotations", "pins": "trust", "approve": {"b*": "destructive"}},
            "quiet": quiet,
            "gone": {"command": "no-such-program-anywhere"},
        },
        "plugins": {"one": {"python": "one"}, "two": {"python": "two"}, "lost": {"python": "no_such_module_anywhere"}},
        "agents": {"a": {"tools": ["up", "gone", "quiet", "one", "two"], "budget": {"tools": 3}}, "b": {}},
        "tokens": {
            "root": {"token": ROOT, "agents": ["*"], "console": True},
            "ada": {"token": ADA, "agents": ["b"], "console": True},
        },
    }
    (tmp_path / "pegboard.yaml").write_text(json.dumps(document))
    return tmp_path


@asynccontextmanager
async def opened(folder: Path, *asked: str) -> AsyncIterator[tuple[Pegboard, Program, Program]]:
    """Open the configuration once these plugins were asked for their tools, with an operator of all and one of some."""
    async with Pegboard.open(folder / "pegboard.yaml") as board:
        await board.ready(*asked)
        async with serving(board) as (app, _), program(app, ROOT) as root, program(app, ADA) as ada:
            yield board, root, ada


async def later(folder: Path) -> None:
    """Let the server claim more than when it was first seen."""
    async with opened(folder, "up"):
        pass
    harmless = {"annotations": {"destructiveHint": False}}
    (folder / "list.json").write_text(json.dumps({"look": True, "wipe": True, "burn": harmless}))


async def problems(operator: Program) -> list[dict[str, Any]]:
    """Return what the API has of plugins."""
    return (await operator.ask("GET", "/api/configuration"))["of_plugins"]


async def test_what_check_reports_of_plugins_is_on_the_page_of_settings(folder: Path) -> None:
    """F5, S9, G6, G10, A4, P6: with its place, on the page and in the API, and counted in the navigation."""
    await later(folder)
    async with opened(folder, "up", "one", "two", "lost") as (_, root, ada):
        await root.ask("POST", "/api/servers/up/restart")
        found = await problems(root)
        assert sorted((one["severity"], one["code"], one["path"]) for one in found) == [
            ("error", "name_clash", "plugins.two"),
            ("warning", "harmless_later", "servers.up"),
            ("warning", "over_budget", "agents.a"),
            ("warning", "read_only_later", "servers.up"),
            ("warning", "unavailable", "plugins.lost"),
            ("warning", "unavailable", "servers.gone"),
        ]
        page = (await root.client.get(ADDRESS)).text.replace("<wbr>", "")
        for text in ("tools of 3", "no-such-program-anywhere", "now claims to be read-only", "as non-destructive"):
            assert text in page
        assert counted(page) == 6
        assert counted((await root.client.get("/console/access")).text) == 6
        servers = (await root.client.get("/console/server?name=up")).text.replace("<wbr>", "")
        assert "it needs approval before it runs" in servers
        code, _, _ = await ada.refused("GET", "/api/configuration", 403)
        assert (code, counted((await ada.client.get("/console/access")).text)) == ("every_agent_required", 0)


def counted(page: str) -> int:
    """Return how much the navigation says needs attention."""
    found = re.search(r'<span class="count">(\d+)', page)
    return int(found[1]) if found else 0


async def test_a_look_at_the_configuration_starts_imports_and_counts_nothing(folder: Path) -> None:
    """F4, F5: of what was not asked nothing is said but that its command is not there."""
    async with opened(folder, "one") as (board, root, _):
        for _ in range(3):
            assert [one["path"] for one in await problems(root)] == ["servers.gone"]
            assert (await root.client.get(ADDRESS)).status_code == 200
        assert {one["state"] for one in (await root.ask("GET", "/api/servers")) if one["name"] != "one"} == {
            "not_started"
        }
        assert not (folder / "log").exists()
        assert (await root.ask("GET", "/api/bill"))["totals"]["requests"] == 0
        assert list(await board.services.store.sessions()) == []


async def test_what_is_wrong_follows_what_changes(folder: Path) -> None:
    """S9, G10, P4: plugins that answer, a switch, and an edit."""
    async with opened(folder, "one") as (board, root, _):
        await board.ready("two", "up")
        assert [one["code"] for one in await problems(root)] == ["name_clash", "unavailable", "over_budget"]
        await board.permissions.set("a", "up", False)
        assert [one["code"] for one in await problems(root)] == ["name_clash", "unavailable"]
        config = folder / "pegboard.yaml"
        config.write_text(config.read_text().replace("no-such-program-anywhere", sys.executable))
        await board.reload()
        assert "unavailable" not in [one["code"] for one in await problems(root)]
