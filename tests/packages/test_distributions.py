"""Both distributions as they are built, installed and removed: what each brings, says and leaves behind."""

from __future__ import annotations

import fcntl
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from email.parser import HeaderParser
from pathlib import Path

import pytest

from pegboard import __version__

VERSION = __version__
ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "tests" / "servers" / "plain_server.py"
UV = Path(sys.executable).with_name("uv")
ENVIRONMENT: Mapping[str, str] = runpy.run_path(str(ROOT / "tools" / "uv.py"))["environment"]()
SLIM, FULL = f"pegboard_slim-{VERSION}-py3-none-any.whl", f"pegboard-{VERSION}-py3-none-any.whl"
LISTED = 13
"""How many valid tools the server lists by itself."""
SHOW_LINE = "from pegboard.support.installed import install_line; print(install_line('ddgs', extra='keyring'))"


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with both distributions, built once for all processes of this run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "dist"
    with (folder.parent / "dist.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            subprocess.run([sys.executable, ROOT / "tools" / "distributions.py", folder], check=True)
    return folder


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """Return the interpreter of an empty environment."""
    uv("venv", "--quiet", "--python", sys.executable, tmp_path / "env")
    return tmp_path / "env" / "bin" / "python"


def uv(*arguments: object, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return ran(UV, *arguments, env={**ENVIRONMENT, **(env or {})})


def ran(
    *command: object, env: Mapping[str, str], code: int = 0, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    words = list(map(str, command))
    done = subprocess.run(words, cwd=cwd, env=dict(env), capture_output=True, text=True, timeout=240)
    assert done.returncode == code, done.stderr
    return done


def pip(python: Path, action: str, *arguments: object, dist: Path | None = None) -> None:
    found = () if dist is None else ("--find-links", dist)
    uv("pip", action, "--quiet", "--python", python, *found, *arguments)


def shown(python: Path, code: str) -> str:
    return ran(python, "-c", code, env=ENVIRONMENT).stdout.strip()


def metadata(wheel: Path) -> tuple[Mapping[str, Sequence[str]], str]:
    """Return the fields of a wheel's metadata, and the page that an index shows."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        found = HeaderParser().parsestr(archive.read(name).decode())
    fields = {name: [str(value) for value in found.get_all(name, ())] for name in set(found.keys())}
    return fields, str(found.get_payload())


# -- what is built ---------------------------------------------------------------------------------


def test_an_index_takes_both_and_shows_their_pages_with_pictures_and_links_that_lead_somewhere(dist: Path) -> None:
    built = sorted(path for path in dist.glob("pegboard*") if path.suffix != ".mcpb")
    assert [path.suffix for path in built] == [".whl", ".gz"] * 2
    ran(sys.executable, "-m", "twine", "check", "--strict", *built, env=ENVIRONMENT)
    for wheel in (SLIM, FULL):
        fields, page = metadata(dist / wheel)
        links = re.findall(r"\]\(([^)]+)\)", page)
        assert len(links) > 20
        assert [link for link in links if not link.startswith(("https://", "#"))] == []
        assert re.search(rf"!\[[^\]]+\]\(https://\S+/v{VERSION}/docs/images/\w+\.png\)", page)
        assert {line.partition(",")[0] for line in fields["Project-URL"]} >= {"Homepage", "Issues"}
        systems = {line for line in fields["Classifier"] if line.startswith("Operating System")}
        assert systems == {"Operating System :: MacOS", "Operating System :: POSIX :: Linux"}


def test_one_has_the_code_and_the_other_needs_it_in_the_same_version_with_the_same_extras(dist: Path) -> None:
    with zipfile.ZipFile(dist / FULL) as archive:
        assert {Path(name).parts[0] for name in archive.namelist()} == {f"pegboard-{VERSION}.dist-info"}
    (slim, _), (full, _) = metadata(dist / SLIM), metadata(dist / FULL)
    extras = slim["Provides-Extra"]
    assert full["Provides-Extra"] == extras
    own = [f"pegboard-slim[{name}]=={VERSION}; extra == '{name}'" for name in extras]
    assert sorted(full["Requires-Dist"]) == sorted([f"pegboard-slim[mcp]=={VERSION}", *own])


# -- what is installed -----------------------------------------------------------------------------


def test_uvx_measures_a_client_in_an_empty_home(dist: Path, tmp_path: Path) -> None:
    """Nothing is said but the answer: not that the command came with another package either."""
    entry = {"command": sys.executable, "args": [str(SERVER), "--tools", "3"]}
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"plain": entry}}))
    cache = uv("cache", "dir").stdout.strip()
    home = {key: value for key, value in ENVIRONMENT.items() if not key.startswith("XDG_")}
    home |= {"HOME": str(tmp_path), "UV_CACHE_DIR": cache}
    uvx = (UV.with_name("uvx"), "--quiet", "--python", sys.executable, "--find-links", dist, "--from", dist / FULL)
    answered = ran(*uvx, "pegboard", "measure", "--json", env=home, cwd=tmp_path)
    measured = json.loads(answered.stdout)
    (server,) = measured["servers"]
    assert (measured["client"], server["name"], server["status"]) == ("cursor", "plain", "ok")
    assert server["tools"] == LISTED + 3
    assert [line for line in answered.stderr.splitlines() if not line.startswith("pegboard: ")] == []
    line = ran(*uvx, "python", "-c", SHOW_LINE, env=home, cwd=tmp_path).stdout
    assert line.startswith("uvx --from 'pegboard[keyring] @ file:")


def test_the_code_alone_is_the_library_and_says_how_the_rest_is_added(dist: Path, python: Path) -> None:
    """The line that it prints is run as it stands."""
    pip(python, "install", dist / SLIM)
    assert shown(python, "import pegboard; print(pegboard.Pegboard.__name__)") == "Pegboard"
    refused = ran(python.with_name("pegboard"), "measure", env=ENVIRONMENT, code=6).stderr
    line = re.search(r"Run `(uv pip install .+)`\.$", refused.strip())
    assert line is not None
    install = shlex.split(line[1])[1:]
    assert install[-1].startswith("pegboard-slim[mcp] @ file:")
    uv(*install, env={"VIRTUAL_ENV": str(python.parents[1])})
    assert "--probe" in ran(python.with_name("pegboard"), "check", "--help", env=ENVIRONMENT).stdout
    assert (
        shown(python, "from pegboard.mcp_extra import missing_requirements; print(repr(missing_requirements()))")
        == "''"
    )


def test_the_one_without_code_brings_everything_and_its_removal_leaves_the_library(dist: Path, python: Path) -> None:
    """They have one command between them: removing either takes it, and installing the other again gives it back."""
    command = python.with_name("pegboard")
    pip(python, "install", "pegboard", dist=dist)
    assert (
        shown(python, "from pegboard.mcp_extra import missing_requirements; print(repr(missing_requirements()))")
        == "''"
    )
    assert shown(python, SHOW_LINE) == "uv pip install 'pegboard[keyring]' ddgs"
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    version = ran(command, "--version", env=ENVIRONMENT).stdout
    assert version.startswith(f"pegboard {VERSION} ({head[:12]}")
    assert ran(command, "doctor", env=ENVIRONMENT).stdout.startswith(f"Pegboard {VERSION} ({head[:12]}")
    pip(python, "uninstall", "pegboard")
    assert ran(python, "-m", "pegboard", "--version", env=ENVIRONMENT).stdout == version
    assert shown(python, SHOW_LINE) == "uv pip install 'pegboard-slim[keyring]' ddgs"
    pip(python, "install", "--reinstall", "--no-deps", "pegboard-slim", dist=dist)
    assert ran(command, "--version", env=ENVIRONMENT).stdout == version
    pip(python, "install", "pegboard", dist=dist)
    pip(python, "uninstall", "pegboard-slim")
    assert not command.exists()


def test_a_tool_of_uv_is_given_what_it_had_and_what_is_added(dist: Path, tmp_path: Path) -> None:
    folders = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    install = ("tool", "install", "--quiet", "--python", sys.executable, "--find-links", dist)
    uv(*install, "--with", "tomli-w", "pegboard[postgres]", env=folders)
    line = shown(tmp_path / "tools" / "pegboard" / "bin" / "python", SHOW_LINE)
    assert line == "uv tool install --with tomli-w --with ddgs 'pegboard[postgres,keyring]'"
    assert ran(tmp_path / "bin" / "pegboard", "--version", env=ENVIRONMENT).stdout.startswith(f"pegboard {VERSION} (")


def test_an_environment_of_pipx_is_named_in_the_line(dist: Path, python: Path) -> None:
    pip(python, "install", "--no-deps", dist / SLIM)
    (python.parents[1] / "pipx_metadata.json").write_text("{}")
    assert shown(python, SHOW_LINE).startswith("pipx runpip env install 'pegboard-slim[keyring] @ file:")


def test_a_checkout_is_named_in_the_line() -> None:
    assert shown(Path(sys.executable), SHOW_LINE) == f"pip install -e '{ROOT}[keyring]' ddgs"
