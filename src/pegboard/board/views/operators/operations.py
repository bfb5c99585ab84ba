"""What operators see and do, over every session and agent of a board."""

from __future__ import annotations

from pegboard.board.services import Services


class Operations:
    """What operators see and do, for adapters; each subject has a file of its own beside this one."""

    def __init__(self, services: Services) -> None:
        self._services = services
