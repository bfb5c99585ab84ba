"""Where plugins come from, and what runs their tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import CallResult, JsonObject, Manifest, Tool
from pegboard.ports.calls import CallContext


class Source(Protocol):
    """Bring plugins of one kind in, and run their tools."""

    def handles(self, spec: PluginSpec) -> bool:
        """Return whether this source brings in plugins of this kind."""
        ...

    def fingerprint(self, spec: PluginSpec) -> str:
        """Return a text that changes when a stored manifest no longer counts; "" for never stored."""
        ...

    async def describe(self, spec: PluginSpec, overrides: JsonObject) -> Manifest:
        """Start or construct the plugin and return what it offers.

        Raises ``ToolUnavailableError`` with what to do, or ``UpstreamError`` (P6).
        """
        ...

    async def call(
        self,
        spec: PluginSpec,
        overrides: JsonObject,
        tool: Tool,
        arguments: JsonObject,
        context: CallContext,
    ) -> CallResult:
        """Run one tool; arguments are validated already.

        A failure of the tool itself is a result with ``is_error``; raises ``ToolUnavailableError``
        or ``UpstreamError`` where nothing could run or nothing came back.
        """
        ...

    def on_changed(self, callback: Callable[[str], None]) -> None:
        """Call back with the name of a plugin whose tools have changed by themselves."""
        ...

    async def aclose(self) -> None:
        """Stop whatever was started."""
        ...
