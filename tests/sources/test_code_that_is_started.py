"""No confinement lets a process change what the next start of Pegboard, or of what is not confined, runs (A7)."""

import asyncio
import base64
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp_helpers import SERVERS

from pegboard import Pegboard
from pegboard.cli.plugin_problems import own_paths, policy_of
from pegboard.config.accepted_files import accepted_files
from pegboard.core.model.specs import ServerSpec
from pegboard.support import user_folders
from sdk_servers import pegboard_command

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")

CONFIGURED = """
servers:
  box: {{command: {python}, args: [{server}], confine: {confine}}}
  {free}
plugins:
  {plugin}
agents:
  default: {{discoverable: ["*"]}}
"""
WRITE = "open({!r}, 'w').write('x')"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with folders, in which the gateway is started."""
    folder = tmp_path / "outer" / "Project"
    for name in ("data", "docs"):
        (folder / name).mkdir(parents=True)
    (folder / "notes.txt").write_text("before")
    monkeypatch.chdir(folder)
    return folder


def write(project: Path, confine: str, free: str = "", plugin: str = "") -> Path:
    file = project / "pegboard.yaml"
    given = {"python": sys.executable, "server": SERVERS / "reaching_server.py", "confine": confine}
    if (known := accepted_files(file)) is not None:
        known.end()  # each text is that of another project
    file.write_text("reload: all\n" + CONFIGURED.format(free=free, plugin=plugin, **given))
    return file


async def refusal(file: Path, name: str = "box") -> str:
    """Return why what is confined is not available, or nothing."""
    async with Pegboard.open(file) as board:
        session = await board.session(session_id="s")
        outcome = await session.load(name)
        return "" if outcome.status == "ok" else outcome.message


async def written(file: Path, path: Path) -> str:
    """Return what becomes of writing a file from inside."""
    async with Pegboard.open(file) as board:
        session = await board.session(session_id="s")
        assert (await session.load("box")).status == "ok"
        coded = base64.b64encode(WRITE.format(str(path)).encode()).decode()
        answer = await session.call("box__reach", {"attempts": {"it": coded}, "depth": 0})
        assert answer.result is not None, answer.message
        return json.loads(answer.result.content[0]["text"])["it"]


def make_environment(folder: Path) -> Path:
    """Make an environment of Python, and return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"


ALL = """
import asyncio, sys
from pathlib import Path
sys.path[:0] = {tests!r}
import test_code_that_is_started as tests

async def main():
    project = Path.cwd()
    for confine in {confines!r}:
        print(await tests.refusal(tests.write(project, confine)) or "works")

asyncio.run(main())
"""


def test_what_pegboard_runs_from_is_not_writable_from_inside(project: Path) -> None:
    """A7: an environment in the project, by any path, refuses the confinement; a folder beside it does not."""
    python = make_environment(project / ".venv")
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(project / ".venv")}))
    sources = Path(__file__).parents[2] / "src"
    (packages / "pegboard.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sources}\n")
    (project / "link").symlink_to(".venv")
    (project.parent / "beside").symlink_to("Project/.venv/lib")
    refused = [
        *("true", "{write: [.]}", "{write: [.venv]}", "{write: [link]}", "{write: [data/../.venv/lib]}"),
        *("{write: [..]}", "{write: [../beside]}", "{write: [data, .venv/bin]}"),
    ]
    allowed = ["{write: [data]}", "{write: [data, notes.txt], read: [.venv]}", "{write: []}"]
    program = ALL.format(
        tests=[str(Path(__file__).parent), str(Path(__file__).parents[1])], confines=[*refused, *allowed]
    )
    ran = subprocess.run([python, "-c", program], capture_output=True, text=True, timeout=200, check=False)
    *said, data, read, nothing = ran.stdout.splitlines()
    assert (data, read, nothing) == ("works", "works", "works"), ran.stdout + ran.stderr
    assert len(said) == len(refused)
    why = "is the Python environment that Pegboard runs from: what it changes there, the next start would run"
    assert [one for one in said if why not in one or "`confine: {write: [sub/folder]}`" not in one] == []
    assert f"it may write '{project}', and '{project}/.venv' is" in said[0]


async def test_a_project_with_an_environment_from_which_nothing_runs_is_confined_as_before(project: Path) -> None:
    """A7: a `.venv` alone refuses nothing."""
    make_environment(project / ".venv")
    file = write(project, "true", f"other: {{command: {sys.executable}, args: [/nowhere/server.py]}}")
    assert (await written(file, project / ".venv" / "lib" / "new")).startswith("done")


def script(project: Path) -> str:
    (project / "own.py").write_text("import helper\n")
    (project / "helper.py").write_text("")
    return "{command: python3, args: [own.py]}"


def imported_folder(project: Path) -> str:
    script(project)
    (project / "helper.py").unlink()
    (project / "data" / "helper").mkdir()
    (project / "data" / "own.py").write_text("import helper\n")
    return "{command: python3, args: [data/own.py]}"


def script_of_node(project: Path) -> str:
    (project / "server.mjs").write_text("")
    return "{command: node, args: [--enable-source-maps, ./server.mjs]}"


def module(project: Path) -> str:
    (project / "served").mkdir()
    (project / "served" / "__main__.py").write_text("")
    return "{command: python3, args: [-m, served.main]}"


def environment(project: Path) -> str:
    return f"{{command: {make_environment(project / 'env')}, args: [-m, mcp_server_git], cwd: /}}"


def script_of_environment(project: Path) -> str:
    python = make_environment(project / "env")
    (program := project.parent / "installed").write_text(f"#!{python}\n")
    program.chmod(0o755)
    return f"{{command: {program}, cwd: /}}"


def program(project: Path) -> str:
    (project / "serve").write_text("#!/bin/sh\n")
    (project / "serve").chmod(0o755)
    return "{command: ./serve}"


def link(project: Path) -> str:
    (project / "serve").symlink_to(sys.executable)
    return f"{{command: {project}/serve, args: [/nowhere.py], cwd: /}}"


def directory(project: Path) -> str:
    (project / "tool").mkdir()
    (project / "tool" / "server.py").write_text("")
    return f"{{command: uv, args: [--directory, {project}/tool, run, server.py], cwd: /}}"


def local_packages(project: Path) -> str:
    (project / "node_modules").mkdir()
    return "{command: npx, args: [-y, some-server]}"


def import_path(project: Path) -> str:
    return f"{{command: python3, args: [-m, some_server], cwd: /, env: {{PYTHONPATH: {project}/docs}}}}"


def package_folder(project: Path) -> str:
    (project / "package").mkdir()
    (project / "package" / "package.json").write_text("{}")
    return "{command: node, args: [package]}"


def script_of_any_name(project: Path) -> str:
    (project / "srv").write_text("")
    return "{command: /nowhere/env, args: [python3.13, -u, srv, notes.txt]}"


def command_of_a_shell(project: Path) -> str:
    (project / "srv").write_text("")
    return "{command: sh, args: [-c, 'exec python3 ./srv --all']}"


def option_with_a_script(project: Path) -> str:
    (project / "hook.mjs").write_text("")
    return "{command: node, args: ['--import=./hook.mjs', /nowhere/server.mjs]}"


def option_of_an_interpreter(project: Path) -> str:
    (project / "settings").write_text("")
    return "{command: node, args: ['--env-file=settings', /nowhere/server.mjs]}"


def package_of_a_runner(project: Path) -> str:
    (project / "package").mkdir()
    return "{command: uvx, args: [--from, ./package, server]}"


def package_in_one_word(project: Path) -> str:
    (project / "package").mkdir()
    return f"{{command: uv, args: [run, '--with=server @ file://{project}/package[all]', server], cwd: /}}"


def package_alone(project: Path) -> str:
    (project / "package").mkdir()
    return "{command: pipx, args: [run, ./package]}"


def build_file(project: Path) -> str:
    (project / "Makefile").write_text("serve:\n")
    return "{command: make, args: [-s, serve]}"


def compose_file(project: Path) -> str:
    (project / "compose.yaml").write_text("")
    return "{command: docker, args: [compose, run, server]}"


def preloaded_library(project: Path) -> str:
    return f"{{command: /nowhere/server, cwd: /, env: {{LD_PRELOAD: '/none.so {project}/docs/new.so'}}}}"


def options_of_node(project: Path) -> str:
    (project / "hook").write_text("")
    return "{command: /nowhere/server, env: {NODE_OPTIONS: '--max-old-space-size=4096 --require=./hook'}}"


def home(project: Path) -> str:
    return f"{{command: /nowhere/server, cwd: /, env: {{HOME: {project}/docs}}}}"


def program_of_a_variable(project: Path) -> str:
    (project / "edit.sh").write_text("")
    return "{command: /nowhere/server, env: {EDITOR: './edit.sh --wait'}}"


COUNTED: list[Callable[[Path], str]] = [
    *(script, imported_folder, script_of_node, program, script_of_any_name, option_with_a_script),
]
STARTED: list[Callable[[Path], str]] = [
    *(module, environment, script_of_environment, link, directory),
    *(local_packages, import_path, package_folder, option_of_an_interpreter),
    *(package_of_a_runner, package_in_one_word, package_alone, build_file, compose_file, preloaded_library),
    *(options_of_node, home, program_of_a_variable, command_of_a_shell),
]


@pytest.mark.parametrize("made", STARTED, ids=lambda made: made.__name__)
async def test_the_program_of_a_server_that_is_not_confined_is_not_writable_from_inside(
    project: Path, made: Callable[[Path], str]
) -> None:
    """A7: its executable, module, environment and packages; the line that is named lets it start."""
    free = f"free: {made(project)}"
    (project / "sub").mkdir()
    said = await refusal(write(project, "true", free))
    assert "is the program of server 'free', which is not confined: what it changes there" in said
    assert "`confine: {write: [sub/folder]}`" in said
    async with Pegboard.open(write(project, "{write: [sub]}", free)) as board:
        box = board.configuration.specs["box"]
        assert isinstance(box, ServerSpec)
        assert box.confine is not None
        assert str(project / "sub") in policy_of(box, box.confine, own_paths(board.configuration)).write


@pytest.mark.parametrize("made", COUNTED, ids=lambda made: made.__name__)
async def test_a_script_of_a_server_that_is_not_confined_is_run_as_it_was_accepted(
    project: Path, made: Callable[[Path], str]
) -> None:
    """A7: what it runs of the folder lies out of reach, and refuses nothing."""
    file = write(project, "true", f"free: {made(project)}")
    assert await refusal(file) == ""
    async with Pegboard.open(file) as board:
        free = board.configuration.specs["free"]
        assert isinstance(free, ServerSpec)
        assert any(str(user_folders.state()) in word for word in (free.command or "", *free.args))


async def test_the_program_of_a_server_that_is_confined_may_lie_where_another_writes(project: Path) -> None:
    """A7: what it runs may do no more than it."""
    confined = f"free: {script(project)}".replace("{command", "{confine: {write: []}, command")
    (project / "sub").mkdir()
    assert await refusal(write(project, "{write: [sub]}", confined)) == ""


@pytest.mark.parametrize(
    ("server", "command"),
    [
        ('{{command: /nowhere/server, env: {{T: "${{cmd:{0}}}"}}}}', "./docs/give"),
        (
            '{{command: /nowhere/server, cwd: /, args: ["x ${{cmd:{0}}}"], confine: {{write: []}}}}',
            "python3 -u docs/give.py --all",
        ),
        ('{{url: "http://127.0.0.1:1/mcp", headers: {{Authorization: "Bearer ${{cmd:{0}}}"}}}}', "give"),
    ],
    ids=["environment", "arguments of what is confined", "headers"],
)
async def test_a_command_that_gives_a_value_is_not_writable_from_inside(
    project: Path, monkeypatch: pytest.MonkeyPatch, server: str, command: str
) -> None:
    """A7, G13: Pegboard runs it, for a server that is confined too."""
    for name in ("give", "give.py"):
        (project / "docs" / name).write_text("#!/bin/sh\necho value\n")
        (project / "docs" / name).chmod(0o755)
    (project.parent / "bin").mkdir()
    (project.parent / "bin" / "give").symlink_to(project / "docs" / "give")
    monkeypatch.setenv("PATH", f"{project.parent / 'bin'}{os.pathsep}{os.environ['PATH']}")
    free = f"free: {server.format(command)}"
    said = await refusal(write(project, "true", free))
    assert f"the program of ${{cmd:{command}}} for server 'free'" in said
    assert await refusal(write(project, "{write: [data]}", free)) == ""


async def test_data_of_a_server_that_is_not_confined_is_writable_from_inside(project: Path) -> None:
    """A7: a folder or file that is no code, though settings of the server name it."""
    (project / "pyproject.toml").write_text("")
    (project / "compose.yaml").write_text("")
    for server in (
        "{command: uvx, args: [mcp-server-git, --repository, .]}",
        "{command: /nowhere/server, args: [--root=., --db=notes.txt, --mode=, notes.txt], env: {DATA: ./data}}",
        "{command: python3, args: [-m, some_server, notes.txt], cwd: data}",
        "{command: docker, args: [run, -v, './data:/data', image]}",
        f"{{command: /nowhere/server, env: {{HOME: {Path.home()}, NODE_OPTIONS: --max-old-space-size=4096}}}}",
    ):
        assert await refusal(write(project, "true", f"free: {server}")) == "", server


async def test_a_module_that_an_unconfined_script_imports_is_not_named_to_be_written(project: Path) -> None:
    """A7: also where the folder holds nothing else of it."""
    free = f"free: {imported_folder(project)}"
    assert "which is not confined" in await refusal(write(project, "{write: [data/helper]}", free))


async def test_a_folder_of_the_path_of_programs_is_not_writable_from_inside(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A7: a program that is put there is started in place of another."""
    monkeypatch.setenv("PATH", f"{project / 'data' / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert "is a folder of `PATH`" in await refusal(write(project, "{write: [data]}"))
    assert await refusal(write(project, "{write: [docs]}")) == ""


async def test_a_module_that_runs_in_this_process_is_not_writable_from_inside(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A7: a plugin that is not confined has all that Pegboard may; one that is has its own process."""
    (project / "docs" / "charts_of_a_path.py").write_text("def draw() -> str:\n    return 'x'\n")
    monkeypatch.syspath_prepend(str(project / "docs"))
    plugin = "charts: {python: charts_of_a_path}"
    said = await refusal(write(project, "{write: [docs]}", plugin=plugin))
    assert "is code that the configuration names" in said
    (project / "beside.py").write_text("def draw() -> str:\n    return 'x'\n")
    file = write(project, "true", plugin="beside: {python: beside}")
    assert (await written(file, project / "notes.txt")).startswith("done")


async def test_a_confined_plugin_is_refused_like_a_server_and_check_says_so_of_both(project: Path) -> None:
    """A7, P6: the plugin is unavailable with the reason; nothing else is."""
    (project / "charts.py").write_text("def draw() -> str:\n    return 'x'\n")
    free = f"free: {module(project)}"
    file = write(project, "true", free, "charts: {python: charts, confine: true}")
    assert "is the program of server 'free', which is not confined" in await refusal(file, "charts")
    ran = await asyncio.create_subprocess_exec(
        *pegboard_command("check", "--json", "--config", str(file)), stdout=subprocess.PIPE
    )
    printed, _ = await ran.communicate()
    found = [one for one in json.loads(printed)["problems"] if "is not available" in one["message"]]
    assert {one["message"].partition(" is not available")[0] for one in found} == {"server 'box'", "Plugin 'charts'"}
    assert all("which is not confined" in one["message"] for one in found)
    assert all("`confine: {write: [sub/folder]}`" in one["message"] + one["hint"] for one in found)


async def test_npx_of_a_server_that_is_not_confined_looks_outside_of_the_project(project: Path) -> None:
    """A7: it takes no program and no setting that something confined puts into the project afterwards."""
    file = write(project, "true", "free: {command: npx, args: [-y, some-server, .]}")
    assert await refusal(file) == ""
    async with Pegboard.open(file) as board:
        free = board.configuration.specs["free"]
        assert isinstance(free, ServerSpec)
        prefix, *others = free.args
        assert others == ["-y", "some-server", "."]
        assert Path(prefix.removeprefix("--prefix=")).is_relative_to(user_folders.state())
