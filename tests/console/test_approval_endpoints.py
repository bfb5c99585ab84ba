"""Calls that wait for a person, answered by a program."""

from pegboard import Pegboard

from .programs import Program


async def waiting(board: Pegboard, agent: str = "mailer", tool: str = "send_mail", **arguments: object) -> str:
    session = await board.session(agent=agent, session_id="s/1 é", principal="carl")
    answer = await session.call(tool, arguments or {"to": "<script>alert(1)</script>"})
    assert answer.approval is not None, answer
    return answer.approval.id


async def test_a_call_that_waits_is_allowed_and_the_same_call_runs_once(ada: Program, mailer: Pegboard) -> None:
    """A2, A3: with who allowed it."""
    approval = await waiting(mailer)
    (asked,) = (await ada.ask("GET", "/api/approvals?agent=mailer"))["waiting"]
    assert (asked["id"], asked["tool"], asked["session"]) == (approval, "send_mail", "s/1 é")
    assert [(one["name"], one["text"]) for one in asked["arguments"]] == [("to", "<script>alert(1)</script>")]
    assert (await ada.ask("GET", "/api/approvals?agent=deskless"))["waiting"] == []
    assert await ada.ask("GET", f"/api/approvals/{approval}") == asked
    allowed = await ada.ask("POST", f"/api/approvals/{approval}/allow", json={})
    assert (allowed["status"], allowed["lasts"], allowed["by"]) == ("allowed", "once", "ada")
    session = await mailer.session(agent="mailer", session_id="s/1 é", principal="carl")
    assert (await session.call("send_mail", {"to": "<script>alert(1)</script>"})).status == "ok"
    assert (await session.call("send_mail", {"to": "<script>alert(1)</script>"})).status == "needs_approval"
    code, *_ = await ada.refused("POST", f"/api/approvals/{approval}/refuse", 409, json={})
    assert code == "approval_ended"
    assert [one["id"] for one in (await ada.ask("GET", "/api/approvals/ended"))["rows"]] == [approval]


async def test_a_call_is_refused_with_words_for_the_model(ada: Program, mailer: Pegboard) -> None:
    approval = await waiting(mailer)
    refused = await ada.ask("POST", f"/api/approvals/{approval}/refuse", json={"reason": "Not\u202e today"})
    assert (refused["status"], refused["by"]) == ("refused", "ada")
    session = await mailer.session(agent="mailer", session_id="s/1 é", principal="carl")
    answer = await session.call("send_mail", {"to": "<script>alert(1)</script>"})
    assert (answer.status, "ada refused it: Not" in answer.message) == ("refused", True)


async def test_what_a_tool_asks_for_is_filled_in(ada: Program, mailer: Pegboard) -> None:
    """T13: what does not fit its schema is refused, and the call goes on waiting."""
    approval = await waiting(mailer, tool="pay", amount=3)
    address = f"/api/approvals/{approval}/allow"
    code, message, _ = await ada.refused("POST", address, 400, json={"fields": {"cod": 1}})
    assert (code, "it has no field 'cod'" in message) == ("bad_fields", True)
    allowed = await ada.ask("POST", address, json={"fields": {"code": "1234"}})
    assert (allowed["status"], allowed["kind"]) == ("allowed", "user_input")
    code, message, _ = await ada.refused("POST", address, 400, json={"fields": {"code": "1"}, "lasts": "always"})
    assert (code, message) == ("approval_kind", "'pay' asks for its fields in every call.")
