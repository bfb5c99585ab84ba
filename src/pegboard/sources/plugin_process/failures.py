"""What a process reports that failed there, as the error that the plugin would have raised in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import JsonObject
from pegboard.errors import OverrideError, ToolUnavailableError
from pegboard.sources.code import place_of
from pegboard.sources.plugin_process.process_spec import ProcessSpec, unread_variables


def error_of(reported: JsonObject, spec: PluginSpec, process: ProcessSpec) -> Exception:
    """Return the error for what a process reported."""
    message, hint = str(reported["message"]), str(reported.get("hint", ""))
    if "override" in reported:
        return OverrideError(message, override=str(reported["override"]), hint=hint)
    if not reported.get("unavailable"):
        return _exception_named(str(reported["type"]), message)
    if (path := _out_of_reach(reported, spec)) is not None:
        message = f"{message.removesuffix('.')}: {path} is out of reach, because the plugin is confined."
        hint = f"Let it read that: `confine: {{read: [{path if 'path' in reported else path.parent}]}}`."
    elif names := list(unread_variables(f"{message} {hint}", process)):
        hint = f"Let the process of the plugin have it: `needs: {{env: [{', '.join(names)}]}}`."
    return ToolUnavailableError(message, hint=hint, location=spec.place)


def _out_of_reach(reported: JsonObject, spec: PluginSpec) -> Path | None:
    """Return what the process could not read and this one can: a path, or the place of a module."""
    if "path" in reported:
        return Path(str(reported["path"]))
    if "module" in reported:
        return place_of(str(reported["module"]), getattr(spec, "folder", None))
    return None


def _exception_named(kind: str, message: str) -> Exception:
    """Return an exception of the name that the one there had, which is all that is shown of it."""
    made: Any = type(kind, (Exception,), {})
    return made(message)
