"""Read the loadouts of a configuration, whatever else is wrong with it (L3)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pegboard.config.documents.document import UnreadableError
from pegboard.config.joining.joining_plugins import joined, with_settings
from pegboard.config.reading import Reading
from pegboard.core.model.loadouts import BUILT_IN, Loadout, category_of
from pegboard.core.model.specs import RegisteredSpec
from pegboard.core.model.tools import EMPTY, Frozen
from pegboard.problems import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Loadouts:
    """Loadouts by case-folded names, plugins with their categories, and why nothing could be read."""

    loadouts: Mapping[str, Loadout] = field(default=BUILT_IN)
    plugins: Mapping[str, str | None] = field(default=EMPTY)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    fault: Problem | None = None


def loadouts_of(
    path: Path, *, registered: Mapping[str, RegisteredSpec], env: Mapping[str, str] | None = None
) -> Loadouts:
    """Return the loadouts of a file that need not pass any check; of one that cannot be read, the built-in ones."""
    reading = Reading(path=path, env=os.environ if env is None else env)
    try:
        config, _ = reading.unchecked()
    except UnreadableError as error:
        return Loadouts(secrets=frozenset(reading.secrets), fault=error.problem)
    specs = joined(config, with_settings(config, registered))
    return Loadouts(
        loadouts=Frozen({**BUILT_IN, **config.loadouts}),
        plugins=Frozen({name: spec.category or category_of(name) for name, spec in specs.items()}),
        secrets=frozenset(reading.secrets),
    )
