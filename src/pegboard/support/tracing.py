"""Whether this process traces, asked of OpenTelemetry's API where somebody has imported it, which nothing here does."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Final

from pegboard.support.version import __version__

_API: Final = "opentelemetry.trace"
_CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_YES: Final = frozenset({"true", "1", "span_only", "span_and_event"})


_INTERVAL: Final = 1.0
"""For how many seconds it counts that the process does not trace: asking for each call would slow it."""
_asked_again_at = 0.0


def tracer_provider() -> Any | None:
    """Return the tracer provider of the process, or None where none was configured within the last second."""
    global _asked_again_at  # noqa: PLW0603 - one process, one provider
    trace: Any = sys.modules.get(_API)
    if trace is None or (now := time.monotonic()) < _asked_again_at or not hasattr(trace, "ProxyTracerProvider"):
        return None
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        _asked_again_at = now + _INTERVAL
        return None
    return provider


class Tracing:
    """The tracer of Pegboard, made once for each provider."""

    def __init__(self) -> None:
        self._provider: Any = None
        self._tracer: Any = None

    def tracer(self) -> Any | None:
        """Return the tracer, or None where the process traces nothing."""
        provider = tracer_provider()
        if provider is not self._provider:
            self._provider = provider
            self._tracer = None if provider is None else provider.get_tracer("pegboard", __version__)
        return self._tracer


tracing: Final = Tracing()


def captures_content() -> bool:
    """Return whether the user wants arguments and results in spans, by the variable of the GenAI conventions."""
    return os.environ.get(_CONTENT, "").strip().lower() in _YES
