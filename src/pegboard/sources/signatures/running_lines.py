"""Which line of a plugin's code a thread runs."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from types import FrameType
from typing import Final

_OURS: Final = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "")  # noqa: PTH118, PTH120
_STANDARD: Final = os.path.join(sysconfig.get_path("stdlib"), "")  # noqa: PTH118
_INSTALLED: Final = os.path.join(sysconfig.get_path("purelib"), "")  # noqa: PTH118


def running_line(thread: int, folder: str | None) -> str:
    """Return the innermost line that a thread runs of a folder, else of an installed package; else nothing."""
    frames = list(_frames(sys._current_frames().get(thread)))  # noqa: SLF001 - it is documented
    own = (frame for frame in frames if folder is not None and frame.f_code.co_filename.startswith(folder + os.sep))
    others = (frame for frame in frames if _is_of_plugin(frame.f_code.co_filename))
    frame = next(own, None) or next(others, None)
    if frame is None:
        return ""
    path = frame.f_code.co_filename
    shown = os.path.relpath(path, folder) if folder is not None and path.startswith(folder + os.sep) else path
    return f"it is at {shown}:{frame.f_lineno}"


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and those that it was called from."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_of_plugin(path: str) -> bool:
    standard = path.startswith(_STANDARD) and not path.startswith(_INSTALLED)
    return os.path.isabs(path) and not standard and not path.startswith(_OURS)  # noqa: PTH117
