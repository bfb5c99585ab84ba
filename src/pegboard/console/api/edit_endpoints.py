"""Edits of the configuration: proposed, looked at, saved and taken back (P10)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from pegboard.console.api.endpoint import Endpoint, received
from pegboard.console.context import Context
from pegboard.console.operator_request import OperatorRequest
from pegboard.operators.editable import ConfigurationChange
from pegboard.operators.editing import EditableParts, ProposedEdit, SavedEdit, WholeFile


@received
class ProposedChange:
    """One change of the configuration."""

    path: Annotated[tuple[str, ...], Field(min_length=1, max_length=20)]
    """The keys that lead to what is different, such as `["agents", "assistant", "role"]`."""
    value: Any = None
    """What is to stand there, as JSON; a mark that stands for a secret is that secret."""
    remove: bool = False
    """Whether nothing is to stand there."""


@received
class ProposedChanges:
    """What is to be different."""

    changes: Annotated[tuple[ProposedChange, ...], Field(min_length=1, max_length=1000)]
    """The changes, made one after the other."""
    what: Annotated[str, Field(max_length=200)] = ""
    """What they do, in words."""


@received
class ProposedText:
    """Another text of the whole file."""

    text: str
    """The text; a mark that stands for a secret is that secret."""
    digest: str
    """That of the text which it was made from."""


async def file_text(context: Context, visit: OperatorRequest) -> WholeFile:
    """Return the configuration as it is written, with a mark in place of each secret."""
    context.require_every_agent(visit)
    return await context.editing.whole()


async def parts(context: Context, visit: OperatorRequest) -> EditableParts:
    """Return the names of what the operator may edit."""
    return await context.editing.parts(context.editor(visit))


async def propose(context: Context, visit: OperatorRequest, *, body: ProposedChanges) -> ProposedEdit:
    """Return what changes of the configuration come to; nothing is written."""
    meant = visit.names.meant
    changes = [
        ConfigurationChange(path=tuple(map(meant, one.path)), value=one.value, remove=one.remove)
        for one in body.changes
    ]
    return await context.editing.propose(context.editor(visit), changes, what=body.what)


async def propose_text(context: Context, visit: OperatorRequest, *, body: ProposedText) -> ProposedEdit:
    """Return what another text of the whole file comes to; nothing is written."""
    return await context.editing.propose_text(context.editor(visit), body.text, expected=body.digest)


async def proposed(context: Context, visit: OperatorRequest, *, id: str) -> ProposedEdit:  # noqa: A002 - the segment's name
    """Return an edit that is not saved yet, as it was proposed."""
    return await context.editing.shown(context.editor(visit), id)


async def again(context: Context, visit: OperatorRequest, *, id: str) -> ProposedEdit:  # noqa: A002
    """Return what an edit comes to in what the file is now; nothing is written."""
    return await context.editing.again(context.editor(visit), id)


async def save(context: Context, visit: OperatorRequest, *, id: str) -> SavedEdit:  # noqa: A002
    """Save an edit as it was proposed, or take a saved one back; what it widens counts as accepted by the operator."""
    return await context.editing.save(context.editor(visit), id)


_FILE: Final = ("not_editable", "file_not_saved", "file_changed")
_EDIT: Final = (*_FILE, "every_agent_required", "not_rewritable", "unknown_mark")
_ONE: Final = (*_EDIT, "unknown_edit")
ENDPOINTS: Final = (
    Endpoint("GET", "/api/configuration/file", file_text, ("every_agent_required", *_FILE), "configure"),
    Endpoint("POST", "/api/configuration/file", propose_text, _EDIT, "configure"),
    Endpoint("GET", "/api/configuration/parts", parts, _FILE, "configure"),
    Endpoint("POST", "/api/configuration/edits", propose, _EDIT, "configure"),
    Endpoint("GET", "/api/configuration/edits/{id}", proposed, ("unknown_edit",), "configure"),
    Endpoint("POST", "/api/configuration/edits/{id}/again", again, _ONE, "configure"),
    Endpoint("POST", "/api/configuration/edits/{id}/save", save, (*_ONE, "edit_refused"), "configure"),
)
