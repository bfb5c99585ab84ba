"""What passes between Pegboard and the process of a plugin: calls of tools, and what goes along in their ``_meta``."""

from __future__ import annotations

from typing import Final, Literal

RequestKind = Literal["describe", "call", "hooks", "holds", "hook", "prepare"]
"""What a request asks for: the manifest, a call of a tool, what the hooks of a tool say to a call, what a predicate of
the plugin's answers, what a function of the configuration answers, that such a function is imported."""

SETTINGS: Final = "PEGBOARD_PLUGIN"
"""The variable with which a process learns what it is to construct; it takes it away before anything is imported."""
ASKED: Final = "pegboard/asked"
"""The key in the ``_meta`` of a request: what is asked, and on whose behalf."""
ANSWERED: Final = "pegboard/answered"
"""The key in the ``_meta`` of an answer: what it is beside the result of a call."""
