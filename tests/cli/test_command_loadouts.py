"""`pegboard loadouts`: what each kind of agent has over the plugins of the configuration."""

from pathlib import Path

import pytest
from command_support import ERROR, Run, misfits

CONFIG = """\
plugins:
  git: {python: git_tools}
  shell: {python: shell_tools}
  websearch: {python: search_tools}
  docker: {python: docker_tools}
  bills: {python: bills_tools, category: Billing}
loadouts:
  security-reviewer:
    extends: developer
    categories: [Security]
    plugins: [think]
    discoverable: ["docker*"]
    disabled: [websearch]
agents:
  assistant: {loadout: security-reviewer}
"""
REGISTERED = {"diff", "file", "github", "memory", "search"}
"""The registered plugins that join by the categories of the agent's loadout (L9); what they are is not ours to fix."""
SHAPE = {
    "name": str, "parent": (str, type(None)), "chain": [str], "active": [str], "discoverable": [str], "disabled": [str],
}  # fmt: skip


def written(names: list[str]) -> list[str]:
    """Return the plugins without those that a category brought in."""
    return [name for name in names if name not in REGISTERED]


@pytest.fixture
def config(folder: Path) -> Path:
    path = folder / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


def test_one_loadout_is_shown_with_its_chain(run: Run, config: Path) -> None:
    """L2, L5: over the plugins of the configuration and those that it names (`think`); its chain root first."""
    ran = run("loadouts", "security-reviewer", "--json")
    assert ran.code == 0
    assert {**ran.json, "active": written(ran.json["active"])} == {
        "name": "security-reviewer",
        "parent": "developer",
        "chain": ["minimal", "developer", "security-reviewer"],
        "active": ["git", "shell", "think"],
        "discoverable": ["bills", "docker"],
        "disabled": ["websearch"],
    }


def test_a_built_in_loadout_is_found_whatever_the_case_of_its_name(run: Run, config: Path) -> None:
    """L1, L4: `full` takes every plugin."""
    ran = run("loadouts", "FULL", "--json")
    assert (ran.json["name"], ran.json["parent"], ran.json["chain"]) == ("full", None, ["full"])
    assert written(ran.json["active"]) == ["bills", "docker", "git", "shell", "think", "websearch"]


def test_all_loadouts_are_listed(run: Run, config: Path) -> None:
    """L4, L6: the built-in ones and those of people."""
    listed = run("loadouts", "--json").json
    assert misfits(listed, [SHAPE]) == []
    assert [row["name"] for row in listed] == [
        "minimal", "developer", "research", "devops", "full", "security-reviewer",
    ]  # fmt: skip
    table = run("loadouts").out
    assert "security-reviewer   developer" in table
    assert "git, shell, think" in table


def test_people_read_one_loadout_as_text(run: Run, config: Path) -> None:
    """L2: chain, then the three groups."""
    assert run("loadouts", "security-reviewer").out.splitlines() == [
        "minimal → developer → security-reviewer",
        "  active        diff, file, git, github, memory, search, shell, think",
        "  discoverable  bills, docker",
        "  disabled      websearch",
        "",
        "Of 11 plugins in the configuration, 8 active.",
    ]


def test_files_beside_the_configuration_count(run: Run, config: Path) -> None:
    """L6, JD45, JD55, JD58: they shadow the built-in ones, and inherit from them."""
    folder = config.parent / "loadouts"
    folder.mkdir()
    (folder / "Minimal.yaml").write_text("plugins: [bills]\n")
    ran = run("loadouts", "developer", "--json")
    assert ran.json["chain"] == ["Minimal", "developer"]
    assert written(ran.json["active"]) == ["bills", "git", "think", "websearch"]


def test_it_answers_where_check_fails(run: Run, config: Path) -> None:
    """L3: a toolkit that is not defined, a cycle and an unknown parent stop nothing here."""
    config.write_text(
        CONFIG.replace("{loadout: security-reviewer}", "{allowed_toolkits: [gone]}").replace(
            "loadouts:\n", "loadouts:\n  a: {extends: b, plugins: [git]}\n  b: {extends: A}\n  c: {extends: nowhere}\n"
        )
    )
    assert run("check").code == 1
    assert run("loadouts", "a", "--json").json["chain"] == ["b", "a"]
    assert run("loadouts", "c", "--json").json["chain"] == ["c"]
    assert run("loadouts", "security-reviewer", "--json").json["active"] == ["git", "shell", "think"]


def test_a_file_that_cannot_be_read_leaves_the_built_in_ones(run: Run, config: Path) -> None:
    """L3, L4: it says what is wrong, on standard error."""
    config.write_text("agents: [\n")
    ran = run("loadouts", "developer", "--json")
    assert (ran.code, ran.json["chain"], ran.json["active"]) == (0, ["minimal", "developer"], [])
    assert "pegboard.yaml:2:1" in ran.err
    assert "Only the built-in loadouts are shown." in ran.err


def test_an_unknown_loadout_is_refused_with_what_may_be_meant(run: Run, config: Path) -> None:
    """L3: and it is refused."""
    ran = run("loadouts", "develper", "--json")
    assert ran.code == 3
    assert misfits(ran.json, ERROR) == []
    assert (ran.json["error"]["code"], ran.json["error"]["hint"]) == ("unknown_loadout", "Did you mean 'developer'?")
    assert run("loadouts", "develper").err == ("pegboard: There is no loadout 'develper'. Did you mean 'developer'?\n")


def test_a_hundred_loadouts_in_a_ring_and_odd_patterns_are_warned_of(run: Run, config: Path) -> None:
    """L3: each in one line that can be read; `--strict` fails."""
    ring = "".join(f"  ring{n}: {{extends: ring{(n + 1) % 100}}}\n" for n in range(100))
    odd = '  stars: {discoverable: ["**"]}\n  none: {plugins: [git], disabled: [git]}\n'
    config.write_text(CONFIG.replace("loadouts:\n", f"loadouts:\n{ring}{odd}"))
    ran = run("check", "--json")
    assert ran.code == 0
    cycles = [problem for problem in ran.json["problems"] if problem["code"] == "loadout_cycle"]
    assert len(cycles) == 100
    assert all(len(problem["message"]) < 200 for problem in cycles)
    message = {problem["code"]: problem["message"] for problem in ran.json["problems"]}
    assert message["bad_pattern"] == "in '**' a star is a wildcard only at the end."
    assert message["named_and_disabled"] == "plugin 'git' is both named and disabled; disabled wins."
    assert run("check", "--strict").code == 1
    assert len(run("loadouts", "ring7", "--json").json["chain"]) == 100
    nothing = run("loadouts", "none", "--json").json
    assert (nothing["active"], nothing["discoverable"], nothing["disabled"]) == ([], [], ["git"])


def test_check_proposes_the_loadout_that_fits_the_budget(run: Run, config: Path) -> None:
    """S9: and says nothing where it may step in by itself."""
    for name in ("git", "shell", "docker"):
        (config.parent / f"{name}_tools.py").write_text(f'def {name}_it() -> str:\n    return ""\n')
    text = CONFIG.partition("loadouts:")[0].replace("  websearch: {python: search_tools}\n", "")
    text = text.replace("  bills: {python: bills_tools, category: Billing}\n", "")
    text += "agents: {default: {tools: [git, shell, docker], budget: {tools: 2}}}\n"
    config.write_text(text)
    (problem,) = run("check", "--json").json["problems"]
    assert (problem["code"], problem["message"]) == (
        "over_budget",
        "what is loaded from the start exceeds the budget: 3 tools of 2.",
    )
    assert problem["hint"].endswith(
        "It would fit with loadout 'developer': write `shrink: true` in the budget to let it step in."
    )
    config.write_text(text.replace("tools: 2}", "tools: 2, shrink: true}"))
    assert run("check", "--json").json["problems"] == []
