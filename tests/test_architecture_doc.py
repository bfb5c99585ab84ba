"""Compare docs/architecture.md with the source: the files and the names in it are real."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "pegboard"
TEXT = (ROOT / "docs" / "architecture.md").read_text("utf-8")
SPANS = re.findall(r"`([^`\n]+)`", TEXT)


def test_every_file_and_folder_in_the_document_exists() -> None:
    named = [span for span in SPANS if re.fullmatch(r"[\w/]+(?:\.py|/)", span)]
    assert len(named) > 20
    assert [name for name in named if not (SOURCE / name).exists()] == []


def test_every_function_that_is_said_to_be_in_a_file_is_in_it() -> None:
    said = re.findall(r"`([\w.]+)`\s+in\s+`([\w/]+\.py)`", TEXT)
    assert len(said) > 15
    missing: list[tuple[str, str]] = []
    for name, file in said:
        tree = ast.parse((SOURCE / file).read_text("utf-8"))
        for part in name.split("."):
            inner = [n for n in ast.iter_child_nodes(tree) if getattr(n, "name", None) == part]
            if not inner:
                missing.append((name, file))
                break
            tree = inner[0]
    assert missing == []


def test_the_layers_are_those_that_the_linter_enforces() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    for layer in ("cli", "assembly", "gateway", "board", "dialects", "ports", "core"):
        assert re.search(rf"\({layer}\)", project), layer
        assert f"`{layer}" in TEXT


def test_every_folder_of_the_source_has_its_row() -> None:
    rows = {span for line in TEXT.splitlines() if line.startswith("| `") for span in re.findall(r"`([\w/]+/)`", line)}
    folders = {f"{path.parent.relative_to(SOURCE).as_posix()}/" for path in SOURCE.rglob("__init__.py")} - {
        "./",
        "core/",
    }
    assert sorted(folders - rows - {"./", "core/"}) == []


def test_a_behaviour_names_its_folder_and_a_file_in_it() -> None:
    section = TEXT.partition("## Where a behaviour is decided")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| [^|]+ \| `([\w/]+/)` \| `([\w.]+)` in `([\w/]+\.py)` \|$", section, re.MULTILINE)
    assert len(rows) >= 10
    assert [file for folder, _, file in rows if Path(file).parent != Path(folder)] == []
