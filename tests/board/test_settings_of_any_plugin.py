"""What the configuration says of plugins that it did not write: registered ones, those of packages, servers."""

import json
from pathlib import Path

import pytest

from pegboard import Pegboard, Session
from pegboard.config.inspection import inspect, load
from pegboard.configuration_source import registered_plugins
from pegboard.errors import ConfigError
from sdk_servers import sdk_command

REGISTERED = """
store: "memory:"
plugins:
  shell:
    category: Terminal
    description: Run programs.
    guards: {run_shell_command: {args: {deny: ["rm*"]}}}
    policy: {run_shell_command: "Say what you run with {tools}."}
    requires: {run_shell_command: [calculator/add]}
  calculator: {needs: {multiply: {env: [ABACUS]}}}
agents:
  ada: {tools: [shell], discoverable: [calculator]}
"""
SERVED = """
store: "memory:"
servers:
  up:
    command: COMMAND
    args: ARGUMENTS
    policy: {add: "Use {tools} for sums."}
    needs: {echo: {env: [NO_SUCH_VARIABLE]}}
    requires: {add: [slow]}
agents:
  ada: {tools: [up__add, up__echo], discoverable: [up]}
"""


async def opened(board: Pegboard) -> Session:
    return await board.session(agent="ada", session_id="thread")


def written(folder: Path, text: str) -> Path:
    path = folder / "pegboard.yaml"
    path.write_text(text)
    return path


async def test_a_registered_plugin_is_guarded_like_any_other(tmp_path: Path) -> None:
    """T10: `plugins: {shell: {guards: …}}` without `python:`."""
    async with Pegboard.open(written(tmp_path, REGISTERED), env={}) as board:
        ada = await opened(board)
        refused = await ada.call("run_shell_command", {"args": ["rm", "-r", "/"]})
        assert refused.status == "refused"
        assert "(guards.run_shell_command.args.deny)" in refused.message
        answer = await ada.call("run_shell_command", {"args": ["echo", "hello"]})
        assert answer.result.content[0]["text"].strip() == "hello"


async def test_a_registered_plugin_takes_category_description_policy_and_what_its_tools_require(tmp_path: Path) -> None:
    """T10, T6, T8: the other settings of a plugin."""
    async with Pegboard.open(written(tmp_path, REGISTERED), env={}) as board:
        surface = await (await opened(board)).surface()
        assert surface.policy.strip() == "Say what you run with run_shell_command."
        assert [(out.tool.wire, out.because[0].value) for out in surface.tools if out.tool.plugin == "calculator"] == [
            ("add", "required")
        ]
        shell = board.world.catalog.plugins["shell"]
        assert (shell.category, shell.description) == ("Terminal", "Run programs.")


async def test_a_tool_of_a_registered_plugin_needs_what_the_file_says(tmp_path: Path) -> None:
    """T10, P6: with the variable it is there."""
    path = written(tmp_path, REGISTERED)
    async with Pegboard.open(path, env={}) as board:
        ada = await opened(board)
        assert (await ada.load("calculator")).items[0].status == "tool_unavailable"
        answer = await ada.call("multiply", {"a": 2, "b": 3})
        assert answer.status == "tool_unavailable"
        assert answer.message.endswith("Set the environment variable ABACUS.")
    async with Pegboard.open(path, env={"ABACUS": "1"}) as board:
        ada = await opened(board)
        await ada.load("calculator")
        assert "6" in (await ada.call("multiply", {"a": 2, "b": 3})).result.content[0]["text"]


async def test_a_registered_plugin_is_off_until_it_is_switched_on(tmp_path: Path) -> None:
    """T10, P2: `default_on: false`."""
    text = "store: 'memory:'\nplugins: {sleep: {default_on: false}}\nagents: {ada: {tools: [sleep]}}\n"
    async with Pegboard.open(written(tmp_path, text), env={}) as board:
        ada = await opened(board)
        assert (await ada.surface()).names == ()
        await board.permissions.set("ada", "sleep", True)
        assert (await ada.surface()).names == ("sleep",)


async def test_a_misspelt_guard_of_a_registered_plugin_offers_nothing(tmp_path: Path) -> None:
    """T10, P6: as of any plugin of this process."""
    text = REGISTERED.replace("guards: {run_shell_command", "guards: {run_shel_command")
    async with Pegboard.open(written(tmp_path, text), env={}) as board:
        ada = await opened(board)
        assert "run_shell_command" not in (await ada.surface()).names
        assert "Did you mean 'run_shell_command'?" in (await ada.load("shell")).items[0].message


def test_a_registered_plugin_may_be_marked_as_shared_only(tmp_path: Path) -> None:
    """T10, P5: an agent that works apart cannot have it, and one that the file frees can be had."""
    marked = "plugins: {shell: {shared_only: true}}\nagents: {ada: {tools: [shell], worker_scope: user}}\n"
    with pytest.raises(ConfigError, match="'shell' works only where it is shared"):
        load(written(tmp_path, marked), registered=registered_plugins())
    freed = marked.replace("shell", "spotify").replace("true", "false")
    assert inspect(written(tmp_path, freed), registered=registered_plugins())[0] is not None


async def test_the_tools_of_a_server_take_policy_needs_and_requirements_too(tmp_path: Path) -> None:
    """T10: every setting for every kind of plugin."""
    command, *arguments = sdk_command("sdk_server.py", "stdio")
    text = SERVED.replace("COMMAND", command).replace("ARGUMENTS", json.dumps(arguments))
    async with Pegboard.open(written(tmp_path, text), env={"PATH": "/usr/bin"}) as board:
        ada = await opened(board)
        assert (await ada.call("up__add", {"a": 1, "b": 2})).status == "ok"
        surface = await ada.surface()
        assert surface.policy.strip() == "Use up__add for sums."
        assert {"up__add", "up__slow"} <= set(surface.names)
        assert "up__echo" not in surface.names
        assert "NO_SUCH_VARIABLE" in (await ada.call("up__echo", {"text": "x"})).message
