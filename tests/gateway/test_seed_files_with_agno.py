"""The files of seeds 000 and 001 as they stand there, with the real Agno: by an MCP client."""

import csv
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from .clients import HANDSHAKE, Connected, until
from .test_seed_000 import Serving

RESEARCH = ["web_search", "search_news", "search_arxiv_and_return_articles", "read_arxiv_papers", "search_wikipedia"]
SEEDS = Path(__file__).resolve().parent.parent / "fixtures" / "seeds"
JOB: dict[str, Any] = {
    "name": "daily",
    "cron": "0 9 * * *",
    "endpoint": "/agents/a/runs",
    "payload": '{"message": "hi"}',
}
NO_TOKENS = {"GITHUB_ACCESS_TOKEN": "", "AWS_DEFAULT_REGION": "eu-west-1"}


@pytest.fixture
async def serving(tmp_path: Path) -> AsyncIterator[Serving]:
    with (tmp_path / "sales.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["city", "sum"], ["Oslo", 3], ["Rome", 5]])
    running = Serving(tmp_path / "pegboard.yaml", packages=None, env=NO_TOKENS)
    yield running
    if running.process is not None:
        await running.end(signal.SIGTERM)


async def served(serving: Serving, text: str) -> Serving:
    serving.config.write_text(text)
    await serving.start()
    return serving


async def lists(client: Connected, *names: str) -> None:
    """Wait until a client is listed these tools: a list does not wait for Agno, which takes seconds to import."""

    async def listed() -> bool:
        return {*names} <= {*await client.names()}

    await until(listed)


async def ask(client: Connected, tool: str, **arguments: Any) -> dict[str, Any]:
    return json.loads(await client.text(tool, **arguments))


async def test_a_client_of_the_file_of_seed_001_reads_draws_and_schedules(serving: Serving) -> None:
    """T7, X2, MR24, MR44: with the real Agno; the toolkit is loaded, used and unloaded again."""
    await served(serving, (SEEDS / "seed_001.yaml").read_text())
    async with serving.client(era=HANDSHAKE) as chat:
        await lists(chat, "run_shell_command", "create_schedule", *RESEARCH)
        assert json.loads(await chat.text("create_schedule", **JOB))["status"] == "created"
        assert [kit["name"] for kit in (await ask(chat, "list_toolkits"))["toolkits"]] == ["devops", "research", "data"]
        assert (await ask(chat, "load_tools", toolkit="data"))["status"] == "loaded"
        frame: dict[str, Any] = {"dataframe_name": "sales", "create_using_function": "read_csv"}
        await chat.text("create_pandas_dataframe", **frame, function_parameters={"filepath_or_buffer": "sales.csv"})
        described = await chat.text(
            "run_dataframe_operation", dataframe_name="sales", operation="describe", operation_parameters={}
        )
        assert "mean" in described
        assert "4.0" in described
        drawn = json.loads(
            await chat.text("create_bar_chart", data=[{"city": "Oslo", "sum": 3}, {"city": "Rome", "sum": 5}])
        )
        assert (drawn["status"], drawn["data_points"]) == ("success", 2)
        assert (serving.config.parent / drawn["file_path"]).read_bytes().startswith(b"\x89PNG")
        assert (await ask(chat, "unload_tools", toolkit="data"))["status"] == "unloaded"
        refused = await chat.call("run_dataframe_operation", dataframe_name="sales", operation="head")
        assert refused.is_error


async def test_a_client_of_the_file_of_seed_000_learns_why_devops_cannot_run(serving: Serving) -> None:
    """P6, S10, MR47: research is there and stays, devops says what it lacks, in sentences, and nothing is loaded."""
    await served(serving, (SEEDS / "seed_000.yaml").read_text())
    async with serving.client() as chat:
        await lists(chat, *RESEARCH, "read_file", "run_shell_command")
        assert (await ask(chat, "unload_tools", toolkit="research"))["status"] == "sticky"
        refused = await ask(chat, "load_tools", toolkit="devops")
        assert (refused["status"], refused["loaded_toolkits"]) == ("tool_unavailable", ["research"])
        reasons = " ".join(map(str, refused["unavailable_messages"]))
        assert "GitHub access token is required. Set GITHUB_ACCESS_TOKEN in the environment" in reasons
        assert "Docker" in reasons


async def test_rows_of_a_csv_file_are_read(serving: Serving) -> None:
    """T1: `csv: {csvs: […]}`."""
    await served(serving, "agents: {default: {tools: [{csv: {csvs: [sales.csv]}}]}}")
    async with serving.client("default") as chat:
        assert json.loads(await chat.text("list_csv_files")) == ["sales"]
        rows = json.loads(await chat.text("read_csv_file", csv_name="sales"))
        assert rows == [{"city": "Oslo", "sum": "3"}, {"city": "Rome", "sum": "5"}]
        asked = await chat.text("query_csv_file", csv_name="sales", sql_query="select max(sum) as most from sales")
        assert "5" in asked
