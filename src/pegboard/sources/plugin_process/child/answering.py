"""The answers of one plugin: what it offers, what its tools return, what its hooks say."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, cast

from pegboard.core.access.settings.predicates import fault_of, fault_of_error
from pegboard.core.model.manifest_json import manifest_to_json
from pegboard.core.model.tools import CallResult, Tool
from pegboard.errors import OverrideError, PegboardError, ToolUnavailableError
from pegboard.ports import CallContext, ConditionalSource, HasHooks, SessionKey
from pegboard.sources.code import fingerprint
from pegboard.sources.lazy import LazyHooks, LazySource, local_sources
from pegboard.sources.plugin_process.forms import ANSWERED, ASKED
from pegboard.sources.plugin_process.process_spec import spec_of
from pegboard.sources.signatures import BuiltPlugin, LocalSource, blocks, run_here

Message = dict[str, Any]

_SCOPE: Final = "process"
"""The one scope of the objects here: Pegboard has a process for each of its own."""


class PluginAnswers:
    """The plugin of this process, constructed when something first needs it, by the source that it always has."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        spec = spec_of(given["kind"], given["spec"])
        self._overrides: Mapping[str, Any] = given["overrides"]
        store = _SessionData() if given["keeps"] else None
        sources = local_sources(None, store=store, apart=True)
        self._spec = spec
        self._source = next(source for source in sources if source.handles(spec))
        self._plugin: BuiltPlugin | None = None
        self._hooks = LazyHooks(Path(given["spec"].get("folder") or "."))

    async def answer(self, params: Message) -> Message:
        """Return the result of one request; what is raised is an answer too."""
        asked: Message = params["_meta"][ASKED]
        data = _CallSessionData(asked.get("data"))
        token = _DATA.set(data)
        try:
            os.environ.update(asked.get("env") or {})
            result = await self._answer_request(asked, params["name"], params["arguments"])
        except _SessionDataMissingError:
            result = _answered_also({"wants": "data"})
        except (Exception, SystemExit) as error:  # a plugin's own code may raise anything
            result = _answered_also({"error": _describe_error(error)})
        finally:
            _DATA.reset(token)
        if data.changes:
            result["_meta"] = {**result.get("_meta", {}), ANSWERED: {"data": data.changes}}
        return result

    def result_at_once(self, params: Message, loop: asyncio.AbstractEventLoop) -> Message | None:
        """Return the result of a call of a function that blocks, run in this thread; None for any other request.

        Once the plugin is constructed nothing but the function takes time, and a change of threads takes longer than
        most functions.
        """
        asked, name = params["_meta"][ASKED], params["name"]
        if asked["what"] != "call" or "env" in asked:
            return None
        plugin = self._plugin or self._construct()
        if plugin is None or name not in plugin.tools or not blocks(plugin.tools[name]) or plugin.threads.kept:
            return None
        context = CallContext(**asked["who"], scope=_SCOPE)
        try:
            return _wire(run_here(plugin.call(self._spec.name, name, params["arguments"], context), loop))
        except (Exception, SystemExit) as error:
            return _answered_also({"error": _describe_error(error)})

    def _construct(self) -> BuiltPlugin | None:
        source = self._source.source_if_made if isinstance(self._source, LazySource) else None
        found = source.ready(self._spec, self._overrides, _SCOPE) if isinstance(source, LocalSource) else None
        self._plugin = found if isinstance(found, BuiltPlugin) else None
        return self._plugin

    async def _answer_request(self, asked: Message, name: str, arguments: Message) -> Message:
        match asked["what"]:
            case "call":
                context = CallContext(**asked["who"], scope=_SCOPE)
                return _wire(await self._source.call(self._spec, self._overrides, self._tool(name), arguments, context))
            case "describe":
                return _answered_also({"value": await self._manifest()})
            case "hooks":
                context = CallContext(**asked["who"], scope=_SCOPE)
                tool = self._tool(name)
                assert isinstance(self._source, HasHooks)
                said = await self._source.ask_hooks(self._spec, self._overrides, tool, arguments, context)
                return _answered_also({"value": {"refused": said.refused, "approval": said.approval}})
            case "holds":
                return _answered_also({"value": await self._fault(name, asked["given"])})
            case "hook":
                return _answered_also({"value": _as_plain_json(await self._hooks.ask(name, *asked["given"]))})
            case _:
                await self._hooks.prepare(name)
                return _answered_also({"value": None})

    async def _manifest(self) -> Message:
        """Return what the plugin offers, and how its code looked when it was imported."""
        manifest = await self._source.describe(self._spec, self._overrides)
        code = fingerprint(self._spec, self._overrides)
        return {"manifest": manifest_to_json(manifest), "code": "" if code is None else code.code}

    def _tool(self, name: str) -> Tool:
        return Tool(plugin=self._spec.name, name=name)

    async def _fault(self, condition: str, given: list[object]) -> str:
        """Return why a predicate says that its tool cannot run now, or nothing."""
        assert isinstance(self._source, ConditionalSource)
        try:
            answer = await self._source.holds(self._spec, self._overrides, condition, *given, scope=_SCOPE)
        except (Exception, SystemExit) as error:  # a predicate's own code may raise anything
            return fault_of_error(error)
        return fault_of(answer)

    async def aclose(self) -> None:
        """Close what was constructed."""
        await self._source.aclose()
        self._hooks.close()


class _SessionDataMissingError(BaseException):
    """What the plugin keeps for the session of a call did not come with it; nothing has run."""


class _CallSessionData:
    """What the plugin keeps for the session of one call: as it came with it, and what has changed."""

    def __init__(self, given: Mapping[str, str] | None) -> None:
        self.given = given
        self.changes: dict[str, str | None] = {}


_DATA: ContextVar[_CallSessionData] = ContextVar("pegboard_session_data")


class _SessionData:
    """The store of this process: it is Pegboard's, which sends what is stored along with a call."""

    async def session_data(self, key: SessionKey) -> Mapping[str, str]:  # noqa: ARG002 - that of the call
        """Return what came with the call."""
        given = _DATA.get().given
        if given is None:
            raise _SessionDataMissingError
        return given

    async def keep_session_data(self, key: SessionKey, changes: Mapping[str, str | None]) -> None:  # noqa: ARG002
        """Let the changes go back with the answer."""
        _DATA.get().changes.update(changes)

    async def forget_session_data(self, key: SessionKey) -> bool:  # noqa: ARG002
        """Forget nothing: nothing is kept here."""
        return False


def _wire(result: CallResult) -> Message:
    message: Message = {"content": list(result.content)}
    if result.structured is not None:
        message["structuredContent"] = result.structured
    if result.is_error:
        message["isError"] = True
    if result.meta:
        message["_meta"] = dict(result.meta)
    return message


def _answered_also(answer: Message) -> Message:
    return {"content": [], "_meta": {ANSWERED: answer}}


def _describe_error(error: BaseException) -> Message:
    """Return what an exception says, and which module was not found, or which path was out of reach."""
    message: Message = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, PegboardError):
        message |= {
            "message": error.message,
            "hint": error.hint,
            "unavailable": isinstance(error, ToolUnavailableError),
        }
    if isinstance(error, OverrideError):
        message["override"] = error.override
    cause: BaseException | None = error
    while cause is not None:
        match cause:
            case ModuleNotFoundError(name=str() as name):
                message["module"] = name
            case PermissionError(filename=str() as path):
                message["path"] = path
            case _:
                pass
        cause = cause.__cause__ or cause.__context__
    return message


def _as_plain_json(answer: object) -> object:
    """Return the answer of a function of the configuration as JSON has it; raises ``TypeError`` for what it has not."""
    match answer:
        case None | bool() | int() | float() | str():
            return answer
        case Mapping():
            return {str(key): _as_plain_json(value) for key, value in cast("Mapping[object, object]", answer).items()}
        case list() | tuple() | set() | frozenset():
            return [_as_plain_json(value) for value in cast("list[object]", answer)]
        case _:
            raise TypeError(f"it answers {type(answer).__name__}, which JSON cannot express")
