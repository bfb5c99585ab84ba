"""What a provider's refusal of a request is about: a tool, what reveals tools, or the choice of tools."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

_REFUSED: Final = frozenset({400, 404, 422})
_FORM: Final = re.compile(
    r"tool_addition|tool_removal|tool_reference|additional_tools|defer_loading|anthropic-beta|\bbetas?\b|\brole\b"
)
_CHOICE: Final = re.compile(r"tool_choice|allowed_tools")
_PLACE: Final = re.compile(r"\btools[.\[](\d+)")
_ABOUT: Final = re.compile(r"""\\?['"](?:type|code|param|request_id)\\?['"]\s*:\s*\\?['"][^'"]*['"]""")
"""What the body of an answer says of itself: its words are those of tools by chance alone."""
_MOST: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """What was not taken, in the provider's words; ``names`` are the wire names of the tools that it speaks of."""

    kind: Literal["tool", "form", "choice", "other"]
    text: str
    names: tuple[str, ...] = ()


def rejection_of(error: object, sent: Sequence[str]) -> Rejection:
    """Return what a provider's error is about.

    Args:
        error: the client's exception, with its ``status_code``, or a text.
        sent: the wire names of the tools of the request, in order.
    """
    text = f"{error}"[:_MOST]
    status = getattr(error, "status_code", None)
    if status is not None and status not in _REFUSED:
        return Rejection(kind="other", text=text)
    if _FORM.search(text):
        return Rejection(kind="form", text=text)
    if _CHOICE.search(text):
        return Rejection(kind="choice", text=text)
    places = (int(place) for place in _PLACE.findall(text))
    named = [sent[place] for place in places if place < len(sent)]
    # A client may state the body of an answer, with its quotes escaped: what stands before a colon there is a key.
    said = _ABOUT.sub("", text)
    named += [name for name in sent if re.search(rf"['\"`]{re.escape(name)}\\?['\"`](?!\s*:)", said)]
    if named:
        return Rejection(kind="tool", text=text, names=tuple(dict.fromkeys(named)))
    return Rejection(kind="other", text=text)
