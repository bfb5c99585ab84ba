"""The next version of a framework, in which something has another name that an adapter rests on: the run goes on."""

import json
import subprocess
import sys
from pathlib import Path

from framework_world import CONFIG

PROGRAM = """
import asyncio, importlib, importlib.abc, importlib.machinery, json, logging, os, re, sys

import anthropic, openai
from pegboard import Pegboard, tokens
from pegboard.testing import StrictProvider

vocabulary = tokens.vocabulary()
for package, driver, gone in json.load(sys.stdin):
    if (child := os.fork()) == 0:
        os.chdir(gone)
        for number, name in enumerate(("out", "err"), 1):
            os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY), number)
        break
    os.waitpid(child, 0)
else:
    sys.exit()


class Renamed(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        if gone.encode() not in self.get_data(self.path):
            return super().get_code(fullname)
        text = re.sub(rf"(?<!\\w){gone}\\b", "next_" + gone.strip("_"), self.get_source(fullname))
        return compile(text, self.path, "exec", dont_inherit=True)


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] != package:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = Renamed(spec.loader.name, spec.loader.path)
        return spec


sys.meta_path.insert(0, Finder())
logging.basicConfig(format="%(name)s: %(message)s", level=logging.WARNING)
from framework_tools import RAN

module, kind = driver.split(":")
made = getattr(importlib.import_module(module), kind)()
NOTE = ("call_tool", {"name": "note_add", "arguments": {"text": "eggs"}})


async def main():
    async with Pegboard.open("pegboard.yaml") as board:
        for stream in (False, True):
            RAN.clear()
            session = await board.session(agent="assistant", session_id=str(stream))
            await session.load("notes")
            with StrictProvider([NOTE], "Done.", "Still.") as server:
                going = made.talk(session, url=server.url)
                said = [(await going.run(text, stream=stream)).answer.strip() for text in ("Note eggs.", "Go on.")]
            print(json.dumps([said, [one.text for one in server.refusals], RAN]), flush=True)


asyncio.run(main())
"""
"""Code that tries what is gone in a copy of its process for each: importing clients and vocabulary takes long."""
AGENTS, PYDANTIC = ("agents", "openai_agents_driver:OpenAIAgents"), ("pydantic_ai", "pydantic_ai_driver:PydanticAI")
LANGCHAIN = ("langchain_core", "langchain_driver:LangChain")
GONE = [(*AGENTS, "_cleanup_on_run_end"), (*AGENTS, "get_model_run_owner"), (*AGENTS, "_fetch_response"),
        (*PYDANTIC, "_event_iterator"), (*PYDANTIC, "get_current_run_context"),
        (*LANGCHAIN, "_stream_chat_model_events")]  # fmt: skip
"""Packages, their drivers, and what has another name in them from now on."""


def test_what_is_gone_from_a_framework_costs_an_extra_and_no_run(tmp_path: Path) -> None:
    """P6: its tools run, whole and streamed; one warning at most says what is missing."""
    for *_, gone in GONE:
        (tmp_path / gone).mkdir()
        (tmp_path / gone / "pegboard.yaml").write_text(CONFIG)
    env = {"PATH": "", "PYTHONPATH": str(Path(__file__).parent), "HOME": str(tmp_path), "AGNO_TELEMETRY": "false"}
    command = [sys.executable, "-c", PROGRAM]
    subprocess.run(command, input=json.dumps(GONE), text=True, cwd=tmp_path, env=env, check=True, timeout=240)
    for *_, gone in GONE:
        out, err = [(tmp_path / gone / name).read_text() for name in ("out", "err")]
        answers = [json.loads(line) for line in out.splitlines() if line.startswith("[[")]
        assert answers == [[["Done.", "Still."], [], ["note_add"]]] * 2, (gone, err)
        assert err.count("pegboard.frameworks: ") <= 1, gone
