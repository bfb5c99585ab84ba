"""The lines of a configuration beside a problem: readable, and without a secret however the file is broken."""

import pytest

from pegboard.core.model.masking import Masker
from pegboard.operators.excerpts import AFTER, BEFORE, WrittenLines

SECRETS = ("ada-ada", "k3y, w1th", "hunter22", "xyz xyz", "BEGIN KEY", "pw-of-db", "tok-tok", "in-url")
YAML = """\
store: "memory:"
tokens:
  ada: {token: ada-ada-ada, agents: [mailer], console: true}
servers:
  mail: {command: srv, args: [--token, tok-tok, --quiet], env: {API_KEY: "k3y, w1th", FOO: ${FOO}}}
  docs:
    url: https://example.invalid/mcp?api_key=in-url&page=1
    headers:
      Authorization: "Bearer xyz xyz"
      X-Team: blue
    args:
    - --password
    - hunter22
  keyed:
    env:
      PRIVATE_KEY: |
        BEGIN KEY
        BEGIN KEY
      DATABASE: postgres://u:pw-of-db@db/x
agents:
  mailer: {budget: {tokens: 1500}, discovreable: ["*"]}
"""
JSON = """\
{
  "tokens": {"ada": {"token": "ada-ada-ada", "agents": ["mailer"]}},
  "servers": {
    "mail": {"command": "srv", "args": ["--token", "tok-tok", "--password=hunter22"],
      "env": {"API_KEY": "k3y, w1th", "FOO": "${FOO}", "AUTHORIZATION": "Bearer xyz xyz"}},
    "docs": {"url": "https://example.invalid/mcp?api_key=in-url&page=1", "dsn": "postgres://u:pw-of-db@db/x",
      "secret":
        "BEGIN KEY"}
  }
}
"""


def shown(text: str, line: int, column: int | None = None) -> list[str]:
    lines = WrittenLines(text, Masker()).around(line, column)
    return [f"{one.before}[{one.marked}]{one.after}" if one.marked else one.before for one in lines]


def whole(text: str) -> str:
    lines = WrittenLines(text, Masker())
    return "\n".join(
        f"{one.before}{one.marked}{one.after}"
        for number in range(1, text.count("\n") + 2)
        for one in lines.around(number, None)
        if one.number == number
    )


def test_what_is_wrong_is_marked_between_the_lines_around_it() -> None:
    """F5: two lines before and after, as they were written."""
    assert shown(YAML, 21, 36) == [
        "      DATABASE: postgres://***@db/x",
        "agents:",
        '  mailer: {budget: {tokens: 1500}, [discovreable]: ["*"]}',
        "",
    ]
    assert shown("a: 'two words'\n", 1, 4) == ["a: ['two words']", ""]
    assert shown(YAML, 999, 1) == shown(YAML, 0, 1) == []
    assert shown("a: 1", 1, 400) == ["a: 1"]


def test_references_are_not_filled_in_and_what_is_no_secret_can_be_read() -> None:
    """X5: the text of the file, with the names of what is hidden."""
    text = whole(YAML)
    for readable in (
        "FOO: ${FOO}",
        "X-Team: blue",
        "API_KEY: ***",
        "tokens: 1500",
        "--quiet",
        "page=1",
        "- --password",
    ):
        assert readable in text
    assert "ada: {token: ***, agents: [***], console: ***}" in text


@pytest.mark.parametrize("text", [YAML, JSON], ids=["yaml", "json"])
def test_no_secret_is_shown_whichever_sign_is_missing_in_the_file(text: str) -> None:
    """X5: the newest edit is shown because it is wrong: any quote, colon, bracket or comma of it may be missing."""
    for at, sign in enumerate(text):
        if sign in "\"':{}[],":
            found = whole(text[:at] + text[at + 1 :])
            leaked = [secret for secret in SECRETS if secret in found]
            assert not leaked, (text[max(0, at - 40) : at + 40], found)


@pytest.mark.parametrize(
    "text",
    [
        "# token: s3cr3t here",
        "token s3cr3t",
        "token:s3cr3t",
        "  token\n    s3cr3t",
        "password: >-\n  s3cr3t\n\n  s3cr3t",
        "api_keys:\n- s3cr3t\n- more: s3cr3t",
        "secrets: [s3cr3t,\n  s3cr3t]",
        "secrets: {a: {b: s3cr3t}}",
        "tokens:\n  eve: s3cr3t",
        "command: 'srv --token s3cr3t'",
        "env: {DSN: s3cr3t}\nargs: [s3cr3t, again]",
        "token: s3cr3t}, {",
        "'private key': x\naccess-key: 's3cr3t\n  s3cr3t'",
    ],
)
def test_a_secret_is_hidden_where_it_can_be_told(text: str) -> None:
    """X5: in comments, block scalars, lists, commands, and wherever else the same value stands."""
    assert "s3cr3t" in text
    assert "s3cr3t" not in whole(text)


def test_known_secrets_are_hidden_also_where_they_would_be_marked() -> None:
    lines = WrittenLines("args: [two words, other]", Masker(["two words"]))
    for column in range(1, 25):
        (line,) = lines.around(1, column)
        assert f"{line.before}{line.marked}{line.after}" == "args: [***, other]"


def test_a_file_of_one_line_of_a_megabyte_is_cut_around_what_is_wrong() -> None:
    text = '{"a": "' + "x" * 500_000 + '", "wrong": 1, "b": "' + "y" * 500_000 + '"}'
    (line,) = WrittenLines(text, Masker()).around(1, text.index('"wrong"') + 1)
    assert line.marked == '"wrong"'
    assert len(line.before) <= BEFORE + 2
    assert len(line.after) <= AFTER + 2
