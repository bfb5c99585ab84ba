"""What a model calls: the decision, the tool itself or the meta-tool, the audit. For sessions only."""

from typing import TYPE_CHECKING

from pegboard.support.lazy_modules import lazy_modules

if TYPE_CHECKING:
    from pegboard.board.calls import call_request, commands, meta_call, pipeline, resuming, scheduled_runs

__all__ = ["call_request", "commands", "meta_call", "pipeline", "resuming", "scheduled_runs"]

__getattr__ = lazy_modules(__name__, *__all__)
