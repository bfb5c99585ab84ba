"""What is confined writes the project whole, and nothing of it counts before a person accepts it (A7, P10)."""

import base64
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp_helpers import SERVERS

from pegboard import Pegboard
from pegboard.core.model.specs import PythonSpec, ServerSpec
from pegboard.errors import ConfigError
from pegboard.support import user_folders

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")

CONFIGURATION = """
servers:
  box: {{command: {python}, args: [{reaching}], confine: true}}
  plain: {{command: {python}, args: [server.py], cwd: {folder}, envFile: values.env}}
  apart: {{command: {python}, args: [{folder}/apart.py], confine: {{write: [data]}}}}
plugins:
  mine: {{python: my_tools}}
agents:
  ada: {{loadout: own, discoverable: ["*"]}}
"""
SERVER = """
import json, os, sys
import word
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    if request["method"] == "initialize":
        about = {"name": "plain", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
    elif request["method"] == "tools/list":
        result = {"tools": [{"name": "say", "inputSchema": {"type": "object"}}]}
    else:
        result = {"content": [{"type": "text", "text": f"{word.WORD} {os.environ.get('VALUE', '')}"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""
FILES = {
    "server.py": SERVER,
    "apart.py": SERVER,
    "word.py": "WORD = 'before'\n",
    "values.env": "VALUE=before\n",
    "my_tools.py": "import helper\n\ndef say_it() -> str:\n    return helper.WORD\n",
    "helper.py": "WORD = 'before'\n",
    "loadouts/own.yaml": "plugins: [box]\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with a file of each kind that Pegboard reads or runs."""
    folder = tmp_path / "project"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    (folder / "data").mkdir()
    given = {"python": sys.executable, "reaching": SERVERS / "reaching_server.py", "folder": folder}
    (folder / "pegboard.yaml").write_text(CONFIGURATION.format(**given))
    return folder


async def done(board: Pegboard, **attempts: str) -> dict[str, str]:
    """Return what became of each attempt of the confined server."""
    session = await board.session(agent="ada", session_id="first")
    await session.load("box")
    coded = {name: base64.b64encode(code.encode()).decode() for name, code in attempts.items()}
    answer = await session.call("box__reach", {"attempts": coded, "depth": 0})
    assert answer.result is not None, answer.message
    return json.loads(answer.result.content[0]["text"])


async def said(board: Pegboard, principal: str = "local") -> dict[str, Any]:
    """Return what tools of each plugin answer, and what the configuration grants."""
    session = await board.session(agent="ada", session_id=f"of {principal}", principal=principal)
    found: dict[str, Any] = {}
    for plugin, tool in (("plain", "plain__say"), ("apart", "apart__say"), ("mine", "say_it")):
        outcome = await session.load(plugin)
        answer = await session.call(tool, {}) if outcome.status == "ok" else None
        blocks = answer.result.content if answer is not None and answer.result is not None else ()
        found[plugin] = blocks[0]["text"].strip() if blocks else outcome.message
    configuration = board.configuration
    found["agents"] = sorted(configuration.agents)
    found["loadouts"] = {
        name: configuration.loadouts[name].plugins for name in ("own", "new") if name in configuration.loadouts
    }
    return found


AS_ACCEPTED = {
    "plain": "before before",
    "apart": "before",
    "mine": "before",
    "agents": ["ada"],
    "loadouts": {"own": ("box",)},
}


def put(path: Path, content: str) -> str:
    return f"import os\nopen({str(path)!r}, 'w').write({content!r})"


def names_in(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def edits(project: Path) -> dict[str, str]:
    """Return what a confined server does to each file that Pegboard reads or runs of the project."""
    stranger = (project / "pegboard.yaml").read_text().replace("ada:", "eve: {discoverable: ['*']}\n  ada:")
    return {
        "pegboard.yaml": put(project / "pegboard.yaml", stranger),
        "loadouts/own.yaml": put(project / "loadouts/own.yaml", "plugins: [box, plain, mine]\n"),
        "loadouts/new.yaml": put(project / "loadouts/new.yaml", "plugins: [plain]\n"),
        "values.env": put(project / "values.env", "VALUE=after\nLD_PRELOAD=/nowhere.so\n"),
        "my_tools.py": put(project / "my_tools.py", "def say_it() -> str:\n    return 'after'\n"),
        "helper.py": put(project / "helper.py", "WORD = 'after'\n"),
        "server.py": put(project / "server.py", SERVER.replace("word.WORD", "'after'")),
        "apart.py": put(project / "apart.py", SERVER.replace("word.WORD", "'after'")),
        "word.py": put(project / "word.py", "WORD = 'after'\n"),
    }


async def test_it_makes_and_changes_what_it_likes_in_the_project(project: Path) -> None:
    """A7: new files at the top too, beside the configuration; nothing of Pegboard's lies there."""
    async with Pegboard.open(project / "pegboard.yaml") as board:
        found = await done(
            board,
            new=put(project / "new.txt", "x"),
            folder=f"import os; os.mkdir({str(project / 'made')!r})",
            renamed=f"import os; os.rename({str(project / 'new.txt')!r}, {str(project / 'made' / 'it')!r})",
            replaced=f"import os; os.replace({str(project / 'made' / 'it')!r}, {str(project / 'word.py')!r})",
            outside=put(project.parent / "beside", "x"),
        )
    assert found.pop("outside").startswith("refused")
    assert {how[:4] for how in found.values()} == {"done"}
    known = {name.partition("/")[0] for name in FILES}
    assert names_in(project) <= {*known, "data", "made", "pegboard.yaml", "__pycache__"}


async def test_what_it_writes_counts_neither_live_nor_after_a_restart_until_accepted(project: Path) -> None:
    """A7, P10: configuration, loadouts, environment files, modules, scripts, and what these import."""
    async with Pegboard.open(project / "pegboard.yaml") as board:
        assert await said(board) == AS_ACCEPTED
        found = await done(board, **{f"edit {number}": code for number, code in enumerate(edits(project).values())})
        assert {how[:4] for how in found.values()} == {"done"}
        await board.reload()
        assert await said(board) == AS_ACCEPTED
        assert {change.key[-1] for change in board.waiting} == {*edits(project)}
    for principal in ("ada", "bob"):
        async with Pegboard.open(project / "pegboard.yaml") as board:
            assert await said(board, principal) == AS_ACCEPTED
            assert {change.key[-1] for change in board.waiting} == {*edits(project)}
    async with Pegboard.open(project / "pegboard.yaml") as board:
        await board.accept(by="ada")
        assert board.waiting == ()
    async with Pegboard.open(project / "pegboard.yaml") as board:
        found = await said(board)
    assert found["plain"] == "after after"
    assert (found["mine"], found["apart"]) == ("after", "after")
    assert found["agents"] == ["ada", "eve"]
    assert found["loadouts"] == {"own": ("box", "plain", "mine"), "new": ("plain",)}


async def test_a_file_that_is_changed_after_it_was_shown_is_not_accepted(project: Path) -> None:
    """A7: what counts is the text that a person has seen."""
    async with Pegboard.open(project / "pegboard.yaml") as board:
        await done(board, it=put(project / "word.py", "WORD = 'shown'\n"))
        await board.reload()
        shown = board.waiting
        await done(board, it=put(project / "word.py", "WORD = 'other'\n"))
        assert await board.accept(shown, by="ada") == ()
        assert [change.key[-1] for change in board.waiting] == ["word.py"]
        assert (await said(board))["plain"] == "before before"


async def test_a_store_in_the_project_refuses_the_folder_and_an_edit_of_it_brings_none(project: Path) -> None:
    """A7: a store that is named in the project is not given away, and none is forged by an edit."""
    file = project / "pegboard.yaml"
    async with Pegboard.open(file) as board:
        forged = f"store: sqlite:///forged.db\n{file.read_text()}"
        await done(board, it=put(file, forged))
    async with Pegboard.open(file) as board:
        assert "forged" not in board.configuration.store
        assert Path(board.configuration.store.removeprefix("sqlite:///")).is_relative_to(user_folders.state())
        await board.accept(by="ada")
    async with Pegboard.open(file) as board:
        session = await board.session(agent="ada", session_id="s")
        outcome = await session.load("box")
    assert outcome.status != "ok"
    assert "forged.db' in it is the store of Pegboard" in outcome.message


def over(name: str, code: str) -> Callable[[Path], str]:
    return lambda project: code.format(file=str(project / name), folder=str(project), data=str(project / "data"))


OUTS: Mapping[str, Callable[[Path], str]] = {
    "a pipe in place of the configuration": over(
        "pegboard.yaml", "import os; os.remove({file!r}); os.mkfifo({file!r})"
    ),
    "no configuration any more": over("pegboard.yaml", "import os; os.remove({file!r})"),
    "a folder in its place": over("pegboard.yaml", "import os; os.remove({file!r}); os.mkdir({file!r})"),
    "a link in its place": over(
        "pegboard.yaml",
        "import os; open({data!r} + '/c.yaml', 'w').write('agents: {{eve: {{}}}}'); os.remove({file!r}); "
        "os.symlink({data!r} + '/c.yaml', {file!r})",
    ),
    "a hard link to it": over(
        "pegboard.yaml",
        "import os; os.link({file!r}, {data!r} + '/c'); open({data!r} + '/c', 'w').write('agents: {{}}')",
    ),
    "a loadout of 5 GB": over("loadouts/own.yaml", "import os; os.truncate({file!r}, 5_000_000_000)"),
    "a loadout that is a pipe": over("loadouts/new.yaml", "import os; os.mkfifo({file!r})"),
    "another folder of loadouts": over(
        "loadouts",
        "import os; os.rename({file!r}, {folder!r} + '/old'); os.mkdir({folder!r} + '/other'); "
        "open({folder!r} + '/other/own.yaml', 'w').write('plugins: [plain]'); "
        "os.symlink({folder!r} + '/other', {file!r})",
    ),
    "an edit that keeps size and times": over(
        "word.py",
        "import os; s = os.stat({file!r}); open({file!r}, 'w').write(\"WORD = 'differ'\\n\"); "
        "os.utime({file!r}, ns=(s.st_atime_ns, s.st_mtime_ns))",
    ),
    "bytecode beside a module": over(
        "helper.py",
        "import os, py_compile, shutil; s = os.stat({file!r}); "
        "open({data!r} + '/helper.py', 'w').write(\"WORD = 'differ'\\n\")\n"
        "os.utime({data!r} + '/helper.py', ns=(s.st_atime_ns, s.st_mtime_ns))\n"
        "os.makedirs({folder!r} + '/__pycache__', exist_ok=True)\n"
        "py_compile.compile({data!r} + '/helper.py', cfile={folder!r} + '/__pycache__/helper.cpython-'"
        " + str(__import__('sys').version_info[0]) + str(__import__('sys').version_info[1]) + '.pyc', dfile={file!r})",
    ),
    "a package before a module": over(
        "helper", "import os; os.mkdir({file!r}); open({file!r} + '/__init__.py', 'w').write(\"WORD = 'differ'\")"
    ),
    "modules of the standard library": over(
        "json.py",
        "open({file!r}, 'w').write('raise SystemExit'); "
        "open({folder!r} + '/asyncio.py', 'w').write('raise SystemExit')",
    ),
    "sitecustomize and usercustomize": over(
        "sitecustomize.py",
        "open({file!r}, 'w').write('raise SystemExit'); "
        "open({folder!r} + '/usercustomize.py', 'w').write('raise SystemExit')",
    ),
    "a .pth and an environment": over(
        ".venv",
        "import os; os.makedirs({file!r} + '/lib/python3/site-packages'); "
        "open({file!r} + '/pyvenv.cfg', 'w').write('home = /')\n"
        "open({file!r} + '/lib/python3/site-packages/x.pth', 'w').write('import os; os._exit(3)')",
    ),
    "git hooks and settings of runners": over(
        ".git/hooks/post-checkout",
        "import os; os.makedirs({folder!r} + '/.git/hooks'); open({file!r}, 'w').write('#!/bin/sh')\n"
        "open({folder!r} + '/.npmrc', 'w').write('registry=http://127.0.0.1:1'); "
        "open({folder!r} + '/package.json', 'w').write('{{}}')",
    ),
    "the environment file as a link": over(
        "values.env",
        "import os; open({data!r} + '/e', 'w').write('VALUE=after'); os.remove({file!r}); "
        "os.symlink({data!r} + '/e', {file!r})",
    ),
    "a script that is removed": over("server.py", "import os; os.remove({file!r})"),
    "a script that is swapped for ever": over(
        "server.py",
        "import os, subprocess, sys; subprocess.Popen([sys.executable, '-c', '''\n"
        "import os, time\nend = time.time() + 20\nwhile time.time() < end:\n"
        '    open({data!r} + "/s", "w").write("raise SystemExit"); os.replace({data!r} + "/s", {file!r})\n'
        '    open({data!r} + "/s", "w").write("import sys; sys.exit(3)"); os.replace({data!r} + "/s", {file!r})\n'
        "'''], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)",
    ),
    "the program of another confined server": over("apart.py", "open({file!r}, 'w').write('raise SystemExit')"),
    "another variable file by its name": over("values.env.local", "open({file!r}, 'w').write('VALUE=after')"),
}


@pytest.mark.parametrize("way", OUTS)
async def test_no_way_to_widen_itself_by_the_folder_counts(project: Path, way: str) -> None:
    """A7, P10: whatever is put where Pegboard reads or runs something, the accepted text stays in force."""
    async with Pegboard.open(project / "pegboard.yaml") as board:
        found = await done(board, it=OUTS[way](project))
        assert found["it"].startswith("done"), found
        await board.reload()
        assert await said(board) == AS_ACCEPTED
        async with Pegboard.open(project / "pegboard.yaml") as other:
            assert await said(other) == AS_ACCEPTED


async def test_another_project_in_its_place_is_read_as_what_was_accepted(tmp_path: Path, project: Path) -> None:
    """A7: who may write the folder above renames the project and puts a link to another one in its place."""
    file = project / "pegboard.yaml"
    given = {"python": sys.executable, "reaching": SERVERS / "reaching_server.py"}
    wide = f"servers:\n  box: {{command: {given['python']}, args: [{given['reaching']}], confine: {{write: [..]}}}}\n"
    file.write_text(f"{wide}agents:\n  ada: {{discoverable: ['*']}}\n")
    async with Pegboard.open(file) as board:
        code = (
            f"import os; os.rename({str(project)!r}, {str(tmp_path / 'old')!r}); os.mkdir({str(tmp_path / 'evil')!r}); "
            f"open({str(tmp_path / 'evil' / 'pegboard.yaml')!r}, 'w').write('agents: {{eve: {{}}}}'); "
            f"os.symlink({str(tmp_path / 'evil')!r}, {str(project)!r})"
        )
        assert (await done(board, it=code))["it"].startswith("done")
        await board.reload()
        assert sorted(board.configuration.agents) == ["ada"]
    async with Pegboard.open(file) as board:
        assert sorted(board.configuration.agents) == ["ada"]
        assert {change.key[-1] for change in board.waiting} == {"loadouts/own.yaml", "pegboard.yaml"}


async def test_where_nothing_is_confined_an_edit_counts_at_once(project: Path) -> None:
    """P10: a person's own edit of a project that nothing confined may write needs no acceptance."""
    file = project / "pegboard.yaml"
    file.write_text(file.read_text().replace("confine: true", "confine: {write: []}"))
    async with Pegboard.open(file) as board:
        (project / "loadouts" / "own.yaml").write_text("plugins: [box, mine]\n")
        await board.reload()
        assert board.waiting == ()
        assert board.configuration.loadouts["own"].plugins == ("box", "mine")


async def test_a_folder_of_very_many_files_is_granted_whole(project: Path) -> None:
    """A7: more than are granted one by one where a folder has to be split; the last is as writable as the first."""
    many = project / "many"
    many.mkdir()
    for number in range(25_000):
        os.close(os.open(many / f"{number}", os.O_CREAT | os.O_WRONLY))
    async with Pegboard.open(project / "pegboard.yaml") as board:
        found = await done(board, **{name: f"open({str(many / name)!r}, 'w')" for name in ("0", "24999", "new")})
    assert {how[:4] for how in found.values()} == {"done"}


async def test_a_link_to_the_home_widens_nothing(project: Path) -> None:
    """A7: what a link in the project leads to is not the project."""
    secret = Path.home() / f".pegboard-{os.getpid()}"
    secret.write_text("secret")
    (project / "home").symlink_to(Path.home())
    try:
        async with Pegboard.open(project / "pegboard.yaml") as board:
            through = str(project / "home" / secret.name)
            found = await done(board, read=f"open({through!r}).read()", write=f"open({through!r}, 'a')")
    finally:
        secret.unlink()
    assert {how[:7] for how in found.values()} == {"refused"}


async def test_the_code_in_force_is_run_from_its_copy_and_the_configuration_is_not(project: Path) -> None:
    """A7: a plugin and a server run what was accepted; where nothing is confined they run from the project."""
    async with Pegboard.open(project / "pegboard.yaml") as board:
        mine, plain = board.configuration.specs["mine"], board.configuration.specs["plain"]
        assert isinstance(mine, PythonSpec)
        assert isinstance(plain, ServerSpec)
        assert Path(str(mine.folder)).is_relative_to(user_folders.state())
        assert Path(plain.args[0]).is_relative_to(user_folders.state())
        assert plain.cwd == str(project)


async def test_nobody_writes_over_an_edit_that_waits(project: Path) -> None:
    """A7: what a person saves would accept what something else has written meanwhile."""
    file = project / "pegboard.yaml"
    async with Pegboard.open(file) as board:
        shown = await board.editable.read()
        mine = f"{shown.text}# mine\n"
        await board.editable.save(mine, expected=shown.digest, by="ada", decision="saved", reason="")
        assert board.waiting == ()
        await done(board, it=put(file, f"{mine}# theirs\n"))
        theirs = await board.editable.read()
        with pytest.raises(ConfigError) as caught:
            await board.editable.save(
                f"{theirs.text}# more\n", expected=theirs.digest, by="ada", decision="", reason=""
            )
        assert caught.value.code == "file_waits"
        assert [change.key[-1] for change in board.waiting] == ["pegboard.yaml"]
