"""The matrix as JSON, for two operators: one sees three agents, one only one of them."""

from pegboard import Pegboard

from .programs import Program

OFF = {"kind": "switch", "name": "post", "value": False}


async def test_everyone_is_every_agent_that_the_operator_sees(ada: Program, bob: Program, mailer: Pegboard) -> None:
    """P2, G2: bob sets his agent's, ada all three; he cannot take back what touched others."""
    seen = await bob.ask("GET", "/api/matrix")
    assert [agent["name"] for agent in seen["agents"]] == ["a% b é"]
    assert [len(row["cells"]) for row in (*seen["toolkits"], *seen["others"])] == [1, 1]
    mine = await bob.ask("POST", "/api/matrix", json=OFF)
    assert mine["agents"] == ["a% b é"]
    every = await ada.ask("POST", "/api/matrix", json=OFF)
    assert every["agents"] == ["mailer", "deskless"]
    assert set((await mailer.services.store.stored_permissions()).switches) == {"mailer", "deskless", "a% b é"}
    (row,) = (await ada.ask("GET", "/api/matrix"))["toolkits"]
    assert [(cell["state"], cell["stored"]) for cell in row["cells"]] == [("off", False)] * 3
    assert row["standing"] == every["mark"]
    assert (await bob.ask("GET", "/api/matrix"))["toolkits"][0]["standing"] == mine["mark"]
    undo = {"mark": every["mark"]}
    assert (await bob.refused("POST", "/api/matrix/undo", 404, json=undo))[0] == "unknown_name"
    await ada.ask("POST", "/api/matrix/undo", json=undo)
    assert set((await mailer.services.store.stored_permissions()).switches) == {"a% b é"}
    assert (await ada.refused("POST", "/api/matrix/undo", 409, json=undo))[0] == "switch_changed"


async def test_a_preview_sums_over_the_agents_and_binds_what_is_set(ada: Program, mailer: Pegboard) -> None:
    """P4, F4: tokens before and after of all live sessions; where something has changed since, nothing is set."""
    for agent in ("mailer", "a% b é"):
        await (await mailer.session(agent=agent, session_id="s")).surface()
    found = await ada.ask("GET", "/api/matrix/preview?kind=switch&name=post&value=false")
    changes = [one for agent in found["changed"] for one in agent["sessions"]]
    assert (found["agents"], len(found["changed"]), found["sessions"]) == (3, 3, 2)
    assert found["tokens_before"] == sum(one["tokens_before"] for one in changes) > found["tokens_after"]
    await mailer.permissions.set("deskless", "post", True)
    late = {**OFF, "seen": found["seen"]}
    assert (await ada.refused("POST", "/api/matrix", 409, json=late))[0] == "switch_changed"
    assert (await mailer.services.store.stored_permissions()).switches == {"deskless": {"post": True}}


async def test_a_pause_is_set_seen_and_needs_attention(ada: Program, bob: Program, mailer: Pegboard) -> None:
    """P4, F5: of the operator's agents alone."""
    await bob.ask("POST", "/api/matrix", json={"kind": "pause", "name": "mail", "value": True})
    await ada.ask("POST", "/api/matrix", json={"kind": "pause", "value": True, "agent": "mailer"})
    seen = await ada.ask("GET", "/api/matrix")
    assert [agent["paused"] for agent in seen["agents"]] == [True, False, False]
    assert {one["name"]: one["paused"] for one in seen["plugins"]} == {"mail": 1, "clock": 0}
    texts = [one["text"] for one in (await ada.ask("GET", "/api/attention"))["items"] if one["kind"] == "pause"]
    assert texts == [
        "Agent 'mailer' is paused: none of its tools can be called.",
        "'mail' is paused for 1 of 3 agents.",
    ]
    texts = [one["text"] for one in (await bob.ask("GET", "/api/attention"))["items"] if one["kind"] == "pause"]
    assert texts == ["'mail' is paused for 1 of 1 agent."]
    session = await mailer.session(agent="mailer", session_id="s")
    assert (await session.call("read_mail")).status == "not_found"
    await ada.ask("POST", "/api/matrix", json={"kind": "pause", "value": False, "agent": "mailer"})
    assert (await session.call("read_mail")).status == "ok"
