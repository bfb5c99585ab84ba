"""A store with something of every kind in it, made through its ports, and all that it answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pegboard.core.access.approvals.approval import Approval, Binding
from pegboard.core.access.pins import SERVER_PIN, Pin, PinName
from pegboard.core.access.settings.own_settings import OwnSetting
from pegboard.core.model.tools import Manifest, Tool
from pegboard.ports import (
    AuditRecord,
    CallDetails,
    CallNumbers,
    CountRecord,
    Counts,
    PinChange,
    SessionKey,
    StateChange,
    Store,
    SwitchAction,
    SwitchChange,
    UseRecord,
)
from pegboard.ports.counts import UNITS
from pegboard.ports.requests import AuditFilter

STRANGE = ["plain", "", "ключ 鍵", "two\nlines", "lone \ud800 surrogate", "NUL\0inside", "'; --", "\\x00", '{"a": 1}']
NOW = datetime.now(UTC)
LATER = 4_000_000_000.0
TOOL, LONE = PinName("tool", "tool"), PinName("tool", "lone \udfff")


def record(number: int, text: str, kind: str = "call") -> AuditRecord:
    at = NOW.replace(microsecond=number)
    return AuditRecord(at, kind, text, "agent", "session", number, text, "allowed", text, 0.1 * number, "ok", "d", text)


async def fill(store: Store) -> None:
    """Put records of every kind into a store, hostile texts among them."""
    await store.digest_key()
    for number, text in enumerate(STRANGE, 1):
        key = SessionKey(principal=text, agent="agent", session=text)
        await store.save(key, text, expected=0, audit=[record(number, text, "load")])
        await store.keep_session_data(key, {text: text, "other": text})
        await store.set_switch(f"agent {text}", text, number % 2 == 0)
        await store.set_switch("agent", text, True, principal=text)
        await store.keep_manifest(text, f"{number}", Manifest(tools=(Tool(plugin="p", name="t"),), description="d"))
        await store.accept(text, "{}", expected=None)
        await store.seal("grant", text, f"token {text}", expected=0, expires_at=LATER if number % 2 else None)
        binding = Binding(
            principal=text, agent="agent", session=text, tool="p/t", definition="d", arguments="a", rules="r"
        )
        waits = Approval(id=f"{number:012x}", tool="t", binding=binding, asked="a", asked_at=5.0, expires_at=LATER)
        await store.add_approval(waits, audit=[record(number, text, "approval")])
        await store.record(record(number, text), details=CallDetails(CallNumbers(0.5, None, 1.5, number), text))
        store.remember_later(UseRecord(LATER - number, "local", "agent", f"need {text}", text))
        counts = Counts(*range(number, number + 19))
        store.count_later(CountRecord(1_795_680_000, text, "agent", text, text, text, "ok", counts, {number: 2}))
    own = SessionKey(principal="b", agent="c", session="d")
    await store.save_together([StateChange(key=own, text="state", expected=0)])
    change = SwitchChange(agent="agent", name="together", value=True, expected=None)
    await store.set_together(SwitchAction(mark="m", subject="s", at=1.5, by="ada", changes=[change]))
    pause = SwitchChange(agent="agent", name="p", value=False, expected=None, kind="plugin_pause")
    pause_of_all = SwitchChange(agent="agent", name="", value=False, expected=None, kind="agent_pause")
    await store.set_together(SwitchAction(mark="n", subject="p", at=2.5, by="ada", changes=[pause, pause_of_all]))
    await store.set_own("agent", "lone \udfff", {OwnSetting("off", "x"): "false", OwnSetting("value", "lease"): "{}"})
    pins = [Pin(TOOL, "d", "w", True, False, True, "ada"), Pin(LONE), Pin(SERVER_PIN, "s")]
    changes = [*(PinChange(pin, "{}") for pin in pins[::2]), PinChange(pins[1])]
    await store.change_pins("server", changes, expected=None, version=2)
    for text in STRANGE:
        await store.note_configuration("c", at=1.5, by=text, what=text, digest=text, text=text, keep=100)
    await store.record()  # what waits is stored, too


async def answers(store: Store) -> dict[str, Any]:
    """Return what a store answers to whoever asks for everything."""
    keys = [SessionKey(principal=text, agent="agent", session=text) for text in STRANGE]
    return {
        "sessions": await store.sessions(),
        "data": [await store.session_data(key) for key in keys],
        "permissions": (await store.stored_permissions())[:4],
        "actions": await store.switch_actions(),
        "manifests": [await store.manifest(text, f"{number}") for number, text in enumerate(STRANGE, 1)],
        "accepted": [await store.accepted(text) for text in STRANGE],
        "texts": await store.configuration_texts("c"),
        "sealed": await store.all_sealed("grant"),
        "approvals": await store.approvals(),
        "pins": await store.pins(),
        "definitions": await store.pinned_definitions("server", [TOOL, LONE, SERVER_PIN]),
        "trail": await store.part(AuditFilter(), limit=1000),
        "details": [await store.call_details(number) for number in range(1, 40)],
        "uses": await store.uses("local", "agent"),
        "counts": [
            sorted((await store.sums(unit, since=0, until=2**40, by=("start", *unit.names))).records) for unit in UNITS
        ],
        "key": await store.digest_key(),
    }
