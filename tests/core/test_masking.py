"""No secret in anything that is written."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.model.masking import MASK, Masker, mask_overrides


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("token is hunter22.", "token is ***."),
        ("hunter22hunter22", "******"),
        ("postgres://ada:pw@db/x", "postgres://***@db/x"),
        ("postgres://ada:p@ss@db/x", "postgres://***@db/x"),
        ("https://tok@host and http://u:p@other/", "https://***@host and http://***@other/"),
        ("https://host/@user", "https://host/@user"),
        ("mail ada@example.com", "mail ada@example.com"),
        ("nothing here", "nothing here"),
        ("", ""),
    ],
)
def test_secrets_and_userinfo_are_masked_in_text(text: str, expected: str) -> None:
    """X5: every value that came from `${…}`, and the userinfo of a URL."""
    assert Masker(["hunter22"]).text(text) == expected


@pytest.mark.parametrize("secret", ['p"a\\ss', "line\nbreak", "pä ss/wörd+", "a&b=c%d"])
def test_a_secret_is_masked_however_it_is_written(secret: str) -> None:
    """X5: as it is, quoted in a URL, or inside JSON text."""
    masker = Masker([secret])
    assert masker.text(f"<{secret}>") == "<***>"
    assert masker.text(json.dumps({"x": secret})) == '{"x": "***"}'
    assert masker.text(json.dumps({"x": secret}, ensure_ascii=False)) == '{"x": "***"}'


def test_the_longer_of_two_secrets_is_masked_whole() -> None:
    """X5: no rest of it is left."""
    assert Masker(["hunter", "hunter22"]).text("hunter22") == MASK


def test_a_short_secret_is_masked_where_it_stands_alone() -> None:
    """X5: in running text it would hide half of it."""
    masker = Masker(["ab", ""])
    assert masker.text("about") == "about"
    assert masker.value({"x": "ab", "y": ["ab", "about"]}) == {"x": MASK, "y": [MASK, "about"]}


@pytest.mark.parametrize(
    "key",
    ["password", "DB_PASSWORD", "api_key", "apiKey", "API-KEY", "accessToken", "clientSecret", "authorization",
     "x-api-key", "credentials", "dsn", "tokens", "secret_key", "passphrase"],
)  # fmt: skip
def test_a_value_under_a_secret_key_is_masked(key: str) -> None:
    """X5, T5: whatever the value is."""
    assert Masker().value({key: "x"}) == {key: MASK}
    assert Masker().value({"a": [{key: {"deep": 1}}]}) == {"a": [{key: MASK}]}


@pytest.mark.parametrize("key", ["keyboard", "monkey", "tokenizer", "secretary", "author", "host", "primary_key"])
def test_a_value_under_another_key_is_shown(key: str) -> None:
    """X5: a mask that hides everything says nothing."""
    assert Masker().value({key: "x"}) == {key: "x"}


def test_a_number_of_tokens_is_no_secret() -> None:
    """X5, T5: two budgets that differ can be told apart; a token is masked even as a number."""
    assert Masker().value({"max_tokens": 100, "tokens": 5, "token": 5}) == {
        "max_tokens": 100, "tokens": 5, "token": MASK,
    }  # fmt: skip


def test_numbers_that_are_secrets_are_masked() -> None:
    """X5: a port that came from the environment is masked as a number too; true and null are not."""
    assert Masker(["5432", "True", "1"]).value([5432, 54321, True, None]) == [MASK, 54321, True, None]


def test_declared_secrets_are_masked_by_their_names() -> None:
    """X5: a plugin says which of its overrides must not be shown."""
    assert mask_overrides({"db_url": "sqlite://", "port": 1}, Masker(), frozenset({"db_url"})) == {
        "db_url": MASK,
        "port": 1,
    }


def test_masking_leaves_the_value_itself_alone() -> None:
    """X5: what runs has the real value."""
    overrides = {"a": {"password": "x"}}
    mask_overrides(overrides, Masker(), frozenset())
    assert overrides == {"a": {"password": "x"}}


@given(
    st.lists(st.text(min_size=4, max_size=20), min_size=1, max_size=4),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ),
    st.data(),
)
def test_no_secret_is_left_in_what_is_shown(secrets: list[str], value: object, data: st.DataObject) -> None:
    """X5: wherever it is in a value or a text, except a part of the mask itself."""
    secrets = [secret for secret in secrets if set(secret) - {"*"}]
    if not secrets:
        return
    masker = Masker(secrets)
    secret = data.draw(st.sampled_from(secrets))
    shown = masker.value({"a": value, "b": [secret], "c": {"d": f"<{secret}>"}})
    assert shown["b"] == [MASK]
    assert secret not in shown["c"]["d"] or "*" in secret
    assert masker.text(secret) == MASK


def test_a_secret_of_several_lines_is_masked_line_by_line() -> None:
    """X5: a private key that a server prints; lines that may stand anywhere stay."""
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nshort\n-----END KEY-----\n"
    printed = "\n".join(Masker([key]).text(line) for line in f"it is {key}".splitlines())
    assert printed == "it is ***\n***\nshort\n***"


TOKEN = st.text("abcdefgh0189-._~+/=%|", min_size=12, max_size=40)


@given(st.lists(TOKEN, min_size=1, max_size=8), st.lists(TOKEN, max_size=4), st.text("ab \n{}", max_size=20), st.data())
def test_what_is_learned_is_masked_like_what_is_given(
    learned: list[str], given: list[str], between: str, data: st.DataObject
) -> None:
    """X5: a token of a login is masked wherever it stands whole, in JSON too, and at a cut."""
    masker = Masker(given)
    for number, value in enumerate(learned):
        masker.learn(f"login {number}", value)
    value = data.draw(st.sampled_from([*learned, *given]))
    text = f"{between}{json.dumps({'sent': f'Bearer {value}', 'other': value})}{between}"
    every = [*learned, *given]
    for masked_text in (masker.text(text), *map(str, masker.value({text: [text]}).items())):
        assert not any(one in masked_text for one in every)
    for most in range(0, len(text) + 2, 3):
        assert not any(one in masker.beginning(text, most) for one in every)
    assert {*every} <= masker.values
    assert {*every} <= masker.forms


def test_of_each_login_the_newest_tokens_are_masked_and_no_more_are_kept() -> None:
    """X5: a token that is renewed each hour has no end of values; another login that has the same one keeps it."""
    masker, tokens = Masker(), [f"access-token-{number:08}" for number in range(40)]
    masker.learn("bob", tokens[0])
    for token in tokens:
        masker.learn("ada", token)
    assert masker.text(" ".join(tokens[-16:])) == " ".join([MASK] * 16)
    assert masker.text(tokens[0]) == MASK
    assert masker.text(tokens[1]) == tokens[1]
    assert masker.values == {tokens[0], *tokens[-16:]}


def test_a_word_of_the_configuration_does_not_cut_a_token_in_two() -> None:
    """X5: what is left of it could still be read."""
    masker = Masker(["beef"])
    masker.learn("ada", "token-deadbeef-0123456789")
    assert masker.text("sent token-deadbeef-0123456789, beef") == "sent ***, ***"


def test_tokens_that_begin_or_end_alike_are_each_masked_whole() -> None:
    """X5: two JWTs have one header; one token may hold another, begin with it, end with it, or overlap it."""
    header = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9"
    masker, tokens = Masker(), [f"{header}.eyJzdWIiOiJ{name}.signature-of-{name}" for name in ("ada", "bob")]
    for token in tokens:
        masker.learn(token, token)
    assert (
        masker.text(f"{tokens[0]} {tokens[1]},{tokens[0]}{tokens[1]} {header}.other")
        == f"*** ***,****** {header}.other"
    )
    whole = "abcdefghijklmnopqrstuvwxyz0123456789"
    for part in (whole[4:24], whole[:20], whole[-20:], f"{whole[-18:]}-and-more", f"more-and-{whole[:18]}"):
        masker = Masker()
        masker.learn("ada", whole)
        masker.learn("bob", part)
        assert masker.text(f"<{whole}> {part}") == "<***> ***"
        shown = masker.text(f"<more-and-{whole}-and-more>")
        assert not any(piece in shown for piece in ("abc", "789")), shown
