"""What only `pegboard check` finds out of plugins, since it calls their code: overrides, predicates; and notes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pegboard.core.model.specs import RegisteredSpec
from pegboard.errors import OverrideError
from pegboard.problems import Problem

if TYPE_CHECKING:
    from pegboard.board import Board
    from pegboard.board.catalog.loader import PluginRequest
    from pegboard.config.check.override_checks import Misfit
    from pegboard.config.schema.configuration import Configuration


async def misfits_of(board: Board, want: PluginRequest) -> list[Misfit]:
    """Return the overrides of a request that its plugin does not take; a server takes none."""
    from pegboard.config.check.override_checks import Misfit

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
    from pegboard.assembly import processes_of
    from pegboard.core.access.settings.predicates import fault_of_error
    from pegboard.core.model.masking import Masker
    from pegboard.core.model.naming import one_line
    from pegboard.sources.late import LateHooks

    masker, found = Masker(configuration.secrets), list[Problem]()
    apart = processes_of(configuration, masker, os.environ)
    hooks = LateHooks(configuration.path.absolute().parent, apart)
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
        yield (
            "plugin 'scheduler' stores schedules, and nothing here runs them: a host does that (`board.on_schedule`)."
        )
