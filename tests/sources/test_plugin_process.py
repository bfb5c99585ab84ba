"""Plugins in processes of their own: what is theirs, what ends, what a process must not do to Pegboard (A7, G9)."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.clients import until
from pegboard.core.model.specs import RegisteredSpec
from pegboard.core.model.tools import CallResult
from pegboard.errors import OverrideError, ToolUnavailableError, UpstreamError
from pegboard.ports import CallContext
from pegboard.sources.mcp import McpSource
from pegboard.sources.plugin_process.source import PluginProcessSource
from pegboard.sources.signatures.instances import BEGAN_ANEW
from pegboard.stores.sql import MemoryStore
from sources.conftest import Workshop

CART = '''
import asyncio
import os
import sys
import time

from pegboard import tool


class Cart:
    """Keep what is bought."""

    def __init__(self, shop: str = "corner", token: str = ""):
        self.items = []
        self.token = token

    def add(self, item: str) -> list[str]:
        self.items.append(item)
        return self.items

    def process(self) -> dict[str, int]:
        return {"pid": os.getpid(), "parent": os.getppid()}

    def die(self) -> None:
        os.kill(os.getpid(), 9)

    def shout(self) -> str:
        for stream in (sys.stdout, sys.stderr):
            for _ in range(20_000):
                print("x" * 100, file=stream)
        os.write(1, b'{"jsonrpc": "2.0", "id": 1000000000, "result": {"content": []}}\\n')
        os.system("echo from a child; cat")
        return "shouted"

    def ask(self) -> str:
        return input("Your name? ")

    def large(self, size: int) -> str:
        return "x" * size

    def variable(self, name: str) -> str:
        return os.environ.get(name, "is not there")

    @tool(needs=["CART_KEY"])
    def key(self) -> str:
        return os.environ["CART_KEY"]

    async def wait(self, file: str) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            open(file, "w").write("cancelled")
            raise
'''


def text(result: CallResult) -> str:
    return result.content[0]["text"]


def by(principal: str, **more: Any) -> CallContext:
    return CallContext(principal=principal, scope=f"user:{principal}", **more)


@asynccontextmanager
async def processes(**more):
    """Yield a source that lets every plugin run in a process of its own."""
    given: dict[str, Any] = {"env": os.environ, "apart": lambda _: True, **more}
    source = PluginProcessSource(McpSource(asks=False, idle_after=None), **given)
    try:
        yield source
    finally:
        await source.aclose()


@pytest.fixture
async def apart(tmp_path):
    """A workshop whose plugins run in processes of their own, and that has a cart."""
    async with processes() as source:
        made = Workshop(tmp_path)
        made.source = source  # type: ignore[assignment]
        made.write("carts_p.py", CART)
        yield made
    assert "carts_p" not in sys.modules


async def call(apart, tool, arguments=None, *, target="carts_p:Cart", context=None, overrides=None, **more):
    spec = apart.spec(target, **more)
    tools = {each.name: each for each in (await apart.source.describe(spec, overrides or {})).tools}
    return await apart.source.call(spec, overrides or {}, tools[tool], arguments or {}, context or by("alice"))


async def test_a7_a_plugin_runs_in_a_child_and_its_module_is_not_imported_here(apart):
    found = (await call(apart, "process")).structured
    assert found["parent"] == os.getpid()
    assert found["pid"] != os.getpid()
    assert "carts_p" not in sys.modules


async def test_g9_each_scope_has_a_process_and_keeps_what_is_its_own(apart):
    assert text(await call(apart, "add", {"item": "apple"})) == '["apple"]'
    assert text(await call(apart, "add", {"item": "pear"}, context=by("bob"))) == '["pear"]'
    assert text(await call(apart, "add", {"item": "plum"})) == '["apple", "plum"]'
    alice, bob = [(await call(apart, "process", context=by(who))).structured["pid"] for who in ("alice", "bob")]
    assert alice != bob
    await apart.source.end_scope("user:bob")
    await until(lambda: _gone(bob))
    assert text(await call(apart, "add", {"item": "fig"}, context=by("bob"))) == '["fig"]'


async def test_g9_the_first_scope_takes_over_the_process_that_described_the_plugin(apart):
    first = (await call(apart, "process")).structured["pid"]
    await apart.describe("carts_p:Cart")
    assert (await call(apart, "process")).structured["pid"] == first


async def test_g9_a_killed_process_is_started_at_the_next_call_and_the_answer_says_so_once(apart):
    await call(apart, "add", {"item": "apple"})
    with pytest.raises(UpstreamError) as caught:
        await call(apart, "die")
    assert caught.value.message.startswith("Plugin 'mine' went away during the call of 'die': it was ended by SIGKILL")
    assert caught.value.hint == "It may have run, so it was not repeated. The next call starts the plugin again."
    again = await call(apart, "add", {"item": "pear"})
    assert text(again) == '["pear"]'
    assert again.content[-1]["text"] == "'mine' started again: its process had ended, and what it kept is gone."
    assert again.meta == {BEGAN_ANEW: True}
    after = await call(apart, "add", {"item": "plum"})
    assert (len(after.content), after.meta) == (1, {})


async def test_g9_an_unused_process_is_stopped_and_the_next_answer_says_so(apart):
    pid = (await call(apart, "process", idle=0.05)).structured["pid"]
    await until(lambda: _gone(pid))
    again = await call(apart, "add", {"item": "pear"}, idle=0.05)
    assert again.content[-1]["text"] == "'mine' started again: it was not used for a while, and what it kept is gone."


async def test_g9_what_was_edited_is_described_anew_once_its_process_has_been_started_again(apart):
    changed = []
    apart.source.on_changed(changed.append)
    spec = apart.spec("carts_p:Cart")
    tools = {tool.name: tool for tool in (await apart.source.describe(spec, {})).tools}
    before = apart.source.code_fingerprint(spec, {})
    await apart.source.call(spec, {}, tools["process"], {}, by("alice"))
    apart.write("carts_p.py", CART.replace("def add(", "def added(self) -> str: return ''\n    def add("))
    assert apart.source.code_fingerprint(spec, {}) == before
    with pytest.raises(UpstreamError):
        await apart.source.call(spec, {}, tools["die"], {}, by("alice"))
    await apart.source.call(spec, {}, tools["process"], {}, by("alice"))
    assert changed == ["mine"]
    assert "added" in [tool.name for tool in (await apart.describe("carts_p:Cart")).tools]
    assert apart.source.code_fingerprint(spec, {}) != before


async def test_a_flood_on_standard_output_and_error_disturbs_no_call(apart):
    assert text(await call(apart, "shout")) == "shouted"
    assert text(await call(apart, "add", {"item": "apple"})) == '["apple"]'


async def test_the_input_of_a_plugin_is_empty(apart):
    assert text(await call(apart, "ask")).startswith("EOFError")


async def test_a_result_over_the_limit_of_a_server_is_refused_and_the_process_lives_on(apart):
    before = (await call(apart, "process")).structured["pid"]
    with pytest.raises(UpstreamError) as caught:
        await call(apart, "large", {"size": 50_000_000})
    assert caught.value.message == "Plugin 'mine' failed at 'large': it sent a message of more than 32MiB."
    assert caught.value.hint.startswith("Let its tools return less")
    assert len(text(await call(apart, "large", {"size": 20_000_000}))) == 20_000_000
    assert (await call(apart, "process")).structured["pid"] == before


async def test_x5_a_process_has_no_variable_that_its_plugin_does_not_need(apart, monkeypatch):
    monkeypatch.setenv("CART_KEY", "hunter22")
    monkeypatch.setenv("PEGBOARD_OPERATOR_TOKEN", "hunter33")
    assert text(await call(apart, "variable", {"name": "CART_KEY"})) == "is not there"
    assert text(await call(apart, "variable", {"name": "PEGBOARD_OPERATOR_TOKEN"})) == "is not there"
    assert text(await call(apart, "variable", {"name": "PEGBOARD_PLUGIN"})) == "is not there"
    needed = {"needs": {"": ("CART_KEY",)}, "name": "needing"}
    assert text(await call(apart, "variable", {"name": "CART_KEY"}, **needed)) == "hunter22"


async def test_x5_what_a_tool_needs_reaches_it_with_its_call(apart, monkeypatch):
    monkeypatch.setenv("CART_KEY", "hunter22")
    assert text(await call(apart, "key")) == "hunter22"


async def test_x5_overrides_are_on_no_command_line(apart):
    result = await call(apart, "process", overrides={"token": "hunter22"})
    line = _command_line(result.structured["pid"])
    assert "child" in line
    assert "hunter22" not in line


async def test_an_override_that_does_not_fit_is_the_error_that_it_is_here(apart):
    with pytest.raises(OverrideError) as caught:
        await apart.describe("carts_p:Cart", {"shopp": "corner"})
    assert caught.value.override == "shopp"


async def test_an_override_that_json_cannot_express_is_refused(apart):
    error = await apart.refused("carts_p:Cart", {"shop": object()})
    assert error.message == (
        "plugin 'mine' runs in a process of its own, and its overrides cannot be written as JSON: "
        "Object of type object is not JSON serializable."
    )


async def test_a_constructor_that_raises_is_reported_and_tried_anew_once_it_is_corrected(apart):
    apart.write("bad_p.py", "class Bad:\n    def __init__(self): raise OSError('full')\n    def go(self): ...\n")
    error = await apart.refused("bad_p:Bad")
    assert error.message == "plugin 'mine' could not be constructed: Bad raised OSError: full"
    apart.write("bad_p.py", "class Bad:\n    def go(self): ...\n")
    assert [tool.name for tool in (await apart.describe("bad_p:Bad")).tools] == ["go"]


async def test_a_constructor_that_ends_the_process_is_reported_with_how_it_ended(apart):
    apart.write("exit_p.py", "import os\nclass Bad:\n    def __init__(self): os._exit(7)\n    def go(self): ...\n")
    error = await apart.refused("exit_p:Bad")
    assert "Plugin 'mine' went away during the call of 'describe': it exited with code 7" in error.message


async def test_a_constructor_that_hangs_is_given_up_and_its_process_stopped(tmp_path):
    async with processes(constructed_within=1.5) as source:
        workshop = Workshop(tmp_path)
        workshop.source = source  # type: ignore[assignment]
        told = tmp_path / "pid"
        workshop.write(
            "hang_p.py",
            f"import os, time\nclass Slow:\n    def __init__(self):\n"
            f"        open({str(told)!r}, 'w').write(str(os.getpid())); time.sleep(600)\n    def go(self): ...\n",
        )
        error = await workshop.refused("hang_p:Slow")
        assert error.message == "plugin 'mine' was not constructed within 1.5 s: it is stopped."
        assert _gone(int(told.read_text()))


async def test_a_cancelled_call_is_cancelled_in_the_process(apart, tmp_path):
    told = tmp_path / "told"
    await apart.describe("carts_p:Cart")
    waiting = asyncio.create_task(call(apart, "wait", {"file": str(told)}))
    await asyncio.wait({waiting}, timeout=0.5)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await until(told.exists)
    assert text(await call(apart, "add", {"item": "apple"})) == '["apple"]'


async def test_calls_of_one_scope_run_beside_each_other(apart, tmp_path):
    waiting = asyncio.create_task(call(apart, "wait", {"file": str(tmp_path / "told")}))
    results = await asyncio.gather(*(call(apart, "add", {"item": str(number)}) for number in range(20)))
    assert max(text(result).count(",") for result in results) == 19
    waiting.cancel()


async def test_a_process_ends_with_the_process_that_started_it(tmp_path):
    (tmp_path / "carts_p.py").write_text(CART)
    (tmp_path / "host.py").write_text(
        "import asyncio, os\n"
        "from sources.test_plugin_process import Workshop, call, processes\n"
        "from pathlib import Path\n"
        "async def main():\n"
        "    async with processes() as source:\n"
        f"        apart = Workshop(Path({str(tmp_path)!r}))\n"
        "        apart.source = source\n"
        "        print((await call(apart, 'process')).structured['pid'], flush=True)\n"
        "        os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    tests = str(Path(__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": tests}
    host = await asyncio.to_thread(
        subprocess.run, [sys.executable, str(tmp_path / "host.py")], env=env, capture_output=True, check=False
    )
    assert host.returncode == -signal.SIGKILL, host.stderr.decode()
    await until(lambda: _gone(int(host.stdout)))


GUARDED = """
from pegboard import tool

def refuse(principal, arguments):
    return f"{principal} may not" if arguments["path"] == "secret" else None

def decide(principal, arguments):
    if arguments["path"] == "boom":
        raise OSError("no rule")
    return "it is large" if arguments["path"] == "large" else False

def open_now(principal, agent, sub_app):
    return True if principal == "alice" else f"{principal} has no seat."

@tool(guard=refuse, requires_confirmation=decide)
def read(path: str) -> str:
    return path

@tool(is_available=open_now)
def sit() -> str:
    return "sat"

def is_available(principal, agent, sub_app):
    return agent != "nobody"

def policy(members):
    return "Use " + ", ".join(members)

def focus(message, tools):
    return {"tools": tools[:1], "choice": "required"}

def broken(*_):
    raise KeyError("seat")
"""


@pytest.fixture
def guarded(apart):
    apart.write("guarded_p.py", GUARDED)
    return apart


async def hooks(apart, path):
    spec = apart.spec("guarded_p")
    tool = next(each for each in (await apart.source.describe(spec, {})).tools if each.name == "read")
    return await apart.source.ask_hooks(spec, {}, tool, {"path": path}, by("alice"))


async def test_t10_the_guard_of_a_function_runs_in_its_process(guarded):
    assert (await hooks(guarded, "secret")).refused == "read was refused by its guard: alice may not"
    refused = await call(guarded, "read", {"path": "secret"}, target="guarded_p")
    assert refused.meta == {"pegboard/refused_by": "guard"}
    assert text(await call(guarded, "read", {"path": "open"}, target="guarded_p")) == "open"


async def test_a1_the_approval_hook_of_a_function_runs_in_its_process(guarded):
    assert (await hooks(guarded, "large")).approval == "it is large"
    assert (await hooks(guarded, "small")).approval == ""
    assert (await hooks(guarded, "boom")).approval == "its hook failed with OSError"


async def test_t12_predicates_are_asked_in_the_process(guarded):
    spec = guarded.spec("guarded_p")

    async def holds(condition, *who):
        return await guarded.source.holds(spec, {}, condition, *who, scope="user:alice")

    tools = {tool.name: tool.when for tool in (await guarded.source.describe(spec, {})).tools}
    assert tools["sit"] == ("is_available sit", "is_available")
    assert await holds("is_available sit", "alice", "a", None) is True
    assert await holds("is_available sit", "bob", "a", None) == "bob has no seat."
    assert await holds("is_available", "bob", "nobody", None) == "Its condition is not met now."


async def test_t6_f3_hooks_of_the_configuration_in_the_module_of_a_plugin_are_asked_in_its_process(guarded):
    source, spec = guarded.source, guarded.spec("guarded_p", when={"": "rules_p:open"})
    await source.retain([spec])
    assert source.owner("guarded_p:policy") == source.owner("rules_p:open") == spec
    assert source.owner("elsewhere:policy") is None
    assert await source.ask_hook(spec, "guarded_p:policy", ["a", "b"]) == "Use a, b"
    assert await source.ask_hook(spec, "guarded_p:focus", "hello", ["a", "b"]) == {"tools": ["a"], "choice": "required"}
    with pytest.raises(Exception, match="'seat'") as caught:
        await source.ask_hook(spec, "guarded_p:broken", "hello", [])
    assert type(caught.value).__name__ == "KeyError"
    with pytest.raises(Exception, match="nowhere_p"):
        await source.prepare_hook(spec, "nowhere_p:rule")
    assert not {"guarded_p", "rules_p"} & sys.modules.keys()


async def test_g9_a_configuration_without_the_plugin_stops_its_processes(apart):
    spec = apart.spec("carts_p:Cart")
    await apart.source.retain([spec])
    pid = (await call(apart, "process")).structured["pid"]
    await apart.source.retain([spec])
    assert (await call(apart, "process")).structured["pid"] == pid
    await apart.source.retain([replace(spec, target="carts_p")])
    await until(lambda: _gone(pid))


FILE = RegisteredSpec(name="file", loader="agno:agno.tools.file.file:FileTools")


async def test_a7_a_toolkit_of_agno_runs_in_a_process_of_its_own(tmp_path):
    async with processes() as source:
        given = {"base_dir": str(tmp_path)}
        manifest = await source.describe(FILE, given)
        save = next(tool for tool in manifest.tools if tool.name == "save_file")
        await source.call(FILE, given, save, {"contents": "hello", "file_name": "a.txt"}, by("alice"))
        assert (tmp_path / "a.txt").read_text() == "hello"


STATEFUL = '''
from agno.tools import Toolkit

class Counter(Toolkit):
    def __init__(self):
        super().__init__(name="counter", tools=[self.count])

    def count(self, run_context) -> str:
        """Count."""
        state = run_context.session_state
        state["n"] = state.get("n", 0) + 1
        return f"{run_context.user_id} {state['n']}"
'''


async def test_g9_the_session_state_of_a_toolkit_is_in_the_store_and_outlives_its_process(apart):
    apart.write("counter_p.py", STATEFUL)
    store = MemoryStore()
    context = by("alice", agent="main", session="s1")
    for expected in ("alice 1", "alice 2"):
        async with processes(store=store) as source:
            apart.source = source
            found = await call(apart, "count", target="counter_p:Counter", context=context)
            assert text(found) == expected


async def test_a_toolkit_that_keeps_its_data_in_a_file_of_pegboards_is_unavailable():
    spec = RegisteredSpec(name="scheduler", loader="agno:agno.tools.scheduler:SchedulerTools")
    async with processes() as source:
        with pytest.raises(ToolUnavailableError, match="no confined plugin can reach") as caught:
            await source.describe(spec, {})
    assert caught.value.hint == "Remove its `confine`."


async def test_a_credential_that_is_set_here_alone_is_reported_with_the_line_that_lets_it_through(apart, monkeypatch):
    monkeypatch.setenv("CART_KEY", "x")
    apart.write("key_p.py", "import os\nif 'CART_KEY' not in os.environ: raise ValueError('CART_KEY is not set.')\n")
    error = await apart.refused("key_p")
    assert error.hint == "Let the process of the plugin have it: `needs: {env: [CART_KEY]}`."


def _command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True
