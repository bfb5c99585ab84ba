"""The extra ``mcp``, which servers, the gateway and its console need: whether it is installed. It is not imported."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pegboard.errors import PegboardError
from pegboard.support.installed import install_hint

PACKAGES: Final = (
    "mcp", "mcp_types", "cryptography", "httptools", "httpx2", "jinja2", "jwt", "markupsafe", "opentelemetry",
    "starlette", "uvicorn",
)  # fmt: skip
"""What the extra brings, as it is imported."""
AT_LEAST, BELOW = (2, 3), (3,)
"""The versions of mcp that fit: frameworks bring others, too."""


def missing_requirements() -> str:
    """Return what of the extra is not installed, or not in a version that fits; empty where all of it is.

    >>> missing_requirements()
    ''
    """
    spec = find_spec("mcp")
    if spec is None or spec.origin is None:
        return "mcp is not installed"
    beside = frozenset(os.listdir(Path(spec.origin).parents[1]))  # noqa: PTH208 - each start of the gateway waits for it
    absent = next((name for name in PACKAGES if name not in beside and find_spec(name) is None), None)
    if absent is not None:
        return f"{absent} is not installed"
    found = next((name for name in beside if name.startswith("mcp-") and name.endswith(".dist-info")), "")
    version = found.removeprefix("mcp-").removesuffix(".dist-info")
    if version and not AT_LEAST <= tuple(int(part) for part in version.split(".")[:2] if part.isdecimal()) < BELOW:
        return f"mcp {version} is installed, not {_dotted_version(AT_LEAST)} or newer below {_dotted_version(BELOW)}"
    return ""


def require(what: str) -> None:
    """Raise ``PegboardError`` where something is asked for that needs the extra, and it is missing."""
    if missing := missing_requirements():
        message = f"{what} needs the extra mcp: {missing}."
        raise PegboardError(message, code="mcp_missing", hint=install_hint(extra="mcp"))


def _dotted_version(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
