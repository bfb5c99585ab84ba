"""Keep the catalog up with what sources say of their plugins."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar

from pegboard.board.catalog.apply_settings import misnamed_tools, with_configuration
from pegboard.board.catalog.manifests import Manifests, still_unavailable
from pegboard.board.catalog.pins import DefinitionPins
from pegboard.core.model.agents import World
from pegboard.core.model.catalog import Catalog
from pegboard.core.model.loadouts import category_of
from pegboard.core.model.masking import Masker
from pegboard.core.model.naming import wire_name
from pegboard.core.model.selectors import entries
from pegboard.core.model.specs import PluginSpec, PythonSpec, RegisteredSpec, ServerSpec
from pegboard.core.model.tools import (
    EMPTY,
    Frozen,
    JsonObject,
    Manifest,
    Plugin,
    Tool,
    Variant,
    variant_key,
)
from pegboard.errors import NeedsLoginError, PegboardError, ToolUnavailableError, UpstreamError
from pegboard.ports import CodeSource, ImportingSource, ListReader, ManifestStore, Source, SourceWithTurns
from pegboard.support.tasks import start_detached

log = logging.getLogger("pegboard")

SERVER_WAIT = 5.0
"""Seconds that a surface or a search waits for servers that have not been seen yet."""

CONSTRUCT_WAIT = 20.0
"""Seconds that it waits for a plugin of this process: a busy machine may take long to import one."""

IN_PROCESS = frozenset({"python", "entry_point", "packaged"})
"""Kinds whose plugins are brought in as soon as someone looks; others when they are loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginRequest:
    """A plugin, and the overrides with which it is needed."""

    plugin: str
    overrides: JsonObject = field(default=EMPTY)

    @property
    def key(self) -> tuple[str, str]:
        """Return the plugin and the key of its variant."""
        return self.plugin, variant_key(self.overrides) if self.overrides else ""


def named_requests(world: World, catalog: Catalog) -> dict[tuple[str, str], PluginRequest]:
    """Return the plugins that lists of tools name, under all the overrides with which they do."""
    named = (entry for group in world.lists() for entry in entries(group, catalog))
    requests = (PluginRequest(plugin=entry.plugin, overrides=entry.overrides) for entry in named)
    return {request.key: request for request in requests}


def plugin_of(spec: PluginSpec) -> Plugin:
    """Return the plugin that a specification describes, before its source has been asked."""
    match spec:
        case ServerSpec():
            kind, trusted, fault = "server", spec.trust_annotations, spec.unavailable
        case PythonSpec():
            kind, trusted, fault = "python", True, ""
        case RegisteredSpec():
            kind, trusted, fault = spec.loader.partition(":")[0], True, ""
    return Plugin(
        name=spec.name,
        kind=kind,
        description=spec.description,
        category=spec.category or category_of(spec.name),
        prefix=spec.prefix,
        shared_only=spec.shared_only,
        default_on=spec.default_on,
        trusted=trusted,
        variants=Frozen({"": Variant(unavailable=fault)} if fault else {}),
        by_category=isinstance(spec, RegisteredSpec) and spec.by_category,
        place=spec.place,
        described_by="configuration" if spec.description else "",
    )


Listing = TypeVar("Listing", Plugin, Manifest)
_LACKS: Final = "Set the environment variable "


def _conditional(plugins: Iterable[Plugin]) -> bool:
    return any(tool.when for plugin in plugins for tool in plugin.tools)


async def _wait_for_tasks(tasks: set[asyncio.Task[None]], seconds: float | None) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=seconds)


class CatalogLoader:
    """The catalog, and the tasks that fetch what is still missing from it."""

    def __init__(
        self,
        sources: Sequence[Source],
        manifests: ManifestStore,
        *,
        pins: DefinitionPins,
        masker: Masker,
        env: Mapping[str, str],
        changed: Callable[[Iterable[str]], None],
    ) -> None:
        self.catalog = Catalog()
        self.specs: Mapping[str, PluginSpec] = {}
        self.masker = masker
        self.closed = False
        self.conditional = False
        """Whether a tool has a predicate that is asked whether it can run now (T12)."""
        self.sources = tuple(sources)
        self.manifests = Manifests(manifests)
        self._pins = pins
        self._env = env
        self._changed = changed
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._late: set[asyncio.Task[None]] = set()
        self._restoring: asyncio.Task[None] | None = None
        self._restored: dict[tuple[str, str], PluginRequest] = {}  # code that has not answered in this process yet
        self._arrived: dict[str, Plugin] = {}  # in this turn of the loop, and not in the catalog yet
        pins.on_changed, pins.names_of_others = self._take_changed_lists, self._names_of_others
        for source in self.sources:
            source.on_changed(self._refetch_tools)
            if isinstance(source, ListReader):
                source.on_read(self._take_read_list)

    async def adopt(self, specs: Mapping[str, PluginSpec], world: World) -> None:
        """Take over a configuration; what is known of unchanged plugins stays known."""
        before, self.specs = self.specs, dict(specs)
        self._arrived = {name: found for name, found in self._arrived.items() if before.get(name) == specs.get(name)}
        self._restored = {key: want for key, want in self._restored.items() if before.get(key[0]) == specs.get(key[0])}
        await self._pins.refresh()
        plugins: list[Plugin] = []
        for name, spec in specs.items():
            known = self.catalog.plugins.get(name)
            if known is not None and before.get(name) == spec:
                plugins.append(self._apply_conditions(known))
            else:
                plugins.append(await self._with_stored(plugin_of(spec), PluginRequest(plugin=name)))
        self.catalog = Catalog(plugins)
        self.catalog = self.catalog.with_plugins(await self._with_stored_variants(world))
        self._pins.note_unpinned()
        self.conditional = _conditional(self.catalog.plugins.values())

    def supposed_catalog(self, specs: Mapping[str, PluginSpec]) -> Catalog:
        """Return the catalog under other settings, as far as it is known; nothing is asked, read or kept."""
        plugins: list[Plugin] = []
        for name, spec in specs.items():
            known, before = self.catalog.plugins.get(name), self.specs.get(name)
            alike = known is not None and before is not None and _relevant_settings(before) == _relevant_settings(spec)
            plugins.append(known if known is not None and alike else plugin_of(spec))
        return Catalog(plugins)

    async def _restore(self, world: World) -> None:
        """Take in what is stored of plugins and overrides that are not known."""
        for name, plugin in self.catalog.plugins.items():
            if not plugin.variants:
                found = await self._with_stored(plugin, PluginRequest(plugin=name))
                if found is not plugin and self._newest(name) is plugin:
                    self._add_to_catalog(found)
        for plugin in await self._with_stored_variants(world):
            self._add_to_catalog(plugin)

    def join(self, specs: Mapping[str, PluginSpec], world: World) -> None:
        """Add the plugins that are not known yet; the others stay as they are, but for how they came in.

        What is stored of them, and of overrides that the world names, arrives soon.
        """
        fresh = {name: spec for name, spec in specs.items() if self.specs.get(name) != spec}
        if fresh:
            self.specs = {**self.specs, **fresh}
            known = {**self.catalog.plugins, **{name: plugin_of(spec) for name, spec in fresh.items()}}
            self.catalog = Catalog(known.values())
        self._restoring = start_detached(self._restore(world), name="restore manifests")

    async def _with_stored_variants(self, world: World) -> list[Plugin]:
        """Return the plugins of which something is stored under overrides that the configuration names."""
        found: dict[str, Plugin] = {}
        for want in named_requests(world, self.catalog).values():
            plugin = found.get(want.plugin) or self.catalog.plugins[want.plugin]
            if want.overrides and not plugin.variant(want.key[1]).known:
                found[want.plugin] = await self._with_stored(plugin, want)
        return list(found.values())

    async def _with_stored(self, plugin: Plugin, want: PluginRequest) -> Plugin:
        """Return a plugin with what is stored of it under the overrides; its source counts once it has answered."""
        spec, key = self.specs[plugin.name], want.key
        source = self.source_of(spec)
        stored = await self.manifests.stored_manifest(source, spec, want.overrides)
        if stored is None or plugin.variant(key[1]).unavailable:
            return plugin
        manifest = stored.manifest
        if not isinstance(spec, ServerSpec) and any(misnamed_tools(manifest, spec)):
            return plugin
        if isinstance(source, CodeSource):
            self._restored[key] = want
        if isinstance(source, ListReader):
            source.note_stored(spec, manifest)
        if isinstance(spec, ServerSpec):
            manifest = await self._pins.compare(plugin, manifest, spec.pins, stored=True)
        fault = still_unavailable(manifest, self._env)
        if manifest.tools or not manifest.unavailable:
            plugin = self._with_list(plugin, spec, key[1], manifest, stale=stored.stale)
        return plugin.with_fault(key[1], fault, stale=True) if fault else plugin

    def source_of(self, spec: PluginSpec) -> Source:
        """Return the source that brings in plugins of this kind."""
        for source in self.sources:
            if source.handles(spec):
                return source
        message = f"No source provides plugin '{spec.name}'."
        raise PegboardError(message, code="no_source")

    def remote_servers(self, plugins: Iterable[str]) -> tuple[str, ...]:
        """Return those of some plugins that are servers over HTTP: others want no login."""
        specs = ((name, self.specs[name]) for name in plugins)
        return tuple(name for name, spec in specs if isinstance(spec, ServerSpec) and spec.url)

    def missing(self, want: PluginRequest, *, retry: bool = False, confirm: bool = False) -> bool:
        """Return whether a source has still to be asked.

        With ``retry`` it is asked again where it failed, with ``confirm`` where all that is known of its code is what
        an earlier process stored.
        """
        plugin = self.catalog.plugins.get(want.plugin)
        if plugin is None:
            return False
        spec = self.specs[want.plugin]
        if isinstance(spec, ServerSpec) and spec.unavailable:
            return False
        variant = plugin.variants.get(want.key[1])
        if variant is not None and variant.unavailable:
            return retry or want.key in self._restored
        return variant is None or variant.tools is None or (confirm and want.key in self._restored)

    def ask_stale(self, plugins: Container[tuple[str, str]]) -> None:
        """Start asking plugins whose code has changed since what is known of them was stored, no one waits for it.

        Those that are constructed only when they are loaded are asked where they are among ``plugins``.
        """
        for want in self.stale():
            if self.catalog.plugins[want.plugin].kind in IN_PROCESS or want.key in plugins:
                self.fetch(want)

    def stale(self) -> list[PluginRequest]:
        """Return the plugins whose code has changed since what is known of them was stored, and has not answered."""
        plugins = self.catalog.plugins
        return [want for key, want in self._restored.items() if plugins[want.plugin].variant(key[1]).stale]

    def line_being_imported(self, want: PluginRequest) -> str:
        """Return which line of a plugin's code runs while it is brought in; empty where that is unknown."""
        spec = self.specs[want.plugin]
        source = self.source_of(spec)
        return self.masker.text(source.under_way(spec, want.overrides)) if isinstance(source, ImportingSource) else ""

    def has_answered(self, plugin: Plugin) -> bool:
        """Return whether some of what is known of a plugin is an answer of its source to this process."""
        return any(v.known and (plugin.name, key) not in self._restored for key, v in plugin.variants.items())

    async def ready(
        self,
        wants: Iterable[PluginRequest],
        *,
        retry: bool = False,
        confirm: bool = False,
        wait: float | None = None,
        patient: bool = False,
    ) -> bool:
        """Ask sources for what is missing; stop waiting, not fetching, after ``wait`` seconds.

        Returns whether anything was missing; what is, ``missing`` says. With ``patient``, plugins of this process get
        the time that it takes to import and construct them. Whoever was late once is not waited for again.
        """
        near: set[asyncio.Task[None]] = set()
        far: set[asyncio.Task[None]] = set()
        for want in wants:
            if self.missing(want, retry=retry, confirm=confirm):
                (far if isinstance(self.specs[want.plugin], ServerSpec) else near).add(self.fetch(want))
                if wait is None:
                    self._prefer_plugin(want.plugin)
        if not (near or far):
            return False
        if wait is None:
            await _wait_for_tasks(near | far, None)
            return True
        await _wait_for_tasks(far - self._late, wait)
        await _wait_for_tasks(near - self._late, CONSTRUCT_WAIT if patient else wait)
        self._late |= {task for task in near | far if not task.done()}
        return True

    def _prefer_plugin(self, plugin: str) -> None:
        """Let a plugin begin to start before those that no request waits for."""
        source = self.source_of(self.specs[plugin])
        if isinstance(source, SourceWithTurns):
            source.need(plugin)

    def is_late(self, task: asyncio.Task[None]) -> bool:
        """Return whether a plugin that is being asked was waited for in vain."""
        return task in self._late

    async def refresh(self, wants: Iterable[PluginRequest]) -> None:
        """Ask every source as if nothing were known: what cannot run now has a fault then."""
        self.catalog = Catalog(plugin_of(spec) for spec in self.specs.values())
        self._restored.clear()
        await self.ready(wants)

    def fetch(self, want: PluginRequest) -> asyncio.Task[None]:
        """Start asking for a plugin, once for everyone who wants it now."""
        task = self._tasks.get(want.key)
        if task is None:
            task = self._tasks[want.key] = start_detached(
                self._describe(want), name=f"describe {want.plugin}", done=partial(self._forget_task, want)
            )
        return task

    def _forget_task(self, want: PluginRequest, task: asyncio.Task[None]) -> None:
        self._tasks.pop(want.key, None)
        self._late.discard(task)

    async def _describe(self, want: PluginRequest) -> None:
        spec = self.specs[want.plugin]
        source = self.source_of(spec)
        try:
            manifest = await source.describe(spec, want.overrides)
        except PegboardError as error:
            if isinstance(error, ToolUnavailableError) and not isinstance(spec, ServerSpec):
                await self.manifests.keep_fault(source, spec, want.overrides, self.masker.text(error.text))
            self._fault(want, spec, error)
            return
        except Exception as error:  # a plugin's own code may raise anything
            log.debug("plugin %s failed", want.plugin, exc_info=True)
            self._fault(want, spec, ToolUnavailableError(f"{type(error).__name__}: {error}"))
            return
        await self._take_new_list(want, spec, manifest)
        if isinstance(source, ListReader):
            source.note_compared(spec, manifest)

    async def _take_read_list(self, name: str, manifest: Manifest, whole: bool) -> None:
        """Take in a list that was read since a connection is new; what it changes counts once this returns (A4)."""
        spec = self.specs.get(name)
        if not isinstance(spec, ServerSpec):
            return
        if not whole:  # what others see of it, who have another login, stays
            manifest = self._pins.with_others(name, manifest)
        if not self._pins.is_newest(name, manifest):
            await self._take_new_list(PluginRequest(plugin=name), spec, manifest)
            if self._arrived:
                self._publish()

    async def _take_new_list(self, want: PluginRequest, spec: PluginSpec, manifest: Manifest) -> None:
        """Keep what a source reports of a plugin, compare it with the pins, and take it into the catalog (A4).

        It is the one way in: whatever asked for the list, and whichever connection it was read on.
        """
        source = self.source_of(spec)
        before = await self.manifests.stored_manifest(source, spec, want.overrides)
        manifest = manifest.with_first_known(spec.name, before.manifest if before is not None else None)
        if isinstance(spec, ServerSpec):
            manifest = self._pins.with_digests(spec.name, manifest)
            await self.manifests.keep(source, spec, want.overrides, manifest)
            manifest = await self._pins.compare(plugin_of(spec), manifest, spec.pins)
            self._pins.note_unpinned()
        else:
            await self.manifests.keep(source, spec, want.overrides, manifest)
        if self.specs.get(want.plugin) != spec:
            return
        self._restored.pop(want.key, None)
        for fault in misnamed_tools(manifest, spec):
            if not isinstance(spec, ServerSpec):  # a guard that is misspelt must not let anything through
                self._fault(want, spec, fault)
                return
            log.warning("%s It is ignored.", fault.message)
        self._add_to_catalog(self._with_list(self._newest(spec.name), spec, want.key[1], manifest))

    def _with_list(
        self, plugin: Plugin, spec: PluginSpec, key: str, manifest: Manifest, *, stale: bool = False
    ) -> Plugin:
        """Return a plugin with a list of its tools; a server is for what it says now that counts (A4)."""
        plugin = plugin.with_manifest(key, self._apply_conditions(with_configuration(manifest, spec)), stale=stale)
        if not isinstance(spec, ServerSpec) or spec.description:
            return plugin
        description, described_by = manifest.purpose(spec.name)
        return replace(plugin, description=description, described_by=described_by)

    def _apply_conditions(self, known: Listing) -> Listing:
        """Return a plugin, or a list of tools, with whether the conditions of its tools hold now (P6)."""
        if not any(tool.needs for tool in known.tools):
            return known
        return replace(known, tools=tuple(self._apply_condition(tool) for tool in known.tools))

    def _apply_condition(self, tool: Tool) -> Tool:
        absent = [name for name in tool.needs if not self._env.get(name)]
        lacks = f"{_LACKS}{', '.join(absent)}." if absent else ""
        stated = "" if tool.unavailable.startswith(_LACKS) else tool.unavailable
        return tool if (stated or lacks) == tool.unavailable else replace(tool, unavailable=stated or lacks)

    def _take_changed_lists(self, lists: Mapping[str, Manifest]) -> None:
        """Take in lists of servers that read otherwise under other pins, before the catalog is asked for again."""
        for name, manifest in lists.items():
            spec, plugin = self.specs.get(name), self.catalog.plugins.get(name)
            if isinstance(spec, ServerSpec) and plugin is not None and plugin.variant("").known:
                self._arrived[name] = self._with_list(self._newest(name), spec, "", manifest)
        if self._arrived:
            self._publish()

    def _refetch_tools(self, plugin: str) -> None:
        """Fetch the tools of a plugin again that says that they have changed."""
        if plugin in self.catalog.plugins:
            self.fetch(PluginRequest(plugin=plugin))

    def _names_of_others(self, plugin: str) -> Mapping[str, frozenset[str]]:
        """Return by plugin the names on the wire of its known and pinned tools, of all but this one."""
        found: dict[str, frozenset[str]] = {}
        for name, spec in self.specs.items():
            if name != plugin:
                known = self.catalog.plugins.get(name)
                names = {tool.wire for tool in known.tools} if known is not None else set[str]()
                if isinstance(spec, ServerSpec):
                    names |= {wire_name(name, tool, prefix=spec.prefix) for tool in self._pins.pinned_names(name)}
                found[name] = frozenset(names)
        return found

    def _fault(self, want: PluginRequest, spec: PluginSpec, error: PegboardError) -> None:
        if self.specs.get(want.plugin) != spec:
            return
        self._restored.pop(want.key, None)
        plugin = self._newest(want.plugin)
        shown = self.masker.text(error.text)
        if isinstance(spec, ServerSpec) and plugin.variant(want.key[1]).known:
            log.warning("the tools of %s could not be read again: %s", want.plugin, shown)
            return  # what it had stays listed: the next call starts it again (G8)
        runs = isinstance(spec, ServerSpec) and isinstance(error, UpstreamError)  # so that no connection has failed
        if runs and plugin.variant(want.key[1]).unavailable != shown:
            log.warning("%s", shown)
        self._add_to_catalog(plugin.with_fault(want.key[1], shown, needs_login=isinstance(error, NeedsLoginError)))

    def _newest(self, name: str) -> Plugin:
        return self._arrived.get(name) or self.catalog.plugins[name]

    def _add_to_catalog(self, plugin: Plugin) -> None:
        """Take a plugin into the catalog with all that arrive in this turn of the loop.

        Whoever waits for the task in which it arrived runs after that.
        """
        if not self._arrived:
            asyncio.get_running_loop().call_soon(self._publish)
        self._arrived[plugin.name] = plugin

    def _publish(self) -> None:
        arrived, self._arrived = self._arrived, {}
        before = self.catalog
        self.catalog = before.with_plugins(arrived.values())
        if self.catalog is before:
            return
        self.conditional = self.conditional or _conditional(arrived.values())
        self._changed(arrived)

    async def aclose(self) -> None:
        """Stop fetching, and stop the sources."""
        self.closed = True
        tasks = [*self._tasks.values(), *filter(None, [self._restoring])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._pins.aclose()
        for source in self.sources:
            await source.aclose()


def _relevant_settings(spec: PluginSpec) -> PluginSpec:
    """Return the settings of a plugin without those that change nothing of its tools."""
    return replace(
        spec, place=None, approve=EMPTY, approve_places=EMPTY, guards=EMPTY, instance=None, idle=None, confine=None,
        timeout=0,
    )  # fmt: skip
