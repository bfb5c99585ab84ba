"""What an operator may do: `console: true`, or a list of rights, enforced on each action and on each page (A5)."""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from pegboard import ConfigError, Pegboard
from pegboard.console.api.endpoints import ENDPOINTS
from pegboard.console.app import ConsoleApp
from pegboard.console.pages.all_pages import PAGES

from .addresses import ADDRESSES
from .programs import Program, program
from .test_approval_endpoints import waiting

GIVEN = {
    "ada": "true",
    "looks": "[see]",
    "answers": "[approve]",
    "switches": "[see, switch]",
    "accepts": "[configure]",
    "everything": "[see, approve, switch, configure]",
}
MAY = {
    "approve": {"ada", "answers", "everything"},
    "switch": {"ada", "switches", "everything"},
}
OWN_LOGINS = {
    ("POST", "/console/login"),
    ("POST", "/console/login/end"),
    ("POST", "/api/logins/{server}"),
    ("DELETE", "/api/logins/{server}"),
}
Operators = dict[str, Program]


@pytest.fixture
def mailer_config(mailer_config: Path) -> Path:
    """Return the configuration with an operator for each way to write rights."""
    plain = mailer_config.read_text().partition("tokens:")[0]
    lines = (f'  {name}: {{token: {name}-token, agents: ["*"], console: {rights}}}' for name, rights in GIVEN.items())
    bob = "  bob: {token: bob-token, agents: [mailer], console: true}"
    one = "  one: {token: one-token, agents: [mailer], console: [see, configure]}"
    mailer_config.write_text("\n".join([plain, "tokens:", *lines, bob, one]))
    return mailer_config


@pytest.fixture
async def operators(app: ConsoleApp) -> AsyncIterator[Operators]:
    async with AsyncExitStack() as stack:
        yield {name: await stack.enter_async_context(program(app, f"{name}-token")) for name in (*GIVEN, "bob", "one")}


def test_whatever_changes_something_needs_a_right_of_its_own() -> None:
    """A5: seeing alone changes nothing but one's own logins (G11); a new action that forgets its right fails here."""
    actions = [one for one in (*PAGES, *ENDPOINTS) if one.method != "GET"]
    # The theme is a cookie of the browser; a login is the operator's own.
    theme = {("POST", "/console/theme")}
    assert {(one.method, one.path) for one in actions if one.right == "see"} == OWN_LOGINS | theme
    assert {one.right for one in actions} >= {"approve", "switch"}


async def test_only_who_has_the_right_answers_calls_and_sets_switches(operators: Operators, mailer: Pegboard) -> None:
    """A5: an answer of 403 names the right, and nothing is changed."""
    session = "agent=mailer&session=s%2F1%20%C3%A9&principal=carl"
    for name, operator in operators.items():
        approval = await waiting(mailer, to=name)
        live = await mailer.session(agent="mailer", session_id="s/1 é", principal="carl")
        await live.surface()
        actions = {
            "approve": [
                ("POST", f"/api/approvals/{approval}/allow", {}),
                ("POST", f"/api/approvals/{approval}/refuse", {}),
            ],
            "switch": [
                ("PUT", "/api/agents/mailer/switches", {"name": "post", "value": True}),
                ("POST", f"/api/session/end-turn?{session}", None),
            ],
        }
        for right, asked in actions.items():
            for method, address, body in asked:
                if name in MAY[right] | {"bob"}:
                    await operator.ask(method, address, json=body)
                    continue
                before = (await operator.ask("GET", "/api/audit"))["lines"]
                code, message, _ = await operator.refused(method, address, 403, json=body)
                expected = f"The token of '{name}' does not have the right '{right}'."
                assert (code, message) == ("right_required", expected)
                assert (await operator.ask("GET", "/api/audit"))["lines"] == before
        assert (await operator.ask("GET", f"/api/approvals/{approval}"))["id"] == approval


CONFIGURING = [
    address
    for address in ADDRESSES
    if (address.method, address.path)
    in {(one.method, one.path) for one in (*PAGES, *ENDPOINTS) if one.right == "configure"}
]
OF_SOME = (
    "/console/edit",
    "/console/try",
    "/console/call/again",
    "/api/configuration/edits",
    "/api/configuration/parts",
    "/api/try",
    "/api/calls/",
)


async def test_only_who_may_configure_reaches_what_edits(operators: Operators, mailer_config: Path) -> None:
    """A5: a right that is missing is named on each page and in each answer, and the file stays unchanged."""
    before = text_of(mailer_config)
    assert len(CONFIGURING) > 25
    for name in ("ada", "looks", "answers", "switches", "bob"):
        for address in CONFIGURING:
            response = await operators[name].client.request(**address.request())
            assert response.status_code == 403, (name, address.path)
            assert "does not have the right &#39;configure&#39;" in response.text.replace("'", "&#39;"), address.path
    assert text_of(mailer_config) == before


async def test_what_all_agents_share_is_edited_by_operators_of_every_agent(operators: Operators) -> None:
    """A5: servers, the whole file and what waits are not for an operator of one agent, whatever their rights."""
    for address in CONFIGURING:
        response = await operators["one"].client.request(**address.request())
        shared = not address.path.startswith(OF_SOME) or address.path.endswith("/file")
        assert response.status_code == 403 if shared else response.status_code < 500, address.path
        assert "pegboard.yaml" not in response.text or not shared


def text_of(path: Path) -> str:
    return path.read_text()


async def test_a_page_offers_only_what_its_operator_may_do(operators: Operators, mailer: Pegboard) -> None:
    """A5: and a form that is sent all the same is refused."""
    approval = await waiting(mailer)
    for name, operator in operators.items():
        texts = {
            address: (await operator.client.get(address)).text
            for address in ("/console/approvals", "/console/agent?agent=mailer")
        }
        approves, switches = name in MAY["approve"] | {"bob"}, name in MAY["switch"] | {"bob"}
        assert ("Allow once" in texts["/console/approvals"]) is approves, name
        assert ('role="switch"' in texts["/console/agent?agent=mailer"]) is switches, name
        if not approves:
            form = {"id": approval, "expected": "waiting", "lasts": "once"}
            assert (await operator.client.post("/console/approvals/allow", data=form)).status_code == 403
    assert (await mailer.approvals.list())[0].status == "waiting"


async def test_the_navigation_leads_nowhere_that_is_not_opened(operators: Operators) -> None:
    """G2, A5: servers and the configuration are for operators of every agent."""
    for name, operator in operators.items():
        page = (await operator.client.get("/console/access")).text
        navigation = page.partition("<nav")[2].partition("</aside>")[0]
        addresses = re.findall(r'<a href="([^"]+)"', navigation)
        limited = {"/console/servers", "/console/settings"}
        assert limited.isdisjoint(addresses) is (name in ("bob", "one"))
        assert {"/console", "/console/approvals", "/console/access"} <= set(addresses)
        for address in addresses:
            assert (await operator.client.get(address)).status_code == 200, (name, address)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("[]", "names no right."),
        ("[look]", "has 'look', which is not a right of an operator."),
        ("[see, 5]", "expected a string, found the number 5."),
        ("everything", "expected true, false or a list of rights, found a string."),
    ],
)
async def test_rights_that_mean_nothing_are_refused_with_their_place(tmp_path: Path, written: str, said: str) -> None:
    path = tmp_path / "pegboard.yaml"
    path.write_text(f"agents: {{a: {{}}}}\ntokens: {{ada: {{token: x-token, agents: [a], console: {written}}}}}\n")
    with pytest.raises(ConfigError) as error:
        async with Pegboard.open(path):
            pass
    (problem,) = error.value.problems
    assert problem.message.endswith(said)
    assert "see, approve, switch, configure" in problem.hint or written == "[see, 5]"
    assert problem.place is not None
    assert problem.place.line == 2
