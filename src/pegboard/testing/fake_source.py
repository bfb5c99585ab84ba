"""A source whose plugins a test defines: as Python functions, or as results that are given."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import EMPTY, CallResult, Frozen, JsonObject, Manifest, Tool, variant_key
from pegboard.errors import PegboardError, ToolUnavailableError
from pegboard.ports import (
    CallContext,
    Client,
    ConnectionState,
    Fingerprint,
    HookAnswer,
    PrintedLine,
    RefusedAccess,
    ServerActivity,
    TakeList,
)
from pegboard.ports.schedules import DueSchedule
from pegboard.sources.signatures import (
    BuiltPlugin,
    as_result,
    build_plugin,
    constructs,
    end_free_threads,
    failure,
    run_tool,
)
from pegboard.testing.fake_logins import FakeLogins
from pegboard.testing.fake_resources import FakeResources

ANY_ARGUMENTS: Final[JsonObject] = Frozen({"type": "object"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Canned:
    """A tool with given results: one for each call, the last one for every further call.

    A ``CallResult`` is returned as it is and any other value as a function's would be. A
    ``PegboardError`` is raised, as a source raises where nothing could run; any other exception
    becomes an error result, as the tool's own.
    """

    results: Sequence[object]
    description: str = ""
    input_schema: JsonObject = ANY_ARGUMENTS
    annotations: JsonObject = field(default=EMPTY)

    def tool(self, plugin: str, name: str) -> Tool:
        """Return the tool as the catalog knows it."""
        return Tool(
            plugin=plugin,
            name=name,
            description=self.description,
            input_schema=self.input_schema,
            annotations=self.annotations,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that reached a source: the tool, its arguments, and on whose behalf."""

    plugin: str
    tool: str
    arguments: JsonObject
    overrides: JsonObject
    context: CallContext


class FakeSource:
    """A source that brings in plugins by name, wherever the configuration says that they come from.

    >>> source = FakeSource({"github": {"create_issue": {"number": 7}, "close_issue": TimeoutError("no answer")}})
    >>> source.calls
    []

    ``calls`` is the log of all calls in order, ``restarted`` the names of what was restarted, ``needed`` of what a load
    or a call has waited for, ``runs`` what was run of the schedules that are ``due``, each with why that failed;
    ``resources`` is what the plugins offer besides tools.
    """

    def __init__(
        self,
        plugins: Mapping[str, object],
        *,
        resources: FakeResources | None = None,
        logins: FakeLogins | None = None,
    ) -> None:
        """Define the plugins.

        Args:
            plugins: By name: what ``python:`` names in a configuration (a list of functions, a
                module, a class, an object), or a mapping of tool names to functions, to
                :class:`Canned`, or to the one result of every call.
            resources: What the plugins offer besides tools; nothing without it.
            logins: Which plugins want a login, and who has one; none wants one without it.
        """
        self.calls: list[ToolCall] = []
        self.restarted: list[str] = []
        self.needed: list[str] = []
        self.due: list[DueSchedule] = []
        self.runs: list[tuple[DueSchedule, str]] = []
        self.resources = resources or FakeResources()
        self.logins = logins or FakeLogins()
        self._plugins = dict(plugins)
        self._faults: dict[str, ToolUnavailableError] = {}
        self._built: dict[tuple[str, str, str], BuiltPlugin] = {}
        self._used: dict[tuple[str, str], int] = {}
        self._callbacks: list[Callable[[str], None]] = []
        self._lines: dict[str, list[PrintedLine]] = {}

    def change(self, plugin: str, tools: object) -> None:
        """Give a plugin other tools, and report the change as a server does with ``list_changed``.

        Args:
            plugin: Its name.
            tools: As in the constructor.
        """
        self._plugins[plugin] = tools
        self._built = {key: made for key, made in self._built.items() if key[0] != plugin}
        for callback in tuple(self._callbacks):
            callback(plugin)

    def fail(self, plugin: str, message: str | None) -> None:
        """Make a plugin unavailable, or available again.

        Args:
            plugin: Its name.
            message: Why it cannot run; None ends it.
        """
        self._faults.pop(plugin, None)
        if message is not None:
            self._faults[plugin] = ToolUnavailableError(message)

    def prints(self, plugin: str, text: str) -> None:
        """Let a plugin print a line on its standard error.

        Args:
            plugin: Its name.
            text: The line.
        """
        line = PrintedLine(at=time.time(), kind="stderr", text=text, scope="shared")
        self._lines.setdefault(plugin, []).append(line)

    def plan(self, due: DueSchedule) -> None:
        """Let a schedule be due, once.

        Args:
            due: The schedule.
        """
        self.due.append(due)

    async def claim_due(self, spec: PluginSpec) -> DueSchedule | None:
        """Take a schedule of a plugin that is due, or None."""
        found = next((due for due in self.due if due.plugin == spec.name), None)
        if found is not None:
            self.due.remove(found)
        return found

    async def note_run(self, due: DueSchedule, error: str) -> None:
        """Keep that a schedule was run in ``runs``."""
        self.runs.append((due, error))

    def connections(self, spec: PluginSpec) -> Sequence[ConnectionState]:
        """Return the one connection of a plugin, which is down after :meth:`fail`."""
        fault = self._faults.get(spec.name)
        error = fault.message if fault is not None else ""
        starts = 1 + self.restarted.count(spec.name)
        return (ConnectionState(scope="shared", state="down" if error else "up", starts=starts, error=error),)

    def printed(self, spec: PluginSpec) -> Sequence[PrintedLine]:
        """Return what a plugin printed by :meth:`prints`."""
        return tuple(self._lines.get(spec.name, ()))

    def refused(self, spec: PluginSpec) -> Sequence[RefusedAccess]:  # noqa: ARG002
        """Return nothing: no plugin is confined."""
        return ()

    def activity(self) -> ServerActivity:
        """Return counts that change with what :meth:`fail`, :meth:`restart` and :meth:`prints` do."""
        lines = sum(len(printed) for printed in self._lines.values())
        return ServerActivity(states=len(self._faults) + len(self.restarted), lines=lines)

    def on_read(self, take: TakeList) -> None:
        """Hand over no list: no connection of this source is new."""

    def note_compared(self, spec: PluginSpec, manifest: Manifest) -> None:
        """Do nothing: calls run at once."""

    def note_stored(self, spec: PluginSpec, manifest: Manifest) -> None:
        """Do nothing: nothing is reached."""

    def need(self, plugin: str) -> None:
        """Record that a request waits for a plugin."""
        self.needed.append(plugin)

    async def restart(self, spec: PluginSpec) -> None:
        """Record that a plugin was restarted."""
        self.restarted.append(spec.name)

    @property
    def offering(self) -> FakeResources:
        """What the plugins offer besides tools."""
        return self.resources

    def handles(self, spec: PluginSpec) -> bool:
        """Return whether a plugin of this name is defined."""
        return spec.name in self._plugins

    def fingerprint(self, spec: PluginSpec) -> str:  # noqa: ARG002
        """Return nothing: no manifest is stored."""
        return ""

    def code_fingerprint(self, spec: PluginSpec, overrides: JsonObject) -> Fingerprint | None:  # noqa: ARG002
        """Return nothing: no manifest is stored."""
        return None

    async def describe(self, spec: PluginSpec, overrides: JsonObject) -> Manifest:
        """Return the tools of a plugin, with the schemas of the functions' signatures.

        Raises:
            ToolUnavailableError: After :meth:`fail`, or where a target is nothing that ``python:`` takes.
        """
        if spec.name in self._faults:
            raise self._faults[spec.name]
        made, canned = self._functions_of(spec.name, overrides)
        manifest = made.manifest(spec.name)
        given = tuple(tool.tool(spec.name, name) for name, tool in canned.items())
        return replace(manifest, tools=manifest.tools + given, offers=self.resources.capabilities(spec.name))

    async def call(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> CallResult:
        """Record a call, and return the function's or the given result.

        Raises:
            ToolUnavailableError: After :meth:`fail`, or where it stands among the results.
            NeedsLoginError: It wants a login, and the owner of the call has none.
            PegboardError: Another one that stands among the results.
        """
        self.calls.append(
            ToolCall(plugin=spec.name, tool=tool.name, arguments=arguments, overrides=overrides, context=context)
        )
        if spec.name in self._faults:
            raise self._faults[spec.name]
        self.logins.require(spec.name, context.owner)
        made, canned = self._functions_of(spec.name, overrides, context.scope)
        if tool.name in canned:
            return self._next_result(spec.name, tool.name, canned[tool.name])
        if tool.name not in made.tools:
            raise ToolUnavailableError(f"plugin '{spec.name}' has no tool '{tool.name}' any more.")
        return await run_tool(made.tools[tool.name], arguments, principal=context.principal)

    async def ask_hooks(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> HookAnswer:
        """Return what guard and approval hook of a function say to a call; given results have none."""
        made, canned = self._functions_of(spec.name, overrides, context.scope)
        if tool.name in canned:
            return HookAnswer()
        return await made.ask_hooks(spec.name, tool.name, arguments, context)

    async def holds(
        self, spec: PluginSpec, overrides: JsonObject, condition: str, *given: object, scope: str = ""
    ) -> object:
        """Return what a predicate in the code of a plugin answers.

        Raises:
            ToolUnavailableError: There is no such predicate.
        """
        predicate = self._functions_of(spec.name, overrides, scope)[0].predicate(condition)
        if predicate is None:
            raise ToolUnavailableError(f"plugin '{spec.name}' has no condition '{condition}'.")
        answer = predicate(*given)
        return await answer if inspect.isawaitable(answer) else answer

    async def end_scope(self, scope: str) -> None:
        """Close what classes and factories made for a scope."""
        for key in [key for key in self._built if scope and key[2] == scope]:
            await self._built.pop(key).aclose()

    def on_changed(self, callback: Callable[[str], None]) -> None:
        """Call back with the name of a plugin after :meth:`change`."""
        self._callbacks.append(callback)

    def under_way(self, spec: PluginSpec, overrides: JsonObject) -> str:  # noqa: ARG002 - as the port has it
        """Return nothing: it runs no code of a plugin."""
        return ""

    def expect_client(self) -> None:
        """Do nothing: it asks clients during calls alone."""

    def expect_clients_of_user(self) -> None:
        """Do nothing, as :meth:`expect_client`."""

    def introduce_client(self, name: str, capabilities: Mapping[str, Any], *, modern: bool) -> None:
        """Do nothing, as :meth:`expect_client`."""

    def meet_client(self, name: str, client: Client | None) -> None:
        """Do nothing, as :meth:`expect_client`."""

    def forget_client(self, name: str) -> None:
        """Do nothing, as :meth:`expect_client`."""

    def tell_servers(self, name: str, method: str, params: JsonObject) -> None:
        """Do nothing, as :meth:`expect_client`."""

    async def aclose(self) -> None:
        """Close what classes and factories made."""
        for made in self._built.values():
            await made.aclose()
        self._built.clear()
        end_free_threads()

    def _functions_of(
        self, plugin: str, overrides: JsonObject, scope: str = ""
    ) -> tuple[BuiltPlugin, Mapping[str, Canned]]:
        """Return the functions of a plugin, for a scope where they are constructed, and what results are given."""
        target = self._plugins[plugin]
        entries = _entries(target)
        canned = {name: _as_canned(value) for name, value in entries.items() if not _is_function(value)}
        key = (plugin, variant_key(overrides), scope if constructs(target, overrides) else "")
        if key not in self._built:
            functions = {name: value for name, value in entries.items() if _is_function(value)}
            only_canned = bool(entries) and not functions
            self._built[key] = (
                BuiltPlugin() if only_canned else build_plugin(functions or target, overrides, plugin=plugin)
            )
        return self._built[key], canned

    def _next_result(self, plugin: str, tool: str, canned: Canned) -> CallResult:
        number = self._used[plugin, tool] = self._used.get((plugin, tool), 0) + 1
        result = canned.results[min(number, len(canned.results)) - 1]
        match result:
            case PegboardError():
                raise result
            case BaseException():
                return failure(result)
            case _:
                return as_result(result)


def _entries(target: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", target) if isinstance(target, Mapping) else EMPTY


def _as_canned(value: object) -> Canned:
    return value if isinstance(value, Canned) else Canned(results=(value,))


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)
