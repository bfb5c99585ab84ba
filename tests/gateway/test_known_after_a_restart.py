"""What clients of both eras see of plugins that are code of this process, over a load and a restart (X1, G4, G5)."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .clients import HANDSHAKE, MODERN, Connected, connected, gateway, until

CONFIG = """
store: sqlite:///state.db
plugins:
  notes: {python: notes_tools}
toolkits:
  writing: {description: Write notes, tools: [notes]}
  sums: {description: Calculate, tools: [calculator]}
agents:
  default: {tools: [notes/note_list], allowed_toolkits: [writing, sums], discoverable: [kit], unloaded_call: run}
"""
NOTES = '''
def note_list() -> list[str]:
    """List the notes."""
    return ["milk"]


def note_add(text: str) -> str:
    """Add a note."""
    return f"added {text}"
'''
KIT = 'def kit_say(text: str) -> str:\n    """Say something aloud."""\n    return text\n'
TOOLS: dict[str, tuple[dict[str, Any], str]] = {
    "note_add": ({"text": "tea"}, "added tea"),
    "kit_say": ({"text": "tea"}, "tea"),
    "add": ({"a": 1, "b": 2}, "3"),
}


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a configuration with a module, an installed package and a toolkit of Agno."""
    info = tmp_path / "site" / "acme_kit-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-kit\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pegboard.plugins]\nkit = acme_kit\n")
    (tmp_path / "site" / "acme_kit.py").write_text(KIT)
    (tmp_path / "notes_tools.py").write_text(NOTES)
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    importlib.invalidate_caches()
    yield tmp_path / "pegboard.yaml"
    sys.modules.pop("acme_kit", None)


async def listed(client: Connected) -> str:
    return (await client.client.list_tools(cache_mode="refresh")).model_dump_json()


async def all_answer(config: Path) -> None:
    """Start once, and let a client load everything."""
    async with gateway(config) as running, connected(running.url, MODERN) as client:
        loaded = await client.load("notes", "kit", "sums")
        assert {item["status"] for item in loaded["items"]} <= {"loaded", "already_loaded"}
        await client.call("unload_tools", names=["notes", "kit", "sums"])
    sys.modules.pop("acme_kit", None)


async def test_the_list_of_the_new_era_is_equal_over_a_load_and_a_restart(known: Path) -> None:
    """G4, X1: to the byte, descriptions and hints among it, once the manifests are stored."""
    await all_answer(known)
    seen: list[str] = []
    for _ in range(2):
        async with gateway(known) as running, connected(running.url, MODERN) as client:
            async with client.client.listen(tools_list_changed=True):
                seen.append(await listed(client))
                await client.load("notes", "kit", "sums")
                for name, (arguments, text) in TOOLS.items():
                    assert text in await client.text(name, **arguments)
                seen.append(await listed(client))
            assert client.changes() == 0
        sys.modules.pop("acme_kit", None)
    assert len(set(seen)) == 1
    assert all(text in seen[0] for text in ("note_list", "kit: Say", "writing: Write notes (2 tools)", "sums"))


async def test_in_the_handshake_era_only_what_is_loaded_joins(known: Path) -> None:
    """G5, X1: what is known of others changes no list."""
    await all_answer(known)
    async with gateway(known) as running, connected(running.url, HANDSHAKE) as client:
        before = await client.names()
        assert before[0] == "note_list"
        assert not TOOLS.keys() & set(before)
        await client.load("kit")
        await until(lambda: client.changes() == 1)
        assert await client.names() == [*before, "kit_say"]
        assert client.changes() == 1


async def test_code_that_has_changed_is_a_change_that_clients_hear_of(known: Path) -> None:
    """G4, X1: the list is as before until the code answers, and then as it is."""
    await all_answer(known)
    (known.parent / "notes_tools.py").write_text(NOTES.replace("List the notes.", "List every single note."))
    async with gateway(known) as running, connected(running.url, MODERN) as client:
        stream = client.client.listen(tools_list_changed=True)
        async with stream:
            await listed(client)
            await until(lambda: client.changes() > 0)
            assert "List every single note." in await listed(client)
