"""What VS Code's sandbox of a server says, and the confinement that is made of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from pegboard.config.clients.generated import ServersToTake, read_client
from pegboard.config.inspection import inspect
from pegboard.core.model.specs import CONFINE_DEFAULT, ServerSpec

RUNS = "VS Code runs it in a sandbox "
NAMES = ", but `confine` restricts ports, not host names"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / "project" / ".vscode").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    return home


def taken(home: Path, server: dict[str, Any], **beside: Any) -> ServersToTake:
    """Return what is taken of VS Code's file of a project that has this server, in a sandbox."""
    path = home / "project" / ".vscode" / "mcp.json"
    entry = {"command": "notes", "sandboxEnabled": True, **server}
    path.write_text(json.dumps({"servers": {"notes": entry}, **beside}))
    return read_client(path)


def files(**rules: Any) -> dict[str, Any]:
    return {"sandbox": {"filesystem": rules}}


@pytest.mark.parametrize(
    ("server", "confine"),
    [
        ({}, {"write": [], "read": ["P"]}),
        (files(allowWrite=["${workspaceFolder}"]), {"write": ["P"]}),
        (files(allowWrite=["out", "${userHome}/notes", "~/notes", "/srv/../srv/a"]),
         {"write": ["P/out", "H/notes", "/srv/a"], "read": ["P"]}),
        ({"cwd": "work", **files(allowWrite=["a"])}, {"write": ["P/work/a", "P/work"]}),
        (files(allowWrite=["a", "b"], denyWrite=["b", "c"]), {"write": ["P/a"], "read": ["P"]}),
        (files(allowWrite=["a"], denyWrite=["${workspaceFolder}"]), {"write": [], "read": ["P"]}),
        (files(allowWrite=["/srv/a"], denyRead=["~/.ssh"]), {"write": ["/srv/a"], "read": ["P"]}),
        (files(denyRead=["~"]), {"write": []}),
        (files(denyRead=[".env"]), {"write": []}),
        ({"sandbox": {"network": {"allowedDomains": [], "deniedDomains": ["x.example"]}}},
         {"write": [], "read": ["P"]}),
    ],
)  # fmt: skip
def test_what_a_sandbox_allows_is_what_the_confinement_allows(
    home: Path, server: dict[str, Any], confine: dict[str, Any]
) -> None:
    """A7: and never more: what it could read of the user's files shrinks to its own folder."""
    found = taken(home, server)
    where = {key: [p.replace("P", f"{home}/project").replace("H", str(home)) for p in confine[key]] for key in confine}
    assert found.servers["notes"]["confine"] == {**where, "network": "none"}
    assert (found.sandboxed, found.excluded) == (("notes",), {})


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ({"sandbox": {"network": {"allowedDomains": ["a.example", "*.b.example"]}}},
         f"that lets it reach only a.example, *.b.example{NAMES}"),
        ({"command": "npx", "args": ["-y", "notes"]}, f"that lets it only fetch packages{NAMES}"),
        (files(allowWrite=["."], denyWrite=["keys"]),
         "that keeps it from writing 'P/keys', but `confine` grants whole folders"),
        (files(allowWrite=["."], denyRead=[".env"]),
         "that keeps it from reading 'P/.env', which `confine` would let it read"),
        (files(denyRead=["/etc/x"]), "that keeps it from reading '/etc/x', which `confine` would let it read"),
        (files(allowWrite=["/"]), "that lets it write '/', which no confinement grants"),
        (files(allowWrite=["*.txt"]), "that uses '*.txt', which only VS Code knows"),
        (files(allowWrite=["${env:OUT}"]), "that uses '${env:OUT}', which only VS Code knows"),
        (files(allowWrite=["~ada/x"]), "that uses '~ada/x', which only VS Code knows"),
        (files(allowRead=["x"]), "with 'filesystem.allowRead', which Pegboard does not know"),
        (files(allowWrite="x"), "with 'filesystem.allowWrite', which Pegboard does not know"),
        (files(allowWrite=[5]), "whose rules Pegboard does not know"),
        ({"sandbox": ["x"]}, "whose rules Pegboard does not know"),
        ({"sandboxEnabled": "yes"}, "whose rules Pegboard does not know"),
    ],
)  # fmt: skip
def test_what_no_confinement_keeps_is_excluded_with_the_rule(home: Path, server: dict[str, Any], why: str) -> None:
    """A7: a server is not let out of its sandbox on the way."""
    found = taken(home, server)
    assert (dict(found.servers), found.sandboxed) == ({}, ())
    assert found.excluded == {"notes": RUNS + why.replace("P/", f"{home}/project/")}


def test_rules_beside_the_servers_count_for_those_that_have_none(home: Path) -> None:
    """A7: that is where VS Code writes them; which of two counts no one else knows."""
    out = {"filesystem": {"allowWrite": ["out"]}}
    found = taken(home, {}, sandbox=out)
    assert found.servers["notes"]["confine"]["write"] == [f"{home}/project/out"]
    assert not found.problems
    assert taken(home, files(allowWrite=["."]), sandbox=out).excluded["notes"].startswith(RUNS)


@pytest.mark.parametrize(
    "server",
    [
        {"sandboxEnabled": False, **files(allowWrite=["x"])},
        {"command": None, "url": "https://notes.example/mcp"},
        {"confine": True},
    ],
)
def test_what_is_in_no_sandbox_and_what_says_itself_how_it_is_confined_is_taken_as_it_is(
    home: Path, server: dict[str, Any]
) -> None:
    found = taken(home, server)
    assert found.servers["notes"].get("confine") == server.get("confine")
    assert (found.sandboxed, found.excluded) == ((), {})


def test_a_clients_file_that_is_used_as_it_is_runs_nothing_outside_its_sandbox(home: Path) -> None:
    """A7: what no confinement keeps is unavailable with the reason."""
    taken(home, {"sandboxEnabled": False})
    path = home / "project" / ".vscode" / "mcp.json"
    kept = {"command": "notes", "sandboxEnabled": True, **files(allowWrite=["${workspaceFolder}"])}
    lost = {"command": "notes", "sandboxEnabled": True, **files(allowWrite=["/"])}
    path.write_text(json.dumps({"servers": {"kept": kept, "lost": lost}}))
    configuration, problems = inspect(path, registered={})
    assert configuration is not None
    specs = {name: spec for name, spec in configuration.specs.items() if isinstance(spec, ServerSpec)}
    kept_to = specs["kept"].confine or CONFINE_DEFAULT
    assert (kept_to.write, kept_to.read, kept_to.network) == ((f"{home}/project",), (), ())
    assert specs["lost"].unavailable == f"{RUNS}that lets it write '/', which no confinement grants"
    said = [(problem.code, problem.severity) for problem in problems if problem.code in ("unknown_key", "unavailable")]
    assert said == [("unavailable", "warning")]
