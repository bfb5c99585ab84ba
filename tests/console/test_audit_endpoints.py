"""The audit trail and the bill, as a program reads them."""

import csv
import io
import json

from pegboard import Pegboard

from .programs import Program

SWITCHES = "/api/agents/mailer/switches"
FORMULA = "=HYPERLINK(1)"


async def used(board: Pegboard) -> None:
    """Call tools in sessions of both agents."""
    for agent in ("mailer", "a% b é"):
        session = await board.session(agent=agent, session_id=FORMULA, principal="\u202ecarl <b>")
        await session.surface(message="Mail!")
        assert (await session.call("read_mail")).status == "ok"
    await board.services.store.entries()


async def test_the_trail_is_filtered_and_read_page_by_page(ada: Program, mailer: Pegboard) -> None:
    """X4: what has come since is behind the cursor of the newest page."""
    await used(mailer)
    await ada.ask("PUT", SWITCHES, json={"name": "post", "value": False})
    await ada.ask("PUT", SWITCHES, json={"name": "post", "value": None})
    (newest,) = (page := await ada.ask("GET", "/api/audit?agent=mailer&limit=1"))["lines"]
    assert (newest["kind"], newest["decision"], newest["by"]) == ("permission", "unset", "ada")
    (older,) = (await ada.ask("GET", f"/api/audit?agent=mailer&limit=1&before={page['before']}"))["lines"]
    assert older["decision"] == "off"
    (call,) = (await ada.ask("GET", "/api/audit?agent=mailer&kind=call&text=READ_mail"))["lines"]
    assert (call["principal"], call["session"], call["subject"]) == ("\u202ecarl <b>", FORMULA, "mail/read_mail")
    await ada.ask("PUT", SWITCHES, json={"name": "mail", "value": True})
    since = (await ada.ask("GET", f"/api/audit?agent=mailer&after={page['after']}"))["lines"]
    assert [(line["subject"], line["decision"]) for line in since] == [("mail", "on")]
    moment = call["at"].replace("+", "%2B")
    assert (await ada.ask("GET", f"/api/audit?agent=mailer&until={moment}&kind=permission"))["lines"] == []


async def test_the_trail_is_exported_as_lines_of_json_and_as_a_table(ada: Program, mailer: Pegboard) -> None:
    await used(mailer)
    lines = await ada.client.get("/api/audit/export?agent=mailer")
    assert (lines.status_code, lines.headers["content-type"]) == (200, "application/jsonl")
    assert lines.headers["content-disposition"] == 'attachment; filename="audit.jsonl"'
    assert {json.loads(line)["agent"] for line in lines.text.splitlines()} == {"mailer"}
    table = await ada.client.get("/api/audit/export?agent=mailer&format=csv&kind=call")
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    (row,) = csv.DictReader(io.StringIO(table.text))
    assert (row["subject"], row["session"]) == ("mail/read_mail", f"'{FORMULA}")
    head = await ada.client.head("/api/audit/export?agent=mailer")
    assert (head.status_code, head.text) == (200, "")


async def test_the_bill_counts_what_was_sent_and_done(ada: Program, mailer: Pegboard) -> None:
    """F4: by day, by agent and by session."""
    await used(mailer)
    bill = await ada.ask("GET", "/api/bill?by=agent&agent=mailer")
    (row,) = bill["rows"]
    assert (row["agent"], row["calls"], row["requests"]) == ("mailer", 1, 1)
    assert row["tokens"] > 0
    by_session = await ada.ask("GET", "/api/bill?by=session&agent=mailer&since=2020-01-01")
    assert [one["session"] for one in by_session["rows"]] == [FORMULA]
    code, message, _ = await ada.refused("GET", "/api/bill?by=week", 422)
    assert (code, message) == (
        "bad_request",
        "The query does not fit: `by` should be 'day', 'agent', 'principal' or 'session'.",
    )


async def test_an_operator_of_some_agents_reads_nothing_of_the_others(
    ada: Program, bob: Program, mailer: Pegboard
) -> None:
    """G2: also in what all agents came to together."""
    await used(mailer)
    for address in ("/api/audit", "/api/bill", "/api/audit/export"):
        assert (await bob.refused("GET", f"{address}?agent=mailer", 404))[0] == "unknown_agent"
    assert {line["agent"] for line in (await bob.ask("GET", "/api/audit"))["lines"]} == {"a% b é"}
    assert [row["agent"] for row in (await bob.ask("GET", "/api/bill?by=agent"))["rows"]] == ["a% b é"]
    both = (await ada.ask("GET", "/api/bill"))["totals"]["calls"]
    assert (both, (await bob.ask("GET", "/api/bill"))["totals"]["calls"]) == (2, 1)
    exported = (await bob.client.get("/api/audit/export")).text.splitlines()
    assert {json.loads(line)["agent"] for line in exported} == {"a% b é"}
