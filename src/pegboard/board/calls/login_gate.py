"""A call whose server wants a login: ask for it within the call where its client can be asked, else say where (G11)."""

from __future__ import annotations

from dataclasses import replace

from pegboard.board.calls.call_request import CallRequest
from pegboard.board.observability.awaiting_login import AwaitingCall
from pegboard.board.snapshot import DecidedCall
from pegboard.core.access.logins import LoginNeed, PendingLogin
from pegboard.core.model.tools import Tool, text_result
from pegboard.core.state.call_plans import CallAnswer, answer
from pegboard.errors import NeedsLoginError, PegboardError
from pegboard.ports import AskRefusedError, SessionKey
from pegboard.ports.logins import HasLogins


async def after_login(
    call: CallRequest, key: SessionKey, decided: DecidedCall, error: NeedsLoginError
) -> CallAnswer | None:
    """Return nothing once somebody has logged in, so that the call can be made; else the answer that a login is needed.

    While the client is asked no call is in flight, so that neither other calls nor the end of the turn wait for it.
    """
    tool, masker = decided.tool.tool, call.services.masker
    if not isinstance(decided.source, HasLogins):
        return answer("tool_unavailable", masker.text(error.text), tool=tool)
    logins = decided.source.logins
    need = LoginNeed(plugin=decided.spec.name, owner=decided.owner, scopes=error.scopes)
    try:
        pending = await logins.begin(decided.spec, need)
    except PegboardError as failed:
        return answer("tool_unavailable", masker.text(failed.text), tool=tool)
    if call.client is None:
        return _needed(call, key, pending, tool)
    asked = {
        "mode": "url",
        "message": f"Log in to '{pending.plugin}', so that '{tool.wire}' can run.",
        "url": pending.url,
        "elicitationId": pending.id,
    }
    try:
        with call.waiting():
            answered = await call.client.ask("elicitation/create", asked)
            if answered.get("action") != "accept":
                return _needed(call, key, pending, tool, why="The user of the client has closed the question.")
            state = await logins.wait(pending)
    except AskRefusedError:
        return _needed(call, key, pending, tool)
    return None if state == "completed" else _needed(call, key, pending, tool, why="The login was not completed.")


def _needed(call: CallRequest, key: SessionKey, pending: PendingLogin, tool: Tool, why: str = "") -> CallAnswer:
    """Return the answer that a person has to log in, with the address where they do."""
    call.services.awaiting_login.put(pending.id, AwaitingCall(key, call.name, call.arguments))
    more = f" {why}" if why else ""
    message = (
        f"'{tool.wire}' was not called: '{pending.plugin}' wants a login.{more} The user can log in at {pending.url} "
        "within ten minutes; after that the same call runs. Other tools can be used meanwhile."
    )
    about = {"server": pending.plugin, "id": pending.id, "url": pending.url, "expires_at": pending.expires_at}
    data = {"status": "needs_login", "message": message, "login": about}
    result = replace(text_result(message, is_error=True), structured=data)
    return CallAnswer(status="needs_login", result=result, message=message, tool=tool, login=pending)
