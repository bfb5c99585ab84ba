"""What the model sees, in a browser beside clients of both eras, and as a program reads it."""

import json
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.async_api import Browser, Page, expect

from gateway.clients import HANDSHAKE
from pegboard import Cache, Host, Pegboard
from pegboard.board.observability import metrics
from pegboard.frameworks.loop import FormName, Loop
from pegboard.operators.sessions import remove_session

from .browser import opened, tab_to
from .programs import Program
from .running import running

CONFIG = """
store: sqlite:///state.db
plugins:
  notes: {python: notes_tools}
  sums: {python: sum_tools}
toolkits:
  counting: {tools: [sums], description: "Count things.", policy: "Count twice."}
agents:
  default: {tools: [notes], allowed_toolkits: [counting], dialect: pegboard}
"""
NOTES = '''
def note_add(text: str) -> str:
    """Add a note; </pre><script>alert(1)</script>\\u202e is text."""
    return f"added {text}"
'''
SUMS = '''
def sum_up(numbers: list[int]) -> int:
    """Add numbers."""
    return sum(numbers)
'''


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    (tmp_path / "notes_tools.py").write_text(NOTES)
    (tmp_path / "sum_tools.py").write_text(SUMS)
    return path


def address(session: str, form: str = "mcp") -> str:
    query = urlencode({"principal": "local", "agent": "default", "session": session, "form": form})
    return f"/console/session/sent?{query}"


async def as_json(page: Page) -> dict[str, object]:
    return json.loads(await page.locator("#json").inner_text())


async def test_f1_the_page_has_what_a_client_is_sent_and_follows_a_load(browser: Browser, config: Path) -> None:
    """F1, G4, G5: the same names in the same order, also once a tool has joined the list."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        async with console.client(HANDSHAKE) as client:
            names = await client.names()
            await client.call("note_add", text="a")
            await page.goto("/console/sessions")
            await page.get_by_role("link", name="s", exact=True).click()
            await page.get_by_role("link", name="What the model sees").click()
            sent = await as_json(page)
            assert [tool["name"] for tool in sent["tools"]] == names  # type: ignore[union-attr]
            assert "Use search_tools" in str(sent["instructions"])
            await client.load("counting")
            now = await client.names()
            assert "sum_up" in now
            await page.reload()
            sent = await as_json(page)
            assert [tool["name"] for tool in sent["tools"]] == now  # type: ignore[union-attr]


@pytest.mark.parametrize("form", ["anthropic", "responses", "chat"])
async def test_f1_the_form_of_a_provider_is_what_a_loop_sends_it(
    browser: Browser, config: Path, form: FormName
) -> None:
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        session = await console.board.session(agent="default", session_id="s")
        loop = Loop(session, form=form, model="a-model-that-nobody-knows")
        request = await loop.request([{"role": "user", "content": "Hello!"}])
        await page.goto(address("s", form))
        sent = await as_json(page)
        listed = json.dumps(request["tools"], ensure_ascii=False).replace("\u202e", "<U+202E>")
        assert sent["tools"] == json.loads(listed)


async def test_f4_what_joined_and_left_since_the_newest_request_is_named(browser: Browser, config: Path) -> None:
    """F4, D1: beside it the policy that came with it, and what all of it costs."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        session = await console.board.session(agent="default", session_id="s")
        surface = await session.surface()
        await page.goto(address("s"))
        main = page.get_by_role("main")
        await expect(main).to_contain_text("The list of tools is the same.")
        await expect(main).to_contain_text(f"{surface.tokens.total:,}")
        await session.load("counting")
        await expect(main).to_contain_text("Joined: sum_up")
        await session.surface()
        await session.unload("counting")
        await expect(main).to_contain_text("Left: sum_up")


async def test_f1_each_list_that_was_sent_is_looked_at_again_as_it_was(browser: Browser, config: Path) -> None:
    """F1, F4: by its number, with what differs from the list before; the same in the JSON."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        session = await console.board.session(agent="default", session_id="s")
        await session.surface()
        await session.load("counting")
        policy = (await session.surface()).policy
        await session.unload("counting")
        await session.surface()
        await page.goto(address("s"))
        await page.get_by_text("Lists that were sent").click()
        await page.get_by_role("link", name="List 2").click()
        main = page.get_by_role("main")
        await expect(main).to_contain_text("Joined: sum_up")
        await expect(main).to_contain_text(policy)
        assert "sum_up" in [tool["name"] for tool in (await as_json(page))["tools"]]  # type: ignore[union-attr]
        await page.get_by_role("link", name="List 3").click()
        await expect(main).to_contain_text("Left: sum_up")
        await page.get_by_role("link", name="List 1").click()
        await expect(main).to_contain_text("No list before it is kept.")


async def test_f1_a_list_that_was_sent_is_the_one_of_the_request(browser: Browser, config: Path) -> None:
    """F1, D4: what a loop has sent a provider, looked at when its next request would be another."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        session = await console.board.session(agent="default", session_id="s")
        loop = Loop(session, form="anthropic", model="a-model-that-nobody-knows")
        request = await loop.request([{"role": "user", "content": "Hello!"}])
        await console.board.permissions.set("default", "notes", value=False, by="test")
        await page.goto(f"{address('s', 'anthropic')}&step=1")
        listed = json.dumps(request["tools"], ensure_ascii=False).replace("\u202e", "<U+202E>")
        assert (await as_json(page))["tools"] == json.loads(listed)


async def test_f1_a_list_that_another_went_out_for_was_not_sent(tmp_path: Path) -> None:
    """F1, D3: where a host takes a wire list, that is what its model has; a session that is deleted has none."""
    long = "It says at some length what it does, once more. " * 30
    for plugin in range(10):
        functions = (f'def op{plugin}_{at}(x: int) -> int:\n    """{long}"""\n    return x\n' for at in range(20))
        (tmp_path / f"dear{plugin}_tools.py").write_text("".join(functions))
    (tmp_path / "notes_tools.py").write_text(NOTES)
    config = tmp_path / "pegboard.yaml"
    dear = ", ".join(f"dear{plugin}: {{python: dear{plugin}_tools}}" for plugin in range(10))
    config.write_text(
        f"plugins: {{notes: {{python: notes_tools}}, {dear}}}\nstore: 'memory:'\n"
        "agents: {default: {tools: [notes], discoverable: ['dear*'], lease: {kind: idle, turns: 1}}}\n"
    )
    cold, warm = (Host(delivery=("array",), cache=Cache(tokens=tokens)) for tokens in (0, 60_000))
    async with Pegboard.open(config) as board:
        session = await board.session(agent="default", session_id="s", host=cold)
        await session.load("op0_1")
        session.host = warm
        sent: list[list[str]] = []
        for _ in range(4):
            shown, wired = await session.surface(), await session.wire()
            sent.append([tool.wire for tool in wired])
            await session.end_turn()
        assert list(shown.names) != sent[-1]
        steps = board.services.metrics.steps
        assert [[tool.wire for tool in one.tools] for one in steps.steps_of(session.key)] == sent[:1]
        await remove_session(board.services, session.key, by="test")
        assert steps.steps_of(session.key) == ()


async def test_only_so_many_lists_of_so_many_sessions_are_kept(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F1: the newest, with their numbers; what is the same is one list."""
    monkeypatch.setattr(metrics, "MOST_STEPS", 2)
    monkeypatch.setattr(metrics, "STEPS_OF_SESSIONS", 1)
    async with Pegboard.open(config) as board:
        steps, numbers = board.services.metrics.steps, list[list[int]]()
        for name in ("a", "b"):
            session = await board.session(agent="default", session_id=name)
            for act in (session.load, session.unload, session.load):
                await session.surface()
                await session.surface()
                await act("counting")
            numbers.append([one.number for one in steps.steps_of(session.key)])
        assert numbers == [[2, 3], [2, 3]]
        assert steps.steps_of((await board.session(agent="default", session_id="a")).key) == ()


async def test_the_json_is_copied_by_keyboard(browser: Browser, config: Path) -> None:
    async with running(config) as console, opened(browser, console.origin) as page:
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await console.sign_in(page)
        await (await console.board.session(agent="default", session_id="s")).surface()
        await page.goto(address("s"))
        await tab_to(page, page.get_by_role("button", name="Copy"))
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert json.loads(await page.evaluate("navigator.clipboard.readText()")) == await as_json(page)


async def test_a_program_reads_the_same_and_nothing_counts_as_sent(ada: Program, mailer: Pegboard) -> None:
    """F1, F4, X5: a session that nothing is known of is an error, as on its page."""
    session = await mailer.session(agent="mailer", session_id="s", principal="carl")
    query = urlencode({"agent": "mailer", "session": "s", "principal": "carl"})
    surface = await session.surface()
    before = mailer.metrics()
    sent = await ada.ask("GET", f"/api/session/sent?{query}")
    assert [tool["name"] for tool in sent["tools"]] == list(surface.names)
    assert sent["tokens"] == surface.tokens.total
    assert mailer.metrics() == before
    (newest,) = sent["before"]
    assert (newest["number"], newest["tools"], newest["left"]) == (1, len(surface.names), 0)
    then = await ada.ask("GET", f"/api/session/sent?{query}&step=1")
    assert ([tool["name"] for tool in then["tools"]], then["step"]) == (list(surface.names), 1)
    assert "No list 9 of this session is kept." in str(
        await ada.refused("GET", f"/api/session/sent?{query}&step=9", 400)
    )
    unknown = f"/api/session/sent?{urlencode({'agent': 'mailer', 'session': 'none'})}"
    assert (await ada.refused("GET", unknown, 404))[0] == "unknown_session"
