"""Make the table of word pieces: ``make table``.

``python -m training --packages FOLDER --work FOLDER [--without SET …] [--out FILE]``
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from benchmarks.retrieving.sets import DEVELOPMENT, catalog, folder, read

from pegboard.search.meaning.vectors import spaced_name
from pegboard.search.meaning.word_vectors import SHIPPED, WordPieces, write_vectors
from training.lessons import Requests, Texts, beginnings, main_directions, requests_of
from training.licences import impermissible
from training.rows import Rows, counted, of_length_one
from training.teacher import LONGEST, Teacher, say
from training.texts import TEACHER, Described, described

TOKENIZER = Path(TEACHER, "embeddings", "data", "all-MiniLM-L6-v2-onnx-int8", "tokenizer.json")
COLUMNS, KEPT = 192, 128
"""Components while it learns, and those that are kept: the directions in which rows differ most."""
GENERIC = 80_000
CATALOGS = (*DEVELOPMENT, "google_ops", "mcp_extra")
BELONGS = {"aws_ops": 1.0, "seal_tools": 0.6, "bfcl_v4": 0.4}
"""How often the texts of a set are drawn beside the generic ones, which are drawn twice as often as the largest."""
SMALL = 0.15
FIRST_STEPS, FIRST_RATE = 700, 0.015
STEPS, RATE, REQUEST_RATE = 400, 0.008, 0.003


def generic(packages: Path, work: Path) -> list[Described]:
    """Return what the packages describe; kept in a file for these releases, since reading them takes minutes."""
    releases = " ".join(sorted(path.name for path in packages.glob("*.dist-info")))
    kept = work / f"texts-{hashlib.sha256(releases.encode()).hexdigest()[:12]}.json"
    if kept.is_file():
        return [Described(**each) for each in json.loads(kept.read_bytes())]
    say(f"texts: reading the packages in {packages}")
    found = described(packages)
    random.Random(5).shuffle(found)
    partial = kept.with_suffix(".partial")
    partial.write_text(json.dumps([asdict(each) for each in found]))
    partial.replace(kept)
    say(f"texts: {len(found)}")
    return found


def vocabulary(tokenizer: Path) -> list[str]:
    """Return the teacher's word pieces, by number."""
    pieces: dict[str, int] = json.loads(tokenizer.read_bytes())["model"]["vocab"]
    return sorted(pieces, key=pieces.__getitem__)


class Training:
    """The teacher, the texts, and the table in the making."""

    def __init__(self, words: Sequence[str], work: Path) -> None:
        self.size = len(words)
        self.pieces = WordPieces(words)
        self.teacher = Teacher(self.pieces, work)

    def texts(self, texts: Sequence[str], directions: np.ndarray | None = None) -> tuple[Texts, np.ndarray]:
        """Return texts with the vectors that they are to have, and the directions in which those are given."""
        known = list(dict.fromkeys(texts))
        vectors = self.teacher.vectors(known)
        found = main_directions(vectors, COLUMNS) if directions is None else directions
        ids = [self.pieces.ids(text)[:LONGEST] for text in known]
        return Texts(texts=counted(ids, self.size), wanted=of_length_one(vectors @ found)), found

    def table(self, texts: Sequence[Described], without: Sequence[str]) -> np.ndarray:
        """Return the rows: the teacher's vectors of generic texts first, then catalogs and their requests."""
        others = [name for name in CATALOGS if name not in DEVELOPMENT and name not in without]
        common = [f"{spaced_name(each.name)}. {each.description}" for each in texts[:GENERIC]]
        base, directions = self.texts([*(text for name in others for text in _documents(name)), *common])
        singles = self.teacher.of_pieces([[number] for number in range(self.size)])
        rows = Rows(beginnings(singles @ directions, base.texts))
        draw = np.random.default_rng(0)
        say(f"learning: {FIRST_STEPS} steps from {len(base.wanted)} texts, then {STEPS} from catalogs and requests too")
        for step in range(FIRST_STEPS):
            base.learn(rows, FIRST_RATE * (1 - step / FIRST_STEPS) + 1e-4, draw)
        sets = [read(name) for name in DEVELOPMENT if name not in without]
        lessons = [base]
        requests: list[Requests] = []
        for given in sets:
            said = [query.text for query in given.queries]
            lessons.append(self.texts([*_documents(given.name), *said], directions)[0])
            requests.append(requests_of(given, self.pieces, self.size))
        shares = np.array([2.0, *(BELONGS.get(given.name, SMALL) for given in sets)])
        for step in range(STEPS):
            left = 1 - step / STEPS
            lessons[draw.choice(len(lessons), p=shares / shares.sum())].learn(rows, RATE * left + 1e-4, draw)
            if step % 2 == 0:
                requests[draw.integers(len(requests))].learn(rows, REQUEST_RATE * left, draw)
        return rows.values @ main_directions(rows.values, KEPT)


def _documents(name: str) -> list[str]:
    return [f"{spaced_name(tool.wire)}. {tool.description}" for tool in catalog(name).tools]


def check(packages: Path, without: Sequence[str]) -> None:
    """Exit with a clear message where data is missing or a package may not be read, before anything takes time."""
    for name in (name for name in CATALOGS if name not in without):
        for part in ("tools", "queries") if name in DEVELOPMENT else ("tools",):
            path = folder() / name / f"{part}.jsonl"
            if not path.is_file():
                sys.exit(f"{path} is missing: PEGBOARD_DATA has to be the folder with all sets.")
    wrong = impermissible(packages)
    if wrong:
        sys.exit(f"No permissive licence in the metadata of {'; '.join(wrong)}: drop it from training/packages.txt.")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    parser.add_argument(
        "--packages", type=Path, required=True, help="the folder with the packages whose texts are read"
    )
    parser.add_argument("--work", type=Path, required=True, help="the folder for what is kept between runs")
    parser.add_argument("--without", nargs="*", default=[], choices=CATALOGS, metavar="SET", help="sets to exclude")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="the table")
    options = parser.parse_args(arguments)
    check(options.packages, options.without)
    options.work.mkdir(parents=True, exist_ok=True)
    words = vocabulary(options.packages / TOKENIZER)
    began = time.monotonic()
    rows = Training(words, options.work).table(generic(options.packages, options.work), options.without)
    write_vectors(options.out, name=f"minilm-l6 {hashlib.sha256(rows).hexdigest()[:12]}", vocabulary=words, rows=rows)
    print(f"{options.out}: {options.out.stat().st_size / 2**20:.2f} MiB in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
