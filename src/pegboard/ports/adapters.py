"""A host's own adapters, in place of those that Pegboard would pick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pegboard.ports.calls import ArgumentValidator
from pegboard.ports.conditions import HookRunner
from pegboard.ports.focus import FocusRules
from pegboard.ports.ranking import Ranker
from pegboard.ports.sources import Source
from pegboard.ports.stores import Store
from pegboard.ports.tokens import TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """The adapters that a host hands to ``Pegboard.open``; None stands for Pegboard's own.

    ``sources`` are asked before Pegboard's: the first that handles a plugin brings it in, whatever
    the configuration says of where it comes from. The board opens and closes what it is handed.
    """

    store: Store | None = None
    sources: Sequence[Source] = ()
    ranker: Ranker | None = None
    counter: TokenCounter | None = None
    validator: ArgumentValidator | None = None
    focus: FocusRules | None = None
    hooks: HookRunner | None = None
