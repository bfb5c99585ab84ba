"""Compare docs/gateway.md with the source: refusals, and entries for clients that Pegboard itself can read."""

import json
import re
from pathlib import Path

import pytest

from pegboard.config.inspection import inspect
from pegboard.configuration_source import registered_plugins

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "gateway.md").read_text("utf-8")
BLOCKS = re.findall(r"```json\n(.+?)```", TEXT, re.DOTALL)


def test_every_refusal_over_http_is_in_the_document() -> None:
    source = "".join(path.read_text("utf-8") for path in sorted((ROOT / "src/pegboard/gateway").rglob("*.py")))
    refused = set(re.findall(r'Refusal\((\d+), f?"([^"]+)"', source))
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", TEXT, re.MULTILINE)
    told = {(status, text) for status, cell in rows for text in re.findall(r"`([^`]+)`", cell)}
    assert len(refused) >= 6
    assert refused - told == set()


@pytest.mark.parametrize("block", BLOCKS)
def test_an_entry_for_a_client_is_one_that_is_understood(block: str, tmp_path: Path) -> None:
    document = json.loads(block)
    (entry,) = next(iter(document.values())).values()
    path = tmp_path / "client.json"
    path.write_text(json.dumps({"mcpServers": {"pegboard": {k: v for k, v in entry.items() if k != "source"}}}))
    configuration, problems = inspect(
        path, registered=registered_plugins(), env={"PEGBOARD_TOKEN": "x", "HOME": str(tmp_path)}
    )
    assert configuration is not None
    assert problems == []
