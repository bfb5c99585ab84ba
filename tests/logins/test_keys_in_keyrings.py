"""What becomes of logins that are sealed with a key of the keyring where that keyring cannot be asked (G11)."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from keyring.backends.fail import Keyring as NoKeyring
from keyring.errors import InitError, KeyringLocked

from authorization.site import LoginSite
from keyring_files import Lockable, lockable_in, used
from logins.conftest import Person
from logins.test_library_logins import account_of, logged_in, session_of
from pegboard import Pegboard
from pegboard.cli import main

SECRET = "s3cret-of-the-keyring"


@pytest.fixture
def desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lockable]:
    """Return the keyring of whoever is logged in at a desktop, open."""
    monkeypatch.delenv("PEGBOARD_KEY", raising=False)
    with lockable_in(tmp_path / "keyring") as ours:
        yield ours


def keys_beside(configuration: dict[str, Any]) -> list[str]:
    folder = Path(configuration["store"].removeprefix("sqlite:///")).parent
    return [path.name for path in folder.glob("*.key*")]


async def listed(configuration: dict[str, Any], folder: Path, *arguments: str) -> int:
    config = folder / "pegboard.json"
    config.write_text(json.dumps(configuration))
    return await asyncio.to_thread(main, ["login", "--list", "--config", str(config), *arguments])


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        (KeyringLocked(SECRET), "the keyring is locked. Unlock it, then try again."),
        (InitError(SECRET), "the keyring could not be opened. Unlock it, then try again."),
        (OSError(SECRET), "the keyring failed (OSError). Without the keyring, set PEGBOARD_KEY"),
    ],
)
async def test_g11_a_start_with_a_locked_keyring_makes_no_other_key_and_the_login_counts_once_it_is_open(
    configuration: dict[str, Any], desktop: Lockable, person: Person, site: LoginSite, trouble: Exception, why: str
) -> None:
    async with Pegboard.open(configuration) as board:
        await logged_in(board, person)
    desktop.trouble = trouble
    async with Pegboard.open(configuration) as board:
        session = await session_of(board)
        refused = await session.call("linear__whoami", {})
        assert refused.is_error
        assert why in refused.message
        assert "set PEGBOARD_KEY to that key, which `keyring get pegboard 'store " in refused.message
        assert SECRET not in repr(refused)
        assert keys_beside(configuration) == []
        desktop.trouble = None
        assert account_of(await session.call("linear__whoami", {})) == "ada"
    async with Pegboard.open(configuration) as board:
        assert account_of(await (await session_of(board)).call("linear__whoami", {})) == "ada"
    assert keys_beside(configuration) == []
    assert site.counts["authorizations"] == 1


async def test_g11_the_command_says_in_one_sentence_that_the_keyring_is_locked(
    configuration: dict[str, Any],
    desktop: Lockable,
    person: Person,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with Pegboard.open(configuration) as board:
        await logged_in(board, person)
    desktop.trouble = KeyringLocked(SECRET)
    assert await listed(configuration, tmp_path, "--json") == 6
    said = capsys.readouterr()
    error = json.loads(said.out)["error"]
    assert error["code"] == "key_not_available"
    assert error["message"].endswith("pegboard.db cannot be read: the keyring is locked.")
    assert error["hint"].startswith("Unlock it, then try again. Without the keyring, set PEGBOARD_KEY")
    assert await listed(configuration, tmp_path) == 6
    plain = capsys.readouterr()
    for text in (said.out, said.err, plain.out, plain.err):
        assert "Traceback" not in text
        assert SECRET not in text
    desktop.trouble = None
    assert await listed(configuration, tmp_path, "--json") == 0
    assert '"principal": "ada"' in capsys.readouterr().out
    assert keys_beside(configuration) == []


async def test_g11_where_there_is_no_keyring_logins_of_one_are_not_shadowed_by_a_new_key(
    configuration: dict[str, Any], desktop: Lockable, person: Person, site: LoginSite
) -> None:
    async with Pegboard.open(configuration) as board:
        await logged_in(board, person)
    with used(NoKeyring()):
        async with Pegboard.open(configuration) as board:
            refused = await (await session_of(board)).call("linear__whoami", {})
    assert "cannot be read: this system has no keyring. Without the keyring, set PEGBOARD_KEY" in refused.message
    assert keys_beside(configuration) == []
    with used(desktop):
        async with Pegboard.open(configuration) as board:
            assert account_of(await (await session_of(board)).call("linear__whoami", {})) == "ada"
    assert site.counts["authorizations"] == 1
