"""The addresses under ``/api``."""

from __future__ import annotations

from typing import Final

from pegboard.console.context import Page

ENDPOINTS: Final[tuple[Page, ...]] = ()
