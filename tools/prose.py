"""Measure how the documents are written: ``python tools/prose.py [--json] [ROOT]``.

Printed are the words of the README before its first command, the line of its first picture, words and sentences a
paragraph, words in all, and how often each phrase of ``phrases.txt`` is in documents and sources. Exit code 1:
a phrase is used more often than the file allows.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parent.parent
PHRASES = Path(__file__).with_name("phrases.txt")
GENERATED = frozenset({"docs/errors.md", "docs/console_api.md"})
"""Reference that is made from the sources, or is a table of codes: its words are not counted."""
_SENTENCE = re.compile(r"[.!?](?:\s|$)")
_WORD = re.compile(r"\S*\w\S*")


class Paragraph(NamedTuple):
    """The words and sentences of one paragraph."""

    words: int
    sentences: int


def documents(root: Path = ROOT) -> list[Path]:
    """Return README and the pages of ``docs/`` that people wrote, without decisions and generated reference."""
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    named = [(page, page.relative_to(root).as_posix()) for page in pages]
    return [page for page, name in named if name not in GENERATED and not name.startswith("docs/decisions/")]


def paragraphs(text: str) -> Iterator[Paragraph]:
    """Yield the paragraphs of a Markdown text; cells of tables, headings and code are none."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for before, token in pairwise(tokens):
        if before.type == "paragraph_open" and token.type == "inline":
            words = _plain(token.children or [])
            if count := len(_WORD.findall(words)):
                yield Paragraph(count, max(1, len(_SENTENCE.findall(words))))


def _plain(tokens: Sequence[Any]) -> str:
    breaks = ("softbreak", "hardbreak")
    return "".join(" " if token.type in breaks else token.content for token in tokens if token.type != "image")


def words_of(text: str) -> int:
    """Return how many words a Markdown text has, without blocks of code."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return sum(len(_WORD.findall(_plain(token.children or []))) for token in tokens if token.type == "inline")


def before_first_command(text: str) -> int:
    """Return how many words stand before the first block of code."""
    return words_of(re.split(r"^ *```", text, maxsplit=1, flags=re.MULTILINE)[0])


def first_picture(text: str) -> int | None:
    """Return the line of the first picture, from 1; badges are none."""
    pictures = re.compile(r"!\[[^\]]*\]\((?![^)]*(?:badge|shields))|<img |<picture")
    return next((number for number, line in enumerate(text.splitlines(), 1) if pictures.search(line)), None)


def allowed(file: Path = PHRASES) -> Mapping[str, int]:
    """Return how often each phrase may stand in the project."""
    rows = [line.rsplit(maxsplit=1) for line in file.read_text("utf-8").splitlines() if line and line[0] != "#"]
    return {phrase.strip(): int(count) for phrase, count in rows}


def used(root: Path = ROOT, phrases: Sequence[str] | None = None) -> Mapping[str, int]:
    """Return how often each phrase is in README, ``docs/`` and all text of the sources, whatever its case."""
    files = [root / "README.md", *(root / "docs").rglob("*.md"), *(root / "src").rglob("*.py")]
    files += [*(root / "src").rglob("*.html")]
    text = "\n".join(" ".join(file.read_text("utf-8").split()) for file in files)
    wanted = allowed() if phrases is None else phrases
    return {phrase: len(re.findall(rf"\b{re.escape(phrase)}\b", text, re.IGNORECASE)) for phrase in wanted}


def measured(root: Path = ROOT) -> dict[str, Any]:
    """Return every figure."""
    texts = {page: page.read_text("utf-8") for page in documents(root)}
    found = [paragraph for text in texts.values() for paragraph in paragraphs(text)]
    readme = texts[root / "README.md"]
    return {
        "readme_words_before_first_command": before_first_command(readme),
        "readme_line_of_first_picture": first_picture(readme),
        "words": sum(map(words_of, texts.values())),
        "paragraph_words_median": median(one.words for one in found),
        "paragraph_words_p90": quantiles([one.words for one in found], n=10)[-1],
        "paragraph_sentences_median": median(one.sentences for one in found),
        "longest_pages": {
            page.relative_to(root).as_posix(): words_of(text)
            for page, text in sorted(texts.items(), key=lambda item: -words_of(item[1]))[:10]
        },
        "phrases": dict(used(root)),
    }


def main() -> int:
    """Print the figures; return 1 where a phrase is used more often than it may be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=Path, default=ROOT, help="another checkout")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    given = parser.parse_args()
    figures, limits = measured(given.root), allowed()
    if given.json:
        print(json.dumps(figures, indent=2))
    else:
        for name, value in figures.items():
            rows = value.items() if isinstance(value, dict) else ()
            print(f"{name.replace('_', ' ')}: {'' if rows else value}")
            for key, count in rows:
                print(f"  {key:<28} {count:>6}" + (f"  (at most {limits[key]})" if name == "phrases" else ""))
    return any(figures["phrases"][phrase] > most for phrase, most in limits.items())


if __name__ == "__main__":
    sys.exit(main())
