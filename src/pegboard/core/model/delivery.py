"""When and how a change reaches the model (D1, D2)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal, cast, get_args

from pegboard.core.model.agents import Activation
from pegboard.core.model.known_clients import ANY_CLIENT, KnownClient
from pegboard.errors import UsageError

Delivery = Literal["native", "result", "array"]
TakesEffect = Literal["next_step", "next_request", "native"]
RequestUnit = Literal["turn", "call"]
WAYS: Final[tuple[Delivery, ...]] = get_args(Delivery)
UNITS: Final[tuple[RequestUnit, ...]] = get_args(RequestUnit)

READ = 0.1
WRITE = 1.25
"""What a cached token costs to read and to write, where a plain one costs 1 (FIELD, mcp.md §4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """A host's prompt cache.

    Attributes:
        tokens: how many are cached behind the tool list.
        read: what a cached token costs to read, where a plain one costs 1.
        write: what a token costs to write into the cache.
    """

    tokens: int = 0
    read: float = READ
    write: float = WRITE

    def break_cost(self) -> float:
        """Return what a change of the tool list costs at once, in plain tokens (D3).

        Returns:
            Zero where nothing is cached.
        """
        return self.tokens * (self.write - self.read)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What a host can do with a change of tools (D1).

    Attributes:
        delivery: how a load can reach the model, the preferred way first: ``array`` (the tool list is sent again),
            ``result`` (the schema is in the load's answer, and ``call_tool`` runs it), ``native`` (the host
            reveals the tool in the history, where its provider takes that; the tool stands on the surface, and the
            answer of its load has no schema).
        cache: the prompt cache, or None.
        calls_through: whether a tool that is not on the list can be called through a meta-tool.
        context: how many tokens a request carries beside the tools, system text and conversation together: what a
            model call more has to read again. None takes what is cached, and 10,000 for what is loaded ahead.
        draws_ui: whether it draws the user interfaces of tools, which are then loaded as initial (G4).
        request: what counts as a request where loads take effect with the next one (D2): a ``turn``, which ends with
            ``end_turn``, or each ``call`` that comes in by itself, as in the gateway and the command.
        client: what it sends its model of tools: the bill says what was saved against that. By default everything.
    """

    delivery: tuple[Delivery, ...] = ("array",)
    cache: Cache | None = None
    calls_through: bool = False
    context: int | None = None
    draws_ui: bool = False
    request: RequestUnit = "turn"
    client: KnownClient = field(default=ANY_CLIENT, hash=False)

    def __post_init__(self) -> None:
        """Refuse what is no way, cache or unit; raises ``UsageError``."""
        ways = cast("object", self.delivery)
        if not isinstance(ways, tuple) or not ways or not all(way in WAYS for way in cast("tuple[object, ...]", ways)):
            hint = f"It is a tuple of {', '.join(WAYS)}: Host(delivery=('array',))."
            raise UsageError(f"`delivery` of a host is {ways!r:.100}.", hint=hint)
        if self.request not in UNITS:
            raise UsageError(f"`request` of a host is {self.request!r:.100}.", hint=f"It is {' or '.join(UNITS)}.")
        if self.cache is not None and not isinstance(cast("object", self.cache), Cache):
            raise UsageError(f"`cache` of a host is {self.cache!r:.100}.", hint="It is a Cache, or None.")

    @property
    def list_is_fixed(self) -> bool:
        """Return whether no load of a session changes the list of tools of its host, who calls through one (D1)."""
        return not self.calls_through and self.delivery == ("result",)

    @property
    def reveals(self) -> bool:
        """Return whether the host shows in the history what a session loads, by itself (D4)."""
        return not self.calls_through and choose(self) == "native"


FEW: Final = 5
"""Of a load that brings more tools than these most are never called."""


def revealed_at_once(host: Host) -> int | None:
    """Return how many tools of one load a host reveals at most, None for any number; more the answer defines (D1).

    A definition takes half of the tokens there, in every request to come. What is called of these tools is called
    through ``call_tool``, its arguments validated here and not by the provider: so a few are revealed.
    """
    return FEW if "result" in host.delivery else None


LIBRARY = Host()
COMMAND = Host(request="call")
GATEWAY = Host(delivery=("result",), calls_through=True, request="call")
GATEWAY_HANDSHAKE = Host(delivery=("array", "result"), calls_through=True, request="call")


def without_native(host: Host) -> Host:
    """Return a host for anyone who reveals nothing in a history: in place of ``native`` answers have the schemas."""
    ways = tuple(way for way in host.delivery if way != "native")
    return host if ways == host.delivery and ways else replace(host, delivery=ways or ("result",))


def choose(host: Host, schema_tokens: int = 0) -> Delivery:
    """Return how a load reaches the model: the cheapest way that the host has (D1).

    Native keeps the prefix and reveals the schema once. Array rewrites what is cached behind the
    list, so it is taken only where nothing is, or where the host has nothing else.
    """
    prices: dict[Delivery, float] = {
        "native": float(schema_tokens),
        "array": schema_tokens + (host.cache.break_cost() if host.cache is not None else 0.0),
        "result": schema_tokens + 1.0,
    }
    return min(host.delivery, key=lambda way: prices[way])


def list_is_cached(host: Host) -> bool:
    """Return whether a load changes a tool list that may be cached (D1); that of the caller through may be."""
    return choose(host) == "array" and (host.calls_through or (host.cache is not None and host.cache.tokens > 0))


def takes_effect(
    delivery: Delivery, *, activation: Activation | None, dialect: Activation | None = None
) -> TakesEffect:
    """Return when a change can be used; never in the same parallel batch (D2)."""
    if activation is not None:
        return activation
    if dialect is not None:
        return dialect
    return "native" if delivery == "native" else "next_step"
