"""Build both distributions into a folder: ``python tools/distributions.py dist``.

``pegboard-slim`` is the checkout. ``pegboard`` has no code: it needs ``pegboard-slim[mcp]`` of the same version, has
its extras under its own name, and declares the command, which ``uvx pegboard`` looks for in the distribution of that
name. ``pegboard.mcpb`` is a bundle for Claude Desktop: a manifest that calls ``uvx``.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import tomlkit

ROOT = Path(__file__).resolve().parent.parent
UV = (sys.executable, str(ROOT / "tools" / "uv.py"))
CODE, WITH_SERVERS = "pegboard-slim", "pegboard"


def write_project(folder: Path) -> None:
    """Write the project of ``pegboard`` into a folder, from that of ``pegboard-slim``."""
    document = tomlkit.parse((ROOT / "pyproject.toml").read_text("utf-8"))
    project, hatch = document["project"], document["tool"]["hatch"]
    same = f"=={project['version']}"
    extras = {name: [f"{CODE}[{name}]{same}"] for name in project["optional-dependencies"]}
    project |= {"name": WITH_SERVERS, "dependencies": [f"{CODE}[mcp]{same}"], "optional-dependencies": extras}
    only_metadata = {"wheel": {"bypass-selection": True}, "sdist": {"include": ["/README.md", "/LICENSE"]}}
    tool = {"hatch": {"metadata": hatch["metadata"], "build": {"targets": only_metadata}}}
    made = {"build-system": document["build-system"], "project": project, "tool": tool}
    (folder / "pyproject.toml").write_text(tomlkit.dumps(made), "utf-8")
    for name in ("README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, folder / name)


def main(into: str) -> int:
    """Build a wheel and a source distribution of each, and the bundle."""
    with tempfile.TemporaryDirectory() as folder:
        write_project(Path(folder))
        for project in (ROOT, Path(folder)):
            build = [*UV, "build", "--quiet", "--no-build-isolation", "--out-dir", into, str(project)]
            if code := subprocess.run(build, check=False).returncode:
                return code
    with zipfile.ZipFile(Path(into) / "pegboard.mcpb", "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.write(ROOT / "packaging" / "mcpb" / "manifest.json", "manifest.json")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
