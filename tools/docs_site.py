"""Build the documentation as a site: `python tools/docs_site.py [FOLDER]`.

The pages are those of the repository, where they stand: README, CONTRIBUTING, CHANGELOG, SECURITY, docs/, examples/.
The reference comes out of the docstrings. A link that leads nowhere and a page that no menu lists are errors.
The site needs no server and fetches nothing: open index.html. `llms.txt` lists the pages
as Markdown, which lies next to them.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path

from sphinx.application import Sphinx

import pegboard
from pegboard import __version__
from pegboard.config.client_files.known import CLIENTS

ROOT = Path(__file__).resolve().parent.parent
FRAMEWORKS = ("pydantic-ai", "agno", "langchain", "openai-agents", "plain-loops")
MENU = {
    "Begin": ["docs/tutorial", "docs/costs", "docs/why-not-just", "docs/coming-from", "examples/README"],
    "Clients": [f"docs/clients/{name}" for name in CLIENTS],
    "Frameworks": ["docs/frameworks", *(f"docs/frameworks/{name}" for name in FRAMEWORKS)],
    "Use": [
        "docs/library",
        "docs/configuration",
        "docs/gateway",
        "docs/approvals",
        "docs/pins",
        "docs/command",
        "docs/errors",
    ],
    "Reference": ["reference/faces", "reference/values", "reference/loadouts", "reference/errors", "reference/ports"],
    "How it works": ["docs/glossary", "docs/architecture", "docs/benchmarks"],
    "Project": ["CONTRIBUTING", "CHANGELOG", "SECURITY", "docs/decisions/index"],
}
REFERENCE = {
    "faces": ("Board, session, permissions", "Pegboard Session Permissions SyncPegboard SyncSession"),
    "values": (
        "What is given and returned",
        (
            "Host Cache host_for Surface Costs Outcome Item CallAnswer CallResult Approval Found Explanation "
            "turn_of_messages"
        ),
    ),
    "loadouts": ("Tools, plugins, loadouts", "tool Tool Plugin Loadout LoadoutBuilder LoadoutRegistry"),
    "errors": (
        "Errors",
        "PegboardError ConfigError StoreError ToolUnavailableError UnknownAgentError UpstreamError UsageError",
    ),
}
MADE_BY_OTHERS = {"Pegboard", "Session", "Permissions", "SyncPegboard", "SyncSession"}
SETTINGS = {
    "project": "Pegboard",
    "author": "Pegboard contributors",
    "copyright": "Pegboard contributors",
    "version": __version__,
    "release": __version__,
    "extensions": ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"],
    "myst_heading_anchors": 4,
    "autodoc_typehints": "signature",
    "autodoc_typehints_format": "short",
    "autodoc_member_order": "bysource",
    "autodoc_class_signature": "separated",
    "napoleon_numpy_docstring": False,
    "python_maximum_signature_line_length": 100,
    "suppress_warnings": ["misc.highlighting_failure"],  # blocks with "…" in them
    "html_theme": "furo",
    "html_title": "Pegboard",
    "html_copy_source": False,
    "html_show_sphinx": False,
}


def main(folder: Path) -> None:
    """Write the site into a folder; what was in it is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        source = Path(temporary) / "source"
        stage(source)
        trees = Path(temporary) / "trees"
        app = Sphinx(
            source, None, folder, trees, "html", confoverrides=SETTINGS, status=None, freshenv=True, warningiserror=True
        )
        app.build(force_all=True)
        if app.statuscode:
            raise SystemExit(app.statuscode)
        write_for_models(source, folder)
    print(f"{folder / 'index.html'}")


def stage(source: Path) -> None:
    """Copy the pages as they stand in the repository, with the menu behind the first one."""
    shutil.copytree(ROOT / "docs", source / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "examples", source / "examples", ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"):
        shutil.copy(ROOT / name, source / name)
    for page in (source / "docs").rglob("*.md"):
        page.write_text(page.read_text("utf-8").replace("../README.md", "../index.md"), "utf-8")
    readme = (ROOT / "README.md").read_text("utf-8").replace("](docs/decisions/)", "](docs/decisions/index.md)")
    (source / "index.md").write_text(readme + menu(source), "utf-8")
    decisions = source / "docs" / "decisions"
    listed = toctree(sorted(path.stem for path in decisions.glob("*.md")))
    (decisions / "index.md").write_text(f"# Decisions\n{listed}", "utf-8")
    examples = source / "examples" / "README.md"
    examples.write_text(examples.read_text("utf-8") + "".join(map(listing, sorted(examples.parent.iterdir()))), "utf-8")
    write_reference(source / "reference")


def write_for_models(source: Path, folder: Path) -> None:
    """Write each page as Markdown next to its HTML, and ``llms.txt``, which lists them with their first sentence."""
    lines = ["# Pegboard", "", f"> {first_sentence(source / 'index.md')}"]
    for caption, pages in grouped_pages(source).items():
        written = [source / f"{page}.md" for page in pages if not page.startswith("reference/")]
        entries = [llms_entry(page, page.relative_to(source).as_posix()) for page in written]
        lines += ["", f"## {caption}", "", *entries] if entries else []
    (folder / "llms.txt").write_text("\n".join(lines) + "\n", "utf-8")
    for page in source.rglob("*.md"):
        target = folder / page.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page.read_text("utf-8").partition("\n```{toctree}")[0], "utf-8")


def llms_entry(page: Path, address: str) -> str:
    """Return the line of a page in ``llms.txt``."""
    said = first_sentence(page)
    return f"- [{title_of(page)}]({address}){': ' if said else ''}{said}"


def title_of(page: Path) -> str:
    """Return the heading of a page."""
    return page.read_text("utf-8").partition("\n")[0].removeprefix("# ")


def first_sentence(page: Path) -> str:
    """Return what a page says first, without links."""
    blocks = page.read_text("utf-8").split("\n\n")[1:]
    text = next((" ".join(block.split()) for block in blocks if block[:1].isalpha()), "")
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.split(r"(?<=[.])\s", text)[0])


def menu(source: Path) -> str:
    """Return the menu, for behind the first page."""
    groups = grouped_pages(source)
    return "".join(toctree(entries, ":hidden:", f":caption: {caption}") for caption, entries in groups.items())


def grouped_pages(source: Path) -> dict[str, list[str]]:
    """Return the pages in the order of the menu; those of docs that it does not name are in the group "Use"."""
    listed = {page for pages in MENU.values() for page in pages}
    pages = {f"docs/{path.stem}" for path in (source / "docs").glob("*.md")}
    return {**MENU, "Use": [*MENU["Use"], *sorted(pages - listed)]}


def toctree(pages: list[str], *options: str) -> str:
    """Return the directive for one part of the menu."""
    return "\n".join(["", "```{toctree}", *options, ":maxdepth: 1", "", *pages, "```", ""])


def listing(path: Path) -> str:
    """Return an example file as a section of the page of examples."""
    if path.suffix not in (".py", ".yaml", ".json"):
        return ""
    language = {".py": "python", ".json": "json"}.get(path.suffix, "yaml")
    return f"\n## `{path.name}`\n\n```{{literalinclude}} {path.name}\n:language: {language}\n```\n"


def write_reference(folder: Path) -> None:
    """Write the pages that are filled out of the docstrings."""
    folder.mkdir()
    for page, (title, names) in REFERENCE.items():
        (folder / f"{page}.md").write_text(f"# {title}\n\n{''.join(map(entry, names.split()))}", "utf-8")
    module = "```{eval-rst}\n.. automodule:: pegboard.ports\n   :members:\n   :imported-members:\n```\n"
    (folder / "ports.md").write_text(f"# Ports\n\n{module}", "utf-8")


def entry(name: str) -> str:
    """Return the directive that documents a public name with its members."""
    kind = "autofunction" if name.islower() else "autoexception" if name.endswith("Error") else "autoclass"
    members = "" if kind == "autofunction" else "   :members:\n   :inherited-members: Exception, object\n"
    excluded = ["__init__"] if name in MADE_BY_OTHERS else []
    excluded += getattr(getattr(pegboard, name), "_fields", ())  # of a named tuple, whose docstring has them
    if excluded:
        members += f"   :exclude-members: {', '.join(excluded)}\n"
    return f"```{{eval-rst}}\n.. {kind}:: pegboard.{name}\n{members}```\n\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site")
