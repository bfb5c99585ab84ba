"""Keep notes: a plugin of two functions."""

from collections.abc import Mapping
from typing import Any

from pegboard import tool

_NOTES: list[str] = ["milk", "bread"]


def _no_secrets(principal: str, arguments: Mapping[str, Any]) -> str | None:
    """Return why a note is refused, or None: this runs before the tool does."""
    return f"{principal} may not note passwords" if "password" in arguments["text"].lower() else None


@tool(read_only=True)
def list_notes() -> list[str]:
    """List every note."""
    return _NOTES


@tool(requires=["notes/list_notes"], guard=_no_secrets)
def add_note(text: str, urgent: bool = False) -> str:
    """Add a note.

    Args:
        text: What to remember.
        urgent: Whether it goes to the top.
    """
    _NOTES.insert(0 if urgent else len(_NOTES), text)
    return f"There are {len(_NOTES)} notes now."
