"""What the READMEs inside the package and the docstrings name is there: files, folders, names in files, modules."""

import re
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "pegboard"
READMES = sorted(PACKAGE.rglob("README.md"))
FILE_OR_FOLDER = re.compile(r"`([\w./-]+(?:\.(?:py|md)|/))(?::(\w+))?`(?: \(`([\w.]+)`\))?")
REFERENCE = re.compile(r":(?:mod|class|func|meth):`([\w.]*\.[\w.]+)`")
"""What is named with the module that it is in; a bare name is one of its own module."""


def places(readme: Path) -> tuple[Path, ...]:
    """Return the folders that a README means: its own, the one around it, the package, the checkout, the decisions."""
    return readme.parent, readme.parent.parent, PACKAGE, ROOT, ROOT / "docs" / "decisions"


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.relative_to(PACKAGE).as_posix())
def test_every_file_that_a_readme_names_exists_and_defines_what_it_is_said_to(readme: Path) -> None:
    named = FILE_OR_FOLDER.findall(readme.read_text("utf-8"))
    assert len(named) > 10
    missing: list[str] = []
    for path, *names in named:
        found = next((place / path for place in places(readme) if (place / path).exists()), None)
        if found is None:
            missing.append(path)
            continue
        missing += [f"{path}: {name}" for name in names if name and not exists(f"{module_of(found)}.{name}")]
    assert missing == []


def references() -> Iterator[tuple[Path, str]]:
    """Yield the dotted names in the docstrings of the package, as they read from its root."""
    for path in sorted(PACKAGE.rglob("*.py")):
        package = ("pegboard", *path.parent.relative_to(PACKAGE).parts)
        for name in REFERENCE.findall(path.read_text("utf-8")):
            up = len(name) - len(name.lstrip("."))
            yield path, ".".join((*package[: len(package) - up + 1], name[up:])) if up else name


def exists(dotted: str) -> bool:
    """Return whether there is a module of this name, or something of this name in a module."""
    try:
        resolve_name(dotted)
    except (ImportError, AttributeError):
        return False
    return True


def test_every_module_that_a_docstring_names_exists() -> None:
    named = [(path, name) for path, name in references() if name.startswith("pegboard.")]
    assert len(named) > 5
    assert [f"{path.relative_to(ROOT)}: {name}" for path, name in named if not exists(name)] == []
