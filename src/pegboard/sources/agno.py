"""Toolkits of Agno: imported when first needed, constructed when loaded."""

from __future__ import annotations

import base64
import importlib
import importlib.util
import inspect
import logging
import re
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from pegboard.core.model.specs import PluginSpec, RegisteredSpec
from pegboard.core.model.tools import EMPTY, CallResult, Frozen, JsonObject, Manifest, Tool, text_result, variant_key
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext
from pegboard.sources.signatures import (
    Instances,
    Parameters,
    as_result,
    construct,
    failure,
    given_up,
    image_type,
    in_thread,
    parameters_of,
    stdout_to_stderr,
    summary,
)

_LOADER: Final = "agno:"
_LOGGERS: Final = ("agno", "agno-team", "agno-workflow")
_OF_TOOLKIT: Final = frozenset({"cache_results", "cache_ttl", "cache_dir", "timeout"})
_PIP_LINE: Final = re.compile(r"pip install (?:-U )?([^`\n]*[\w\]'])")
_LACKS_CREDENTIAL: Final = re.compile(
    r"(?i)(?=.*(key|token|credential|password|secret|account_sid|_url|_id\b))"
    r".*(not set|not provided|no .* provided|missing|is required|are required|must be set)"
)
_setting_up = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Constructed:
    """Hold a toolkit with its functions by name, ready to be called."""

    toolkit: Any
    functions: Mapping[str, Any] = field(default=EMPTY)
    parameters: Parameters
    description: str = ""

    def manifest(self, plugin: str) -> Manifest:
        """Return what the toolkit says of itself."""
        return Manifest(
            tools=tuple(_tool(plugin, function) for function in self.functions.values()),
            parameters=self.parameters.types,
            secrets=self.parameters.secrets,
            description=self.description,
            instructions=str(getattr(self.toolkit, "instructions", None) or ""),
        )


class AgnoSource:
    """Bring in Agno's toolkits under their registered names."""

    def __init__(self) -> None:
        self._instances: Instances[Constructed] = Instances()

    def handles(self, spec: PluginSpec) -> bool:
        """Return whether the plugin is a toolkit of Agno."""
        return isinstance(spec, RegisteredSpec) and spec.loader.startswith(_LOADER)

    def fingerprint(self, spec: PluginSpec) -> str:  # noqa: ARG002
        """Return nothing: asking the code itself is always right."""
        return ""

    async def describe(self, spec: PluginSpec, overrides: JsonObject) -> Manifest:
        """Construct the toolkit and return its functions."""
        assert isinstance(spec, RegisteredSpec)
        return (await self._constructed(spec, overrides)).manifest(spec.name)

    async def call(
        self,
        spec: PluginSpec,
        overrides: JsonObject,
        tool: Tool,
        arguments: JsonObject,
        context: CallContext,  # noqa: ARG002
    ) -> CallResult:
        """Run the function as Agno would, without an agent; a failure is an error result."""
        assert isinstance(spec, RegisteredSpec)
        made = await self._constructed(spec, overrides)
        function = made.functions.get(tool.name)
        if function is None:
            raise ToolUnavailableError(f"plugin '{spec.name}' has no tool '{tool.name}' any more.")
        with stdout_to_stderr():
            try:
                outcome = await _executed(function, arguments)
                if outcome.status != "success":
                    return text_result(str(outcome.error or "the tool failed"), is_error=True)
                return _result(await _settled(outcome.result))
            except BaseException as error:  # whatever a toolkit raises is the tool's own failure
                if given_up(error):
                    raise
                return failure(error)

    def on_changed(self, callback: Callable[[str], None]) -> None:
        """Take no callback: toolkits do not change by themselves."""

    async def aclose(self) -> None:
        """Close the toolkits that hold a connection."""
        for made in self._instances.drain():
            with stdout_to_stderr(), suppress(Exception):  # a service that is gone is closed enough
                outcome = made.toolkit.close()
                if inspect.isawaitable(outcome):
                    await outcome

    async def _constructed(self, spec: RegisteredSpec, overrides: JsonObject) -> Constructed:
        async def make() -> Constructed:
            with stdout_to_stderr():
                return await in_thread(_construct, spec, overrides)

        return await self._instances.get((spec.name, spec.loader, variant_key(overrides)), make)


def _construct(spec: RegisteredSpec, overrides: JsonObject) -> Constructed:
    """Return the toolkit of a specification; blocks, and may contact its service."""
    if importlib.util.find_spec("agno") is None:
        raise ToolUnavailableError(
            f"plugin '{spec.name}' is a toolkit of Agno, which is not installed.", hint=spec.install
        )
    said: list[str] = []
    parameters = Parameters()
    try:
        with _agno_logs(said):
            module_name, _, class_name = spec.loader.removeprefix(_LOADER).rpartition(":")
            toolkit_class: Any = getattr(importlib.import_module(module_name), class_name)
            base: Any = importlib.import_module("agno.tools.toolkit").Toolkit
            parameters = _parameters(toolkit_class, base)
            toolkit = construct(toolkit_class, parameters, overrides, plugin=spec.name)
            functions = _functions(toolkit)
    except ToolUnavailableError:
        raise
    except ImportError as error:
        raise ToolUnavailableError(
            f"plugin '{spec.name}' needs a package that is not installed: {_first_line(error)}",
            hint=_pip_line(str(error), spec, absent=error.name or ""),
        ) from error
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # whatever a toolkit raises means that it cannot run
        reason = "; ".join(dict.fromkeys((*said, _first_line(error))))
        raise ToolUnavailableError(
            f"plugin '{spec.name}' could not be constructed: {reason}",
            hint=_pip_line(reason, spec) if "pip install" in reason else _credential_hint(spec, reason, parameters),
        ) from error
    lacking = next((text for text in said if _LACKS_CREDENTIAL.match(text) and "disabled" not in text), "")
    if lacking:
        hint = _credential_hint(spec, lacking, parameters)
        raise ToolUnavailableError(f"plugin '{spec.name}' lacks a credential: {lacking}", hint=hint)
    return Constructed(
        toolkit=toolkit, functions=functions, parameters=parameters, description=_description(toolkit_class)
    )


def _parameters(toolkit_class: type, base: type) -> Parameters:
    """Return what the toolkit takes; a database is an object, whatever its annotation lets through."""
    found = parameters_of(toolkit_class, base=base, of_base=_OF_TOOLKIT)
    objects = tuple(name for name in found.required if name == "db")
    return replace(found, unfit=tuple(dict.fromkeys((*found.unfit, *objects))))


def _description(toolkit_class: type) -> str:
    """Return the first line of the class's own docstring, or of its module's."""
    own = toolkit_class.__dict__.get("__doc__")
    return summary(toolkit_class if own else sys.modules[toolkit_class.__module__])


def _functions(toolkit: Any) -> Mapping[str, Any]:
    """Return the functions that can run without an agent, the asynchronous ones where there are two."""
    ready: dict[str, Any] = {}
    for name, function in toolkit.get_async_functions().items():
        if function.external_execution or function.requires_user_input:
            continue
        function.process_entrypoint()
        ready[name] = function
    return Frozen(ready)


def _tool(plugin: str, function: Any) -> Tool:
    annotations = dict(function.annotations or {})
    if function.title:
        annotations["title"] = function.title
    if function.has_side_effects is False:
        annotations.setdefault("readOnlyHint", True)
    return Tool(
        plugin=plugin,
        name=function.name,
        description=function.description or "",
        input_schema=Frozen(function.parameters),
        annotations=Frozen(annotations),
    )


async def _executed(function: Any, arguments: JsonObject) -> Any:
    """Run a function with what Agno itself puts in for agent, run context and media: nothing."""
    call: Any = importlib.import_module("agno.tools.function").FunctionCall
    request = call(function=function, arguments=dict(arguments))
    if inspect.iscoroutinefunction(function.entrypoint) or inspect.isasyncgenfunction(function.entrypoint):
        return await request.aexecute()
    return await in_thread(request.execute)


async def _settled(value: Any) -> Any:
    """Return what a generator yields, joined where it is text."""
    parts: list[Any]
    if inspect.isasyncgen(value):
        parts = [part async for part in value]
    elif inspect.isgenerator(value):
        parts = await in_thread(lambda: list(cast("Iterator[Any]", value)))
    else:
        return value
    return "".join(parts) if all(isinstance(part, str) for part in parts) else parts


def _result(value: Any) -> CallResult:
    """Return what a function returned; a ``ToolResult`` with its images, sounds and files."""
    if type(value).__name__ != "ToolResult":
        return as_result(value)
    blocks: list[JsonObject] = [{"type": "text", "text": value.content}]
    for kind, fallback in (("images", "image/png"), ("audios", "audio/mpeg"), ("videos", "video/mp4"), ("files", "")):
        blocks.extend(_medium(item, fallback) for item in getattr(value, kind, None) or ())
    extra = dict(value.metadata or {})
    return CallResult(
        content=tuple(blocks), structured=extra.get("structured_content"), meta=extra.get("meta") or EMPTY
    )


def _medium(item: Any, fallback: str) -> JsonObject:
    """Return a block for one of Agno's media: its bytes, else a link to it."""
    data = item.content if isinstance(getattr(item, "content", None), bytes) else b""
    kind = getattr(item, "mime_type", None) or image_type(data) or fallback or "application/octet-stream"
    name = getattr(item, "filename", None) or getattr(item, "id", None) or "result"
    if not data:
        uri = str(getattr(item, "url", None) or getattr(item, "filepath", None) or f"pegboard://{name}")
        return {"type": "resource_link", "uri": uri, "name": str(name), "mimeType": kind}
    encoded = base64.b64encode(data).decode()
    family = kind.partition("/")[0]
    if family in ("image", "audio"):
        return {"type": family, "data": encoded, "mimeType": kind}
    return {"type": "resource", "resource": {"uri": f"pegboard://{name}", "mimeType": kind, "blob": encoded}}


def _first_line(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return text or type(error).__name__


def _pip_line(text: str, spec: RegisteredSpec, *, absent: str = "") -> str:
    """Return the line that installs what is missing: as Agno's own error has it, else all that is known."""
    said = _PIP_LINE.search(text)
    if said:
        return f"pip install {said[1]}"
    packages = spec.install.replace("'pegboard[agno]'", "").split()[2:]
    return " ".join(["pip install", *(packages or [absent.split(".", maxsplit=1)[0] or "agno"])])


def _credential_hint(spec: RegisteredSpec, said: str, parameters: Parameters) -> str:
    """Return where a missing credential can be given, if that is what the message is about."""
    if not _LACKS_CREDENTIAL.match(said):
        return ""
    names = re.findall(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b", said)
    ways = [f"set {' and '.join(dict.fromkeys(names))} in the environment"] if names else []
    ways += [f"give '{name}' inline: '- {spec.name}: {{{name}: …}}'" for name in sorted(parameters.secrets)[:1]]
    text = " or ".join(ways)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


@contextmanager
def _agno_logs(said: list[str]) -> Generator[None]:
    """Collect the warnings that this thread's use of Agno logs; where we brought Agno in, keep it quiet.

    Agno logs to standard output unless somebody configured its loggers before.
    """
    with _setting_up:
        if "agno.utils.log" not in sys.modules:
            importlib.import_module("agno.utils.log")
            for name in _LOGGERS:
                logger = logging.getLogger(name)
                logger.handlers = [logging.NullHandler()]
                logger.propagate = False
    thread = threading.get_ident()
    handler = logging.Handler(logging.WARNING)

    def take(record: logging.LogRecord) -> None:
        if record.thread == thread:
            said.append(record.getMessage().strip().partition("\n")[0])

    handler.emit = take  # type: ignore[method-assign]
    logger = logging.getLogger(_LOGGERS[0])
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
