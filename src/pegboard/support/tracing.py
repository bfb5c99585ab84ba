"""Whether this process traces, asked of OpenTelemetry's API where someone has imported it, which nothing here does."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Final

from pegboard.support.version import __version__

_API: Final = "opentelemetry.trace"
_CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_YES: Final = frozenset({"true", "1", "span_only", "span_and_event"})


def tracer_provider() -> Any | None:
    """Return the tracer provider of the process, or None where none is configured: then nothing is to be traced.

    Whoever configures one has imported the API, so that one that is not imported costs a look into a dictionary.
    """
    trace: Any = sys.modules.get(_API)
    if trace is None or not hasattr(trace, "ProxyTracerProvider"):
        return None
    provider: object = trace.get_tracer_provider()
    kind = type(provider)  # each call asks: looking through what a class comes from would take longer
    return None if kind is trace.ProxyTracerProvider or kind is trace.NoOpTracerProvider else provider


class Tracing:
    """The tracer of Pegboard, made once for each provider."""

    def __init__(self) -> None:
        self._provider: Any = None
        self._tracer: Any = None
        self._asked_at = 0.0

    def tracer(self, since: float | None = None) -> Any | None:
        """Return the tracer, or None where the process traces nothing.

        Args:
            since: what OpenTelemetry said after that (``time.monotonic()``) is enough; None asks it again.
        """
        if since is not None and since < self._asked_at:
            return self._tracer
        self._asked_at = time.monotonic()
        provider = tracer_provider()
        if provider is not self._provider:
            self._provider = provider
            self._tracer = None if provider is None else provider.get_tracer("pegboard", __version__)
        return self._tracer


tracing: Final = Tracing()


def captures_content() -> bool:
    """Return whether the user wants arguments and results in spans, by the variable of the GenAI conventions."""
    return os.environ.get(_CONTENT, "").strip().lower() in _YES
