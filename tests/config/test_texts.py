"""Texts that cannot stand where they are written: told at once, with their place and without secrets."""

import pytest
from config_support import Writer

AGAIN = " Give it another name."
STAR = f"the name of a plugin cannot contain '*', which is a wildcard.{AGAIN}"
STORE = " Write sqlite:///relative/file.db, sqlite:////absolute/file.db, postgresql://host/database or memory:."
HEADER = " Headers carry ASCII text of one line."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "servers: {'*': {command: x}}",
            f"pegboard.yaml:1:11: servers.*: {STAR}",
        ),
        (
            "plugins: {'git*': {python: x}}",
            f"pegboard.yaml:1:11: plugins.git*: {STAR}",
        ),
        (
            "servers: {'tool:x': {command: x}}",
            (
                "pegboard.yaml:1:11: servers.tool:x: 'tool:x' means the tool 'x', and cannot be the name of a "
                f"plugin.{AGAIN}"
            ),
        ),
        (
            "toolkits: {'category:Git': {tools: [docker]}}",
            (
                "pegboard.yaml:1:12: toolkits.category:Git: 'category:Git' means the category 'Git', and cannot be the "
                f"name of a toolkit.{AGAIN}"
            ),
        ),
        (
            "servers: {a: {command: x}, a/b: {command: x}}",
            ("pegboard.yaml:1:28: servers.a/b: 'a/b' means the tool 'b' of plugin 'a' too. Rename one of them."),
        ),
        (
            "plugins: {'a?': {python: x}}",
            "pegboard.yaml:1:11: plugins.a?: the name of a plugin cannot contain '?', which is a wildcard." + AGAIN,
        ),
        *(
            (
                f"servers: {{'{name}': {{command: x}}}}",
                (
                    f"pegboard.yaml:1:11: servers.{name}: '{name}' cannot be the name of a plugin: a slash "
                    f"separates a plugin from its tool.{AGAIN}"
                ),
            )
            for name in ("/", "/b", "a/", "a//b")
        ),
        ("servers: {'': {command: x}}", "pegboard.yaml:1:11: servers.: a name is empty."),
        (
            r'servers: {"a\u0007": {command: x}}',
            "pegboard.yaml:1:11: servers.a\x07: a name contains a control character.",
        ),
    ],
)
def test_a_name_that_would_mean_something_else_is_refused(writer: Writer, text: str, message: str) -> None:
    """P3: whoever writes the name of a plugin in a list means that plugin and nothing else."""
    assert writer.messages(text) == [message]


def test_a_name_with_a_slash_that_means_one_thing_only_is_taken(writer: Writer) -> None:
    """VS Code names servers of its gallery so: `microsoft/playwright-mcp`."""
    assert (
        writer.messages("servers: {microsoft/playwright: {command: x}}\ntoolkits: {t: {tools: [microsoft/playwright]}}")
        == []
    )


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("schlüssel", "holds a character that a header cannot carry, at position 5"),
        ("one\ntwo", "holds a character that a header cannot carry, at position 4"),
    ],
)
def test_x5_what_no_header_can_carry_is_told_without_the_value(writer: Writer, value: str, fault: str) -> None:
    """X5, G2: after the environment has been filled in; neither headers nor tokens are repeated."""
    servers = "servers: {docs: {url: 'http://x/', headers: {X-Key: '${KEY}'}}}"
    text = servers + "\ntokens: {ada: {token: '${KEY}', agents: ['*']}}"
    header, token = writer.messages(text, KEY=value)
    at = f"pegboard.yaml:1:53: servers.docs.headers.X-Key: the value of the header 'X-Key' {fault}; the server is "
    assert header == f"{at}unavailable.{HEADER}"
    assert token == (
        f"pegboard.yaml:2:23: tokens.ada.token: the token {fault}; clients send it in a header. "
        "Use ASCII letters, digits and signs."
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "servers: {docs: {url: 'http://x/', headers: {'X Key': y}}}",
            (
                "pegboard.yaml:1:55: servers.docs.headers.X Key: 'X Key' cannot be the name of a header. "
                "Write letters, digits and '-'."
            ),
        ),
        (
            "servers: {a: {command: x, env: {'A=B': y}}}",
            (
                "pegboard.yaml:1:40: servers.a.env.A=B: 'A=B' cannot be the name of an environment variable. "
                "Write a name without '='."
            ),
        ),
        (
            "servers: {a: {command: x, cwd: ~nobody-of-this-name/x}}",
            (
                "pegboard.yaml:1:32: servers.a.cwd: there is no home folder of '~nobody-of-this-name'. "
                "Write the path without '~'."
            ),
        ),
        (
            r'servers: {a: {command: "x\0y"}}',
            "pegboard.yaml:1:24: servers.a.command: contains a NUL character. Remove it.",
        ),
        (
            r'store: "sqlite:///x\0y"',
            "pegboard.yaml:1:8: store: contains a NUL character. Remove it.",
        ),
        (
            "store: sqlite:///~nobody-of-this-name/x.db",
            f"pegboard.yaml:1:8: store: there is no home folder of '~nobody-of-this-name'.{STORE}",
        ),
        (
            f"store: sqlite:///{'x' * 300}/x.db",
            f"pegboard.yaml:1:8: store: a name in the path of the sqlite store has more than 255 bytes.{STORE}",
        ),
        ("store: sqlite:///", f"pegboard.yaml:1:8: store: the sqlite store names no file.{STORE}"),
        ("store: sqlite:///x?y", f"pegboard.yaml:1:8: store: a sqlite store takes no options after '?'.{STORE}"),
        ("store: memory:x", f"pegboard.yaml:1:8: store: a store in memory has no path.{STORE}"),
        ("store: {url: pegboard.db}", f"pegboard.yaml:1:14: store.url: the address of a store needs a scheme.{STORE}"),
        ("store: {grace: 5s}", "pegboard.yaml:1:8: store: 'url' is missing."),
        (
            "store: {url: 'memory:', grace: soon}",
            (
                "pegboard.yaml:1:32: store.grace: this is not a duration. "
                "Write it as 60s, 2m or 500ms, or as a number of seconds."
            ),
        ),
        ("store: [a]", "pegboard.yaml:1:8: store: expected a string, found a list."),
        ("store: pegboard.db", f"pegboard.yaml:1:8: store: the address of a store needs a scheme.{STORE}"),
    ],
)
def test_a_text_that_cannot_be_used_has_its_place(writer: Writer, text: str, message: str) -> None:
    assert writer.messages(text) == [message]


def test_a_home_folder_that_is_not_there_never_ends_in_a_traceback_for_a_client_file(writer: Writer) -> None:
    message = writer.messages('{"mcpServers": {"a": {"command": "x", "cwd": "~nobody-of-this-name"}}}', ".mcp.json")
    assert [text.partition(": ")[2] for text in message] == [
        (
            "mcpServers.a.cwd: there is no home folder of '~nobody-of-this-name'; the server is unavailable. "
            "Write the path without '~'."
        )
    ]
