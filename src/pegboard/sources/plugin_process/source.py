"""The source of plugins that run in a process of their own: whatever they say, do or judge, they do there (A7)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol, cast

from pegboard.core.access.named_paths import OwnPaths
from pegboard.core.model.manifest_json import manifest_from_json
from pegboard.core.model.specs import PluginSpec, PythonSpec, ServerSpec
from pegboard.core.model.tools import EMPTY, CallResult, Frozen, JsonObject, Manifest, Tool, variant_key
from pegboard.errors import ToolUnavailableError, UpstreamError
from pegboard.ports import (
    CallContext,
    ConnectionState,
    Fingerprint,
    HookAnswer,
    PrintedLine,
    RefusedAccess,
    ServerActivity,
    SessionDataStore,
    SessionKey,
)
from pegboard.sources.code import fingerprint
from pegboard.sources.confinement import KeptRefusals
from pegboard.sources.plugin_process.failures import error_of
from pegboard.sources.plugin_process.forms import ANSWERED, ASKED, RequestKind
from pegboard.sources.plugin_process.process_spec import ProcessSpec, process_spec

CONSTRUCTED_WITHIN: Final = 60.0
"""How long a plugin may take to be imported and constructed where its process is started for it, in seconds."""
_MOST_BLOCKS: Final = 10
"""Of the content of an error that are read for what was refused."""
_NOBODY: Final = CallContext()


class Processes(Protocol):
    """What starts, pools and stops processes, and calls in them: servers and the processes of plugins alike."""

    def call(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> Coroutine[Any, Any, CallResult]:
        """Call in the process of the call's scope, which is started where there is none."""
        ...

    async def call_in_own_or_unassigned_process(
        self, spec: PluginSpec, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> CallResult:
        """Call in the process that a scope has, else in one that no scope has yet."""
        ...

    def starts(self, spec: PluginSpec, scope: str) -> tuple[int, int]:
        """Return how often the process of a scope came up, and how often it ended by itself."""
        ...

    async def stop_unassigned_process(self, spec: PluginSpec) -> None:
        """Stop the process that no scope has yet."""
        ...

    def keep_from(self, own_paths: Callable[[], OwnPaths]) -> None:
        """Let no process that is started from now on reach these files."""
        ...

    def read_refusals(self, spec: PluginSpec, scope: str, text: str) -> Sequence[RefusedAccess]:
        """Note and return what the text of an error says was refused to the process of a scope."""
        ...

    def keep_refusals(self, folder: Path) -> None:
        """Keep in a folder what processes are refused from now on, for other processes of Pegboard."""
        ...

    def connections(self, spec: PluginSpec) -> Sequence[ConnectionState]:
        """Return the processes as connections."""
        ...

    def printed(self, spec: PluginSpec) -> Sequence[PrintedLine]:
        """Return what they printed."""
        ...

    def activity(self) -> ServerActivity:
        """Return what tells whether there is something new of either."""
        ...

    async def restart(self, spec: PluginSpec) -> None:
        """Stop the processes, and start those again that were in use."""
        ...

    async def retain(self, specs: Iterable[ServerSpec]) -> None:
        """Stop every process that is no longer among these."""
        ...

    async def end_scope(self, scope: str) -> None:
        """Stop the processes of a scope."""
        ...

    async def aclose(self) -> None:
        """Stop every process."""
        ...


@dataclass(slots=True, kw_only=True)
class _Variant:
    """A plugin under its overrides: how its process is started, and what is known of its processes.

    ``starts`` is by scope how often its process had come up, and ended by itself, when it answered last; ``code`` is
    how its code looked to the process that described it; ``wants_data``: it keeps something for sessions.
    """

    spec: PluginSpec
    overrides: JsonObject
    process: ProcessSpec
    code: str = ""
    wants_data: bool = False
    starts: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


class PluginProcessSource:
    """The source of plugins of which :meth:`handles` says so; the others are constructed in this process.

    ``processes`` starts them; ``env`` are the variables that a plugin may be given where its ``needs`` name them;
    ``store`` has the states of sessions. What has not been called for ``idle`` seconds is stopped; None lets it run.
    """

    def __init__(
        self,
        processes: Processes,
        *,
        env: Mapping[str, str],
        store: SessionDataStore | None = None,
        idle: float | None = None,
        apart: Callable[[PluginSpec], bool] = lambda spec: spec.confine is not None,
        constructed_within: float = CONSTRUCTED_WITHIN,
    ) -> None:
        self._processes = processes
        self._env = env
        self._store = store
        self._idle = idle
        self._apart = apart
        self._constructed_within = constructed_within
        self._variants: dict[tuple[str, str], _Variant] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._specs: tuple[PluginSpec, ...] = ()
        self._callbacks: list[Callable[[str], None]] = []
        self._kept_refusals = KeptRefusals()

    def handles(self, spec: PluginSpec) -> bool:
        """Return whether the plugin runs in a process of its own."""
        return not isinstance(spec, ServerSpec) and self._apart(spec)

    def fingerprint(self, spec: PluginSpec) -> str:  # noqa: ARG002
        """Return nothing: what the code looks like says whether a manifest counts."""
        return ""

    def code_fingerprint(self, spec: PluginSpec, overrides: JsonObject) -> Fingerprint | None:
        """Return under which fingerprint the manifest of a plugin is stored; nothing is imported or started."""
        now, known = fingerprint(spec, overrides), self._variants.get((spec.name, variant_key(overrides)))
        if now is None or known is None or not known.code or known.spec != spec:
            return now
        return replace(now, code=known.code)  # as it was when its process imported it

    async def describe(self, spec: PluginSpec, overrides: JsonObject) -> Manifest:
        """Let a process construct the plugin, and return what it offers."""
        variant = self._variant(spec, overrides)
        try:
            async with asyncio.timeout(self._constructed_within):
                described = cast("dict[str, str]", await self._value(variant, "describe", "describe"))
        except TimeoutError:
            await self._processes.stop_unassigned_process(variant.process)
            message = f"plugin '{spec.name}' was not constructed within {self._constructed_within:g} s: it is stopped."
            raise ToolUnavailableError(message, location=spec.place) from None
        except UpstreamError as error:
            raise ToolUnavailableError(error.message, hint=error.hint, location=spec.place) from error
        except ToolUnavailableError:
            await self._processes.stop_unassigned_process(variant.process)  # what is corrected is seen by a new one
            raise
        manifest = manifest_from_json(described["manifest"])
        if manifest is None:
            raise ToolUnavailableError(f"plugin '{spec.name}' sent an invalid manifest.")
        variant.code = described["code"]
        return manifest

    async def call(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> CallResult:
        """Run a function in the process of the call's scope; what it raises is an error result."""
        variant = self._variant(spec, overrides)
        key = SessionKey(principal=context.principal, agent=context.agent, session=context.session)
        asked = _request_of("call", context)
        if tool.needs:
            asked["env"] = {name: self._env[name] for name in tool.needs if name in self._env}
        while True:
            if variant.wants_data and self._store is not None and context.session:
                asked["data"] = dict(await self._store.session_data(key))
            result = await self._processes.call(
                variant.process, EMPTY, tool, arguments, _context_to_pass(asked, context.scope)
            )
            result, answer = _split_result(result)
            if "wants" not in answer or variant.wants_data:
                break
            variant.wants_data = True
        if "error" in answer:
            raise self._error_of_failure(variant, context.scope, answer["error"])
        if result.is_error:
            from pegboard.sources.confinement import with_refusals  # no start needs it

            said = "\n".join(str(block.get("text", "")) for block in result.content[:_MOST_BLOCKS])
            refused = self._processes.read_refusals(variant.process, context.scope, said)
            result = with_refusals(result, _label(spec), refused)
        if "data" in answer and self._store is not None:
            await self._store.keep_session_data(key, answer["data"])
        return self._note_new_process(variant, context.scope, result)

    def _note_new_process(self, variant: _Variant, scope: str, result: CallResult) -> CallResult:
        """Return a result that says so where the process of its scope is not the one that answered before (G9)."""
        now = self._processes.starts(variant.process, scope)
        before = variant.starts.get(scope)
        if before == now:
            return result
        variant.starts[scope] = now
        if before is None or now[0] <= before[0]:
            return result
        code = fingerprint(variant.spec, variant.overrides)
        if variant.code and code is not None and code.code != variant.code:
            for callback in self._callbacks:
                callback(variant.spec.name)
        from pegboard.sources.signatures import began_anew  # no start needs it

        why = "its process had ended" if now[1] > before[1] else "it was not used for a while"
        return began_anew(result, variant.spec.name, why)

    async def ask_hooks(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> HookAnswer:
        """Return what guard and approval hook of a function say to a call; a person decides where nothing is said."""
        variant = self._variant(spec, overrides)
        along = _context_to_pass(_request_of("hooks", context), context.scope)
        try:
            _, answer = _split_result(await self._processes.call(variant.process, EMPTY, tool, arguments, along))
        except UpstreamError as error:
            return HookAnswer(approval=f"its hook did not answer: {error.message}")
        if "error" in answer:
            raise self._error_of_failure(variant, context.scope, answer["error"])
        return HookAnswer(**answer["value"])

    async def holds(
        self, spec: PluginSpec, overrides: JsonObject, condition: str, *given: object, scope: str = ""
    ) -> object:
        """Return True where a predicate of the plugin's code says so, else why not (T12)."""
        variant = self._variant(spec, overrides)
        return await self._value(variant, "holds", condition, *given, scope=scope) or True

    def owner(self, hook: str) -> PluginSpec | None:
        """Return the plugin in whose process a function of the configuration is asked; None for one of this process.

        That is one in the module that such a plugin is brought in by, or that is among its own ``needs``.
        """
        module = hook.partition(":")[0]
        return next((spec for spec in self._specs if module in _modules(spec) or hook in spec.when.values()), None)

    async def ask_hook(self, spec: PluginSpec, hook: str, *given: object) -> object:
        """Return what a function of the configuration answers in the process of a plugin; raises where it raised."""
        return await self._value(self._variant(spec, EMPTY), "hook", hook, *given)

    async def prepare_hook(self, spec: PluginSpec, hook: str) -> None:
        """Import a function of the configuration in the process of a plugin; raises what its import raised."""
        await self._value(self._variant(spec, EMPTY), "prepare", hook)

    async def _value(self, variant: _Variant, what: RequestKind, name: str, *given: object, scope: str = "") -> object:
        """Return what a process answers that is no call."""
        asked = {**_request_of(what, _NOBODY), "given": list(given)}
        tool = Tool(plugin=variant.spec.name, name=name)
        result = await self._processes.call_in_own_or_unassigned_process(
            variant.process, tool, EMPTY, _context_to_pass(asked, scope)
        )
        _, answer = _split_result(result)
        if "error" in answer:
            raise self._error_of_failure(variant, scope, answer["error"])
        return answer["value"]

    def _error_of_failure(self, variant: _Variant, scope: str, reported: JsonObject) -> Exception:
        """Return the error for what a process reported, and note what it says was refused."""
        refused = self._processes.read_refusals(variant.process, scope, str(reported["message"]))
        if refused and not reported.get("unavailable"):  # else its hint says what it needs
            from pegboard.sources.confinement import refusal_lines  # no start needs it

            lines = refusal_lines(_label(variant.spec), refused)
            reported = {**reported, "message": "\n".join((str(reported["message"]), *lines))}
        return error_of(reported, variant.spec, variant.process)

    def connections(self, spec: PluginSpec) -> tuple[ConnectionState, ...]:
        """Return the processes of a plugin, under whatever overrides, for operators."""
        return tuple(one for process in self._processes_needed(spec) for one in self._processes.connections(process))

    def printed(self, spec: PluginSpec) -> tuple[PrintedLine, ...]:
        """Return the newest lines of the processes of a plugin, also of those that have ended."""
        lines = (line for process in self._processes_needed(spec) for line in self._processes.printed(process))
        return tuple(sorted(lines, key=lambda line: line.at))

    def keep_refusals(self, folder: Path) -> None:
        """Keep in a folder what processes are refused from now on, for other processes of Pegboard."""
        self._kept_refusals = KeptRefusals(folder)
        self._processes.keep_refusals(folder)

    def refused(self, spec: PluginSpec) -> tuple[RefusedAccess, ...]:
        """Return what the processes of a plugin were refused, those of other processes of Pegboard too."""
        found = (one for connection in self.connections(spec) for one in connection.refused)
        return tuple(dict.fromkeys((*found, *self._kept_refusals.refusals_of(spec.name, spec.confine))))

    def activity(self) -> ServerActivity:
        """Return counts that change with the state of a process, and with each line that one prints."""
        return self._processes.activity()

    async def restart(self, spec: PluginSpec) -> None:
        """Stop the processes of a plugin, and start those again that were in use."""
        for process in self._processes_needed(spec):
            await self._processes.restart(process)

    def _processes_needed(self, spec: PluginSpec) -> list[ProcessSpec]:
        """Return how the processes of a plugin are started, as far as they were needed."""
        return [one.process for one in self._variants.values() if one.spec.name == spec.name]

    async def retain(self, specs: Iterable[PluginSpec]) -> None:
        """Take over a configuration: stop the processes of plugins that are no longer in it, or otherwise."""
        self.follow(specs)
        kept = {spec.name: spec for spec in self._specs}
        self._variants = {key: one for key, one in self._variants.items() if kept.get(key[0]) == one.spec}
        await self._processes.retain(one.process for one in self._variants.values())

    def keep_from(self, own_paths: Callable[[], OwnPaths]) -> None:
        """Let no process that is started from now on reach the files of Pegboard's own (P10)."""
        self._processes.keep_from(own_paths)

    def follow(self, specs: Iterable[PluginSpec]) -> None:
        """Take over the plugins of a configuration that only adds to the one before."""
        self._specs = tuple(spec for spec in specs if self.handles(spec))

    async def end_scope(self, scope: str) -> None:
        """Stop the processes of a scope."""
        for variant in self._variants.values():
            variant.starts.pop(scope, None)
        await self._processes.end_scope(scope)

    def on_changed(self, callback: Callable[[str], None]) -> None:
        """Call back with the name of a plugin whose code was another one when its process was started again."""
        self._callbacks.append(callback)

    async def aclose(self) -> None:
        """Stop every process."""
        self._variants.clear()
        await self._processes.aclose()

    def _variant(self, spec: PluginSpec, overrides: JsonObject) -> _Variant:
        key = spec.name, variant_key(overrides)
        known = self._variants.get(key)
        if known is None or (known.spec is not spec and known.spec != spec):
            name = self._names.setdefault(key, spec.name if not overrides else f"{spec.name} #{len(self._names) + 1}")
            process = process_spec(
                spec, overrides, name=name, env=self._env, idle=self._idle, keeps=self._store is not None
            )
            known = self._variants[key] = _Variant(spec=spec, overrides=overrides, process=process)
        return known


def _label(spec: PluginSpec) -> str:
    return f"Plugin {spec.name!r}"


def _modules(spec: PluginSpec) -> tuple[str, ...]:
    return (spec.target.partition(":")[0],) if isinstance(spec, PythonSpec) else ()


def _request_of(what: RequestKind, context: CallContext) -> dict[str, Any]:
    who = {"principal": context.principal, "agent": context.agent, "session": context.session}
    return {"what": what, "who": who}


def _context_to_pass(asked: JsonObject, scope: str) -> CallContext:
    """Return the context of a request to a process: what is asked goes along, and no one can be asked anything."""
    return CallContext(scope=scope, meta={ASKED: asked})


def _split_result(result: CallResult) -> tuple[CallResult, JsonObject]:
    """Return the result of a call, and what came along with it."""
    answer = result.meta.get(ANSWERED)
    if answer is None:
        return result, EMPTY
    if "json" in answer:
        raw: dict[str, Any] = json.loads(answer["json"])
        whole = CallResult(
            content=tuple(Frozen(block) for block in raw["content"]),
            structured=raw.get("structuredContent"),
            is_error=raw.get("isError") is True,
            meta=Frozen(raw.get("_meta") or {}),
        )
        return _split_result(whole)
    meta = Frozen({key: value for key, value in result.meta.items() if key != ANSWERED})
    return replace(result, meta=meta), answer
