"""Whose a request is, by its bearer token, and what that opens."""

import pytest

from pegboard.core.principals.bearer_tokens import Token, may_use_agent, owner_of, token_of

ADA = Token(principal="ada", value="ada-s3cret", agents=("assistant",), rights=frozenset({"see"}))
BOB = Token(principal="bob", value="bob-s3cret-é", agents=None)
TOKENS = (ADA, BOB)


@pytest.mark.parametrize("header", ["Bearer ada-s3cret", "bearer ada-s3cret", "Bearer  ada-s3cret "])
def test_a_request_belongs_to_the_owner_of_its_token(header: str) -> None:
    """G2: the scheme in any case."""
    assert owner_of(header, TOKENS) is ADA


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Basic ada-s3cret", "ada-s3cret", "Bearer ada", "Bearer ada-s3cret-2"]
)
def test_anything_else_belongs_to_nobody(header: str | None) -> None:
    """G2: nor does a part of a token."""
    assert owner_of(header, TOKENS) is None


def test_a_token_as_it_is_typed_finds_its_owner() -> None:
    """G2: what is no text of any token is no one's, and no error."""
    assert token_of("ada-s3cret\n", TOKENS) is ADA
    assert token_of("bob-s3cret-é", TOKENS) is BOB
    assert token_of("\udcff", TOKENS) is token_of("", TOKENS) is token_of("ada-s3cret", ()) is None


def test_a_token_opens_the_agents_that_it_lists() -> None:
    """G2: all of them where it says so, or where there are no tokens."""
    assert [may_use_agent(token, "assistant") for token in (ADA, BOB, None)] == [True, True, True]
    assert [may_use_agent(token, "other") for token in (ADA, BOB, None)] == [False, True, True]


def test_a_token_shows_its_secret_nowhere() -> None:
    """X5: also not in its own representation."""
    assert "s3cret" not in repr(TOKENS)
