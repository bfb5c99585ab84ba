"""Catalogs and requests that no one would write on purpose: equal names, moved names, odd texts."""

import json
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard, Session

PAIR = """
def read(path: str = "") -> str:
    \"\"\"Read it.\"\"\"
    return "{0}"


def write(path: str = "") -> str:
    \"\"\"Write it.\"\"\"
    return "{0}"
"""
TEXTS = [
    "x" * 20_000,
    "read " * 4_000,
    "r",
    "",
    " ",
    "Lies die Datei",
    "ファイルを読む",
    "读取文件",
    "прочитай файл",
    "اقرأ الملف",
    "फ़ाइल पढ़ो",
    "διάβασε το αρχείο",
    "파일을 읽어라",
    "lire le fichier",
    "lee el archivo 🗂️",
    "```python\nwith open('a') as f:\n    print(f.read())\n```",
    "SELECT * FROM t; -- \x00\x1b[31m",
    '{"name": "read", "arguments": {}}',
]


def module(folder: Path, name: str) -> dict[str, str]:
    (folder / f"{name}_tools.py").write_text(PAIR.format(name))
    return {"python": f"{name}_tools"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config(folder: Path, agent: dict[str, Any], **plugins: dict[str, Any]) -> dict[str, Any]:
    return {
        "store": f"sqlite:///{folder / 'state.db'}",
        "plugins": {name: {**module(folder, name), **more} for name, more in plugins.items()},
        "agents": {"a": {"dialect": "pegboard", "anticipate": False, **agent}},
    }


async def said(session: Session, name: str) -> str:
    answer = await session.call(name, {})
    return answer.result.content[0]["text"] if answer.status == "ok" else answer.status


@pytest.mark.parametrize("first", ["one", "two"])
async def test_of_two_plugins_with_all_names_equal_each_is_loaded_alone(folder: Path, first: str) -> None:
    """G10: whichever comes first keeps its names; the other is a conflict with both ids until that is unloaded."""
    second = "two" if first == "one" else "one"
    async with Pegboard.open(config(folder, {"discoverable": ["*"]}, one={}, two={})) as board:
        session = await board.session(session_id="s")
        assert (await session.load(first)).status == "ok"
        assert await said(session, "read") == first
        (refused,) = (await session.load(second)).items
        assert refused.status == "conflict"
        assert f"{first}/read" in refused.message
        assert f"{second}/read" in refused.message
        assert await said(session, "read") == first
        assert (await session.unload(first)).status == "ok"
        assert (await session.load(second)).status == "ok"
        assert await said(session, "read") == second


async def test_two_plugins_with_all_names_equal_from_the_start_are_one_and_a_reason(folder: Path) -> None:
    """G10, P6: the first of the list has the names, and the other is explained."""
    async with Pegboard.open(config(folder, {"tools": ["two", "one"]}, one={}, two={})) as board:
        session = await board.session(session_id="s")
        assert await said(session, "read") == "two"
        explained = await session.explain("one/read")
        assert not explained.callable
        assert any("two/read" in reason.text for reason in explained.reasons)


@pytest.mark.parametrize(
    ("agent", "loaded", "called"),
    [
        ({"discoverable": ["*"]}, "two", "two"),
        ({"discoverable": ["*"]}, "", "one"),
        ({"discoverable": ["*"], "permissions": {"one": False}}, "", "two"),
        ({"discoverable": ["one"]}, "", "one"),
        ({"discoverable": ["three"]}, "", ""),
    ],
)
async def test_an_explanation_of_a_name_that_two_tools_have_lists_both_and_the_one_that_is_called(
    folder: Path, agent: dict[str, Any], loaded: str, called: str
) -> None:
    """G10, F5: as a call of that name shows; under its id a tool is explained alone."""
    async with Pegboard.open(config(folder, agent, one={}, two={}, three={"prefix": "x"})) as board:
        session = await board.session(session_id="s")
        if loaded:
            assert (await session.load(loaded)).status == "ok"
        await board.ready("one", "two")
        found = await session.explain("read")
        (reason,) = [one for one in found.reasons if one.code == "same_name"]
        assert "'one/read', 'two/read'" in reason.text
        assert (f"means '{called}/read'" in reason.text) == bool(called)
        assert not called or found.id == f"{called}/read"
        for own in ("one/read", "two/read", "x__read"):
            assert "same_name" not in {one.code for one in (await session.explain(own)).reasons}
        assert loaded or (await session.load(called or "x__read")).status == "ok"
        assert await said(session, "read") == (called or "not_found")


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
@pytest.mark.parametrize("apart", [False, True], ids=["in one load", "in two"])
@pytest.mark.parametrize("again", [False, True], ids=["restarted", "reloaded"])
async def test_what_is_loaded_keeps_its_name_when_a_prefix_would_make_two_equal(
    folder: Path, order: tuple[str, str], apart: bool, again: bool
) -> None:
    """G10: two loaded tools of other names; their plugins' prefixes change so that both would have one."""
    agent, file = {"discoverable": ["*"]}, folder / "pegboard.yaml"
    file.write_text(json.dumps(config(folder, agent, one={}, two={"prefix": "x"})))
    async with Pegboard.open(file) as board:
        session = await board.session(session_id="s")
        for names in [(one,) for one in order] if apart else [order]:
            assert (await session.load(*names)).status == "ok"
        assert (await said(session, "read"), await said(session, "x__read")) == ("one", "two")
        file.write_text(json.dumps(config(folder, agent, one={}, two={})))
        if again:
            await board.reload()
            await only_one_is_loaded(board)
    async with Pegboard.open(file) as board:
        await only_one_is_loaded(board)


async def only_one_is_loaded(board: Pegboard) -> None:
    session = await board.session(session_id="s")
    surface = await session.surface()
    assert len(surface.names) == len(set(surface.names))
    assert (surface.names.count("read"), "x__read" in surface.names, await said(session, "read")) == (1, False, "one")
    assert "two," not in surface.suffix
    assert {tool.id for tool in await board.tools("a") if tool.name == "read"} == {"one/read", "two/read"}


async def test_a_lease_of_a_tool_whose_plugin_was_renamed_counts_for_nothing(folder: Path) -> None:
    """S3: nothing fails; what has the new name is loaded by it, and the old lease goes with the next change."""
    async with Pegboard.open(config(folder, {"discoverable": ["*"]}, one={})) as board:
        await (await board.session(session_id="s")).load("one/read")
    async with Pegboard.open(config(folder, {"discoverable": ["*"]}, renamed={})) as board:
        session = await board.session(session_id="s")
        assert "read" not in (await session.surface()).names
        assert (await session.unload("one/read")).items[0].status == "not_found"
        assert (await session.load("renamed/read")).status == "ok"
        assert await said(session, "read") == "renamed"
        (_, state), *_ = await board.services.store.sessions()
        assert "one/read" not in str(state)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
async def test_a_search_for_any_text_answers_in_a_moment(folder: Path, text: str) -> None:
    """P3, F2: what is found is what there is, and a message of that kind makes a surface."""
    async with Pegboard.open(config(folder, {"discoverable": ["*"]}, one={})) as board:
        session = await board.session(session_id="s")
        found = await session.search(text) if text.strip() else None
        assert {one.name for one in found.results} <= {"read", "write"} if found is not None else True
        surface = await session.surface(message=text)
        assert "search_tools" in surface.names
        answer = await session.call("search_tools", {"queries": [text]})
        assert len(answer.result.content[0]["text"]) < 8_000


async def test_tools_that_all_say_the_same_are_found_by_their_names(folder: Path) -> None:
    """S8, F2: no description tells them apart, so that the name decides."""
    names = ["send_mail", "delete_branch", "resize_image", "list_invoices", "weather_now"]
    text = "\n".join(f'def {name}() -> str:\n    """Do the work."""\n    return "{name}"\n\n' for name in names)
    (folder / "same_tools.py").write_text(text)
    given = config(folder, {"discoverable": ["*"]})
    given["plugins"] = {"same": {"python": "same_tools"}}
    async with Pegboard.open(given) as board:
        session = await board.session(session_id="s")
        for request, name in (("send a mail", "send_mail"), ("resize the image", "resize_image")):
            assert (await session.search(request)).results[0].name == name
