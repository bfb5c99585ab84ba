"""Run benchmarks: ``python -m benchmarks [NAME …] [--json]``, or one of the programs with options of its own."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile

from benchmarks import (
    check,
    confinement,
    conversations,
    counting,
    fast_path,
    frameworks,
    growing,
    hints,
    http_halves,
    imports,
    listing,
    loadouts,
    objects,
    path,
    plugin_process,
    resolve,
    spans,
    start,
    upstream,
)

KNOWN = {
    "imports": imports.measure,
    "listing": listing.measure,
    "resolve": resolve.measure,
    "start": start.measure,
    "loadouts": loadouts.measure,
    "check": check.measure,
    "confinement": confinement.measure,
    "conversations": conversations.measure,
    "counting": counting.measure,
    "hints": hints.measure,
    "upstream": upstream.measure,
    "path": path.measure,
    "fast": fast_path.measure,
    "http_halves": http_halves.measure,
    "growing": growing.measure,
    "frameworks": frameworks.measure,
    "objects": objects.measure,
    "plugin_process": plugin_process.measure,
    "spans": spans.measure,
}


PROGRAMS = (
    "answers",
    "anticipated",
    "approvals",
    "bill",
    "bystanders",
    "calls",
    "coding_agent",
    "command_line",
    "console",
    "daemon",
    "daemon_kills",
    "dialogues",
    "everyday",
    "gateway",
    "install",
    "keystrokes",
    "logins",
    "pins",
    "reference_servers",
    "requests",
    "retrieval",
    "scale",
    "sizing",
    "soak",
    "stores",
)
"""They take long, install or start much, and run only when they are named."""


def main() -> int:
    if sys.argv[1:2] and sys.argv[1] in PROGRAMS:
        program = importlib.import_module(f"benchmarks.{sys.argv[1]}")
        return program.main(sys.argv[2:])
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, epilog=f"programs: {', '.join(PROGRAMS)}"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(KNOWN)}")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in KNOWN]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}: choose from {', '.join(KNOWN)}")
    results: dict[str, list[dict[str, object]]] = {}
    for name in options.names or KNOWN:
        print(f"running {name} …", file=sys.stderr)
        results[name] = KNOWN[name]()
        if not options.json:
            table(name, results[name])
    if options.json:
        print(json.dumps(results, indent=2))
    return 0


def table(name: str, rows: list[dict[str, object]]) -> None:
    print(f"\n## {name}\n")
    heads = list(rows[0])
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(str(row[head]) for head in heads) + " |")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder  # what is confined leaves a token there that gateways demand
        sys.exit(main())
