"""A configuration is saved in one step: it is the old file or the new one, whatever happens in between."""

import os
import stat
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from pegboard.config.saving import read_whole, replace_whole
from pegboard.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    path.write_bytes(b"a: 1\r\n")
    return path


def refused(path: Path, text: str, expected: str) -> ConfigError:
    with pytest.raises(ConfigError) as error:
        replace_whole(path, text, expected=expected)
    return error.value


def test_line_breaks_mark_mode_and_owner_stay(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbfa: 1\r\n")
    file.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(file, 1234, 1234)
    before, read = file.stat(), read_whole(file)
    assert read.text == "a: 1\r\n"
    digest = replace_whole(file, "a: 2\r\n", expected=read.digest)
    after = file.stat()
    assert file.read_bytes() == b"\xef\xbb\xbfa: 2\r\n"
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert read_whole(file).digest == digest
    assert [one.name for one in file.parent.iterdir()] == [file.name]


def test_a_link_stays_and_what_it_leads_to_is_replaced(file: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.yaml"
    link.symlink_to(file)
    replace_whole(link, "a: 2\n", expected=read_whole(link).digest)
    assert link.is_symlink()
    assert file.read_text() == "a: 2\n"


def test_a_file_that_was_changed_meanwhile_is_left_alone(file: Path) -> None:
    shown = read_whole(file).digest
    file.write_text("a: other\n")
    assert refused(file, "a: 2\n", shown).code == "file_changed"
    assert file.read_text() == "a: other\n"


@pytest.mark.parametrize(("of", "mode"), [("file", 0o444), ("folder", 0o555)])
def test_what_nobody_is_to_write_is_not_written(file: Path, of: str, mode: int) -> None:
    read, locked = read_whole(file), file if of == "file" else file.parent
    before = stat.S_IMODE(locked.stat().st_mode)
    locked.chmod(mode)
    try:
        error = refused(file, "a: 2\n", read.digest)
    finally:
        locked.chmod(before)
    assert error.code == "not_rewritable"
    assert "read-only" in error.message
    assert file.read_bytes() == b"a: 1\r\n"


@pytest.mark.parametrize(
    ("owner", "name"),
    [(tempfile, "mkstemp"), (os, "fsync"), (os, "fdopen"), (Path, "chmod"), (Path, "replace"), (Path, "read_bytes")],
)
def test_a_system_call_that_fails_leaves_the_file_whole(
    file: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    """A full disk, another disk, a folder that is gone: the old file stays, and nothing beside it."""
    read = read_whole(file)

    def fails(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, fails)
        error = refused(file, "a: 2\n", read.digest)
    assert error.code == "file_not_saved"
    assert "No space left on device" in error.message
    assert file.read_bytes() == b"a: 1\r\n"
    assert [one.name for one in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("at", ["fsync", "replace"])
def test_a_process_that_dies_in_between_leaves_the_old_file_or_the_new(file: Path, at: str) -> None:
    """The child ends by itself in the middle of a save, as with a kill."""
    digest = read_whole(file).digest
    child = os.fork()
    if child == 0:
        setattr(os if at == "fsync" else Path, at, lambda *_: os._exit(9))
        replace_whole(file, "a: 2\n", expected=digest)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert file.read_bytes() == b"a: 1\r\n"
    replace_whole(file, "a: 3\n", expected=digest)
    assert file.read_text() == "a: 3\n"


def test_of_two_who_save_at_once_one_wins(file: Path) -> None:
    digest, outcomes = read_whole(file).digest, list[str]()
    begin = threading.Barrier(8)

    def save(number: int) -> None:
        begin.wait()
        try:
            replace_whole(file, f"a: {number}\n", expected=digest)
            outcomes.append(f"a: {number}\n")
        except ConfigError as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=save, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [file.read_text(), *["file_changed"] * 7]
