"""Compare docs/configuration.md with the schema: every key of every section, and no other."""

import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from pegboard.config.schema import sections
from pegboard.core.model.agents import DialectName
from pegboard.dialects.names import Dialects

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"
SECTIONS: dict[str, type[BaseModel]] = {
    "Top level": sections.File,
    "`store`": sections.StoreSection,
    "`tokens`": sections.TokenSection,
    "`servers`": sections.ServerSection,
    "`limits`": sections.LimitsSection,
    "`plugins`": sections.PluginSection,
    "`defaults`": sections.DefaultsSection,
    "`toolkits`": sections.ToolkitSection,
    "`loadouts`": sections.LoadoutSection,
    "`sub_apps`": sections.SubAppSection,
    "`approvals`": sections.ApprovalsSection,
    "`notify`": sections.NotifySection,
    "`agents`": sections.AgentSection,
    "`lease`": sections.LeaseSection,
    "`budget`": sections.BudgetSection,
    "`hints`": sections.HintsSection,
    "`private`": sections.PrivateSection,
}


@pytest.mark.parametrize("heading", SECTIONS)
def test_every_key_of_a_section_is_in_the_document_and_no_other(heading: str) -> None:
    _, *parts = re.split(r"^##+ (.+)$", DOCUMENT.read_text("utf-8"), flags=re.MULTILINE)
    text = dict(zip(parts[::2], parts[1::2], strict=True))[heading]
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(sections.known_keys(SECTIONS[heading]))


def test_every_dialect_is_in_the_document() -> None:
    _, _, text = DOCUMENT.read_text("utf-8").partition("### Dialects")
    dialects = Dialects()
    names = [dialects[name].name for name in get_args(DialectName)]
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == names == list(get_args(DialectName))
