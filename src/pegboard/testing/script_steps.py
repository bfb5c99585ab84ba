"""The steps of a scripted client."""

from __future__ import annotations

from dataclasses import dataclass, field

from pegboard.core.model.tools import EMPTY, JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialize:
    """The opening: ``protocolVersion``, ``capabilities``, ``instructions``.

    In the handshake era they come with the connection, in the other from ``server/discover``.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTools:
    """A request for the whole list of tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTool:
    """A call of a tool; ``meta`` is the request's ``_meta``."""

    name: str
    arguments: JsonObject = field(default=EMPTY)
    meta: JsonObject = field(default=EMPTY)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListResources:
    """A request for the list of resources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadResource:
    """A read of a resource."""

    uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPrompts:
    """A request for the list of prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GetPrompt:
    """A request for a prompt."""

    name: str
    arguments: JsonObject = field(default=EMPTY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribe:
    """The subscription of the 2026-07-28 era to changes of lists and of resources, until the client closes."""

    tools: bool = True
    resources: bool = False
    prompts: bool = False
    uris: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A wait for a notification of a method that no earlier step has waited for; at most ``within`` seconds."""

    method: str
    within: float = 10.0


ScriptStep = (
    Initialize | ListTools | CallTool | ListResources | ReadResource | ListPrompts | GetPrompt | Subscribe | Received
)
"""What a scripted client does next."""
