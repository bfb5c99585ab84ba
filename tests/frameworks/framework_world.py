"""The world of the contract tests, and every driver that they are asked of."""

import json
import sys
from pathlib import Path

from agno_driver import Agno
from framework_drivers import Driver
from langchain_driver import LangChain
from loop_driver import PlainLoop
from openai_agents_driver import OpenAIAgents
from pydantic_ai_driver import PydanticAI

DRIVERS: tuple[Driver, ...] = (PydanticAI(), Agno(), LangChain(), OpenAIAgents(), PlainLoop())
SERVER = Path(__file__).resolve().parent.parent / "servers" / "plain_server.py"
CONFIG = """
plugins:
  notes: {python: "framework_tools:Notes"}
  sums: {python: "framework_tools:Sums"}
  printer: {python: "framework_tools:Printer"}
  shredder: {python: "framework_tools:Shredder", approve: {shred: always}}
  pictures: {python: "framework_tools:Pictures"}
  scroll: {python: "framework_tools:Scroll"}
  repeater: {python: "framework_tools:repeat"}
  maps: {python: "framework_tools:Maps"}
  purse: {python: "framework_tools:Purse", approve: {pay: {to: ["strangers*"]}}}
toolkits:
  notes: {description: The notes of the user, tools: [notes], policy: Read the notes before you add one.}
  others: {description: The notes of somebody else, tools: [{notes: {owner: bob}}]}
  sums:
    description: Arithmetic
    tools: [sums]
    policy: Never do sums in your head.
    focus: [{when: "^sum up", tools: [add_numbers], choice: required}]
  printer: {description: A printer, tools: [printer]}
  papers: {description: What is done with papers, tools: [shredder]}
defaults: {anticipate: false}
agents:
  assistant: {tools: [sums], allowed_toolkits: [notes, others, printer], dialect: pegboard}
  reader:
    allowed_toolkits: [notes, sums]
    initial_toolkits: [sums]
    dialect: pegboard
    lease: {kind: idle, turns: 1}
  eager: {allowed_toolkits: [notes, sums], dialect: pegboard, anticipate: {tools: 5}}
  traveller:
    tools: [maps]
    allowed_toolkits: [notes, papers]
    discoverable: [purse, pictures, scroll]
    dialect: pegboard
  clerk: {tools: [shredder], dialect: pegboard}
  scholar: {tools: [scroll, sums], dialect: pegboard}
  payer: {tools: [purse], dialect: pegboard}
  parrot: {tools: [repeater], dialect: pegboard}
  busy:
    allowed_toolkits: [notes, printer, papers]
    discoverable: [purse, pictures]
    dialect: pegboard
    anticipate: {tools: 5}
  archivist: {allowed_toolkits: [papers], dialect: pegboard}
  lead: {tools: [delegate], may_delegate: [reader], dialect: pegboard}
  strict: {allowed_toolkits: [notes], permissions: {note_add: false}, dialect: pegboard, unloaded_call: reject}
"""
WITH_SERVER = f"""
servers:
  slow: {{command: {json.dumps(sys.executable)}, args: [{json.dumps(str(SERVER))}], timeout: 500ms}}
plugins:
  sums: {{python: "framework_tools:Sums"}}
agents:
  assistant: {{tools: [sums, slow], dialect: pegboard, anticipate: false}}
"""
