"""What npx leaves behind when it is killed while it installs, as npx 11 was seen to leave it."""

import os
import sys
import time
from pathlib import Path

import pytest
from mcp_helpers import until

from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import EMPTY, Frozen
from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp import McpSource
from pegboard.sources.mcp.transports.npx_cache import remove_half_installed

PACKAGE = "@modelcontextprotocol/server-everything"
DIGEST = "5b2dd62b9d0bddd4"
"""Under which npx 11 installs just this package."""
PLAIN = Path(__file__).parents[1] / "servers" / "plain_server.py"
NPX = f"""#!{sys.executable}
import os, pathlib, sys, time
cache = pathlib.Path(os.environ["npm_config_cache"], "_npx", "{DIGEST}")
modules = cache / "node_modules"
if not modules.is_dir():
    (cache / "concurrency.lock").mkdir(parents=True)
    modules.mkdir()
    (modules / "part").write_text("half")
    while pathlib.Path(os.environ["SLOW"]).exists():
        time.sleep(0.01)
    (modules / "part").write_text("whole")
    (modules / ".package-lock.json").write_text("{{}}")
    (cache / "concurrency.lock").rmdir()
if (modules / "part").read_text() != "whole":
    print("Error: Cannot find module './limit.js'\\n- " + str(modules / "part"), file=sys.stderr)
    sys.exit(1)
os.execv(sys.executable, [sys.executable, {str(PLAIN)!r}])
"""


@pytest.fixture
def spec(tmp_path: Path) -> ServerSpec:
    """Return a server that a stand-in for npx installs: slowly, as long as a file is there."""
    npx = tmp_path / "npx"
    npx.write_text(NPX)
    npx.chmod(0o755)
    env = Frozen({"npm_config_cache": str(tmp_path / "cache"), "SLOW": str(tmp_path / "slow")})
    return ServerSpec(name="x", command=str(npx), args=("-y", PACKAGE), env=env, fetched=True, start=30.0)


def half(cache: Path, *, age: float = 0.0, lock: bool = True) -> Path:
    """Return a folder as it is when npx is killed while it installs, so many seconds later."""
    folder = cache / "_npx" / DIGEST
    (folder / "node_modules").mkdir(parents=True)
    (folder / "node_modules" / "part").write_text("half")
    if lock:
        (folder / "concurrency.lock").mkdir()
    then = time.time() - age
    for path in (folder / "node_modules", *folder.glob("concurrency.lock")):
        os.utime(path, (then, then))
    return folder


def folder_of(spec: ServerSpec) -> Path:
    return Path(spec.env["npm_config_cache"]) / "_npx" / DIGEST


def be_slow(spec: ServerSpec, slow: bool) -> None:
    """Let the installation take as long as until this is called again."""
    path = Path(spec.env["SLOW"])
    if slow:
        path.touch()
    else:
        path.unlink()


async def test_a_start_that_is_cut_leaves_nothing_half_installed(spec: ServerSpec) -> None:
    """G8: whoever starts the package next, Pegboard or the client itself, installs it again."""
    be_slow(spec, True)
    source = McpSource(patience=0.1)
    with pytest.raises(ToolUnavailableError, match="still installing"):
        await source.describe(spec, EMPTY)
    await until(lambda: (folder_of(spec) / "node_modules").exists())
    await source.aclose()
    assert not folder_of(spec).exists()
    be_slow(spec, False)
    source = McpSource()
    assert (await source.describe(spec, EMPTY)).tools
    await source.aclose()
    assert (folder_of(spec) / "node_modules" / ".package-lock.json").exists()


async def test_what_another_left_half_installed_is_installed_anew(spec: ServerSpec) -> None:
    """G8: after a kill of everything, or of a client that had started it."""
    half(Path(spec.env["npm_config_cache"]), age=30)
    source = McpSource()
    assert (await source.describe(spec, EMPTY)).tools
    await source.aclose()


async def test_a_package_of_which_parts_are_missing_is_installed_anew_once(spec: ServerSpec) -> None:
    """G8: npx takes what was half installed for whole once it has looked at it."""
    folder = half(Path(spec.env["npm_config_cache"]), lock=False, age=300)
    (folder / "node_modules" / ".package-lock.json").write_text("{}")
    then = time.time() - 300
    os.utime(folder / "node_modules", (then, then))
    source = McpSource()
    assert (await source.describe(spec, EMPTY)).tools
    await source.aclose()


@pytest.mark.parametrize(
    ("args", "age", "lock", "removed"),
    [
        (["-y", PACKAGE, "/tmp"], 30, True, True),
        (["--yes", f"--package={PACKAGE}", "mcp-server-everything"], 30, True, True),
        (["-y", "-p", PACKAGE, "--", "mcp-server-everything"], 30, True, True),
        (["-y", PACKAGE], 2, True, False),
        (["-y", PACKAGE], 30, False, False),
        (["-y", PACKAGE], 90, False, True),
        (["-y", f"{PACKAGE}@1"], 90, True, False),
        (["--registry", "x", PACKAGE], 90, True, False),
    ],
    ids=["package", "option", "short", "installing", "no lock yet", "no lock", "another", "not sure"],
)
def test_only_what_nobody_installs_is_removed(
    tmp_path: Path, args: list[str], age: float, lock: bool, removed: bool
) -> None:
    """G8: npx touches its lock each second; an older one has none."""
    folder = half(tmp_path, age=age, lock=lock)
    assert remove_half_installed("npx", args, {"npm_config_cache": str(tmp_path)}) is removed
    assert folder.exists() is not removed


def test_what_is_whole_stays(tmp_path: Path) -> None:
    """G8: also where it was ours."""
    folder = half(tmp_path, age=300, lock=False)
    (folder / "node_modules" / ".package-lock.json").write_text("{}")
    assert not remove_half_installed("npx", ["-y", PACKAGE], {"npm_config_cache": str(tmp_path)}, ours=True)
    assert folder.exists()
