"""Approvals as JSON text (A2)."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from pegboard.core.access.approvals.approval import Approval, Binding
from pegboard.core.model.tools import Frozen


def to_json(approval: Approval) -> str:
    """Return an approval as JSON text."""
    document: dict[str, Any] = {part.name: getattr(approval, part.name) for part in fields(Approval)}
    document["binding"] = {part.name: getattr(approval.binding, part.name) for part in fields(Binding)}
    return json.dumps(document, separators=(",", ":"))


def from_json(text: str) -> Approval | None:
    """Return the approval that :func:`to_json` was given, or None where it cannot be read: then it does not count."""
    try:
        document: dict[str, Any] = json.loads(text)
        known: dict[str, Any] = {part.name: document[part.name] for part in fields(Approval) if part.name in document}
        known["arguments"], known["fields"] = Frozen(known["arguments"]), Frozen(known["fields"])
        known["binding"] = Binding(**known["binding"])
        return Approval(**known)
    except (ValueError, TypeError, KeyError):
        return None
