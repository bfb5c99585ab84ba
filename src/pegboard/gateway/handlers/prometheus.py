"""Counters and gauges of the gateway in the text format of Prometheus (G1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from pegboard.core.model.naming import one_line
from pegboard.gateway.protocol.board_port import BoardPort

TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_EVENTS: Final = {
    "called": ("pegboard_calls_total", "Calls of tools, by outcome."),
    "loaded": ("pegboard_loads_total", "Toolkits, plugins and tools loaded."),
    "unloaded": ("pegboard_unloads_total", "Toolkits, plugins and tools unloaded on request."),
    "evicted": ("pegboard_evictions_total", "Toolkits, plugins and tools unloaded at the end of a turn."),
    "denied": ("pegboard_refusals_total", "Calls and changes that were refused, by reason."),
    "turn_ended": ("pegboard_turns_total", "Turns that ended."),
}
_BY_OUTCOME: Final = frozenset({"called", "denied"})
_STATES: Final = ("idle", "starting", "up", "down", "backing_off")


class PrometheusMetrics:
    """The counts of a board's events; no label names a session, a principal or an argument."""

    def __init__(self, board: BoardPort) -> None:
        self._board = board
        self._changes = 0
        self.routes: Counter[str] = Counter({"direct": 0, "sdk": 0})
        """How many calls came in by each route."""
        self.asked: Counter[str] = Counter({"read": 0, "prompt": 0})
        """How many resources were read, and prompts returned."""

    def start(self) -> list[Callable[[], None]]:
        """Begin to count changes of the catalog: the first lists are none. Returns what ends it."""
        return [self._board.on("catalog_changed", self._count_change)]

    def _count_change(self, _: Mapping[str, Any]) -> None:
        self._changes += 1

    def text(self) -> str:
        """Return every metric in the text format."""
        lines: list[str] = []
        for event, (name, about) in _EVENTS.items():
            samples = {key[1:]: count for key, count in self._board.services.metrics.totals.items() if key[0] == event}
            lines += _family(name, "counter", about, (_labels_of(event, key, n) for key, n in sorted(samples.items())))
        changes: list[tuple[dict[str, str], int]] = [({}, self._changes)] if self._changes else []
        lines += _family("pegboard_catalog_changes_total", "counter", "Changes of what plugins offer.", changes)
        routes = (({"route": route}, count) for route, count in self.routes.items())
        lines += _family("pegboard_requests_total", "counter", "Calls that came in, by route.", routes)
        asked = (({"kind": kind}, count) for kind, count in self.asked.items())
        lines += _family("pegboard_reads_total", "counter", "Resources read and prompts returned.", asked)
        lines += _family("pegboard_upstreams", "gauge", "Connections to servers, by their state.", self._upstreams())
        return "\n".join(lines) + "\n"

    def _upstreams(self) -> Iterable[tuple[dict[str, str], int]]:
        states = Counter((str(found["name"]), str(found["state"])) for found in self._board.upstream_states())
        for name in dict.fromkeys(name for name, _ in states):
            for state in _STATES:
                yield {"server": name, "state": state}, states[name, state]


def _labels_of(event: str, key: tuple[str, str], count: int) -> tuple[dict[str, str], int]:
    agent, outcome = key
    labels = {"agent": agent} if agent else {}
    return ({**labels, "outcome": outcome} if event in _BY_OUTCOME else labels), count


def _family(name: str, kind: str, about: str, samples: Iterable[tuple[dict[str, str], int]]) -> list[str]:
    lines = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    for labels, value in samples:
        inside = ",".join(f'{label}="{_escape_label(text)}"' for label, text in labels.items())
        lines.append(f"{name}{{{inside}}} {value}" if inside else f"{name} {value}")
    return lines


def _escape_label(text: str) -> str:
    return one_line(text, limit=200).replace("\\", "\\\\").replace('"', '\\"')
