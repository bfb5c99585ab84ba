"""A team of Agno whose members load toolkits for themselves; the model is scripted, so that it runs without a provider.

Run it with `python examples/agno_team.py`, with `pip install 'pegboard[agno]' pandas`.
"""

import asyncio
import tempfile
from contextlib import chdir
from pathlib import Path

from agno.agent import Agent
from agno.team import Team
from scripted_model import Scripted

from pegboard import Pegboard
from pegboard.frameworks.agno import equip

CONFIG = """
toolkits:
  data: {description: Data analysis, tools: [pandas]}
agents:
  researcher: {allowed_toolkits: [data], initial_toolkits: [data]}
  assistant: {allowed_toolkits: [data], dialect: toolkits, activation: next_step}
"""
READ = {
    "dataframe_name": "sales",
    "create_using_function": "read_csv",
    "function_parameters": {"filepath_or_buffer": "sales.csv"},
}
DESCRIBE = {"dataframe_name": "sales", "operation": "describe", "operation_parameters": {}}


async def main() -> None:
    work = [("create_pandas_dataframe", READ), ("run_dataframe_operation", DESCRIBE)]
    async with Pegboard.open("pegboard.yaml") as board:

        def member(name: str, *script: object) -> Agent:
            agent = Agent(name=name, model=Scripted(script), telemetry=False)
            return equip(agent, lambda run: board.session(agent=name, session_id=run.session_id))

        researcher = member("researcher", *work, "On average 4 were sold.")
        assistant = member("assistant", ("load_tools", {"toolkit": "data"}), *work, "The same: 4.")
        asked = [
            ("delegate_task_to_member", {"member_id": one.name, "task": "Mean?"}) for one in (researcher, assistant)
        ]
        team = Team(members=[researcher, assistant], model=Scripted([*asked, "Both say: 4."]), telemetry=False)
        run = await team.arun("How many were sold?", session_id="lobby")
        for one in run.member_responses:
            print(f"{one.agent_name} called {', '.join(tool.tool_name for tool in one.tools)}")
        print(run.member_responses[1].tools[-1].result)
        print(run.content)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("sales.csv").write_text("shop,sold\nnorth,3\nsouth,5\n", encoding="utf-8")
        Path("pegboard.yaml").write_text(CONFIG, encoding="utf-8")
        asyncio.run(main())
