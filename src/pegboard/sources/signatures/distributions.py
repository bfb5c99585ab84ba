"""Which packages bring which modules, and whether they are there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_DISTRIBUTIONS: Final[Mapping[str, str]] = {
    "MySQLdb": "mysqlclient",
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "git": "GitPython",
    "psycopg": "psycopg[binary]",
    "psycopg2": "psycopg2-binary",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}


def distribution_of(module: str) -> str:
    """Return what to install for a module, as it is written behind ``pip install``."""
    top = module.partition(".")[0]
    return _DISTRIBUTIONS.get(top, top)


def is_installed(requirement: str) -> bool:
    """Return whether the package of a requirement is installed, in whatever version.

    >>> is_installed("pydantic[email]>=2")
    True
    """
    from importlib.metadata import PackageNotFoundError, distribution  # takes longer to import than all of this folder

    try:
        distribution(re.split(r"[^\w.-]", requirement, maxsplit=1)[0])
    except (PackageNotFoundError, ValueError):
        return False
    return True
