"""The switches of an agent in an application's own settings page: what it reads and sets as JSON."""

from pegboard import Pegboard

from .programs import Program

SWITCHES = "/api/agents/mailer/switches"
ODD = "/api/agents/a%25%20b%20%C3%A9/switches"


async def test_a_program_reads_the_agents_and_their_switches(ada: Program) -> None:
    """T6: labels and texts come as they are; it is the reader who shows them safely."""
    agents = await ada.ask("GET", "/api/agents")
    assert [agent["name"] for agent in agents] == ["mailer", "deskless", "a% b é"]
    assert agents[0] == {"name": "mailer", "display_name": "Mailer", "role": "writes <i>mail</i>"}
    rows = (await ada.ask("GET", SWITCHES))["rows"]
    post = rows[0]
    assert (post["kind"], post["name"], post["label"]) == ("toolkit", "post", "<script>alert(1)</script>")
    assert (post["on"], post["switch"], post["stored"], post["members"]) == (True, None, None, 3)
    assert post["reason"]["code"] == "granted_toolkit"
    some = await ada.ask("GET", f"{SWITCHES}/members?kind=toolkit&name=post&query=READ")
    assert ([row["switch_name"] for row in some["rows"]], some["total"]) == (["read_mail"], 1)
    assert await ada.ask("GET", f"{SWITCHES}?query=no+such+thing") == {"rows": [], "total": 0}


async def test_a_switch_binds_the_next_call_and_the_audit_trail_has_who_set_it(ada: Program, mailer: Pegboard) -> None:
    """P2, P4, X4: set, taken back, and every name of an agent can stand in the address."""
    session = await mailer.session(agent="mailer", session_id="s")
    assert (await session.call("read_mail")).status == "ok"
    off = await ada.ask("PUT", SWITCHES, json={"name": "post", "value": False})
    assert off == {"agent": "mailer", "name": "post", "value": False}
    assert (await session.call("read_mail")).status == "not_found"
    row = (await ada.ask("GET", SWITCHES))["rows"][0]
    assert (row["on"], row["switch"], row["reason"]["code"]) == (False, False, "denied_switch")
    await ada.ask("PUT", SWITCHES, json={"name": "post", "value": None, "expected": False})
    assert (await session.call("read_mail")).status == "ok"
    assert (await ada.ask("PUT", ODD, json={"name": "clock", "value": True}))["agent"] == "a% b é"
    entries = await mailer.services.store.entries(agent="mailer", kind="permission")
    assert [(entry.by, entry.decision) for entry in entries] == [("ada", "unset"), ("ada", "off")]


async def test_what_a_switch_would_change_is_said_before_it_is_set(ada: Program, mailer: Pegboard) -> None:
    """P4: in which sessions, and what it would spare; nothing is changed by asking."""
    session = await mailer.session(agent="mailer", session_id="s")
    await session.surface()
    found = await ada.ask("GET", f"{SWITCHES}/preview?name=post&value=false")
    assert (found["lost"], found["gained"], found["stored"]) == (["pay", "read_mail", "send_mail"], [], None)
    assert found["lost_tokens"] > 0
    (change,) = found["sessions"]
    assert (change["session"], change["lost"]) == ("s", ["pay", "read_mail", "send_mail"])
    assert (await ada.ask("GET", SWITCHES))["rows"][0]["on"] is True
    same = await ada.ask("GET", f"{SWITCHES}/preview?name=post&value=null")
    assert (same["lost"], same["sessions"], same["unchanged"]) == ([], [], 1)
    assert (await ada.refused("GET", f"{SWITCHES}/preview?name=pots&value=true", 404))[0] == "unknown_name"
    assert (await ada.refused("GET", f"{SWITCHES}/preview?name=post&value=maybe", 422))[0] == "bad_request"


async def test_a_switch_of_nothing_known_is_refused(ada: Program) -> None:
    code, message, hint = await ada.refused("PUT", SWITCHES, 404, json={"name": "pots", "value": False})
    assert (code, "'pots'" in message, "'post'" in hint) == ("unknown_name", True, True)
    code, message, _ = await ada.refused("PUT", SWITCHES, 400, json={"name": "", "value": False})
    assert (code, message) == ("usage", "The name of a switch is empty.")


async def test_a_tool_is_switched_before_anything_else_was_asked_of_its_plugin(ada: Program) -> None:
    """P2, G2: also by an operator of some agents."""
    off = await ada.ask("PUT", SWITCHES, json={"name": "send_mail", "value": False})
    assert off == {"agent": "mailer", "name": "send_mail", "value": False}
    assert (await ada.ask("GET", f"{SWITCHES}/preview?name=send_mail&value=null"))["stored"] is False
