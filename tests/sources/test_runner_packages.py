"""Packages of runners: installed once, outside of the confinement of what is started from them (A7)."""

import asyncio
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp_helpers import call, text
from package_registry import Registry, registry, source_package, wheel

from pegboard.core.model.specs import Confinement, ServerSpec
from pegboard.core.model.tools import EMPTY, Frozen
from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp import McpSource
from pegboard.sources.mcp.transports.npx_cache import installation_folder
from pegboard.support import user_folders

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")

Server = Callable[..., ServerSpec]


@pytest.fixture
def published() -> Iterator[Registry]:
    """Serve the packages of npm that the tests start."""
    with registry() as served:
        served.publish("one", "1.0.0", {"one": "index.js"})
        served.publish("@own/two", "1.0.0", {"two": "two.js", "second": "second.js"})
        served.publish("others", "1.0.0", {"first": "first.js", "second": "second.js"})
        served.publish(
            "scripted", "1.0.0", {"scripted": "a.js"}, script="node -e \"fs.writeFileSync('script-ran', '')\""
        )
        yield served


@pytest.fixture
def server(published: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Return what makes a confined server of a command; its packages are those of the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    wheels = tmp_path / "wheels"
    wheel(wheels, "tooled", "1.0", ("tooled", "other"))
    wheel(wheels, "pair", "1.0", ("first", "second"))
    source_package(wheels, "built", "1.0")
    (folder := tmp_path / "project").mkdir()
    env = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "npm_config_registry": published.url,
        "npm_config_cache": str(tmp_path / "npm"),
        "npm_config_fetch_retries": "0",
        "UV_CACHE_DIR": str(tmp_path / "uv"),
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": str(wheels),
        "MARK": str(folder / "script-ran"),
    }

    def made(*words: str, **confine: Any) -> ServerSpec:
        command, *args = words
        confinement = Confinement(folder=str(folder), **confine)
        return ServerSpec(
            name="x",
            command=command,
            args=tuple(args),
            env=Frozen(env),
            cwd=str(folder),
            confine=confinement,
            start=120.0,
        )

    return made


async def about(spec: ServerSpec, *, resolves: bool = False) -> dict[str, Any]:
    """Return what a server says of itself."""
    source = McpSource(resolves=resolves)
    try:
        return json.loads(text(await call(source, spec, "about")))
    finally:
        await source.aclose()


async def refusal(spec: ServerSpec, *, resolves: bool = False) -> str:
    """Return why a server is not available, and what helps."""
    source = McpSource(resolves=resolves)
    try:
        with pytest.raises(ToolUnavailableError) as caught:
            await source.describe(spec, EMPTY)
    finally:
        await source.aclose()
    return str(caught.value)


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (("npx", "-y", "one@1.0.0", "--flag"), "one"),
        (("npx", "-p", "@own/two@1.0.0", "second", "--flag"), "second"),
        (("npx", "@own/two@1.0.0", "--flag"), "two"),
        (("npm", "exec", "--package=others@1.0.0", "--", "first", "--flag"), "first"),
        (("pnpm", "dlx", "one@1.0.0", "--flag"), "one"),
        (("uvx", "tooled==1.0", "--flag"), "tooled"),
        (("uvx", "tooled@1.0", "--flag"), "tooled"),
        (("uvx", "--from", "tooled==1.0", "other", "--flag"), "other"),
        (("uv", "tool", "run", "--with", "pair==1.0", "tooled==1.0", "--flag"), "tooled"),
        (("pipx", "run", "--spec", "pair==1.0", "second", "--flag"), "second"),
    ],
)
async def test_a_package_is_installed_once_and_its_server_cannot_change_it(
    server: Server, words: tuple[str, ...], program: str
) -> None:
    "A7: the program starts from a folder of the user's cache, which it reads and does not write."
    said = await about(server(*words))
    assert (said["name"], said["args"]) == (program, ["--flag"])
    assert said["changes"] in ("EACCES", "Permission denied")
    folder = user_folders.packages()
    assert Path(said["file"]).is_relative_to(folder)
    before = sorted(folder.iterdir())
    assert await about(server(*words)) == said
    assert sorted(folder.iterdir()) == before


async def test_servers_of_one_package_share_its_folder(server: Server) -> None:
    "A7: one folder of packages for all, whatever the servers are called and however they name the program."
    said = [await about(server(*words)) for words in (("npx", "-y", "one@1.0.0"), ("npx", "-p", "one@1.0.0", "one"))]
    assert said[0]["file"] == said[1]["file"]


@pytest.mark.parametrize("package", ["one", "one@latest", "one@^1.0.0"])
async def test_a_version_that_is_not_pinned_is_decided_when_it_is_named_and_never_at_a_start(
    server: Server, published: Registry, package: str
) -> None:
    "A7: what a registry has next is not run before a person asks for it."
    spec = server("npx", "-y", package)
    assert "pegboard update x" in await refusal(spec)
    assert published.asked == []
    assert (await about(spec, resolves=True))["version"] == "1.0.0"
    published.publish("one", "1.1.0", {"one": "index.js"})
    asked = len(published.asked)
    assert ((await about(spec))["version"], len(published.asked)) == ("1.0.0", asked)
    assert (await about(spec, resolves=True))["version"] == "1.1.0"
    assert (await about(spec))["version"] == "1.1.0"


@pytest.mark.parametrize("package", ["tooled", "tooled>=1", "tooled@latest"])
async def test_a_python_version_that_is_not_pinned_is_decided_when_it_is_named(
    server: Server, tmp_path: Path, package: str
) -> None:
    "A7: the same holds for what uvx starts."
    spec = server("uvx", package)
    assert "pegboard update x" in await refusal(spec)
    assert (await about(spec, resolves=True))["version"] == "1.0"
    wheel(tmp_path / "wheels", "tooled", "1.1", ("tooled",))
    assert (await about(spec))["version"] == "1.0"
    assert (await about(spec, resolves=True))["version"] == "1.1"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("npx", "-y", "others@1.0.0"), ("first, second", "npx -p PACKAGE PROGRAM")),
        (("npx", "-p", "one@1.0.0", "two"), ("no program `two`", "it has: one")),
        (("npx", "-y", "one@3.0.0"), ("one@3.0.0 could not be installed",)),
        (("npx", "-y", "none@1.0.0"), ("none@1.0.0 could not be installed", "404")),
        (("npx", "-c", "one"), ("`-c` of npx",)),
        (("npx", "--node-options=--inspect", "one@1.0.0"), ("`--node-options=--inspect` of npx",)),
        (("npx", "./one"), ("neither a package of a registry",)),
        (("npx", "-y"), ("it names no program",)),
        (("npx", "-p"), ("`-p` has no value",)),
        (("uvx", "pair==1.0"), ("no program `pair`", "first, second", "uvx --from PACKAGE PROGRAM")),
        (("uvx", "tooled==7.0"), ("tooled==7.0 could not be installed",)),
        (("uvx", "--with-editable", "x", "tooled==1.0"), ("`--with-editable` of uvx",)),
        (("uvx", "--from", ".", "tooled"), ("neither a package of a registry",)),
        (("uvx", "python"), ("an interpreter and no package",)),
        (("uvx", "--from", f"git+file:///none/x.git@{'0' * 40}", "tooled"), ("could not be installed", "/none/x.git")),
    ],
)
async def test_where_no_program_is_found_a_server_is_unavailable_with_the_reason(
    server: Server, words: tuple[str, ...], says: tuple[str, ...]
) -> None:
    "A7: a command that does not say what is installed, or names what is not there, is one clear reason."
    reason = await refusal(server(*words))
    assert [part for part in says if part not in reason] == [], reason
    assert not list(user_folders.packages().glob("resolving-*"))


async def test_a_registry_that_wants_a_login_is_named_in_the_reason(server: Server, published: Registry) -> None:
    "A7: a private registry is asked as npm asks it; what it refuses is said."
    published.refuses = 401
    reason = await refusal(server("npx", "-y", "one@1.0.0"))
    assert ("401" in reason, published.url in reason) == (True, True), reason
    published.refuses = 0
    assert (await about(server("npx", "-y", f"--registry={published.url}", "one@1.0.0")))["version"] == "1.0.0"


async def test_a_private_registry_is_asked_with_the_token_of_its_user_which_the_server_has_not(
    server: Server, published: Registry, tmp_path: Path
) -> None:
    "A7: npm reads it where it does without Pegboard; without it the server is unavailable with the reason."
    published.token = "registry-s3cret"
    spec = server("npx", "-y", "one@1.0.0")
    reason = await refusal(spec)
    assert ("401" in reason, published.token in reason) == (True, False), reason
    own = tmp_path / "npmrc"
    own.write_text(f"{published.url.removeprefix('http:')}/:_authToken={published.token}\n")
    with_token = replace(spec, env=Frozen({**spec.env, "npm_config_userconfig": str(own)}))
    assert (await about(with_token))["version"] == "1.0.0"
    found = [file for file in user_folders.packages().rglob("*") if file.is_file()]
    assert [file for file in found if published.token.encode() in file.read_bytes()] == []


def repository_of_built(folder: Path) -> tuple[Path, str]:
    """Return a repository of a package that has to be built, and its one commit."""
    with tarfile.open(folder / "wheels" / "built-1.0.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    repository = folder / "built-1.0"
    git = ("git", "-C", str(repository), "-c", "user.name=ada", "-c", "user.email=ada@example.com")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "first")):
        subprocess.run([*git, *words], check=True)
    ran = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return repository, ran.stdout.strip()


@pytest.mark.parametrize("commit", ["pinned", "branch"])
@pytest.mark.parametrize("runner", [("uvx", "--from"), ("uv", "tool", "run", "--from"), ("pipx", "run", "--spec")])
async def test_a_package_of_a_repository_is_built_where_scripts_says_so(
    server: Server, tmp_path: Path, runner: tuple[str, ...], commit: str
) -> None:
    "A7: a commit is a version; a branch is resolved when it is named, and never at a start."
    repository, head = repository_of_built(tmp_path)
    address = f"git+file://{repository}@{head if commit == 'pinned' else 'main'}"
    resolves = commit == "branch"
    if resolves:
        assert "pegboard update x" in await refusal(server(*runner, address, "built"))
    assert "scripts: true" in await refusal(server(*runner, address, "built"), resolves=resolves)
    built = server(*runner, address, "built", scripts=True)
    assert (await about(built, resolves=resolves))["name"] == "built"
    assert (await about(built))["name"] == "built"


@pytest.mark.parametrize("words", [("npx", "-y", "scripted@1.0.0"), ("uvx", "built==1.0")])
async def test_code_of_a_package_runs_only_where_scripts_says_so(server: Server, words: tuple[str, ...]) -> None:
    "A7: install scripts of npm, and what builds a package of Python, are off unless `scripts: true`."
    if words[0] == "npx":
        assert (await about(server(*words)))["scripts"] is False
    else:
        assert "scripts: true" in await refusal(server(*words))
    assert (await about(server(*words, scripts=True)))["scripts"] is True


async def test_two_starts_at_once_install_one_package_once(server: Server, published: Registry) -> None:
    "A7: whoever comes second waits for the first, and starts what that installed."
    said = await asyncio.gather(*(about(server("npx", "-y", "one@1.0.0")) for _ in range(2)))
    assert said[0] == said[1]
    assert [path for path in published.asked if path.endswith(".tgz")] == ["/-/one-1.0.0.tgz"]


async def test_pegboard_update_without_more_looks_for_the_newest_version(
    server: Server, published: Registry, tmp_path: Path
) -> None:
    "A7: `pegboard update NAME` decides the version, and says which it is."
    spec = server("npx", "-y", "one")
    entry = {"command": spec.command, "args": list(spec.args), "env": dict(spec.env), "confine": True}
    token = {"token": "operator-operator-operator", "agents": ["*"], "console": ["configure"]}
    (file := Path(str(spec.cwd), "pegboard.yaml")).write_text(
        json.dumps({"servers": {"x": entry}, "tokens": {"ada": token}})
    )
    env = {**os.environ, "PEGBOARD_OPERATOR_TOKEN": token["token"], "XDG_STATE_HOME": str(tmp_path / "state")}

    def updated() -> dict[str, Any]:
        command = [sys.executable, "-m", "pegboard", "update", "x", "--config", str(file), "--json"]
        ran = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return json.loads(ran.stdout)

    assert (await asyncio.to_thread(updated))["version"] == "1.0.0"
    published.publish("one", "2.0.0", {"one": "index.js"})
    assert (await about(spec))["version"] == "1.0.0"
    found = await asyncio.to_thread(updated)
    assert (found["version"], found["changed"], (await about(spec))["version"]) == ("2.0.0", False, "2.0.0")


@pytest.mark.parametrize("version", ["", "@latest"])
async def test_what_memory_has_kept_in_its_package_goes_on_in_a_data_folder(
    server: Server, published: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    "A7: the graph of before is copied once, with a sentence; what is named in its settings stays where it is."
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    package = "@modelcontextprotocol/server-memory"
    published.publish(package, "1.0.0", {"mcp-server-memory": "dist/index.js"})
    spec = server("npx", "-y", f"{package}{version}")
    folder = installation_folder(spec.command, spec.args, spec.env)
    assert folder is not None
    old = folder / "node_modules" / package / "dist" / "memory.json"
    old.parent.mkdir(parents=True)
    old.write_text("before")
    said = [await about(spec, resolves=True), await about(spec)]
    graph = Path(said[0]["graph"])
    assert [(one["added"], one["graph"]) for one in said] == [("done", str(graph))] * 2
    assert [await asyncio.to_thread(file.read_text) for file in (graph, old)] == ["before++", "before"]
    assert graph.is_relative_to(tmp_path / "data" / "pegboard-plugins")
    stated = replace(spec, env=Frozen({**spec.env, "MEMORY_FILE_PATH": f"{spec.cwd}/mine.jsonl"}))
    assert (await about(stated))["graph"] == f"{spec.cwd}/mine.jsonl"
