"""`pegboard check`, without and with `--strict` and `--probe`."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from command_support import Run, misfits, put

from pegboard import Pegboard
from pegboard.cli.exit_codes import USAGE
from pegboard.operators.bill import BillQuery, BillReader
from pegboard.support.own_folder import folder_of

SERVERS = Path(__file__).resolve().parent.parent / "servers"
SERVER = SERVERS / "plain_server.py"
GONE = {"command": sys.executable, "args": ["-c", "exit(3)"]}
SHAPE = {
    "ok": bool,
    "problems": [
        {
            "severity": str, "code": str, "message": str, "hint": str, "file": (str, type(None)),
            "line": (int, type(None)), "column": (int, type(None)), "path": str,
        }
    ],
}  # fmt: skip


def test_a_good_configuration_is_ok_with_what_is_in_it(run: Run, project: Path) -> None:
    ran = run("check")
    assert (ran.code, ran.out) == (0, "pegboard.yaml: ok. 2 agents, 1 toolkit, 2 plugins.\n")
    assert run("check", "--json").json == {"ok": True, "problems": []}
    assert not (project / "state").exists()


def test_each_problem_stands_on_a_line_of_its_own_with_place_and_hint(run: Run, project: Path) -> None:
    config = project / "pegboard.yaml"
    config.write_text(config.read_text().replace("[writing]", "[writting]").replace("discoverable:", "discoverabel:"))
    ran = run("check")
    assert ran.code == 1
    first, second, last = ran.out.splitlines()
    assert first.startswith("pegboard.yaml:13:24: agents.assistant.allowed_toolkits: ")
    assert "Did you mean 'writing'?" in first
    assert second.startswith("pegboard.yaml:16:5: ")
    assert last == "pegboard.yaml: not ok. 2 errors."
    told = run("check", "--json")
    assert (told.code, misfits(told.json, SHAPE), told.json["ok"]) == (1, [], False)
    assert [(p["line"], p["column"]) for p in told.json["problems"]] == [(13, 24), (16, 5)]


def test_warnings_fail_only_where_they_are_taken_for_errors(run: Run, project: Path) -> None:
    config = project / "pegboard.yaml"
    config.write_text(config.read_text().replace("broken: false", "broken: maybe"))
    lenient, strict = run("check"), run("check", "--strict")
    assert (lenient.code, strict.code) == (0, 1)
    assert lenient.out.splitlines()[0].endswith("(warning: bad_switch)")
    assert "ok. 1 warning." in lenient.out
    assert "not ok. 1 warning." in strict.out
    assert run("check", "--strict", "--json").json["ok"] is False


def test_a_missing_file_is_a_problem_like_any_other(run: Run, folder: Path) -> None:
    ran = run("check", "--config", "nowhere.yaml", "--json")
    assert (ran.code, misfits(ran.json, SHAPE)) == (1, [])
    assert ran.json["problems"][0]["code"] == "file_missing"


def test_p6_only_a_probe_reports_a_server_that_does_not_start(run: Run, folder: Path) -> None:
    servers = {
        "plain": {"command": sys.executable, "args": [str(SERVER)]},
        "gone": {"command": "no-such-program-anywhere"},
    }
    plugins = {"lost": {"python": "no_such_module_anywhere"}}
    (folder / "pegboard.yaml").write_text(json.dumps({"servers": servers, "plugins": plugins}))
    quiet, probed = run("check", "--json"), run("check", "--probe", "--json")
    assert (quiet.code, quiet.json["ok"]) == (0, True)
    assert [problem["path"] for problem in quiet.json["problems"]] == ["plugins.lost"]
    assert (probed.code, misfits(probed.json, SHAPE), probed.json["ok"]) == (0, [], True)
    found = {(p["severity"], p["code"], p["path"]) for p in probed.json["problems"]}
    unavailable = {("warning", "unavailable", "servers.gone"), ("warning", "unavailable", "plugins.lost")}
    assert found == {*unavailable, ("warning", "tool_excluded", "servers.plain")}
    assert "plain" in probed.err
    assert run("check", "--probe", "--strict").code == 1
    listed = run("tools", "--json").json
    assert "plain__echo" in [tool["name"] for tool in listed if tool["available"]]


def test_p6_a_probe_asks_also_a_server_whose_tools_are_known(run: Run, folder: Path) -> None:
    tools = trusting(folder)
    assert run("check", "--probe", "--json").json["problems"] == []
    tools.unlink()
    (problem,) = run("check", "--probe", "--json").json["problems"]
    assert (problem["severity"], problem["code"], problem["path"]) == ("warning", "unavailable", "servers.up")


def test_s9_a_start_over_the_budget_is_a_warning(run: Run, project: Path) -> None:
    config = project / "pegboard.yaml"
    config.write_text(config.read_text().replace("    tools: [notes]", "    tools: [notes]\n    budget: {tools: 2}"))
    ran = run("check", "--json")
    assert ran.code == 0
    (problem,) = ran.json["problems"]
    assert (problem["severity"], problem["code"]) == ("warning", "over_budget")
    assert "tools of 2" in problem["message"]


@pytest.mark.parametrize(("model", "warned"), [(None, True), ("openai", True), ("anthropic", False)])
def test_more_tools_than_a_request_has_are_a_warning(run: Run, folder: Path, model: str | None, warned: bool) -> None:
    """D4: of the model that the agent names, of OpenAI's where it names none; the first that is not listed is named."""
    code = "".join(f"def tool_{n}() -> int:\n    return {n}\n\n\n" for n in range(130))
    (folder / "many_tools.py").write_text(code)
    models = {"openai": {"provider": "openai", "id": "gpt-5.4"}, "anthropic": {"provider": "anthropic", "id": "claude"}}
    agent = {"tools": ["many"], **({} if model is None else {"model": model})}
    config = {"plugins": {"many": {"python": "many_tools"}}, "models": models, "agents": {"crowded": agent}}
    (folder / "pegboard.yaml").write_text(json.dumps(config))
    problems = run("check", "--json").json["problems"]
    assert [(one["severity"], one["code"], one["path"]) for one in problems] == (
        [("warning", "many_tools", "agents.crowded")] if warned else []
    )
    assert all("130 tools" in one["message"] and "'tool_128'" in one["message"] for one in problems)


def test_f4_a_check_of_the_budget_counts_no_request(run: Run, project: Path) -> None:
    """F4, S9: no model was sent what `check` looks at."""
    config = project / "pegboard.yaml"
    config.write_text(config.read_text().replace("    tools: [notes]", "    tools: [notes]\n    budget: {tools: 2}"))
    assert run("check", "--json").json["problems"][0]["code"] == "over_budget"

    async def requests() -> int:
        async with Pegboard.open(config) as board:
            return (await BillReader(board.services).bill(BillQuery())).totals.requests

    assert asyncio.run(requests()) == 0


def test_p7_a_server_that_an_agent_may_not_have_is_not_started_for_it(run: Run, folder: Path) -> None:
    log = folder / "server.log"
    server = {"command": sys.executable, "args": [str(SERVER), "--log", str(log)]}
    agents = {"with": {"discoverable": ["plain"]}, "without": {}}
    (folder / "pegboard.yaml").write_text(json.dumps({"servers": {"plain": server}, "agents": agents}))
    assert run("tools", "--agent", "without", "--json").json == []
    assert run("search", "echo", "--agent", "without", "--json").json["results"] == []
    assert not log.exists()
    found = run("search", "echo", "--agent", "with", "--json").json["results"]
    assert found[0]["name"] == "plain__echo"
    assert log.exists()


def trusting(folder: Path, **more: object) -> Path:
    """Write a configuration with one trusted server; return the file in which its list stands."""
    tools = folder / "list.json"
    tools.write_text(json.dumps({"look": True, "wipe": False}))
    server = {"command": sys.executable, "args": [str(SERVERS / "listed_server.py"), str(tools)]}
    document = {"servers": {"up": {**server, "trust": "annotations", "pins": "trust"}}, **more}
    (folder / "pegboard.yaml").write_text(json.dumps(document))
    return tools


def test_g6_what_says_only_since_later_that_it_reads_is_a_warning_until_it_is_accepted(run: Run, folder: Path) -> None:
    """G6: `check` names the server, the tool and what to do; `--accept` shows what it accepts."""
    tools = trusting(folder)
    assert run("check", "--json").json == {"ok": True, "problems": []}
    assert not folder_of(folder / "pegboard.yaml").exists()
    assert run("check", "--probe", "--strict").code == 0
    tools.write_text(json.dumps({"look": True, "wipe": True, "tidy": True}))
    assert run("check", "--probe").code == 0
    ran = run("check", "--json")
    assert (ran.code, misfits(ran.json, SHAPE)) == (0, [])
    wipe, tidy = ran.json["problems"]
    assert (wipe["severity"], wipe["code"], wipe["path"]) == ("warning", "read_only_later", "servers.up")
    assert "'up__wipe'" in wipe["message"]
    assert "server 'up'" in wipe["message"]
    assert "pegboard check --accept" in wipe["hint"]
    assert "'up__tidy'" in tidy["message"]
    assert run("check", "--strict").code == 1
    accepted = run("check", "--strict", "--accept", "--json")
    told = [{"plugin": "up", "name": "up__wipe"}, {"plugin": "up", "name": "up__tidy"}]
    assert (accepted.code, accepted.json) == (0, {"ok": True, "problems": [], "accepted": told})
    assert run("check", "--strict").code == 0
    again = run("check", "--accept")
    assert (again.code, again.out.splitlines()[0]) == (0, "There is nothing to accept.")


def test_g6_accepting_says_what_it_accepts(run: Run, folder: Path) -> None:
    tools = trusting(folder)
    assert run("check", "--probe").code == 0
    tools.write_text(json.dumps({"look": True, "wipe": True}))
    ran = run("check", "--probe", "--accept")
    assert (ran.code, ran.out.splitlines()[0]) == (
        0,
        "accepted: 'up__wipe' of server 'up': its current definition is in use.",
    )
    last = run("audit", "--json").json[0]
    assert (last["kind"], last["subject"], last["decision"]) == ("pin", "up/wipe", "accepted")


def test_what_says_only_since_later_that_it_destroys_nothing_is_a_warning_where_a_rule_asks(
    run: Run, folder: Path
) -> None:
    """A4: and only there."""
    tools = trusting(folder)
    harmless = {"look": True, "wipe": {"annotations": {"destructiveHint": False}}}
    assert run("check", "--probe", "--strict").code == 0
    tools.write_text(json.dumps(harmless))
    assert run("check", "--probe", "--strict").code == 0
    document = json.loads((folder / "pegboard.yaml").read_text())
    document["servers"]["up"]["approve"] = {"w*": "destructive"}
    (folder / "pegboard.yaml").write_text(json.dumps(document))
    (warned,) = run("check", "--probe", "--json").json["problems"]
    assert (warned["severity"], warned["code"], "'up__wipe'" in warned["message"]) == (
        "warning",
        "harmless_later",
        True,
    )
    accepted = run("check", "--accept").out.splitlines()[0]
    assert accepted == "accepted: 'up__wipe' of server 'up': its current definition is in use."
    assert run("check", "--probe", "--strict").code == 0


def test_g6_a_store_that_keeps_nothing_has_nothing_to_accept(run: Run, folder: Path) -> None:
    trusting(folder, store="memory:")
    ran = run("check", "--accept", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (2, "usage")
    assert "memory:" in ran.json["error"]["message"]
    assert run("check", "--json").code == 0


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("pad", []),
        ("gone", ["'need' requires 'gone', and no toolkit, plugin or tool is known under this name."]),
    ],
)
def test_t8_a_probe_reports_requirements_that_nothing_can_meet(
    run: Run, project: Path, name: str, reported: list[str]
) -> None:
    mark = f"from pegboard import tool\n\n\n@tool(requires=['{name}'])\ndef need() -> str:\n    ...\n"
    (project / "notes.py").write_text(mark)
    problems = run("check", "--probe", "--json").json["problems"]
    assert [problem["message"] for problem in problems if problem["code"] == "unknown_tool"] == reported


NOTE = 'def noted() -> str:\n    """Note it."""\n    return ""\n'
OTHER_NOTE = 'def add_note() -> str:\n    """Another."""\n    return ""\n'


@pytest.mark.parametrize("probe", [(), ("--probe",)])
def test_g10_two_tools_of_one_name_from_the_start_are_an_error(run: Run, project: Path, probe: tuple[str, ...]) -> None:
    """G10: where one agent has both; the plugins of the file that are written in Python are imported for it."""
    (project / "pads.py").write_text(OTHER_NOTE)
    ran = run("check", "--json", *probe)
    assert [one["severity"] for one in ran.json["problems"] if one["code"] == "name_clash"] == ["warning"]
    config = project / "pegboard.yaml"
    config.write_text(config.read_text().replace("tools: [notes]", "tools: [notes, pads]"))
    ran = run("check", "--json", *probe)
    assert ran.code == 1
    (problem,) = [one for one in ran.json["problems"] if one["severity"] == "error"]
    assert (problem["code"], problem["path"]) == ("name_clash", "plugins.pads")
    assert all(part in problem["message"] for part in ("'assistant'", "'notes/add_note'", "'pads/add_note'"))
    assert "prefix" in problem["hint"]


def test_g10_a_toolkit_that_can_never_be_loaded_is_reported_at_its_place(run: Run, project: Path) -> None:
    """G10: beside what is loaded from the start it is a warning, with both tools in it an error."""
    (project / "pads.py").write_text(OTHER_NOTE)
    (problem,) = [one for one in run("check", "--json").json["problems"] if one["code"] == "name_clash"]
    assert (problem["severity"], problem["path"], "'writing'" in problem["message"]) == (
        "warning", "toolkits.writing", True,
    )  # fmt: skip
    config = project / "pegboard.yaml"
    both = (
        config.read_text().replace("tools: [pads]", "tools: [pads, notes]").replace("tools: [notes]\n", "tools: []\n")
    )
    config.write_text(both)
    ran = run("check", "--json")
    (problem,) = [one for one in ran.json["problems"] if one["code"] == "name_clash"]
    assert (problem["severity"], problem["path"], ran.code) == ("error", "toolkits.writing", 1)


MORE = "initial_toolkits: [more], allowed_toolkits: [more]"


@pytest.mark.parametrize(
    ("toolkits", "agent", "place"),
    [
        ("", "{tools: [duckduckgo, websearch]}", "agents.two.tools"),
        ("toolkits: {more: {tools: [websearch]}}", f"{{tools: [duckduckgo], {MORE}}}", "toolkits.more.tools"),
        ("", "{tools: [duckduckgo], essential: [websearch]}", "agents.two.tools"),
    ],
)  # fmt: skip
def test_g10_two_plugins_that_share_several_names_are_one_problem_where_the_second_is_named(
    run: Run, folder: Path, toolkits: str, agent: str, place: str
) -> None:
    """G10: also where no plugin is defined in the file; it names every name, and a prefix ends it."""
    text = f"{toolkits}\nagents:\n  two: {agent}\n"
    put("pegboard.yaml", text)
    (problem,) = [one for one in run("check", "--json").json["problems"] if one["code"] == "name_clash"]
    assert (problem["severity"], problem["path"]) == ("error", place)
    assert all(name in problem["message"] for name in ("web_search", "search_news"))
    second = problem["message"].partition(": '")[2].partition("/")[0]
    (missing,) = run("surface", "--json").json["missing"]
    assert missing["plugin"] == second
    assert f"prefix: {second}" in missing["reason"]
    put("pegboard.yaml", f"plugins: {{{second}: {{prefix: {second}}}}}\n{text}")
    assert "name_clash" not in {one["code"] for one in run("check", "--json").json["problems"]}
    assert run("surface", "--json").json["missing"] == []


MISFITS = {
    "{pages: 5}": ("pages", "plugin 'book' has no parameter 'pages'.", "Did you mean 'page'?"),
    "{page: many}": ("page", "plugin 'book': parameter 'page' is not valid: ", "It takes: integer."),
}


@pytest.mark.parametrize("overrides", MISFITS)
@pytest.mark.parametrize("probe", [(), ("--probe",)])
def test_t1_an_override_that_does_not_fit_is_an_error_at_its_own_place(
    run: Run, folder: Path, overrides: str, probe: tuple[str, ...]
) -> None:
    (folder / "books.py").write_text(
        "class Book:\n    def __init__(self, page: int = 1) -> None:\n        self._page = page\n\n"
        '    def read(self) -> str:\n        """Read."""\n        return str(self._page)\n'
    )
    (folder / "pegboard.yaml").write_text(
        'store: "memory:"\n'
        "plugins: {book: {python: books:Book}}\n"
        "toolkits:\n"
        "  shelf:\n"
        "    tools:\n"
        f"      - book: {overrides}\n"
        "agents: {a: {allowed_toolkits: [shelf]}}\n"
    )
    override, message, hint = MISFITS[overrides]
    ran = run("check", *probe, "--json")
    assert (ran.code, misfits(ran.json, SHAPE)) == (1, [])
    (problem,) = ran.json["problems"]
    assert (problem["severity"], problem["code"]) == ("error", "bad_override")
    assert (problem["file"], problem["line"], problem["column"]) == ("pegboard.yaml", 6, 16)
    assert problem["path"] == f"toolkits.shelf.tools[0].book.{override}"
    assert problem["message"].startswith(message)
    assert hint in problem["hint"]


def test_t1_a_server_takes_no_overrides(run: Run, folder: Path) -> None:
    server = f"{{command: {json.dumps(sys.executable)}, args: [{json.dumps(str(SERVER))}]}}"
    (folder / "pegboard.yaml").write_text(
        f'store: "memory:"\nservers: {{plain: {server}}}\nagents:\n  a: {{tools: [{{plain: {{speed: 5}}}}]}}\n'
    )
    ran = run("check", "--probe", "--json")
    (problem,) = ran.json["problems"]
    assert (problem["code"], problem["line"], problem["column"]) == ("bad_override", 4, 24)
    assert problem["message"] == "'plain' is a server and takes no overrides."


def test_p6_a_plugin_that_cannot_be_imported_is_a_warning(run: Run, folder: Path) -> None:
    (folder / "broken.py").write_text("raise RuntimeError('not today')\n")
    (folder / "pegboard.yaml").write_text('store: "memory:"\nplugins: {broken: {python: broken}}\n')
    for arguments in (("check", "--json"), ("check", "--probe", "--json")):
        checked = run(*arguments).json
        (problem,) = checked["problems"]
        assert (checked["ok"], problem["severity"], problem["code"]) == (True, "warning", "unavailable")


@pytest.mark.parametrize(
    ("file", "document", "section"),
    [
        (".mcp.json", {"mcpServers": {"gone": GONE}}, "mcpServers: gone"),
        (".vscode/mcp.json", {"servers": {"gone": GONE}}, "servers: gone"),
        ("settings.json", {"mcp": {"servers": {"gone": GONE}}}, "mcp.servers: gone"),
    ],
)
def test_a_hint_names_the_section_that_stands_in_the_file(
    run: Run, folder: Path, file: str, document: object, section: str
) -> None:
    path = put(file, json.dumps(document))
    assert f"See the server's command in `{section}`." in run("check", "--probe", "--config", str(folder / path)).out


def test_a_predicate_that_cannot_be_found_is_reported_with_the_reason_that_sessions_get(run: Run, folder: Path) -> None:
    """T12: by module, by function, of a tool; one that is there is not."""
    (folder / "notes.py").write_text("def note(text: str) -> str:\n    return text\n")
    (folder / "rules.py").write_text("def day(principal, agent, sub_app):\n    return True\n")
    needs = {"when": "nope:f", "note": {"when": "rules:night"}}
    right = {"python": "notes", "prefix": "b", "needs": {"when": "rules:day"}}
    plugins = {"a": {"python": "notes", "prefix": "a", "needs": needs}, "b": right}
    put("pegboard.yaml", json.dumps({"plugins": plugins, "agents": {"ada": {"tools": ["a", "b"]}}}))
    ran = run("check", "--json")
    found = {problem["message"]: problem for problem in ran.json["problems"]}
    assert set(found) == {
        "plugin 'a': Its condition raised ModuleNotFoundError: No module named 'nope'",
        "plugin 'a': tool 'note': Its condition raised AttributeError: module 'rules' has no attribute 'night'",
    }
    assert {(problem["code"], problem["severity"]) for problem in found.values()} == {("unavailable", "warning")}
    assert (ran.code, run("check", "--strict").code) == (0, 1)


def test_beside_an_error_nothing_is_said_of_tools_that_were_not_asked_for(run: Run, folder: Path) -> None:
    """P6: a tool of a factory is no problem, whether or not something else is one; what is one is in sentences."""
    (folder / "carts.py").write_text("def made():\n    def add() -> str:\n        return ''\n    return [add]\n")
    config = folder / "pegboard.yaml"
    text = "plugins: {cart: {python: 'carts:made'}}\nagents:\n  a: {tools: [add]}\n"
    config.write_text(text)
    assert run("check", "--json").json == {"ok": True, "problems": []}
    config.write_text(f"{text}  b: {{tools: [add], allowed_toolkits: [none_such]}}\n")
    assert [problem["code"] for problem in run("check", "--json").json["problems"]] == ["unknown_toolkit"]


def test_a_problem_and_its_hint_are_two_sentences(run: Run, folder: Path) -> None:
    (folder / "rules.py").write_text("")
    (folder / "pegboard.yaml").write_text(
        "plugins: {clock: {python: pegboard.quickstart.clock, needs: {current_time: {when: 'rules:nope'}}}}\n"
        "agents: {a: {tools: [clock]}}\n"
    )
    assert "no attribute 'nope'. Correct `when: rules:nope`" in run("check").out


def test_a_load_that_is_refused_says_what_helps_however_long_that_is(run: Run, folder: Path) -> None:
    """P6, S10: in the table of people too."""
    far, off = "no_such_module_of_a_rather_long_name", "another_module_that_is_not_there"
    (folder / "pegboard.yaml").write_text(
        f"plugins: {{far: {{python: {far}}}, off: {{python: {off}}}}}\n"
        "toolkits: {both: {tools: [far, off]}}\nagents: {a: {allowed_toolkits: [both], dialect: pegboard}}\n"
    )
    told = run("session", "load", "both", "--json").json["items"][0]["message"]
    assert len(told) > 200
    assert told in " ".join(run("session", "load", "both").out.split())


@pytest.mark.usefixtures("own_folders_apart")
def test_what_a_confined_server_is_given_and_could_not_reach_is_said_with_the_line(
    run: Run, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    "A7: a file among its arguments, a socket in its environment; and that the configuration lies in its folder."
    (elsewhere := tmp_path_factory.mktemp("elsewhere") / "notes.txt").touch()
    server: dict[str, Any] = {"command": sys.executable, "args": [str(SERVER), str(elsewhere)], "confine": True}
    server["env"] = {"DOCKER_HOST": "unix:///var/run/docker.sock"}
    put("pegboard.yaml", json.dumps({"store": "memory:", "servers": {"files": server}}))
    ran = run("check")
    told = {p["message"]: p["hint"] for p in run("check", "--json").json["problems"] if p["code"] == "out_of_reach"}
    assert told == {
        f"server 'files' is confined, and its argument names '{elsewhere}', which it could not reach.": (
            f"Write `confine: {{write: [{folder}, {elsewhere}]}}`, or `read` in place of `write`."
        ),
        "server 'files' is confined, and does not get `DOCKER_HOST`, which leads to a socket.": "",
    }
    assert str(folder / "pegboard.yaml") in ran.out + ran.err
    server["confine"] = {"write": [".", str(elsewhere)]}
    server["env"] = {}
    put("pegboard.yaml", json.dumps({"store": "memory:", "servers": {"files": server}}))
    assert "waits" in {problem["code"] for problem in run("check", "--json").json["problems"]}
    assert run("accept").code == 0
    assert [p for p in run("check", "--json").json["problems"] if p["code"] in ("out_of_reach", "waits")] == []


@pytest.mark.usefixtures("own_folders_apart")
@pytest.mark.parametrize("plugin", ["shell", "mine"])
def test_a_confined_plugin_whose_folder_has_pegboards_own_files_is_noted_of(
    run: Run, folder: Path, plugin: str
) -> None:
    """A7: as of a server: edits of them wait from then on. With a folder of its own there is nothing to note."""
    put("mine.py", NOTE)
    about = {"mine": "python: mine, "}.get(plugin, "")
    for confine, noted in (("{write: [sub]}", False), ("true", True)):
        (folder / "sub").mkdir(exist_ok=True)
        put(
            "pegboard.yaml",
            f"plugins: {{{plugin}: {{{about}confine: {confine}}}}}\nagents: {{a: {{tools: [{plugin}]}}}}\n",
        )
        lines = run("check").out.splitlines()
        assert [f"note: plugin '{plugin}' is confined" in line for line in lines].count(True) == noted


MAKING = """
from pathlib import Path

class Charts:
    def __init__(self, out: str = "charts/new") -> None:
        Path(out).mkdir(parents=True, exist_ok=True)
        self.out = Path(out)

    def draw(self) -> str:
        "Draw it."
        (self.out / "made").mkdir()
        return "drawn"


class Logged:
    def __init__(self) -> None:
        Path("logged").mkdir(exist_ok=True)
        Path("logged/file").write_text("kept")

    def log(self) -> str:
        "Log it."
        return "logged"
"""


@pytest.mark.parametrize(
    "command", ["check", "check --probe", "tools", "surface", "explain draw", "session load late", "permissions show"]
)
def test_what_a_constructor_makes_is_gone_after_a_command_that_calls_nothing(
    run: Run, folder: Path, command: str
) -> None:
    """P6: its empty folders, in whichever depth; a file of it stays, and so does a folder that was there before."""
    put("making.py", MAKING)
    put(
        "pegboard.yaml",
        "plugins: {early: {python: 'making:Charts'}, late: {python: 'making:Charts', prefix: late}}\n"
        "agents: {a: {tools: [early, {late: {out: other}}], discoverable: ['*'], dialect: pegboard}}\n",
    )
    (folder / "before").mkdir()
    assert run(*command.split()).code == 0
    made = {path.name for path in folder.iterdir() if path.is_dir()} - {"user-state", "user-config", "__pycache__"}
    assert made == {"before"}


def test_what_a_constructor_writes_stays_and_so_does_what_a_call_makes(run: Run, folder: Path) -> None:
    """P6: nothing that someone wrote is removed."""
    put("making.py", MAKING)
    put(
        "pegboard.yaml",
        "plugins: {charts: {python: 'making:Charts'}, logged: {python: 'making:Logged'}}\n"
        "agents: {a: {tools: [charts, logged]}}\n",
    )
    assert run("check").code == 0
    assert (folder / "logged" / "file").read_text() == "kept"
    assert not (folder / "charts").exists()
    assert run("call", "draw").out == "drawn\n"
    assert (folder / "charts" / "new" / "made").is_dir()


FIVE = """
loadouts: {nothing: {}}
toolkits:
  data: {tools: [csv, pandas]}
  work: {tools: [shell, file]}
agents:
  ada: {allowed_toolkits: [data, work]}
  bob: {allowed_toolkits: [data]}
  cy: {tools: [shell], allowed_toolkits: [work], loadout: nothing}
  dan: {tools: [csv], dialect: pegboard}
  eve: {tools: [file]}
"""


def test_what_runs_around_the_guard_is_warned_of_once_for_each_plugin(run: Run, folder: Path) -> None:
    """P10: with all agents that could use it, at the first place that grants it; none where no agent may."""
    put("pegboard.yaml", FIVE)
    unconfined = [p for p in run("check", "--json").json["problems"] if p["code"] == "unconfined"]
    agents = {p["message"].partition("'")[2].partition("'")[0]: p["message"] for p in unconfined}
    assert agents.keys() == {"csv", "pandas", "shell"}
    assert [name in agents["csv"] for name in ("'ada'", "'bob'", "'cy'", "'dan'", "'eve'")] == [
        True, True, False, True, False,
    ]  # fmt: skip
    assert ("'bob'" in agents["shell"], "'cy'" in agents["shell"]) == (False, True)
    assert {(p["line"], p["path"]) for p in unconfined} <= {(4, "toolkits.data.tools"), (5, "toolkits.work.tools")} | {
        (p["line"], p["path"]) for p in unconfined if p["path"].startswith("agents.")
    }


def test_a_warning_that_is_known_of_is_counted_and_does_not_fail_strict(run: Run, folder: Path) -> None:
    """P10: by its code, which every warning ends with; others still fail, and an error is never overlooked."""
    put("pegboard.yaml", "agents:\n  ada: {tools: [csv], permissions: {csv: 'no'}}\n")
    first = run("check", "--strict")
    assert first.code == 1
    known = [line.rpartition("(warning: ")[2].rstrip(")") for line in first.out.splitlines() if "(warning: " in line]
    assert "unconfined" in known
    some = run("check", "--strict", "--seen", "unconfined")
    assert some.code == 1
    assert "unconfined" not in some.out
    every = run("check", "--strict", *(part for code in dict.fromkeys(known) for part in ("--seen", code)))
    assert every.code == 0
    assert f"{len(known)} warnings seen" in every.out
    told = run("check", "--strict", "--seen", "unconfined", "--json").json
    assert (told["seen"], {p["code"] for p in told["problems"]}) == (1, set(known) - {"unconfined"})
    assert "no warning has the code 'waits'" in run("check", "--seen", "waits").out
    for code, meant in (("unconfind", "Did you mean 'unconfined'?"), ("NONSENSE", "'NONSENSE'")):
        refused = run("check", "--seen", code)
        assert (refused.code, meant in refused.err) == (USAGE, True)
    put("pegboard.yaml", "agents:\n  ada: {tools: [cvs]}\n")
    for arguments in (("--seen", "unknown_tool"), ("--seen", "unconfined", "--seen", "unknown_tool", "--json")):
        refused = run("check", *arguments)
        assert refused.code == USAGE
        written = refused.json["error"]["message"] if "--json" in arguments else refused.err
        assert written.startswith(("'unknown_tool' is an error", "pegboard: 'unknown_tool' is an error"))
        assert "pegboard.yaml:2:17: agents.ada.tools: 'cvs'" in written
        assert "ok" not in refused.out.split()


def test_the_dialect_of_agents_that_state_none_is_said_in_one_line_with_its_reason(run: Run, folder: Path) -> None:
    """T4: only where their toolkits decide it."""
    put("pegboard.yaml", FIVE)
    (line,) = [line for line in run("check").out.splitlines() if "dialect" in line]
    assert line.startswith("note: ")
    assert "agents 'ada', 'bob' have dialect 'toolkits'" in line
    assert "agent 'cy' has dialect 'pegboard', since `loadout` is set beside `allowed_toolkits`" in line
    assert "'dan'" not in line
    put("pegboard.yaml", "agents: {a: {tools: [file]}}\n")
    assert "dialect" not in run("check").out


def test_one_problem_is_reported_once_however_often_its_member_stands_there(run: Run, folder: Path) -> None:
    """P5: a member that stands twice in a toolkit is one problem of the scope."""
    put(
        "pegboard.yaml",
        "toolkits: {m: {tools: [spotify, spotify]}}\nagents: {a: {worker_scope: user, allowed_toolkits: [m]}}\n",
    )
    codes = [problem["code"] for problem in run("check", "--json").json["problems"]]
    assert codes.count("shared_only") == 1


@pytest.mark.parametrize("key", ["tools", "essential"])
@pytest.mark.parametrize("name", ["invokeother_tool", "dynamic_tools", "search_tools", "capability_list"])
def test_a_meta_tool_among_an_agents_own_tools_does_no_harm(run: Run, folder: Path, key: str, name: str) -> None:
    """T4: seed 002 counts its own among the essential tools; it comes by itself."""
    calc = "plugins: {calc: {python: pegboard.quickstart.calc}}\n"
    put(
        "pegboard.yaml", f"{calc}agents: {{a: {{{key}: [file, {name}], discoverable: [calc], dialect: invokeother}}}}\n"
    )
    ran = run("check", "--json")
    assert (ran.code, [(p["severity"], p["code"]) for p in ran.json["problems"]]) == (0, [("warning", "reserved")])
    names = [tool["name"] for tool in run("surface", "--json").json["tools"]]
    assert names.count("invokeother_tool") == 1
