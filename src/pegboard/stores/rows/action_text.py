"""Switches that were set together as JSON text (P2)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pegboard.ports import SwitchChange


def changes_to_text(changes: Sequence[SwitchChange]) -> str:
    """Return the changes of an action as JSON text."""
    return json.dumps([(one.agent, one.name, one.value, one.expected) for one in changes])


def changes_from_text(text: str) -> list[SwitchChange]:
    """Return the changes that :func:`changes_to_text` was given."""
    return [
        SwitchChange(agent=agent, name=name, value=value, expected=expected)
        for agent, name, value, expected in json.loads(text)
    ]
