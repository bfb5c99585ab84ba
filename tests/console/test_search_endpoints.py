"""Search over the whole catalog and explanations, as a program asks for them."""

from urllib.parse import quote

import pytest

from gateway.clients import until
from pegboard import Pegboard

from .programs import Program


async def test_what_a_model_would_find_comes_with_what_its_score_is_made_of(ada: Program, mailer: Pegboard) -> None:
    """P3: and what the agent may not use, with the reason of that; the look leaves no trace."""
    await mailer.ready()

    async def found() -> bool:
        return not (await ada.ask("GET", "/api/search?agent=mailer&query=mail"))["indexing"]

    await until(found)
    answer = await ada.ask("GET", "/api/search?agent=mailer&query=send+a+mail")
    (hit,) = answer["names"]
    assert (hit["name"], hit["permitted"], hit["standing"]) == ("send_mail", True, "callable")
    assert [one["name"] for one in answer["hits"]] == ["post"]
    assert sum(part["value"] for part in hit["parts"]) == pytest.approx(hit["score"], abs=0.001)
    (denied,) = (await ada.ask("GET", "/api/search?agent=mailer&query=add_time"))["names"]
    assert (denied["name"], denied["permitted"], denied["standing"]) == ("add_time", False, "denied")
    assert denied["reason"]["text"]
    assert (await ada.ask("GET", "/api/audit"))["lines"] == []


async def test_why_an_agent_cannot_call_a_tool_and_what_would_help(ada: Program) -> None:
    """F5: the same predicates and reasons as the command's, in any session."""
    await ada.ask("PUT", "/api/agents/mailer/switches", json={"name": "post", "value": False})
    address = f"/api/explain?agent=mailer&name=send_mail&principal=carl&session={quote('a/b <é>')}"
    found = await ada.ask("GET", address)
    assert (found["permitted"], found["callable"], found["session"]) == (False, False, "a/b <é>")
    assert found["reasons"][0]["code"] == "denied_switch"
    assert found["fixes"]
    assert (await ada.ask("GET", "/api/explain?agent=mailer&name=%3Cnothing%3E"))["known"] is False
