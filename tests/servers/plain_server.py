"""A small MCP server of the handshake era, standard library only: quick to start, and bad on demand."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

parser = argparse.ArgumentParser()
parser.add_argument("--log", type=Path, help="append what happens here")
parser.add_argument("--tools", type=int, default=0, help="list this many more, in pages of 100")
parser.add_argument("--strict", action="store_true", help="leave when anything comes before `initialize`")
parser.add_argument("--mute", action="store_true", help="never answer")
parser.add_argument("--garbage", action="store_true", help="print what is no message, without end")
parser.add_argument("--banner", action="store_true", help="print a line that is no message first")
parser.add_argument("--babble", help="print this before each answer")
parser.add_argument("--wait-for", type=Path, help="answer `initialize` once this file exists")
parser.add_argument("--stubborn", action="store_true", help="ignore SIGTERM and the end of the input")
parser.add_argument("--family", action="store_true", help="start a stubborn child")
REFUSAL = {"code": -32050, "message": "not on a Sunday", "data": {"day": 7}}
parser.add_argument("--refusal", type=json.loads, default=REFUSAL, help="the error of the tool `refuse`, as JSON")
parser.add_argument("--complain", help="write this to standard error")
parser.add_argument("--noise", type=Path, help="write what is in this file to standard error")
parser.add_argument("--exit", type=int, help="leave at once with this code")
options = parser.parse_args()

OBJECT = {"type": "object", "properties": {}}
READ_ONLY = {"readOnlyHint": True, "x-unknown": 1}
TOOLS = [
    {"name": "echo", "description": "Say it again.", "inputSchema": OBJECT, "title": "Echo",
     "icons": [{"src": "data:,"}], "_meta": {"team": "a"}, "x-vendor": {"kept": True}},
    {"name": "pid", "inputSchema": OBJECT},
    {"name": "environment", "inputSchema": OBJECT},
    {"name": "crash", "inputSchema": OBJECT},
    {"name": "crash_reading", "inputSchema": OBJECT, "annotations": READ_ONLY},
    {"name": "slow", "inputSchema": OBJECT},
    {"name": "grow", "inputSchema": OBJECT},
    {"name": "odd", "inputSchema": OBJECT},
    {"name": "promise", "inputSchema": OBJECT,
     "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
    {"name": "refuse", "inputSchema": OBJECT},
    {"name": "progress", "inputSchema": OBJECT},
    {"name": "meta", "inputSchema": OBJECT},
    {"name": "large", "inputSchema": OBJECT},
    {"name": "no_schema"},
    {"name": "bad_hint", "inputSchema": OBJECT, "annotations": {"readOnlyHint": "perhaps"}},
    {"name": "", "inputSchema": OBJECT},
    "not even an object",
    {"name": "echo", "description": "Listed twice.", "inputSchema": OBJECT},
    *({"name": f"tool_{n}", "inputSchema": OBJECT} for n in range(options.tools)),
]  # fmt: skip


def note(text: str) -> None:
    if options.log:
        with options.log.open("a") as file:
            file.write(f"{text} {os.getpid()}\n")


def send(**message: object) -> None:
    if options.babble:
        print(options.babble)
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text(value: object) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": str(value)}]}


def call(request: dict, params: dict) -> dict[str, Any] | None:  # noqa: C901 - one case per tool
    arguments = params.get("arguments") or {}
    note(f"call:{params['name']}")
    match params["name"]:
        case "echo":
            return text(arguments.get("text"))
        case "pid":
            return text(os.getpid())
        case "environment":
            return text(os.environ.get(arguments["name"], "-"))
        case "crash" | "crash_reading":
            print("Traceback: the disk is full, token=hunter22", file=sys.stderr, flush=True)
            os._exit(7)
        case "crash_once" if not (marker := Path(arguments["marker"])).exists():
            marker.touch()
            os._exit(7)
        case "crash_once":
            return text("survived")
        case "slow":
            return None
        case "grow":
            TOOLS.append({"name": "grown", "inputSchema": OBJECT})
            send(method="notifications/tools/list_changed")
            return text("grown")
        case "odd":
            return {"content": [{"type": "hologram", "depth": 3}], "x-more": 1, "_meta": {"seen": True}}
        case "promise":
            return {"content": [], "structuredContent": {"n": "not a number"}}
        case "refuse":
            send(id=request["id"], error=options.refusal)
            return None
        case "progress":
            for step in (1, 2, 3):
                token = params["_meta"]["progressToken"]
                report = {"progressToken": token, "progress": step, "total": 3, "message": f"step {step}"}
                send(method="notifications/progress", params=report)
            return text("done")
        case "meta":
            return text(json.dumps(params.get("_meta"), sort_keys=True))
        case "large":
            return text("x" * arguments["size"])
        case name:
            return {**text(f"no tool {name}"), "isError": True}


def answer(request: dict) -> dict[str, Any] | None:
    params = request.get("params") or {}
    match request["method"]:
        case "initialize":
            while options.wait_for and not options.wait_for.exists():
                time.sleep(0.01)
            note("ready")
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "plain", "version": "1", "title": "A plain server"},
                "instructions": "Be brief.",
            }
        case "tools/list":
            start = int(params.get("cursor", 0))
            page = {"tools": TOOLS[start : start + 100]}
            return {**page, "nextCursor": str(start + 100)} if start + 100 < len(TOOLS) else page
        case "tools/call":
            return call(request, params)
        case _:
            send(id=request["id"], error={"code": -32601, "message": "Method not found"})
            return None


def serve() -> None:
    first = True
    for line in sys.stdin:
        message = json.loads(line)
        note(message["method"])
        if options.strict and first and message["method"] != "initialize":
            sys.exit("expected initialize")
        first = False
        if options.mute or "id" not in message:
            continue
        if (result := answer(message)) is not None:
            send(id=message["id"], result=result)


STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"

note("start")
if options.stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if options.family:
    child = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    note(f"child:{child.pid}")
if options.complain:
    print(options.complain, file=sys.stderr, flush=True)
if options.noise:
    sys.stderr.buffer.write(options.noise.read_bytes())
    sys.stderr.flush()
if options.exit is not None:
    sys.exit(options.exit)
if options.banner:
    print("Welcome to the plain server!", flush=True)
while options.garbage:
    print("<html>this is no server of the protocol</html>", flush=True)
serve()
while options.stubborn:
    time.sleep(1)
