"""One test for every rule that a configuration must keep to: the exact text, and the place."""

from typing import get_args

import pytest
from config_support import Writer

from pegboard.config.problem_codes import ProblemCode

RULES = {
    "T2, MR2: an allowed toolkit is defined": (
        """
        toolkits: {devops: {tools: [docker]}}
        agents:
          assistant:
            allowed_toolkits: [devop]
        """,
        "unknown_toolkit",
        "pegboard.yaml:5:24: agents.assistant.allowed_toolkits: toolkit 'devop' is not defined. Did you mean 'devops'?",
    ),
    "T2, MR3: an initial toolkit is defined": (
        """
        toolkits: {devops: {tools: [docker]}}
        agents: {a: {allowed_toolkits: [devops], initial_toolkits: [data]}}
        """,
        "unknown_toolkit",
        "pegboard.yaml:3:61: agents.a.initial_toolkits: toolkit 'data' is not defined.",
    ),
    "T2, MR4: an initial toolkit is allowed": (
        """
        toolkits: {devops: {tools: [docker]}}
        agents: {a: {initial_toolkits: [devops]}}
        """,
        "initial_not_allowed",
        (
            "pegboard.yaml:3:33: agents.a.initial_toolkits: toolkit 'devops' is initial but not allowed. "
            "Add it to allowed_toolkits."
        ),
    ),
    "S1: an agent that shares a toolkit is defined": (
        """
        toolkits:
          devops: {tools: [docker], share_with: [assistant, asistant]}
        agents: {assistant: {allowed_toolkits: [devops]}}
        """,
        "unknown_agent",
        ("pegboard.yaml:3:53: toolkits.devops.share_with: agent 'asistant' is not defined. Did you mean 'assistant'?"),
    ),
    "A1: a rule for an argument has a pattern": (
        """
        plugins: {files: {python: files, approve: {read_file: {path: []}}}}
        """,
        "bad_value",
        "pegboard.yaml:2:55: plugins.files.approve.read_file: names no pattern for 'path'. Write [pattern].",
    ),
    "S1: two agents at least share a toolkit": (
        """
        toolkits: {devops: {tools: [docker], share_with: [assistant]}}
        agents: {assistant: {allowed_toolkits: [devops]}}
        """,
        "shared_with_nobody",
        (
            "pegboard.yaml:2:50: toolkits.devops.share_with: only agent 'assistant' shares toolkit 'devops': "
            "it shares it with nobody. Name every agent that shares it, two at least."
        ),
    ),
    "S1: an agent shares a toolkit once": (
        """
        toolkits: {devops: {tools: [docker], share_with: [a, b, a]}}
        agents: {a: {allowed_toolkits: [devops]}, b: {allowed_toolkits: [devops]}}
        """,
        "duplicate_name",
        "pegboard.yaml:2:57: toolkits.devops.share_with: agent 'a' stands twice. Remove one of them.",
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
        "pegboard.yaml:6:9: toolkits.devops.tools: 'docker' stands twice in this toolkit. The first one is in line 5.",
    ),
    "T3: two spellings of one tool are the same member": (
        """
        servers: {git: {command: git-server}}
        toolkits: {t: {tools: [git/log, git__log]}}
        """,
        "duplicate_member",
        "pegboard.yaml:3:33: toolkits.t.tools: 'git__log' stands twice in this toolkit. The first one is in line 3.",
    ),
    "T3, MR6: delegate is reserved": (
        "toolkits: {t: {tools: [delegate]}}",
        "reserved",
        (
            "pegboard.yaml:1:24: toolkits.t.tools: 'delegate' is reserved and may not stand in a toolkit. "
            "List it among an agent's tools."
        ),
    ),
    "T3, MR6: dynamic_tools is reserved, with settings too": (
        "toolkits: {t: {tools: [{dynamic_tools: {x: 1}}]}}",
        "reserved",
        (
            "pegboard.yaml:1:24: toolkits.t.tools: 'dynamic_tools' is reserved and may not stand in a toolkit. "
            "It comes by itself where it is needed."
        ),
    ),
    "T3, MR6: self_config is reserved": (
        "toolkits: {t: {tools: [self_config]}}",
        "reserved",
        (
            "pegboard.yaml:1:24: toolkits.t.tools: 'self_config' is reserved and may not stand in a toolkit. "
            "List it among an agent's tools."
        ),
    ),
    "T3, MR7: a member is known": (
        "toolkits: {t: {tools: [docer]}}",
        "unknown_tool",
        "pegboard.yaml:1:24: toolkits.t.tools: 'docer' is not a known plugin or tool. Did you mean 'docker'?",
    ),
    "T3: the plugin of a tool is known": (
        "toolkits: {t: {tools: [dockr/ps]}}",
        "unknown_tool",
        "pegboard.yaml:1:24: toolkits.t.tools: 'dockr/ps' is not a known plugin or tool. Did you mean 'docker'?",
    ),
    "T1: a toolkit holds no toolkit": (
        "toolkits: {a: {tools: [docker]}, b: {tools: ['toolkit:a']}}",
        "unknown_tool",
        (
            "pegboard.yaml:1:46: toolkits.b.tools: 'toolkit:a' is a toolkit; plugins and tools stand here. "
            "Write its members."
        ),
    ),
    "T3: a bare name may be a tool of a module that was not read": (
        """
        plugins: {notes: {python: elsewhere.notes}}
        toolkits: {t: {tools: [add_note]}}
        """,
        "unresolved_tool",
        (
            "pegboard.yaml:3:24: toolkits.t.tools: 'add_note' is not known yet; it may be a tool of 'notes'. "
            "Did you mean 'notes'?"
        ),
    ),
    "T3: static tools are known": (
        "agents: {a: {tools: [fil]}}",
        "unknown_tool",
        "pegboard.yaml:1:22: agents.a.tools: 'fil' is not a known plugin or tool. Did you mean 'file'?",
    ),
    "T3: essential tools are known": (
        "agents: {a: {essential: [nothing-like-it]}}",
        "unknown_tool",
        "pegboard.yaml:1:26: agents.a.essential: 'nothing-like-it' is not a known plugin or tool.",
    ),
    "T7: tools of all agents are known": (
        "defaults: {tools: [schedulr]}",
        "unknown_tool",
        ("pegboard.yaml:1:20: defaults.tools: 'schedulr' is not a known plugin or tool. Did you mean 'scheduler'?"),
    ),
    "T9: tools of a sub-app are known": (
        "sub_apps: {billing: {tool_names: [invoice_list]}}",
        "unknown_tool",
        "pegboard.yaml:1:35: sub_apps.billing.tool_names: 'invoice_list' is not a known plugin or tool.",
    ),
    "T4: meta-tools come by themselves": (
        "agents: {a: {tools: [dynamic_tools, file]}}",
        "reserved",
        "pegboard.yaml:1:22: agents.a.tools: 'dynamic_tools' comes by itself where it is needed. Remove it.",
    ),
    "P8: a plugin may be called like a tool of Pegboard itself, and its name alone does not mean it": (
        "servers: {delegate: {command: x}}",
        "reserved",
        (
            "pegboard.yaml:1:11: servers.delegate: 'delegate' in an agent's `tools` is carried out by Pegboard itself "
            "and is not this plugin. Rename it, or write 'plugin:delegate'."
        ),
    ),
    "P5, MR8: no shared-only plugin in a toolkit of an isolating agent": (
        """
        toolkits: {media: {tools: [spotify]}}
        agents: {a: {worker_scope: user, allowed_toolkits: [media]}}
        """,
        "shared_only",
        (
            "pegboard.yaml:3:53: agents.a.allowed_toolkits: 'spotify' works only where it is shared, and agent "
            "'a' works "
            "apart (worker_scope: user). Remove it from toolkit 'media', or share the agent."
        ),
    ),
    "P5: no shared-only static plugin for an isolating agent": (
        "agents: {a: {worker_scope: user_agent, tools: [homeassistant/lights]}}",
        "shared_only",
        (
            "pegboard.yaml:1:48: agents.a.tools: 'homeassistant' works only where it is shared, and agent 'a' "
            "works apart "
            "(worker_scope: user_agent). Remove it, or share the agent."
        ),
    ),
    "P5: private.per isolates, and essentials count": (
        "agents: {a: {private: {per: user}, essential: [spotify]}}",
        "shared_only",
        (
            "pegboard.yaml:1:48: agents.a.essential: 'spotify' works only where it is shared, and agent 'a' "
            "works apart "
            "(private.per: user). Remove it, or share the agent."
        ),
    ),
    "P5: a plugin says of itself that it is shared only": (
        """
        plugins: {lamp: {python: elsewhere, shared_only: true}}
        agents: {a: {worker_scope: user, tools: [lamp]}}
        """,
        "shared_only",
        (
            "pegboard.yaml:3:42: agents.a.tools: 'lamp' works only where it is shared, and agent 'a' works apart "
            "(worker_scope: user). Remove it, or share the agent."
        ),
    ),
    "P10: what writes or runs around the guard on paths is named": (
        "agents: {a: {tools: [file, {shell: {exclude_tools: [nothing]}}]}}",
        "unconfined",
        (
            "pegboard.yaml:1:28: agents.a.tools: 'shell' runs commands: agent 'a' could change with it what it may. "
            "Confine it (`plugins: {shell: {confine: true}}`), switch it off (`permissions: {shell: false}`), or "
            "exclude these tools: run_shell_command."
        ),
    ),
    "P2: a switch is true or false": (
        'agents: {a: {tools: [docker], permissions: {docker: "yes"}}}',
        "bad_switch",
        (
            "pegboard.yaml:1:53: agents.a.permissions.docker: expected true or false; the switch counts as absent. "
            "Write true or false without quotes."
        ),
    ),
    "P2: a switch names something": (
        "agents: {a: {tools: [docker], permissions: {docer: true}}}",
        "unknown_switch",
        (
            "pegboard.yaml:1:45: agents.a.permissions.docer: no toolkit, plugin or tool is known as 'docer'. "
            "Did you mean 'docker'?"
        ),
    ),
    "L3: the loadout of an agent is defined": (
        "agents: {a: {loadout: reserch}}",
        "unknown_loadout",
        (
            "pegboard.yaml:1:23: agents.a.loadout: loadout 'reserch' is not defined; the agent has nothing from it. "
            "Did you mean 'research'?"
        ),
    ),
    "L3, JD60: the parent of a loadout is defined": (
        "loadouts: {mine: {extends: minimum}}",
        "unknown_parent",
        (
            "pegboard.yaml:1:28: loadouts.mine.extends: loadout 'minimum' is not defined; the chain ends here. "
            "Did you mean 'minimal'?"
        ),
    ),
    "L3, JD63: a loadout does not extend itself": (
        "loadouts: {a: {extends: B}, b: {extends: a}}",
        "loadout_cycle",
        (
            "pegboard.yaml:1:25: loadouts.a.extends: the loadout extends itself: a → b → a; the chain is cut there. "
            "Let one of them extend nothing."
        ),
    ),
    "L3, JD62: a loadout does not name what it disables": (
        "loadouts: {mine: {plugins: [docker], disabled: [Docker]}}",
        "named_and_disabled",
        (
            "pegboard.yaml:1:49: loadouts.mine.disabled: plugin 'Docker' is both named and disabled; disabled wins. "
            "Leave one of them out."
        ),
    ),
    "L6: the plugins of a written loadout are known": (
        "loadouts: {mine: {plugins: [docer]}}",
        "unknown_plugin",
        "pegboard.yaml:1:29: loadouts.mine.plugins: plugin 'docer' is not known. Did you mean 'docker'?",
    ),
    "L2: only a star at the end of a pattern counts": (
        'loadouts: {mine: {discoverable: ["do*er"]}}',
        "bad_pattern",
        (
            "pegboard.yaml:1:34: loadouts.mine.discoverable: in 'do*er' only a star at the end stands for anything. "
            "Write a name, prefix* or *."
        ),
    ),
    "L4: a category has plugins": (
        "loadouts: {mine: {categories: [Filesytem]}}",
        "unknown_category",
        (
            "pegboard.yaml:1:32: loadouts.mine.categories: no plugin is in the category 'Filesytem'. "
            "Did you mean 'Filesystem'?"
        ),
    ),
    "L1: loadouts differ in more than case": (
        "loadouts: {mine: {}, Mine: {}}",
        "duplicate_loadout",
        (
            "pegboard.yaml:1:22: loadouts.Mine: loadouts 'mine' and 'Mine' differ only in case, which does not count. "
            "Rename one of them."
        ),
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
        (
            "pegboard.yaml:2:27: toolkits.data.tools: 'sql' is loaded from the start of agent 'a' with two "
            "different settings: "
            "{db_url: postgres://db/y, password: ***} (line 6) and {db_url: postgres://***@db/x, password: ***}. "
            "Make them equal, or remove one."
        ),
    ),
    "§2: a bare name means one thing": (
        """
        servers: {git: {command: git-server}}
        toolkits: {git: {tools: [git, docker]}}
        """,
        "ambiguous_name",
        (
            "pegboard.yaml:3:12: toolkits.git: 'git' is a toolkit and a plugin; the bare name means the toolkit. "
            "Write 'toolkit:git' or 'plugin:git', or rename one."
        ),
    ),
    "G10: two prefixes differ": (
        """
        servers:
          gh: {command: x}
          github: {command: y, prefix: gh}
        """,
        "shared_prefix",
        (
            "pegboard.yaml:4:32: servers.github.prefix: the tools of 'gh' and 'github' both begin with 'gh__'. "
            "Give one of them another prefix: two tools of one name cannot both be listed."
        ),
    ),
    "a name is a server or a plugin": (
        """
        servers: {git: {command: x}}
        plugins: {git: {python: y}}
        """,
        "duplicate_plugin",
        "pegboard.yaml:3:11: plugins.git: 'git' is a server and a plugin. Rename one of them.",
    ),
    "a server has a command or a url": (
        "servers: {git: {args: [x]}}",
        "server_target",
        (
            "pegboard.yaml:1:11: servers.git: has neither a command nor a url. "
            "Write `command:` for a program to start, or `url:` for a remote server."
        ),
    ),
    "a server has not both": (
        "servers: {git: {command: x, url: 'https://example.com/mcp'}}",
        "server_target",
        "pegboard.yaml:1:11: servers.git: has both a command and a url. Leave one of them out.",
    ),
    "a tool stands in one of two lists": (
        "agents: {a: {essential: [docker], tools: [docker]}}",
        "duplicate_name",
        (
            "pegboard.yaml:1:43: agents.a.tools: 'docker' stands in essential and in tools. "
            "Essential tools are always loaded: remove it here."
        ),
    ),
    "a static tool stands once": (
        "agents: {a: {tools: [docker, docker]}}",
        "duplicate_name",
        "pegboard.yaml:1:30: agents.a.tools: 'docker' stands twice in tools. The first one counts.",
    ),
    "a toolkit is allowed once": (
        """
        toolkits: {t: {tools: [docker]}}
        agents: {a: {allowed_toolkits: [t, t]}}
        """,
        "duplicate_name",
        "pegboard.yaml:3:36: agents.a.allowed_toolkits: toolkit 't' stands twice. Leave one of them out.",
    ),
    "the model of an agent is defined": (
        """
        models: {default: {provider: anthropic}}
        agents: {a: {model: defalt}}
        """,
        "unknown_model",
        "pegboard.yaml:3:21: agents.a.model: model 'defalt' is not defined. Did you mean 'default'?",
    ),
    "F4: a price of a model is a number": (
        """
        models: {default: {prices: {input: free, output: 15}}}
        """,
        "bad_price",
        (
            "pegboard.yaml:2:36: models.default.prices.input: a price is a number, such as 3.00. "
            "It is what a million tokens cost."
        ),
    ),
    "F4: a price of a model is not negative": (
        """
        models: {default: {prices: {input: 3, output: -0.1}}}
        """,
        "bad_price",
        (
            "pegboard.yaml:2:47: models.default.prices.output: a price is not negative. "
            "It is what a million tokens cost."
        ),
    ),
    "F4: a price of a model is finite": (
        """
        models: {default: {prices: {input: .nan, output: 1}}}
        """,
        "bad_price",
        (
            "pegboard.yaml:2:36: models.default.prices.input: a price is a finite number, such as 3.00. "
            "It is what a million tokens cost."
        ),
    ),
    "F4: a price of a model is one that somebody can mean": (
        """
        models: {default: {prices: {input: 1, output: 1e300}}}
        """,
        "bad_price",
        (
            "pegboard.yaml:2:47: models.default.prices.output: a price of a million tokens is 1,000,000 at most. "
            "It is what a million tokens cost."
        ),
    ),
    "F4: a price of a model is exact": (
        """
        models: {default: {prices: {input: 1, output: 0.1234567}}}
        """,
        "bad_price",
        (
            "pegboard.yaml:2:47: models.default.prices.output: a price has 6 decimals at most. "
            "It is what a million tokens cost."
        ),
    ),
    "F4: input and output of a model have a price": (
        """
        models: {default: {prices: {input: 1}}}
        """,
        "bad_price",
        (
            "pegboard.yaml:2:28: models.default.prices: the price of 'output' is missing. "
            "Write {input: 3.00, cached: 0.30, written: 3.75, output: 15.00, currency: USD}."
        ),
    ),
    "F4: prices of a model are a mapping": (
        """
        models: {default: {prices: 3}}
        """,
        "bad_price",
        (
            "pegboard.yaml:2:28: models.default.prices: prices are a mapping of numbers. "
            "Write {input: 3.00, cached: 0.30, written: 3.75, output: 15.00, currency: USD}."
        ),
    ),
    "F4: a key of the prices of a model is a kind of token": (
        """
        models: {default: {prices: {input: 1, output: 1, cache: 1}}}
        """,
        "bad_price",
        "pegboard.yaml:2:50: models.default.prices.cache: 'cache' is no price. Did you mean 'cached'?",
    ),
    "F4: a currency is a short text": (
        """
        models: {default: {prices: {input: 1, output: 1, currency: ""}}}
        """,
        "bad_price",
        (
            "pegboard.yaml:2:60: models.default.prices.currency: a currency is a text of 1 to 12 characters. "
            "Write a code such as USD."
        ),
    ),
    "G2: a token is for agents that are defined": (
        """
        tokens: {ada: {token: abcdefgh, agents: [asistant]}}
        agents: {assistant: {}}
        """,
        "unknown_agent",
        "pegboard.yaml:2:42: tokens.ada.agents: agent 'asistant' is not defined. Did you mean 'assistant'?",
    ),
    "G2: a token is not empty": (
        """
        tokens: {ada: {token: "${ADA}", agents: ["*"]}}
        """,
        "empty_token",
        "pegboard.yaml:2:23: tokens.ada.token: the token is empty. An empty token would let anybody in.",
    ),
    "G2: whether its owner may use the console is true, false or rights": (
        """
        tokens: {ada: {token: abcdefgh, agents: ["*"], console: sometimes}}
        """,
        "wrong_type",
        (
            "pegboard.yaml:2:57: tokens.ada.console: expected true, false or a list of rights, found a string. "
            "Write true, false, or a list of see, approve, switch, configure."
        ),
    ),
    "G2: a token has one owner": (
        """
        tokens:
          ada: {token: same-token, agents: ["*"]}
          bob: {token: same-token, agents: ["*"]}
        """,
        "duplicate_token",
        "pegboard.yaml:4:16: tokens.bob.token: 'ada' has the same token. Give each principal a token of its own.",
    ),
    "the store is known": (
        "store: mongodb://somewhere",
        "bad_store",
        (
            "pegboard.yaml:1:8: store: there is no store of the kind 'mongodb:'. "
            "Write sqlite:///relative/file.db, sqlite:////absolute/file.db, postgresql://host/database or memory:."
        ),
    ),
    "P6: a variable that a server needs makes it unavailable": (
        'servers: {docs: {url: "https://example.com", headers: {Authorization: "Bearer ${DOCS}"}}}',
        "env_missing",
        (
            "pegboard.yaml:1:71: servers.docs.headers.Authorization: the environment variable DOCS is not set; "
            "the server "
            "is unavailable until then. Set it, or write ${DOCS:-default}."
        ),
    ),
    "a variable that is needed elsewhere is set": (
        "toolkits: {data: {tools: [{sql: {db_url: '${DB}'}}]}}",
        "env_missing",
        (
            "pegboard.yaml:1:42: toolkits.data.tools[0].sql.db_url: the environment variable DB is not set. "
            "Set it, or write ${DB:-default}."
        ),
    ),
    "a reference is one": (
        'toolkits: {t: {description: "${what is this"}}',
        "env_syntax",
        (
            "pegboard.yaml:1:29: toolkits.t.description: '${' does not begin the name of an environment variable. "
            "Write ${NAME}, ${NAME:-default} or, for the two signs, $${."
        ),
    ),
    "a key is known": (
        "agents: {a: {toolz: [file]}}",
        "unknown_key",
        "pegboard.yaml:1:14: agents.a: the key 'toolz' is not known here. Did you mean 'tools'?",
    ),
    "a text with a comma inside braces is quoted": (
        "toolkits: {mail: {description: Read and write e-mail, file it, tools: [file]}}",
        "unknown_key",
        (
            "pegboard.yaml:1:55: toolkits.mail: the key 'file it' is not known here. Where it is part of the text "
            'before it: inside braces a text with a comma is quoted, "like, this".'
        ),
    ),
    "a section is known": (
        "toolkit: {}",
        "unknown_key",
        "pegboard.yaml:1:1: the key 'toolkit' is not known here. Did you mean 'toolkits'?",
    ),
    "the keys of another system are told from typing errors": (
        "loadouts: {mine: {includeCategories: [Git]}}",
        "unknown_key",
        "pegboard.yaml:1:19: loadouts.mine: the key 'includeCategories' is not known here. Write 'categories'.",
    ),
    "a key stands once": (
        """
        agents:
          a: {}
        agents: {}
        """,
        "duplicate_key",
        "pegboard.yaml:4:1: the key 'agents' stands twice; the first one is in line 2, column 1.",
    ),
    "what must be there is there": (
        "tokens: {ada: {token: abc}}",
        "missing_key",
        "pegboard.yaml:1:15: tokens.ada: 'agents' is missing.",
    ),
    "a plugin is written in Python or registered": (
        "plugins: {notes: {category: Memory}}",
        "missing_key",
        (
            "pegboard.yaml:1:11: plugins.notes: 'python' is missing, and no registered plugin is called 'notes'. "
            "Write `python: module`, or `python: module:object`."
        ),
    ),
    "a registered plugin is spelt right": (
        "plugins: {dokcer: {category: Shell}}",
        "missing_key",
        (
            "pegboard.yaml:1:11: plugins.dokcer: 'python' is missing, and no registered plugin is called 'dokcer'. "
            "Did you mean 'docker'?"
        ),
    ),
    "a list is a list": (
        "agents: {a: {tools: file}}",
        "wrong_type",
        "pegboard.yaml:1:21: agents.a.tools: expected a list of names, found a string. Write [file].",
    ),
    "a section is a mapping": (
        "toolkits: [devops]",
        "wrong_type",
        "pegboard.yaml:1:11: toolkits: expected a mapping, found a list. Write it as `key: value`.",
    ),
    "a number in quotes is no number": (
        'agents: {a: {budget: {tools: "5"}}}',
        "wrong_type",
        "pegboard.yaml:1:30: agents.a.budget.tools: expected a whole number, found a string. Write it without quotes.",
    ),
    "a boolean in quotes is no boolean": (
        'servers: {x: {command: y, shared: "true"}}',
        "wrong_type",
        "pegboard.yaml:1:35: servers.x.shared: expected true or false, found a string. Write it without quotes.",
    ),
    "a plugin has no process that replicas could share": (
        "plugins: {x: {python: y, instance: store}}",
        "bad_value",
        (
            "pegboard.yaml:1:36: plugins.x.instance: `instance: store` is one over all replicas, "
            "which only a server with a `command` can be. Write `instance: all` for one in each process."
        ),
    ),
    "a server at a url is no process of any replica": (
        "servers: {x: {url: 'http://x.example', instance: store}}",
        "bad_value",
        (
            "pegboard.yaml:1:14: servers.x: `instance: store` is one process over all replicas, and a server with a "
            "`url` is none of theirs. Write `instance: all`."
        ),
    ),
    "shared, and for each by itself": (
        "servers: {x: {command: y, shared: true, instance: session}}",
        "bad_value",
        "pegboard.yaml:1:14: servers.x: `shared: true` contradicts `instance: session`. Remove one of them.",
    ),
    "a number is no name": (
        "agents: {a: {rooms: [5]}}",
        "wrong_type",
        'pegboard.yaml:1:22: agents.a.rooms: expected a name, found the number 5. Write "5" in quotes.',
    ),
    "an argument is text": (
        "servers: {x: {command: y, args: [--port, 8080]}}",
        "wrong_type",
        'pegboard.yaml:1:42: servers.x.args: expected a string, found the number 8080. Write "8080" in quotes.',
    ),
    "T1: an entry has one name": (
        "toolkits: {t: {tools: [{sql: {}, docker: {}}]}}",
        "bad_value",
        (
            "pegboard.yaml:1:24: toolkits.t.tools: expected one name with its settings, found 2 keys. "
            "Write each tool as an entry of its own; indent its settings below its name."
        ),
    ),
    "T1: the settings of an entry are a mapping": (
        "toolkits: {t: {tools: [{sql: [x]}]}}",
        "wrong_type",
        (
            "pegboard.yaml:1:24: toolkits.t.tools: expected settings of 'sql' as a mapping, found a list. "
            "Write {sql: {key: value}}."
        ),
    ),
    "T1: function filters are lists": (
        "agents: {a: {tools: [{shell: {include_tools: run}}]}}",
        "wrong_type",
        (
            "pegboard.yaml:1:22: agents.a.tools: expected a list of function names in 'include_tools', found a string. "
            "Write [name]."
        ),
    ),
    "a choice is one of those": (
        "agents: {a: {dialect: pegbord}}",
        "bad_value",
        (
            "pegboard.yaml:1:23: agents.a.dialect: expected one of 'pegboard', 'toolkits', 'invokeother' or "
            "'discovery', "
            "found 'pegbord'. Did you mean 'pegboard'?"
        ),
    ),
    "a duration is one": (
        "agents: {a: {turn_gap: soon}}",
        "bad_duration",
        (
            "pegboard.yaml:1:24: agents.a.turn_gap: this is not a duration. "
            "Write it as 60s, 2m or 500ms, or as a number of seconds."
        ),
    ),
    "a lease for one turn has no idle turns": (
        "agents: {a: {lease: {kind: turn, turns: 3}}}",
        "bad_value",
        (
            "pegboard.yaml:1:21: agents.a.lease: `turns` means nothing with `kind: turn`. "
            "Remove it, or write `kind: idle`."
        ),
    ),
    "what is anticipated is bounds or a switch": (
        "agents: {a: {anticipate: 5}}",
        "wrong_type",
        "pegboard.yaml:1:26: agents.a.anticipate: expected a mapping, found the number 5. Write it as `key: value`.",
    ),
    "F3: when is a regular expression": (
        'toolkits: {t: {focus: {when: "(", tools: [docker]}}}',
        "bad_value",
        ("pegboard.yaml:1:30: toolkits.t.focus.when: is not a regular expression: unclosed group."),
    ),
    "F3: when takes bounded time": (
        'toolkits: {t: {focus: {when: "(.{1,999}){1,999}", tools: [docker]}}}',
        "bad_value",
        "pegboard.yaml:1:30: toolkits.t.focus.when: is not a regular expression: it is too large.",
    ),
    "F3: a hook is a function of a module": (
        "toolkits: {t: {focus: {python: hooks}}}",
        "bad_value",
        (
            "pegboard.yaml:1:32: toolkits.t.focus.python: is not module:function. "
            "Name a function of a module beside this file."
        ),
    ),
    "F3: a focus rule names tools": (
        "toolkits: {t: {tools: [docker], focus: {when: x, tools: [dokcer]}}}",
        "unknown_focus",
        "pegboard.yaml:1:58: toolkits.t.focus.tools: no plugin or tool is known as 'dokcer'. Did you mean 'docker'?",
    ),
    "the name of an agent stands in an address": (
        "agents: {a/b: {}}",
        "bad_value",
        "pegboard.yaml:1:10: agents.a/b: the name of an agent stands in an address and cannot hold '/'.",
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule: str, writer: Writer) -> None:
    """T1, T2, T3, T4, T5, T7, T9, P2, P5, P6, L1, L2, L3, L4, L6, G2, G10, F3: see the names of the rules."""
    text, code, message = RULES[rule]
    problems = writer.problems(text, ADA="")
    matching = [str(problem) for problem in problems if problem.code == code]
    assert matching[:1] == [message], [str(problem) for problem in problems]
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
