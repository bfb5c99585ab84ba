"""Test the configurations of seeds 000 and 001 as they stand, driven by a scripted model through an agent of Agno."""

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno_driver import ScriptedModel
from framework_drivers import Script, Step, call

from pegboard import Pegboard
from pegboard.frameworks.agno import equip

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SALES = "shop,sold\nnorth,3\nsouth,5\n"
READ = call(
    "create_pandas_dataframe",
    dataframe_name="sales",
    create_using_function="read_csv",
    function_parameters={"filepath_or_buffer": "sales.csv"},
)
DESCRIBE = call("run_dataframe_operation", dataframe_name="sales", operation="describe", operation_parameters={})
CHART = call("create_bar_chart", data={"north": 3, "south": 5}, title="Sold", filename="sold.png")
JOB = call(
    "create_schedule",
    name="weekly",
    cron="0 9 * * 1",
    endpoint="/agents/assistant/runs",
    payload='{"message": "Analyse my sales."}',
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the files of the seeds, and the process in it, as its toolkits read and write there."""
    for name in ("assistant.yaml", "data-agents.yaml"):
        shutil.copy(EXAMPLES / name, tmp_path)
    (tmp_path / "sales.csv").write_text(SALES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def talking(board: Pegboard, name: str, model: ScriptedModel) -> Callable[..., Awaitable[list[str]]]:
    """Return what sends a message in one thread, to be answered by a script."""
    agent = Agent(model=model, db=InMemoryDb(), add_history_to_context=True, telemetry=False)
    equip(agent, lambda run: board.session(agent=name, session_id=run.session_id, principal=run.user_id or "local"))

    async def say(message: str, *steps: Step) -> list[str]:
        """Return what each tool returned, and the answer."""
        script = model.script = agent.model.script = Script(*steps)  # type: ignore[union-attr]
        run = await agent.arun(message, session_id="thread", user_id="ada")
        results = [result for carried in script.calls for result in carried.results]
        return [*results, str(run.content)]

    return say


async def test_seed_001_analyses_data_draws_a_chart_and_schedules_a_job(folder: Path) -> None:
    """T7, MR44: what is loaded with one message is used with the next; unloaded, it is gone with the one after."""
    model = ScriptedModel()
    async with Pegboard.open("data-agents.yaml") as board:
        say = talking(board, "assistant", model)

        first = await say("Analyse my sales.", call("list_toolkits"), call("load_tools", toolkit="data"), "Next time.")
        assert '"loaded_toolkits": ["research"]' in first[0]
        assert "will be available on the next request" in first[1]
        assert "create_pandas_dataframe" not in model.script.calls[-1].tools

        second = await say("Go ahead.", READ, DESCRIBE, CHART, JOB, call("list_schedules"), "Four on average.")
        assert "create_pandas_dataframe" in model.script.calls[0].tools
        assert "mean   4.000000" in second[1]
        assert "sold.png" in second[2]
        assert (folder / "charts" / "sold.png").stat().st_size > 1000
        assert "weekly" in second[4]

        await say("Tidy up.", call("unload_tools", toolkit="data"), call("unload_tools", toolkit="research"), "Done.")
        assert '"sticky"' in model.script.calls[2].results[0]
        await say("And now?", "Nothing.")
        assert "create_pandas_dataframe" not in model.script.calls[0].tools
        assert {"save_file", "run_shell_command", "create_schedule", "web_search"} <= {*model.script.calls[0].tools}


async def test_seed_000_begins_with_research_and_says_what_devops_lacks(folder: Path) -> None:
    """S10, P6: docker has no daemon here; the load says so, changes nothing, and the conversation goes on."""
    model = ScriptedModel()
    async with Pegboard.open("assistant.yaml") as board:
        say = talking(board, "assistant", model)
        answers = await say("Deploy the demo.", call("load_tools", toolkit="devops"), "I cannot.")

    assert {"save_file", "run_shell_command", "search_arxiv_and_return_articles"} <= {*model.script.calls[0].tools}
    assert '"tool_unavailable"' in answers[0]
    assert answers[-1] == "I cannot."


async def test_a_workspace_deletes_a_file_only_once_a_person_has_allowed_it(folder: Path) -> None:
    """T13: Agno's own mark on its toolkit holds, though Pegboard calls the function."""
    (folder / "pegboard.yaml").write_text("agents: {keeper: {tools: [workspace], dialect: pegboard}}")
    model = ScriptedModel(script=Script(call("delete_file", path="sales.csv"), "Deleted."))
    async with Pegboard.open("pegboard.yaml") as board:
        agent = Agent(model=model, db=InMemoryDb(), telemetry=False)
        equip(agent, await board.session(agent="keeper", session_id="s"))

        run = await agent.arun("Delete my sales.", session_id="thread")
        assert (run.is_paused, (folder / "sales.csv").exists()) == (True, True)
        run.active_requirements[0].confirm()
        run = await agent.acontinue_run(run, requirements=run.requirements)

    assert (run.content, (folder / "sales.csv").exists()) == ("Deleted.", False)
