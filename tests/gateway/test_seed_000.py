"""The conversation of seed 000 and every status of its dialect, through the real command and a real client."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sdk_servers import pegboard_command

from .clients import HANDSHAKE, MODERN, Connected, connected, until

ROOT = Path(__file__).parents[2]
ACME = ROOT / "tests" / "packages" / "acme_tools"
RESEARCH = ["duckduckgo_search", "arxiv_search", "arxiv_abstract", "wikipedia_search", "wikipedia_page"]
DEVOPS = [
    *("docker_ps", "docker_logs", "docker_restart"),
    *("lambda_list", "lambda_deploy", "lambda_invoke"),
    *("github_issues", "github_create_issue"),
]
FILES = """
def file_read(path: str) -> str:
    \"\"\"Read a file.\"\"\"
    return path
"""
CONFIG = """
plugins:
  file: {python: file_tools}
toolkits:
  devops:
    description: Docker, AWS, and GitHub tools for infrastructure work
    tools: [docker, aws_lambda, github]
  research:
    description: Web search and academic paper tools
    tools: [duckduckgo, arxiv, wikipedia]
  mirror:
    description: GitHub again, with a repository of its own
    tools: [github: {repository: acme/mirror}]
  broken:
    tools: [pandas, missing_one]
  private:
    tools: [file]
  closed:
    tools: [file]
agents:
  assistant:
    tools: [file]
    allowed_toolkits: [devops, research, mirror, broken, closed]
    initial_toolkits: [research]
    permissions: {closed: false, "toolkit:devops": true}
    dialect: toolkits
  tight:
    tools: [file]
    allowed_toolkits: [devops, research]
    budget: {tools: 8}
    dialect: toolkits
  other:
    tools: [file]
    allowed_toolkits: [devops, research]
    initial_toolkits: [research]
    dialect: toolkits
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "file_tools.py").write_text(FILES)
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG.replace(', "toolkit:devops": true', "").replace("pandas, missing_one", "lacking"))
    (tmp_path / "lacking_tools.py").write_text("import a_package_that_nobody_has\n")
    path.write_text(path.read_text().replace("plugins:\n", "plugins:\n  lacking: {python: lacking_tools}\n"))
    return path


class Serving:
    """The command, serving one configuration; it can be killed and started again."""

    def __init__(self, config: Path, *, packages: Path | None = ACME, env: Mapping[str, str] | None = None) -> None:
        self.config = config
        self.env = {**os.environ, **({"PYTHONPATH": str(packages)} if packages else {}), **(env or {})}
        self.url = ""
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        command = pegboard_command("serve", "--port", "0", "--config", str(self.config))
        self.process = await asyncio.create_subprocess_exec(
            *command, env=self.env, cwd=self.config.parent, stderr=asyncio.subprocess.PIPE
        )
        assert self.process.stderr is not None
        lines: list[str] = []
        while not self.url:
            line = (await self.process.stderr.readline()).decode()
            assert line, f"it ended: {lines}"
            lines.append(line)
            found = [word.strip('",') for word in line.split() if "http://127.0.0.1:" in word]
            self.url = found[0] if found else ""
        self.url = self.url.split("/mcp")[0]

    async def end(self, how: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        await self.process.communicate()
        self.url = ""

    @asynccontextmanager
    async def client(
        self, agent: str = "assistant", *, session: str = "lobby", era: str = MODERN
    ) -> AsyncIterator[Connected]:
        async with connected(f"{self.url}/mcp/{agent}?session={session}", era) as client:
            yield client


@pytest.fixture
async def serving(config: Path) -> AsyncIterator[Serving]:
    running = Serving(config)
    await running.start()
    yield running
    await running.end(signal.SIGTERM)


async def ask(client: Connected, tool: str, **arguments: Any) -> dict[str, Any]:
    text = await client.text(tool, **arguments)
    answer = json.loads(text)
    assert text == json.dumps(answer, sort_keys=True, ensure_ascii=False), "keys are sorted"
    assert answer["tool"] == "dynamic_tools"
    return answer


async def test_the_conversation_of_seed_000(serving: Serving) -> None:
    """S1, S2, S3, D2, T4, MR24, MR44, MR45, MR56: research is loaded and sticky, devops comes with the next request,
    a kill loses nothing, an edit heals."""
    async with serving.client(era=HANDSHAKE) as chat:
        assert [*await chat.names()][-len(RESEARCH) :] == RESEARCH
        assert "Attention" in await chat.text("arxiv_search", query="attention")
        sticky = await ask(chat, "unload_tools", toolkit="research")
        assert sticky["status"] == "sticky"
        listed = await ask(chat, "list_toolkits")
        assert [kit["name"] for kit in listed["toolkits"]][:2] == ["devops", "research"]
        answer = await ask(chat, "load_tools", toolkit="devops")
        assert answer == {
            "status": "loaded",
            "tool": "dynamic_tools",
            "toolkit": "devops",
            "loaded_toolkits": ["devops", "research"],
            "message": "Toolkit 'devops' will be available on the next request in this session.",
            "takes_effect": "next_request",
        }
        assert [*await chat.names()][-len(DEVOPS) :] == DEVOPS
        await until(lambda: chat.changes() == 1)

    await serving.end(signal.SIGKILL)
    await serving.start()

    async with serving.client() as chat:
        assert (await ask(chat, "list_toolkits"))["loaded_toolkits"] == ["devops", "research"]
        assert "demo" in await chat.text("lambda_deploy", name="demo")
    async with serving.client(session="elsewhere") as stranger:
        assert (await ask(stranger, "list_toolkits"))["loaded_toolkits"] == ["research"]
        assert (await stranger.call("lambda_deploy", name="demo")).is_error
    async with serving.client("other") as colleague:
        assert (await ask(colleague, "list_toolkits"))["loaded_toolkits"] == ["research"]

    text = serving.config.read_text()
    serving.config.write_text(
        text.replace("allowed_toolkits: [devops, research, mirror", "allowed_toolkits: [research, mirror")
    )
    async with serving.client() as chat:

        async def healed() -> bool:
            return (await ask(chat, "list_toolkits"))["loaded_toolkits"] == ["research"]

        await until(healed)
        assert (await ask(chat, "load_tools", toolkit="devops"))["status"] == "not_allowed"


async def test_every_status_of_a_load_over_the_wire(serving: Serving) -> None:
    """MR44, MR47, T5, P6, P9: one load of each kind, with its keys; a refusal changes nothing."""
    common = {"status", "tool", "toolkit", "loaded_toolkits", "message"}
    async with serving.client() as chat:
        wanted = {
            "nonsense": ("unknown", {"allowed_toolkits"}),
            "private": ("not_allowed", {"allowed_toolkits"}),
            "closed": ("not_allowed", {"allowed_toolkits"}),
            "research": ("already_loaded", {"takes_effect"}),
            "broken": ("tool_unavailable", {"unavailable_messages"}),
            "devops": ("loaded", {"takes_effect"}),
        }
        answer: Any = None
        for name, (status, extra) in wanted.items():
            answer = await ask(chat, "load_tools", toolkit=name)
            assert (answer["status"], set(answer)) == (status, common | extra), answer
            assert answer["toolkit"] == name
        assert answer["loaded_toolkits"] == ["devops", "research"]
        conflict = await ask(chat, "load_tools", toolkit="mirror")
        assert conflict["status"] == "conflict"
        assert set(conflict) == common | {"conflicting_tool", "existing_overrides", "candidate_overrides"}
        assert conflict["conflicting_tool"] == "github"
        assert conflict["candidate_overrides"] == {"repository": "acme/mirror"}
        assert conflict["loaded_toolkits"] == ["devops", "research"]
        assert "closed" not in [kit["name"] for kit in (await ask(chat, "list_toolkits"))["toolkits"]]
    async with serving.client("tight") as chat:
        over = await ask(chat, "load_tools", toolkit="devops")
        assert (over["status"], over["loaded_toolkits"]) == ("over_budget", [])


async def test_every_status_of_an_unload_over_the_wire(serving: Serving) -> None:
    """MR45, MR46, S10: unknown, not allowed, sticky, not loaded, unloaded."""
    async with serving.client() as chat:
        assert (await ask(chat, "unload_tools", toolkit="nonsense"))["status"] == "unknown"
        assert (await ask(chat, "unload_tools", toolkit="private"))["status"] == "not_allowed"
        assert (await ask(chat, "unload_tools", toolkit="research"))["status"] == "sticky"
        idle = await ask(chat, "unload_tools", toolkit="devops")
        assert (idle["status"], idle["takes_effect"]) == ("not_loaded", "next_request")
        await ask(chat, "load_tools", toolkit="devops")
        gone = await ask(chat, "unload_tools", toolkit="devops")
        assert gone["message"] == "Toolkit 'devops' will be removed on the next request in this session."
        assert (gone["status"], gone["takes_effect"]) == ("unloaded", "next_request")


async def test_the_third_equal_failure_in_a_row_is_not_executed(serving: Serving) -> None:
    """X3, MI1: it says so; another call comes through, and the next turn starts again."""
    async with serving.client() as chat:
        for _ in range(2):
            assert (await ask(chat, "load_tools", toolkit="nonsense"))["status"] == "unknown"
        assert "not executed" in await chat.text("load_tools", toolkit="nonsense")
        assert (await ask(chat, "load_tools", toolkit="other_nonsense"))["status"] == "unknown"
        assert (await ask(chat, "load_tools", toolkit="nonsense"))["status"] == "unknown"
