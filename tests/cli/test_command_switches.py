"""`pegboard permissions` and `check`, as operators of switches use them."""

import getpass
import json
import sys
from pathlib import Path

import pytest
from command_support import Run

SERVER = Path(__file__).parent.parent / "servers" / "plain_server.py"
EVOLUTION = '''
from pegboard import tool


@tool(policy="Commit only what was reviewed.")
def github_commit_push(message: str) -> str:
    """Commit and push."""
    return message


@tool(factory=True)
def made() -> list[object]:
    def github_merge(number: int) -> str:
        """Merge."""
        return str(number)

    return [github_merge]
'''


def sea(folder: Path, permissions: dict[str, object], **more: object) -> None:
    (folder / "evolution.py").write_text(EVOLUTION)
    plugins = {"evolution": {"python": "evolution"}, "made": {"python": "evolution:made"}}
    kits = {"self_evolution_toolkit": {"tools": ["github_commit_push"]}}
    agent = {
        "allowed_toolkits": ["self_evolution_toolkit"],
        "discoverable": ["csv"],
        "permissions": {"query_csv_file": False, **permissions},
    }
    document = {"plugins": plugins, "toolkits": kits, "agents": {"sea": agent}, **more}
    (folder / "pegboard.yaml").write_text(json.dumps(document))


def test_right_switches_of_single_tools_pass_a_strict_check(run: Run, folder: Path) -> None:
    """P2: tools of a module with marks, of a factory, and of a toolkit of Agno that nothing has constructed."""
    names = ("self_evolution_toolkit", "github_commit_push", "github_merge", "made/github_merge", "read_csv_file")
    sea(folder, dict.fromkeys(names, True))
    assert run("check", "--strict", "--json").json == {"ok": True, "problems": []}


def test_a_switch_of_a_name_that_no_plugin_can_have_fails_a_strict_check(run: Run, folder: Path) -> None:
    """P2: what is not in the source of the toolkit is not one of its tools."""
    sea(folder, {"github_comit_push": True, "read_csv_fil": False})
    ran = run("check", "--strict", "--json")
    assert ran.code == 1
    assert [problem["path"] for problem in ran.json["problems"]] == [
        "agents.sea.permissions.github_comit_push",
        "agents.sea.permissions.read_csv_fil",
    ]
    assert "Did you mean 'github_commit_push'?" in ran.out


def test_a_switch_of_a_tool_whose_server_has_a_manifest_passes_a_strict_check(run: Run, folder: Path) -> None:
    """P2, G8: by its bare name, also where the server is not started; a wrong name does not pass."""
    servers = {"plain": {"command": sys.executable, "args": [str(SERVER)]}}
    sea(folder, {"echo": False, "plain__echo": False}, servers=servers)
    assert run("check", "--strict").code == 1, "nobody has seen the server yet"
    assert run("call", "plain__echo", "{}", "--agent", "sea").code == 3
    listed = run("tools", "--json")
    assert "plain__echo" in [tool["name"] for tool in listed.json], listed
    odd = ("--seen", "tool_excluded")  # it lists some tools in forms that cannot be used
    assert run("check", "--strict", *odd, "--json").json == {"ok": True, "problems": [], "seen": 1}
    sea(folder, {"ecko": False}, servers=servers)
    assert [problem["code"] for problem in run("check", *odd, "--json").json["problems"]] == ["unknown_switch"]


def test_a_tool_of_agno_is_switched_by_its_name(run: Run, folder: Path) -> None:
    """P2: the toolkit is constructed to learn the names of its tools, where nothing else has the name."""
    sea(folder, {})
    assert run("permissions", "set", "read_csv_file", "false", "--agent", "sea").code == 0
    refused = run("permissions", "set", "read_csv_fil", "false", "--agent", "sea")
    assert (refused.code, "is not a toolkit, plugin or tool" in refused.err) == (3, True)


def test_a_switch_that_was_set_before_its_plugin_was_loaded_stands_beside_its_tool(run: Run, folder: Path) -> None:
    """P2: of the file and at run time; what is switched is known though nothing has loaded it."""
    sea(folder, {})
    assert switch_of(run, "csv", "query_csv_file") == ("tool", False, False, "denied_switch")
    assert run("permissions", "set", "read_csv_file", "false", "--agent", "sea").code == 0
    assert switch_of(run, "csv", "read_csv_file") == ("tool", False, False, "denied_switch")


def switch_of(run: Run, plugin: str, tool: str) -> tuple[str, bool | None, bool, str]:
    """Return kind, switch, state and reason of a tool on the panel, below its plugin."""
    (row,) = [row for row in run("permissions", "show", "--json", "--panel").json["sea"] if row["name"] == plugin]
    (own,) = [one for one in row["members"] if one["name"] == tool]
    return own["kind"], own["switch"], own["on"], own["reason"]["code"]


def test_a_switch_of_a_tool_that_nobody_knows_yet_is_said_to_bind_as_soon_as_it_is_there(
    run: Run, folder: Path
) -> None:
    """P2: a server that was not reached yet may have the tool; once it is, the switch counts."""
    servers: dict[str, dict[str, object]] = {"plain": {"command": "not-there"}}
    sea(folder, {}, servers=servers)
    assert run("permissions", "set", "plain__echo", "false", "--agent", "sea").code == 0
    (row,) = [row for row in run("permissions", "show", "--json", "--panel").json["sea"] if row["kind"] == "unknown"]
    assert (row["name"], row["switch"]) == ("plain__echo", False)
    assert row["reason"]["text"] == "Nothing with this name is known yet; the switch applies as soon as there is."
    servers["plain"] = {"command": sys.executable, "args": [str(SERVER)]}
    sea(folder, {"plain": True}, servers=servers)
    assert run("accept").code == 0
    explained = run("explain", "plain__echo", "--agent", "sea", "--json").json
    assert (explained["permitted"], explained["reasons"][0]["code"]) == (False, "denied_switch")
    assert run("explain", "plain__slow", "--agent", "sea", "--json").json["permitted"]


def test_the_command_says_who_sets_a_switch(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """X4: ``--by``, else the user of the system, else ``local``."""
    agent = ("--agent", "assistant")
    assert run("permissions", "set", "pads", "false", *agent, "--by", "ada").code == 0
    assert run("permissions", "set", "pads", "unset", *agent).code == 0
    own = getpass.getuser()
    monkeypatch.setattr(getpass, "getuser", nobody)
    assert run("permissions", "set", "pads", "true", *agent).code == 0
    trail = run("audit", "--kind", "permission", "--json").json
    assert [(entry["by"], entry["decision"]) for entry in trail] == [("local", "on"), (own, "unset"), ("ada", "off")]
    assert "ada" in run("audit").out
    refused = run("permissions", "set", "pads", "true", *agent, "--by", "")
    assert (refused.code, "`by` is empty." in refused.err) == (2, True)


def nobody() -> str:
    raise OSError("no user name can be found")


def test_what_can_be_switched_is_a_table_for_people_and_a_panel_for_scripts(run: Run, project: Path) -> None:
    """T6: `show --json` stays the switches in force."""
    out = run("permissions", "show", "--agent", "assistant").out
    lines = {line.split()[2]: line.split() for line in out.splitlines()[2:]}
    assert lines["writing"][1:6] == ["toolkit", "writing", "on", "on", "Toolkit"]
    assert lines["broken"][1:6] == ["tool", "broken", "on", "off", "off"]
    assert lines["add_note"][1] == "tool"
    assert run("permissions", "show", "--json").json == {"assistant": {"broken": False}, "opener": {}}
    panels = run("permissions", "show", "--json", "--panel").json
    assert [row["name"] for row in panels["assistant"]] == ["writing", "notes"]
    assert panels["assistant"][1]["members"][0]["reason"]["code"] == "granted_static"


def test_the_command_opens_the_sub_apps_that_the_agent_lists(run: Run, project: Path) -> None:
    """T9: `--sub-app`; another name is not found, whether or not there is one."""
    text = (project / "pegboard.yaml").read_text()
    text = text.replace("    permissions: {broken: false}", "    sub_apps: [reading]\n    permissions: {broken: false}")
    (project / "pegboard.yaml").write_text(
        text + "sub_apps: {reading: {tool_names: [pad]}, more: {tool_names: [pad]}}\n"
    )
    agent = ("--agent", "assistant")
    names = [tool["name"] for tool in run("surface", *agent, "--sub-app", "reading", "--json").json["tools"]]
    assert "pad" in names
    assert run("call", "pad", '{"text": "x", "width": 3}', *agent, "--sub-app", "reading").out == "  x\n"
    assert run("explain", "pad", *agent, "--sub-app", "reading", "--json").json["callable"]
    assert not run("explain", "pad", *agent, "--json").json["callable"]
    for name in ("more", "no\nsuch", "", "x" * 300):
        refused = run("surface", *agent, "--sub-app", name)
        assert (refused.code, refused.out) == (3, "")
        assert refused.err.startswith("pegboard: Agent 'assistant' has no sub-app '")
        assert len(refused.err.splitlines()) == 1


def test_a_switch_is_set_for_all_agents_at_once(run: Run, folder: Path) -> None:
    """P2, X4: their records share a mark; beside one agent or principal it is refused."""
    (folder / "pegboard.yaml").write_text(
        "plugins: {clock: {python: pegboard.quickstart.clock}}\nagents: {a: {tools: [clock]}, b: {tools: [clock]}}\n"
    )
    ran = run("permissions", "set", "clock", "false", "--all-agents", "--by", "ada")
    text = " ".join(ran.out.split())
    assert (ran.code, "'clock' is off for all 2 agents; 2 changed." in text) == (0, True)
    switches = json.loads(run("permissions", "show", "--json").out)
    assert switches == {"a": {"clock": False}, "b": {"clock": False}}
    records = json.loads(run("audit", "--json").out)
    assert {(one["agent"], one["by"]) for one in records} == {("a", "ada"), ("b", "ada")}
    (reason,) = {one["reason"] for one in records}
    assert reason in text
    again = run("permissions", "set", "clock", "false", "--all-agents")
    assert "0 changed" in again.out
    refused = run("permissions", "set", "clock", "false", "--all-agents", "--agent", "a")
    assert (refused.code, "sets every agent" in refused.err) == (2, True)
