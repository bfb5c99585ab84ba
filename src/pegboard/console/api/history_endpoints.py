"""The texts that the configuration had, and what people changed since a moment."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pegboard.console.api.endpoint import Endpoint, request_class
from pegboard.console.context import Context
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.sent_fields import number_of_version
from pegboard.operators.editing import ProposedEdit
from pegboard.operators.history import ChangesSince, ComparedVersion, ConfigurationVersion, changes_since


@request_class
class ChangesQuery:
    """Since when."""

    since: datetime
    """The moment, with its zone."""


async def versions(context: Context, visit: OperatorRequest) -> tuple[ConfigurationVersion, ...]:
    """Return the newest 100 texts that the configuration had, without the texts."""
    context.require_every_agent(visit)
    return await context.history.versions()


async def version(context: Context, visit: OperatorRequest, *, number: str) -> ComparedVersion:
    """Return a version with what it changed, and what restoring it would change."""
    context.require_every_agent(visit)
    return await context.history.version(number_of_version(number))


async def restore(context: Context, visit: OperatorRequest, *, number: str) -> ProposedEdit:
    """Return what it would come to to put a version in the place of the file; nothing is written."""
    context.require_every_agent(visit)
    return await context.history.restore(context.editor(visit), number_of_version(number))


async def changes(context: Context, visit: OperatorRequest, *, query: ChangesQuery) -> ChangesSince:
    """Return what people changed since a moment: edits, switches and pauses, changed tools, approvals."""
    return await changes_since(context.services, query.since, agents=visit.operator.agents)


_ONE: Final = ("every_agent_required", "not_editable", "file_not_saved", "unknown_version")


ENDPOINTS: Final = (
    Endpoint("GET", "/api/changes", changes),
    Endpoint("GET", "/api/configuration/history", versions, _ONE[:3]),
    Endpoint("GET", "/api/configuration/history/{number}", version, _ONE),
    Endpoint(
        "POST",
        "/api/configuration/history/{number}/restore",
        restore,
        (*_ONE, "file_changed", "not_rewritable", "unknown_mark"),
        "configure",
    ),
)
