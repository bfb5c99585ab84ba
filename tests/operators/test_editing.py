"""Edits of the configuration: what was shown is what is saved, in the name of who saves it, and can be taken back."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Pegboard
from pegboard.errors import ConfigError, UsageError
from pegboard.operators.editable import ConfigurationChange
from pegboard.operators.editing import Editing, Editor

CONFIG = """\
# ours
store: sqlite:///state.db
servers:
  web: {url: "https://example.invalid/mcp", headers: {Authorization: "Bearer v3ry-secret-token"}, disabled: true}
toolkits:
  sums: {tools: [calculator]}   # numbers
  times: {tools: [clock]}
loadouts: {careful: {disabled: [clock]}}
agents:
  ada:
    allowed_toolkits: [sums]   # when needed
    discoverable: [clock]
  bob: {allowed_toolkits: [sums, times], loadout: careful}
tokens:
  eve: {token: eve-eve-eve-eve-eve, agents: ["*"], console: [see, configure]}
plugins: {calculator: {python: pegboard.quickstart.calc}, clock: {python: pegboard.quickstart.clock}}
"""
ADA = Editor(name="ada", agents=frozenset({"ada"}))
EVE = Editor(name="eve", agents=None)
LOADS = ConfigurationChange(path=("agents", "ada", "allowed_toolkits"), value=["sums", "times"])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def variables(config: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a configuration with a variable in another's token, and one in the role of `ada`."""
    monkeypatch.setenv("CARL_TOKEN", "carl-carl-carl-carl")
    monkeypatch.setenv("TEAM", "mathematicians")
    text = CONFIG.replace("tokens:\n", 'tokens:\n  carl: {token: "${CARL_TOKEN}", agents: [bob], console: [see]}\n')
    text = text.replace("loadouts:", "  sets: {description: 'writes $${CARL_TOKEN}', tools: [clock]}\nloadouts:")
    config.write_text(text.replace("  ada:\n", "  ada:\n    role: of ${TEAM}\n"))
    return config


def text_of(path: Path) -> str:
    return path.read_text()


def write(path: Path, text: str) -> None:
    path.write_text(text)


@pytest.fixture
async def board(config: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(config) as board:
        yield board


@pytest.fixture
def editing(board: Pegboard) -> Editing:
    return Editing(board.services, board.editable)


async def test_a_file_with_a_secret_in_plain_is_for_its_owner_alone_once_it_is_saved(
    editing: Editing, config: Path
) -> None:
    """X5: whoever could read it before."""
    config.chmod(0o644)  # noqa: ASYNC240
    edit = await editing.propose(EVE, [LOADS], what="One thing")
    await editing.save(EVE, edit.id)
    assert config.stat().st_mode & 0o777 == 0o600  # noqa: ASYNC240


async def test_an_edit_is_shown_saved_and_taken_back(board: Pegboard, editing: Editing, config: Path) -> None:
    """P10: the diff, the grants and the sessions are shown before; the audit trail names who saved it."""
    session = await board.session(agent="ada", session_id="s")
    await session.load("sums")
    edit = await editing.propose(
        EVE, [LOADS, ConfigurationChange(path=("toolkits", "sums"), remove=True)], what="Two things"
    )
    assert not edit.saveable
    assert [problem.code for problem in edit.problems if problem.severity == "error"] == ["unknown_toolkit"] * 2
    edit = await editing.propose(
        EVE, [ConfigurationChange(path=("agents", "ada", "allowed_toolkits"), value=["times"])]
    )
    changed = [line.text for line in edit.diff if line.kind in ("added", "removed")]
    assert changed == [
        "-    allowed_toolkits: [sums]   # when needed",
        "+    allowed_toolkits: [times]   # when needed",
    ]
    assert [(one.text, one.widens) for one in edit.grants] == [
        ("agents.ada.allowed_toolkits.sums: granted → absent", False),
        ("agents.ada.allowed_toolkits.times: absent → granted", True),
    ]
    (agent,) = edit.agents
    assert (agent.agent, agent.change, "calculate" in agent.lost) == ("ada", "changed", True)
    assert [one.session for one in agent.sessions] == ["s"]
    assert text_of(config) == CONFIG
    saved = await editing.save(EVE, edit.id)
    assert text_of(config) == CONFIG.replace("allowed_toolkits: [sums]   #", "allowed_toolkits: [times]   #")
    assert board.world.agents["ada"].allowed_toolkits == ("times",)
    records = await board.services.store.entries(limit=10)
    assert {record.by for record in records if record.kind in ("permission", "edit")} == {"eve"}
    (record,) = [record for record in records if record.kind == "edit"]
    assert record.decision == "saved"
    assert record.reason.startswith("1 wider, 1 narrower: agents.ada.allowed_toolkits.sums: granted → absent")
    await editing.save(EVE, saved.undo)
    assert text_of(config) == CONFIG
    assert board.world.agents["ada"].allowed_toolkits == ("sums",)


async def test_an_edit_of_who_may_widen_counts_at_once_under_ask(config: Path) -> None:
    """P10: what someone else edited waits on; what the operator has seen counts, in their name."""
    write(config, f"reload: ask\n{CONFIG}")
    async with Pegboard.open(config) as board:
        editing = Editing(board.services, board.editable)
        write(config, text_of(config).replace("[sums, times], loadout: careful", "[sums, times]"))
        await board.reload()
        waited = board.waiting
        assert waited
        edit = await editing.propose(EVE, [LOADS])
        assert {one.text for one in edit.grants if not one.waits} == {
            "agents.ada.allowed_toolkits.times: absent → granted"
        }
        await editing.save(EVE, edit.id)
        assert board.waiting == waited
        assert board.world.agents["ada"].allowed_toolkits == ("sums", "times")
        newest = (await board.services.store.entries(kind="permission"))[0]
        assert (newest.subject, newest.by) == ("agents.ada.allowed_toolkits.times", "eve")


async def test_of_two_operators_one_wins_and_the_other_is_told(editing: Editing, config: Path) -> None:
    first = await editing.propose(EVE, [LOADS])
    second = await editing.propose(EVE, [ConfigurationChange(path=("agents", "ada", "role"), value="adds")])
    saved = await editing.save(EVE, first.id)
    with pytest.raises(UsageError) as told:
        await editing.save(EVE, second.id)
    assert told.value.code == "file_changed"
    again = await editing.again(EVE, second.id)
    await editing.save(EVE, again.id)
    assert "times]   # when" in text_of(config)
    assert "role: adds" in text_of(config)
    with pytest.raises(UsageError):
        await editing.save(EVE, saved.undo)
    assert "role: adds" in text_of(config)


async def test_the_whole_file_has_marks_for_its_secrets(editing: Editing, config: Path) -> None:
    """X5: what was not touched keeps its secrets; a mark that means nothing is refused."""
    whole = await editing.whole()
    for secret in ("v3ry-secret-token", "eve-eve"):
        assert secret not in whole.text
    edit = await editing.propose_text(EVE, whole.text.replace("# ours", "# mine"), expected=whole.digest)
    assert "v3ry-secret" not in str(edit)
    await editing.save(EVE, edit.id)
    assert text_of(config) == CONFIG.replace("# ours", "# mine")
    with pytest.raises(UsageError) as refused:
        await editing.propose_text(EVE, f"{whole.text}\n# ***~0123456789", expected=(await editing.whole()).digest)
    assert refused.value.code == "unknown_mark"
    with pytest.raises(UsageError) as refused:
        await editing.propose_text(EVE, whole.text, expected=whole.digest)
    assert refused.value.code == "file_changed"


async def test_line_breaks_stay_as_they_are_whatever_a_browser_sends(config: Path) -> None:
    config.write_bytes(CONFIG.replace("\n", "\r\n").encode())  # noqa: ASYNC240
    async with Pegboard.open(config) as board:
        editing = Editing(board.services, board.editable)
        whole = await editing.whole()
        for newline in ("\n", "\r\n"):
            typed = re.sub("\r?\n", newline, whole.text)
            assert not (await editing.propose_text(EVE, typed, expected=whole.digest)).diff
        edit = await editing.propose(EVE, [LOADS])
        await editing.save(EVE, edit.id)
    assert config.read_bytes().count(b"\n") == config.read_bytes().count(b"\r\n") == CONFIG.count("\n")  # noqa: ASYNC240


async def test_what_is_no_secret_is_shown_as_it_is(config: Path) -> None:
    """X5: a word that is the value of a variable somewhere is no mark everywhere."""
    model = "models: {default: {provider: anthropic, id: claude-haiku-4-5-20251001}}\n"
    odd = '  odd: {command: x, env: {MODE: pegboard, HOME: /home/ada, URL: "http://x/a", KEY_ID: a1b2c3d4}}\n'
    text = CONFIG.replace("servers:\n", f"servers:\n{odd}") + model + "# the token budget of pegboard\n"
    write(config, text)
    async with Pegboard.open(config) as board:
        whole = (await Editing(board.services, board.editable).whole()).text
    masked = re.sub(r"\*\*\*~[0-9a-f]+", "MARK", whole)
    secret = {"Bearer v3ry-secret-token": "MARK", "eve-eve-eve-eve-eve": "MARK", "a1b2c3d4": "MARK"}
    for found, mark in secret.items():
        text = text.replace(found, mark)
    assert masked == text


@pytest.mark.parametrize("text", ["agents: [", "agents: {ada: {tokens: x}}\n", "{}", "store: 5", "a: *b"])
async def test_a_text_that_cannot_be_used_is_shown_with_its_places_and_not_saved(editing: Editing, text: str) -> None:
    edit = await editing.propose_text(EVE, text, expected=(await editing.whole()).digest)
    if edit.errors:
        assert not edit.saveable
        assert edit.problems[0].line
        with pytest.raises(UsageError) as refused:
            await editing.save(EVE, edit.id)
        assert refused.value.code == "edit_refused"


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        (ConfigurationChange(path=("agents", "ada", "role"), value="adds"), True),
        (ConfigurationChange(path=("agents", "bob", "role"), value="adds"), False),
        (ConfigurationChange(path=("agents", "carl"), value={}), False),
        (ConfigurationChange(path=("toolkits", "new"), value={"tools": ["clock"]}), True),
        (ConfigurationChange(path=("toolkits", "sums", "tools"), value=["clock"]), False),
        (ConfigurationChange(path=("toolkits", "times", "policy"), value="x"), False),
        (ConfigurationChange(path=("loadouts", "careful", "disabled"), value=[]), False),
        (ConfigurationChange(path=("loadouts", "minimal"), value={"plugins": ["clock"]}), False),
        (ConfigurationChange(path=("servers", "new"), value={"command": "x"}), False),
        (ConfigurationChange(path=("plugins", "calculator", "approve"), value={"*": "always"}), False),
        (ConfigurationChange(path=("plugins", "clock", "approve"), value={"*": "always"}), True),
        (ConfigurationChange(path=("tokens", "ada"), value={"token": "a-new-token-of-ada"}), False),
        (ConfigurationChange(path=("reload",), value="ask"), False),
        (ConfigurationChange(path=("agents",), remove=True), False),
    ],
)
async def test_who_sees_some_agents_edits_what_is_theirs_alone(
    editing: Editing, change: ConfigurationChange, allowed: bool
) -> None:
    """A5: a toolkit, a loadout or a rule that another agent has too is not theirs."""
    if allowed:
        assert (await editing.propose(ADA, [change])).saveable
        return
    with pytest.raises(UsageError) as refused:
        await editing.propose(ADA, [change])
    assert refused.value.code == "every_agent_required"


async def test_an_edit_is_only_of_who_proposed_it(editing: Editing) -> None:
    edit = await editing.propose(ADA, [ConfigurationChange(path=("agents", "ada", "role"), value="adds")])
    others = {EVE: "unknown_edit", Editor(name="ada", agents=frozenset({"bob"})): "every_agent_required"}
    for other, code in others.items():
        with pytest.raises(UsageError) as refused:
            await editing.save(other, edit.id)
        assert refused.value.code == code
    assert all("bob" not in line.text for line in edit.diff)
    await editing.save(ADA, edit.id)


@pytest.mark.parametrize("name", ["one_line.yaml", "lines.yaml"])
async def test_the_difference_has_nothing_of_others_that_stands_in_the_same_lines(tmp_path: Path, name: str) -> None:
    """A5: two operators; the line of an edit may hold what the other alone may see, and words beside it too."""
    own = "{tools: [clock], role: adds}"
    agents = f"{{ada: {own}, bob: {{role: plans of bob}}}}" if name == "one_line.yaml" else f"\n  ada: {own} # of bob"
    path = tmp_path / name
    write(path, f"store: 'memory:'\nplugins: {{clock: {{python: pegboard.quickstart.clock}}}}\nagents: {agents}\n")
    async with Pegboard.open(path) as board:
        editing = Editing(board.services, board.editable)
        change = ConfigurationChange(path=("agents", "ada", "role"), value="it's 9")
        edit = await editing.propose(
            ADA, [change, ConfigurationChange(path=("toolkits", "new"), value={"tools": ["clock"]})]
        )
        assert [(line.kind, line.text) for line in edit.diff] == [
            ("same", " agents:"),
            ("same", "   ada:"),
            ("removed", "-    role: adds"),
            ("added", "+    role: it's 9"),
            ("added", "+toolkits:"),
            ("added", "+  new:"),
            ("added", "+    tools: [clock]"),
        ]
        assert "bob" in "".join(line.text for line in (await editing.propose(EVE, [change])).diff)
        await editing.save(ADA, edit.id)
        assert "bob" in text_of(path)


async def test_an_entry_that_is_emptied_is_not_shown_as_gone(editing: Editing) -> None:
    edit = await editing.propose(ADA, [ConfigurationChange(path=("agents", "ada"))])
    assert [line.text for line in edit.diff if line.kind == "added"] == ["+  ada: null"]
    edit = await editing.propose(ADA, [ConfigurationChange(path=("agents", "ada"), remove=True)])
    assert [line.text for line in edit.diff if line.kind == "added"] == []


async def test_a_secret_in_what_they_edit_is_a_mark_however_it_is_written(config: Path) -> None:
    """X5: it is masked before it is written into a line, where its quotes are doubled."""
    kit = """{tools: [{calculator: {api_key: "it's: a \\"key\\" of sums"}}]}"""
    write(config, text_of(config).replace("{tools: [calculator]}", kit).replace("allowed_toolkits: [sums, times]", ""))
    write(config, text_of(config).replace("{, loadout: careful}", "{loadout: careful}"))
    async with Pegboard.open(config) as board:
        editing = Editing(board.services, board.editable)
        entry = await editing.entry(ADA, "toolkits", "sums")
        edit = await editing.propose(
            ADA, [ConfigurationChange(path=entry.path, value={**entry.value, "description": "Sums"})]
        )
        (line,) = [line.text for line in edit.diff if "api_key" in line.text]
        assert "***~" in line
        assert "key\\" not in line
        assert "of sums" not in line


async def test_a_mark_moves_no_secret_to_who_sees_some_agents(editing: Editing) -> None:
    """X5: the token of another operator cannot be written into one's own agent."""
    (mark,) = re.findall(r"eve: {token: (\S+),", (await editing.whole()).text)
    with pytest.raises(UsageError) as refused:
        await editing.propose(ADA, [ConfigurationChange(path=("agents", "ada", "role"), value=mark)])
    assert refused.value.code == "unknown_mark"


READS_A_VARIABLE = [
    "say ${CARL_TOKEN} now",
    "${env:CARL_TOKEN}",
    "${CARL_TOKEN:-none}",
    "${TEAM:-${CARL_TOKEN}}",
    "of ${TEAM} and ${CARL_TOKEN}",
    "${keyring:carl}",
    "${cmd:cat ~/.ssh/id}",
]


@pytest.mark.parametrize("path", [("agents", "ada", "role"), ("toolkits", "new", "description"), ("agents", "ada")])
async def test_no_variable_is_read_by_who_sees_some_agents(variables: Path, path: tuple[str, ...]) -> None:
    """X5, A5: a description or a role is read; what another operator's token is in does not get there."""
    async with Pegboard.open(variables) as board:
        editing = Editing(board.services, board.editable)
        for value in READS_A_VARIABLE:
            given = {"role": value} if path[-1] == "ada" else value
            with pytest.raises(UsageError) as refused:
                await editing.propose(ADA, [ConfigurationChange(path=path, value=given)])
            assert refused.value.code == "every_agent_required", value


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        (ConfigurationChange(path=("agents", "ada", "role"), value="adds for the ${TEAM}"), True),
        (ConfigurationChange(path=("agents", "ada", "role"), value="adds"), True),
        (ConfigurationChange(path=("agents", "ada"), value={"role": "of ${TEAM}", "allowed_toolkits": ["sums"]}), True),
        (ConfigurationChange(path=("agents", "ada"), value={"role": "adds", "description": "of ${TEAM}"}), False),
        (ConfigurationChange(path=("agents", "ada", "allowed_toolkits"), value=["sums", "${TEAM}"]), False),
        (
            ConfigurationChange(path=("toolkits", "sets", "description"), value="writes $${HOME}, and $${CARL_TOKEN}"),
            True,
        ),
        (ConfigurationChange(path=("toolkits", "sets", "description"), value="writes ${CARL_TOKEN}"), False),
        (ConfigurationChange(path=("toolkits", "sets", "description"), value="writes $$${CARL_TOKEN}"), True),
        (ConfigurationChange(path=("toolkits", "sets", "description"), value="writes $${HOME}${CARL_TOKEN}"), False),
        (ConfigurationChange(path=("toolkits", "new"), value={"tools": [{"clock": {"${TEAM}": "x"}}]}), False),
        (ConfigurationChange(path=("toolkits", "of ${TEAM}"), value={"tools": ["clock"]}), False),
        (ConfigurationChange(path=("agents", "ada", "permissions", "${TEAM}"), value=False), False),
    ],
)
async def test_a_variable_stays_where_it_stands_for_who_sees_some_agents(
    variables: Path, change: ConfigurationChange, allowed: bool
) -> None:
    async with Pegboard.open(variables) as board:
        editing = Editing(board.services, board.editable)
        if allowed:
            assert (await editing.propose(ADA, [change])).saveable
            return
        with pytest.raises(UsageError) as refused:
            await editing.propose(ADA, [change])
        assert refused.value.code == "every_agent_required"
        assert (await editing.propose(EVE, [change])).id


async def test_an_edit_that_is_put_into_another_file_brings_no_variable(variables: Path) -> None:
    async with Pegboard.open(variables) as board:
        editing = Editing(board.services, board.editable)
        edit = await editing.propose(
            ADA, [ConfigurationChange(path=("agents", "ada", "role"), value="adds for the ${TEAM}")]
        )
        write(variables, text_of(variables).replace("role: of ${TEAM}", "role: adds"))
        with pytest.raises(UsageError) as refused:
            await editing.again(ADA, edit.id)
        assert refused.value.code == "every_agent_required"


@pytest.mark.parametrize("own", [True, False])
async def test_a_secret_of_their_own_toolkit_is_not_made_its_description(config: Path, own: bool) -> None:
    """X5: a mark means its secret only where that stands now, and a new name has none in it."""
    kit = '{description: Adds, tools: [{calculator: {api_key: "s3cret-key-of-sums"}}]}'
    write(config, text_of(config).replace("{tools: [calculator]}", kit).replace("allowed_toolkits: [sums, times]", ""))
    write(config, text_of(config).replace("{, loadout: careful}", "{loadout: careful}"))
    async with Pegboard.open(config) as board:
        editing = Editing(board.services, board.editable)
        entry = await editing.entry(ADA, "toolkits", "sums")
        mark = entry.value["tools"][0]["calculator"]["api_key"]
        assert mark.startswith("***~")
        kept = await editing.propose(
            ADA, [ConfigurationChange(path=entry.path, value={**entry.value, "description": "Sums"})]
        )
        assert {line.text for line in kept.diff if "***~" in line.text}
        if own:
            change = ConfigurationChange(path=entry.path, value={**entry.value, "description": mark})
        else:
            change = ConfigurationChange(path=("toolkits", "s3cret-key-of-sums"), value={"tools": ["clock"]})
        with pytest.raises(UsageError) as refused:
            await editing.propose(ADA, [change])
        assert refused.value.code == "unknown_mark"


@pytest.fixture
async def waited(config: Path) -> AsyncIterator[Pegboard]:
    """Give a board on which someone's new token and another agent's toolkit wait for a person."""
    write(config, f"reload: ask\n{CONFIG}")
    async with Pegboard.open(config) as board:
        text = text_of(config).replace("tokens:\n", "tokens:\n  carl: {token: carl-carl-carl-carl, agents: [bob]}\n")
        write(config, text.replace("[sums, times], loadout: careful", "[sums, times], tools: [clock]"))
        await board.reload()
        assert {change.key[0] for change in board.waiting} == {"agents", "tokens"}
        yield board


async def test_what_others_have_waiting_is_neither_shown_nor_credited_to_who_sees_some_agents(waited: Pegboard) -> None:
    """A5, P10: they edit what is theirs meanwhile; who sees every agent is shown what waits as such."""
    board, editing = waited, Editing(waited.services, waited.editable)
    waiting = board.waiting
    edit = await editing.propose(ADA, [LOADS])
    assert [one.text for one in edit.grants] == ["agents.ada.allowed_toolkits.times: absent → granted"]
    assert not {"bob", "carl"} & set(re.findall(r"\w+", str(edit)))
    await editing.save(ADA, edit.id)
    assert board.waiting == waiting
    edit = await editing.propose(EVE, [ConfigurationChange(path=("agents", "ada", "role"), value="adds")])
    assert {one.text for one in edit.grants} == {str(change) for change in waiting}
    assert all(one.waits for one in edit.grants)
    await editing.save(EVE, edit.id)
    assert board.waiting == waiting
    records = [one for one in await board.services.store.entries(limit=20) if one.kind == "edit"]
    assert [(one.by, one.reason) for one in records] == [
        ("eve", "no grant changes"),
        ("ada", "1 wider, 0 narrower: agents.ada.allowed_toolkits.times: absent → granted"),
    ]


async def test_what_others_have_just_written_is_theirs_before_it_is_read(board: Pegboard, config: Path) -> None:
    """A5, P10: `ada` edits in the second in which someone else has saved the file in an editor."""
    editing = Editing(board.services, board.editable)
    hand = text_of(config).replace("[sums, times], loadout: careful", "[sums, times], tools: [clock]")
    write(config, hand.replace("discoverable: [clock]", "discoverable: [clock]\n    tools: [clock]"))
    edit = await editing.propose(ADA, [LOADS])
    assert [one.text for one in edit.grants] == ["agents.ada.allowed_toolkits.times: absent → granted"]
    assert "bob" not in str(edit)
    waits = {one.text: one.waits for one in (await editing.propose(EVE, [LOADS])).grants}
    assert [text for text, waiting in waits.items() if not waiting] == [edit.grants[0].text]
    assert len(waits) == 4
    await editing.save(ADA, edit.id)
    records = await board.services.store.entries(limit=20)
    assert {one.subject for one in records if one.by == "ada"} == {
        "agents.ada.allowed_toolkits.times",
        *(one.subject for one in records if one.kind == "edit"),
    }


async def test_a_slip_is_answered_with_no_name_of_others(editing: Editing) -> None:
    """A5: `times` is what `bob` has."""
    slip = ConfigurationChange(path=LOADS.path, value=["tines"])
    for editor, hint in ((ADA, ""), (EVE, "Did you mean 'times'?")):
        (problem,) = (await editing.propose(editor, [slip])).problems
        assert (problem.code, problem.hint) == ("unknown_toolkit", hint)
    tool = ConfigurationChange(path=("agents", "ada", "tools"), value=["calculatr"])
    for editor, message in (
        (ADA, "'calculatr' is not known yet."),
        (EVE, "'calculatr' is not known yet; it may be a tool of 'calculator', 'clock'."),
    ):
        (problem,) = (await editing.propose(editor, [tool])).problems
        assert (problem.code, problem.message) == ("unresolved_tool", message)


async def test_who_changes_what_waits_is_credited_with_that(waited: Pegboard, config: Path) -> None:
    """P10: what waits and what is taken back by the edit is not supposed to be in force."""
    board, editing = waited, Editing(waited.services, waited.editable)
    edit = await editing.propose(EVE, [ConfigurationChange(path=("tokens", "carl"), remove=True)])
    assert all(one.waits and "carl" not in one.text for one in edit.grants)
    assert edit.agents == ()
    await editing.save(EVE, edit.id)
    assert {change.key[0] for change in board.waiting} == {"agents"}
    assert "carl" not in text_of(config)


async def test_the_record_of_an_undo_says_what_it_did(board: Pegboard, editing: Editing) -> None:
    saved = await editing.save(ADA, (await editing.propose(ADA, [LOADS])).id)
    undone = await editing.save(ADA, saved.undo)
    await editing.save(ADA, undone.undo)
    records = [one for one in await board.services.store.entries(limit=20) if one.kind == "edit"]
    wider = "1 wider, 0 narrower: agents.ada.allowed_toolkits.times: absent → granted"
    assert [(one.decision, one.reason) for one in reversed(records)] == [
        ("saved", wider),
        ("undone", "0 wider, 1 narrower: agents.ada.allowed_toolkits.times: granted → absent"),
        ("saved", wider),
    ]


async def test_a_configuration_without_a_file_is_not_edited() -> None:
    async with Pegboard.open({"agents": {"a": {}}}) as board:
        with pytest.raises(ConfigError) as refused:
            await Editing(board.services, board.editable).whole()
    assert refused.value.code == "not_editable"
