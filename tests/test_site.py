"""Build the site of the documentation: every link in it leads somewhere, and looking at it fetches nothing."""

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import docs_site
import pegboard

pytestmark = pytest.mark.timeout(400)  # the whole documentation is built
ROOT = Path(__file__).resolve().parent.parent
FETCHED = {
    "script": "src",
    "img": "src",
    "source": "src",
    "iframe": "src",
    "video": "src",
    "audio": "src",
    "link": "href",
}
FETCHED_BY_STYLES = re.compile(r"""(?:url\(|@import)\s*['"]?(?:https?:)?//""")
FETCHED_BY_SCRIPTS = re.compile(r"""['"`](?:https?:)?//(?!www\.w3\.org/2000/svg)\w""")


class Page(HTMLParser):
    """What a page links to, what it fetches, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if FETCHED.get(tag) in given:
            self.fetched.append(given[FETCHED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "tools/docs_site.py", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def dead(path: Path, page: Page, pages: dict[Path, Page]) -> Iterator[str]:
    """Yield what a page links to that is not there."""
    for link in (*page.links, *page.fetched):
        parts = urlsplit(link)
        if parts.scheme:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        anchor = unquote(parts.fragment)
        if not target.is_file() or (anchor and target in pages and anchor not in pages[target].anchors):
            yield link


def test_every_link_inside_the_site_leads_somewhere(pages: dict[Path, Page]) -> None:
    assert sum(len(page.links) for page in pages.values()) > 1000
    assert {path.name: found for path, page in pages.items() if (found := [*dead(path, page, pages)])} == {}


def test_looking_at_the_site_fetches_nothing(site: Path, pages: dict[Path, Page]) -> None:
    assert [name for page in pages.values() for name in page.fetched if urlsplit(name).netloc] == []
    by_styles = [path.name for path in site.rglob("*.css") if FETCHED_BY_STYLES.search(path.read_text("utf-8"))]
    by_scripts = [path.name for path in site.rglob("*.js") if FETCHED_BY_SCRIPTS.search(path.read_text("utf-8"))]
    inline = [path.name for path in pages if FETCHED_BY_STYLES.search(path.read_text("utf-8"))]
    assert by_styles + by_scripts + inline == []
    assert not [*site.rglob("*.woff*")]


def test_the_reference_has_every_public_name_and_each_port(pages: dict[Path, Page]) -> None:
    anchors = set().union(*(page.anchors for page in pages.values()))
    assert [name for name in pegboard.__all__ if f"pegboard.{name}" not in anchors] == []
    assert {"pegboard.Session.load", "pegboard.ports.SessionStore.save"} <= anchors


def test_every_document_is_in_the_menu(pages: dict[Path, Page]) -> None:
    built = {path.stem for path in pages}
    assert {path.stem for path in (ROOT / "docs").rglob("*.md")} <= built
    assert set(docs_site.REFERENCE) <= built


def test_a_model_finds_every_page_as_markdown(site: Path) -> None:
    """`llms.txt` lists each page of the menu but the reference, with what its first sentence says."""
    lines = (site / "llms.txt").read_text("utf-8").splitlines()
    listed = [re.fullmatch(r"- \[(.+)\]\(([^)]+)\)(?:: .+)?", line) for line in lines if line.startswith("- ")]
    assert all(listed)
    targets = {found[2] for found in listed if found}
    written = {path.relative_to(site).as_posix() for path in site.rglob("*.md")}
    assert targets <= written
    assert {f"docs/{path.relative_to(ROOT / 'docs').as_posix()}" for path in (ROOT / "docs").rglob("*.md")} <= written
