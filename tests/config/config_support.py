"""A small language for tests of configurations."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from pegboard.config.inspection import inspect, load
from pegboard.config.schema.configuration import Configuration
from pegboard.core.model.specs import RegisteredSpec
from pegboard.problems import Problem

NAMES = (
    *("docker", "aws_lambda", "github", "duckduckgo", "arxiv", "wikipedia", "pandas", "csv", "visualization", "sql"),
    *("file", "shell", "scheduler", "spotify", "homeassistant"),
)
REGISTERED = {
    name: RegisteredSpec(name=name, loader=f"test:{name}", shared_only=name in ("spotify", "homeassistant"))
    for name in NAMES
}


@dataclass(frozen=True)
class Writer:
    """Write configurations into one empty folder, which is the working folder too."""

    folder: Path

    def file(self, text: str, name: str = "pegboard.yaml") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return path

    def env(self, env: Mapping[str, str] | None = None) -> dict[str, str]:
        return {"XDG_CONFIG_HOME": str(self.folder / "home"), **(env or {})}

    def problems(self, text: str, name: str = "pegboard.yaml", **env: str) -> list[Problem]:
        return inspect(self.file(text, name), registered=REGISTERED, env=self.env(env))[1]

    def messages(self, text: str, name: str = "pegboard.yaml", **env: str) -> list[str]:
        return [str(problem) for problem in self.problems(text, name, **env)]

    def loaded(self, text: str, name: str = "pegboard.yaml", **env: str) -> Configuration:
        return load(self.file(text, name), registered=REGISTERED, env=self.env(env))
