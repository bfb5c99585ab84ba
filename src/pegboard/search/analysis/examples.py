"""What people ask of tools that many servers have, in their own words.

The requests stand in `example_requests.txt`, a line for each name of a tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from pegboard.search.analysis.words import name_text

FILE: Final = Path(__file__).with_name("example_requests.txt")


@cache
def example_requests() -> Mapping[str, tuple[str, ...]]:
    """Return the requests by the name of the tool, as :func:`pegboard.search.analysis.words.name_text` has it."""
    found: dict[str, tuple[str, ...]] = {}
    for line in FILE.read_text("utf-8").splitlines():
        name, _, requests = line.partition(": ")
        if not line.startswith("#"):
            key = name_text((name,))
            found[key] = (*found.get(key, ()), *requests.split("; "))
    return found
