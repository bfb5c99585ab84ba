"""Whatever a file holds, the answer is a configuration or clear problems."""

import json
import os
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from config_support import REGISTERED, Writer
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pegboard.config.documents.yaml_text import plain_value
from pegboard.config.inspection import inspect, load
from pegboard.config.problem_codes import ProblemCode
from pegboard.config.schema.sections import File, known_keys
from pegboard.errors import ConfigError

EMPTY = "pegboard.yaml: is empty. `pegboard init` writes a configuration to start from."
SECTIONS = "Begin with a section such as `agents:`."
BYTES = {
    "nothing": (b"", "file_empty", EMPTY),
    "comments": (b"# later\n", "file_empty", EMPTY),
    "only null": (b"~\n", "file_empty", EMPTY),
    "a picture": (
        b"agents:\n  \x89PNG\xff",
        "file_binary",
        "pegboard.yaml:2:3: is not text: byte 0x89 is not UTF-8. Save it as UTF-8.",
    ),
    "a zero byte": (b"a: b\n\0", "file_binary", "pegboard.yaml:2:1: is not text: it contains a zero byte."),
    "UTF-16": (
        "agents: {}".encode("utf-16"),
        "file_binary",
        "pegboard.yaml:1:1: is written in UTF-16. Save it as UTF-8.",
    ),
    "a control character": (b"a: \x07", "syntax", None),
    "a list": (b"- a\n", "not_mapping", "pegboard.yaml:1:1: expected a mapping of sections, found a list. " + SECTIONS),
    "a word": (
        b"hello\n",
        "not_mapping",
        "pegboard.yaml:1:1: expected a mapping of sections, found a single value. " + SECTIONS,
    ),
    "an open bracket": (b"agents: [\n", "syntax", None),
    "a tab": (b"agents:\n\ta: {}\n", "syntax", None),
    "two documents": (
        b"agents: {}\n---\nagents: {}\n",
        "several_documents",
        "pegboard.yaml:2:1: contains several YAML documents. Put everything into one, without a second `---`.",
    ),
    "a cycle": (
        b"agents: &a\n  b: *a\n",
        "cyclic_alias",
        "pegboard.yaml:2:6: the alias '*a' is inside the value that it names.",
    ),
    "no anchor": (b"agents: *a\n", "bad_alias", "pegboard.yaml:1:9: the anchor '&a' is not defined above."),
    "a key that is a list": (
        b"[a, b]: c\n",
        "bad_key",
        "pegboard.yaml:1:1: expected a name as key. Quote it if it is one.",
    ),
    "no key": (b"? \n: c\n", "bad_key", None),
    "a tag": (b"agents: !!python/object:os.system {}\n", "bad_tag", None),
    "deep nesting": (
        b"agents: " + b"[" * 100_000,
        "too_deep",
        "pegboard.yaml:1:73: is nested more than 64 levels deep.",
    ),
    "a merge of nothing": (
        b"agents: {<<: 5}\n",
        "bad_key",
        "pegboard.yaml:1:10: `<<` takes a mapping, or a list of mappings.",
    ),
}


@pytest.mark.parametrize("kind", BYTES)
def test_a_file_that_cannot_be_read_gives_one_problem(kind: str, writer: Writer) -> None:
    """§5: one clear problem with its place."""
    data, code, message = BYTES[kind]
    path = writer.file("")
    path.write_bytes(data)
    configuration, problems = inspect(path, registered=REGISTERED, env=writer.env())
    assert configuration is None
    assert [p.code for p in problems] == [code]
    assert message in (None, str(problems[0]))
    assert code == "file_empty" or (problems[0].place and problems[0].place.line)


def test_an_alias_bomb_is_refused_before_it_is_written_out(writer: Writer) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    (problem,) = writer.problems("\n".join(levels))
    assert str(problem) == "pegboard.yaml:6:5: expands to more than 500000 values."


def test_a_huge_file_is_refused_before_it_is_read(writer: Writer) -> None:
    path = writer.file("")
    with path.open("wb") as stream:
        stream.truncate(50_000_000)
    problems = inspect(path, registered={}, env=writer.env())[1]
    assert [str(p) for p in problems] == ["pegboard.yaml: is 50 MB; a configuration is at most 10 MB."]


def test_an_endless_file_is_refused(writer: Writer) -> None:
    problems = inspect(Path("/dev/zero"), registered={}, env=writer.env())[1]
    assert [p.code for p in problems] == ["file_too_large"]


def test_a_missing_file_a_folder_and_a_forbidden_one_are_told_apart(writer: Writer) -> None:
    missing, folder = writer.folder / "no.yaml", writer.folder
    secret = writer.file("agents: {}", "secret.yaml")
    secret.chmod(0)
    assert str(inspect(missing, registered={}, env={})[1][0]) == "no.yaml: does not exist. `pegboard init` writes one."
    assert inspect(folder, registered={}, env={})[1][0].message == "is a folder."
    if os.geteuid() != 0:
        assert inspect(secret, registered={}, env={})[1][0].message == "cannot be read: Permission denied."
    too_long = writer.folder / ("x" * 300)
    assert inspect(too_long, registered={}, env={})[1][0].code == "file_unreadable"


def test_the_error_names_every_problem(writer: Writer) -> None:
    path = writer.file("agents: {a: {tols: [], rooms: 5}}")
    with pytest.raises(ConfigError) as caught:
        load(path, registered={}, env={})
    assert len(caught.value.problems) == 2
    assert str(caught.value) == (
        "pegboard.yaml cannot be used, 2 problems:\n"
        "  pegboard.yaml:1:14: agents.a: the key 'tols' is not known here. Did you mean 'tools'?\n"
        "  pegboard.yaml:1:31: agents.a.rooms: expected a list of names, found the number 5."
    )


JSON_TEXTS = {
    '{"mcpServers": {,}}': ("1:17", "expected a key in double quotes, or `}`"),
    '{"mcpServers": {"a": {"command": "x" "args": []}}}': ("1:38", "expected `,` or `}`"),
    '{"a" 1}': ("1:6", "expected `:` after the key"),
    '{"a": nope}': ("1:7", "expected a value"),
    '{"a": "x\ny"}': ("1:9", "invalid control character at"),
    '{"a": 1} x': ("1:10", "expected the end of the file"),
    '{"a': ("1:2", "unterminated string"),
}


@pytest.mark.parametrize("text", JSON_TEXTS)
def test_broken_json_is_told_with_its_place(text: str, writer: Writer) -> None:
    spot, message = JSON_TEXTS[text]
    assert writer.messages(text, ".mcp.json") == [f".mcp.json:{spot}: is not valid JSON: {message}."]


def test_deep_json_is_refused(writer: Writer) -> None:
    assert [p.code for p in writer.problems('{"a":' + "[" * 100_000, ".mcp.json")] == ["too_deep"]


NAMED = st.sampled_from(["docker", "git", "a", "no", "*", "", "x/y", "git__log", "${A}", "${", "60s", "\ud800", "\x00"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | NAMED
WORDS = (
    "tools command url env a git focus lease allowed_toolkits permissions extends private per python token guards "
    "mcpServers"
)
KEYS = st.sampled_from([*File.model_fields, *WORDS.split()])
DATA = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | NAMED, inner, max_size=4), max_leaves=25
)


@given(value=st.dictionaries(st.sampled_from([*known_keys(File), "mcpServers", "x"]), DATA, max_size=5))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(value={"agents": {"a": {"permissions": {"\ud800": True}}}})
@example(value={"toolkits": {"t": {"focus": {"when": "(" * 300}}}})
@example(value={"servers": {"a": {"timeout": float("inf")}}})
def test_arbitrary_data_gives_a_configuration_or_problems(value: dict[str, Any], writer: Writer) -> None:
    """§5: never anything but problems, and every problem can be printed."""
    path = writer.folder / "any.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    configuration, problems = inspect(path, registered=REGISTERED, env=writer.env({"A": "s3cr3t-value"}))
    assert (configuration is None) == any(p.severity == "error" for p in problems)
    for problem in problems:
        assert problem.code in get_args(ProblemCode)
        assert "s3cr3t-value" not in str(problem).encode().decode()
        assert problem.place
        assert problem.place.line


@given(text=st.text(st.sampled_from("agents:tolk {}[]&*!|>-\n\t#'\"%@`,?~<0.5"), max_size=60))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_arbitrary_text_gives_a_configuration_or_problems(text: str, writer: Writer) -> None:
    path = writer.folder / "any.yaml"
    path.write_text(text, encoding="utf-8")
    configuration, problems = inspect(path, registered=REGISTERED, env=writer.env())
    assert configuration is not None or problems


@given(text=st.text(st.sampled_from("0123456789abfxo._-+eE~:nulTrFs"), max_size=8))
@example(text="-.0")
@example(text="1.e5")
def test_unquoted_text_means_what_pyyaml_reads_in_it(text: str) -> None:
    """§5: numbers, booleans and nothing are those of YAML 1.1; dates and clock times stay text."""
    try:
        loaded = yaml.safe_load(f"[{text}]")
    except (yaml.YAMLError, ValueError):
        return
    if isinstance(loaded, list) and len(loaded) == 1 and ":" not in text and "o" not in text:
        expected = loaded[0]
        if isinstance(expected, float | int | bool | str | None) and plain_value(text) == plain_value(text):
            assert plain_value(text) == expected
            assert type(plain_value(text)) is type(expected)
