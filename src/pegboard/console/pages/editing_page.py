"""The configuration: what is in force and what is wrong with it, and edits by forms or of the whole file (P10)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.responses import RedirectResponse, Response

from pegboard.console import edit_forms
from pegboard.console.context import Context, Page
from pegboard.console.edit_forms import FilledField, Form
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.forms import Notice, UndoForm, after_form, text_of
from pegboard.console.templating import query
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.errors import PegboardError, UsageError
from pegboard.operators.editable import ConfigurationChange
from pegboard.operators.editing import ProposedEdit, TypedText

HOME: Final = "/console/edit"
_FORM: Final = f"{HOME}/form"
_FILE: Final = f"{HOME}/file"
_PROPOSAL: Final = f"{HOME}/proposal"


async def parts(context: Context, visit: OperatorRequest) -> Response:
    """Show what the operator may edit."""
    found = await context.editing.parts(context.editor(visit))
    return context.templates.page(
        "edit_parts.html",
        visit,
        agents=found.agents,
        toolkits=found.toolkits,
        loadouts=found.loadouts,
        servers=found.servers,
        plugins=found.plugins,
    )


# -- forms -----------------------------------------------------------------------------------------


async def form_page(context: Context, visit: OperatorRequest) -> Response:
    """Show the form over an entry, or an empty one for a new entry."""
    given = visit.request.query_params
    form = await _form(context, given.get("section", ""))
    name, entry = visit.given("name"), None
    if name:
        found = await context.editing.entry(context.editor(visit), form.section, name)
        entry = found.value
        if entry is None and form.section != "plugins":
            raise UsageError(f"The configuration has no {form.noun} of this name.", code="unknown_name")
    else:
        _require_addable(context, visit, form)
    filled = edit_forms.filled_fields(form, edit_forms.entry_of(entry))
    return await _form_answer(
        context, visit, form, filled, name=given.get("name", ""), new=not name, back=_return_address(given)
    )


async def form_sent(context: Context, visit: OperatorRequest) -> Response:
    """Propose what a form changes; what cannot be read of it comes back as it was typed."""
    sent = await visit.request.form()
    form, new = await _form(context, text_of(sent, "section")), "new" in sent
    name = visit.names.meant(text_of(sent, "name")).strip()
    given = edit_forms.text_of_field(form, sent)
    wrong: dict[str, str] = {}
    try:
        edit = await _propose_entry(context, visit, form, name, given, new=new)
    except PegboardError as error:
        if error.code in ("every_agent_required", "not_editable"):
            raise
        wrong, failed = _unreadable(visit, form, given), error
    else:
        if not edit.errors:
            return to_proposal(edit, _return_address(sent))
        wrong, others = _errors_by_field(form, edit)
        failed = UsageError(
            f"The configuration would have {edit.errors} {'error' if edit.errors == 1 else 'errors'}.",
            hint=" ".join(others[:3]) or "Correct the marked fields.",
        )
    filled = tuple(
        FilledField(field=field, text=given.get(field.name, ""), wrong=wrong.get(field.name, ""))
        for field in form.fields
    )
    shown = text_of(sent, "name")
    return await _form_answer(
        context, visit, form, filled, name=shown, new=new, back=_return_address(sent), error=failed
    )


def _unreadable(visit: OperatorRequest, form: Form, given: Mapping[str, str]) -> dict[str, str]:
    """Return why a field cannot be read, by its name."""
    found: dict[str, str] = {}
    for field in form.fields:
        try:
            edit_forms.value_of_field(field, given.get(field.name, ""))
        except UsageError as error:
            found[field.name] = visit.names.masker.text(f"{error.message} {error.hint}")
    return found


def _errors_by_field(form: Form, edit: ProposedEdit) -> tuple[dict[str, str], list[str]]:
    """Return the errors of an edit by the fields that they are about, and those about nothing in the form."""
    found: dict[str, str] = {}
    others: list[str] = []
    names = {field.name for field in form.fields}
    for problem in edit.problems:
        if problem.severity == "error":
            text = f"{problem.message} {problem.hint}".strip()
            name = next((part for part in problem.path.split(".") if part in names), "")
            if name:
                found.setdefault(name, text)
            else:
                others.append(text)
    return found, others


async def _propose_entry(
    context: Context, visit: OperatorRequest, form: Form, name: str, given: Mapping[str, str], *, new: bool
) -> ProposedEdit:
    if not name:
        raise UsageError("It needs a name.", code="edit_form", hint="Choose one that nothing else has.")
    if new:
        _require_addable(context, visit, form, name)
    editor = context.editor(visit)
    found = await context.editing.entry(editor, form.section, name)
    if new and found.value is not None:
        hint = "Choose another name, or edit that one."
        raise UsageError(f"This {form.noun} already exists.", code="edit_form", hint=hint)
    before = None if new else edit_forms.entry_of(found.value)
    changes = edit_forms.changes(form, found.path, before, given)
    what = f"{'Add' if new else 'Edit'} {form.noun} {one_line(visit.names.shown(name), limit=100)}"
    return await context.editing.propose(editor, changes, what=what)


async def propose_removal(context: Context, visit: OperatorRequest) -> Response:
    """Propose that an entry goes."""
    sent = await visit.request.form()
    form = await _form(context, text_of(sent, "section"))
    name = visit.names.meant(text_of(sent, "name"))
    editor = context.editor(visit)
    found = await context.editing.entry(editor, form.section, name)
    what = f"Remove {form.noun} {one_line(visit.names.shown(name), limit=100)}"
    edit = await context.editing.propose(editor, [ConfigurationChange(path=found.path, remove=True)], what=what)
    return to_proposal(edit, _return_address(sent))


async def _form(context: Context, section: str) -> Form:
    known = edit_forms.SECTIONS
    if section not in known:
        hint = f"{did_you_mean(section, known)} Known: {', '.join(known)}.".strip()
        raise UsageError("There is no form for this section.", hint=hint)
    return edit_forms.form_of(section, await context.editing.schema())


def _require_addable(context: Context, visit: OperatorRequest, form: Form, name: str | None = None) -> None:
    """Raise ``UsageError`` where a new entry of a section is for operators of every agent."""
    if form.section in ("toolkits", "loadouts") or (form.section == "agents" and name and visit.operator.sees(name)):
        return
    context.require_every_agent(visit)


async def _form_answer(
    context: Context,
    visit: OperatorRequest,
    form: Form,
    filled: Sequence[FilledField],
    *,
    name: str,
    new: bool,
    back: str,
    error: PegboardError | None = None,
) -> Response:
    world, mask = context.services.world, visit.names.shown
    plugins, toolkits = list(world.catalog.plugins), list(world.toolkits)
    loadouts, agents = list(world.loadouts), list(world.agents)
    models = await context.editing.names_in("models") if form.section == "agents" else ()
    picks = {
        "allowed_toolkits": toolkits,
        "initial_toolkits": toolkits,
        "discoverable": plugins,
        "tools": plugins,
        "plugins": plugins,
        "disabled": plugins,
        "essential": plugins,
        "share_with": agents,
        "loadout": loadouts,
        "model": models,
        "extends": loadouts,
        "may_delegate": agents,
    }
    every = visit.operator.agents is None
    return context.templates.page(
        "edit_form.html",
        visit,
        status=200 if error is None else 422,
        form=form,
        filled=filled,
        name=name,
        new=new,
        back=back,
        picks={field: [mask(one) for one in names] for field, names in picks.items()} if every else {},
        error=_mask_error(visit, error),
    )


def _mask_error(visit: OperatorRequest, error: PegboardError | None) -> Mapping[str, str] | None:
    mask = visit.names.masker.text
    return None if error is None else {"message": mask(error.message), "hint": mask(error.hint)}


# -- the whole file --------------------------------------------------------------------------------


async def file_page(context: Context, visit: OperatorRequest) -> Response:
    """Show the whole file, or the text that someone has typed in its place."""
    context.require_every_agent(visit)
    edit, editor, editing = visit.request.query_params.get("id", ""), context.editor(visit), context.editing
    if edit:
        return _file_answer(context, visit, await editing.typed_text(editor, edit))
    whole = await editing.whole()
    typed = TypedText(file=whole.file, text=whole.text, digest=whole.digest, made_from=whole.digest)
    return _file_answer(context, visit, typed)


async def file_sent(context: Context, visit: OperatorRequest) -> Response:
    """Propose another text of the whole file.

    One for a file that was changed meanwhile comes back with what others have changed in it, or beside what they have
    until the operator says that theirs takes its place: ``instead`` is then the digest of what it does.
    """
    context.require_every_agent(visit)
    sent = await visit.request.form()
    text, expected = text_of(sent, "text"), text_of(sent, "instead" if "instead" in sent else "digest")
    editor = context.editor(visit)
    try:
        edit = await context.editing.propose_text(editor, text, expected=expected)
    except UsageError as error:
        if error.code not in ("file_changed", "unknown_mark"):
            raise
        typed = await context.editing.typed_over(editor, text, expected=expected)
        return _file_answer(context, visit, typed, error)
    return to_proposal(edit, "/console/settings", typed=True)


def _file_answer(
    context: Context, visit: OperatorRequest, typed: TypedText, error: UsageError | None = None
) -> Response:
    status = 200 if error is None else 409
    return context.templates.page("edit_file.html", visit, status=status, typed=typed, error=_mask_error(visit, error))


# -- what is proposed ------------------------------------------------------------------------------


async def proposal(context: Context, visit: OperatorRequest) -> Response:
    """Show an edit that is not saved yet."""
    given = visit.request.query_params
    edit = await context.editing.shown(context.editor(visit), given.get("id", ""))
    return _show_proposal(context, visit, edit, back=_return_address(given), typed="typed" in given)


async def propose_again(context: Context, visit: OperatorRequest) -> Response:
    """Propose an edit again, for what the file is now."""
    sent = await visit.request.form()
    editor, identity = context.editor(visit), text_of(sent, "id")
    try:
        edit = await context.editing.again(editor, identity)
    except UsageError as error:
        if error.code != "file_changed":
            raise
        return RedirectResponse(query(_FILE, id=identity), status_code=303)
    return to_proposal(edit, _return_address(sent))


async def save(context: Context, visit: OperatorRequest) -> Response:
    """Save an edit as it was shown; where someone was first, it is kept and can be put into what the file is now."""
    sent = await visit.request.form()
    editor, identity, back = context.editor(visit), text_of(sent, "id"), _return_address(sent)
    try:
        saved = await context.editing.save(editor, identity)
    except PegboardError as error:
        if error.code != "file_changed" or visit.partial or "undo" in sent:
            raise
        edit = await context.editing.shown(editor, identity)
        return _show_proposal(
            context, visit, edit, back=back, conflict=visit.names.masker.text(error.message), status=409
        )
    undo = UndoForm(action=f"{HOME}/save", fields={"id": saved.undo, "undo": "yes", "back": back})
    done = "Taken back" if "undo" in sent else "Saved"
    notice = Notice(message=f"{done}: {saved.what}.", hint="It applies from the next request.", undo=undo)
    return after_form(context, visit, notice, back=back)


def to_proposal(edit: ProposedEdit, back: str, *, typed: bool = False) -> Response:
    """Return the answer that leads to an edit which was proposed."""
    address = query(_PROPOSAL, id=edit.id, back=back, typed="yes" if typed else None)
    return RedirectResponse(address, status_code=303)


def _show_proposal(
    context: Context,
    visit: OperatorRequest,
    edit: ProposedEdit,
    *,
    back: str,
    conflict: str = "",
    status: int = 200,
    typed: bool = False,
) -> Response:
    return context.templates.page(
        "proposal.html", visit, status=status, edit=edit, back=back, conflict=conflict, typed=typed
    )


def _return_address(given: Mapping[str, Any]) -> str:
    """Return where a form came from, if that is a page of the console."""
    found = given.get("back", "")
    return found if isinstance(found, str) and found.startswith("/console/") else HOME


MOST: Final = 100
"""How many problems are shown."""


async def configuration(context: Context, visit: OperatorRequest) -> Response:
    """Show what became of the newest reading of the configuration."""
    context.require_every_agent(visit)
    state = await context.subjects.problems.added_to(context.board.configuration_state)
    errors = sum(problem.severity == "error" for problem in state.problems)
    waiting = _waiting_changes(context)
    return context.templates.page(
        "settings.html",
        visit,
        state=state,
        errors=errors,
        most=MOST,
        edits=waiting,
        seen=_digest_of_changes(waiting),
    )


async def accept(context: Context, visit: OperatorRequest) -> Response:
    """Accept the edits that wait, if they still are what the operator was shown."""
    context.require_every_agent(visit)
    form = await visit.request.form()
    shown = context.board.waiting
    if text_of(form, "seen") != _digest_of_changes(_waiting_changes(context)):
        raise UsageError(
            "The pending changes are no longer the same.",
            code="switch_changed",
            hint="Look at its current state, and decide again.",
        )
    accepted = await context.board.accept(shown, by=visit.operator.name)
    count = len(accepted)
    message = f"{count} {'change' if count == 1 else 'changes'} of the configuration accepted."
    return after_form(context, visit, Notice(message=message, hint="It applies from the next request."), back=_ADDRESS)


def _waiting_changes(context: Context) -> list[str]:
    mask = context.board.services.masker.text
    return [mask(str(change)) for change in context.board.waiting]


def _digest_of_changes(waiting: Sequence[str]) -> str:
    """Return what tells one list of changes from another."""
    return hashlib.sha256(json.dumps(waiting).encode(errors="surrogatepass")).hexdigest()


_ADDRESS: Final = "/console/settings"


PAGES: Final = (
    Page(HOME, parts, right="configure"),
    Page(_FORM, form_page, right="configure"),
    Page(_FORM, form_sent, "POST", "configure"),
    Page(f"{HOME}/remove", propose_removal, "POST", "configure"),
    Page(_FILE, file_page, right="configure"),
    Page(_FILE, file_sent, "POST", "configure"),
    Page(_PROPOSAL, proposal, right="configure"),
    Page(f"{HOME}/again", propose_again, "POST", "configure"),
    Page(f"{HOME}/save", save, "POST", "configure"),
    Page(_ADDRESS, configuration),
    Page("/console/settings/accept", accept, "POST", "configure"),
)
"""The addresses of edits."""
