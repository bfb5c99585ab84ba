"""What the providers' models can do with tools that join within a conversation, and the host for each (D4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pegboard.core.model.delivery import Host

Reveals = Literal["arrays", "deferred", "additions"]
"""``arrays``: tools join by a new list alone; ``deferred``: entries of the list are shown where the history refers to
them; ``additions``: the history adds tools, by reference or with their definitions."""

AS_OF: Final = "2026-11-24"
"""The day of the table: models change by the month."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFamily:
    """Models of one provider whose names begin alike, and what they take."""

    provider: str
    prefixes: tuple[str, ...]
    reveals: Reveals


MODELS: Final = (
    ModelFamily(
        provider="anthropic",
        prefixes=(
            "claude-fable-5",
            "claude-mythos-5",
            "claude-opus-4-8",
            "claude-opus-5",
            "claude-sonnet-5-5",
            "claude-haiku-5-5",
        ),
        reveals="additions",
    ),
    ModelFamily(
        provider="anthropic",
        prefixes=(
            "claude-sonnet-4-5",
            "claude-sonnet-4-6",
            "claude-sonnet-5",
            "claude-opus-4-5",
            "claude-opus-4-6",
            "claude-opus-4-7",
            "claude-haiku-4-5",
        ),
        reveals="deferred",
    ),
    ModelFamily(provider="anthropic", prefixes=("claude-",), reveals="arrays"),
    ModelFamily(
        provider="responses", prefixes=("gpt-4o", "gpt-4.1", "gpt-5", "gpt-6", "o3", "o4"), reveals="additions"
    ),
    ModelFamily(provider="chat", prefixes=("gpt-", "o1", "o3", "o4"), reveals="arrays"),
    ModelFamily(provider="google", prefixes=("gemini-",), reveals="arrays"),
)
"""The first that fits counts."""

_PROVIDERS: Final = {
    "openai-responses": "responses",
    "openai": "chat",
    "openai-chat": "chat",
    "google-gla": "google",
    "gemini": "google",
}


def reveals_of(model: str) -> Reveals | None:
    """Return what a model takes, or None where it is not known.

    Args:
        model: its name, with the provider or the form in front: ``anthropic:claude-opus-5``, ``responses:gpt-5.4``.
    """
    provider, named, name = model.casefold().rpartition(":")
    provider = _PROVIDERS.get(provider, provider)
    if not named:
        provider = "anthropic" if name.startswith("claude-") else ""
    families = (family for family in MODELS if family.provider == provider and name.startswith(family.prefixes))
    family = next(families, None)
    return family.reveals if family is not None else None


MOST_TOOLS: Final[Mapping[str, int]] = {"responses": 128, "chat": 128}
"""How many tools a request has at most, by the provider; one that is not here has no such limit that is known."""


def most_tools(model: str) -> int | None:
    """Return how many tools a request to a model has at most, or None; of a model that is not named the fewest.

    Args:
        model: its name with the provider in front, or "".

    >>> most_tools("openai:gpt-5.4"), most_tools("anthropic:claude-opus-5"), most_tools("")
    (128, None, 128)
    """
    provider = model.casefold().rpartition(":")[0]
    return MOST_TOOLS.get(_PROVIDERS.get(provider, provider)) if model else min(MOST_TOOLS.values())


_REASONING: Final = ("gpt-5", "gpt-6", "o1", "o3", "o4")


def reasons(model: str) -> bool:
    """Return whether a model of OpenAI's Responses reasons, by its name: then its reasoning goes back to it.

    >>> reasons("gpt-5.4"), reasons("gpt-4.1"), reasons("gpt-5-chat-latest")
    (True, False, False)
    """
    name = model.casefold().rpartition("/")[2]
    return name.startswith(_REASONING) and "-chat" not in name


def host_for(model: str) -> Host:
    """Return the host under which a model's tools never cost more than without Pegboard (D4).

    Args:
        model: its name, with the provider or the form in front: ``anthropic:claude-opus-5``, ``responses:gpt-5.4``,
            ``chat:gpt-5.4``. OpenAI's names alone do not tell the form.

    Returns:
        ``native`` where the history can add tools; whoever sends the requests has to do so. Else, and for models that
        are not known, ``result``: the list of tools stays unchanged, and loads are called through ``call_tool``.

    >>> host_for("anthropic:claude-opus-5").delivery
    ('native',)
    >>> host_for("chat:gpt-5.4").delivery
    ('result',)
    """
    return Host(delivery=("native",) if reveals_of(model) == "additions" else ("result",))
