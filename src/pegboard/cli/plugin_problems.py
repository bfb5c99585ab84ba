"""What only `pegboard check` finds out of plugins, since it calls their code: overrides, predicates; and notes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pegboard.assembly import processes_of
from pegboard.config.accepted_files import accepted_files, code_folder, path_of
from pegboard.config.check.plugin_checks import Misfit
from pegboard.config.own_files import ConfiguredFiles, store_file
from pegboard.core.access.named_paths import UNCOUNTED
from pegboard.core.access.settings.predicates import fault_of_error
from pegboard.core.model.masking import Masker
from pegboard.core.model.naming import one_line
from pegboard.core.model.specs import PluginSpec, RegisteredSpec, ServerSpec
from pegboard.errors import OverrideError, ToolUnavailableError
from pegboard.problems import Problem
from pegboard.sources.confinement import line_for, named_paths, points_to_socket, policy_for
from pegboard.sources.lazy import LazyHooks
from pegboard.sources.plugin_process.process_spec import process_spec

if TYPE_CHECKING:
    from pegboard.board import Board
    from pegboard.board.catalog.loader import PluginRequest
    from pegboard.config.schema.configuration import Configuration
    from pegboard.core.access.named_paths import OwnPaths
    from pegboard.core.model.specs import Confinement
    from pegboard.sources.confinement import ConfinementPolicy


async def misfits_of(board: Board, want: PluginRequest) -> list[Misfit]:
    """Return the overrides of a request that its plugin does not take; a server takes none."""
    loader, (name, key) = board.services.loader, want.key
    plugin = board.world.catalog.plugins[name]
    if plugin.kind == "server":
        message, hint = f"'{name}' is a server and takes no overrides.", "Write its settings under `servers`."
        return [Misfit(plugin=name, key=key, override=one, message=message, hint=hint) for one in want.overrides]
    if not want.overrides or not plugin.variant(key).unavailable:
        return []
    spec = loader.specs[name]
    try:
        await loader.source_of(spec).describe(spec, want.overrides)
    except OverrideError as error:
        return [Misfit(plugin=name, key=key, override=error.override, message=error.message, hint=error.hint)]
    except Exception:  # a plugin's own code may raise anything; it is reported with its faults
        return []
    return []


async def unfounded_conditions(configuration: Configuration) -> Sequence[Problem]:
    """Return the predicates that cannot be imported, so that what they stand for can never run (T12)."""
    masker, found = Masker(configuration.secrets), list[Problem]()
    apart = processes_of(configuration, masker, os.environ)
    beside, accepted = configuration.path.absolute().parent, accepted_files(path_of(configuration))
    hooks = LazyHooks(code_folder(beside, accepted), apart)
    try:
        for spec in configuration.specs.values():
            for tool, condition in spec.when.items():
                try:
                    await hooks.prepare(condition)
                except Exception as error:  # a module may raise anything
                    of = f"tool '{tool}': " if tool else ""
                    message = masker.text(one_line(f"plugin '{spec.name}': {of}{fault_of_error(error)}", limit=400))
                    hint = f"Correct `when: {condition}`, or provide the function."
                    found.append(
                        Problem(severity="warning", code="unavailable", message=message, hint=hint, place=spec.place)
                    )
    finally:
        hooks.close()
        await apart.aclose()
    return found


def notes(board: Board) -> Iterator[str]:
    """Yield what is as it has to be, and may be expected to be otherwise."""
    scheduler = board.services.loader.specs.get("scheduler")
    if isinstance(scheduler, RegisteredSpec) and scheduler.brings_tools:
        yield ("plugin 'scheduler' stores schedules, but no host runs them here (`board.on_schedule`).")


def out_of_reach(configuration: Configuration) -> tuple[list[Problem], list[str]]:
    """Return what confined plugins are given and could not reach, and what else is to be known of them."""
    problems: list[Problem] = []
    besides: list[str] = []
    confined = [spec for spec in configuration.specs.values() if spec.confine is not None]
    if not confined:
        return problems, besides
    own = own_paths(configuration)
    for spec in confined:
        try:
            started = started_as(spec)
        except ToolUnavailableError:  # it is said where the plugin is asked
            continue
        for message, hint in _unreachable_parts(started, spec.name, own, besides):
            found = Problem(severity="warning", code="out_of_reach", message=message, hint=hint, place=spec.place)
            problems.append(found)
    return problems, besides


def own_paths(configuration: Configuration) -> OwnPaths:
    """Return the files of Pegboard's own under a configuration, as they are kept from what is confined (P10)."""
    store = store_file(configuration.store)
    stores = (store,) if store else ()
    return ConfiguredFiles(configuration=configuration, env=os.environ, stores=stores).kept_from_confined


def started_as(spec: PluginSpec) -> ServerSpec:
    """Return the process of what is confined, as a server; raises ``ToolUnavailableError`` where there can be none."""
    if isinstance(spec, ServerSpec):
        return spec
    return process_spec(spec, {}, name=spec.name, env=os.environ, idle=None, keeps=False)


def policy_of(spec: ServerSpec, confinement: Confinement, own: OwnPaths) -> ConfinementPolicy:
    """Return what the process of a server or plugin may reach; raises ``ToolUnavailableError`` where it cannot be."""
    return policy_for(
        confinement,
        name=spec.name,
        command=spec.command or "",
        args=spec.args,
        env={**os.environ, **spec.env},
        cwd=spec.cwd,
        own=own,
        reads=spec.reads,
    )


def _unreachable_parts(spec: ServerSpec, name: str, own: OwnPaths, besides: list[str]) -> Iterator[tuple[str, str]]:
    """Yield what a confined process would not get, and the line that gives it."""
    assert spec.confine is not None
    subject = f"{spec.noun} '{name}'"
    try:
        policy = policy_of(spec, spec.confine, own)
    except ToolUnavailableError as refused:
        if spec.noun == "server":  # a plugin is asked for its tools by every check, and says so itself
            yield f"{subject} is not available: {refused.message}.", refused.hint
        return
    if policy.refused_paths:
        message = f"{subject} is confined, and its folder is the whole home folder, so it gets no folder."
        yield message, "Name what it needs: `confine: {write: [folder]}`, or give it a `cwd`."
    if own_here := [path for path in own.files if own.files[path] not in UNCOUNTED and policy.writes(path)]:
        besides.append(
            f"{subject} is confined, and may write '{own_here[0]}': what Pegboard reads and runs from there counts as "
            "it was accepted last, and an edit waits for `pegboard accept`."
        )
    for what, path in named_paths(spec.args, spec.env, spec.cwd or ""):
        if not policy.reads(path):
            message = f"{subject} is confined, and its {what} names '{path}', which it could not reach."
            yield message, f"Write {line_for(spec.confine, 'write', path)}, or `read` in place of `write`."
    for variable, value in spec.env.items():
        if points_to_socket(variable, value):
            yield f"{subject} is confined, and does not get `{variable}`, which leads to a socket.", ""
