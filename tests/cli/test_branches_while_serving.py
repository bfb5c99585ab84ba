"""`pegboard serve` in a checkout: a branch with a stranger's command is checked out while it runs."""

import json
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from command_serving import serving, url_in
from mcp import Client

from pegboard import Pegboard
from pegboard.core.principals.bearer_tokens import token_of

PLAIN: dict[str, Any] = {
    "store": "sqlite:///state/pegboard.db",
    "agents": {"ada": {"tools": ["calculator"], "discoverable": ["*"]}, "bob": {"tools": ["calculator"]}},
}
OTHERS: dict[str, Any] = {
    "agents": {"ada": {"tools": ["calculator", "diff"], "discoverable": ["*"]}, "bob": {"tools": ["diff"]}}
}
"""What else the branch edits."""
MODULE = """
from pathlib import Path

Path({marker!r}).touch()


def brought(text: str = "") -> str:
    "Return nothing."
    return ""


def hook(*given: object) -> str:
    return "yes"
"""


def brings(marker: Path) -> dict[str, dict[str, Any]]:
    """Return what a branch may bring that would touch the marker."""
    return {
        "command": {"servers": {"new": {"command": "touch", "args": [str(marker)]}}},
        "reference": {"servers": {"new": {"command": "true", "env": {"A": f"${{cmd:touch {marker}}}"}}}},
        "module": {"plugins": {"new": {"python": "brought"}}},
        "hook": {"toolkits": {"new": {"tools": ["diff"], "policy": {"python": "brought:hook"}}}},
    }


def git(*words: str) -> None:
    who = ["-c", "user.name=ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", *who, *words], check=True, capture_output=True)


def branch(folder: Path, files: dict[str, str]) -> None:
    """Make the repository, on a branch `main` what is there and on a branch `other` these files; stay on `main`."""
    (folder / ".gitignore").write_text("state\nuser-*\n__pycache__\n")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "Plain"), ("checkout", "-qb", "other")):
        git(*words)
    for name, text in files.items():
        (folder / name).write_text(text)
    for words in (("add", "."), ("commit", "-qm", "Other"), ("checkout", "-q", "main")):
        git(*words)


async def tools_of(url: str) -> set[str]:
    """Return the tools that an MCP client is listed, after it has searched for what is new."""
    async with Client(url) as client:
        if "search_tools" in (names := {tool.name for tool in (await client.list_tools()).tools}):
            await client.call_tool("search_tools", {"query": "new brought"})
            names |= {tool.name for tool in (await client.list_tools()).tools}
        return names


@pytest.mark.parametrize("what", ["command", "reference", "module", "hook"])
async def test_what_a_branch_would_run_waits_for_a_person_and_the_rest_of_it_counts(folder: Path, what: str) -> None:
    """P10: under `reload: live`, for two agents, while it serves and with the next start."""
    marker = folder / "user-marker"
    other = {**PLAIN, **json.loads(json.dumps(OTHERS)), **brings(marker)[what]}
    if what == "hook":
        other["agents"]["ada"] |= {"allowed_toolkits": ["new"], "initial_toolkits": ["new"]}
    (folder / "pegboard.yaml").write_text(yaml.safe_dump(PLAIN))
    branch(folder, {"pegboard.yaml": yaml.safe_dump(other), "brought.py": MODULE.format(marker=str(marker))})
    with serving("--port", "0", "--agent", "ada") as running:
        url = url_in(running.until("Pegboard serves MCP at "))
        assert "compare_files" not in await tools_of(url) | await tools_of(f"{url}/bob")
        git("checkout", "-q", "other")
        running.until("the edited pegboard.yaml is in use now, without what waits for a person.\n")
        assert (
            "edits of pegboard.yaml that grant more wait for a person, and apply once `pegboard accept`" in running.seen
        )
        assert "compare_files" in await tools_of(url)
        assert "compare_files" in await tools_of(f"{url}/bob")
        async with httpx2.AsyncClient() as client:
            assert (await client.get(url.replace("/mcp", "/healthz"))).json()["waiting"] > 0
        assert not marker.exists()
    with serving("--port", "0", "--agent", "ada") as running:
        url = url_in(running.until("Pegboard serves MCP at "))
        assert "wait for a person, and apply once `pegboard accept`" in running.seen
        await tools_of(url)
        assert not marker.exists()


async def test_under_all_a_branch_counts_at_once(folder: Path) -> None:
    """P10: who writes `reload: all` has said so; to write it into a configuration that does not say it waits."""
    marker = folder / "user-marker"
    new = brings(marker)["module"]
    (folder / "brought.py").write_text(MODULE.format(marker=str(marker)))
    path = folder / "pegboard.yaml"
    path.write_text(yaml.safe_dump(PLAIN))
    async with Pegboard.open(path) as board:
        path.write_text(yaml.safe_dump({**PLAIN, **new, "reload": "all"}))
        await board.reload()
        assert {change.name for change in board.waiting} == {"plugins.new", "reload"}
        await board.accept()
        assert board.waiting == ()
        path.write_text(yaml.safe_dump({**PLAIN, "plugins": {"other": {"python": "brought"}}, "reload": "all"}))
        await board.reload()
        assert board.waiting == ()
        path.write_text(yaml.safe_dump({**PLAIN, "plugins": {"third": {"python": "brought"}}}))
        await board.reload()
        assert {change.name for change in board.waiting} == {"plugins.third"}


@pytest.mark.parametrize(
    ("before", "after", "waits"),
    [
        ({"url": "http://127.0.0.1:9/a"}, {"url": "http://127.0.0.1:9/b"}, False),
        ({"url": "http://127.0.0.1:9/a"}, {"url": "http://127.0.0.1:9/a", "headers": {"A": "${SOME_KEY}"}}, True),
        (
            {"url": "http://127.0.0.1:9/a", "headers": {"A": "${SOME_KEY}"}},
            {"url": "http://127.0.0.1:9/b", "headers": {"A": "${SOME_KEY}"}},
            True,
        ),
        ({"url": "http://127.0.0.1:9/a"}, {"url": "http://127.0.0.1:9/a?key=${SOME_KEY}"}, True),
        ({"command": "cat", "args": ["a"]}, {"command": "cat", "args": ["b"]}, True),
        ({"command": "cat"}, {"command": "cat", "timeout": "5s"}, False),
        ({"command": "cat", "env": {"A": "${SOME_KEY}"}}, {"command": "cat", "env": {"B_NAME": "plain"}}, False),
        ({"command": "cat", "env": {"A": "plain"}}, {"command": "cat"}, False),
        ({"command": "cat", "env": {"A": "plain"}}, {"command": "cat", "env": {"A": "other"}}, True),
        ({"command": "cat"}, {"command": "cat", "env": {"BROWSER": "./brought"}}, True),
        ({"command": "cat"}, {"command": "cat", "env": {"LOG_LEVEL": "debug", "LC_ALL": "C", "PORT": "1"}}, False),
        ({"command": "cat", "env": {"PATH": "/usr/bin"}}, {"command": "cat"}, True),
        ({"command": "cat", "env": {"A": "plain"}}, {"command": "cat", "env": {"A": "${SOME_KEY}"}}, True),
        ({"command": "cat"}, {"command": "cat", "env": {"LD_PRELOAD": "./brought.so"}}, True),
        ({"command": "cat", "cwd": "."}, {"command": "cat", "cwd": ".."}, True),
        (
            {"url": "http://127.0.0.1:9/a", "headers": {"A": "Bearer plain-token"}},
            {"url": "http://127.0.0.1:8/a", "headers": {"A": "Bearer plain-token"}},
            False,
        ),
        (
            {"url": "https://one.example/a", "headers": {"A": "Bearer plain-token"}},
            {"url": "https://two.example/a", "headers": {"A": "Bearer plain-token"}},
            True,
        ),
    ],
)
async def test_what_waits_is_what_runs_other_code_or_sends_a_secret_elsewhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch, before: dict[str, Any], after: dict[str, Any], waits: bool
) -> None:
    """P10: another value of a variable is no edit of the file, and never waits."""
    path = folder / "pegboard.yaml"
    monkeypatch.setenv("SOME_KEY", "first-value")
    path.write_text(yaml.safe_dump({**PLAIN, "servers": {"one": before}}))
    async with Pegboard.open(path):
        pass
    monkeypatch.setenv("SOME_KEY", "second-value")
    async with Pegboard.open(path) as board:
        assert board.waiting == ()
        path.write_text(yaml.safe_dump({**PLAIN, "servers": {"one": after}}))
        await board.reload()
        assert [change.name for change in board.waiting] == (["plugins.one"] if waits else [])


@pytest.mark.parametrize(
    ("target", "waits"),
    [
        ("pegboard.quickstart.git", False),
        ("pegboard.quickstart.git:subprocess.getoutput", True),
        ("pegboard.quickstart.git:git_log", True),
    ],
)
async def test_only_whole_modules_of_pegboard_itself_do_not_wait(folder: Path, target: str, waits: bool) -> None:
    """P10: what such a module has imported is not its own."""
    path = folder / "pegboard.yaml"
    path.write_text(yaml.safe_dump(PLAIN))
    async with Pegboard.open(path) as board:
        path.write_text(yaml.safe_dump({**PLAIN, "plugins": {"new": {"python": target}}}))
        await board.reload()
        assert [change.name for change in board.waiting] == (["plugins.new"] if waits else [])


async def test_settings_of_a_tool_that_get_another_variable_wait(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P10: an address in them may be a stranger's."""
    path = folder / "pegboard.yaml"
    monkeypatch.setenv("SOME_KEY", "first-value")

    def text(address: str) -> str:
        agents = {"ada": {"tools": [{"sql": {"db_url": address}}]}, "bob": {"tools": ["calculator"]}}
        return yaml.safe_dump({**PLAIN, "agents": agents})

    path.write_text(text("postgresql://localhost/data?password=${SOME_KEY}"))
    async with Pegboard.open(path) as board:
        monkeypatch.setenv("SOME_KEY", "second-value")
        await board.reload()
        assert board.waiting == ()
        path.write_text(text("postgresql://example.org/data?password=${SOME_KEY}"))
        await board.reload()
        assert [change.name for change in board.waiting] == ["agents.ada.tools.sql"]
        path.write_text(text("sqlite:///plain.db"))
        await board.reload()
        assert board.waiting == ()


async def test_an_address_that_would_be_sent_messages_waits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P10: it may be a stranger's, and get a secret: another path on a host, and arguments too, are so."""
    path = folder / "pegboard.yaml"
    monkeypatch.setenv("SOME_KEY", "first-value")

    def text(*hooks: dict[str, Any]) -> str:
        return yaml.safe_dump({**PLAIN, "notify": list(hooks)})

    own = {"url": "https://hooks.example.org/${SOME_KEY}"}
    path.write_text(text(own))
    async with Pegboard.open(path) as board:
        monkeypatch.setenv("SOME_KEY", "second-value")
        await board.reload()
        assert board.waiting == ()
        assert [hook.url for hook in board.configuration.notify] == ["https://hooks.example.org/second-value"]
        others = [{"url": "https://hooks.example.org/other"}, {"url": "https://stranger.example.org/?key=${SOME_KEY}"}]
        path.write_text(text(own, *others))
        await board.reload()
        assert [change.key[:2] for change in board.waiting] == [
            ("notify", "hooks.example.org"),
            ("notify", "stranger.example.org"),
        ]
        assert [hook.written for hook in board.configuration.notify] == [own["url"]]
        path.write_text(text({**own, "arguments": True}, {**own, "shape": "slack"}))
        await board.reload()
        assert len(board.waiting) == 2
        (hook,) = board.configuration.notify
        assert (hook.url, hook.arguments) == ("https://hooks.example.org/second-value", False)
        await board.accept()
        assert [(hook.arguments, hook.shape) for hook in board.configuration.notify] == [
            (True, "json"),
            (False, "slack"),
        ]
        path.write_text(text(own))
        await board.reload()
        assert (board.waiting, [hook.arguments for hook in board.configuration.notify]) == ((), [False])


ADA = {"token": "${SOME_KEY}", "agents": ["ada"], "console": ["see"]}
STRANGER = {"token": "stranger-stranger", "agents": ["*"], "console": ["see", "configure"]}
BOB = {"bob", "bob.agents.*", "bob.console.configure", "bob.console.see"}


@pytest.mark.parametrize(
    ("before", "after", "waits"),
    [
        ({"ada": ADA}, {"ada": ADA, "bob": STRANGER}, BOB),
        ({"ada": ADA}, {"ada": {**ADA, "token": "stranger-stranger"}}, {"ada"}),
        ({"ada": ADA}, {"ada": {**ADA, "console": ["see", "configure"]}}, {"ada.console.configure"}),
        ({"ada": ADA}, {"ada": {**ADA, "agents": ["ada", "bob"]}}, {"ada.agents.bob"}),
        ({"ada": ADA}, {"ada": {**ADA, "console": False}}, set()),
        (None, {"bob": STRANGER}, BOB),
    ],
)  # fmt: skip
async def test_a_token_of_a_branch_waits(
    folder: Path, monkeypatch: pytest.MonkeyPatch, before: Any, after: Any, waits: set[str]
) -> None:
    """P10, A5: who has it could accept what the branch would run; another value of its variable is no edit."""
    path = folder / "pegboard.yaml"
    monkeypatch.setenv("SOME_KEY", "first-value-first-value")
    path.write_text(yaml.safe_dump({**PLAIN, **({"tokens": before} if before else {})}))
    async with Pegboard.open(path):
        pass
    monkeypatch.setenv("SOME_KEY", "second-value-second-value")
    async with Pegboard.open(path) as board:
        assert board.waiting == ()
        path.write_text(yaml.safe_dump({**PLAIN, **brings(folder / "user-marker")["command"], "tokens": after}))
        await board.reload()
        assert {change.name for change in board.waiting} == {"plugins.new", *(f"tokens.{name}" for name in waits)}
        assert token_of("stranger-stranger", board.configuration.tokens) is None
