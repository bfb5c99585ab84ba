"""Run the recipes of docs/recipes.md as they stand: `python tests/frameworks/recipe_runs.py FOLDER [NAME …]`.

Each is installed by its own lines into a folder of its own, and run by its own line beside a gateway of its own. In the
place of the model's provider is a server on 127.0.0.1, whose model loads a toolkit, calls a tool of it by its own name
where that is listed, else through `call_tool`, and says what came back. Printed is each recipe with its answer, or with
all that it printed where it fails.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard.assembly import Pegboard
from pegboard.gateway import serving
from pegboard.testing import ModelAnswer, ScriptedModel, StrictProvider

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "recipes.md"
RECIPES = ROOT / "examples" / "recipes"
SERVED = "http://127.0.0.1:8321/mcp"
UV = (sys.executable, str(ROOT / "tools" / "uv.py"))
NPM_OPTIONS = ("--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")
ANSWER = "It is 42."
PATIENCE = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a section says: its name, the lines that install something, and the line that runs it."""

    name: str
    installs: tuple[str, ...]
    runs: str

    @property
    def expected(self) -> str:
        """Return what the line prints where it works; a client without a model lists the tools."""
        return ANSWER if "examples/recipes" in self.runs else '"load_tools"'


def recipes(document: str) -> list[Recipe]:
    """Return the recipe of each section that has a block of commands."""
    found: list[Recipe] = []
    for section in re.split(r"^## ", document, flags=re.MULTILINE)[1:]:
        for block in re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL):
            installs = tuple(line for line in block.splitlines() if " install " in line)
            (runs,) = (line for line in block.splitlines() if " install " not in line)
            found.append(Recipe(name=section.partition("\n")[0], installs=installs, runs=runs))
    return found


def model() -> ScriptedModel:
    """Return a model that loads, calls, and says what came back; a request without tools is not its."""
    left = [("load_tools", {"names": ["numbers"]}), ("calculate", {"expression": "6 * 7"})]

    def answer(body: Mapping[str, Any]) -> ModelAnswer:
        names = [tool.get("name") or tool["function"]["name"] for tool in body.get("tools") or ()]
        if not names:
            return "A title."
        if not left:
            messages = body.get("messages") or body["input"]
            return ANSWER if "42" in json.dumps(messages[-1]) else "It failed."
        name, arguments = left.pop(0)
        called = [listed for listed in names if listed.endswith(name)]
        if called:
            return [(called[0], arguments)]
        through = next(listed for listed in names if listed.endswith("call_tool"))
        return [(through, {"name": name, "arguments": arguments})]

    return answer


def installed(recipe: Recipe, folder: Path, node: Path) -> dict[str, str]:
    """Install what a recipe needs, where that is not there yet; return the variables that it runs with."""
    shutil.copytree(RECIPES, folder / "examples" / "recipes", dirs_exist_ok=True)
    python, done = folder / "venv" / "bin" / "python", folder / "installed"
    if not done.is_file() or done.read_text("utf-8") != "\n".join(recipe.installs):
        for line in recipe.installs:
            tool, _, *packages = line.split()
            if tool == "pip":
                checked(*UV, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(folder / "venv"))
                checked(*UV, "pip", "install", "--quiet", "--python", str(python), *packages)
            else:
                npm = shutil.which(tool, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}") or tool
                checked(npm, "install", "--prefix", str(folder), *NPM_OPTIONS, *packages)
        done.write_text("\n".join(recipe.installs), "utf-8")
    path = f"{python.parent}:{node.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(folder), "NO_PROXY": "127.0.0.1", "LANG": "C.UTF-8"}


def checked(*command: str) -> None:
    subprocess.run(command, check=True, timeout=600)


async def ran(recipe: Recipe, folder: Path, node: Path) -> str:
    """Return what the line of a recipe printed."""
    env = installed(recipe, folder, node)
    with tempfile.TemporaryDirectory() as home, StrictProvider(model=model()) as models:
        config = shutil.copy(RECIPES / "pegboard.yaml", home)
        async with Pegboard.open(config) as board, serving(board, port=0) as url:
            env |= {"PEGBOARD_URL": url, "OPENAI_BASE_URL": f"{models.url}/v1", "ANTHROPIC_BASE_URL": models.url}
            process = await asyncio.create_subprocess_exec(
                "sh",
                "-c",
                recipe.runs.replace("=…", "=none").replace(SERVED, url),
                cwd=folder if "examples/" in recipe.runs else node.parent,
                env=env,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            try:
                written = await asyncio.wait_for(process.communicate(), PATIENCE)
            finally:
                if process.returncode is None:
                    process.kill()
    out, err = (part.decode(errors="replace").strip() for part in written)
    return out if process.returncode == 0 else f"{out}\n{err}"


def main() -> int:
    """Print what each recipe printed; returns whether one did not work."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where each is installed")
    parser.add_argument("names", nargs="*", help="only these, by the beginning of a name")
    asked = parser.parse_args()
    node = Path(os.environ.get("PEGBOARD_NODE") or ROOT / ".node" / "node")
    failed = 0
    for recipe in recipes(DOCUMENT.read_text("utf-8")):
        if asked.names and not recipe.name.startswith(tuple(asked.names)):
            continue
        folder = asked.folder.resolve() / re.sub(r"\W+", "-", recipe.name.lower())
        folder.mkdir(parents=True, exist_ok=True)
        printed = asyncio.run(ran(recipe, folder, node))
        works = recipe.expected in printed
        failed += not works
        print(f"{'works' if works else 'fails'}  {recipe.name}: {recipe.expected if works else printed}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
