"""MCP servers over stdio, against real processes of both eras."""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from mcp_helpers import SERVERS, call, happened, modern, plain, runs, started, state, text, until

from pegboard.core.model.masking import Masker
from pegboard.core.model.specs import PythonSpec, ServerSpec
from pegboard.core.model.tools import Tool
from pegboard.errors import ToolUnavailableError, UpstreamError, UpstreamTimeoutError
from pegboard.ports import CallContext
from pegboard.sources.mcp import McpSource

pytestmark = pytest.mark.cover(1)

BROKEN = {"no_schema", "bad_hint", "#16", "#17", "echo"}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.mark.parametrize(
    ("spec", "era"), [(plain(), "2025-06-18"), (modern(), "2026-07-28")], ids=["handshake", "2026"]
)
async def test_a_server_of_either_era_is_described_and_called(source: McpSource, spec: ServerSpec, era: str) -> None:
    manifest = await source.describe(spec, {})
    assert "echo" in [tool.name for tool in manifest.tools]
    assert text(await call(source, spec, "echo", text="hello")) == "hello"
    assert state(source, spec.name)["era"] == era


async def test_tools_are_converted_unchanged(source: McpSource) -> None:
    "G7: what a server says of a tool is in it, with keys that no one knows."
    manifest = await source.describe(plain(), {})
    tools = {tool.name: tool for tool in manifest.tools}
    echo = tools["echo"]
    assert (echo.plugin, echo.wire, echo.description) == ("plain", "", "Say it again.")
    assert echo.extra == {
        "title": "Echo", "icons": [{"src": "data:,"}], "_meta": {"team": "a"}, "x-vendor": {"kept": True},
    }  # fmt: skip
    assert tools["crash_reading"].annotations == {"readOnlyHint": True, "x-unknown": 1}
    assert tools["promise"].output_schema is not None
    assert (manifest.description, manifest.instructions) == ("A plain server", "Be brief.")


async def test_one_bad_tool_never_costs_the_list(source: McpSource, caplog: pytest.LogCaptureFixture) -> None:
    "G8: invalid tools are excluded and reported by name; all pages are read."
    with caplog.at_level(logging.WARNING, logger="pegboard.sources.mcp"):
        manifest = await source.describe(plain("--tools", "300"), {})
    names = [tool.name for tool in manifest.tools]
    assert [name for name in names if name.startswith("tool_")] == [f"tool_{n}" for n in range(300)]
    assert len(names) == len(set(names)) == 313
    assert set(state(source, "plain")["dropped"]) == BROKEN
    assert all(repr(name) in caplog.text for name in BROKEN)


@pytest.mark.both_paths
async def test_content_of_every_kind_passes_through_unchanged(source: McpSource) -> None:
    "G7: images, audio, resources, structured content and meta arrive as sent."
    media = await call(source, modern(), "media")
    assert [block["type"] for block in media.content] == ["image", "audio", "resource", "resource_link"]
    assert media.content[0] == {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
    assert media.content[2]["resource"] == {"uri": "note://1", "text": "a note"}
    total = await call(source, modern(), "add", a=2, b=3)
    assert (total.structured, total.meta["unit"]) == ({"sum": 5}, "one")


async def test_what_the_sdk_does_not_know_passes_through_unchanged(source: McpSource) -> None:
    "G7: a new kind of block, and structured content that breaks the tool's own promise, are no errors."
    odd = await call(source, plain(), "odd")
    assert (odd.content, odd.meta) == (({"type": "hologram", "depth": 3},), {"seen": True})
    promise = await call(source, plain(), "promise")
    assert (promise.structured, promise.is_error) == ({"n": "not a number"}, False)


async def test_the_failure_of_a_tool_is_a_result_and_a_refusal_names_server_and_tool(source: McpSource) -> None:
    failed = await call(source, modern(), "fail")
    assert (failed.is_error, text(failed)) == (True, "the tool failed")
    with pytest.raises(UpstreamError, match=r"Server 'plain' refused 'refuse': not on a Sunday \(-32050\)") as caught:
        await call(source, plain(), "refuse")
    assert getattr(caught.value.__cause__, "data", None) == {"day": 7}


async def test_meta_reaches_the_server_without_what_belongs_to_one_connection(source: McpSource) -> None:
    meta = {"trace": "1", "progressToken": 9, "io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    result = await source.call(plain(), {}, Tool(plugin="plain", name="meta"), {}, CallContext(meta=meta))
    assert json.loads(text(result)) == {"trace": "1"}


async def test_a_call_costs_no_hidden_list(source: McpSource, log: Path) -> None:
    spec = plain("--log", str(log))
    for _ in range(3):
        await call(source, spec, "promise")
    assert "tools/list" not in happened(log)


async def test_large_messages_pass_both_ways(source: McpSource) -> None:
    assert len(text(await call(source, plain(), "large", size=5_000_000))) == 5_000_000
    assert len(text(await call(source, plain(), "echo", text="y" * 3_000_000))) == 3_000_000


async def test_callers_at_the_same_time_share_one_start(source: McpSource, log: Path) -> None:
    spec = plain("--log", str(log))
    answers = await asyncio.gather(*(call(source, spec, "pid") for _ in range(20)))
    assert len({text(answer) for answer in answers}) == 1
    assert happened(log).count("start") == 1


async def test_a_caller_that_gives_up_does_not_cost_the_others_the_start(
    source: McpSource, log: Path, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    spec = plain("--log", str(log), "--wait-for", str(go))
    first, second = (asyncio.create_task(call(source, spec, "pid")) for _ in range(2))
    await until(lambda: "initialize" in happened(log))
    first.cancel()
    go.touch()
    assert text(await second).isdigit()
    assert happened(log).count("start") == 1


async def test_only_so_many_servers_start_at_once(log: Path, tmp_path: Path) -> None:
    "G8: spawning is capped."
    source, go = McpSource(spawns=2), tmp_path / "go"
    specs = [plain("--log", str(log), "--wait-for", str(go), name=f"s{n}") for n in range(6)]
    calls = [asyncio.create_task(call(source, spec, "pid")) for spec in specs]
    await until(lambda: happened(log).count("start") == 2)
    go.touch()
    await asyncio.gather(*calls)
    await source.aclose()
    starting, most = 0, 0
    for event in happened(log):
        starting += {"start": 1, "ready": -1}.get(event, 0)
        most = max(most, starting)
    assert most == 2


async def test_scopes_have_processes_of_their_own(source: McpSource) -> None:
    "G9: connections are pooled by upstream and scope; the process that was described serves the first."
    await source.describe(plain(), {})
    described = state(source, "plain")["pid"]
    ada, bob = [text(await call(source, plain(), "pid", scope=scope)) for scope in ("ada", "bob")]
    assert ada == str(described)
    assert ada == text(await call(source, plain(), "pid", scope="ada")) != bob


@pytest.mark.both_paths
@pytest.mark.parametrize("spec", [plain(), modern()], ids=["handshake", "2026"])
async def test_a_killed_server_is_started_again_by_the_next_call(source: McpSource, spec: ServerSpec) -> None:
    "G8: the call that finds it dead does not fail."
    before = int(text(await call(source, spec, "pid")))
    os.kill(before, signal.SIGKILL)
    await until(lambda: not runs(before))
    assert int(text(await call(source, spec, "pid"))) != before


async def test_a_killed_server_does_not_count_as_up(source: McpSource) -> None:
    pid = int(text(await call(source, plain(), "pid")))
    os.kill(pid, signal.SIGKILL)
    await until(lambda: state(source, "plain")["state"] == "down")
    assert state(source, "plain")["last_error"] == "it was ended by SIGKILL"


@pytest.mark.parametrize("spec", [plain(), modern()], ids=["handshake", "2026"])
async def test_a_hanging_call_times_out_alone(source: McpSource, spec: ServerSpec) -> None:
    "G8: only that call fails, on the same process; the error names server, tool and seconds."
    before = text(await call(source, spec, "pid"))
    hanging = asyncio.create_task(call(source, replace(spec, timeout=0.3), "slow"))
    assert text(await call(source, spec, "echo", text="meanwhile")) == "meanwhile"
    with pytest.raises(UpstreamTimeoutError, match=rf"Server '{spec.name}' did not answer 'slow' within 0\.3 s"):
        await hanging
    assert text(await call(source, spec, "pid")) == before


@pytest.mark.both_paths
async def test_a_server_is_told_of_a_cancelled_call(source: McpSource, log: Path) -> None:
    "G7: cancellation passes through."
    spec = plain("--log", str(log))
    task = asyncio.create_task(call(source, spec, "slow"))
    await until(lambda: "call:slow" in happened(log))
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    await until(lambda: "notifications/cancelled" in happened(log))


@pytest.mark.parametrize("spec", [plain(), modern()], ids=["handshake", "2026"])
async def test_changed_tools_are_announced(source: McpSource, spec: ServerSpec) -> None:
    "G8: list_changed of the handshake era, subscriptions/listen of the 2026 era."
    changed: list[str] = []
    source.on_changed(changed.append)
    await source.describe(spec, {})
    await call(source, spec, "grow")
    await until(lambda: changed)
    assert set(changed) == {spec.name}
    assert "grown" in [tool.name for tool in (await source.describe(spec, {})).tools]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (ServerSpec(name="x", command="no-such-command-here"), "the command 'no-such-command-here' was not found"),
        (ServerSpec(name="x", command=str(SERVERS)), "may not be executed"),
        (plain(name="x", cwd="/no/such/folder"), "its folder '/no/such/folder' does not exist"),
        (plain("--exit", "3", "--complain", "no token hunter22", name="x"), "it exited with code 3; its last lines on"),
        (
            plain("--garbage", name="x"),
            "it does not speak MCP; it printed text that is not MCP: '<html>this is no server",
        ),
        (plain("--mute", name="x"), "it did not answer within 0.5 s"),
        (ServerSpec(name="x", command="true", unavailable="DOCS_TOKEN is not set"), "DOCS_TOKEN is not set"),
        (ServerSpec(name="x"), "has neither a command nor a url"),
    ],
    ids=["missing", "not executable", "folder", "exits", "garbage", "mute", "unavailable", "empty"],
)  # fmt: skip
async def test_a_server_that_does_not_start_says_why(spec: ServerSpec, said: str) -> None:
    "P6, X5: the plugin is unavailable; the error names the server, the reason and its last words, masked."
    source = McpSource(start_timeout=0.5 if "--mute" in spec.args else 20, mask=Masker(["hunter22"]).text)
    with pytest.raises(ToolUnavailableError) as caught:
        await source.describe(spec, {})
    assert said in str(caught.value)
    assert "'x'" in caught.value.message
    assert "hunter22" not in str(caught.value)
    await source.aclose()


async def test_a_server_that_never_answers_is_started_once(log: Path) -> None:
    "G8: that it leaves when it is stopped does not say that it wants to be asked in another way."
    source = McpSource(start_timeout=3)
    with pytest.raises(ToolUnavailableError, match=r"it did not answer within 3 s\."):
        await source.describe(plain("--mute", "--log", str(log)), {})
    assert happened(log).count("start") == 1
    await source.aclose()


async def test_a_server_that_prints_a_banner_works(source: McpSource) -> None:
    assert text(await call(source, plain("--banner"), "echo", text="all the same")) == "all the same"


async def test_a_server_that_leaves_before_initialize_is_asked_in_its_own_way(source: McpSource, log: Path) -> None:
    "G8: the era is negotiated per upstream, and known at the next start."
    spec = plain("--strict", "--log", str(log))
    pid = int(text(await call(source, spec, "pid")))
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not runs(pid))
    await call(source, spec, "pid")
    assert happened(log).count("start") == 3


async def test_repeated_failures_are_spaced_out(log: Path) -> None:
    "G8: after three failures the next start waits, and the error says for how long."
    now = 100.0
    source, spec = McpSource(monotonic=lambda: now), plain("--log", str(log), "--garbage")
    for _ in range(3):
        with pytest.raises(ToolUnavailableError):
            await source.describe(spec, {})
    with pytest.raises(ToolUnavailableError, match=r"It is tried again in 1 s\."):
        await source.describe(spec, {})
    assert happened(log).count("start") == 3
    assert state(source, "plain")["state"] == "backing_off"
    now += 1.5
    with pytest.raises(ToolUnavailableError):
        await source.describe(spec, {})
    assert happened(log).count("start") == 4
    with pytest.raises(ToolUnavailableError, match=r"It is tried again in 2 s\."):
        await source.describe(spec, {})
    await source.aclose()


async def test_a_server_that_nobody_uses_is_stopped_and_started_when_needed() -> None:
    source, spec = McpSource(), plain(idle=0.1)
    pid = int(text(await call(source, spec, "pid")))
    await until(lambda: not runs(pid))
    assert state(source, "plain")["state"] == "idle"
    assert int(text(await call(source, spec, "pid"))) != pid
    await source.aclose()


async def test_a_process_of_one_principal_stops_when_idle_and_a_shared_one_stays() -> None:
    "G9: the next call starts it again; nothing is left running after the end."
    source = McpSource(idle_after=0.1)
    shared, ada = [int(text(await call(source, plain(), "pid", scope=scope))) for scope in ("shared", "ada")]
    await until(lambda: not runs(ada))
    assert int(text(await call(source, plain(), "pid", scope="shared"))) == shared
    again = int(text(await call(source, plain(), "pid", scope="ada")))
    assert again != ada
    await source.aclose()
    assert [pid for pid in (shared, again) if runs(pid)] == []


async def test_a_server_decides_on_its_own_idle_time() -> None:
    source, patient, hasty = McpSource(idle_after=0.05), plain(name="patient", idle=60.0), plain(name="hasty", idle=0.1)
    stays, goes = [int(text(await call(source, spec, "pid", scope="ada"))) for spec in (patient, hasty)]
    await until(lambda: not runs(goes))
    assert runs(stays)
    assert state(source, "patient")["state"] == "up"
    await source.aclose()


async def test_a_call_that_takes_longer_than_idle_is_not_stopped() -> None:
    source = McpSource()
    task = asyncio.create_task(call(source, plain(timeout=0.4, idle=0.05), "slow"))
    with pytest.raises(UpstreamTimeoutError):
        await task
    await source.aclose()


async def test_closing_stops_all_that_was_started(source: McpSource, log: Path) -> None:
    "No process stays: neither one that ignores SIGTERM, nor a child of the server's own."
    await call(source, plain("--stubborn", "--family", "--log", str(log)), "pid")
    pids = {started(log)}
    pids |= {int(event.split(":")[1]) for event in happened(log) if event.startswith("child:")}
    assert len(pids) == 2
    assert all(runs(pid) for pid in pids)
    await source.aclose()
    assert [pid for pid in pids if runs(pid)] == []
    with pytest.raises(Exception, match="closed"):
        await call(source, plain(), "pid")


async def test_closing_ends_a_start_under_way(log: Path) -> None:
    source = McpSource()
    task = asyncio.create_task(call(source, plain("--mute", "--log", str(log)), "pid"))
    await until(lambda: happened(log))
    pid = started(log)
    await source.aclose()
    with pytest.raises(ToolUnavailableError, match="it was stopped"):
        await task
    assert not runs(pid)


def test_servers_end_with_the_loop_that_started_them(log: Path) -> None:
    "A program that forgets to close leaves nothing behind."

    async def forget() -> None:
        await call(McpSource(), plain("--log", str(log)), "pid")

    asyncio.run(forget())
    assert not runs(started(log))


async def test_servers_that_are_configured_no_more_are_stopped(source: McpSource) -> None:
    one, two = plain(name="one"), plain(name="two")
    kept, gone = [int(text(await call(source, spec, "pid"))) for spec in (one, two)]
    await source.retain([one])
    assert (runs(kept), runs(gone)) == (True, False)
    assert [record["name"] for record in source.states()] == ["one"]


async def test_a_server_sees_its_own_environment_and_none_of_our_secrets(
    source: McpSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_TOKEN", "hunter22")
    spec = plain(env={"ITS_TOKEN": "swordfish"})
    assert text(await call(source, spec, "environment", name="ITS_TOKEN")) == "swordfish"
    assert text(await call(source, spec, "environment", name="OUR_TOKEN")) == "-"
    assert text(await call(source, spec, "environment", name="PATH")) == os.environ["PATH"]


async def test_what_a_server_complains_goes_nowhere_but_to_its_errors(
    source: McpSource, capfd: pytest.CaptureFixture[str]
) -> None:
    await call(source, plain("--complain", "a warning of mine"), "pid")
    assert "a warning of mine" not in "".join(capfd.readouterr())


def test_a_fingerprint_changes_with_the_server_and_shows_no_secret() -> None:
    specs = [
        plain(), plain("--banner"), plain(env={"TOKEN": "hunter22"}), plain(env={"TOKEN": "hunter23"}), plain(cwd="/"),
        ServerSpec(name="plain", url="http://h/mcp"), ServerSpec(name="plain", url="http://h/mcp", headers={"a": "b"}),
    ]  # fmt: skip
    source = McpSource()
    prints = [source.fingerprint(spec) for spec in specs]
    assert len(set(prints)) == len(specs)
    assert "hunter" not in "".join(prints)
    assert source.fingerprint(plain()) == prints[0] == source.fingerprint(plain(timeout=1.0))


def test_only_servers_are_handled() -> None:
    source = McpSource()
    assert source.handles(plain())
    assert not source.handles(PythonSpec(name="notes", target="notes"))


WITHOUT_THE_SDK = """
import sys
import pegboard.daemon.process
from pegboard.sources.mcp import McpSource
from pegboard.sources.mcp.transports.shared_processes import SharedProcesses

McpSource(shared=SharedProcesses())
print("mcp" in sys.modules)
"""


def test_g8_g12_the_sdk_is_imported_only_when_a_server_is_needed() -> None:
    """G8, G12: by a daemon, whose boards share processes, as by one process alone."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_THE_SDK], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


async def test_the_published_time_server_works(source: McpSource) -> None:
    spec = ServerSpec(name="time", command=sys.executable, args=("-m", "mcp_server_time"))
    assert "get_current_time" in [tool.name for tool in (await source.describe(spec, {})).tools]
    result = await call(source, spec, "get_current_time", timezone="Europe/Paris")
    assert not result.is_error
    assert "Europe/Paris" in text(result)
