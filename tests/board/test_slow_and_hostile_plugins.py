"""Plugins that hang, break in odd ways, or tell secrets."""

import subprocess
import sys
from pathlib import Path

import pytest

from pegboard import Pegboard
from pegboard.tokens import OfflineTokenCounter

ODD = '''
import asyncio


class Mute(Exception):
    def __str__(self):
        raise ValueError("no words")


async def cancels() -> str:
    """Raise what only the loop should."""
    raise asyncio.CancelledError


async def stops() -> str:
    """Raise what ends generators."""
    raise GeneratorExit


def interrupts() -> str:
    """Raise what Ctrl-C raises."""
    raise KeyboardInterrupt


def mute() -> str:
    """Raise what cannot say what it is."""
    raise Mute
'''


HANGING = """
import asyncio
from pegboard import Pegboard
import pegboard.board.session as module

module.LOOK_WAIT = 0.2

async def main():
    async with Pegboard.open("pegboard.yaml") as board:
        session = await board.session(session_id="s")
        for _ in range(2):
            assert "fine" in (await session.surface()).names
            assert (await session.call("fine")).status == "ok"
    print("done", flush=True)

asyncio.run(main())
"""


@pytest.mark.timeout(60)
def test_a_plugin_that_hangs_at_import_is_waited_for_once(tmp_path: Path) -> None:
    """G8, P6: what is there can be listed and called; in a process of its own, for it never ends."""
    (tmp_path / "fine.py").write_text('def fine() -> str:\n    """Fine."""\n    return "fine"\n')
    (tmp_path / "hangs.py").write_text("import threading\nthreading.Event().wait()\n")
    (tmp_path / "pegboard.yaml").write_text(
        "store: 'memory:'\n"
        "plugins: {a: {python: fine}, h: {python: hangs}}\n"
        "agents: {x: {tools: [a], discoverable: [h]}}\n"
    )
    ran = subprocess.run([sys.executable, "-c", HANGING], cwd=tmp_path, capture_output=True, text=True, timeout=50)
    assert (ran.stdout, ran.returncode) == ("done\n", 0), ran.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [("cancels", "CancelledError"), ("stops", "GeneratorExit"), ("interrupts", "KeyboardInterrupt"), ("mute", "Mute")],
)
async def test_whatever_a_tool_raises_is_its_own_error(tmp_path: Path, name: str, said: str) -> None:
    """G7: an answer that is an error, for the model to read."""
    (tmp_path / "odd.py").write_text(ODD)
    (tmp_path / "pegboard.yaml").write_text(
        "store: 'memory:'\nplugins: {o: {python: odd}}\nagents: {x: {tools: [o]}}\n"
    )
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        answer = await (await board.session(session_id="s")).call(name)
        assert (answer.status, answer.result.content[0]["text"]) == ("error", said)


@pytest.mark.timeout(20)
def test_a_description_without_a_break_is_counted_in_time() -> None:
    """F4: within a few percent; what tokenizers take grows with the square of such a run."""
    counter = OfflineTokenCounter()
    assert counter.count("d" * 300_000) > 30_000
    assert counter.count("d" * 399) * 2 <= counter.count("d" * 800) <= counter.count("d" * 399) * 2 + 4


def deep() -> dict[str, object]:
    """Return an object that is nested deeper than anything can write."""
    nested: dict[str, object] = {}
    for _ in range(100_000):
        nested = {"x": nested}
    return nested


@pytest.mark.parametrize("argument", ["\ud800", deep(), {1}], ids=["lone surrogate", "deep", "set"])
async def test_arguments_that_are_not_json_are_refused_by_tools_and_meta_tools(
    tmp_path: Path, argument: object
) -> None:
    """X2: a model's own JSON can have such texts; the refusal is an answer and is audited."""
    (tmp_path / "fine.py").write_text('def fine(number: int = 1) -> int:\n    """Fine."""\n    return number\n')
    (tmp_path / "pegboard.yaml").write_text(
        "plugins: {fine: {python: fine}}\nagents: {x: {tools: [fine], discoverable: ['*']}}\n"
    )
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        session = await board.session(session_id="s")
        answer = await session.call("fine", {"number": argument})
        assert (answer.status, answer.is_error) == ("invalid_arguments", True)
        assert "they are not JSON" in answer.message
        for _ in range(3):
            answer = await session.call("load_tools", {"names": [argument]})
        assert answer.is_error
        (entry,) = await board.services.store.entries(session="s", kind="call")
        assert (entry.subject, entry.outcome) == ("fine/fine", "invalid_arguments")
