"""Edits of the configuration in the console: looked at, saved, taken back, with the keyboard alone."""

import asyncio
import html
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from pegboard import Pegboard
from pegboard.config.documents import yaml_text
from pegboard.console.app import ConsoleApp

from .browser import broken_words, findings, opened, tab_to
from .programs import Program, program, serving
from .running import running

CONFIG = """\
# our configuration
store: "memory:"
tokens:
  eve: {token: eve-eve-eve-eve-eve-eve, agents: ["*"], console: [see, configure]}
  ada: {token: ada-ada-ada-ada-ada-ada, agents: [helper], console: [see, configure]}
  bob: {token: bob-bob-bob-bob-bob-bob, agents: ["*"], console: true}
plugins: {calculator: {python: pegboard.quickstart.calc}, clock: {python: pegboard.quickstart.clock}}
toolkits:
  sums: {description: Add numbers, tools: [calculator]}   # numbers
  times: {description: Tell the time, tools: [clock]}
agents:
  helper:                   # <b>who helps</b>
    allowed_toolkits: [sums]
  other: {allowed_toolkits: [times], initial_toolkits: [times]}
"""
EVE, ADA, BOB = (f"{'-'.join([name] * 6)}" for name in ("eve", "ada", "bob"))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
async def app(config: Path) -> AsyncIterator[ConsoleApp]:
    async with Pegboard.open(config) as board, serving(board) as (app, _):
        yield app


@pytest.fixture
async def eve(app: ConsoleApp) -> AsyncIterator[Program]:
    async with program(app, EVE) as eve:
        yield eve


def text_of(path: Path) -> str:
    return path.read_text()


def write(path: Path, text: str) -> None:
    path.write_text(text)


async def sent(operator: Program, address: str, status: int = 303, /, **form: str) -> str:
    """Send a form; return where it leads, or the page."""
    response = await operator.client.post(address, data=form)
    assert response.status_code == status, response.text
    return response.headers["location"] if status == 303 else response.text.replace("<wbr>", "")


async def page(operator: Program, address: str) -> str:
    response = await operator.client.get(address)
    assert response.status_code == 200, response.text
    return response.text.replace("<wbr>", "")


def identity(address: str) -> str:
    return re.findall(r"id=([\w-]+)", address)[0]


async def test_an_agent_is_edited_with_the_keyboard_alone(browser: Browser, config: Path, axe_core: str) -> None:
    """P10: Enter confirms what is shown; the notice takes it back with one key more."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page, EVE)
        await page.goto("/console/edit")
        assert await findings(page, axe_core) == []
        await tab_to(page, page.get_by_role("link", name="helper"))
        await page.keyboard.press("Enter")
        field = page.get_by_label("Allowed toolkits", exact=True)
        await expect(field).to_have_value("sums")
        assert await findings(page, axe_core) == []
        await tab_to(page, field)
        await page.keyboard.press("Control+End")
        await page.keyboard.type("\ntimes")
        await tab_to(page, page.get_by_role("button", name="Review changes"))
        await page.keyboard.press("Enter")
        main = page.get_by_role("main")
        await expect(main).to_contain_text("agents.helper.allowed_toolkits.times: absent → granted")
        await expect(main.locator(".diff .added")).to_contain_text("allowed_toolkits: [sums, times]")
        assert await findings(page, axe_core) == []
        assert await broken_words(page) == []
        assert text_of(config) == CONFIG
        await page.keyboard.press("Enter")
        await expect(page.locator(".notice")).to_contain_text("Saved: Edit agent helper.")
        assert text_of(config) == CONFIG.replace("[sums]", "[sums, times]")
        assert console.board.world.agents["helper"].allowed_toolkits == ("sums", "times")
        await tab_to(page, page.get_by_role("button", name="Undo"))
        await page.keyboard.press("Enter")
        await expect(page.locator(".notice")).to_contain_text("Taken back: Edit agent helper.")
        assert text_of(config) == CONFIG


async def test_the_whole_file_is_edited_with_the_place_of_what_is_wrong(
    browser: Browser, config: Path, axe_core: str
) -> None:
    async with running(config) as console, opened(browser, console.origin, theme="dark", width=400) as page:
        await console.sign_in(page, EVE)
        await page.goto("/console/edit/file")
        field = page.get_by_label("Text")
        shown = await field.input_value()
        assert "eve-eve" not in await page.content()
        await field.fill(shown.replace("allowed_toolkits: [sums]", "allowed_toolkits: [sumz]"))
        await page.get_by_role("button", name="Review changes").click()
        first = page.locator("#problem-1")
        await expect(first).to_contain_text("line 13, column 24")
        await expect(first).to_contain_text("Did you mean 'sums'?")
        await expect(page.get_by_role("button", name="Save")).to_have_count(0)
        assert await findings(page, axe_core) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await page.get_by_role("link", name="Back to the text").click()
        await expect(field).to_have_value(shown.replace("[sums]\n", "[sumz]\n"))
        await field.fill(shown.replace("# our configuration", "# ours"))
        await page.get_by_role("button", name="Review changes").click()
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator(".notice")).to_contain_text("Saved")
        assert text_of(config) == CONFIG.replace("# our configuration", "# ours")


async def test_what_is_wrong_stands_at_its_field_with_what_was_typed(eve: Program, config: Path) -> None:
    """P10: what the configuration refuses, and what cannot be read; numbers have a field each."""
    given = {
        "section": "agents",
        "name": "helper",
        "role": "counts",
        "allowed_toolkits": "sumz",
        "budget.tools": "many",
    }
    shown = await sent(eve, "/console/edit/form", 422, **given, **{"budget.tokens": "8000", "permissions": "what"})
    assert 'value="counts"' in shown
    assert re.search(r'id="wrong-permissions">', shown)
    del given["allowed_toolkits"]
    shown = await sent(eve, "/console/edit/form", 422, **given)
    assert re.search(r'name="budget\.tools"[^>]* value="many"[^>]* aria-invalid="true"', shown)
    assert 'id="wrong-budget"' in shown
    assert text_of(config) == CONFIG
    given |= {"allowed_toolkits": "sums", "budget.tools": "7"}
    await sent(eve, "/console/edit/save", id=identity(await sent(eve, "/console/edit/form", **given)))
    assert "budget: {tools: 7}" in text_of(config).replace("\n      ", " ") or "tools: 7" in text_of(config)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (
            {
                "section": "toolkits",
                "name": "both",
                "new": "yes",
                "tools": 'clock\r\n{"calculator": {}}',
                "policy": "a\r\nb",
            },
            "  both:\n    tools: [clock, {calculator: {}}]\n    policy: |-\n      a\n      b\n",
        ),
        ({"section": "agents", "name": "new é", "new": "yes", "role": "new: one"}, "  new é:\n    role: 'new: one'\n"),
        ({"section": "plugins", "name": "clock", "approve": "add_*: always"}, "approve: {add_*: always}"),
        (
            {"section": "loadouts", "name": "small", "new": "yes", "plugins": "clock"},
            "\nloadouts:\n  small:\n    plugins: [clock]\n",
        ),
    ],
)
async def test_forms_add_what_their_fields_say(eve: Program, config: Path, form: dict[str, str], expected: str) -> None:
    address = await sent(eve, "/console/edit/form", 303, **form)
    await sent(eve, "/console/edit/save", id=identity(address))
    assert expected in text_of(config)
    assert text_of(config).startswith("# our configuration\n")


async def test_an_entry_is_removed_with_what_names_it_shown(eve: Program, config: Path) -> None:
    address = await sent(eve, "/console/edit/remove", section="toolkits", name="sums")
    found = await page(eve, address)
    assert "toolkit &#39;sums&#39; is not defined" in found
    assert "Save" not in found.partition("<main")[2]
    address = await sent(eve, "/console/edit/remove", section="agents", name="other")
    assert "goes</span>" in await page(eve, address)
    await sent(eve, "/console/edit/save", id=identity(address))
    assert text_of(config) == CONFIG.replace("  other: {allowed_toolkits: [times], initial_toolkits: [times]}\n", "")


async def test_what_cannot_be_read_comes_back_as_it_was_typed(eve: Program) -> None:
    typed = {"section": "agents", "name": "helper", "permissions": "no colon here", "role": "typed <i>role</i>"}
    found = await sent(eve, "/console/edit/form", 422, **typed)
    assert "&#39;no colon here&#39; is not a name with a value." in found
    assert "typed &lt;i&gt;role&lt;/i&gt;" in found
    found = await sent(eve, "/console/edit/form", 422, section="agents", name="helper", new="yes", role="kept")
    assert "This agent already exists." in found
    assert 'value="kept"' in found


async def test_who_is_second_keeps_what_they_typed(eve: Program, app: ConsoleApp, config: Path) -> None:
    """The first of two operators wins; the edit of the second goes into what the file is then."""
    whole = await eve.ask("GET", "/api/configuration/file")
    times = {"allowed_toolkits": "times", "initial_toolkits": "times"}
    mine = await sent(eve, "/console/edit/form", section="agents", name="other", role="mine", **times)
    async with program(app, ADA) as ada:
        helper = {"section": "agents", "name": "helper", "allowed_toolkits": "sums"}
        theirs = await sent(ada, "/console/edit/form", 303, **helper, role="theirs")
        await sent(ada, "/console/edit/save", id=identity(theirs))
    found = await sent(eve, "/console/edit/save", 409, id=identity(mine))
    assert "was changed in the meantime" in found
    address = await sent(eve, "/console/edit/again", id=identity(mine))
    await sent(eve, "/console/edit/save", id=identity(address))
    assert "role: theirs" in text_of(config)
    assert "role: mine" in text_of(config)
    found = await sent(eve, "/console/edit/file", 409, text=f"{whole['text']}# typed", digest=whole["digest"])
    assert "# typed</textarea>" in found


def typed_in(found: str) -> dict[str, str]:
    """Return what the form over the whole file has in it."""
    text = re.findall(r'<textarea id="text"[^>]*>\n(.*?)</textarea>', found, re.DOTALL)[0]
    return {"text": html.unescape(text), "digest": re.findall(r'name="digest" value="(\w+)"', found)[0]}


async def by_ada(app: ConsoleApp, role: str) -> None:
    """Let `ada` save another role of her agent."""
    async with program(app, ADA) as ada:
        helper = {"section": "agents", "name": "helper", "allowed_toolkits": "sums"}
        address = await sent(ada, "/console/edit/form", 303, **helper, role=role)
        await sent(ada, "/console/edit/save", id=identity(address))


async def test_a_text_of_the_whole_file_gets_what_another_operator_changed_meanwhile(
    eve: Program, app: ConsoleApp, config: Path
) -> None:
    whole = typed_in(await page(eve, "/console/edit/file"))
    await by_ada(app, "<i>theirs</i>")
    text = whole["text"].replace("# our configuration", "# mine")
    found = await sent(eve, "/console/edit/file", 409, text=text, digest=whole["digest"])
    assert "Your text now has the changes of others" in found
    assert "+    role: &lt;i&gt;theirs&lt;/i&gt;" in found
    address = await sent(eve, "/console/edit/file", **typed_in(found))
    await by_ada(app, "theirs at last")
    await sent(eve, "/console/edit/save", 409, id=identity(address))
    address = await sent(eve, "/console/edit/again", id=identity(address))
    await sent(eve, "/console/edit/save", id=identity(address))
    expected = CONFIG.replace("# our configuration", "# mine")
    expected = expected.replace("allowed_toolkits: [sums]\n", "allowed_toolkits: [sums]\n    role: theirs at last\n")
    assert text_of(config) == expected


async def test_a_text_of_the_whole_file_takes_the_place_of_the_same_lines_only_where_that_is_said(
    eve: Program, app: ConsoleApp, config: Path
) -> None:
    """Nothing that either of two operators wrote is lost without a word."""
    whole = typed_in(await page(eve, "/console/edit/file"))
    text = whole["text"].replace("[sums]\n", "[sums]\n    role: mine\n")
    address = await sent(eve, "/console/edit/file", text=text, digest=whole["digest"])
    await by_ada(app, "theirs")
    await sent(eve, "/console/edit/save", 409, id=identity(address))
    address = await sent(eve, "/console/edit/again", id=identity(address))
    found = await page(eve, address)
    for _ in range(2):  # sent once more as it is, it comes back
        assert "Others changed the same lines as you." in found
        assert "+    role: theirs" in found
        assert typed_in(found)["text"] == text
        assert "role: theirs" in re.findall(r'<textarea id="now"[^>]*>(.*?)</textarea>', found, re.DOTALL)[0]
        found = await sent(eve, "/console/edit/file", 409, **typed_in(found))
    (instead,) = re.findall(r'name="instead" value="(\w+)" required', found)
    address = await sent(eve, "/console/edit/file", **typed_in(found), instead=instead)
    assert "-    role: theirs" in await page(eve, address)
    assert "role: theirs" in text_of(config)
    await sent(eve, "/console/edit/save", id=identity(address))
    assert text_of(config) == CONFIG.replace("[sums]\n", "[sums]\n    role: mine\n")


async def test_what_others_changed_is_looked_through_with_the_keyboard_alone(
    browser: Browser, config: Path, axe_core: str
) -> None:
    async with running(config) as console, opened(browser, console.origin, width=400, expected="409") as page:
        await console.sign_in(page, EVE)
        await page.goto("/console/edit/file")
        field = page.get_by_label("Text", exact=True)
        await field.fill((await field.input_value()).replace("[sums]\n", "[times]\n"))
        write(config, CONFIG.replace("[sums]\n", "[sums, times]\n"))
        look = page.get_by_role("button", name="Review changes")
        await look.click()
        await expect(page.get_by_role("alert")).to_contain_text("are not in your text")
        await expect(page.locator(".diff .added")).to_contain_text("allowed_toolkits: [sums, times]")
        await expect(field).to_have_value(re.compile(r"allowed_toolkits: \[times\]"))
        assert await findings(page, axe_core) == []
        assert await broken_words(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await tab_to(page, page.get_by_label("Replace the file with my text"))
        await page.keyboard.press("Space")
        await tab_to(page, look)
        await page.keyboard.press("Enter")
        await expect(page.locator(".diff .removed")).to_contain_text("[sums, times]")
        await page.keyboard.press("Enter")
        await expect(page.locator(".notice")).to_contain_text("Saved")
        assert text_of(config) == CONFIG.replace("[sums]\n", "[times]\n")


async def test_what_is_not_known_any_more_is_merged_with_nothing(eve: Program, config: Path) -> None:
    whole = typed_in(await page(eve, "/console/edit/file"))
    found = await sent(eve, "/console/edit/file", 409, text=f"{whole['text']}# typed", digest="0" * 64)
    assert "Pegboard no longer has the text that you started from" in found
    assert typed_in(found) == {"text": f"{whole['text']}# typed", "digest": "0" * 64}
    assert text_of(config) == CONFIG


async def test_a_new_secret_of_a_text_is_its_mark_when_the_text_comes_back(eve: Program, config: Path) -> None:
    whole = typed_in(await page(eve, "/console/edit/file"))
    token = "  carl: {token: carl-carl-carl-carl-carl, agents: [nobody], consol: true}\n"
    address = await sent(
        eve, "/console/edit/file", **whole | {"text": whole["text"].replace("plugins:", f"{token}plugins:")}
    )
    found = await page(eve, f"/console/edit/file?id={identity(address)}")
    assert "carl-carl" not in found
    again = typed_in(found)
    again["text"] = again["text"].replace(", consol: true", "").replace("[nobody]", "[helper]")
    address = await sent(eve, "/console/edit/file", **again)
    await sent(eve, "/console/edit/save", id=identity(address))
    assert "  carl: {token: carl-carl-carl-carl-carl, agents: [helper]}\n" in text_of(config)


async def test_an_edit_that_is_saved_in_two_tabs_is_saved_once(eve: Program, config: Path) -> None:
    address = await sent(eve, "/console/edit/form", section="agents", name="helper", role="x", allowed_toolkits="sums")
    tabs = [eve.client.post("/console/edit/save", data={"id": identity(address)}) for _ in range(2)]
    saved, refused = sorted([response.status_code for response in await asyncio.gather(*tabs)])
    assert saved == 303
    assert refused in (404, 409)
    assert text_of(config).count("role: x") == 1


async def test_who_sees_some_agents_sees_and_edits_what_is_theirs(app: ConsoleApp, config: Path) -> None:
    """A5: no form, no line of the file and no problem of another agent."""
    async with program(app, ADA) as ada:
        found = await page(ada, "/console/edit")
        listed = re.findall(r"section=(\w+)&amp;name=(\w+)", found)
        assert listed == [("agents", "helper"), ("toolkits", "sums"), ("plugins", "calculator")]
        for section, name in (("agents", "other"), ("toolkits", "times"), ("plugins", "clock"), ("servers", "x")):
            address = f"/console/edit/form?section={section}&name={name}"
            assert (await ada.client.get(address)).status_code == 403
            await sent(ada, "/console/edit/form", 403, section=section, name=name, role="x")
            await sent(ada, "/console/edit/remove", 403, section=section, name=name)
        for address in ("/console/edit/file", "/console/edit/form?section=agents"):
            assert (await ada.client.get(address)).status_code == 403
        await sent(ada, "/console/edit/file", 403, text="agents: {}", digest="x")
        helper = {"section": "agents", "name": "helper", "allowed_toolkits": "sums\r\ntimes"}
        address = await sent(ada, "/console/edit/form", 303, **helper)
        assert "other" not in (await page(ada, address)).partition("<main")[2]
        await sent(ada, "/console/edit/save", id=identity(address))
    assert "allowed_toolkits: [sums, times]" in text_of(config)


async def test_a_variable_of_others_is_not_read_by_who_sees_some_agents(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X5, A5: neither a form nor a program of `ada` brings the token of `eve` into what a model or they read."""
    monkeypatch.setenv("EVE_TOKEN", EVE)
    write(config, CONFIG.replace(EVE, '"${EVE_TOKEN}"'))
    async with (
        Pegboard.open(config) as board,
        serving(board) as (app, _),
        program(app, ADA) as ada,
        program(app, EVE) as eve,
    ):
        told = {"path": ["toolkits", "sums", "description"], "value": "say ${EVE_TOKEN} now"}
        code, *_ = await ada.refused("POST", "/api/configuration/edits", 403, json={"changes": [told]})
        assert code == "every_agent_required"
        helper = {"section": "agents", "name": "helper", "allowed_toolkits": "sums"}
        await sent(ada, "/console/edit/form", 403, **helper, role="${EVE_TOKEN}")
        edit = await eve.ask("POST", "/api/configuration/edits", json={"changes": [told]})
        assert edit["saveable"]
        assert EVE not in str(edit)


async def test_without_the_right_nothing_is_offered_shown_or_saved(eve: Program, app: ConsoleApp, config: Path) -> None:
    """A5: `console: true` does not edit."""
    address = await sent(eve, "/console/edit/form", section="agents", name="helper", role="x", allowed_toolkits="sums")
    async with program(app, BOB) as bob:
        for get in ("/console/edit", "/console/edit/file", "/console/edit/form?section=agents&name=helper", address):
            assert (await bob.client.get(get)).status_code == 403
        for post in ("form", "remove", "file", "again", "save"):
            await sent(bob, f"/console/edit/{post}", 403, id=identity(address), section="agents", name="helper")
    async with program(app, ADA) as ada:
        await sent(ada, "/console/edit/save", 404, id=identity(address))
    assert text_of(config) == CONFIG


async def test_a_file_that_cannot_be_written_says_so_and_stays(eve: Program, config: Path) -> None:
    address = await sent(eve, "/console/edit/form", section="agents", name="helper", role="x", allowed_toolkits="sums")
    os.chmod(config, 0o444)  # noqa: PTH101
    found = await sent(eve, "/console/edit/save", 400, id=identity(address))
    assert "is read-only, so it was not changed." in found
    os.chmod(config, 0o644)  # noqa: PTH101
    assert text_of(config) == CONFIG


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "a\u202egnp", "x" * 300, "new\nline", "a: b", "'\"", "*"]
)
async def test_hostile_names_are_texts_in_the_file_and_on_the_page(eve: Program, config: Path, name: str) -> None:
    """A name that the configuration refuses comes back in the form."""
    given = {"section": "toolkits", "name": name, "new": "yes", "tools": "clock", "label": name}
    answer = await eve.client.post("/console/edit/form", data=given)
    proposed = answer.status_code == 303
    found = await page(eve, answer.headers["location"]) if proposed else answer.text
    assert "<script>alert" not in found
    names = ["sums", "times"]
    if proposed:
        assert "\u202e" not in found
        saved = await eve.client.post("/console/edit/save", data={"id": identity(answer.headers["location"])})
        names += [name] if saved.status_code == 303 else []
    else:
        assert answer.status_code == 422
    assert list(yaml_text.compose(text_of(config), "f").value["toolkits"]) == names
