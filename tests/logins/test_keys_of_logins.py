"""What becomes of stored logins when the key that they are sealed with is gone, another, or none at all (G11)."""

import base64
import json
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from authorization.site import LoginSite
from logins.conftest import Person
from logins.test_library_logins import account_of, logged_in, session_of
from pegboard import Pegboard
from pegboard.cli import main
from pegboard.core.access.instances import LoginOwner
from pegboard.errors import StoreError
from pegboard.operators.logins import OperatorLogins

FIRST, SECOND = (base64.b64encode(secrets.token_bytes(32)).decode() for _ in range(2))


async def stand(board: Pegboard) -> dict[str, str]:
    """Return why the login of each principal does not count, or nothing."""
    return {view.principal: view.refused for view in await OperatorLogins(board.services).listed()}


@pytest.fixture
async def of_two(
    configuration: dict[str, Any], person: Person, site: LoginSite, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Return a configuration over which ada and bob have logged in, sealed with the first key."""
    monkeypatch.setenv("PEGBOARD_KEY", FIRST)
    async with Pegboard.open(configuration) as board:
        await logged_in(board, person)
        await logged_in(board, person, "bob", "ben")
    return configuration


async def test_g11_with_another_key_a_login_is_asked_for_with_the_reason_and_those_of_others_stay(
    of_two: dict[str, Any], person: Person, monkeypatch: pytest.MonkeyPatch, site: LoginSite
) -> None:
    monkeypatch.setenv("PEGBOARD_KEY", SECOND)
    async with Pegboard.open(of_two) as board:
        session = await session_of(board)
        refused = await session.call("linear__whoami", {})
        assert refused.login is not None
        assert "sealed with another key" in refused.message
        assert "PEGBOARD_KEY" in refused.message
        assert await stand(board) == dict.fromkeys(("ada", "bob"), "it was sealed with another key")
        await person(refused.login.url, "ada")
        assert account_of(await session.resume(refused.login.id)) == "ada"
        assert await stand(board) == {"ada": "", "bob": "it was sealed with another key"}
    monkeypatch.setenv("PEGBOARD_KEY", FIRST)
    async with Pegboard.open(of_two) as board:
        assert account_of(await (await session_of(board, "bob")).call("linear__whoami", {})) == "ben"
        assert await stand(board) == {"ada": "it was sealed with another key", "bob": ""}
    assert site.counts["authorizations"] == 3


async def test_g11_without_the_file_of_the_key_a_new_one_is_made_and_a_new_login_works(
    configuration: dict[str, Any], person: Person
) -> None:
    async with Pegboard.open(configuration) as board:
        await logged_in(board, person)
    lose_key(configuration)
    async with Pegboard.open(configuration) as board:
        session = await session_of(board)
        refused = await session.call("linear__whoami", {})
        assert refused.login is not None
        assert "the file beside the store" in refused.message
        await person(refused.login.url, "ada")
        assert account_of(await session.resume(refused.login.id)) == "ada"
        assert "another key" not in (await logged_out(board)).message


def lose_key(configuration: dict[str, Any]) -> None:
    Path(f"{configuration['store'].removeprefix('sqlite:///')}.key").unlink()


async def logged_out(board: Pegboard) -> Any:
    """Return what ada's next call is answered once her login has ended."""
    assert await OperatorLogins(board.services).end("linear", LoginOwner("ada"))
    return await (await session_of(board)).call("linear__whoami", {})


async def test_g11_two_boards_with_keys_of_their_own_on_one_store_spoil_nothing_of_each_other(
    of_two: dict[str, Any], person: Person, site: LoginSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Pegboard.open(of_two) as first, Pegboard.open(of_two) as second:
        ada = await session_of(first)
        assert account_of(await ada.call("linear__whoami", {})) == "ada"
        monkeypatch.setenv("PEGBOARD_KEY", SECOND)
        eve = await logged_in(second, person, "eve", "ben")
        for _ in range(2):
            site.expire()
            assert account_of(await ada.call("linear__whoami", {})) == "ada"
            assert account_of(await eve.call("linear__whoami", {})) == "ben"
        assert await stand(first) == {"ada": "", "bob": "", "eve": "it was sealed with another key"}
        other = "it was sealed with another key"
        assert await stand(second) == {"ada": other, "bob": other, "eve": ""}
    assert "reuses" not in site.counts


WRONG_KEYS: Sequence[str] = ("hunter2-hunter2", base64.b64encode(b"sixteen bytes ..").decode(), "ключ")


@pytest.mark.parametrize("key", WRONG_KEYS)
async def test_g11_a_key_that_is_none_is_said_with_what_would_be_one_and_is_not_shown(
    configuration: dict[str, Any], monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("PEGBOARD_KEY", key)
    async with Pegboard.open(configuration) as board:
        answer = await (await session_of(board)).call("linear__whoami", {})
    assert answer.status == "tool_unavailable"
    assert "PEGBOARD_KEY is not a key: 32 bytes in base64. Make one: python -c" in answer.message
    assert key not in repr(answer)


async def test_g11_a_key_that_is_none_leaves_what_is_stored_and_is_said_to_whoever_asks(
    of_two: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_KEY", WRONG_KEYS[0])
    async with Pegboard.open(of_two) as board:
        session = await session_of(board)
        answer = await session.call("linear__whoami", {})
        with pytest.raises(StoreError) as raised:
            await OperatorLogins(board.services).listed()
    assert raised.value.code == "key_not_valid"
    assert answer.is_error
    assert "is not a key" in answer.message
    monkeypatch.setenv("PEGBOARD_KEY", FIRST)
    async with Pegboard.open(of_two) as board:
        assert await stand(board) == {"ada": "", "bob": ""}


def test_g11_the_command_says_what_is_wrong_with_a_key(
    configuration: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PEGBOARD_KEY", WRONG_KEYS[0])
    config = tmp_path / "pegboard.json"
    config.write_text(json.dumps(configuration))
    assert main(["login", "linear", "--config", str(config), "--json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "key_not_valid"
    assert "PEGBOARD_KEY is not a key" in error["message"]
