"""Compare docs/configuration.md with the schema: every key of every section, and no other."""

import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from pegboard.assembly import dialects
from pegboard.config import schema
from pegboard.core.agents import DialectName

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"
SECTIONS: dict[str, type[BaseModel]] = {
    "Top level": schema.File,
    "`tokens`": schema.TokenSection,
    "`servers`": schema.ServerSection,
    "`plugins`": schema.PluginSection,
    "`defaults`": schema.DefaultsSection,
    "`toolkits`": schema.ToolkitSection,
    "`loadouts`": schema.LoadoutSection,
    "`sub_apps`": schema.SubAppSection,
    "`agents`": schema.AgentSection,
    "`lease`": schema.LeaseSection,
    "`budget`": schema.BudgetSection,
    "`hints`": schema.HintsSection,
    "`private`": schema.PrivateSection,
}


@pytest.mark.parametrize("heading", SECTIONS)
def test_every_key_of_a_section_is_in_the_document_and_no_other(heading: str) -> None:
    _, *parts = re.split(r"^##+ (.+)$", DOCUMENT.read_text("utf-8"), flags=re.MULTILINE)
    text = dict(zip(parts[::2], parts[1::2], strict=True))[heading]
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(schema.known_keys(SECTIONS[heading]))


def test_every_dialect_is_in_the_document() -> None:
    _, _, text = DOCUMENT.read_text("utf-8").partition("### Dialects")
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(get_args(DialectName)) == list(dialects())
