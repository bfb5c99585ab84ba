"""From what a plugin is confined to, to the paths that its process may reach; and what is started (A7)."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pegboard.core.access.named_paths import OwnKind, OwnPaths
from pegboard.core.model.specs import CONFINE_DEFAULT, Confinement
from pegboard.errors import ToolUnavailableError
from pegboard.sources.confinement import ConfinementPolicy, line_for
from pegboard.sources.confinement.command import environment
from pegboard.sources.confinement.plan import ConfinedPlugin, Kind, plan
from pegboard.sources.confinement.seatbelt import profile

OWN = OwnPaths(
    files={
        "/srv/app/pegboard.yaml": "configuration",
        "/srv/app/tools.py": "code",
        "/srv/app/.vscode/mcp.json": "client",
    },
    folders={"/srv/app/.pegboard": "store"},
)
SUBJECT = ConfinedPlugin(
    name="notes", folder="/srv/app", home="/home/ada", caches="/caches/notes", temporary="/tmp/notes"
)


class Folders:
    """A file system in memory: folders with what is in them, by their paths."""

    def __init__(self, folders: Mapping[str, Mapping[str, Kind]]) -> None:
        self._folders = folders

    def resolve_path(self, path: str) -> str | None:
        return path

    def link_folders(self, path: str) -> tuple[str, ...]:
        return ()

    def entries(self, folder: str) -> Iterator[tuple[str, Kind]]:
        yield from self._folders.get(folder, {}).items()


APP = Folders(
    {
        "/srv/app": {
            ".pegboard": "folder",
            ".vscode": "folder",
            "data": "folder",
            "elsewhere": "link",
            "notes.txt": "file",
            "pegboard.yaml": "file",
            "tools.py": "file",
        },
        "/srv/app/.vscode": {"mcp.json": "file", "settings.json": "file"},
        "/home/ada": {".ssh": "folder", ".bashrc": "file", "papers": "folder"},
    }
)


COUNTED = replace(OWN, folders={})


class Whole(Folders):
    """A file system whose folders are too large to be looked into."""

    def entries(self, folder: str) -> Iterator[tuple[str, Kind]]:
        raise AssertionError(folder)


def test_a_project_is_written_whole_however_much_lies_in_it() -> None:
    """A7: with what Pegboard reads and runs of it, which counts as it was accepted, and without a look into it."""
    policy = plan(CONFINE_DEFAULT, SUBJECT, Whole({}), COUNTED, ["/usr"])
    assert policy.write == ("/caches/notes", "/tmp/notes", "/srv/app")
    assert policy.writes("/srv/app/new")
    assert policy.writes("/srv/app/pegboard.yaml")


def test_what_may_only_be_read_is_granted_entry_by_entry() -> None:
    """P10: of a folder with files of Pegboard's own, code is read, and no link and nothing else of Pegboard's."""
    policy = plan(Confinement(write=(), read=("/srv/app",)), SUBJECT, APP, OWN, [])
    read = ("/srv/app/.vscode/settings.json", "/srv/app/data", "/srv/app/notes.txt", "/srv/app/tools.py")
    assert policy.read == read
    assert policy.list_only == ("/srv/app", "/srv/app/.vscode")


@pytest.mark.parametrize("kind", ["store", "cache", "state", "settings"])
def test_a_folder_that_holds_what_counts_as_it_is_is_refused(kind: OwnKind) -> None:
    """A7: a store in a project, or the settings of the user, refuse the confinement, with the path and what to do."""
    own = OwnPaths(folders={"/srv/app/.pegboard": kind})
    with pytest.raises(
        ToolUnavailableError, match=r"it may write '/srv/app', and '/srv/app/\.pegboard' in it is"
    ) as caught:
        plan(CONFINE_DEFAULT, SUBJECT, APP, own, [])
    assert "`confine: {write: [sub/folder]}`" in caught.value.hint


def test_a_folder_without_any_is_granted_whole() -> None:
    policy = plan(Confinement(write=("/srv/app/data",)), SUBJECT, APP, OWN, [])
    assert policy.write[2:] == ("/srv/app/data",)
    assert policy.split_folders == ()


def test_of_a_home_what_is_hidden_is_left_out_and_true_gives_none_of_it() -> None:
    "A7: `true` never means the user's folder; where it is named, keys and start files stay out."
    named = plan(Confinement(write=("/home/ada",)), SUBJECT, APP, OWN, [])
    assert named.write[2:] == ("/home/ada/papers",)
    for folder in ("/home/ada", "/home", "/"):
        policy = plan(CONFINE_DEFAULT, replace(SUBJECT, folder=folder), APP, OWN, [])
        assert policy.write == ("/caches/notes", "/tmp/notes")
        assert policy.refused_paths == (".",)


def test_nothing_of_pegboards_own_can_be_named() -> None:
    for path in ("/srv/app/.pegboard", "/srv/app/pegboard.yaml", "/srv/app/tools.py"):
        with pytest.raises(ToolUnavailableError, match="which is Pegboard's own"):
            plan(Confinement(write=(path,)), SUBJECT, APP, OWN, [])
    assert "/srv/app/tools.py" in plan(Confinement(write=(), read=("/srv/app/tools.py",)), SUBJECT, APP, OWN, []).read


def test_a_policy_of_too_many_paths_is_refused_with_what_to_do() -> None:
    many: dict[str, Kind] = {hashlib.sha256(bytes(number)).hexdigest(): "file" for number in range(5_000)}
    crowded = Folders({"/srv/app": many})
    policy = plan(Confinement(write=(), read=("/srv/app",)), SUBJECT, crowded, OWN, [])
    with pytest.raises(ToolUnavailableError) as caught:
        policy.text()
    assert caught.value.text == (
        "it cannot be confined: /srv/app contains too much next to Pegboard's own files. "
        "Name the folders that it needs under `confine: {write: [...]}`."
    )


def test_the_environment_leads_to_its_own_folders_and_to_no_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    "A7: caches and temporary files are its own; variables of agents, D-Bus and Docker are dropped."
    monkeypatch.setenv("HOME", str(tmp_path))
    policy = plan(Confinement(network=(443, 53), write=("/srv/app/data",)), SUBJECT, APP, OWN, [])
    given = {
        "PATH": "/usr/bin",
        "SSH_AUTH_SOCK": "/run/agent",
        "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1000/bus",
        "DOCKER_HOST": "unix:///var/run/docker.sock",
        "XDG_RUNTIME_DIR": "/run/user/1000",
        "UV_CACHE_DIR": "/srv/app/data/uv",
        "PIP_CACHE_DIR": "/home/ada/.cache/pip",
    }
    assert environment(given, policy) == {
        "PATH": "/usr/bin",
        "UV_CACHE_DIR": "/srv/app/data/uv",
        "XDG_CACHE_HOME": "/caches/notes",
        "PIP_CACHE_DIR": "/home/ada/.cache/pip",
        "TMPDIR": "/tmp/notes",
        "TMP": "/tmp/notes",
        "TEMP": "/tmp/notes",
        "RES_OPTIONS": "use-vc",
    }


def test_git_does_without_settings_that_it_may_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    "A7: it would end there; what is granted it reads, and what its server says goes before."
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = tmp_path / ".gitconfig"
    settings.write_text("")
    none = plan(Confinement(write=()), SUBJECT, APP, OWN, [])
    granted = replace(none, read=(str(settings),))
    assert environment({}, none)["GIT_CONFIG_GLOBAL"] == "/dev/null"
    assert "GIT_CONFIG_GLOBAL" not in environment({}, granted)
    assert environment({"GIT_CONFIG_GLOBAL": "/srv/x"}, none)["GIT_CONFIG_GLOBAL"] == "/srv/x"


def test_the_profile_of_macos_allows_what_the_policy_has_and_nothing_else() -> None:
    "A7: tried as text only."
    policy = ConfinementPolicy(
        write=("/tmp/notes",), read=("/usr", '/odd "one"'), list_only=("/srv",), devices=("/dev/null",), network=(443,)
    )
    assert profile(policy).splitlines() == [
        "(version 1)",
        "(deny default)",
        "(allow process-exec process-fork)",
        "(allow signal (target same-sandbox))",
        "(allow sysctl-read)",
        "(allow file-read-metadata)",
        '(allow file-read* (literal "/"))',
        r'(allow file-read* (subpath "/usr") (subpath "/odd \"one\"") (subpath "/tmp/notes"))',
        '(allow file-read* (literal "/srv"))',
        '(allow file-read* file-write* (literal "/dev/null"))',
        '(allow file-write* (subpath "/tmp/notes"))',
        '(allow network-outbound (remote tcp "*:443"))',
        '(allow network-bind network-inbound (local tcp "*:443"))',
    ]
    assert "network" not in profile(replace(policy, network=()))
    assert '(allow network-outbound (remote ip "*:*"))' in profile(replace(policy, network=None))


def test_the_line_that_grants_a_path_keeps_what_is_granted() -> None:
    whole = Confinement(folder="/srv/app")
    assert line_for(whole, "write", "/data") == "`confine: {write: [/srv/app, /data]}`"
    assert line_for(whole, "read", "/data") == "`confine: {read: [/data]}`"
    narrow = Confinement(write=(), network=(), if_possible=True)
    assert line_for(narrow, "write", "/data") == "`confine: {write: [/data], network: none, if_possible: true}`"
