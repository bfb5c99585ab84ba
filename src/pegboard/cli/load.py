"""`pegboard load` and `pegboard unload`: what is loaded in a session, in the fewest words."""

from __future__ import annotations

from collections.abc import Callable

from pegboard.cli.session_changes import load, unload

COMMANDS: dict[str, tuple[Callable[..., int], str]] = {
    "load": (load, "pegboard load git__git_log"),
    "unload": (unload, "pegboard unload git__git_log"),
}
