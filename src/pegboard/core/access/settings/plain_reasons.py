"""Reasons as operators read them: plain values, without secrets."""

from __future__ import annotations

from dataclasses import dataclass

from pegboard.core.access.decisions import Reason
from pegboard.core.model.masking import Masker


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainReason:
    """One thing that speaks for or against a tool: a stable code, a sentence, and file and line where it has some."""

    code: str
    text: str
    where: str = ""


def plain_reason(reason: Reason, masker: Masker) -> PlainReason:
    """Return a reason as an operator reads it."""
    return PlainReason(code=reason.code, text=masker.text(reason.text), where=str(reason.where) if reason.where else "")
