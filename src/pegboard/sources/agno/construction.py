"""Toolkits of Agno, constructed: their functions, or what they lack."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pegboard.core.model.specs import RegisteredSpec
from pegboard.core.model.tools import EMPTY, Frozen, JsonObject, Manifest, Tool
from pegboard.errors import ToolUnavailableError
from pegboard.sources.agno.loggers import collected_warnings
from pegboard.sources.signatures import Parameters, construct, parameters_of, summary

LOADER: Final = "agno:"
_OF_TOOLKIT: Final = frozenset({"cache_results", "cache_ttl", "cache_dir", "timeout"})
_PIP_LINE: Final = re.compile(r"pip install (?:-U )?([^`\n]*[\w\]'])")
_LACKS_CREDENTIAL: Final = re.compile(
    r"(?i)(?=.*(key|token|credential|password|secret|account_sid|_url|_id\b))"
    r".*(not set|not provided|no .* provided|missing|is required|are required|must be set)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constructed:
    """A toolkit with its functions by name, ready to be called."""

    toolkit: Any
    functions: Mapping[str, Any] = field(default=EMPTY)
    parameters: Parameters
    description: str = ""

    def manifest(self, plugin: str) -> Manifest:
        """Return the toolkit's manifest."""
        return Manifest(
            tools=tuple(_tool(plugin, function) for function in self.functions.values()),
            parameters=self.parameters.types,
            secrets=self.parameters.secrets,
            description=self.description,
            instructions=str(getattr(self.toolkit, "instructions", None) or ""),
        )


def constructed(spec: RegisteredSpec, overrides: JsonObject) -> Constructed:
    """Return the toolkit of a specification; blocks, and may contact its service.

    Raises ``ToolUnavailableError`` with what to install, set or give.
    """
    parameters = Parameters()
    with collected_warnings() as warnings:
        try:
            toolkit_class = _class(spec)
            parameters = _parameters(toolkit_class)
            toolkit = construct(toolkit_class, parameters, overrides, plugin=spec.name)
            functions = _functions(toolkit)
        except ToolUnavailableError:
            raise
        except ImportError as error:
            raise _lacks_package(spec, error) from error
        except BaseException as error:  # whatever a toolkit raises: it cannot run
            raise _failed(spec, parameters, (*warnings, _first_line(error))) from error
    _refuse_without_credential(spec, parameters, warnings)
    return Constructed(
        toolkit=toolkit, functions=functions, parameters=parameters, description=_description(toolkit_class)
    )


def require_agno(spec: RegisteredSpec) -> None:
    """Raise ``ToolUnavailableError`` where Agno is not installed."""
    if importlib.util.find_spec("agno") is None:
        raise ToolUnavailableError(
            f"plugin '{spec.name}' is a toolkit of Agno, which is not installed.", hint=spec.install
        )


def _class(spec: RegisteredSpec) -> type:
    module_name, _, class_name = spec.loader.removeprefix(LOADER).rpartition(":")
    return getattr(importlib.import_module(module_name), class_name)


def _lacks_package(spec: RegisteredSpec, error: ImportError) -> ToolUnavailableError:
    return ToolUnavailableError(
        f"plugin '{spec.name}' needs a package that is not installed: {_first_line(error)}",
        hint=_pip_line(str(error), spec, absent=error.name or ""),
    )


def _failed(spec: RegisteredSpec, parameters: Parameters, causes: Sequence[str]) -> ToolUnavailableError:
    reason = "; ".join(dict.fromkeys(causes))
    return ToolUnavailableError(
        f"plugin '{spec.name}' could not be constructed: {reason}",
        hint=_pip_line(reason, spec) if "pip install" in reason else _credential_hint(spec, reason, parameters),
    )


def _refuse_without_credential(spec: RegisteredSpec, parameters: Parameters, warnings: Sequence[str]) -> None:
    lacking = next((text for text in warnings if _LACKS_CREDENTIAL.match(text) and "disabled" not in text), "")
    if lacking:
        hint = _credential_hint(spec, lacking, parameters)
        raise ToolUnavailableError(f"plugin '{spec.name}' lacks a credential: {lacking}", hint=hint)


def _parameters(toolkit_class: type) -> Parameters:
    """Return what the toolkit takes; a database is an object, whatever its annotation lets through."""
    base: Any = importlib.import_module("agno.tools.toolkit").Toolkit
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


def _first_line(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return text or type(error).__name__


def _pip_line(text: str, spec: RegisteredSpec, *, absent: str = "") -> str:
    """Return the line that installs what is missing: as Agno's own error has it, else all that is known."""
    found = _PIP_LINE.search(text)
    if found:
        return f"pip install {found[1]}"
    packages = spec.install.replace("'pegboard[agno]'", "").split()[2:]
    return " ".join(["pip install", *(packages or [absent.split(".", maxsplit=1)[0] or "agno"])])


def _credential_hint(spec: RegisteredSpec, message: str, parameters: Parameters) -> str:
    """Return where a missing credential can be given, if that is what the message is about."""
    if not _LACKS_CREDENTIAL.match(message):
        return ""
    names = re.findall(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b", message)
    ways = [f"set {' and '.join(dict.fromkeys(names))} in the environment"] if names else []
    ways += [f"give '{name}' inline: '- {spec.name}: {{{name}: …}}'" for name in sorted(parameters.secrets)[:1]]
    text = " or ".join(ways)
    return f"{text[:1].upper()}{text[1:]}." if text else ""
