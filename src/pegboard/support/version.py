"""The version of this package and the commit that it was made from, apart from everything that can be imported."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # every thin client imports this: nothing here may take long to import
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Final

__version__ = "0.1.0"

COMMIT_FILE: Final = "commit.txt"
"""What the build writes into the package: the commit, on one line."""
_PATIENCE: Final = 5.0
"""How long git may take, in seconds."""


def full_version() -> str:
    """Return the version with its commit, as far as that is known: ``0.1.0 (1a2b3c4d5e6f)``."""
    found = _commit()
    return f"{__version__} ({found})" if found else __version__


def commit_of(checkout: Path) -> str:
    """Return the commit of a git checkout, with ``-dirty`` behind it where files differ; empty where there is none."""
    if not (checkout / ".git").exists():
        return ""
    import subprocess

    git = ["git", "-C", str(checkout), "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]
    env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        ran = subprocess.run(git, capture_output=True, text=True, check=False, timeout=_PATIENCE, env=env)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""


def _commit() -> str:
    from pathlib import Path

    package = Path(__file__).resolve().parents[1]
    try:
        return (package / COMMIT_FILE).read_text("utf-8").strip()
    except OSError:
        return commit_of(package.parents[1]) if package.parent.name == "src" else ""
