"""What a host gives to a session by mistake is an error that says what would be right."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pegboard import Host, Pegboard
from pegboard.core.model.agents import SCOPES
from pegboard.errors import PegboardError, UsageError

CONFIG: dict[str, Any] = {
    "store": "memory:",
    "plugins": {"lights": {"python": "lights", "shared_only": True}},
    "toolkits": {"home": {"description": "Lights.", "tools": ["lights"]}},
    "agents": {"a": {"allowed_toolkits": ["home"], "dialect": "pegboard", "anticipate": False}},
}


@pytest.fixture
def lights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module with one tool, beside the configuration."""
    (tmp_path / "lights.py").write_text('def dim() -> str:\n    """Dim the lights."""\n    return "dark"\n')
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("lights")
async def test_a_misspelt_scope_opens_no_session() -> None:
    """P5: else what must not be reached from a narrow scope is loaded; the right scopes are listed."""
    scopes: list[Any] = ["User", "user-agent", "zzz", 5, "", ["user"]]
    async with Pegboard.open(CONFIG) as board:
        for wrong in scopes:
            with pytest.raises(UsageError, match=r"`worker_scope` is .* which is not shared, user or user_agent\."):
                await board.session(agent="a", session_id="s", worker_scope=wrong)
        narrow = await board.session(agent="a", session_id="s", worker_scope="user")
        assert [item.status for item in (await narrow.load("home")).items] == ["scope_incompatible"]


@pytest.mark.usefixtures("lights")
def test_a_board_that_blocks_refuses_a_misspelt_scope() -> None:
    """P5: with the scope that was meant."""
    with Pegboard.open_sync(CONFIG) as board:
        wrong: Any = "user-agent"
        with pytest.raises(UsageError) as refused:
            board.session(agent="a", session_id="s", worker_scope=wrong)
        assert refused.value.hint == "Did you mean 'user_agent'?"
        for scope in SCOPES:
            board.session(agent="a", session_id="s", worker_scope=scope)


@pytest.mark.usefixtures("lights")
async def test_a_value_of_another_type_opens_no_session() -> None:
    """S1: nothing is stored under a name that no other process finds again."""
    names, values = ("agent", "session_id", "principal", "sub_app", "client", "host"), (5, b"ada", ["ada"])
    async with Pegboard.open(CONFIG) as board:
        for name, wrong in product(names, values):
            given: dict[str, Any] = {"agent": "a", "session_id": "s", name: wrong}
            with pytest.raises(UsageError, match=f"`{name}` is of the type '{type(wrong).__name__}', not a "):
                await board.session(**given)


WRONG: list[tuple[str, Callable[[Any], Awaitable[object]]]] = [
    ("`kind` is of the type 'int', not a text.", lambda session: session.child(5)),
    ("`agent` is of the type 'int', not a text.", lambda session: session.child("task", agent=5)),
    ("`keep` is 'Turn', which is not turn, idle or session.", lambda session: session.load("home", keep="Turn")),
    ("`keep` is ['turn'], which is not turn, idle or session.", lambda session: session.load("home", keep=["turn"])),
    ("`name` is of the type 'list', not a text.", lambda session: session.load(["home"])),
    ("`name` is of the type 'int', not a text.", lambda session: session.unload(5)),
    ("`name` is of the type 'int', not a text.", lambda session: session.use_loadout(5)),
    ("`name` is of the type 'NoneType', not a text.", lambda session: session.call(None)),
    ("`arguments` are of the type 'str', not a mapping.", lambda session: session.call("dim", "{}")),
    ("`arguments` are of the type 'list', not a mapping.", lambda session: session.decide("dim", [])),
    ("`name` is of the type 'int', not a text.", lambda session: session.explain(5)),
    ("`label` is of the type 'int', not a text.", lambda session: session.mark_turn(5)),
    ("`approval_id` is of the type 'NoneType', not a text.", lambda session: session.resume(None)),
]


@pytest.mark.usefixtures("lights")
async def test_a_session_refuses_a_value_that_can_mean_nothing() -> None:
    """S10: by an error that names the parameter, and nothing is loaded."""
    async with Pegboard.open(CONFIG) as board:
        session = await board.session(agent="a", session_id="s")
        for text, use in WRONG:
            with pytest.raises(PegboardError, match=re.escape(text)) as refused:
                await use(session)
            assert refused.value.code == "usage", text
            assert not (await session.surface()).find("dim"), text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"delivery": "array"}, "`delivery` of a host is 'array'."),
        ({"delivery": ("arry",)}, "`delivery` of a host is ('arry',)."),
        ({"delivery": ()}, "`delivery` of a host is ()."),
        ({"request": "step"}, "`request` of a host is 'step'."),
        ({"cache": 5}, "`cache` of a host is 5."),
    ],
)
def test_a_host_is_made_of_known_ways(given: dict[str, Any], text: str) -> None:
    """D1: a misspelt one is refused where it is made, not in the middle of a load."""
    with pytest.raises(UsageError, match=re.escape(text)):
        Host(**given)
