"""A kept configuration counts where nothing that it was made from has changed, and has no secret in it (X5)."""

import asyncio
import json
import os
import stat
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from acceptance import accept_found
from pegboard import assembly, configuration_source
from pegboard.config.cache import reader as files
from pegboard.config.cache.reader import read_cached
from pegboard.config.schema.configuration import Configuration
from pegboard.core.model.specs import ServerSpec
from pegboard.core.principals.bearer_tokens import OPERATOR
from pegboard.support import user_folders

SECRET = "hunter2-hunter2"
CONFIG = """
servers:
  up:
    command: run
    args: [--key, "${KEY}"]
    cwd: work
    env: {LEVEL: on, TOKEN: "${TOKEN:-}"}
  web: {url: "${WEB}/mcp", headers: {authorization: "Bearer ${KEY}"}, timeout: 0.1}
plugins:
  talk: {python: talk_tools}
toolkits:
  both: {description: "B", tools: [up, {web: {depth: 5, flag: off, names: [a, 1.5, null]}}]}
loadouts:
  mine: {extends: minimal, plugins: [up]}
agents:
  default:
    tools: [talk]
    allowed_toolkits: [both]
    loadout: mine
    permissions: {up: yes}
    budget: {tools: 5}
    remember: false
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a configuration, with a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("KEY", SECRET)
    monkeypatch.setenv("WEB", "https://ada:pw@example.org")
    monkeypatch.delenv("TOKEN", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    (work / "pegboard.yaml").write_text(CONFIG)
    (work / "talk_tools.py").write_text("def talk(): ...\n")
    monkeypatch.chdir(work)
    return work


def path() -> Path:
    return Path.cwd() / "pegboard.yaml"


def kept() -> Configuration | None:
    return read_cached(path(), os.environ)


def compiled() -> Configuration:
    from pegboard.config.inspection import load

    return load(path(), registered=configuration_source.registered_plugins())


def test_what_is_kept_is_what_is_compiled() -> None:
    assert kept() is None
    assert configuration_source.keep(path())
    assert kept() == compiled()
    assert repr(kept()) == repr(compiled())


def test_who_may_use_the_console_is_kept_with_the_token(folder: Path) -> None:
    path().write_text(CONFIG + 'tokens: {ada: {token: "${KEY}", agents: ["*"], console: true}}\n')
    assert configuration_source.keep(path())
    found = kept()
    assert found == compiled()
    assert found is not None
    assert [(t.principal, t.value, t.agents, t.rights) for t in found.tokens] == [("ada", SECRET, None, OPERATOR)]


def test_no_value_of_a_variable_is_written(tmp_path: Path) -> None:
    assert configuration_source.keep(path())
    written = b"".join(file.read_bytes() for file in (tmp_path / "cache").rglob("*") if file.is_file())
    assert b"authorization" in written
    assert [word for word in (SECRET, "hunter2", "ada:pw", "example.org") if word.encode() in written] == []


def test_a_value_by_reference_is_kept_as_it_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G13: also beside a variable, whose value is no reference whatever it says."""
    monkeypatch.setenv("KEY", "${cmd:touch ran}")
    more = '{A: "Bearer ${keyring:A}", API_TOKEN: "${KEY}-${op:Work/Item/token}", B: "$${file:b}"}'
    (folder / "pegboard.yaml").write_text(CONFIG.replace("env: {LEVEL: on,", f"env: {more}  #").replace(
        'args: [--key, "${KEY}"]', 'args: [--key, "${cmd:pass show a/b}"]'
    ))  # fmt: skip
    assert configuration_source.keep(path())
    assert kept() == compiled()
    found = kept()
    assert found is not None
    up = found.specs["up"]
    assert isinstance(up, ServerSpec)
    assert [(one.part, one.key, len(one.pieces)) for one in up.references] == [
        ("args", 1, 1), ("env", "A", 2), ("env", "API_TOKEN", 3),
    ]  # fmt: skip
    assert up.references[2].pieces[0] == "${cmd:touch ran}"


def test_only_the_user_may_read_it() -> None:
    assert configuration_source.keep(path())
    file = files.cache_file(path())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o666])
def test_a_file_that_others_may_read_or_write_does_not_count(mode: int) -> None:
    assert configuration_source.keep(path())
    files.cache_file(path()).chmod(mode)
    assert kept() is None


@pytest.mark.parametrize("name", ["KEY", "WEB", "TOKEN", "HOME"])
def test_another_value_of_a_variable_is_another_configuration(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert configuration_source.keep(path())
    monkeypatch.setenv(name, "https://other")
    assert kept() is None
    assert configuration_source.keep(path())
    assert kept() == compiled()


def test_a_variable_that_nothing_looks_up_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    assert configuration_source.keep(path())
    monkeypatch.setenv("UNRELATED", "x")
    assert kept() is not None


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pegboard.yaml", CONFIG + "# a remark\n"),
        ("talk_tools.py", "def talk_more(): ...\n"),
        ("loadouts/new.yaml", "plugins: [up]\n"),
        ("../own/pegboard/loadouts/new.yaml", "plugins: [up]\n"),
    ],
)
def test_a_changed_or_new_file_is_another_configuration(file: str, text: str) -> None:
    assert configuration_source.keep(path())
    target = Path(file)
    target.parent.mkdir(parents=True, exist_ok=True)
    status = path().stat()
    target.write_text(text)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))  # the contents count, not the time
    assert kept() is None


def test_an_edited_or_removed_loadout_is_another_configuration(folder: Path) -> None:
    loadout = folder / "loadouts" / "one.yaml"
    loadout.parent.mkdir()
    loadout.write_text("plugins: [up]\n")
    assert configuration_source.keep(path())
    loadout.write_text("plugins: [ap]\n")
    assert kept() is None
    assert configuration_source.keep(path())
    loadout.unlink()
    assert kept() is None


def test_an_installed_updated_or_edited_plugin_is_another_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    (site / "acme-1.0.dist-info").mkdir(parents=True)
    assert configuration_source.keep(path())
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
    assert kept() is None
    assert configuration_source.keep(path())
    (site / "acme-1.0.dist-info").rename(site / "acme-1.1.dist-info")
    assert kept() is None
    assert configuration_source.keep(path())
    (site / "acme-1.1.dist-info" / "entry_points.txt").write_text("[pegboard.plugins]\nacme = acme:tools\n")
    assert kept() is None


def test_another_release_compiles_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    assert configuration_source.keep(path())
    monkeypatch.setattr("pegboard.config.cache.origin.__version__", "99.0")
    assert kept() is None


def test_another_working_folder_has_a_configuration_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = path()
    assert configuration_source.keep(given)
    monkeypatch.chdir(tmp_path)
    assert read_cached(given, os.environ) is None


@pytest.mark.parametrize(
    "damage",
    [
        b"", b"\n", b"{}", b"\xff\xfe", b"null\nnull", b"[" * 100_000,
    ],
)  # fmt: skip
def test_a_damaged_file_is_no_file(damage: bytes) -> None:
    assert configuration_source.keep(path())
    files.cache_file(path()).write_bytes(damage)
    assert kept() is None
    assert configuration_source.keep(path())
    assert kept() == compiled()


def test_every_cut_and_every_changed_byte_is_noticed() -> None:
    assert configuration_source.keep(path())
    file = files.cache_file(path())
    whole = file.read_bytes()
    for at in range(0, len(whole), 97):
        file.write_bytes(whole[:at])
        assert kept() is None
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert kept() is None


@pytest.mark.parametrize(
    "content", [None, [], {}, {"origin": {}}, {"origin": {"files": 1}}, {"origin": {"files": [], "unheard": []}}]
)
def test_a_file_of_another_shape_is_no_file(content: object) -> None:
    files.save(files.cache_file(path()), content)
    assert kept() is None


@pytest.mark.parametrize(
    "text",
    [
        CONFIG + "tokens: {ada: {token: literal-secret, agents: [default]}}\n",
        CONFIG.replace("LEVEL: on", "API_KEY: literal-secret"),
        CONFIG.replace("--key, ", "--token, literal-secret, "),
        CONFIG.replace("depth: 5", "password: literal-secret"),
        CONFIG.replace("depth: 5", "db: postgres://ada:literal-secret@db/x"),
        CONFIG.replace('"${WEB}/mcp"', '"https://example.org/mcp?key=literal-secret"'),
        CONFIG.replace('"Bearer ${KEY}"', '"Bearer literal-secret"'),
        CONFIG.replace("command: run", "command: run\n    envFile: variables"),
        CONFIG + "store: 'memory:'\n",
    ],
)
def test_what_has_a_secret_in_its_files_or_keeps_nothing_is_not_kept(text: str, tmp_path: Path) -> None:
    Path("variables").write_text("API=literal-secret\n")
    assert configuration_source.keep(path())
    path().write_text(text)
    compiled()
    assert not configuration_source.keep(path())
    assert [file for file in (tmp_path / "cache").rglob("*") if file.is_file()] == []


@pytest.mark.parametrize("value", ["5", "7.5"])
def test_a_number_in_a_variable_is_never_written(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECONDS", value)
    path().write_text(CONFIG.replace("timeout: 0.1", 'timeout: "${SECONDS}"'))
    assert compiled().specs["web"]
    assert not configuration_source.keep(path())


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pegboard.json"
    os.mkfifo(pipe)
    assert read_cached(pipe, os.environ) is None


def test_a_broken_configuration_is_not_kept_and_removes_what_was() -> None:
    assert configuration_source.keep(path())
    path().write_text("agents: 5\n")
    assert not configuration_source.keep(path())
    assert not files.cache_file(path()).exists()


def test_a_folder_that_cannot_be_written_costs_nothing_but_the_cache(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder would be")
    assert not configuration_source.keep(path())
    assert kept() is None


def keep_often(times: int) -> list[bool]:
    return [configuration_source.keep(path()) for _ in range(times)]


def test_processes_that_write_at_once_leave_a_whole_file() -> None:
    with ProcessPoolExecutor(2) as pool:
        running = [pool.submit(keep_often, 15) for _ in range(2)]
        while not all(one.done() for one in running):
            found = kept()
            assert found is None or found == compiled()
        assert [all(one.result()) for one in running] == [True, True]
    assert kept() == compiled()
    assert len(list(files.cache_file(path()).parent.iterdir())) == 1


def test_only_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST", 2)
    for number in range(4):
        Path(f"{number}.yaml").write_text(CONFIG)
        assert configuration_source.keep(Path(f"{number}.yaml"))
    assert len(list((user_folders.cache() / files.FOLDER).iterdir())) == 2


def test_check_keeps_the_configuration_and_the_board_takes_it() -> None:
    from pegboard.cli import main

    path().write_text(CONFIG.replace("timeout: 0.1", "timeout: 5"))
    accept_found()
    assert main(["check"]) == 0
    content = json.loads(files.cache_file(path()).read_bytes().partition(b"\n")[2])
    assert content["markers"].keys() == {"KEY", "WEB"}

    async def opened(*, cached: bool) -> bool:
        async with assembly.Pegboard.open(cached=cached) as board:
            return board.from_cache

    assert asyncio.run(opened(cached=True))
    assert not asyncio.run(opened(cached=False))
