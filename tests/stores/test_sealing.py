"""The key that secrets are sealed with: given, else made once beside the store (G11)."""

import base64
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pegboard.errors import StoreError
from pegboard.stores.sql.sealing import Sealing
from pegboard.stores.sql.sealing_keys import SealingKeys

GIVEN = base64.b64encode(bytes(range(32))).decode()


def sealing_for(store: Path, env: Mapping[str, str]) -> Sealing:
    return SealingKeys(str(store), store, env).find_sealing()


def test_g11_a_key_is_made_once_beside_the_store_for_its_owner_alone(tmp_path: Path) -> None:
    store = tmp_path / "pegboard.db"
    with ThreadPoolExecutor(8) as pool:
        sealings = list(pool.map(lambda _: sealing_for(store, {}), range(8)))
    sealed = sealings[0].seal("secret", "name")
    assert [one.open(sealed, "name") for one in sealings] == ["secret"] * 8
    assert [path.name for path in tmp_path.iterdir()] == ["pegboard.db.key"]
    assert (tmp_path / "pegboard.db.key").stat().st_mode & 0o777 == 0o600


def test_g11_a_given_key_goes_before_and_another_key_or_name_opens_nothing(tmp_path: Path) -> None:
    store = tmp_path / "pegboard.db"
    given, made = sealing_for(store, {"PEGBOARD_KEY": GIVEN}), sealing_for(store, {})
    sealed = given.seal("secret", "name")
    assert b"secret" not in sealed
    assert sealing_for(store, {"PEGBOARD_KEY": GIVEN}).open(sealed, "name") == "secret"
    assert made.open(sealed, "name") is None
    assert given.open(sealed, "other") is None
    assert given.open(sealed[:-1], "name") is None


@pytest.mark.parametrize("key", ["short", GIVEN[:-4], "ключ", GIVEN + GIVEN])
def test_g11_what_is_no_key_is_said_without_showing_it(key: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        sealing_for(tmp_path / "pegboard.db", {"PEGBOARD_KEY": key})
    assert caught.value.code == "key_not_valid"
    assert "PEGBOARD_KEY" in str(caught.value)
    assert key not in str(caught.value)


def test_g11_a_folder_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="PEGBOARD_KEY"):
        sealing_for(tmp_path / "file" / "pegboard.db", {})
