"""The licences that the packages name in their own metadata; one that names no permissive licence is not read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

PERMISSIVE = {
    *("Apache-2.0", "MIT", "MIT-CMU", "BSD", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "ISC", "PSF", "UPL", "Zlib"),
    *("CC0-1.0", "LicenseRef-Biopython-License-Agreement"),
}
_SPELT = {
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT license": "MIT",
    "Python Software Foundation License": "PSF",
    "Universal Permissive License (UPL)": "UPL",
}
"""How classifiers and free text spell them."""


def impermissible(folder: Path) -> list[str]:
    """Return the packages of a folder that name no licence, or one that is not permissive."""
    return [
        f"{name} ({', '.join(licences) or 'none named'})"
        for name, licences in named(folder)
        if not licences or not PERMISSIVE.issuperset(licences)
    ]


def named(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Return each package of a folder with the licences that its metadata names."""
    for path in sorted(folder.glob("*.dist-info/METADATA")):
        metadata = HeaderParser().parsestr(path.read_text("utf-8", "replace"))
        yield metadata["Name"], _licences(metadata)


def _licences(metadata: Message) -> list[str]:
    expression = metadata["License-Expression"]
    if expression:
        return re.split(r" AND ", expression)
    classifiers = [text.split(" :: ") for text in metadata.get_all("Classifier", []) if text.startswith("License")]
    said = [parts[-1] for parts in classifiers if len(parts) > 2] or [metadata["License"] or ""]
    return sorted({_SPELT.get(text, text) for text in said if text})


__all__ = ["impermissible", "named"]
