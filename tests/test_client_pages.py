"""Each client that Pegboard installs itself into has a page, and the page says what the code does."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from pegboard.config.client_files.known import CLIENTS

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "clients"
PARSERS = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}


def page(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text("utf-8")


def test_every_client_has_a_page_and_the_readme_names_each() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == set(CLIENTS)
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [name for name, one in CLIENTS.items() if f"[{one.title}](docs/clients/{name}.md)" not in readme] == []


@pytest.mark.parametrize("name", CLIENTS)
def test_a_page_names_the_commands_and_the_files_of_the_client(name: str) -> None:
    client, text = CLIENTS[name], page(name)
    assert text.startswith(f"# {client.title} in five minutes\n")
    for command in (f"pegboard init --install {name}\n", f"pegboard init --uninstall {name}\n"):
        assert command in text
    for path in client.project[:1]:
        assert f"| the project | `{path}` |" in text
    for path in client.user[:1]:
        assert Path(path).name in text or client.title in text.partition("| you | ")[2].partition("\n")[0]


@pytest.mark.parametrize("name", CLIENTS)
def test_the_entry_of_a_page_is_where_the_client_has_its_servers(name: str) -> None:
    client, text = CLIENTS[name], page(name)
    blocks = re.findall(r"^```(json|toml|yaml)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    ((language, block),) = blocks
    found = PARSERS[language](block)
    where = [root for root in client.roots if _entry(found, root) is not None]
    assert where == [client.roots[0]] or name == "opencode"
    assert where


def _entry(value: object, root: tuple[str, ...]) -> object:
    for key in (*root, "pegboard"):
        value = value.get(key) if isinstance(value, dict) else None
    return value
