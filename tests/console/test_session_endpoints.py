"""Sessions as a program reads them, and acts in them."""

from urllib.parse import urlencode

from pegboard import Pegboard, Session

from .programs import Program

HOSTILE = "s/1?&\u202e<script>"


def at(action: str = "", *, agent: str = "mailer", session: str = HOSTILE, principal: str = "carl") -> str:
    return f"/api/session{action}?{urlencode({'agent': agent, 'session': session, 'principal': principal})}"


async def opened(board: Pegboard, agent: str = "mailer") -> Session:
    session = await board.session(agent=agent, session_id=HOSTILE, principal="carl")
    await session.surface()
    return session


async def test_sessions_are_listed_and_one_is_looked_at(ada: Program, mailer: Pegboard) -> None:
    """S1, F4: whatever the name of a session holds."""
    session = await opened(mailer)
    await session.call("read_mail")
    listed = await ada.ask("GET", "/api/sessions?agent=mailer&query=CARL")
    assert [(row["session"], row["principal"]) for row in listed["rows"]] == [(HOSTILE, "carl")]
    assert listed["total"] == 1
    assert (await ada.ask("GET", "/api/sessions?principal=nobody"))["rows"] == []
    overview = await ada.ask("GET", at())
    assert {"send_mail", "read_mail"} <= {tool["name"] for tool in overview["loaded"]}
    assert overview["tokens"] > 0


async def test_an_operator_loads_and_unloads_and_the_audit_trail_has_who_did(ada: Program, mailer: Pegboard) -> None:
    """X4, S10: what is refused is an item of the answer."""
    session = await opened(mailer, "deskless")
    place = at("/load", agent="deskless")
    answer = await ada.ask("POST", place, json={"names": ["post", "nothing"], "keep": "session"})
    assert (answer["status"], [item["status"] for item in answer["items"]]) == ("partial", ["loaded", "not_found"])
    assert "send_mail" in answer["loaded"]
    assert (await session.call("read_mail")).status == "ok"
    await ada.ask("POST", at("/unload", agent="deskless"), json={"names": ["post"]})
    assert (await session.call("read_mail")).status == "not_loaded"
    entries = (await ada.ask("GET", "/api/audit?agent=deskless"))["lines"]
    assert {(line["kind"], line["decision"], line["by"]) for line in entries if line["kind"] != "deny"} >= {
        ("load", "allowed", "ada"),
        ("load", "refused", "ada"),
        ("unload", "allowed", "ada"),
    }
    assert {line["by"] for line in entries if line["kind"] == "call"} == {""}


async def test_a_turn_is_ended_a_loadout_chosen_and_a_session_deleted(ada: Program, mailer: Pegboard) -> None:
    """L7, S7: and then nothing is known of it, until its name is used again."""
    session = await opened(mailer)
    assert (await ada.ask("POST", at("/end-turn")))["turn"] == 2
    assert (await ada.ask("POST", at("/loadout"), json={"loadout": "minimal"}))["status"] == "ok"
    assert (await ada.ask("GET", at()))["loadout"] == "minimal"
    assert (await session.call("read_mail")).status == "not_loaded"
    refused = await ada.ask("POST", at("/loadout"), json={"loadout": "nothing"})
    assert refused["status"] == "refused"
    await ada.ask("POST", at("/loadout"), json={"loadout": None})
    assert await ada.ask("POST", at("/delete")) == {"deleted": True}
    assert await ada.ask("POST", at("/delete")) == {"deleted": False}
    for method, action, options in (
        ("GET", "", {}),
        ("POST", "/load", {"json": {"names": ["post"]}}),
        ("POST", "/end-turn", {}),
    ):
        code, message, hint = await ada.refused(method, at(action), 404, **options)
        assert (code, message[:21], bool(hint)) == ("unknown_session", "There is no session '", True)


async def test_names_to_load_that_do_not_fit(ada: Program, mailer: Pegboard) -> None:
    await opened(mailer)
    for body in ({"names": []}, {"names": ["post"] * 101}, {"names": "post"}, {"names": ["post"], "keep": "forever"}):
        assert (await ada.refused("POST", at("/load"), 422, json=body))[0] == "bad_request"
