import ast
import csv
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from without_packages import said_without

from pegboard.core.model.tools import CallResult
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext
from pegboard.sources.agno import AgnoSource
from pegboard.sources.registry import registered_plugins
from pegboard.support.installed import install_hint

SEED_NAMES = {
    *("docker", "aws_lambda", "github", "duckduckgo", "arxiv", "wikipedia", "pandas", "csv", "visualization", "sql"),
    *("file", "shell", "scheduler", "spotify", "homeassistant"),
}


@pytest.fixture
async def agno():
    source = AgnoSource()
    yield source
    await source.aclose()


async def call(source: AgnoSource, name: str, tool: str, arguments: dict, overrides: dict) -> CallResult:
    spec = registered_plugins()[name]
    manifest = await source.describe(spec, overrides)
    found = next(t for t in manifest.tools if t.name == tool)
    return await source.call(spec, overrides, found, arguments, CallContext())


async def refusal(source: AgnoSource, name: str, overrides: dict | None = None) -> ToolUnavailableError:
    with pytest.raises(ToolUnavailableError) as caught:
        await source.describe(registered_plugins()[name], overrides or {})
    return caught.value


def test_every_name_of_the_seeds_is_registered():
    assert not SEED_NAMES - set(registered_plugins())
    assert {"think", "batchEdit", "websearch", "tailscale"} <= set(registered_plugins())
    assert registered_plugins()["file"].category == "Filesystem"
    assert [name for name, spec in registered_plugins().items() if spec.shared_only] == ["spotify", "homeassistant"]


def test_every_registered_toolkit_exists_in_the_installed_agno():
    import agno

    missing = []
    for spec in registered_plugins().values():
        if not spec.loader.startswith("agno:"):
            continue
        module, _, name = spec.loader.removeprefix("agno:").rpartition(":")
        path = Path(agno.__file__).parent.joinpath(*module.split(".")[1:])
        file = path.with_suffix(".py")
        tree = ast.parse(file.read_text("utf-8")) if file.is_file() else ast.Module(body=[], type_ignores=[])
        if name not in {node.name for node in tree.body if isinstance(node, ast.ClassDef)}:
            missing.append(spec.loader)
    assert missing == []


async def test_the_file_toolkit_lists_reads_and_writes(agno, tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    overrides = {"base_dir": str(tmp_path)}
    read = await call(agno, "file", "read_file", {"file_name": "a.txt"}, overrides)
    assert read.content[0]["text"] == "hello"
    await call(agno, "file", "save_file", {"contents": "new", "file_name": "b.txt"}, overrides)
    assert (tmp_path / "b.txt").read_text() == "new"
    manifest = await agno.describe(registered_plugins()["file"], overrides)
    schema = next(t for t in manifest.tools if t.name == "read_file").input_schema
    assert schema["required"] == ["file_name"]
    assert "agent" not in schema["properties"]


async def test_the_csv_toolkit_reads_and_queries(agno, tmp_path):
    with (tmp_path / "sales.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["city", "sum"], ["Oslo", 3], ["Rome", 4]])
    overrides = {"csvs": [str(tmp_path / "sales.csv")]}
    columns = await call(agno, "csv", "get_columns", {"csv_name": "sales"}, overrides)
    assert columns.content[0]["text"] == '["city", "sum"]'
    query = {"csv_name": "sales", "sql_query": "select sum(sum) as total from sales"}
    assert "7" in (await call(agno, "csv", "query_csv_file", query, overrides)).content[0]["text"]


async def test_t5_the_sql_toolkit_takes_its_database_as_an_override(agno, tmp_path):
    overrides = {"db_url": f"sqlite:///{tmp_path / 'x.db'}"}
    manifest = await agno.describe(registered_plugins()["sql"], overrides)
    assert manifest.parameters["db_url"] == "string"
    assert manifest.parameters["port"] == "integer"
    assert "db_engine" not in manifest.parameters
    assert {"db_url", "password"} <= manifest.secrets
    made = await call(agno, "sql", "run_sql_query", {"query": "create table t (a int)"}, overrides)
    assert not made.is_error
    assert "t" in (await call(agno, "sql", "list_tables", {}, overrides)).content[0]["text"]
    assert "Could not build the database connection" in (await refusal(agno, "sql")).message
    assert "no parameter 'db_uri'" in (await refusal(agno, "sql", {"db_uri": "x"})).message


@pytest.mark.parametrize("name", ["shell", "duckduckgo", "arxiv", "wikipedia", "calculator", "duckdb", "hackernews"])
async def test_toolkits_that_need_nothing_are_constructed_and_described(agno, name):
    manifest = await agno.describe(registered_plugins()[name], {})
    assert manifest.tools
    assert all(t.input_schema["type"] == "object" for t in manifest.tools)


async def test_the_shell_toolkit_runs_a_command(agno, tmp_path):
    result = await call(agno, "shell", "run_shell_command", {"args": ["echo", "hi"]}, {"base_dir": str(tmp_path)})
    assert result.content[0]["text"].strip() == "hi"


async def test_the_parameters_of_a_toolkit_reach_its_parent_class(agno):
    manifest = await agno.describe(registered_plugins()["duckduckgo"], {"fixed_max_results": "3"})
    assert manifest.parameters["fixed_max_results"] == "integer"
    assert manifest.parameters["cache_results"] == "boolean"
    assert "include_tools" not in manifest.parameters


async def test_p6_a_missing_credential_is_named(agno, monkeypatch):
    for name in ("BRIGHT_DATA_API_KEY", "GITHUB_ACCESS_TOKEN", "PERPLEXITY_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert "needs the parameter 'access_token'" in (await refusal(agno, "spotify")).message
    logged = await refusal(agno, "perplexity")
    assert "PERPLEXITY_API_KEY not set" in logged.message
    assert (
        logged.hint
        == "Set PERPLEXITY_API_KEY in the environment or give 'api_key' inline: '- perplexity: {api_key: …}'."
    )
    raised = await refusal(agno, "brightdata")
    assert "BRIGHT_DATA_API_KEY" in raised.hint
    named = await refusal(agno, "github")
    assert named.hint.startswith("Set GITHUB_ACCESS_TOKEN in the environment or give 'access_token' inline")


WITHOUT = [
    ("agno", "shell", "agno", ()),
    ("agno", "duckduckgo", "agno", ("ddgs",)),
    ("agno", "pandas", "agno", ("pandas",)),
    ("ddgs", "duckduckgo", "", ("ddgs",)),
    ("sqlalchemy", "sql", "", ("sqlalchemy",)),
    ("wikipedia", "wikipedia", "", ("wikipedia",)),
    ("docker", "docker", "", ("docker",)),
    ("boto3", "aws_lambda", "", ("boto3",)),
]


def test_p6_a_missing_package_is_answered_with_the_line_that_installs_it(tmp_path):
    said = said_without([([absent], plugin, {}) for absent, plugin, _, _ in WITHOUT], tmp_path)
    hints = [[install_hint(*packages, extra=extra)] for _, _, extra, packages in WITHOUT]
    assert said == hints


def test_nothing_of_agno_is_imported_before_a_toolkit_is_loaded():
    script = (
        "import sys; from pegboard.sources.agno import AgnoSource; "
        "from pegboard.sources.registry import registered_plugins; "
        "registered_plugins(); AgnoSource(); "
        "print([m for m in ('agno', 'pydantic', 'mcp', 'docstring_parser') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_agno_writes_nothing_to_standard_output():
    script = textwrap.dedent(
        """
        import asyncio
        from pegboard.ports import CallContext
        from pegboard.sources.agno import AgnoSource
        from pegboard.sources.registry import registered_plugins
        from pegboard.sources.stdout import reserved_stdout
        async def main():
            source, spec = AgnoSource(), registered_plugins()["calculator"]
            divide = next(t for t in (await source.describe(spec, {})).tools if t.name == "divide")
            result = await source.call(spec, {}, divide, {"a": 1, "b": 0}, CallContext())
            assert "zero" in str(result.content).lower(), result
            bad = registered_plugins()["python"]
            tools = {t.name: t for t in (await source.describe(bad, {})).tools}
            await source.call(bad, {}, tools["run_python_code"], {"code": "print('noise')"}, CallContext())
        with reserved_stdout():
            asyncio.run(main())
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


async def test_a_failing_function_is_an_error_result(agno):
    result = await call(agno, "sleep", "sleep", {"seconds": -1}, {})
    assert result.is_error
    assert result.content[0]["text"] == "sleep length must be non-negative"
