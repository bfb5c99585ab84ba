"""Toolkits and loadouts that an installed package brings."""

import importlib
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard, Session

MODULE = """
from pegboard import Loadout

RESEARCH = {"description": "Look things up", "tools": ["web"], "policy": "Prefer {tools}."}
REVIEWER = Loadout(name="reviewer", categories=("Git",))

def several():
    return [{"name": "one", "tools": ["git"]}, {"name": "two", "tools": ["nowhere"]}]
"""
ENTRY_POINTS = """
[pegboard.toolkits]
research = acme_bundles:RESEARCH
several = acme_bundles:several
broken = acme_bundles:missing
[pegboard.loadouts]
reviewer = acme_bundles:REVIEWER
"""
MANAGED = {"list_toolkits", "load_tools", "unload_tools", "search_tools"}
PLUGINS = {"git": {"python": "git_tools"}, "web": {"python": "web_tools"}}


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a package for the test alone, and work in a folder with two plugins."""
    info = tmp_path / "site" / "acme_bundles-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-bundles\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "site" / "acme_bundles.py").write_text(MODULE)
    for name, tool in (("git", "log"), ("web", "fetch")):
        (tmp_path / f"{name}_tools.py").write_text(f'def {tool}() -> str:\n    """Do {tool}."""\n    return "{tool}"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    importlib.invalidate_caches()
    yield
    sys.modules.pop("acme_bundles", None)


def config(**agent: Any) -> dict[str, Any]:
    return {"store": "memory:", "plugins": PLUGINS, "agents": {"assistant": agent}}


async def names(session: Session) -> set[str]:
    return set((await session.surface()).names) - MANAGED


async def test_agents_name_what_a_package_brings(caplog: pytest.LogCaptureFixture) -> None:
    """T11, L9: toolkits and loadouts; one that cannot be loaded is reported and stops nothing."""
    said = config(allowed_toolkits=["research", "one"], initial_toolkits=["research"], loadout="reviewer")
    with caplog.at_level(logging.WARNING, "pegboard"):
        async with Pegboard.open(said) as board:
            session = await board.session(session_id="s")
            assert await names(session) == {"log", "fetch"}
            assert "Prefer fetch." in (await session.surface()).policy
            assert [toolkit.name for toolkit in board.toolkits.all()] == ["research", "one"]
    assert "broken of package 'acme-bundles' cannot be loaded: AttributeError" in caplog.text


async def test_what_nobody_names_brings_nothing_and_breaks_nothing() -> None:
    """T11, T3: the member that there is not is an error for anyone who names its toolkit alone."""
    async with Pegboard.open(config(discoverable=["*"])) as board:
        assert board.toolkits.all() == ()
        assert (await (await board.session(session_id="s")).use_loadout("reviewer")).status == "ok"
    with pytest.raises(Exception, match=r"package acme-bundles: toolkits\.two\.tools\[0\]: 'nowhere' is not a known"):
        async with Pegboard.open(config(allowed_toolkits=["two"])):
            pass


async def test_file_and_code_come_before_packages() -> None:
    """T11: on one name: file, then code, then package."""
    said = config(allowed_toolkits=["research"], initial_toolkits=["research"])
    async with Pegboard.open(said, toolkits=[{"name": "research", "tools": ["git"]}]) as board:
        assert await names(await board.session(session_id="s")) == {"log"}
    async with Pegboard.open({**said, "toolkits": {"research": {"tools": ["git", "web"]}}}) as board:
        assert await names(await board.session(session_id="s")) == {"log", "fetch"}
