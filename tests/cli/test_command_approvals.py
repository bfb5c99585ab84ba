"""`pegboard approvals`: what waits for a person is shown, allowed, refused and taken back."""

from pathlib import Path

import pytest
from command_support import ERROR, Run, misfits

TOOLS = '''
from pathlib import Path

from pegboard import tool


@tool(requires_confirmation=True)
def delete_file(path: str) -> str:
    """Delete a file."""
    Path(path).unlink()
    return f"deleted {path}"


@tool(user_input_fields=["code"])
def pay(amount: int, code: str) -> str:
    """Pay an amount."""
    return f"paid {amount} with {code}"


@tool(external_execution=True)
def sign(text: str) -> str:
    """Sign a text."""
    return text


__all__ = ["delete_file", "pay", "sign"]
'''
CONFIG = """
store: sqlite:///state.db
plugins: {files: {python: files_tools}}
agents: {assistant: {tools: [files]}}
"""
NUMBER = (int, float, type(None))
SHAPE = {
    "id": str, "tool": str, "kind": str, "status": str, "reason": str, "arguments": dict, "fields": dict, "lasts": str,
    "turn": int, "asked_at": NUMBER, "expires_at": NUMBER, "decided_at": NUMBER, "by": str, "message": str,
    "decider": str, "elicited": bool, "principal": str, "agent": str, "session": str,
}  # fmt: skip


@pytest.fixture
def files(folder: Path) -> Path:
    (folder / "files_tools.py").write_text(TOOLS)
    (folder / "pegboard.yaml").write_text(CONFIG)
    (folder / "victim.txt").write_text("precious")
    return folder


def waiting(run: Run, *call: str) -> str:
    """Return the id of the approval that a call waits for."""
    ran = run("call", *(call or ("delete_file", '{"path": "victim.txt"}')), "--json")
    assert (ran.code, ran.json["status"]) == (4, "needs_approval")
    return ran.json["structured"]["approval"]["id"]


def test_a_call_waits_is_shown_is_allowed_and_runs_once(run: Run, files: Path) -> None:
    """T13, A3: each in a process of its own; the file is there until someone allows the call."""
    asked = run("call", "delete_file", '{"path": "victim.txt"}')
    assert asked.code == 4
    assert "'delete_file' needs the approval of a person and was not called" in asked.err
    approval = waiting(run)
    assert (files / "victim.txt").exists()
    listed = run("approvals", "list")
    assert approval in listed.out
    assert '{"path": "victim.txt"}' in listed.out
    shown = run("approvals", "list", approval)
    assert "its source says that a person confirms it" in shown.out
    allowed = run("approvals", "allow", approval, "--by", "grace")
    assert allowed.code == 0
    assert allowed.out.startswith("'delete_file': this call may run once, until ")
    assert run("call", "delete_file", '{"path": "victim.txt"}').out == "deleted victim.txt\n"
    assert not (files / "victim.txt").exists()
    again = waiting(run)
    assert again != approval
    assert run("approvals", "refuse", again, "--by", "grace", "--reason", "It is gone.").code == 0
    refused = run("call", "delete_file", '{"path": "victim.txt"}')
    assert "'delete_file' was not called. grace refused it: It is gone.\n" in refused.err
    assert run("approvals", "list").out == "No call waits for a person.\n"
    kinds = [(record["decision"], record["outcome"]) for record in run("audit", "--kind", "approval", "--json").json]
    assert kinds[-1:0:-1] == [("asked", approval), ("allowed", approval), ("used", approval), ("asked", again)]


def test_json_has_every_part_of_an_approval(run: Run, files: Path) -> None:
    """A3: `list` prints a list, `allow` and `refuse` the approval; no digest among it."""
    approval = waiting(run)
    (listed,) = run("approvals", "list", "--json").json
    assert misfits(listed, SHAPE) == []
    assert (listed["id"], listed["arguments"], listed["session"]) == (approval, {"path": "victim.txt"}, "default")
    allowed = run("approvals", "allow", approval, "--by", "grace", "--for", "session", "--json").json
    assert misfits(allowed, SHAPE) == []
    assert (allowed["status"], allowed["lasts"], allowed["by"], allowed["expires_at"]) == (
        "allowed", "session", "grace", None
    )  # fmt: skip
    refused = run("approvals", "refuse", approval, "--reason", "No.", "--json").json
    assert misfits(refused, SHAPE) == []
    assert (refused["status"], refused["message"]) == ("refused", "No.")
    assert refused["by"]
    assert run("approvals", "list", "--json").json == []
    assert [one["status"] for one in run("approvals", "list", "--all", "--json").json] == ["refused"]


def test_for_a_session_and_always_are_an_operators_to_give_and_to_take_back(run: Run, files: Path) -> None:
    """A3: shown with what lasts."""
    approval = waiting(run)
    told = run("approvals", "allow", approval, "--for", "always").out
    assert told == "'delete_file': every call of it by agent 'assistant' for 'local' may run.\n"
    assert run("call", "delete_file", '{"path": "victim.txt"}', "--session", "other").out == "deleted victim.txt\n"
    assert "always" in run("approvals", "list").out
    assert run("approvals", "refuse", approval).code == 0
    (files / "other.txt").write_text("precious")
    waiting(run, "delete_file", '{"path": "other.txt"}', "--session", "other")
    assert (files / "other.txt").exists()


def test_what_is_wrong_is_answered_with_one_error(run: Run, files: Path) -> None:
    """A2: unknown, used up, of another kind, misspelt."""
    for arguments, code, exit_code in (
        (("allow", "unheard-of"), "unknown_approval", 3),
        (("list", "unheard-of"), "unknown_approval", 3),
        (("refuse", "unheard-of"), "unknown_approval", 3),
        (("allow", waiting(run, "sign", '{"text": "x"}')), "approval_kind", 3),
        (("allow", waiting(run, "pay", '{"amount": 3}'), "--fields", "[1]"), "usage", 2),
        (("allow", waiting(run, "pay", '{"amount": 3}'), "--fields", '{"cod": 1}'), "bad_fields", 2),
        (("allow", waiting(run), "--by", " "), "usage", 2),
        (("allow", waiting(run), "--for", "ever"), "usage", 2),
    ):
        ran = run("approvals", *arguments, "--json")
        assert (ran.code, ran.json["error"]["code"]) == (exit_code, code), arguments
        assert misfits(ran.json, ERROR) == []
    assert (files / "victim.txt").exists()


def test_fields_are_filled_in_by_the_operator(run: Run, files: Path) -> None:
    """T13: as one JSON object."""
    approval = waiting(run, "pay", '{"amount": 3}')
    assert run("approvals", "allow", approval, "--fields", '{"code": "1234"}').code == 0
    assert run("call", "pay", '{"amount": 3}').out == "paid 3 with 1234\n"


def test_the_approvals_of_a_deleted_session_are_gone(run: Run, files: Path) -> None:
    """A2: also where the session had stored nothing else."""
    approval = waiting(run)
    assert run("approvals", "allow", approval).code == 0
    assert run("session", "delete", "--session", "default").code == 0
    assert run("approvals", "list").out == "No call waits for a person.\n"
    ran = run("approvals", "allow", approval, "--json")
    assert ran.json["error"]["message"] == f"There is no approval '{approval}'."
    waiting(run)
    assert (files / "victim.txt").exists()
