"""A module whose globals users share is warned of where an agent works apart (G9)."""

import pytest

from config.config_support import Writer

FILE = """
plugins: {{notes: {{python: "notes{target}"{plugin}}}}}
agents: {{a: {{{agent}}}}}
"""
APART = "worker_scope: user, tools: [notes]"
LIST = "ITEMS = []\ndef add(item: str) -> None:\n    ITEMS.append(item)\n"


def found(writer: Writer, module: str, *, agent: str = APART, target: str = "", plugin: str = "") -> list[str]:
    writer.file(module, "notes.py")
    text = FILE.format(agent=agent, target=target, plugin=plugin)
    return [str(problem) for problem in writer.problems(text) if problem.code == "shared_globals"]


@pytest.mark.parametrize(
    "module",
    {
        "a list": LIST,
        "a key": "BY_NAME: dict = {}\ndef add(name: str) -> None:\n    BY_NAME[name] = 1\n",
        "a name": "LAST = ''\ndef add(name: str) -> None:\n    global LAST\n    LAST = name\n",
        "an attribute": "class Box: ...\nBOX = Box()\nasync def add(name: str) -> None:\n    BOX.name = name\n",
        "a method": "ITEMS = []\nclass Notes:\n    def add(self, name: str) -> None:\n        ITEMS.append(name)\n",
        "a deletion": "BY_NAME = dict()\ndef remove(name: str) -> None:\n    del BY_NAME[name]\n",
    }.values(),
)
def test_a_module_with_globals_that_its_functions_change_is_warned_of(writer: Writer, module: str) -> None:
    """G9: each way in which a function can change one."""
    assert len(found(writer, module)) == 1


@pytest.mark.parametrize(
    "agent",
    {
        "of two agents only one": "worker_scope: user_agent, tools: [notes]",
        "private": "private: {per: user}, essential: [notes]",
        "by a pattern": 'worker_scope: user, discoverable: ["*"]',
        "one tool": "worker_scope: user, tools: [notes/add]",
    }.values(),
)
def test_whatever_gives_it_to_an_agent_that_works_apart(writer: Writer, agent: str) -> None:
    """G9: a grant of one tool is one."""
    assert len(found(writer, LIST, agent=agent)) == 1


@pytest.mark.parametrize(
    "case",
    {
        "shared": {"agent": "tools: [notes]"},
        "meant": {"plugin": ", instance: all"},
        "not granted": {"agent": "worker_scope: user"},
        "denied": {"agent": APART + ", permissions: {notes: false}"},
        "only read": {"module": "NAMES = ['a']\ndef names() -> list[str]:\n    return [*NAMES]\n"},
        "of the function": {
            "module": "ITEMS = []\ndef add() -> list:\n    ITEMS = []\n    ITEMS.append(1)\n    return ITEMS\n"
        },
        "a constant": {
            "module": "import re\nWORD = re.compile('a')\ndef has(t: str) -> bool:\n    return bool(WORD.match(t))\n"
        },
        "unreadable": {"module": "def ("},
    }.values(),
)
def test_what_nobody_shares_by_it_is_not_warned_of(writer: Writer, case: dict[str, str]) -> None:
    """G9: a warning names what happens."""
    assert found(writer, case.pop("module", LIST), **case) == []


def test_the_warning_names_place_global_agent_and_what_to_do(writer: Writer) -> None:
    """G9: where, what, and what would be right."""
    (message,) = found(writer, LIST)
    assert message == (
        "pegboard.yaml:2:11: plugins.notes: agent 'a' works apart, and all users share 'ITEMS' in the module of plugin "
        "'notes'. "
        "Keep it in a class, one object for each user, or write `instance: all` if that is meant."
    )
