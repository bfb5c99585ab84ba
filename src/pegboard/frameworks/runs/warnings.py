"""Warnings of what a framework does not tell, or cannot do."""

from __future__ import annotations

import logging
from functools import cache
from typing import Final

_LOG: Final = logging.getLogger("pegboard.frameworks")


@cache
def warn_once(text: str) -> None:
    """Log a warning the first time that it is given in this process."""
    _LOG.warning(text)
