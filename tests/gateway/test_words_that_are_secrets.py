"""What a server offers passes unchanged, whatever in it is secret elsewhere: masking is for Pegboard's own texts."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from board.test_pins import fetch
from gateway.clients import MODERN, connected, serving
from pegboard import Pegboard
from pegboard.console.sent_fields import filled_in, meant_fields
from pegboard.operators.masked import shown_names
from pegboard.operators.pins import OperatorPins
from pegboard.operators.trying import build_tool_form

SERVER = Path(__file__).resolve().parents[1] / "servers" / "listed_server.py"
SCHEMA = {
    "type": "object",
    "properties": {"engine": {"enum": ["postgres", "mysql"], "default": "postgres"}, "postgres": {"type": "string"}},
    "required": ["engine"],
}
TOOL = {
    "description": "Run SQL on the postgres database at https://postgres.test",
    "inputSchema": SCHEMA,
    "annotations": {"title": "postgres", "readOnlyHint": True},
    "_meta": {"ui/postgres": "postgres"},
}
SECRETS = [
    {"env": {"DB_PASSWORD": "postgres"}},
    {"env": {"ENGINE": "${LAB_ENGINE}"}},
    {"env": {"PGPASSWORD": "post", "DB_TOKEN": "mysql"}},
]


def configure(folder: Path, **server: Any) -> Path:
    (folder / "list.json").write_text(json.dumps({"postgres": TOOL}))
    (folder / "list.log").touch()
    server.setdefault("env", {})["PROMPT"] = "postgres"
    servers = {
        "up": {"command": sys.executable, "args": [str(SERVER), str(folder / "list.json")], **server},
        # the secrets of another server are masked in texts, too
        "far": {
            "url": "https://ada:postgres@127.0.0.1:1/mcp",
            "headers": {"Authorization": "Bearer postgres", "X-Api-Key": "mysql"},
        },
    }
    document = {"store": "sqlite:///state.db", "servers": servers, "agents": {"default": {"tools": ["up", "far"]}}}
    (folder / "pegboard.yaml").write_text(json.dumps(document))
    return folder / "pegboard.yaml"


def sent(folder: Path, method: str) -> list[Any]:
    """Return what the server was given with its requests of a method."""
    requests = [json.loads(line) for line in (folder / "list.log").read_text().splitlines()]
    return [request["params"] for request in requests if request["method"] == method]


@pytest.mark.parametrize("server", SECRETS)
async def test_a_secret_that_is_a_word_changes_nothing_that_a_client_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: dict[str, Any]
) -> None:
    """X5, G7: names, schemas, annotations, prompts, resources, templates; a mask is no valid argument."""
    monkeypatch.setenv("LAB_ENGINE", "postgres")
    config = configure(tmp_path, **json.loads(json.dumps(server)))
    async with Pegboard.open(config) as board:
        await board.ready()
        async with serving(board, port=0) as url, connected(f"{url}/default", MODERN) as client:
            (tool,) = [one for one in (await client.client.list_tools()).tools if one.name == "up__postgres"]
            shown = tool.model_dump(mode="json", by_alias=True)
            assert {key: shown[key] for key in ("description", "inputSchema")} == {
                key: TOOL[key] for key in ("description", "inputSchema")
            }
            assert shown["annotations"]["title"] == "postgres"
            assert not (await client.call("up__postgres", engine="postgres", postgres="a")).is_error
            assert (await client.call("up__postgres", engine="***")).is_error
            (prompt,) = (await client.client.list_prompts()).prompts
            assert (prompt.name, [one.name for one in prompt.arguments or ()]) == ("up__postgres", ["postgres"])
            await client.client.get_prompt("up__postgres", {"postgres": "a"})
            (resource,) = (await client.client.list_resources()).resources
            assert str(resource.uri) == "db://postgres"
            await client.client.read_resource("db://postgres")
            (template,) = (await client.client.list_resource_templates()).resource_templates
            assert template.uri_template == "db://postgres/{table}"
            await client.client.read_resource("db://postgres/a")
    assert sent(tmp_path, "tools/call")[0]["arguments"] == {"engine": "postgres", "postgres": "a"}
    (got,) = sent(tmp_path, "prompts/get")
    assert (got["name"], got["arguments"]) == ("postgres", {"postgres": "a"})
    assert [one["uri"] for one in sent(tmp_path, "resources/read")] == ["db://postgres", "db://postgres/a"]


async def test_a_value_that_changes_between_starts_leaves_the_pin_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A4, X5: the digest is of what the server lists; the tool is found by its words, called and explained."""
    config = configure(tmp_path, env={"ENGINE": "${LAB_ENGINE}"})
    digests: list[str] = []
    for value in ("postgres", "mysql", "database"):
        monkeypatch.setenv("LAB_ENGINE", value)
        async with Pegboard.open(config) as board:
            await fetch(board)
            (one,) = await board.pins.list("up")
            digests.append(one.digest)
            assert one.status == "pinned"
            session = await board.session(session_id=f"of {value}")
            found = await session.search("sql on postgres")
            assert [hit.name for hit in found.results if hit.kind == "tool"][:1] == ["up__postgres"]
            assert (await session.call("up__postgres", {"engine": "postgres"})).status == "ok"
            assert (await session.explain("up__postgres")).callable
    assert len(set(digests)) == 1


async def test_what_an_operator_fills_in_and_is_shown_means_what_the_server_listed(tmp_path: Path) -> None:
    """X5, A4: choices and defaults of the console's form lead back, and two secrets stay two in a difference."""
    config = configure(tmp_path, env={"DB_PASSWORD": "postgres", "DB_TOKEN": "mysql"})
    async with Pegboard.open(config) as board:
        await fetch(board)
        form = await build_tool_form(board.services, "default", "up__postgres")
        engine = form.fields[0]
        assert "postgres" not in (engine.text, *engine.choices)
        names = await shown_names(board.services)
        for text in (engine.text, engine.choices[0]):
            given = filled_in(form.fields, {f"field.{engine.name}": text})
            assert meant_fields(form.fields, given, names) == {"engine": "postgres"}
        listed = {**TOOL, "description": "Run SQL on the mysql database at https://postgres.test"}
        (tmp_path / "list.json").write_text(json.dumps({"postgres": listed}))
        await fetch(board)
        (one,) = await OperatorPins(board.services).shown("up")
        before, after = [line[1:] for line in one.diff.splitlines() if line[0] in "+-"]
        assert before != after
        assert "description" in before
