"""`pegboard accept`: what waits counts when a person, or an operator's token with the right, says so."""

from pathlib import Path

import pytest
from command_support import Run

from terminals import Terminal

CONFIG = """\
reload: ask
tokens:
  root: {token: root-root-root-root-root, agents: ["*"], console: [see, configure]}
  eve: {token: eve-eve-eve-eve-eve-eve, agents: ["*"], console: [see, switch]}
agents: {ada: {tools: [file, calculator], permissions: {calculator: false}}}
"""
HOW = "and apply once `pegboard accept` or the console accepts it"


def test_what_waits_is_accepted_by_the_right_alone_and_on_record(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P10, A5: nothing is by a token without the right, or by none of the file's."""
    (folder / "pegboard.yaml").write_text(CONFIG)
    assert run("accept").out == "Nothing waits for a person.\n"
    (folder / "pegboard.yaml").write_text(CONFIG.replace("permissions: {calculator: false}", ""))
    assert "add" not in [tool["name"] for tool in run("surface", "--agent", "ada", "--json").json["tools"]]
    waits = "pegboard: edits of pegboard.yaml that grant more wait for a person, "
    assert run("tools").err == f"{waits}{HOW}: agents.ada.permissions.calculator\n"
    for token in ("eve-eve-eve-eve-eve-eve", "nobody"):
        monkeypatch.setenv("PEGBOARD_OPERATOR_TOKEN", token)
        refused = run("accept", "--json")
        assert (refused.code, refused.json["error"]["code"]) == (4, "needs_operator")
        monkeypatch.setenv("PEGBOARD_OPERATOR_TOKEN", token)
        assert "waits: agents.ada.permissions.calculator: false → absent\n" in run("accept").err
    monkeypatch.setenv("PEGBOARD_OPERATOR_TOKEN", "root-root-root-root-root")
    said = run("accept")
    assert (said.code, said.out) == (0, "accepted: agents.ada.permissions.calculator: false → absent\n")
    assert "add" in [tool["name"] for tool in run("surface", "--agent", "ada", "--json").json["tools"]]
    assert (run("accept", "--json").json, run("tools").err) == ([], "")
    record = run("audit", "--kind", "permission", "--json").json[0]
    assert (record["subject"], record["by"], record["outcome"]) == (
        "agents.ada.permissions.calculator", "root", "wider",
    )  # fmt: skip


def test_a_switch_is_set_and_shown_for_one_principal(run: Run, folder: Path) -> None:
    """P2: beside the agent's own."""
    (folder / "pegboard.yaml").write_text("agents: {ada: {tools: [calculator]}}")
    said = run("permissions", "set", "calculator", "false", "--principal", "eve")
    assert said.out == "'calculator' is off for agent 'ada' and principal 'eve'.\n"
    for principal, there in (("eve", False), ("bob", True)):
        names = [tool["name"] for tool in run("surface", "--principal", principal, "--json").json["tools"]]
        assert ("add" in names) is there
    for principal, state in ((("--principal", "eve"), "off"), (("--principal", "bob"), "on"), ((), "on")):
        rows = [line.split() for line in run("permissions", "show", *principal).out.splitlines()]
        assert [state in row for row in rows if row[:3] == ["ada", "plugin", "calculator"]] == [True], principal
        panel = run("permissions", "show", "--json", "--panel", *principal).json["ada"]
        assert [row["on"] for row in panel if row["name"] == "calculator"] == [state == "on"]
    assert run("permissions", "show", "--json").json == {"ada": {}}
    assert run("permissions", "show", "--principal", "eve", "--json").json == {"ada": {"calculator": False}}


def test_a_file_that_something_confined_may_write_is_shown_with_what_differs(
    run: Run, folder: Path, terminal: Terminal
) -> None:
    """A7, X5: lines of code and of a configuration without secrets, of variables the names."""
    server = "{command: /nowhere/server, envFile: values.env, confine: true, env: {API_KEY: hunter22hunter22}}"
    config = f"servers: {{box: {server}}}\nplugins: {{mine: {{python: mine}}}}\nagents: {{ada: {{tools: [mine]}}}}\n"
    (folder / "pegboard.yaml").write_text(config)
    (folder / "values.env").write_text("TOKEN=hunter23hunter23\n")
    (folder / "mine.py").write_text("def one() -> str:\n    return 'before'\n")
    assert run("tools").code == 0
    (folder / "mine.py").write_text("def one() -> str:\n    return 'after'\n")
    (folder / "values.env").write_text("TOKEN=hunter24hunter24\nMORE=x\n")
    (folder / "pegboard.yaml").write_text(
        config.replace("hunter22hunter22", "hunter25hunter25").replace("ada:", "eve:")
    )
    said = run("accept")
    assert said.code == 0
    shown = terminal.asked.replace("\r", "")
    for line in (
        "mine.py: changed",
        "  -    return 'before'",
        "  +    return 'after'",
        "  MORE: new",
        "  TOKEN: another value",
    ):
        assert line in shown
    assert "hunter2" not in shown + said.out + said.err
    assert (run("accept").out, run("call", "one", "--agent", "eve").out.strip()) == (
        "Nothing waits for a person.\n",
        "after",
    )
