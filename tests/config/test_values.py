"""What a configuration means once it is compiled."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from config_support import REGISTERED, Writer

from pegboard.config.inspection import inspect, load
from pegboard.config.location import find
from pegboard.config.schema.json_schema import schema
from pegboard.core.model.leases import LeaseTerm
from pegboard.core.model.specs import PythonSpec, RegisteredSpec, ServerSpec
from pegboard.core.principals.bearer_tokens import OPERATOR

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
FULL = """
    store: sqlite:///state/pegboard.db
    tokens: {ada: {token: "${ADA_TOKEN}", agents: [assistant], console: true}}
    servers:
      git: {command: mcp-server-git, args: [--repository, .], timeout: 500ms}
      docs: {url: "https://docs.example.com/mcp", headers: {Authorization: "Bearer ${env:DOCS_TOKEN}"},
             prefix: "", shared: true, trust: annotations, cwd: data}
    plugins:
      notes: {python: "mytools.notes", category: Memory, requires: {add: [find]}, needs: {add: {env: [NOTES]}},
              policy: {add: Be brief.}, guards: {add: {text: {deny: ["*password*"]}}}, shared_only: false}
    models: {default: {provider: anthropic, id: claude-sonnet-4-6, cache: yes}}
    defaults: {tools: [scheduler, {shell: {x: 1}}]}
    toolkits:
      research: {description: Papers, tools: [arxiv, {sql: {db_url: "${DB:-sqlite://}"}}], policy: Cite.,
                 focus: {when: paper, tools: [arxiv], choice: required}, label: Research, icon: book}
    loadouts: {security-reviewer: {extends: developer, categories: [Security], plugins: [think],
               discoverable: ["docker*"], disabled: [websearch]}}
    sub_apps: {billing: {tool_names: [notes/add]}}
    agents:
      assistant:
        tools: [file, {shell: {include_tools: [run_shell_command]}}]
        essential: [notes]
        allowed_toolkits: [research]
        initial_toolkits: [research]
        loadout: developer
        discoverable: ["*"]
        permissions: {research: on, arxiv: no}
        worker_scope: shared
        dialect: toolkits
        activation: next_step
        lease: {kind: idle, turns: 7}
        budget: {tools: 40, tokens: 8000}
        hints: {tokens: 900}
        unloaded_call: run
        turn_gap: 2m
        display_name: Assistant
        role: A helper
        model: default
        rooms: [lobby]
    """
SECRETS = {"ADA_TOKEN": "ada-token", "DOCS_TOKEN": "docs-token"}


@pytest.mark.parametrize("name", ["assistant.yaml", "data-agents.yaml"])
def test_the_examples_of_the_seeds_load_without_a_word(name: str, writer: Writer) -> None:
    """§5, MR1: seeds 000 and 001 load unmodified."""
    configuration = load(EXAMPLES / name, registered=REGISTERED, env=writer.env())
    assert {problem.code for problem in configuration.problems} == {"unconfined"}
    assistant = configuration.agents["assistant"]
    assert assistant.initial_toolkits == ("research",)
    assert [m.name for m in configuration.toolkits["research"].members] == ["duckduckgo", "arxiv", "wikipedia"]


@pytest.mark.parametrize(
    ("written", "defaults", "bounds"),
    [
        ("{}", "{}", (5, 1000)),
        ("{dialect: discovery}", "{}", None),
        ("{dialect: discovery, anticipate: {tools: 3}}", "{}", (3, 1000)),
        ("{dialect: discovery, anticipate: true}", "{}", (5, 1000)),
        ("{anticipate: false}", "{}", None),
        ("{anticipate: off}", "{}", None),
        ("{anticipate: {tokens: 0}}", "{}", None),
        ("{}", "{anticipate: false}", None),
        ("{anticipate: {tools: 2, tokens: 300}}", "{anticipate: false}", (2, 300)),
        ("{dialect: toolkits}", "{anticipate: {tokens: 200}}", (5, 200)),
    ],
)
def test_what_is_anticipated_is_the_agents_own_then_that_of_all_then_the_dialects(
    writer: Writer, written: str, defaults: str, bounds: tuple[int, int] | None
) -> None:
    """S5, §5: in the pegboard dialect it is on, in the others where it is written."""
    found = writer.loaded(f"defaults: {defaults}\nagents: {{a: {written}}}\n").agents["a"].anticipate
    assert (None if found is None else (found.tools, found.tokens)) == bounds


def test_defaults_join_every_agent_behind_its_own_tools(writer: Writer) -> None:
    """T7, MR21: the agent's own entry wins over the same name."""
    configuration = load(EXAMPLES / "data-agents.yaml", registered=REGISTERED, env=writer.env())
    assert [m.name for m in configuration.agents["assistant"].static] == ["file", "shell", "scheduler"]
    assert [m.name for m in configuration.agents["researcher"].static] == ["duckduckgo", "arxiv", "scheduler"]
    full = writer.loaded(FULL, **SECRETS).agents["assistant"].static
    assert [(m.name, dict(m.overrides)) for m in full] == [("file", {}), ("shell", {}), ("scheduler", {})]
    assert full[1].include == {"run_shell_command"}


@pytest.mark.parametrize(
    ("written", "store", "grace"),
    [
        ("'memory:'", "memory:", 30.0),
        ("{url: 'memory:'}", "memory:", 30.0),
        ("{url: 'sqlite:////var/state.db', grace: 2m}", "sqlite:////var/state.db", 120.0),
        ("{url: '${WHERE}', grace: 500ms}", "memory:", 0.5),
    ],
)
def test_a_store_is_its_address_or_a_mapping_with_how_long_calls_go_on_without_it(
    writer: Writer, written: str, store: str, grace: float
) -> None:
    text = f"store: {written}\nagents: {{a: {{}}}}\n"
    found = writer.loaded(text, WHERE="memory:")
    assert (found.store, found.store_grace) == (store, grace)
    validate = jsonschema_rs.validator_for(schema()).is_valid
    assert validate(yaml.safe_load(text))
    assert not validate({"store": {"grace": "5s"}})


def test_every_section_becomes_core_values(writer: Writer) -> None:
    """§5: servers, plugins, toolkits, loadouts, agents, tokens and the store."""
    c = writer.loaded(FULL, **SECRETS)
    git, docs, notes = c.specs["git"], c.specs["docs"], c.specs["notes"]
    assert isinstance(git, ServerSpec)
    assert (git.transport, git.timeout, git.category, git.prefix) == ("stdio", 0.5, "Git", None)
    assert isinstance(docs, ServerSpec)
    assert (docs.transport, docs.prefix, docs.instance, docs.trust_annotations) == ("http", "", "all", True)
    assert docs.headers["Authorization"] == "Bearer docs-token"
    assert docs.cwd == str(writer.folder / "data")
    assert isinstance(notes, PythonSpec)
    assert (notes.folder, notes.requires["add"], notes.needs["add"]) == (str(writer.folder), ("find",), ("NOTES",))
    assert notes.guards == {"add": {"text": {"deny": ["*password*"]}}}
    research = c.toolkits["research"]
    assert (research.policy, research.label, research.icon) == ("Cite.", "Research", "book")
    assert [dict(rule) for rule in research.focus] == [{"when": "paper", "tools": ["arxiv"], "choice": "required"}]
    assert dict(research.members[1].overrides) == {"db_url": "sqlite://"}
    agent = c.agents["assistant"]
    assert dict(agent.switches) == {"research": True, "arxiv": False}
    assert str(agent.switch_places["arxiv"]).startswith("pegboard.yaml:")
    assert (agent.lease, agent.turn_gap, agent.hint_tokens, agent.budget.tools) == (
        LeaseTerm("idle", 7),
        120.0,
        900,
        40,
    )
    assert c.models["default"]["cache"] is True
    assert [(t.principal, t.value, t.agents, t.rights) for t in c.tokens] == [
        ("ada", "ada-token", ("assistant",), OPERATOR)
    ]
    assert c.store == f"sqlite:///{writer.folder / 'state/pegboard.db'}"
    assert c.loadouts["security-reviewer"].parent == "developer"
    assert c.secrets == {"ada-token", "docs-token"}
    assert "ada-token" not in repr(c)


@pytest.mark.parametrize(
    ("size", "count"),
    [
        ("32MiB", 32 * 1024**2), ("500kB", 500_000), ("1.5 mb", 1_500_000), ("2GiB", 2 * 1024**3), ("7B", 7),
        ("4096", 4096), ('"${SIZE}"', 65_536),
    ],
)  # fmt: skip
def test_a_server_has_limits_and_may_stop_when_idle(writer: Writer, size: str, count: int) -> None:
    text = f"servers: {{a: {{command: x, limits: {{message: {size}}}, idle: 10m}}}}"
    spec = writer.loaded(text, SIZE="65536").specs["a"]
    assert isinstance(spec, ServerSpec)
    assert (spec.message_limit, spec.idle) == (count, 600.0)


def test_a_server_without_limits_has_the_default_ones(writer: Writer) -> None:
    for text in ("servers: {a: {command: x}}", "servers: {a: {command: x, limits: {}}}"):
        spec = writer.loaded(text).specs["a"]
        assert isinstance(spec, ServerSpec)
        assert (spec.message_limit, spec.idle) == (32 * 1024**2, None)


@pytest.mark.parametrize("size", ["0", "-1", "2000GiB", "1.5", "yes", '"12"', "32 mebibytes", "1TB", "[1]"])
def test_what_is_no_size_is_refused_with_its_place(writer: Writer, size: str) -> None:
    (problem,) = writer.problems(f"servers: {{a: {{command: x, limits: {{message: {size}}}}}}}")
    assert (problem.severity, str(problem.place)) == ("error", "pegboard.yaml:1:45")
    assert "size" in problem.message


def test_values_keep_their_places(writer: Writer) -> None:
    """P1: a decision can name the file and line of its rule."""
    c = writer.loaded("""
        toolkits:
          devops:
            tools:
              - docker
              - sql: {x: 1}
        """)
    devops = c.toolkits["devops"]
    assert str(devops.place) == "pegboard.yaml:3:3"
    assert [str(m.place) for m in devops.members] == ["pegboard.yaml:5:9", "pegboard.yaml:6:9"]


def test_only_registered_plugins_that_are_named_join(writer: Writer) -> None:
    """§5: stars, prefixes, categories and built-in loadouts never reach others."""
    c = writer.loaded("""
        plugins: {file: {python: elsewhere.files}}
        toolkits: {t: {tools: [arxiv/search]}}
        loadouts: {mine: {plugins: [Docker], discoverable: [csv, "git*"], categories: [Shell], disabled: [pandas]}}
        sub_apps: {s: {tool_names: [wikipedia]}}
        agents:
          a: {tools: [file], discoverable: ["*", sql], loadout: full, permissions: {visualization: true}}
        """)
    assert set(c.specs) == {"file", "docker", "arxiv", "wikipedia", "csv", "sql", "visualization"}
    assert isinstance(c.specs["file"], PythonSpec)
    assert isinstance(c.specs["docker"], RegisteredSpec)


def test_a_file_without_agents_has_one_that_may_load_all(writer: Writer) -> None:
    c = writer.loaded("servers: {git: {command: x}}\ntoolkits: {t: {tools: [git/log]}}")
    assert c.agents["default"].allowed_toolkits == ("t",)
    assert c.agents["default"].discoverable == ("*",)
    assert writer.loaded("agents: {}").agents == {}


def test_names_that_yaml_takes_for_booleans_stay_names(writer: Writer) -> None:
    c = writer.loaded("""
        toolkits: {on: {tools: [docker]}}
        agents: {no: {allowed_toolkits: [on], rooms: [yes], permissions: {on: no}}, 007: {}}
        """)
    assert c.agents["no"].allowed_toolkits == ("on",)
    assert c.agents["no"].rooms == ("yes",)
    assert dict(c.agents["no"].switches) == {"on": False}
    assert "007" in c.agents


def test_anchors_and_merges_are_written_out(writer: Writer) -> None:
    c = writer.loaded("""
        agents:
          a: &base {tools: [docker], rooms: [lobby]}
          b: {<<: *base, rooms: [attic]}
        """)
    assert [m.name for m in c.agents["b"].static] == ["docker"]
    assert c.agents["b"].rooms == ("attic",)


@pytest.mark.parametrize(
    ("text", "remembers"),
    [
        ("agents: {default: {}}", True),
        ("defaults: {remember: false}\nagents: {default: {}}", False),
        ("defaults: {remember: false}\nagents: {default: {remember: true}}", True),
        ("agents: {default: {remember: false}}", False),
        ("defaults: {remember: false}", False),
        ("defaults: {remember: false}\nagents: {default: {remember: }}", False),
    ],
)
def test_an_agent_remembers_unless_it_or_the_defaults_say_otherwise(writer: Writer, text: str, remembers: bool) -> None:
    """§5: also the agent of a file that names none."""
    assert writer.loaded(text).agents["default"].remember is remembers


def test_references_are_filled_in(writer: Writer) -> None:
    """§5, X5: what came from the environment is a secret, a default is not."""
    c = writer.loaded(
        """
        agents:
          a:
            role: "${ONE} ${env:TWO} ${THREE:-three} ${EMPTY:-e} $${FOUR}"
            budget: {tools: "${N}", shrink: "${YES}"}
            turn_gap: "${GAP}"
            dialect: "${DIALECT}"
        """,
        ONE="first", TWO="second", EMPTY="", N="12", YES="true", GAP="30", DIALECT="toolkits",
    )  # fmt: skip
    a = c.agents["a"]
    assert a.role == "first second three e ${FOUR}"
    assert (a.budget.tools, a.budget.shrink, a.turn_gap) == (12, True, 30.0)
    assert a.dialect == "toolkits"
    assert c.secrets == {"first", "second", "12", "true", "30", "toolkits"}


def test_no_problem_gives_a_secret_away(writer: Writer) -> None:
    """X5: values from the environment, tokens and headers are masked in every text."""
    message = "\n".join(
        writer.messages(
            """
            tokens: {ada: {token: literal-token, agents: [literal-token]}}
            servers: {x: {command: y, env: {API_KEY: literal-key}, prefix: a}}
            agents:
              a: {allowed_toolkits: ["${S}", literal-key], dialect: "${S}", tools: ["${S}"], turn_gap: "${S}"}
            """,
            S="from-the-environment",
        )
    )
    assert message.count("***") >= 5
    assert not any(secret in message for secret in ("literal-token", "literal-key", "from-the-environment"))


def test_a_server_without_its_variable_is_unavailable(writer: Writer) -> None:
    """P6: it says which variable and what to do, and nothing else stops."""
    c = writer.loaded(
        "servers: {x: {command: y, env: {A: '${A_KEY}'}, timeout: '${T}'}, off: {command: '${B}', disabled: true}}"
    )
    x = c.specs["x"]
    assert isinstance(x, ServerSpec)
    assert x.unavailable == "the environment variable A_KEY is not set. Set it, or write ${A_KEY:-default}."
    assert "off" not in c.specs
    assert [p.code for p in c.problems] == ["env_missing", "env_missing"]


def test_modules_beside_the_file_are_read_without_running_them(writer: Writer) -> None:
    """T3: a name that no function has is an error before anything was imported."""
    writer.file("def add(): ...\ndef _hidden(): ...\nraise_on_import = 1 / 1\n", "mytools/notes.py")
    text = "plugins: {notes: {python: mytools.notes}}\ntoolkits: {t: {tools: [add, notes/add, %s]}}"
    assert [p.code for p in writer.problems(text % "ad")] == ["duplicate_member", "unknown_tool"]
    assert writer.messages(text % "notes/ad")[1].endswith(
        "'notes/ad' is not a known plugin or tool. Did you mean 'notes/add'?"
    )


def test_tools_of_plugins_that_were_asked_before_are_checked(writer: Writer) -> None:
    """T3: a server with a manifest validates like anything else."""
    path = writer.file("servers: {git: {command: x}}\ntoolkits: {t: {tools: [git_log, git/git_diff, git__git_nope]}}")
    problems = inspect(path, registered={}, env=writer.env(), tools={"git": ["git_log", "git_diff"]})[1]
    assert [(p.code, p.place and p.place.column) for p in problems] == [("unknown_tool", 47)]


def test_loadouts_lie_in_files_and_the_nearest_wins(writer: Writer) -> None:
    """L6: beside the configuration, then in the user's folder; they shadow built-ins, whatever the case."""
    writer.file("extends: minimal\nplugins: [docker]\n", "loadouts/Developer.yaml")
    writer.file("plugins: [csv]\n", "home/pegboard/loadouts/developer.yaml")
    writer.file("plugins: [csv]\n", "home/pegboard/loadouts/mine.yaml")
    writer.file("plugin: [csv]\n", "home/pegboard/loadouts/broken.yaml")
    c = writer.loaded("loadouts: {MINE: {plugins: [sql]}}\nagents: {a: {loadout: developer}}")
    assert c.loadouts["developer"].plugins == ("docker",)
    assert c.loadouts["mine"].plugins == ("sql",)
    assert {"minimal", "developer", "research", "devops", "full", "mine", "broken"} == set(c.loadouts)
    assert {p.code for p in c.problems} == {"unknown_key", "unconfined"}
    assert "docker" in c.specs
    assert {path.name for path in c.files} == {"pegboard.yaml", "Developer.yaml", "broken.yaml", "mine.yaml"}
    writer.file("plugin: [csv]\n", "loadouts/bad.yaml")
    assert writer.messages("agents: {}")[-1] == (
        "loadouts/bad.yaml:1:1: the key 'plugin' is not known here. Did you mean 'plugins'?"
    )


CLIENT: dict[str, Any] = {
    "mcpServers": {
        "git": {"command": "mcp-server-git", "args": ["--port", 8080], "env": {"N": 1}, "autoApprove": ["x"]},
        "web": {"type": "streamable-http", "url": "https://example.com/mcp", "timeout": 30000, "wat": 1},
        "old": {"serverUrl": "https://example.com/sse", "type": "sse", "disabledTools": ["danger"]},
        "off": {"command": "x", "disabled": True},
        "odd": {"type": "ws", "url": "https://example.com"},
        "asks": {"command": "x", "env": {"KEY": "${input:key}", "HERE": "${workspaceFolder}/a"}},
    },
    "inputs": [],
    "theme": "dark",
}


def test_the_file_of_a_client_is_a_configuration(writer: Writer) -> None:
    """§5: each server is a plugin and a toolkit of its own, and one agent may load all."""
    c = writer.loaded(json.dumps(CLIENT), ".mcp.json")
    assert list(c.specs) == ["git", "web", "old", "odd", "asks"] == list(c.toolkits)
    assert c.agents["default"].allowed_toolkits == ("git", "web", "old", "odd", "asks")
    git, web, old, odd, asks = (spec for spec in c.specs.values() if isinstance(spec, ServerSpec))
    assert (git.args, dict(git.env)) == (("--port", "8080"), {"N": "1"})
    assert (web.transport, web.timeout, old.transport, old.url) == ("http", 30.0, "sse", "https://example.com/sse")
    assert c.toolkits["old"].members[0].exclude == {"danger"}
    assert odd.unavailable == "its type 'ws' is not one of stdio, http and sse"
    assert asks.unavailable.startswith("it asks for the input 'key'")
    assert asks.env["HERE"] == f"{writer.folder}/a"
    assert sorted(p.code for p in c.problems) == ["env_missing", "unavailable", "unknown_key", "unknown_key"]


def test_the_file_of_vs_code_and_one_of_ours_in_json_are_told_apart(writer: Writer) -> None:
    vscode = writer.loaded('{"servers": {"a": {"command": "x"}}, /* mine */ "inputs": [],}', "mcp.json")
    ours = writer.loaded('{"servers": {"a": {"command": "x"}}, "agents": {"b": {}}}', "pegboard.json")
    assert (list(vscode.toolkits), list(vscode.agents)) == (["a"], ["default"])
    assert (list(ours.toolkits), list(ours.agents)) == ([], ["b"])
    assert writer.messages('{\n "mcpServers": {\n  "a": {"command": 5}}}', ".mcp.json") == [
        (
            ".mcp.json:3:20: mcpServers.a.command: expected a string, found the number 5; the server is unavailable. "
            'Write "5" in quotes.'
        )
    ]


def test_a_file_of_ours_keeps_its_servers_under_their_own_name(writer: Writer) -> None:
    assert writer.messages("mcpServers: {a: {command: x}}\nagents: {}") == [
        "pegboard.yaml:1:1: the key 'mcpServers' is not known here. Write 'servers'."
    ]
    assert list(writer.loaded("mcpServers: {a: {command: x}}").toolkits) == ["a"]


def test_the_configuration_of_a_folder_is_found(writer: Writer) -> None:
    """G12: ./pegboard.yaml; an .mcp.json is that of its clients."""
    writer.file("{}", ".mcp.json")
    assert find(writer.folder) is None
    writer.file("agents: {}")
    assert find(writer.folder) == writer.folder / "pegboard.yaml"


def test_the_json_schema_takes_what_loads_and_refuses_what_does_not() -> None:
    """§5: `pegboard schema` is for editors."""
    checker = jsonschema_rs.validator_for(schema())
    for text in (FULL, *((EXAMPLES / name).read_text("utf-8") for name in ("assistant.yaml", "data-agents.yaml"))):
        value = yaml.safe_load(text)
        assert [error.message for error in checker.iter_errors(value)] == []
    for wrong in ({"toolkit": {}}, {"agents": {"a": {"tools": "file"}}}, {"agents": {"a": {"dialect": "x"}}}):
        assert not checker.is_valid(wrong)


def test_a_large_configuration_loads(writer: Writer) -> None:
    """§5: 200 toolkits with 5,000 members, against 200 servers."""
    servers = "".join(f"  s{n}: {{command: x}}\n" for n in range(200))
    toolkits = "".join(
        f"  k{n}:\n    tools:\n" + "".join(f"      - s{m}/t{n}_{m}\n" for m in range(25)) for n in range(200)
    )
    path = writer.file(f"servers:\n{servers}toolkits:\n{toolkits}agents:\n  a: {{}}\n")
    configuration = load(path, registered=REGISTERED, env=writer.env())
    assert sum(len(t.members) for t in configuration.toolkits.values()) == 5000
    wrong = writer.file(path.read_text().replace("/", "-"))
    assert len(inspect(wrong, registered=REGISTERED, env=writer.env())[1]) == 5000
