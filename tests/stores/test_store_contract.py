"""What every store promises, asked of each of them."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kinds import KINDS, make

from pegboard.core.access.pins import SERVER_PIN, Pin, PinName, ServerPins
from pegboard.core.access.settings.own_settings import OwnSetting
from pegboard.core.access.switches import Pauses
from pegboard.core.model.tools import Confirmation, Frozen, Manifest, Tool
from pegboard.ports import (
    USE_LIFETIME,
    USES_KEPT,
    AuditFilter,
    AuditRecord,
    PinChange,
    SessionKey,
    StateChange,
    Store,
    StoredState,
    SwitchAction,
    SwitchChange,
    UseRecord,
)

STRANGE = [
    "",
    "a" * 10_000,
    "🧰 – ключ – 鍵",
    "two\nlines\r\n\ttab",
    "lone \ud800 surrogate \udfff",
    "NUL\0inside",
    "' OR 1 = 1; --",
    "%_*",
    "trailing ",
    "é",
    "e\u0301",
]
KEY = SessionKey(principal="ada", agent="assistant", session="thread-42")
ENTRY = AuditRecord(
    at=datetime.now(UTC),
    kind="load",
    principal="ada",
    agent="assistant",
    session="thread-42",
    turn=7,
    subject="toolkit:research",
    decision="loaded",
)
USE = UseRecord(at=1_000_000.0, principal="ada", agent="assistant", need="what changed last", tool="git/log")
FULL_TOOL = Tool(
    plugin="git",
    name="log",
    wire="git__log",
    description="Show commits – «all» of them.\n\ud800",
    input_schema={"type": "object", "properties": {"z": {"type": "integer"}, "a": {"enum": [1, 1.5, None, True]}}},
    output_schema={"type": "object"},
    annotations={"readOnlyHint": True},
    extra={"title": "Log", "_meta": {"x/y": [1, {"deep": []}]}},
    requires=("git/status",),
    needs=("GIT_TOKEN", "HOME"),
    when=("rules:open_now", "is_available log"),
    default_on=False,
    policy="Use {tools} sparingly.",
    unavailable="Set GIT_TOKEN.",
    confirmation=Confirmation(
        kind="user_input", fields=("since",), schema={"properties": {"since": {"type": "string"}}}
    ),
)
FULL_MANIFEST = Manifest(
    tools=(FULL_TOOL, Tool(plugin="git", name="plain")),
    parameters={"repository": "string", "depth": "integer"},
    secrets=frozenset({"token", "password"}),
    description="Git",
    instructions="Commit often.",
    offers=frozenset({"resources", "completions"}),
    lists=Frozen({"prompts": (Frozen({"name": "log", "arguments": [{"name": "since"}], "x": None}),), "resources": ()}),
)


@pytest.fixture(params=[*KINDS, "grace"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store = make(request, request.param, tmp_path)
    await store.open()
    yield store
    await store.aclose()


async def saved(store: Store, key: SessionKey, text: str, *, expected: int = 0) -> int:
    version = await store.save(key, text, expected=expected)
    assert version
    return version


def text_of(state: StoredState | None) -> str | None:
    return None if state is None else state.text


async def test_a_session_never_saved_has_no_state(store: Store) -> None:
    """S4: the default state is not stored."""
    assert await store.load(KEY) is None
    assert await store.sessions() == []


async def test_what_was_saved_is_loaded_with_its_version_and_time(store: Store) -> None:
    """S1: state is kept per key."""
    before = time.time()
    version = await saved(store, KEY, '{"turn": 1}')
    state = await store.load(KEY)
    assert state is not None
    assert (state.text, state.version) == ('{"turn": 1}', version)
    assert before <= state.updated_at <= time.time()


async def test_states_that_are_saved_together_are_all_stored_or_none(store: Store) -> None:
    """S1, S2: a change that counts for two agents is one; who was overtaken in either stores nothing of both."""
    other = replace(KEY, agent="reviewer")
    mine, theirs = StateChange(key=KEY, text="a", expected=0), StateChange(key=other, text="b", expected=0)
    versions = await store.save_together([mine, theirs], audit=[ENTRY])
    assert versions is not None
    states = [await store.load(KEY), await store.load(other)]
    assert [(state.text, state.version) for state in states if state] == [("a", versions[0]), ("b", versions[1])]
    before = (await store.change_token()).states
    later = [replace(mine, text="c", expected=versions[0]), replace(theirs, text="d", expected=0)]
    for changes in (later, [*reversed(later)]):
        assert await store.save_together(changes, audit=[ENTRY]) is None
    assert [await store.load(KEY), await store.load(other)] == states
    assert len(await store.entries()) == 1
    gone = [replace(mine, text=None, expected=versions[0]), replace(theirs, text="d", expected=versions[1])]
    after = await store.save_together(gone)
    assert after is not None
    assert (after[0], after[1] > versions[1]) == (0, True)
    assert [await store.load(KEY), text_of(await store.load(other))] == [None, "d"]
    assert (await store.change_token()).states != before


async def test_two_keys_that_differ_in_one_part_never_share_a_state(store: Store) -> None:
    """S1: two agents in one session, two principals, two sessions; ("ab", "c") is not ("a", "bc")."""
    others = [replace(KEY, **{part: "another"}) for part in ("principal", "agent", "session")]
    shifted = [SessionKey(principal="ab", agent="c", session=""), SessionKey(principal="a", agent="bc", session="")]
    keys = [KEY, *others, *shifted]
    for number, key in enumerate(keys):
        await saved(store, key, str(number))
    assert [text_of(await store.load(key)) for key in keys] == [str(number) for number in range(len(keys))]


async def test_a_writer_that_expects_an_older_version_is_refused_and_changes_nothing(store: Store) -> None:
    """S2: writers compare and swap."""
    first = await saved(store, KEY, "one")
    second = await saved(store, KEY, "two", expected=first)
    assert await store.save(KEY, "late", expected=first) is None
    assert await store.save(KEY, None, expected=first) is None
    assert await store.save(KEY, "as if new", expected=0) is None
    state = await store.load(KEY)
    assert state is not None
    assert (state.text, state.version) == ("two", second)


async def test_a_writer_that_expects_a_state_where_none_is_is_refused(store: Store) -> None:
    """S2: a version that is not stored never matches."""
    assert await store.save(KEY, "text", expected=1) is None
    assert await store.load(KEY) is None


async def test_a_removed_state_is_gone_and_its_version_is_never_used_again(store: Store) -> None:
    """S2: a writer that slept through removal and new creation is refused."""
    seen: set[int] = set()
    expected = 0
    for number in range(5):
        expected = await saved(store, KEY, str(number))
        assert expected not in seen
        assert expected > max(seen, default=0)
        seen.add(expected)
        assert await store.save(KEY, None, expected=expected) == 0
        assert await store.load(KEY) is None
    await saved(store, KEY, "new")
    for old in seen:
        assert await store.save(KEY, "late", expected=old) is None


async def test_removing_what_is_not_there_succeeds(store: Store) -> None:
    """S4: a state that became the default again need not be stored."""
    assert await store.save(KEY, None, expected=0) == 0


async def test_two_concurrent_loads_both_survive_when_the_loser_tries_again(store: Store) -> None:
    """S2: no update is lost among many tasks."""

    async def add(name: str) -> None:
        while True:
            state = await store.load(KEY)
            names = [*state.text.split(), name] if state else [name]
            await asyncio.sleep(0)
            if await store.save(KEY, " ".join(names), expected=state.version if state else 0) is not None:
                return

    await asyncio.gather(*(add(f"tool{number}") for number in range(20)))
    state = await store.load(KEY)
    assert state is not None
    assert sorted(state.text.split()) == sorted(f"tool{number}" for number in range(20))


async def test_any_text_can_be_a_name_and_a_value(store: Store) -> None:
    """S1, A4: 10,000 characters, emoji, newlines, lone surrogates and NUL; texts that look alike are different."""
    for text in STRANGE:
        keys = [replace(KEY, **{part: text}) for part in ("principal", "agent", "session")]
        for key in keys:
            await saved(store, key, text)
        for key in keys:
            assert text_of(await store.load(key)) == text
        assert [key for key, _ in await store.sessions(principal=text)] == [keys[0]]
        assert [key for key, _ in await store.sessions(agent=text)] == [keys[1]]
        await store.set_switch(text, text, False)
        await store.record(ENTRY._replace(session=text, subject=text))
        assert [entry.subject for entry in await store.entries(session=text)] == [text]
        await store.keep_manifest(text, text, FULL_MANIFEST)
        assert await store.manifest(text, text) == FULL_MANIFEST
        await pinned(store, text, pin(text, by=text))
        tool = PinName("tool", text)
        assert (await store.pins())[text].pins == {tool: Pin(tool, "d", by=text)}
        assert await store.pinned_definitions(text, [tool]) == {tool: "{}"}
        use = UseRecord(1.5, text, text, text, text)
        store.remember_later(USE, use)
        assert list(await store.uses(text, text)) == [use]
        await store.record()
        assert list(await store.uses(text, text)) == [use]
        assert await store.forget_uses(principal=text) == 1
        secret = text.encode("utf-8", "replace").decode()
        await store.seal("grant", text, secret, expected=None)
        sealed = await store.sealed("grant", text)
        assert sealed is not None
        assert (sealed.key, sealed.text) == (text, secret)
    assert len(await store.sessions()) == 3 * len(STRANGE)
    assert (await store.stored_permissions()).switches == {text: {text: False} for text in STRANGE}


async def test_sessions_are_listed_newest_change_first(store: Store) -> None:
    """S1: a list of what is stored, by principal and by agent."""
    a, b, c = (replace(KEY, session=name) for name in "abc")
    other = SessionKey(principal="bob", agent="coder", session="a")
    version = await saved(store, a, "1")
    await saved(store, b, "1")
    await saved(store, c, "1")
    await saved(store, other, "1")
    await saved(store, a, "2", expected=version)
    assert [key for key, _ in await store.sessions()] == [a, other, c, b]
    assert [key for key, _ in await store.sessions(principal="ada")] == [a, c, b]
    assert [key for key, _ in await store.sessions(agent="coder")] == [other]
    assert await store.sessions(principal="bob", agent="assistant") == []
    assert [state.text for _, state in await store.sessions(principal="ada")] == ["2", "1", "1"]


async def test_a_switch_is_kept_until_it_is_unset(store: Store) -> None:
    """P2: booleans set at run time are stored; unset removes them."""
    assert (await store.stored_permissions()).switches.get("assistant", {}) == {}
    await store.set_switch("assistant", "research", False)
    await store.set_switch("assistant", "arxiv", True)
    await store.set_switch("coder", "research", True)
    await store.set_switch("assistant", "research", True)
    assert (await store.stored_permissions()).switches.get("assistant", {}) == {"research": True, "arxiv": True}
    assert (await store.stored_permissions()).switches == {
        "assistant": {"research": True, "arxiv": True},
        "coder": {"research": True},
    }
    await store.set_switch("coder", "research", None)
    await store.set_switch("coder", "never set", None)
    assert (await store.stored_permissions()).switches.get("coder", {}) == {}
    assert (await store.stored_permissions()).switches == {"assistant": {"research": True, "arxiv": True}}
    assert all(
        type(value) is bool for value in ((await store.stored_permissions()).switches.get("assistant", {})).values()
    )


async def test_a_switch_is_set_only_while_it_is_as_expected(store: Store) -> None:
    """P2, X4: of two who read the same, one is first; for the other nothing is stored, not even a record."""
    assert await store.set_switch("assistant", "research", False, expected=None)
    assert not await store.set_switch("assistant", "research", True, expected=None, audit=[ENTRY])
    assert not await store.set_switch("assistant", "research", None, expected=True, replaces=["other"], audit=[ENTRY])
    assert ((await store.stored_permissions()).switches, await store.entries()) == (
        {"assistant": {"research": False}},
        [],
    )
    assert await store.set_switch("assistant", "research", True, expected=False)
    assert await store.set_switch("assistant", "research", None, expected=True)
    assert (await store.stored_permissions()).switches == {}


async def test_a_switch_takes_the_place_of_others_in_one_step(store: Store) -> None:
    """P2: what it replaces goes with it, of the same agent alone."""
    for agent, name in (("assistant", "own"), ("assistant", "kept"), ("coder", "own")):
        await store.set_switch(agent, name, True)
    assert await store.set_switch("assistant", "research", False, replaces=["own", "never set"])
    assert (await store.stored_permissions()).switches == {
        "assistant": {"kept": True, "research": False},
        "coder": {"own": True},
    }


async def test_a_switch_is_stored_with_what_is_recorded_of_it(store: Store) -> None:
    """P2, X4: one step; a switch without its record, or a record without its switch, there is not."""
    await store.set_switch("assistant", "research", True, audit=[ENTRY])
    assert (await store.stored_permissions()).switches == {"assistant": {"research": True}}
    assert await store.entries() == [ENTRY]


async def test_the_token_of_permissions_differs_after_every_change_of_a_switch_and_with_nothing_else(
    store: Store,
) -> None:
    """P4: a revoked permission binds the next call, so every call can see that something changed."""
    last = (await store.change_token()).permissions
    for value in (True, False, None):
        await store.set_switch("assistant", "research", value)
        revision = (await store.change_token()).permissions
        assert revision != last
        last = revision
    await saved(store, KEY, "text")
    await store.record(ENTRY)
    await store.keep_manifest("git", "1", FULL_MANIFEST)
    assert (await store.change_token()).permissions == last


async def test_the_change_token_differs_after_every_change_of_a_state_or_a_switch(store: Store) -> None:
    """P4, S2: what was read before counts only as long as the token is the same."""
    seen = [await store.change_token()]
    assert await store.change_token() == seen[0]
    version = await saved(store, KEY, "one")
    seen.append(await store.change_token())
    version = await store.save(KEY, "two", expected=version)
    seen.append(await store.change_token())
    assert version is not None
    await store.save(KEY, None, expected=version)
    seen.append(await store.change_token())
    await store.set_switch("assistant", "research", True)
    seen.append(await store.change_token())
    assert len(set(seen)) == len(seen)


async def test_the_change_token_is_known_without_waiting_as_of_a_moment_before_it_was_read(store: Store) -> None:
    """P4: a call that came before does not read it again, and is bound by what this process has changed since."""
    came = time.monotonic()
    before = await store.change_token(came)
    assert store.known_token(came) == before
    await store.set_switch("assistant", "research", True)
    assert store.known_token(came) != before
    assert store.known_token(came) in (None, await store.change_token(came))
    assert store.known_token(came) == await store.change_token(came) != before


async def test_a_manifest_comes_back_with_every_field_of_every_tool(store: Store) -> None:
    """G8: the first list comes from stored manifests."""
    default, full = Tool(plugin="", name=""), FULL_TOOL
    unset = [f.name for f in fields(Tool) if getattr(full, f.name) == getattr(default, f.name)]
    assert unset == []
    await store.keep_manifest("git", "abc", FULL_MANIFEST)
    assert await store.manifest("git", "abc") == FULL_MANIFEST
    await store.keep_manifest("empty", "", Manifest())
    assert await store.manifest("empty", "") == Manifest()


async def test_a_manifest_comes_back_with_the_digests_that_were_kept_with_it(store: Store) -> None:
    """A4, G8: whatever its tools and their arguments are called."""
    tools = tuple(
        Tool(plugin="git", name=name, input_schema=Frozen({"properties": {name: {}}})) for name in ("digests", '"')
    )
    for digests in (("1:ab", '1:","digests":'), ()):
        await store.keep_manifest("git", "abc", Manifest(tools=tools, digests=digests))
        found = await store.manifest("git", "abc")
        assert found == Manifest(tools=tools)
        assert found is not None
        assert found.digests == digests


async def test_key_order_in_a_schema_is_kept(store: Store) -> None:
    """F1: what goes to the model is byte-stable across restarts."""
    await store.keep_manifest("git", "abc", FULL_MANIFEST)
    manifest = await store.manifest("git", "abc")
    assert manifest is not None
    assert list(manifest.tools[0].input_schema["properties"]) == ["z", "a"]


async def test_a_manifest_is_found_only_under_its_fingerprint_and_a_newer_one_replaces_it(store: Store) -> None:
    """G8: a changed specification asks the server again."""
    await store.keep_manifest("git", "old", FULL_MANIFEST)
    assert await store.manifest("git", "new") is None
    assert await store.manifest("other", "old") is None
    await store.keep_manifest("git", "old", Manifest(description="newer"))
    assert await store.manifest("git", "old") == Manifest(description="newer")


async def test_what_a_scope_lists_is_found_only_under_that_scope(store: Store) -> None:
    """G8, G9: beside what is everyone's, which it does not replace."""
    await store.keep_manifest("git", "abc", FULL_MANIFEST)
    for text in filter(None, STRANGE):
        await store.keep_manifest("git", "abc", Manifest(lists=FULL_MANIFEST.lists, description=text), text)
    assert await store.manifest("git", "abc") == FULL_MANIFEST
    assert await store.newest_manifest("git", "a") == FULL_MANIFEST
    assert await store.manifest("git", "abc", "user:bob") is None
    for text in filter(None, STRANGE):
        assert await store.manifest("git", "abc", text) == Manifest(lists=FULL_MANIFEST.lists, description=text)


async def test_an_audit_entry_comes_back_with_every_field(store: Store) -> None:
    """X4: principal, agent, session, turn, subject, decision, reason, duration, outcome and digest; times in UTC."""
    east = timezone(timedelta(hours=5, minutes=30))
    full = ENTRY._replace(
        at=ENTRY.at.astimezone(east), reason="granted", duration=12.5, outcome="ok", arguments="sha256:00ff"
    )
    await store.record(full)
    await store.record(ENTRY)
    assert await store.entries() == [ENTRY, full]
    assert (await store.entries())[1].at.isoformat() == ENTRY.at.isoformat()


async def test_entries_are_filtered_and_limited_newest_first(store: Store) -> None:
    """X4: the trail answers who, which agent, which session and what kind."""
    one = ENTRY._replace(subject="one")
    two = ENTRY._replace(subject="two", kind="deny", principal="bob")
    three = ENTRY._replace(subject="three", kind="deny", agent="coder", session="s2")
    for entry in (one, two, three):
        await store.record(entry)
    assert await store.entries() == [three, two, one]
    assert await store.entries(limit=2) == [three, two]
    assert await store.entries(limit=0) == []
    assert await store.entries(kind="deny") == [three, two]
    assert await store.entries(kind="deny", principal="bob") == [two]
    assert await store.entries(agent="assistant", limit=1) == [two]
    assert await store.entries(session="s2") == [three]
    assert await store.entries(session="s2", kind="load") == []


async def test_the_trail_has_what_is_recorded_with_a_change(store: Store) -> None:
    """X4: records of a state or a switch are read like those that came alone."""
    await store.set_switch("assistant", "research", True, audit=[ENTRY._replace(subject="switch")])
    await store.save(KEY, "text", expected=0, audit=[ENTRY._replace(subject="state")])
    await store.record(ENTRY._replace(subject="alone"))
    part = await store.part(AuditFilter(), after=0)
    assert [record.subject for _, record in part.records] == ["switch", "state", "alone"]


async def test_calls_recorded_for_later_stand_in_order_with_decisions_recorded_at_once(store: Store) -> None:
    """S2, X4: batching does not reorder the trail."""
    entries = [ENTRY._replace(subject=str(number)) for number in range(6)]
    store.record_later(entries[0])
    store.record_later(entries[1])
    await store.record(entries[2])
    store.record_later(entries[3])
    await saved(store, KEY, "text")
    store.record_later(entries[4])
    await store.record(entries[5])
    assert await store.entries() == entries[::-1]


async def test_the_digest_key_is_made_once(store: Store) -> None:
    """X4: arguments are digested under a key of the store."""
    key = await store.digest_key()
    assert len(key) == 32
    assert len(set(key)) > 8
    assert await store.digest_key() == key


async def test_opening_and_closing_twice_does_no_harm(store: Store) -> None:
    await store.open()
    await saved(store, KEY, "text")
    await store.aclose()
    await store.aclose()


TEXTS = st.text(st.characters(exclude_categories=[]), max_size=8)
COMMANDS = st.lists(
    st.tuples(st.sampled_from("abc"), st.none() | TEXTS, st.sampled_from(["current", "stale", "none"])), max_size=30
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(commands=COMMANDS)
def test_any_sequence_of_saves_leaves_what_the_accepted_ones_wrote(
    kind: str,
    commands: list[tuple[str, str | None, str]],
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> None:
    """S2: a save is accepted if and only if it expects what is stored."""

    async def run() -> None:
        store = make(request, kind, tmp_path_factory.mktemp("store"))
        await store.open()
        texts: dict[SessionKey, str] = {}
        versions: dict[SessionKey, list[int]] = {}
        for session, text, which in commands:
            key = replace(KEY, session=session)
            history = versions.setdefault(key, [0])
            expected = {"current": history[-1], "stale": history[0] + 1, "none": 0}[which]
            answer = await store.save(key, text, expected=expected)
            if expected != history[-1]:
                assert answer is None
                continue
            assert answer is not None
            history.append(answer)
            if text is None:
                texts.pop(key, None)
                assert answer == 0
            else:
                texts[key] = text
        assert {key: state.text for key, state in await store.sessions()} == texts
        await store.aclose()

    asyncio.run(run())


LOG, WIPE, NEW = (PinName("tool", name) for name in ("log", "wipe", "new"))


def pin(tool: str, text: str | None = "{}", **more: Any) -> PinChange:
    """Return the change that pins a tool, with the definition that counts."""
    return PinChange(Pin(PinName("tool", tool), digest="d")._replace(**more), text)


async def pinned(store: Store, plugin: str, *changes: PinChange, **more: Any) -> int:
    """Store pins over those that are there; return the revision."""
    known = (await store.pins()).get(plugin)
    at = known.revision if known is not None else None
    given: dict[str, Any] = {"expected": at, "version": 1, **more}
    revision = await store.change_pins(plugin, changes, **given)
    assert revision is not None
    return revision


async def test_pins_are_stored_by_whoever_read_the_newest_ones(store: Store) -> None:
    """A4: of two that saw a server first, one pins it; a change of one server leaves every other one alone."""
    assert await store.pins() == {}
    first = await pinned(store, "git", pin("log", '{"a":1}', read_only=True), pin("wipe"))
    assert await store.change_pins("git", [pin("log", "{}")], expected=None, version=1, audit=[ENTRY]) is None
    assert not await store.entries()
    await pinned(store, "mute")
    found = await store.pins()
    assert found["mute"].pins == {}
    assert found["git"] == ServerPins({LOG: pin("log", read_only=True).pin, WIPE: pin("wipe").pin}, 1, first)
    assert await store.pinned_definitions("git", [LOG, WIPE, NEW]) == {LOG: '{"a":1}', WIPE: "{}"}
    assert await store.pinned_definitions("mute", [LOG]) == {}


async def test_a_pin_keeps_its_definition_while_only_what_waits_changes(store: Store) -> None:
    """A4, X4: with its record, in one step; every change has a number of its own."""
    await pinned(store, "git", pin("log", '{"a":1}'), pin("wipe"))
    before = await store.pins_revision(), (await store.change_token()).permissions
    await pinned(store, "git", pin("log", None, waiting="e"), pin("new", None, digest="", waiting="f"), audit=[ENTRY])
    assert before[0] != await store.pins_revision()
    assert before[1] != (await store.change_token()).permissions
    assert [entry.subject for entry in await store.entries()] == [ENTRY.subject]
    assert (await store.pins())["git"].pins[LOG] == Pin(LOG, "d", "e")
    assert await store.pinned_definitions("git", [LOG, NEW]) == {LOG: '{"a":1}'}
    await pinned(store, "git", pin("log", '{"a":2}', digest="e", later=True, by="ada"), forget=[WIPE])
    assert (await store.pins())["git"].pins.keys() == {LOG, NEW}
    assert (await store.pins())["git"].pins[LOG] == Pin(LOG, "e", later=True, by="ada")
    assert await store.pinned_definitions("git", [LOG, WIPE]) == {LOG: '{"a":2}'}


async def test_pins_that_are_made_anew_leave_nothing_of_the_old_ones(store: Store) -> None:
    """A4: as where those of another version cannot be compared."""
    await pinned(store, "git", pin("log", '{"a":1}'), pin("wipe"), version=7)
    assert not (await store.pins())["git"].compares
    await pinned(store, "git", pin("log", '{"a":2}'), anew=True)
    assert (await store.pins())["git"].pins.keys() == {LOG}
    assert (await store.pins())["git"].compares
    assert await store.pinned_definitions("git", [LOG, WIPE]) == {LOG: '{"a":2}'}


async def test_definitions_of_thousands_of_tools_are_read_at_once(store: Store) -> None:
    """A4: as many as a server may list."""
    await pinned(store, "git", *(pin(f"t{number}", f"[{number}]") for number in range(3_000)))
    texts = await store.pinned_definitions("git", [PinName("tool", f"t{number}") for number in range(3_000)])
    assert len(texts) == 3_000
    assert texts[PinName("tool", "t2999")] == "[2999]"


async def test_the_pin_of_a_server_is_no_pin_of_a_tool(store: Store) -> None:
    """A4: not of one without a name either; each is kept, read and forgotten alone."""
    nameless, own = PinName("tool", ""), PinChange(Pin(SERVER_PIN, digest="s"), '{"a":1}')
    await pinned(store, "git", pin(""), own)
    assert (await store.pins())["git"].pins == {nameless: Pin(nameless, "d"), SERVER_PIN: own.pin}
    for names in ([SERVER_PIN], [nameless, SERVER_PIN]):
        assert (await store.pinned_definitions("git", names))[SERVER_PIN] == '{"a":1}'
    await pinned(store, "git", forget=[nameless])
    assert (await store.pins())["git"].pins == {SERVER_PIN: own.pin}


async def test_a_state_and_its_audit_are_stored_together_or_not_at_all(store: Store) -> None:
    """S2, X4: a writer that comes second leaves no record of what it did not do."""
    version = await store.save(KEY, "one", expected=0, audit=[ENTRY._replace(subject="first")])
    assert version is not None
    assert await store.save(KEY, "two", expected=0, audit=[ENTRY._replace(subject="second")]) is None
    assert await store.save(KEY, None, expected=version, audit=[ENTRY._replace(subject="third")]) == 0
    assert [entry.subject for entry in await store.entries()] == ["third", "first"]


async def test_no_version_is_used_twice(store: Store) -> None:
    """S2: also where the state was removed meanwhile, a writer that read it long ago comes too late."""
    versions: list[int] = []
    for round_ in range(3):
        version = await saved(store, KEY, f"{round_} a")
        again = await store.save(KEY, f"{round_} b", expected=version)
        assert again is not None
        versions += [version, again]
        assert await store.save(KEY, None, expected=again) == 0
    assert len(set(versions)) == len(versions)


async def test_a_use_comes_back_with_every_field_the_newest_last(store: Store) -> None:
    """P3: what was called after which need, as it was stored."""
    assert list(await store.uses("ada", "assistant")) == []
    later = USE._replace(at=USE.at + 0.25, need="who wrote this", tool="git/blame")
    store.remember_later(USE)
    store.remember_later(later)
    assert list(await store.uses("ada", "assistant")) == [USE, later]
    await store.record(ENTRY)
    assert list(await store.uses("ada", "assistant")) == [USE, later]


@pytest.mark.parametrize("part", ["principal", "agent"])
async def test_neither_two_principals_nor_two_agents_share_their_uses(store: Store, part: str) -> None:
    """S1: each has its own, also where need and tool are the same."""
    changed: dict[str, Any] = {part: "someone else"}
    other = USE._replace(**changed)
    store.remember_later(USE, other)
    assert list(await store.uses(USE.principal, USE.agent)) == [USE]
    assert list(await store.uses(other.principal, other.agent)) == [other]
    assert list(await store.uses("nobody", "none")) == []


async def test_equal_uses_are_there_once_as_new_as_the_newest(store: Store) -> None:
    """P3: one need can have several tools, one tool several needs."""
    other = USE._replace(at=USE.at + 1, tool="git/diff")
    again = USE._replace(at=USE.at + 2)
    store.remember_later(USE)
    await store.record(ENTRY)
    store.remember_later(other, again)
    assert list(await store.uses("ada", "assistant")) == [other, again]
    await store.record(ENTRY)
    assert list(await store.uses("ada", "assistant")) == [other, again]


async def test_of_more_uses_than_are_kept_the_oldest_go(store: Store) -> None:
    """S1: 500 of each principal and agent; what others store takes nothing away."""
    uses = [USE._replace(at=USE.at + number, need=f"need {number}") for number in range(USES_KEPT + 20)]
    bob = USE._replace(principal="bob")
    store.remember_later(bob)
    store.remember_later(*uses[:100])
    assert list(await store.uses("ada", "assistant")) == uses[:100]
    await store.record(ENTRY)
    store.remember_later(*uses[100:])
    assert list(await store.uses("ada", "assistant")) == uses[-USES_KEPT:]
    await store.record(ENTRY)
    assert list(await store.uses("ada", "assistant")) == uses[-USES_KEPT:]
    assert list(await store.uses("bob", "assistant")) == [bob]
    assert USES_KEPT == 500


async def test_uses_that_are_too_old_go_when_another_is_stored_whoever_they_are_of(store: Store) -> None:
    """S1: after 30 days."""
    young = USE._replace(at=USE.at + 1, principal="bob")
    new = USE._replace(at=USE.at + USE_LIFETIME + 0.5, principal="carol")
    store.remember_later(USE, young)
    await store.record(ENTRY)
    store.remember_later(new)
    await store.record(ENTRY)
    assert list(await store.uses("ada", "assistant")) == []
    assert list(await store.uses("bob", "assistant")) == [young]
    assert list(await store.uses("carol", "assistant")) == [new]
    assert USE_LIFETIME == 30 * 86_400


async def test_forgetting_counts_and_takes_what_was_asked_for_alone(store: Store) -> None:
    """S1: by principal, by agent, by both, or everything; what still waits to be stored goes, too."""
    who = [("ada", "assistant"), ("ada", "coder"), ("bob", "assistant"), ("bob", "coder"), ("carol", "assistant")]
    uses = {key: USE._replace(principal=key[0], agent=key[1]) for key in who}
    store.remember_later(*uses.values())
    assert await store.forget_uses(principal="ada", agent="coder") == 1
    assert await store.forget_uses(principal="ada", agent="coder") == 0
    assert await store.forget_uses(principal="bob") == 2
    left = [key for key in who if await store.uses(*key)]
    assert left == [("ada", "assistant"), ("carol", "assistant")]
    store.remember_later(uses["bob", "coder"])
    assert await store.forget_uses(agent="assistant") == 2
    assert await store.forget_uses() == 1
    assert [key for key in who if await store.uses(*key)] == []
    store.remember_later(USE)
    assert list(await store.uses("ada", "assistant")) == [USE]


async def test_uses_are_the_same_object_until_something_changes(store: Store) -> None:
    """P3: whoever ranks by them need not read them again."""
    store.remember_later(USE, USE._replace(need="another"))
    await store.record(ENTRY)
    first = await store.uses("ada", "assistant")
    await saved(store, KEY, "text")
    store.remember_later(USE._replace(principal="bob"))
    await store.record(ENTRY)
    assert await store.uses("ada", "assistant") is first
    store.remember_later(USE)
    assert [use.need for use in await store.uses("ada", "assistant")] == ["another", "what changed last"]


async def test_uses_change_neither_states_nor_permissions(store: Store) -> None:
    """P4: no session is read again for them."""
    before = await store.change_token()
    store.remember_later(USE)
    await store.uses("ada", "assistant")
    await store.forget_uses()
    assert await store.change_token() == before


@given(changes=st.lists(st.dictionaries(st.sampled_from(STRANGE), st.sampled_from([None, *STRANGE])), max_size=4))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_of_what_plugins_keep_for_a_session_the_newest_of_each_name_counts(
    store: Store, changes: list[dict[str, str | None]]
) -> None:
    await store.forget_session_data(KEY)
    expected: dict[str, str | None] = {}
    for change in changes:
        await store.keep_session_data(KEY, change)
        expected.update(change)
    kept = {name: text for name, text in expected.items() if text is not None}
    assert await store.session_data(KEY) == kept
    for part in ("principal", "agent", "session"):
        assert await store.session_data(replace(KEY, **{part: "another"})) == {}
    assert await store.forget_session_data(KEY) is bool(kept)
    assert await store.session_data(KEY) == {}


async def test_what_is_accepted_is_swapped_with_its_records(store: Store) -> None:
    """P10, X4: whoever was second stores nothing; each configuration is on its own."""
    assert await store.accepted("/a.yaml") is None
    token = await store.change_token()
    assert await store.accept("/a.yaml", "one", expected=None, audit=[ENTRY])
    assert await store.change_token() != token
    assert not await store.accept("/a.yaml", "two", expected=None, audit=[ENTRY])
    assert not await store.accept("/b.yaml", "two", expected="one", audit=[ENTRY])
    assert (await store.accepted("/a.yaml"), await store.accepted("/b.yaml")) == ("one", None)
    assert len(await store.entries()) == 1
    assert await store.accept("/a.yaml", "two", expected="one")
    assert await store.accepted("/a.yaml") == "two"


async def test_a_switch_for_one_principal_stands_beside_those_of_everybody(store: Store) -> None:
    """P2: it is swapped, replaced and removed on its own, and the change token tells of it."""
    token = await store.change_token()
    assert await store.set_switch("a", "look", False, principal="ada", expected=None, audit=[ENTRY])
    assert (await store.change_token()).permissions != token.permissions
    assert not await store.set_switch("a", "look", True, principal="ada", expected=None, audit=[ENTRY])
    await store.set_switch("a", "other", True, principal="ada")
    await store.set_switch("a", "look", True, principal="bob")
    await store.set_switch("a", "look", True)
    assert (await store.stored_permissions()).switches == {"a": {"look": True}}
    assert (await store.stored_permissions()).principal_switches == {
        "a": {"ada": {"look": False, "other": True}, "bob": {"look": True}}
    }  # fmt: skip
    await store.set_switch("a", "look", None, principal="ada", replaces=["other"])
    await store.set_switch("a", "look", None)
    assert (await store.stored_permissions()).principal_switches == {"a": {"bob": {"look": True}}}
    assert len(await store.entries()) == 1


async def test_g11_a_secret_is_swapped_only_where_its_version_is_the_expected_one(store: Store) -> None:
    first = await store.seal("grant", "a", "one", expected=0)
    assert first
    assert await store.seal("grant", "a", "two", expected=0) is None
    second = await store.seal("grant", "a", "two", expected=first)
    assert second is not None
    assert second > first
    found = await store.sealed("grant", "a")
    assert found is not None
    assert (found.text, found.version) == ("two", second)
    assert await store.sealed("login", "a") is None
    assert [one.key for one in await store.all_sealed("grant")] == ["a"]
    assert await store.seal("grant", "a", None, expected=second) == 0
    assert await store.sealed("grant", "a") is None


async def test_g11_a_secret_ends_with_its_time(store: Store) -> None:
    await store.seal("login", "a", "x", expected=0, expires_at=time.time() - 1)
    assert await store.sealed("login", "a") is None
    assert await store.all_sealed("login") == []
    assert await store.seal("login", "a", "y", expected=0) is not None


async def test_g11_one_holder_has_a_lease_until_it_gives_it_back_or_its_time_is_over(store: Store) -> None:
    assert await store.take_lease("renew", "one", seconds=10)
    assert await store.take_lease("renew", "one", seconds=10)
    assert not await store.take_lease("renew", "two", seconds=10)
    await store.end_lease("renew", "two")
    assert not await store.take_lease("renew", "two", seconds=10)
    await store.end_lease("renew", "one")
    assert await store.take_lease("renew", "two", seconds=0.001)
    await asyncio.sleep(0.01)
    assert await store.take_lease("renew", "one", seconds=10)


async def test_g11_a_lease_is_kept_from_whoever_asks_for_a_shorter_one(store: Store) -> None:
    assert await store.take_lease("renew", "one", seconds=600)
    assert not await store.take_lease("renew", "two", seconds=0.1)
    assert not await store.take_lease("renew", "two", seconds=600)


def action_of(*changes: SwitchChange, mark: str = "m1") -> SwitchAction:
    return SwitchAction(mark=mark, subject="research", at=1.5, by="ada \udcff", changes=list(changes))


def change_of(agent: str, name: str, value: bool | None, expected: bool | None = None) -> SwitchChange:
    return SwitchChange(agent=agent, name=name, value=value, expected=expected)


async def test_switches_of_several_agents_are_stored_together_or_not_at_all(store: Store) -> None:
    """P2, X4: all are as expected, else nothing is stored: no switch, no action, no record."""
    await store.set_switch("b", "research", True)
    both = action_of(change_of("a", "research", False), change_of("b", "research", None, True))
    revision = (await store.change_token()).permissions
    assert await store.set_together(both, audit=[ENTRY])
    assert (await store.stored_permissions()).switches == {"a": {"research": False}}
    assert [(one.mark, one.subject, one.at, one.by, list(one.changes)) for one in await store.switch_actions()] == [
        ("m1", "research", 1.5, "ada \udcff", both.changes)
    ]
    assert await store.entries() == [ENTRY]
    assert (await store.change_token()).permissions != revision
    late = action_of(change_of("c", "research", False), change_of("a", "research", True), mark="m2")
    assert not await store.set_together(late, audit=[ENTRY])
    assert (await store.stored_permissions()).switches == {"a": {"research": False}}
    assert [one.mark for one in await store.switch_actions()] == ["m1"]
    assert await store.entries() == [ENTRY]


async def test_what_is_paused_is_no_switch_and_is_taken_back_like_one(store: Store) -> None:
    """P4: of an agent, and of a plugin for it."""
    await store.set_switch("a", "git", True)
    changes = [
        SwitchChange(agent="a", name="", value=False, expected=None, kind="agent_pause"),
        SwitchChange(agent="b", name="git", value=False, expected=None, kind="plugin_pause"),
        SwitchChange(agent="b", name="crm \udcff", value=False, expected=None, kind="plugin_pause"),
    ]
    assert await store.set_together(action_of(*changes), audit=[ENTRY])
    paused = {"a": Pauses(agent=True), "b": Pauses(plugins=frozenset({"git", "crm \udcff"}))}
    stored = await store.stored_permissions()
    assert (stored.pauses, stored.switches) == (paused, {"a": {"git": True}})
    assert list((await store.switch_actions())[0].changes) == changes
    assert not await store.set_together(action_of(*changes, mark="m2")), "they are paused already"
    revision = (await store.change_token()).permissions
    back = [replace(one, value=None, expected=False) for one in changes]
    assert await store.set_together(action_of(*back, mark="m3"))
    assert (await store.stored_permissions()).pauses == {}
    assert (await store.change_token()).permissions != revision


async def test_what_an_agent_sets_for_itself_counts_for_one_principal(store: Store) -> None:
    """P10, P2: an operator's switch for that principal takes the place of what it has switched off."""
    off, lease = OwnSetting("off", "look"), OwnSetting("value", "lease \udcff")
    revision = (await store.change_token()).permissions
    await store.set_own("a", "ada", {off: "false", lease: "1"}, audit=[ENTRY])
    await store.set_own("a", "bob", {off: "false"})
    assert (await store.stored_permissions()).own_settings == {
        "a": {"ada": {off: "false", lease: "1"}, "bob": {off: "false"}}
    }
    assert (await store.change_token()).permissions != revision
    assert (await store.stored_permissions())[:2] == ({}, {})
    await store.set_switch("a", "look", True, principal="ada")
    await store.set_switch("a", "other", True, replaces=["look"])
    assert (await store.stored_permissions()).own_settings == {"a": {"ada": {lease: "1"}, "bob": {off: "false"}}}
    await store.set_own("a", "ada", {lease: '{"kind": "turn"}'})
    await store.set_switch("a", "other", True, principal="bob", replaces=["look"])
    assert (await store.stored_permissions()).own_settings == {"a": {"ada": {lease: '{"kind": "turn"}'}}}
    await store.set_own("a", "ada", {lease: None, off: None})
    assert (await store.stored_permissions()).own_settings == {}
    assert await store.entries() == [ENTRY]


async def test_the_newest_actions_are_kept(store: Store) -> None:
    """X4: those of 200 decisions, the newest first."""
    for number in range(203):
        value = number % 2 == 0
        expected = None if number == 0 else not value
        assert await store.set_together(action_of(change_of("a", "x", value, expected), mark=str(number)))
    marks = [one.mark for one in await store.switch_actions()]
    assert marks == [str(number) for number in range(202, 2, -1)]
