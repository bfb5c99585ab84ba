"""Sources of plugins of this process, with what they construct: one object for each scope, closed unused (G9).

A plugin is described by an object that no one has used; the first scope that calls takes that one over. Of what
constructs nothing, a module, a function or an object that is there already, there is one for all.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import asynccontextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from pegboard.core.model.specs import PLUGIN_TIMEOUT, PluginSpec
from pegboard.core.model.tools import CallResult, JsonObject, Manifest, Tool
from pegboard.errors import ToolUnavailableError, UpstreamTimeoutError
from pegboard.ports import CallContext, HookAnswer
from pegboard.sources.signatures.constructed import LocalPlugin
from pegboard.sources.signatures.plugins import Adopt, nothing_adopted
from pegboard.sources.signatures.running_lines import running_line
from pegboard.sources.signatures.thread_bound import ObjectThreads, module_threads
from pegboard.sources.stdout import plugin_output
from pegboard.support.tasks import call_later_detached, start_detached
from pegboard.support.threads import end_free_threads, run_in_thread

T = TypeVar("T")
log = logging.getLogger("pegboard")

BEGAN_ANEW: Final = "pegboard/began_anew"
"""The key in the ``meta`` of a result whose object was constructed again, since it was not used for a while."""
MOST_CLOSED: Final = 10_000
"""Of how many scopes of a plugin it is known that their object was closed; the oldest is forgotten first."""
MOST_MAKINGS: Final = 1_000
"""For how many plugins and overrides it is kept how they are brought in."""
_CLOSED_WITHIN: Final = 5.0
"""How long the end of an object is waited for, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginMaking:
    """How a plugin is brought in under its overrides.

    Attributes:
        key: tells it from others, and from itself under other overrides.
        plugin: its name.
        find: imports what the configuration names; blocks, and is asked once. With it comes whether it constructs.
        make: makes the plugin of what was found; blocks, and is asked for each scope where it constructs.
        timeout: how many seconds a call may take, and what makes the plugin.
        idle: after how many seconds without use an object is closed; None is what all have.
        folder: where its code lies, if that is known.
    """

    key: Hashable
    plugin: str
    find: Callable[[], tuple[object, bool]]
    make: Callable[[object], LocalPlugin]
    timeout: float = PLUGIN_TIMEOUT
    idle: float | None = None
    folder: str | None = None


@dataclass(slots=True, kw_only=True)
class _PluginInstance:
    """One object, as it is made or ready, and its use; ``again`` until an answer has said that it began again."""

    task: asyncio.Task[LocalPlugin]
    idle: float | None
    used_at: float
    in_use: int = 0
    anew: bool = False


@dataclass(slots=True, kw_only=True)
class _PluginInstances:
    """The objects of one plugin under its overrides, by scope.

    ``unassigned`` is one that no one has used; ``asked`` answers predicates for scopes without an object, and no call
    reaches it. ``closed`` are the scopes whose object was closed unused.
    """

    found: asyncio.Task[tuple[object, bool]]
    unassigned: asyncio.Task[LocalPlugin] | None = None
    asked: asyncio.Task[LocalPlugin] | None = None
    manifest: Manifest | None = None
    instances: dict[str, _PluginInstance] = field(default_factory=dict[str, _PluginInstance])
    closed: OrderedDict[str, None] = field(default_factory=OrderedDict[str, None])

    def note_closed(self, scope: str) -> None:
        """Note that the object of a scope was closed."""
        self.closed[scope] = None
        if len(self.closed) > MOST_CLOSED:
            self.closed.popitem(last=False)


class Instances:
    """The objects of one source's plugins; who asks for one while it is made waits for it.

    A failure is raised to all who wait and then forgotten, so that the next request tries again. An object that
    no one has used for ``idle`` seconds is closed, unless its plugin has an ``idle`` of its own; None keeps it.
    """

    def __init__(self, *, idle: float | None = None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._idle = idle
        self._monotonic = monotonic
        self._context = copy_context()
        """What host's code sees whose object is for all: the context variables of whoever opened the board."""
        self._families: dict[Hashable, _PluginInstances] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._threads: dict[Hashable, int] = {}  # that bring in a plugin now, by the key of how

    def under_way(self, making: PluginMaking) -> str:
        """Return which line of a plugin's code runs while it is brought in; empty where that is unknown."""
        thread = self._threads.get(making.key)
        return running_line(thread, making.folder) if thread is not None else ""

    async def describe(self, making: PluginMaking) -> Manifest:
        """Return the manifest of a plugin; raises ``ToolUnavailableError``, also where it takes too long."""
        limit = asyncio.timeout(making.timeout)
        try:
            async with limit:
                return await self._describe_plugin(making)
        except TimeoutError:
            if not limit.expired():
                raise
            at = f": {line}" if (line := self.under_way(making)) else ""
            raise ToolUnavailableError(
                f"plugin '{making.plugin}' was not constructed within {making.timeout:g} s{at}.",
                hint=f"Set a longer `timeout` in `plugins: {making.plugin}` if it needs it.",
            ) from None

    async def _describe_plugin(self, making: PluginMaking) -> Manifest:
        family = await self._family(making)
        if family.manifest is None:
            ready = (instance.task for instance in family.instances.values() if _is_ready(instance.task))
            task = next(ready, None) or family.asked or family.unassigned
            if task is None or _has_failed(task):
                task = family.unassigned = self._begin_making(family, making)
            family.manifest = (await asyncio.shield(task)).manifest(making.plugin)
        return family.manifest

    async def call(self, making: PluginMaking, tool: Tool, arguments: JsonObject, context: CallContext) -> CallResult:
        """Run a tool on the object of the call's scope; raises ``ToolUnavailableError``, ``UpstreamTimeoutError``.

        What blocks goes on in its thread after it has taken too long; what is asynchronous is cancelled.
        """
        limit = asyncio.timeout(making.timeout)
        try:
            async with limit, self._use_instance(making, context.scope) as (plugin, instance):
                anew, instance.anew = instance.anew, False
                result = await plugin.call(making.plugin, tool.name, arguments, context)
        except TimeoutError:
            if not limit.expired():
                raise
            raise UpstreamTimeoutError(
                f"Plugin {making.plugin!r} did not answer {tool.name!r} within {making.timeout:g} s.",
                hint=f"It may still run. Set a longer `timeout` in `plugins: {making.plugin}` if the tool needs it.",
            ) from None
        return began_anew(result, making.plugin, "it was not used for a while") if anew else result

    async def ask_hooks(
        self, making: PluginMaking, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> HookAnswer:
        """Return what guard and approval hook of a tool say to a call, of the object of the call's scope."""
        async with self._use_instance(making, context.scope) as (plugin, _):
            return await plugin.ask_hooks(making.plugin, tool.name, arguments, context)

    async def holds(self, making: PluginMaking, scope: str, condition: str, *given: object) -> object:
        """Return what a predicate answers, plain or async; raises what it raises.

        It is that of the scope's object. Where it has none, none is made for it: one is asked that no call reaches.
        """
        family = await self._family(making)
        instance = family.instances.get(_name(family, scope))
        known = (family.asked, family.unassigned) if instance is None else (instance.task,)
        task = next((one for one in known if one is not None and not _has_failed(one)), None)
        if task is None:
            task = self._begin_making(family, making)
        if instance is None:
            family.asked = task
            family.unassigned = None if family.unassigned is task else family.unassigned
        function = (await asyncio.shield(task)).predicate(condition)
        if function is None:
            raise ToolUnavailableError("its condition no longer exists.")
        with plugin_output():
            answer = await run_in_thread(function, *given)
            return await answer if inspect.isawaitable(answer) else answer

    def ready(self, making: PluginMaking, scope: str) -> LocalPlugin | None:
        """Return the object of a scope where it is constructed."""
        family = self._families.get(making.key)
        if family is None or not _is_ready(family.found):
            return None
        instance = family.instances.get(_name(family, scope))
        return instance.task.result() if instance is not None and _is_ready(instance.task) else None

    def end_scope(self, scope: str) -> None:
        """Forget the objects of a scope, and close each once no call uses it."""
        for family in self._families.values():
            family.closed.pop(scope, None)
            instance = family.instances.pop(scope, None) if scope else None
            if instance is not None and not instance.in_use:
                self._close(instance.task)

    async def aclose(self) -> None:
        """Close what was constructed, and end the threads that no one uses."""
        if self._timer is not None:
            self._timer.cancel()
        families, self._families = list(self._families.values()), {}
        for family in families:
            family.found.cancel()
            every = (*(one.task for one in family.instances.values()), family.unassigned, family.asked)
            for task in filter(None, every):
                if _is_ready(task):
                    self._close(task)
                else:
                    task.cancel()
        if self._closing:
            await asyncio.wait(self._closing)
        end_free_threads()

    async def _family(self, making: PluginMaking) -> _PluginInstances:
        family = self._families.get(making.key)
        if family is None or _has_failed(family.found):
            found = start_detached(
                _run_in_plugin(self._run_noting_thread, making, _find_target, making), context=self._context.copy()
            )
            family = self._families[making.key] = _PluginInstances(found=found)
        if not family.found.done():
            await asyncio.shield(family.found)
        return family

    def _begin_making(self, family: _PluginInstances, making: PluginMaking) -> asyncio.Task[LocalPlugin]:
        target = family.found.result()[0]
        return start_detached(self._make_instance(module_threads(target), making, target), context=self._context.copy())

    async def _make_instance(self, threads: ObjectThreads, making: PluginMaking, target: object) -> LocalPlugin:
        with plugin_output():
            return await threads.run(self._run_noting_thread, making, making.make, target)

    def _run_noting_thread(self, making: PluginMaking, work: Callable[..., T], *given: object) -> T:
        """Do work that brings in a plugin, and note in which thread."""
        self._threads[making.key] = threading.get_ident()
        try:
            return work(*given)
        finally:
            self._threads.pop(making.key, None)

    @asynccontextmanager
    async def _use_instance(
        self, making: PluginMaking, scope: str
    ) -> AsyncGenerator[tuple[LocalPlugin, _PluginInstance]]:
        """Return the object of a scope, which is in use until the end."""
        family = await self._family(making)
        name = _name(family, scope)
        instance = family.instances.get(name)
        if instance is None or _has_failed(instance.task):
            instance = family.instances[name] = self._instance(family, name, making)
        instance.in_use += 1
        try:
            if not instance.task.done():
                await asyncio.shield(instance.task)
            yield instance.task.result(), instance
        finally:
            instance.in_use -= 1
            instance.used_at = self._monotonic()
            if family.instances.get(name) is not instance:
                if not instance.in_use:
                    self._close(instance.task)
            elif _has_failed(instance.task):
                del family.instances[name]
                if instance.anew:
                    family.note_closed(name)
            elif instance.idle is not None:
                self._look_in(instance.idle)

    def _instance(self, family: _PluginInstances, name: str, making: PluginMaking) -> _PluginInstance:
        """Return the object of a scope that has none: the unassigned one if there is one, else one that is made now."""
        task, family.unassigned = family.unassigned, None
        if task is None or _has_failed(task):
            task = self._begin_making(family, making)
        idle = self._idle if making.idle is None else making.idle
        anew = name in family.closed
        family.closed.pop(name, None)
        return _PluginInstance(task=task, idle=idle if name else None, used_at=self._monotonic(), anew=anew)

    def _close_unused(self) -> None:
        """Close the objects that no one has used for so long, and look again when the next may be due."""
        self._timer, now = None, self._monotonic()
        soonest: float | None = None
        for family in self._families.values():
            for name, instance in list(family.instances.items()):
                if instance.idle is None:
                    continue
                rest = instance.idle if instance.in_use else instance.used_at + instance.idle - now
                if rest > 0:
                    soonest = rest if soonest is None else min(soonest, rest)
                    continue
                del family.instances[name]
                family.note_closed(name)
                self._close(instance.task)
        if soonest is not None:
            self._look_in(soonest)

    def _look_in(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            if self._timer.when() <= loop.time() + seconds:
                return
            self._timer.cancel()
        self._timer = call_later_detached(seconds, self._close_unused)

    def _close(self, task: asyncio.Task[LocalPlugin]) -> None:
        if _has_failed(task):
            return
        self._closing.add(
            start_detached(_close_instance(task), context=self._context.copy(), done=self._closing.discard)
        )


def _name(family: _PluginInstances, scope: str) -> str:
    """Return the scope whose object is meant; one name for all where nothing is constructed."""
    return scope if family.found.result()[1] else ""


async def _run_in_plugin(work: Callable[..., T], *given: object) -> T:
    with plugin_output():
        return await run_in_thread(work, *given)


def _find_target(making: PluginMaking) -> tuple[object, bool]:
    """Return what the configuration names, imported; if its module is bound to this thread, it is kept for it."""
    found = making.find()
    module_threads(found[0]).look()
    return found


async def _close_instance(task: asyncio.Task[LocalPlugin]) -> None:
    try:
        async with asyncio.timeout(_CLOSED_WITHIN):
            plugin = await task
            with plugin_output():
                await plugin.aclose()
    except (Exception, SystemExit) as error:  # whatever user code raises
        log.warning("what a plugin constructed could not be closed: %s: %s", type(error).__name__, error)


def _has_failed(task: asyncio.Task[Any]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _is_ready(task: asyncio.Task[Any]) -> bool:
    return task.done() and not _has_failed(task)


def began_anew(result: CallResult, plugin: str, why: str) -> CallResult:
    """Return a result that says that the object, or the process, that gave it began again, and why (G9)."""
    text = f"'{plugin}' started again: {why}, and what it kept is gone."
    return replace(
        result, content=(*result.content, {"type": "text", "text": text}), meta={**result.meta, BEGAN_ANEW: True}
    )


class LocalSource(ABC):
    """A source whose plugins are objects that it constructs.

    What they construct is closed after ``idle`` seconds without use; None keeps it.
    """

    def __init__(self, *, idle: float | None = None) -> None:
        self._instances = Instances(idle=idle)
        self._makings: dict[tuple[int, int], tuple[PluginSpec, JsonObject, PluginMaking]] = {}

    @abstractmethod
    def _making_of(self, spec: PluginSpec, overrides: JsonObject) -> PluginMaking:
        """Return how a plugin is brought in under its overrides."""

    def fingerprint(self, spec: PluginSpec) -> str:  # noqa: ARG002
        """Return nothing: asking the code itself is cheaper and always right."""
        return ""

    async def describe(self, spec: PluginSpec, overrides: JsonObject) -> Manifest:
        """Import what the plugin names, construct it, and return its tools."""
        return await self._instances.describe(self._making_of(spec, overrides))

    def under_way(self, spec: PluginSpec, overrides: JsonObject) -> str:
        """Return which line of its code runs while a plugin is brought in; empty where that is unknown."""
        return self._instances.under_way(self._making_of(spec, overrides))

    async def call(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> CallResult:
        """Run the function; what it raises is an error result."""
        known = self._makings.get((id(spec), id(overrides)))
        making = self._keep_making(spec, overrides) if known is None else known[2]
        return await self._instances.call(making, tool, arguments, context)

    def _keep_making(self, spec: PluginSpec, overrides: JsonObject) -> PluginMaking:
        """Return how a plugin is brought in, kept for calls with these two objects, which live as long as it is."""
        if len(self._makings) >= MOST_MAKINGS:
            self._makings.clear()
        making = self._making_of(spec, overrides)
        self._makings[id(spec), id(overrides)] = spec, overrides, making
        return making

    def ready(self, spec: PluginSpec, overrides: JsonObject, scope: str) -> LocalPlugin | None:
        """Return the object of a scope where it is constructed: whoever asks is the only one who uses it."""
        return self._instances.ready(self._making_of(spec, overrides), scope)

    async def end_scope(self, scope: str) -> None:
        """Close what a scope has."""
        self._instances.end_scope(scope)

    def on_changed(self, callback: Callable[[str], None]) -> None:  # noqa: B027 - nothing is told
        """Take no callback: what was imported does not change by itself."""

    async def aclose(self) -> None:
        """Close what was constructed."""
        await self._instances.aclose()


class HookedSource(LocalSource):
    """A source whose functions may have guards, approval hooks and predicates, and whose objects may be adopted."""

    def __init__(self, *, adopt: Adopt = nothing_adopted, idle: float | None = None) -> None:
        super().__init__(idle=idle)
        self._adopt = adopt

    async def ask_hooks(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> HookAnswer:
        """Return what guard and approval hook of the function say to a call."""
        return await self._instances.ask_hooks(self._making_of(spec, overrides), tool, arguments, context)

    async def holds(
        self, spec: PluginSpec, overrides: JsonObject, condition: str, *given: object, scope: str = ""
    ) -> object:
        """Return what a predicate of the plugin's code answers (T12)."""
        return await self._instances.holds(self._making_of(spec, overrides), scope, condition, *given)
