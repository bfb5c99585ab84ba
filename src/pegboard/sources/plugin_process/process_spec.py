"""How the process of a plugin is started, in the terms in which a server is."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pegboard.core.model.specs import PluginSpec, PythonSpec, RegisteredSpec, ServerSpec
from pegboard.core.model.tools import Frozen, JsonObject
from pegboard.errors import ToolUnavailableError
from pegboard.mcp_extra import missing_requirements
from pegboard.sources.code import import_path_of
from pegboard.sources.plugin_process.forms import SETTINGS
from pegboard.support.imported_modules import own_files
from pegboard.support.installed import install_hint

_PROGRAM: Final = Path(__file__).with_name("child") / "__main__.py"
_CONSTRUCTED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "PythonSpec": ("name", "target", "folder", "description"),
    "RegisteredSpec": ("name", "loader", "packages", "counterpart", "module", "package"),
}
"""What of a specification says how a plugin is constructed, by its kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec(ServerSpec):
    """The process of a plugin, as the server that it is started like: ``name`` tells variants of a plugin apart."""

    plugin: str

    @property
    def noun(self) -> str:
        """Return what it is, in messages."""
        return "plugin"

    @property
    def label(self) -> str:
        """Return how messages name it."""
        return f"Plugin {self.plugin!r}"

    @property
    def limit_hint(self) -> str:
        """Return what to do where an answer of its is too large."""
        return "Let its tools return less: what comes from a process of its own has the limits of a server."

    @property
    def section(self) -> str:
        """Return where its settings are written."""
        return f"plugins: {self.plugin}"


def process_spec(
    spec: PluginSpec, overrides: JsonObject, *, name: str, env: Mapping[str, str], idle: float | None, keeps: bool
) -> ProcessSpec:
    """Return how the process of a plugin is started under its overrides.

    Args:
        spec: The plugin.
        overrides: What the configuration sets inline.
        name: Tells the process from those of other variants.
        env: The variables that the configuration may name; the process has those that ``needs`` of the plugin names.
        idle: After how many seconds without a call it is stopped where the plugin does not say; None lets it run.
        keeps: Whether a store has the states of sessions.

    Raises:
        ToolUnavailableError: An override is no JSON, or what starts a process is not there.
    """
    if not sys.executable:
        raise ToolUnavailableError(f"plugin '{spec.name}' cannot have a process of its own: there is no interpreter.")
    if missing := missing_requirements():
        message = f"plugin '{spec.name}' is confined, and a process of its own needs the extra mcp: {missing}."
        raise ToolUnavailableError(message, hint=install_hint(extra="mcp"))
    settings = {
        "kind": type(spec).__name__,
        "spec": {key: getattr(spec, key) for key in _CONSTRUCTED_BY[type(spec).__name__]},
        "overrides": overrides,
        "path": sys.path,
        "keeps": keeps,
    }
    try:
        text = json.dumps(settings)
    except (TypeError, ValueError) as error:
        raise ToolUnavailableError(
            f"plugin '{spec.name}' runs in a process of its own, and its overrides cannot be written as JSON: {error}.",
            hint="Give it values that JSON can express, or remove `confine`.",
            location=spec.place,
        ) from error
    return ProcessSpec(
        name=name,
        plugin=spec.name,
        command=sys.executable,
        args=("-P", str(_PROGRAM)),
        env=Frozen({**_needed_variables(spec, env), SETTINGS: text}),
        timeout=spec.timeout,
        cwd=(spec.confine.folder or None) if spec.confine is not None else None,
        idle=idle if spec.idle is None else spec.idle,
        confine=spec.confine,
        reads=tuple(_files_of_plugin(spec)),
        place=spec.place,
    )


def _files_of_plugin(spec: PluginSpec) -> Iterator[str]:
    """Yield what a plugin is brought in by: in its project the module's own files, else the package or its folder."""
    place = import_path_of(spec)
    if place is None:
        return
    if isinstance(spec, PythonSpec) and spec.folder and place.is_relative_to(spec.folder):
        yield from own_files(spec.folder, [place.relative_to(spec.folder).parts[0].removesuffix(".py")])
    else:
        yield str(place if place.is_dir() else place.parent)


def _needed_variables(spec: PluginSpec, env: Mapping[str, str]) -> dict[str, str]:
    names = (name for needed in spec.needs.values() for name in needed)
    return {name: env[name] for name in names if name in env}


def spec_of(kind: str, given: Mapping[str, Any]) -> PluginSpec:
    """Return the specification that the process of a plugin was given: who waits for its answers ends its calls."""
    kinds = {kind.__name__: kind for kind in (PythonSpec, RegisteredSpec)}
    return kinds[kind](**given, timeout=math.inf)


def unread_variables(text: str, process: ProcessSpec) -> Iterator[str]:
    """Yield the variables of this process that a text names and the process of a plugin does not have."""
    for word in dict.fromkeys(text.replace("'", " ").replace("`", " ").split()):
        name = word.strip('.,:;()"')
        if name.isupper() and name in os.environ and name not in process.env:
            yield name
