import importlib
import sys

import pytest

from pegboard.core.model.tools import CallResult
from pegboard.support.installed import install_hint


def text(result: CallResult) -> str:
    return result.content[0]["text"]


async def test_the_public_functions_of_a_module_are_tools(workshop):
    workshop.write(
        "notes_a.py",
        '''
        """Keep notes."""
        from json import dumps
        from os.path import join as public_but_foreign

        def add(text: str, tags: list[str] | None = None) -> str:
            """Add a note.

            Args:
                text: What to remember,
                    in one line.
                tags: Words to find it by.
            """
            return text

        def _hidden(): ...
        ''',
    )
    manifest = await workshop.describe("notes_a")
    assert [t.name for t in manifest.tools] == ["add"]
    assert manifest.description == "Keep notes."
    tool = manifest.tools[0]
    assert tool.description == "Add a note."
    assert tool.input_schema["properties"]["text"] == {
        "type": "string",
        "description": "What to remember, in one line.",
    }
    assert tool.input_schema["properties"]["tags"]["default"] is None
    assert tool.input_schema["required"] == ["text"]
    assert tool.input_schema["additionalProperties"] is False


async def test_all_names_the_tools_of_a_module(workshop):
    workshop.write("listed_b.py", "__all__ = ['join']\nfrom os.path import join\ndef other(): ...\n")
    assert [t.name for t in (await workshop.describe("listed_b")).tools] == ["join"]


@pytest.mark.parametrize(
    "doc",
    [
        "Add.\n\n    Args:\n        a (int): First.\n        b: Second.\n\n    Returns:\n        int: Sum.",
        "Add.\n\n    Parameters\n    ----------\n    a : int\n        First.\n    b : int\n        Second.",
        "Add.\n\n    :param a: First.\n    :param b: Second.\n    :returns: Sum.",
    ],
    ids=["google", "numpy", "sphinx"],
)
async def test_parameters_are_described_in_three_docstring_styles(workshop, doc):
    workshop.write("sums_c.py", f'def add(a: int, b: int) -> int:\n    """{doc}\n    """\n    return a + b\n')
    tool = (await workshop.describe("sums_c")).tools[0]
    assert tool.description == "Add."
    assert [p["description"] for p in tool.input_schema["properties"].values()] == ["First.", "Second."]


async def test_annotations_of_every_kind_become_schema_and_come_back_as_values(workshop):
    workshop.write(
        "kinds_d.py",
        """
        from __future__ import annotations
        import enum
        from dataclasses import dataclass
        from datetime import date
        from pathlib import Path
        from typing import Annotated, Literal, TypedDict
        from pydantic import BaseModel, Field

        class Color(enum.Enum):
            RED = "red"
            BLUE = "blue"

        @dataclass
        class Point:
            x: int
            y: int = 0

        class Box(TypedDict):
            width: int

        class Model(BaseModel):
            name: str

        def everything(
            color: Color, point: Point, box: Box, model: Model, day: date, path: Path,
            size: Literal["s", "m"] = "s", count: Annotated[int, Field(ge=1, description="How many.")] = 1,
            guessed=3, anything=None, schema: str = "", model_config: str = "",
        ) -> str:
            return "|".join([color.name, str(point.x + point.y), str(box["width"]), model.name,
                             str(day.year), path.name, size, str(count), str(guessed)])
        """,
    )
    tool = (await workshop.describe("kinds_d")).tools[0]
    properties = tool.input_schema["properties"]
    assert properties["size"] == {"type": "string", "enum": ["s", "m"], "default": "s"}
    assert properties["count"] == {"type": "integer", "minimum": 1, "description": "How many.", "default": 1}
    assert properties["guessed"] == {"type": "integer", "default": 3}
    assert tool.input_schema["$defs"]["Color"]["enum"] == ["red", "blue"]
    arguments = {
        "color": "blue",
        "point": {"x": 1, "y": 2},
        "box": {"width": 5},
        "model": {"name": "m"},
        "day": "2025-03-01",
        "path": "a/b",
        "count": 2,
    }
    assert text(await workshop.call("kinds_d", "everything", arguments)) == "BLUE|3|5|m|2025|b|s|2|3"


async def test_star_arguments_are_left_out_and_keywords_let_more_through(workshop):
    workshop.write("stars_e.py", "def go(first: int, /, *rest: int, **more: int): return [first, rest, more]\n")
    tool = (await workshop.describe("stars_e")).tools[0]
    assert list(tool.input_schema["properties"]) == ["first"]
    assert text(await workshop.call("stars_e", "go", {"first": 1, "x": 2})) == '[1, [], {"x": 2}]'


async def test_a_parameter_that_json_cannot_express_is_named(workshop):
    workshop.write(
        "odd_f.py",
        "import sqlite3, threading\ndef ask(db: sqlite3.Connection): ...\n",
    )
    error = await workshop.refused("odd_f")
    assert "'ask'" in error.message
    assert "'db' (Connection)" in error.message
    workshop.write("odd_g.py", "import threading\ndef ask(q: str, lock: threading.Event = None) -> str: return q\n")
    tool = (await workshop.describe("odd_g")).tools[0]
    assert list(tool.input_schema["properties"]) == ["q"]


async def test_t5_overrides_are_the_parameters_of_a_class(workshop):
    workshop.write(
        "shop_h.py",
        '''
        from pathlib import Path
        from typing import Annotated
        from pydantic import SecretStr

        class Base:
            def __init__(self, region: str = "eu"): self.region = region
            def where(self) -> str:
                """Tell where."""
                return self.region

        class Shop(Base):
            """Sell things."""
            made = 0
            def __init__(self, db_url: str, size: int = 1, folder: Path | None = None,
                         pin: Annotated[int, "secret"] = 0, word: SecretStr = SecretStr(""), max_tokens: int = 5,
                         **kwargs):
                super().__init__(**kwargs)
                Shop.made += 1
                self.db_url, self.size = db_url, size
            def sell(self) -> str: return f"{self.db_url} {self.size + 1} {Shop.made}"
            @staticmethod
            def tax(price: float) -> float: return price * 2
            @property
            def secret(self): return 1
            def close(self): Shop.closed = True
            def _private(self): ...
        ''',
    )
    overrides = {"db_url": "x://", "size": "4", "region": "us"}
    manifest = await workshop.describe("shop_h:Shop", overrides)
    assert [t.name for t in manifest.tools] == ["where", "sell", "tax"]
    assert dict(manifest.parameters) == {
        "db_url": "string",
        "size": "integer",
        "folder": "string",
        "pin": "integer",
        "word": "string",
        "max_tokens": "integer",
        "region": "string",
    }
    assert manifest.secrets == {"db_url", "pin", "word"}
    assert text(await workshop.call("shop_h:Shop", "sell", overrides=overrides)) == "x:// 5 1"
    assert text(await workshop.call("shop_h:Shop", "where", overrides=overrides)) == "us"
    shop = sys.modules["shop_h"].Shop
    await workshop.source.aclose()
    assert shop.closed


async def test_an_override_that_is_unknown_missing_or_wrong_says_so(workshop):
    workshop.write("cls_i.py", "class Box:\n    def __init__(self, size: int): ...\n    def open(self): ...\n")
    assert "no parameter 'sise'" in str(unknown := await workshop.refused("cls_i:Box", {"sise": 1}))
    assert "Did you mean 'size'?" in unknown.hint
    assert "needs the parameter 'size'" in (await workshop.refused("cls_i:Box")).message
    assert "parameter 'size' is not valid" in (await workshop.refused("cls_i:Box", {"size": "big"})).message
    workshop.write("mod_i.py", "def go(): ...\n")
    assert "takes no overrides" in (await workshop.refused("mod_i", {"size": 1})).message


FACTORIES = {
    "list": """
        def make(base: int = 0):
            def add(x: int): return base + x
            return [add]
        """,
    "annotated": """
        from collections.abc import Callable
        def make(base: int = 0) -> list[Callable]:
            def add(x: int): return base + x
            tools = [add]
            return tools
        """,
    "one": """
        def make(base: int = 0):
            def add(x: int): return base + x
            return add
        """,
    "mapping": """
        def make(base: int = 0):
            def plus(x: int): return base + x
            return {"add": plus}
        """,
    "object": """
        class Adder:
            def __init__(self, base): self.base = base
            def add(self, x: int): return self.base + x
        def make(base: int = 0) -> Adder:
            return Adder(base)
        """,
    "marked": """
        from pegboard.marks import tool
        @tool(factory=True)
        def make(base: int = 0):
            def add(x: int): return base + x
            tools = []
            tools.append(add)
            return tools
        """,
    "awaited": """
        from collections.abc import Callable
        async def make(base: int = 0) -> list[Callable]:
            def add(x: int): return base + x
            return [add]
        """,
}


@pytest.mark.parametrize("kind", FACTORIES)
async def test_a_factory_returns_the_tools(workshop, kind):
    name = f"factory_{kind}"
    workshop.write(f"{name}.py", FACTORIES[kind])
    assert text(await workshop.call(f"{name}:make", "add", {"x": 1})) == "1"
    assert text(await workshop.call(f"{name}:make", "add", {"x": 1}, {"base": "5"})) == "6"


async def test_a_function_is_one_tool_and_is_not_called_to_find_out(workshop):
    workshop.write(
        "single_j.py", "calls = []\ndef fire(hard: bool = False) -> list[str]:\n    calls.append(1)\n    return []\n"
    )
    manifest = await workshop.describe("single_j:fire")
    assert [t.name for t in manifest.tools] == ["fire"]
    assert sys.modules["single_j"].calls == []


async def test_lists_and_objects_can_be_named(workshop):
    workshop.write(
        "things_k.py",
        "def a(): return 1\ndef b(): return 2\nTOOLS = [b, a]\nclass C:\n    def m(self): return 3\nthing = C()\n",
    )
    assert [t.name for t in (await workshop.describe("things_k:TOOLS")).tools] == ["b", "a"]
    assert text(await workshop.call("things_k:thing", "m")) == "3"


async def test_p6_what_is_missing_is_said_with_what_to_do(workshop):
    workshop.write("needs_s.py", "import yaml_that_is_not_there\ndef go(): ...\n")
    error = await workshop.refused("needs_s")
    assert error.code == "tool_unavailable"
    assert "needs 'yaml_that_is_not_there'" in error.message
    assert error.hint == install_hint("yaml_that_is_not_there")
    assert "there is no module 'nowhere_s'" in (await workshop.refused("nowhere_s")).message
    workshop.write(
        "there_s.py", "def load_all(): ...\nclass Bad:\n    def __init__(self): raise OSError('disk is full')\n"
    )
    error = await workshop.refused("there_s:load_al")
    assert error.hint == "Did you mean 'load_all'?"
    assert "OSError: disk is full" in (await workshop.refused("there_s:Bad")).message
    workshop.write("odd_s.py", "class Odd(BaseException): ...\nraise Odd('of a kind of its own')\n")
    assert "Odd: of a kind of its own" in (await workshop.refused("odd_s")).message
    workshop.write("typo_s.py", "def go(:\n")
    assert "typo_s.py:1" in (await workshop.refused("typo_s")).message
    workshop.write("empty_s.py", "")
    assert "no public functions" in (await workshop.refused("empty_s")).message


async def test_a_constructor_that_failed_is_tried_again(workshop):
    workshop.write(
        "retry_t.py",
        "ready = False\nclass Later:\n    def __init__(self):\n        if not ready: raise OSError('down')\n"
        "    def go(self): ...\n",
    )
    assert "down" in (await workshop.refused("retry_t:Later")).message
    vars(sys.modules["retry_t"])["ready"] = True
    assert [t.name for t in (await workshop.describe("retry_t:Later")).tools] == ["go"]


async def test_two_folders_with_modules_of_one_name_do_not_mix(workshop):
    results = []
    for side in ("left", "right"):
        shop = workshop.beside(side)
        shop.write("twin_u/helper.py", f"WHO = '{side}'\n")
        shop.write("twin_u/__init__.py", "")
        shop.write(
            "twin_u/tools.py",
            "from __future__ import annotations\nfrom dataclasses import dataclass\nimport calendar\n"
            "from twin_u.helper import WHO\n@dataclass\nclass Item:\n    size: int\n"
            "def who(item: Item) -> str: return f'{WHO} {item.size} {calendar.MONDAY:d}'\n",
        )
        results.append(text(await shop.call("twin_u.tools", "who", {"item": {"size": 1}})))
    assert results == ["left 1 0", "right 1 0"]
    assert not any(str(workshop.folder) in entry for entry in sys.path)


async def test_whoever_looks_through_the_import_path_meanwhile_misses_no_folder(workshop):
    """Another thread may import, or read what is installed, just then."""
    looks = iter(sys.path)
    first = next(looks)
    workshop.write("meanwhile_w.py", "import sys\nLOOKS = iter(sys.path)\nnext(LOOKS)\ndef go(): ...\n")
    await workshop.describe("meanwhile_w")
    assert [first, *looks] == sys.path
    assert list(vars(sys.modules["meanwhile_w"])["LOOKS"]) == sys.path


async def test_a_module_that_changes_the_import_path_has_changed_it(workshop, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    workshop.write("adds_w.py", "import sys\nsys.path.append('added')\ndef go(): ...\n")
    await workshop.describe("adds_w")
    assert sys.path[-1] == "added"
    assert str(workshop.folder) not in sys.path


async def test_a_module_beside_the_configuration_may_have_the_name_of_an_installed_one(workshop):
    import calendar

    workshop.write("calendar.py", "def today() -> str: return 'mine'\n")
    assert text(await workshop.call("calendar", "today")) == "mine"
    assert sys.modules["calendar"] is calendar


async def test_modules_of_a_folder_stay_until_its_last_source_is_closed(workshop):
    workshop.write("lasting_v.py", "def go() -> str:\n    import lasting_v\n    return lasting_v.__name__\n")
    other = type(workshop)(workshop.folder)
    assert text(await workshop.call("lasting_v", "go")) == text(await other.call("lasting_v", "go")) == "lasting_v"
    await other.source.aclose()
    assert text(await workshop.call("lasting_v", "go")) == "lasting_v"
    await workshop.source.aclose()
    assert "lasting_v" not in sys.modules
    workshop.write("lasting_v.py", "def go() -> str:\n    return 'edited since'\n")
    assert text(await workshop.call("lasting_v", "go")) == "edited since"


async def test_a_module_that_the_host_imports_later_is_its_own(workshop, tmp_path_factory, monkeypatch):
    workshop.write("shared_w.py", "def one() -> str: return 'mine'\ndef two() -> str: return 'mine too'\n")
    assert text(await workshop.call("shared_w", "one")) == "mine"
    theirs = tmp_path_factory.mktemp("host")
    (theirs / "shared_w.py").write_text("WHOSE = 'the host'\n")
    monkeypatch.syspath_prepend(str(theirs))
    monkeypatch.delitem(sys.modules, "shared_w")
    host = importlib.import_module("shared_w")
    assert text(await workshop.call("shared_w", "two", name="again")) == "mine too"
    assert sys.modules["shared_w"] is host
    assert host.WHOSE == "the host"


async def test_whether_the_host_has_a_module_of_a_name_is_asked_once(workshop, monkeypatch):
    """Not again for each module that is imported after it: a configuration may have hundreds."""
    asked = []

    class Finder:
        def find_spec(self, name, path, target=None):
            asked.append(name)

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    for number in range(5):
        workshop.write(f"one_of_many_{number}.py", "def go(): ...\n")
        await workshop.describe(f"one_of_many_{number}", name=f"plugin{number}")
    assert sorted(name for name in asked if name.startswith("one_of_many")) == [f"one_of_many_{n}" for n in range(5)]


async def test_a_module_that_is_written_after_its_folder_was_listed_is_found(workshop):
    workshop.write("early_x.py", "def go(): ...\n")
    await workshop.describe("early_x")
    workshop.write("late_x.py", "import late_y\ndef go() -> str: return late_y.WHO\n")
    workshop.write("late_y.py", "WHO = 'late'\n")
    assert text(await workshop.call("late_x", "go", name="late")) == "late"
