"""Ten toolkits of twenty tools, as Python modules: the same functions for every adapter."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

CATALOG = Path(__file__).with_name("catalog.txt")
TYPES = {"int": "int", "list": "list[str]"}
SAMPLES: Mapping[str, object] = {"int": 3, "list": ["a", "b"]}
ABOUT = {
    "start": "When it begins, as ISO 8601.",
    "end": "When it ends, as ISO 8601.",
    "date": "The day, as ISO 8601.",
    "query": "The words to look for; all of them have to occur.",
    "body": "The text, as Markdown.",
    "path": "Where the file is or is to be, from the root of the drive.",
    "limit": "How many there are at most.",
    "person": "Whose name or address it is.",
    "amount": "The amount in whole units of the account's currency.",
    "to": "The addresses of the recipients, parted by commas.",
    "environment": "Production, staging or another environment.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An argument of a tool."""

    name: str
    kind: str
    default: str | None

    @property
    def signature(self) -> str:
        value = self.default if self.kind == "int" else repr(self.default)
        return f"{self.name}: {TYPES.get(self.kind, 'str')}" + (f" = {value}" if self.default is not None else "")

    @property
    def about(self) -> str:
        if self.name.endswith("_id"):
            return f"The id of the {self.name[:-3].replace('_', ' ')}, as lists and searches give it."
        return ABOUT.get(self.name, f"The {self.name.replace('_', ' ')} that is meant.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A tool of the catalog; ``message`` is what a user says who needs it, or empty."""

    toolkit: str
    name: str
    description: str
    arguments: tuple[Argument, ...]
    message: str

    @property
    def sample(self) -> dict[str, object]:
        """Return arguments that fit."""
        needed = (argument for argument in self.arguments if argument.default is None)
        return {argument.name: SAMPLES.get(argument.kind, "something") for argument in needed}

    @property
    def answer(self) -> str:
        return f"done: {self.name}"

    @property
    def source(self) -> str:
        heads = ", ".join(argument.signature for argument in self.arguments)
        lines = "\n".join(f"        {argument.name}: {argument.about}" for argument in self.arguments)
        return (
            f'def {self.name}({heads}) -> str:\n    """{self.description}\n\n    Args:\n{lines}\n    """\n'
            f"    return {self.answer!r}\n"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """A toolkit: its name, what it is for, its tools."""

    name: str
    description: str
    tools: tuple[Made, ...]

    @property
    def module(self) -> str:
        return f"bill_{self.name}"

    def functions(self) -> list[Callable[..., str]]:
        """Return the functions, once the modules are written and can be imported."""
        module: ModuleType = importlib.import_module(self.module)
        return [getattr(module, tool.name) for tool in self.tools]


def read() -> tuple[Toolkit, ...]:
    """Return the toolkits of the catalog."""
    found: list[Toolkit] = []
    for part in CATALOG.read_text(encoding="utf-8").split("# ")[1:]:
        head, *lines = part.strip().splitlines()
        name, _, description = head.partition(": ")
        found.append(Toolkit(name=name, description=description, tools=tuple(_tool(name, line) for line in lines)))
    return tuple(found)


def _tool(toolkit: str, line: str) -> Made:
    name, arguments, description, *message = (part.strip() for part in line.split("|"))
    made = sorted((_argument(text.strip()) for text in arguments.split(",")), key=lambda one: one.default is not None)
    return Made(toolkit=toolkit, name=name, description=description, arguments=tuple(made), message="".join(message))


def _argument(text: str) -> Argument:
    head, equals, default = text.partition("=")
    name, _, kind = head.partition(":")
    return Argument(name=name, kind=kind, default=default if equals else None)


def write(toolkits: tuple[Toolkit, ...], folder: Path) -> Path:
    """Write a module for each toolkit and a configuration over them; return the configuration."""
    for toolkit in toolkits:
        (folder / f"{toolkit.module}.py").write_text("\n\n".join(tool.source for tool in toolkit.tools))
    sys.path.insert(0, str(folder))
    plugins = "".join(f"  {toolkit.name}_tools: {{python: {toolkit.module}}}\n" for toolkit in toolkits)
    kits = "".join(
        f'  {toolkit.name}: {{description: "{toolkit.description}", tools: [{toolkit.name}_tools]}}\n'
        for toolkit in toolkits
    )
    names = ", ".join(toolkit.name for toolkit in toolkits)
    config = folder / "pegboard.yaml"
    config.write_text(
        f'store: "memory:"\nplugins:\n{plugins}toolkits:\n{kits}defaults: {{dialect: pegboard}}\nagents:\n'
        f"  assistant: {{allowed_toolkits: [{names}]}}\n"
        f"  asked: {{allowed_toolkits: [{names}], anticipate: false}}\n"
    )
    return config
