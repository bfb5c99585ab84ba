"""A request whose server wants a login: ask within it where the client can be asked, else say where (G11)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import NamedTuple

from pegboard.board.calls.call_request import CallRequest
from pegboard.board.services import AwaitingCall
from pegboard.board.snapshot import DecidedCall, Snapshot
from pegboard.core.access.instances import LoginOwner, login_owner
from pegboard.core.access.logins import AwaitedLogin, LoginNeed, PendingLogin, login_command
from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import JsonObject, Tool, text_result
from pegboard.core.state.call_plans import CallAnswer, answer
from pegboard.errors import NeedsLoginError, PegboardError
from pegboard.ports import AskRefusedError, SessionKey
from pegboard.ports.logins import HasLogins, ServerLogins


class NotLoggedIn(NamedTuple):
    """A login that no one has completed, and why not where that is known.

    ``pending`` is None where this process ends before anyone could: it is made by a command.
    """

    need: LoginNeed
    pending: PendingLogin | None
    why: str = ""

    @property
    def command(self) -> str:
        """Return what is typed to log in."""
        return login_command(self.need.plugin, self.need.owner)

    @property
    def text(self) -> str:
        """Return where the user logs in."""
        if self.pending is None:
            return f"'{self.need.plugin}' requires a login: `{self.command}`. After that the same call works."
        more = "".join(f" {why}" for why in (self.pending.why, self.why) if why)
        return (
            f"'{self.pending.plugin}' requires a login.{more} The user can log in at {self.pending.url} within ten "
            "minutes; after that the same call works. Other tools can be used meanwhile."
        )


class LoginImpossible(NamedTuple):
    """Why a login that is wanted cannot be made; nothing in it is secret."""

    text: str


async def after_login(
    call: CallRequest, key: SessionKey, decided: DecidedCall, error: NeedsLoginError
) -> CallAnswer | None:
    """Return nothing once someone has logged in, so that the call can be made; else the answer that says where."""
    tool, masker = decided.tool.tool, call.services.masker
    if not isinstance(decided.source, HasLogins):
        return answer("tool_unavailable", masker.text(error.text), tool=tool)
    need = LoginNeed(plugin=decided.spec.name, owner=decided.owner, scopes=error.scopes)
    try:
        missing = await _request_login(call, decided.source.logins, decided.spec, need)
    except PegboardError as failed:
        return answer("tool_unavailable", masker.text(failed.text), tool=tool)
    return None if missing is None else needs_login(call, key, missing, tool)


async def missing_logins(
    call: CallRequest, snapshot: Snapshot, plugins: Iterable[str]
) -> Sequence[NotLoggedIn | LoginImpossible]:
    """Return the logins that these plugins still want, after the client was asked for each, or why none can be made."""
    owner = login_owner(snapshot.permissions, snapshot.info.pool_user)
    found: list[NotLoggedIn | LoginImpossible] = []
    for name in dict.fromkeys(plugins):
        missing = await _find_missing_login(call, call.services.loader.specs[name], owner)
        if missing is not None:
            found.append(missing)
    return found


async def _find_missing_login(
    call: CallRequest, spec: PluginSpec, owner: LoginOwner
) -> NotLoggedIn | LoginImpossible | None:
    source = call.services.loader.source_of(spec)
    if not isinstance(source, HasLogins):
        return None
    try:
        need = await source.logins.needed(spec, owner)
        return None if need is None else await _request_login(call, source.logins, spec, need)
    except PegboardError as error:
        return LoginImpossible(call.services.masker.text(error.text))


async def _request_login(
    call: CallRequest, logins: ServerLogins, spec: PluginSpec, need: LoginNeed
) -> NotLoggedIn | None:
    """Return nothing once someone has logged in, else the login that waits.

    While the client is asked no call is in flight, so that neither other calls nor the end of the turn wait for it.

    Raises ``PegboardError`` where no login can be begun.
    """
    if call.services.awaiting_login.by_command:
        return NotLoggedIn(need, None)
    addresses = call.services.login_addresses
    begun = await logins.begin(spec, need, redirect=addresses.redirect(need.owner.principal))
    pending = addresses.shown(begun)
    if call.client is None:
        return NotLoggedIn(need, pending)
    asked = {
        "mode": "url",
        "message": f"Log in to '{pending.plugin}', which the agent wants to use. {pending.why}".strip(),
        "url": pending.url,
        "elicitationId": pending.id,
    }
    try:
        with call.waiting():
            answered = await call.client.ask("elicitation/create", asked, about=f"login {pending.id}")
            if answered.get("action") != "accept":
                return NotLoggedIn(need, pending, "The user of the client closed the question without an answer.")
            state = await logins.wait(pending)
    except AskRefusedError:
        return NotLoggedIn(need, pending)
    return None if state == "completed" else NotLoggedIn(need, pending, "The login was not completed.")


def without_login(call: CallRequest, key: SessionKey, missing: NotLoggedIn | LoginImpossible) -> CallAnswer:
    """Return the answer to a call of a tool that no one has seen, because its server wants a login."""
    if isinstance(missing, NotLoggedIn):
        return needs_login(call, key, missing, None)
    return answer("tool_unavailable", f"'{call.name}' was not called: {missing.text}")


def needs_login(call: CallRequest, key: SessionKey, missing: NotLoggedIn, tool: Tool | None) -> CallAnswer:
    """Return the answer that a person has to log in, with the address where they do; the call is kept until then.

    It has an id of its own, which it keeps when it is resumed too early.
    """
    login: AwaitedLogin | None = None
    message = f"'{call.name}' was not called: {missing.text}"
    about: JsonObject = {"server": missing.need.plugin}
    if missing.pending is None:
        about = {**about, "command": missing.command}
    else:
        login = AwaitedLogin(id=call.awaiting or token_hex(8), pending=missing.pending)
        waiting = AwaitingCall(login.id, call.name, call.arguments, call.passed_on, call.read_only)
        call.services.awaiting_login.put(key, waiting)
        about = {**about, "id": login.id, "url": login.url, "expires_at": login.expires_at}
    data = {"status": "needs_login", "message": message, "login": about}
    result = replace(text_result(message, is_error=True), structured=data)
    return CallAnswer(status="needs_login", result=result, message=message, tool=tool, login=login)
