"""Add servers: paste or import them, or fill a form in; try them, choose agents, and look at what changes (P10, X5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast, get_args

from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from pegboard.console import edit_forms
from pegboard.console.context import Context, Page
from pegboard.console.edit_forms import FilledField, Form
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.editing_page import to_proposal
from pegboard.console.pages.forms import Notice, after_form, text_of
from pegboard.console.templating import query
from pegboard.errors import PegboardError, UsageError
from pegboard.operators.adding_servers import ChosenServer, DraftServer, GrantWay, ServerDraft

HOME: Final = "/console/servers/add"
_DRAFT: Final = f"{HOME}/draft"
_SERVERS: Final = "/console/servers"


async def add_page(context: Context, visit: OperatorRequest) -> Response:
    """Show the ways in which a server is added."""
    context.require_every_agent(visit)
    return await _show_ways_to_add(context, visit)


async def _form(context: Context) -> Form:
    """Return the form over a new server."""
    form = edit_forms.form_of("servers", await context.editing.schema())
    return replace(form, fields=tuple(field for field in form.fields if not field.more and field.name != "approve"))


async def _show_ways_to_add(
    context: Context,
    visit: OperatorRequest,
    *,
    error: PegboardError | None = None,
    typed: Mapping[str, str] | None = None,
) -> Response:
    mask, given = visit.names.masker.text, typed or {}
    fields = (await _form(context)).fields
    filled = tuple(FilledField(field=field, text=given.get(field.name, "")) for field in fields)
    return context.templates.page(
        "add_server.html",
        visit,
        status=200 if error is None else 422,
        clients=await context.adding.clients(),
        first=context.board.quickstart,
        filled=filled,
        name=given.get("name", ""),
        by_form=typed is not None,
        error={"message": mask(error.message), "hint": mask(error.hint)} if error is not None else None,
    )


async def create_configuration(context: Context, visit: OperatorRequest) -> Response:
    """Write a first configuration into the folder of the gateway."""
    context.require_every_agent(visit)
    file = await context.board.create_configuration(by=visit.operator.name)
    message = f"{visit.names.masker.text(file)} is created, with the tools that were there before."
    return after_form(context, visit, Notice(message=message, hint="Add servers to it."), back=HOME)


async def read_pasted_servers(context: Context, visit: OperatorRequest) -> Response:
    """Read servers out of what was pasted; it is not shown again, since secrets may stand in it."""
    context.require_every_agent(visit)
    sent = await visit.request.form()
    try:
        draft = await context.adding.draft_from_paste(context.editor(visit), text_of(sent, "text"))
    except PegboardError as error:
        return await _show_ways_to_add(context, visit, error=error)
    return RedirectResponse(query(_DRAFT, id=draft.id), status_code=303)


async def import_from_client(context: Context, visit: OperatorRequest) -> Response:
    """Read the servers of a client of this machine."""
    context.require_every_agent(visit)
    sent = await visit.request.form()
    file = visit.names.meant(text_of(sent, "file"))
    draft = await context.adding.import_from_client(context.editor(visit), file)
    return RedirectResponse(query(_DRAFT, id=draft.id), status_code=303)


async def take_written_server(context: Context, visit: OperatorRequest) -> Response:
    """Take a server that was written into the form."""
    context.require_every_agent(visit)
    sent = await visit.request.form()
    typed = {name: value for name, value in sent.items() if isinstance(value, str)}
    try:
        name = typed.get("name", "").strip()
        if not name:
            raise UsageError("It needs a name.", code="edit_form", hint="Its tools are called by that name.")
        (change,) = edit_forms.changes(await _form(context), ("servers", name), None, typed)
        if not change.value.get("command") and not change.value.get("url"):
            raise UsageError("It needs a command or an address.", code="edit_form", hint="Fill one of them in.")
        draft = await context.adding.draft_from_form(context.editor(visit), name, change.value)
    except UsageError as error:
        return await _show_ways_to_add(context, visit, error=error, typed=typed)
    return RedirectResponse(query(_DRAFT, id=draft.id), status_code=303)


async def draft_page(context: Context, visit: OperatorRequest) -> Response:
    """Show servers that were found, and what is to become of them."""
    context.require_every_agent(visit)
    draft = await context.adding.draft(context.editor(visit), visit.request.query_params.get("id", ""))
    return _show_draft(context, visit, draft, _Choices(agents=draft.agents))


async def test_draft_server(context: Context, visit: OperatorRequest) -> Response:
    """Try a server of a draft, and show the draft with what it has; what was chosen stays."""
    context.require_every_agent(visit)
    sent = await visit.request.form()
    identity, editor = text_of(sent, "id"), context.editor(visit)
    draft = await context.adding.draft(editor, identity)
    choices = _Choices(sent)
    at = text_of(sent, "test")
    if not (at.isascii() and at.isdecimal() and int(at[:4]) < len(draft.servers)):
        raise UsageError("The draft has no such server.", code="unknown_name", hint="Load the page again.")
    await context.adding.test(editor, identity, choices.chosen(int(at), draft, visit))
    return _show_draft(context, visit, await context.adding.draft(editor, identity), choices, tried=int(at))


async def propose_servers(context: Context, visit: OperatorRequest) -> Response:
    """Propose the servers that are chosen, with what grants them to agents."""
    context.require_every_agent(visit)
    sent = await visit.request.form()
    identity, editor = text_of(sent, "id"), context.editor(visit)
    draft = await context.adding.draft(editor, identity)
    choices = _Choices(sent)
    chosen = [choices.chosen(at, draft, visit) for at in range(len(draft.servers)) if choices.adds(at)]
    agents = [visit.names.meant(agent) for agent in choices.agents]
    try:
        edit = await context.adding.propose(editor, identity, chosen, agents, choices.grant)
    except UsageError as error:
        if error.code not in ("server_exists", "edit_form"):
            raise
        return _show_draft(context, visit, draft, choices, error=error)
    return to_proposal(edit, _SERVERS)


class _Choices:
    """What is chosen of a draft: the fields of its form; at first all servers, and an agent that is alone."""

    def __init__(self, sent: FormData | None = None, agents: Sequence[str] = ()) -> None:
        self._sent = sent
        self._only = list(agents) if len(agents) == 1 else []

    def adds(self, at: int) -> bool:
        """Return whether a server is added; all are, as long as nothing was chosen."""
        return self._sent is None or str(at) in self.all("add")

    def all(self, name: str) -> list[str]:
        """Return every value of a field."""
        values = self._sent.getlist(name) if self._sent is not None else []
        return [value for value in values if isinstance(value, str)]

    def text(self, name: str, default: str = "") -> str:
        """Return a field."""
        return next(iter(self.all(name)), default)

    def secret(self, at: int, number: int, *, is_set: bool) -> str:
        """Return where a secret is kept: ``keep``, ``environment`` or ``plain``."""
        return self.text(f"secret-{at}-{number}", "environment" if is_set else "keep")

    def _kept_values(self, at: int, server: DraftServer, way: str) -> tuple[str, ...]:
        each = enumerate(server.variables)
        return tuple(one.name for number, one in each if self.secret(at, number, is_set=one.is_set) == way)

    def confines(self, at: int, *, default: bool) -> bool:
        """Return whether a server is confined."""
        return default if self._sent is None else bool(self.all(f"confine-{at}"))

    @property
    def agents(self) -> list[str]:
        """Return the agents that get the servers, as they are shown."""
        return self._only if self._sent is None else self.all("agent")

    @property
    def grant(self) -> GrantWay:
        """Return how they get them."""
        found = self.text("grant", "needed")
        return cast("GrantWay", found) if found in get_args(GrantWay) else "needed"

    def chosen(self, at: int, draft: ServerDraft, visit: OperatorRequest) -> ChosenServer:
        """Return how a server is added."""
        server, meant = draft.servers[at], visit.names.meant
        return ChosenServer(
            server=meant(server.name),
            name=meant(self.text(f"name-{at}", server.suggested)).strip(),
            replace=bool(self.all(f"replace-{at}")),
            plain=self._kept_values(at, server, "plain"),
            from_environment=self._kept_values(at, server, "environment"),
            confine=self.confines(at, default=server.confined) if server.confinable else None,
        )


def _show_draft(
    context: Context,
    visit: OperatorRequest,
    draft: ServerDraft,
    choices: Any,
    *,
    error: UsageError | None = None,
    tried: int | None = None,
) -> Response:
    mask = visit.names.masker.text
    return context.templates.page(
        "server_draft.html",
        visit,
        status=200 if error is None else 409,
        draft=draft,
        choices=choices,
        tried=tried,
        back=_SERVERS,
        error={"message": mask(error.message), "hint": mask(error.hint)} if error is not None else None,
    )


PAGES: Final = (
    Page(HOME, add_page, right="configure"),
    Page(f"{HOME}/create", create_configuration, "POST", "configure"),
    Page(f"{HOME}/read", read_pasted_servers, "POST", "configure"),
    Page(f"{HOME}/import", import_from_client, "POST", "configure"),
    Page(f"{HOME}/form", take_written_server, "POST", "configure"),
    Page(_DRAFT, draft_page, right="configure"),
    Page(f"{HOME}/test", test_draft_server, "POST", "configure"),
    Page(f"{HOME}/propose", propose_servers, "POST", "configure"),
)
"""The addresses of servers that are added."""
