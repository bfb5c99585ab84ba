"""Who may use the gateway as whom: tokens, granted and revoked by edits of the configuration (G2, A5)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from pegboard.board.services import Services
from pegboard.core.model.naming import label_problem, one_line
from pegboard.core.principals.bearer_tokens import RIGHTS, Right, Token, digest_of
from pegboard.errors import UsageError
from pegboard.operators.editable import ConfigurationChange
from pegboard.operators.editing import Editing, Editor, ProposedEdit
from pegboard.operators.masked import Name, Verbatim, mask_value, shown_names

_ROOT: Final = "tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonOverview:
    """Someone who has a token.

    Attributes:
        name: the principal.
        agents: the agents that the token opens; none where ``every_agent``.
        every_agent: whether it opens all.
        rights: what its owner may do in the console.
        kept: how the token is in the file: as its digest, by a variable, or in plain.
        place: where it is written.
    """

    name: Name
    agents: tuple[Name, ...]
    every_agent: bool
    rights: tuple[Right, ...]
    kept: Verbatim
    place: Verbatim


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantedToken:
    """A token that was made for someone, and the edit that lets it count; it is shown once and kept nowhere."""

    token: Verbatim = field(repr=False)
    edit: ProposedEdit


async def people(services: Services, tokens: Sequence[Token]) -> tuple[PersonOverview, ...]:
    """Return who has a token, as the configuration in force says."""
    found = tuple(
        PersonOverview(
            name=token.principal,
            agents=token.agents or (),
            every_agent=token.agents is None,
            rights=tuple(right for right in RIGHTS if right in token.rights),
            kept="digest" if token.value.startswith("sha256:") else "variable" if token.written else "plain",
            place=str(token.place or ""),
        )
        for token in tokens
    )
    return mask_value(found, await shown_names(services))


async def grant_token(
    editing: Editing,
    editor: Editor,
    *,
    name: str,
    agents: Sequence[str],
    rights: Sequence[Right],
    new: bool,
    first: bool,
) -> GrantedToken:
    """Return a new token for someone with the edit that lets it count; nothing is written before that is saved.

    The file gets the digest of the token. ``new`` says that no one of this name may have one yet; else the one that
    they have is replaced. ``first`` says that there is no token yet.

    Raises:
        UsageError: the name is none, no agent is named, or someone of this name has a token.
        ConfigError: the file cannot be edited.
    """
    if problem := label_problem(name):
        raise UsageError(f"The name {problem}", code="edit_form", hint="Use letters, digits and dashes.")
    if first and not ("*" in agents and "configure" in rights):
        raise UsageError(
            "The first token has to be for every agent, with the right to configure.",
            code="edit_form",
            hint="From then on each person signs in with a token, and one of them must edit the configuration.",
        )
    if not agents:
        raise UsageError("No agent is chosen.", code="edit_form", hint="Choose the agents of the token.")
    there = (await editing.entry(editor, _ROOT, name)).value
    if new and there is not None:
        raise UsageError("There is a token of this name.", code="name_taken", hint="Choose another name.")
    token = secrets.token_urlsafe(24)
    value: dict[str, Any] = {"token": digest_of(token), "agents": list(agents)}
    if rights:
        value["console"] = list(rights)
    what = f"{'Grant' if there is None else 'New token for'} {one_line(name, limit=100)}"
    edit = await editing.propose(editor, [ConfigurationChange(path=(_ROOT, name), value=value)], what=what)
    return GrantedToken(token=token, edit=edit)


async def revoke_token(editing: Editing, editor: Editor, name: str) -> ProposedEdit:
    """Return the edit after which the token of someone counts no more.

    Raises:
        UsageError: no one of this name has one.
        ConfigError: the file cannot be edited.
    """
    there = cast("Mapping[str, Any] | None", (await editing.entry(editor, _ROOT, name)).value)
    if there is None:
        raise UsageError("The file has no token of this name.", code="unknown_name")
    change = ConfigurationChange(path=(_ROOT, name), remove=True)
    return await editing.propose(editor, [change], what=f"Revoke {one_line(name, limit=100)}")
