"""One test for every rule that a configuration must keep to: its code, the place, and the name that is offered."""

from typing import get_args

import pytest
from config_support import Writer

from pegboard.config.problem_codes import ProblemCode

RULES: dict[str, tuple[str, ...]] = {
    "T2, MR2: an allowed toolkit is defined": (
        """
        toolkits: {devops: {tools: [docker]}}
        agents:
          assistant:
            allowed_toolkits: [devop]
        """,
        "unknown_toolkit",
        "pegboard.yaml:5:24: agents.assistant.allowed_toolkits",
        "devops",
    ),
    "T2, MR3: an initial toolkit is defined": (
        """
        toolkits: {devops: {tools: [docker]}}
        agents: {a: {allowed_toolkits: [devops], initial_toolkits: [data]}}
        """,
        "unknown_toolkit",
        "pegboard.yaml:3:61: agents.a.initial_toolkits",
    ),
    "T2, MR4: an initial toolkit is allowed": (
        """
        toolkits: {devops: {tools: [docker]}}
        agents: {a: {initial_toolkits: [devops]}}
        """,
        "initial_not_allowed",
        "pegboard.yaml:3:33: agents.a.initial_toolkits",
    ),
    "S1: an agent that shares a toolkit is defined": (
        """
        toolkits:
          devops: {tools: [docker], share_with: [assistant, asistant]}
        agents: {assistant: {allowed_toolkits: [devops]}}
        """,
        "unknown_agent",
        "pegboard.yaml:3:53: toolkits.devops.share_with",
        "assistant",
    ),
    "A1: a rule for an argument has a pattern": (
        """
        plugins: {files: {python: files, approve: {read_file: {path: []}}}}
        """,
        "bad_value",
        "pegboard.yaml:2:55: plugins.files.approve.read_file",
    ),
    "S1: two agents at least share a toolkit": (
        """
        toolkits: {devops: {tools: [docker], share_with: [assistant]}}
        agents: {assistant: {allowed_toolkits: [devops]}}
        """,
        "shared_with_nobody",
        "pegboard.yaml:2:50: toolkits.devops.share_with",
    ),
    "S1: an agent shares a toolkit once": (
        """
        toolkits: {devops: {tools: [docker], share_with: [a, b, a]}}
        agents: {a: {allowed_toolkits: [devops]}, b: {allowed_toolkits: [devops]}}
        """,
        "duplicate_name",
        "pegboard.yaml:2:57: toolkits.devops.share_with",
    ),
    "T3, MR5: a member stands once in a toolkit": (
        """
        toolkits:
          devops:
            tools:
              - docker
              - docker: {x: 1}
        """,
        "duplicate_member",
        "pegboard.yaml:6:9: toolkits.devops.tools",
    ),
    "T3: two spellings of one tool are the same member": (
        """
        servers: {git: {command: git-server}}
        toolkits: {t: {tools: [git/log, git__log]}}
        """,
        "duplicate_member",
        "pegboard.yaml:3:33: toolkits.t.tools",
    ),
    "T3, MR6: delegate is reserved": (
        "toolkits: {t: {tools: [delegate]}}",
        "reserved",
        "pegboard.yaml:1:24: toolkits.t.tools",
    ),
    "T3, MR6: dynamic_tools is reserved, with settings too": (
        "toolkits: {t: {tools: [{dynamic_tools: {x: 1}}]}}",
        "reserved",
        "pegboard.yaml:1:24: toolkits.t.tools",
    ),
    "T3, MR6: self_config is reserved": (
        "toolkits: {t: {tools: [self_config]}}",
        "reserved",
        "pegboard.yaml:1:24: toolkits.t.tools",
    ),
    "T3, MR7: a member is known": (
        "toolkits: {t: {tools: [docer]}}",
        "unknown_tool",
        "pegboard.yaml:1:24: toolkits.t.tools",
        "docker",
    ),
    "T3: the plugin of a tool is known": (
        "toolkits: {t: {tools: [dockr/ps]}}",
        "unknown_tool",
        "pegboard.yaml:1:24: toolkits.t.tools",
        "docker",
    ),
    "T1: a toolkit holds no toolkit": (
        "toolkits: {a: {tools: [docker]}, b: {tools: ['toolkit:a']}}",
        "unknown_tool",
        "pegboard.yaml:1:46: toolkits.b.tools",
    ),
    "T3: a bare name may be a tool of a module that was not read": (
        """
        plugins: {notes: {python: elsewhere.notes}}
        toolkits: {t: {tools: [add_note]}}
        """,
        "unresolved_tool",
        "pegboard.yaml:3:24: toolkits.t.tools",
        "notes",
    ),
    "T3: static tools are known": (
        "agents: {a: {tools: [fil]}}",
        "unknown_tool",
        "pegboard.yaml:1:22: agents.a.tools",
        "file",
    ),
    "T3: essential tools are known": (
        "agents: {a: {essential: [nothing-like-it]}}",
        "unknown_tool",
        "pegboard.yaml:1:26: agents.a.essential",
    ),
    "T7: tools of all agents are known": (
        "defaults: {tools: [schedulr]}",
        "unknown_tool",
        "pegboard.yaml:1:20: defaults.tools",
        "scheduler",
    ),
    "T9: tools of a sub-app are known": (
        "sub_apps: {billing: {tool_names: [invoice_list]}}",
        "unknown_tool",
        "pegboard.yaml:1:35: sub_apps.billing.tool_names",
    ),
    "T4: meta-tools come by themselves": (
        "agents: {a: {tools: [dynamic_tools, file]}}",
        "reserved",
        "pegboard.yaml:1:22: agents.a.tools",
    ),
    "P8: a plugin may be called like a tool of Pegboard itself, and its name alone does not mean it": (
        "servers: {delegate: {command: x}}",
        "reserved",
        "pegboard.yaml:1:11: servers.delegate",
    ),
    "P5, MR8: no shared-only plugin in a toolkit of an isolating agent": (
        """
        toolkits: {media: {tools: [spotify]}}
        agents: {a: {worker_scope: user, allowed_toolkits: [media]}}
        """,
        "shared_only",
        "pegboard.yaml:3:53: agents.a.allowed_toolkits",
    ),
    "P5: no shared-only static plugin for an isolating agent": (
        "agents: {a: {worker_scope: user_agent, tools: [homeassistant/lights]}}",
        "shared_only",
        "pegboard.yaml:1:48: agents.a.tools",
    ),
    "P5: private.per isolates, and essentials count": (
        "agents: {a: {private: {per: user}, essential: [spotify]}}",
        "shared_only",
        "pegboard.yaml:1:48: agents.a.essential",
    ),
    "P5: a plugin says of itself that it is shared only": (
        """
        plugins: {lamp: {python: elsewhere, shared_only: true}}
        agents: {a: {worker_scope: user, tools: [lamp]}}
        """,
        "shared_only",
        "pegboard.yaml:3:42: agents.a.tools",
    ),
    "P10: what writes or runs around the guard on paths is named": (
        "agents: {a: {tools: [file, {shell: {exclude_tools: [nothing]}}]}}",
        "unconfined",
        "pegboard.yaml:1:28: agents.a.tools",
    ),
    "P2: a switch is true or false": (
        'agents: {a: {tools: [docker], permissions: {docker: "yes"}}}',
        "bad_switch",
        "pegboard.yaml:1:53: agents.a.permissions.docker",
    ),
    "P2: a switch names something": (
        "agents: {a: {tools: [docker], permissions: {docer: true}}}",
        "unknown_switch",
        "pegboard.yaml:1:45: agents.a.permissions.docer",
        "docker",
    ),
    "L3: the loadout of an agent is defined": (
        "agents: {a: {loadout: reserch}}",
        "unknown_loadout",
        "pegboard.yaml:1:23: agents.a.loadout",
        "research",
    ),
    "L3, JD60: the parent of a loadout is defined": (
        "loadouts: {mine: {extends: minimum}}",
        "unknown_parent",
        "pegboard.yaml:1:28: loadouts.mine.extends",
        "minimal",
    ),
    "L3, JD63: a loadout does not extend itself": (
        "loadouts: {a: {extends: B}, b: {extends: a}}",
        "loadout_cycle",
        "pegboard.yaml:1:25: loadouts.a.extends",
    ),
    "L3, JD62: a loadout does not name what it disables": (
        "loadouts: {mine: {plugins: [docker], disabled: [Docker]}}",
        "named_and_disabled",
        "pegboard.yaml:1:49: loadouts.mine.disabled",
    ),
    "L3: an agent's own loadout does not disable what it has from the start": (
        """
        loadouts: {mine: {extends: above}, above: {disabled: [Shell]}}
        agents: {a: {loadout: mine, tools: [file, shell]}}
        """,
        "named_and_disabled",
        "pegboard.yaml:3:43: agents.a.tools",
        "above",
    ),
    "L3: nor what stands in an initial toolkit": (
        """
        loadouts: {mine: {disabled: [arxiv]}}
        toolkits: {t: {tools: [file, arxiv]}}
        agents: {a: {loadout: mine, allowed_toolkits: [t], initial_toolkits: [t]}}
        """,
        "named_and_disabled",
        "pegboard.yaml:3:30: toolkits.t.tools",
    ),
    "P7: an agent of which everything is off has nothing": (
        "agents: {a: {tools: [file], permissions: {file: false}}}",
        "nothing_granted",
        "pegboard.yaml:1:10: agents.a",
    ),
    "P7: also by its toolkit": (
        """
        toolkits: {t: {tools: [file, arxiv]}}
        agents: {a: {allowed_toolkits: [t], permissions: {t: false}}}
        """,
        "nothing_granted",
        "pegboard.yaml:3:10: agents.a",
    ),
    "L6: the plugins of a written loadout are known": (
        "loadouts: {mine: {plugins: [docer]}}",
        "unknown_plugin",
        "pegboard.yaml:1:29: loadouts.mine.plugins",
        "docker",
    ),
    "L2: only a star at the end of a pattern counts": (
        'loadouts: {mine: {discoverable: ["do*er"]}}',
        "bad_pattern",
        "pegboard.yaml:1:34: loadouts.mine.discoverable",
    ),
    "L4: a category has plugins": (
        "loadouts: {mine: {categories: [Filesytem]}}",
        "unknown_category",
        "pegboard.yaml:1:32: loadouts.mine.categories",
        "Filesystem",
    ),
    "L1: loadouts differ in more than case": (
        "loadouts: {mine: {}, Mine: {}}",
        "duplicate_loadout",
        "pegboard.yaml:1:22: loadouts.Mine",
    ),
    "T5: nothing is loaded from the start with two settings; secrets are masked": (
        """
        toolkits: {data: {tools: [{sql: {db_url: "postgres://ada:hunter2@db/x", password: open}}]}}
        agents:
          a:
            tools:
              - sql: {db_url: "postgres://db/y", password: sesame}
            allowed_toolkits: [data]
            initial_toolkits: [data]
        """,
        "conflict",
        "pegboard.yaml:2:27: toolkits.data.tools",
        "{db_url: postgres://db/y, password: ***}",
        "{db_url: postgres://***@db/x, password: ***}",
    ),
    "§2: a bare name means one thing": (
        """
        servers: {git: {command: git-server}}
        toolkits: {git: {tools: [git, docker]}}
        """,
        "ambiguous_name",
        "pegboard.yaml:3:12: toolkits.git",
    ),
    "G10: two prefixes differ": (
        """
        servers:
          gh: {command: x}
          github: {command: y, prefix: gh}
        """,
        "shared_prefix",
        "pegboard.yaml:4:32: servers.github.prefix",
    ),
    "a name is a server or a plugin": (
        """
        servers: {git: {command: x}}
        plugins: {git: {python: y}}
        """,
        "duplicate_plugin",
        "pegboard.yaml:3:11: plugins.git",
    ),
    "a server has a command or a url": (
        "servers: {git: {args: [x]}}",
        "server_target",
        "pegboard.yaml:1:11: servers.git",
    ),
    "a server has not both": (
        "servers: {git: {command: x, url: 'https://example.com/mcp'}}",
        "server_target",
        "pegboard.yaml:1:11: servers.git",
    ),
    "a tool stands in one of two lists": (
        "agents: {a: {essential: [docker], tools: [docker]}}",
        "duplicate_name",
        "pegboard.yaml:1:43: agents.a.tools",
    ),
    "a static tool stands once": (
        "agents: {a: {tools: [docker, docker]}}",
        "duplicate_name",
        "pegboard.yaml:1:30: agents.a.tools",
    ),
    "a toolkit is allowed once": (
        """
        toolkits: {t: {tools: [docker]}}
        agents: {a: {allowed_toolkits: [t, t]}}
        """,
        "duplicate_name",
        "pegboard.yaml:3:36: agents.a.allowed_toolkits",
    ),
    "the model of an agent is defined": (
        """
        models: {default: {provider: anthropic}}
        agents: {a: {model: defalt}}
        """,
        "unknown_model",
        "pegboard.yaml:3:21: agents.a.model",
        "default",
    ),
    "F4: a price of a model is a number": (
        """
        models: {default: {prices: {input: free, output: 15}}}
        """,
        "bad_price",
        "pegboard.yaml:2:36: models.default.prices.input",
    ),
    "F4: a price of a model is not negative": (
        """
        models: {default: {prices: {input: 3, output: -0.1}}}
        """,
        "bad_price",
        "pegboard.yaml:2:47: models.default.prices.output",
    ),
    "F4: a price of a model is finite": (
        """
        models: {default: {prices: {input: .nan, output: 1}}}
        """,
        "bad_price",
        "pegboard.yaml:2:36: models.default.prices.input",
    ),
    "F4: a price of a model is one that somebody can mean": (
        """
        models: {default: {prices: {input: 1, output: 1e300}}}
        """,
        "bad_price",
        "pegboard.yaml:2:47: models.default.prices.output",
    ),
    "F4: a price of a model is exact": (
        """
        models: {default: {prices: {input: 1, output: 0.1234567}}}
        """,
        "bad_price",
        "pegboard.yaml:2:47: models.default.prices.output",
    ),
    "F4: input and output of a model have a price": (
        """
        models: {default: {prices: {input: 1}}}
        """,
        "bad_price",
        "pegboard.yaml:2:28: models.default.prices",
    ),
    "F4: prices of a model are a mapping": (
        """
        models: {default: {prices: 3}}
        """,
        "bad_price",
        "pegboard.yaml:2:28: models.default.prices",
    ),
    "F4: a key of the prices of a model is a kind of token": (
        """
        models: {default: {prices: {input: 1, output: 1, cache: 1}}}
        """,
        "bad_price",
        "pegboard.yaml:2:50: models.default.prices.cache",
        "cached",
    ),
    "F4: a currency is a short text": (
        """
        models: {default: {prices: {input: 1, output: 1, currency: ""}}}
        """,
        "bad_price",
        "pegboard.yaml:2:60: models.default.prices.currency",
    ),
    "G2: a token is for agents that are defined": (
        """
        tokens: {ada: {token: abcdefgh, agents: [asistant]}}
        agents: {assistant: {}}
        """,
        "unknown_agent",
        "pegboard.yaml:2:42: tokens.ada.agents",
        "assistant",
    ),
    "G2: a token is not empty": (
        """
        tokens: {ada: {token: "${ADA}", agents: ["*"]}}
        """,
        "empty_token",
        "pegboard.yaml:2:23: tokens.ada.token",
    ),
    "G2: whether its owner may use the console is true, false or rights": (
        """
        tokens: {ada: {token: abcdefgh, agents: ["*"], console: sometimes}}
        """,
        "wrong_type",
        "pegboard.yaml:2:57: tokens.ada.console",
    ),
    "G2: a token has one owner": (
        """
        tokens:
          ada: {token: same-token, agents: ["*"]}
          bob: {token: same-token, agents: ["*"]}
        """,
        "duplicate_token",
        "pegboard.yaml:4:16: tokens.bob.token",
    ),
    "the store is known": ("store: mongodb://somewhere", "bad_store", "pegboard.yaml:1:8: store"),
    "P6: a variable that a server needs makes it unavailable": (
        'servers: {docs: {url: "https://example.com", headers: {Authorization: "Bearer ${DOCS}"}}}',
        "env_missing",
        "pegboard.yaml:1:71: servers.docs.headers.Authorization",
    ),
    "a variable that is needed elsewhere is set": (
        "toolkits: {data: {tools: [{sql: {db_url: '${DB}'}}]}}",
        "env_missing",
        "pegboard.yaml:1:42: toolkits.data.tools[0].sql.db_url",
    ),
    "a reference is one": (
        'toolkits: {t: {description: "${what is this"}}',
        "env_syntax",
        "pegboard.yaml:1:29: toolkits.t.description",
    ),
    "a key is known": ("agents: {a: {toolz: [file]}}", "unknown_key", "pegboard.yaml:1:14: agents.a", "tools"),
    "a text with a comma inside braces is quoted": (
        "toolkits: {mail: {description: Read and write e-mail, file it, tools: [file]}}",
        "unknown_key",
        "pegboard.yaml:1:55: toolkits.mail",
    ),
    "a section is known": ("toolkit: {}", "unknown_key", "pegboard.yaml:1:1", "toolkits"),
    "the keys of another system are told from typing errors": (
        "loadouts: {mine: {includeCategories: [Git]}}",
        "unknown_key",
        "pegboard.yaml:1:19: loadouts.mine",
    ),
    "a key stands once": (
        """
        agents:
          a: {}
        agents: {}
        """,
        "duplicate_key",
        "pegboard.yaml:4:1",
    ),
    "what must be there is there": ("tokens: {ada: {token: abc}}", "missing_key", "pegboard.yaml:1:15: tokens.ada"),
    "a plugin is written in Python or registered": (
        "plugins: {notes: {category: Memory}}",
        "missing_key",
        "pegboard.yaml:1:11: plugins.notes",
    ),
    "a registered plugin is spelt right": (
        "plugins: {dokcer: {category: Shell}}",
        "missing_key",
        "pegboard.yaml:1:11: plugins.dokcer",
        "docker",
    ),
    "a list is a list": ("agents: {a: {tools: file}}", "wrong_type", "pegboard.yaml:1:21: agents.a.tools"),
    "a section is a mapping": ("toolkits: [devops]", "wrong_type", "pegboard.yaml:1:11: toolkits"),
    "a number in quotes is no number": (
        'agents: {a: {budget: {tools: "5"}}}',
        "wrong_type",
        "pegboard.yaml:1:30: agents.a.budget.tools",
    ),
    "a boolean in quotes is no boolean": (
        'servers: {x: {command: y, shared: "true"}}',
        "wrong_type",
        "pegboard.yaml:1:35: servers.x.shared",
    ),
    "a plugin has no process that replicas could share": (
        "plugins: {x: {python: y, instance: store}}",
        "bad_value",
        "pegboard.yaml:1:36: plugins.x.instance",
    ),
    "a server at a url is no process of any replica": (
        "servers: {x: {url: 'http://x.example', instance: store}}",
        "bad_value",
        "pegboard.yaml:1:14: servers.x",
    ),
    "shared, and for each by itself": (
        "servers: {x: {command: y, shared: true, instance: session}}",
        "bad_value",
        "pegboard.yaml:1:14: servers.x",
    ),
    "a number is no name": ("agents: {a: {rooms: [5]}}", "wrong_type", "pegboard.yaml:1:22: agents.a.rooms"),
    "an argument is text": (
        "servers: {x: {command: y, args: [--port, 8080]}}",
        "wrong_type",
        "pegboard.yaml:1:42: servers.x.args",
    ),
    "T1: an entry has one name": (
        "toolkits: {t: {tools: [{sql: {}, docker: {}}]}}",
        "bad_value",
        "pegboard.yaml:1:24: toolkits.t.tools",
    ),
    "T1: the settings of an entry are a mapping": (
        "toolkits: {t: {tools: [{sql: [x]}]}}",
        "wrong_type",
        "pegboard.yaml:1:24: toolkits.t.tools",
    ),
    "T1: function filters are lists": (
        "agents: {a: {tools: [{shell: {include_tools: run}}]}}",
        "wrong_type",
        "pegboard.yaml:1:22: agents.a.tools",
    ),
    "a choice is one of those": (
        "agents: {a: {dialect: pegbord}}",
        "bad_value",
        "pegboard.yaml:1:23: agents.a.dialect",
        "pegboard",
    ),
    "a duration is one": ("agents: {a: {turn_gap: soon}}", "bad_duration", "pegboard.yaml:1:24: agents.a.turn_gap"),
    "a lease for one turn has no idle turns": (
        "agents: {a: {lease: {kind: turn, turns: 3}}}",
        "bad_value",
        "pegboard.yaml:1:21: agents.a.lease",
    ),
    "what is anticipated is bounds or a switch": (
        "agents: {a: {anticipate: 5}}",
        "wrong_type",
        "pegboard.yaml:1:26: agents.a.anticipate",
    ),
    "F3: when is a regular expression": (
        'toolkits: {t: {focus: {when: "(", tools: [docker]}}}',
        "bad_value",
        "pegboard.yaml:1:30: toolkits.t.focus.when",
    ),
    "F3: when takes bounded time": (
        'toolkits: {t: {focus: {when: "(.{1,999}){1,999}", tools: [docker]}}}',
        "bad_value",
        "pegboard.yaml:1:30: toolkits.t.focus.when",
    ),
    "F3: a hook is a function of a module": (
        "toolkits: {t: {focus: {python: hooks}}}",
        "bad_value",
        "pegboard.yaml:1:32: toolkits.t.focus.python",
    ),
    "F3: a focus rule names tools": (
        "toolkits: {t: {tools: [docker], focus: {when: x, tools: [dokcer]}}}",
        "unknown_focus",
        "pegboard.yaml:1:58: toolkits.t.focus.tools",
        "docker",
    ),
    "the name of an agent is part of a URL": ("agents: {a/b: {}}", "bad_value", "pegboard.yaml:1:10: agents.a/b"),
}


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule: str, writer: Writer) -> None:
    """T1, T2, T3, T4, T5, T7, T9, P2, P5, P6, L1, L2, L3, L4, L6, G2, G10, F3: see the names of the rules."""
    text, code, place, *named = RULES[rule]
    problems = writer.problems(text, ADA="")
    first = next((str(problem) for problem in problems if problem.code == code), "")
    assert first.startswith(f"{place}: "), [str(problem) for problem in problems]
    assert [name for name in named if name not in first] == []
    assert {problem.code for problem in problems} <= {*get_args(ProblemCode)}


def test_everything_that_is_wrong_is_said_at_once_and_by_its_place(writer: Writer) -> None:
    """§5: all problems at once, sorted; a wrong part hides no other and makes no second problem."""
    problems = writer.problems("""
        servers: {git: {args: x}, web: {command: 5}}
        plugins: {notes: {}}
        toolkits:
          devops: {tools: [5, docer, [], docker, docker]}
          data: [pandas]
        agents:
          a: {allowed_toolkits: [data, devop], tools: [notes, git], role: 5}
        """)
    assert [(p.code, p.place and p.place.line, p.place and p.place.column) for p in problems] == [
        ("server_target", 2, 11),
        ("wrong_type", 2, 23),
        ("wrong_type", 2, 42),
        ("missing_key", 3, 11),
        ("wrong_type", 5, 20),
        ("unknown_tool", 5, 23),
        ("wrong_type", 5, 30),
        ("duplicate_member", 5, 42),
        ("wrong_type", 6, 9),
        ("unknown_toolkit", 8, 32),
        ("wrong_type", 8, 67),
    ]
