"""A server with skills, tasks and an extension of its own, as the specifications have them, without the SDK.

It speaks over stdio in one era: with ``--handshake`` the one of 2025-11-25, else that of 2026-07-28.
"""

import argparse
import hashlib
import itertools
import json
import sys
import threading
from pathlib import Path
from typing import Any

parser = argparse.ArgumentParser()
parser.add_argument("--handshake", action="store_true", help="know nothing of the 2026 era")
parser.add_argument("--name", default="docs", help="what its texts and its own skill say")
parser.add_argument("--plain", action="store_true", help="declare no extension, and have none")
parser.add_argument("--no-directories", action="store_true", help="read no directories")
parser.add_argument("--log", type=Path, help="append every request here")
options = parser.parse_args()

Message = dict[str, Any]
MODERN = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
SKILLS, TASKS, OWN = f"{PREFIX}skills", f"{PREFIX}tasks", "com.example/notes"
FILES = {
    "skill://git-workflow/SKILL.md": "---\nname: git-workflow\ndescription: Branch and commit\n---\nCommit often.\n",
    "skill://acme/billing/refunds/SKILL.md": "---\nname: refunds\ndescription: Refund\n---\nSee examples/email.md\n",
    "skill://acme/billing/refunds/examples/email.md": "Dear customer",
    f"skill://{options.name}/own/SKILL.md": f"---\nname: own\ndescription: Of {options.name}\n---\nOwn text.\n",
    f"skill://{options.name}/hidden/SKILL.md": "---\nname: hidden\ndescription: Not listed\n---\nHidden.\n",
}
ROOTS = [uri.removesuffix("/SKILL.md") for uri in FILES if uri.endswith("/SKILL.md")]
TOOLS = [
    {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object", "properties": {}}}
    for name in ("report", "hello_world", "declared", "ask_slowly")
]
if options.handshake:
    TOOLS[0]["execution"] = TOOLS[1]["execution"] = {"taskSupport": "optional"}
writing = threading.Lock()
tasks: dict[str, Message] = {}
declared: Message = {}
coming: dict[str, Any] = {}
numbers = itertools.count(1)


class RefusedError(Exception):
    """An error of the protocol."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({} if data is None else {"data": data})}


def write(message: Message) -> None:
    with writing:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def capabilities() -> Message:
    core: Message = {"tools": {}, "resources": {}}
    if options.plain:
        return core
    skills = {} if options.no_directories else {"directoryRead": True}
    extensions: Message = {SKILLS: skills, OWN: {"kinds": [options.name]}, f"{PREFIX}oauth-client-credentials": {}}
    more: Message = {"experimental": {"x-preview": {}}}
    if options.handshake:
        more["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    else:
        extensions[TASKS] = {}
    return {**core, **more, "extensions": extensions}


# -- skills ----------------------------------------------------------------------------------------


def skill(root: str) -> Message:
    lines = FILES[f"{root}/SKILL.md"].split("\n")
    frontmatter = dict(line.split(": ", 1) for line in lines[1:3])
    files = [
        {"uri": uri, "digest": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}", "size": len(text)}
        for uri, text in FILES.items()
        if uri.startswith(f"{root}/")
    ]
    dynamic = root.endswith("/own")
    return {"uri": f"{root}/SKILL.md", "frontmatter": frontmatter, "resources": "dynamic" if dynamic else files}


def cacheable(result: Message) -> Message:
    return {**result, "ttlMs": 300000, "cacheScope": "public"}


def list_skills(params: Message) -> Message:
    """List two skills a page, all but the hidden one."""
    start, listed = int(params.get("cursor") or 0), [root for root in ROOTS if not root.endswith("/hidden")]
    more = {"nextCursor": str(start + 2)} if start + 2 < len(listed) else {}
    return cacheable({"skills": [skill(root) for root in listed[start : start + 2]], **more})


def get_skill(params: Message) -> Message:
    root = params["uri"].removesuffix("/SKILL.md")
    if root not in ROOTS:
        raise RefusedError(-32602, f"No skill is served at {params['uri']}")
    return cacheable({"skill": skill(root)})


def read_directory(params: Message) -> Message:
    root = params["uri"]
    inside = [uri.removeprefix(f"{root}/") for uri in FILES if uri.startswith(f"{root}/")]
    if not inside or options.no_directories:
        raise RefusedError(-32602, f"{root} is not a directory resource")
    children = []
    for name, slash in dict.fromkeys((path.partition("/")[0], "/" in path) for path in inside):
        children.append(
            {"uri": f"{root}/{name}", "name": name, "mimeType": "inode/directory" if slash else "text/plain"}
        )
    return {"resources": children}


def read(params: Message) -> Message:
    if params["uri"] not in FILES:
        raise RefusedError(-32602, f"nothing at {params['uri']}")
    return cacheable({"contents": [{"uri": params["uri"], "text": FILES[params["uri"]]}]})


# -- tasks -----------------------------------------------------------------------------------------


def begin_task(tool: str, params: Message) -> Message:
    """Begin a task whose id is as short as another server's may be."""
    number = str(len(tasks) + 1)
    state = {"taskId": number, "status": "working", "createdAt": "2025-11-25T10:30:00Z",
             "lastUpdatedAt": "2025-11-25T10:40:00Z"}  # fmt: skip
    if options.handshake:
        state |= {"ttl": params.get("task", {}).get("ttl"), "pollInterval": 50}
    else:
        state |= {"ttlMs": 60000, "pollIntervalMs": 50}
    tasks[number] = {"tool": tool, "polls": 0, "state": state}
    return state


def finish(task: Message, text: str) -> None:
    task["state"]["status"] = "completed"
    task["result"] = {"content": [{"type": "text", "text": text}], "isError": False}
    if options.handshake:
        write({"method": "notifications/tasks/status", "params": dict(task["state"])})


def known_task(params: Message) -> Message:
    if params.get("taskId") not in tasks:
        raise RefusedError(-32602, "Failed to retrieve task: Task not found")
    return tasks[params["taskId"]]


def get_task(params: Message) -> Message:
    """Answer a poll: the second one of a report finds it done; a greeting wants a name first."""
    task = known_task(params)
    task["polls"] += 1
    state = task["state"]
    if task["tool"] == "hello_world" and not options.handshake and state["status"] == "working":
        state["status"] = "input_required"
        form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        asked = {"mode": "form", "message": "Please enter your name.", "requestedSchema": form}
        task["inputRequests"] = {"name": {"method": "elicitation/create", "params": asked}}
    elif task["tool"] == "report" and task["polls"] == 2 and state["status"] == "working":
        finish(task, f"report of {options.name}")
    more = {"inputRequests": task["inputRequests"]} if state["status"] == "input_required" else {}
    if state["status"] == "completed" and not options.handshake:
        more["result"] = task["result"]
    return {**state, **more}


def update_task(params: Message) -> Message:
    task = known_task(params)
    finish(task, f"Hello, {params['inputResponses']['name']['content']['name']}!")
    return {}


def cancel_task(params: Message) -> Message:
    task = known_task(params)
    task["state"]["status"] = "cancelled"
    return dict(task["state"]) if options.handshake else {}


def list_tasks(params: Message) -> Message:
    return {"tasks": [task["state"] for task in tasks.values()]}


def task_result(params: Message) -> Message:
    """Answer with the result of a task; a greeting asks the client for a name meanwhile."""
    task, related = known_task(params), {f"{PREFIX}related-task": {"taskId": params["taskId"]}}
    if task["tool"] == "hello_world":
        form = {"type": "object", "properties": {"name": {"type": "string"}}}
        asked = {"message": "Please enter your name.", "requestedSchema": form, "_meta": related}
        finish(task, f"Hello, {ask('elicitation/create', asked)['content']['name']}!")
    if "result" not in task:
        finish(task, f"report of {options.name}")
    return {**task["result"], "_meta": related}


def ask(method: str, params: Message) -> Message:
    """Ask the client and return what it answers."""
    number = f"ask-{next(numbers)}"
    arrived = coming[number] = threading.Event()
    write({"id": number, "method": method, "params": params})
    arrived.wait(30)
    answer = coming.pop(number)
    if "error" in answer:
        raise RefusedError(-32603, f"the client refused {method}: {answer['error']['message']}")
    return answer["result"]


def ask_slowly() -> Message:
    """Let the client make a task of a question, and fetch its result."""
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    asked = {"message": "Who?", "requestedSchema": form, "task": {"ttl": 60000}}
    begun = ask("elicitation/create", asked)["task"]
    state = ask("tasks/get", {"taskId": begun["taskId"]})
    answer = ask("tasks/result", {"taskId": begun["taskId"]})
    return {"content": [{"type": "text", "text": f"{state['status']}: {answer['content']['name']}"}]}


# -- the rest --------------------------------------------------------------------------------------


def call(params: Message) -> Message:
    tool, own = params["name"], client_of(params)
    if tool == "declared":
        return {"content": [{"type": "text", "text": json.dumps(own, sort_keys=True)}]}
    if tool == "ask_slowly":
        return ask_slowly()
    if options.handshake:
        if "task" in params:
            return {"task": begin_task(tool, params)}
        return {"content": [{"type": "text", "text": f"{tool} at once"}]}
    if TASKS not in own.get("extensions", {}):
        needed = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        raise RefusedError(-32021, "Missing required client capability", needed)
    return {"resultType": "task", **begin_task(tool, params)}


def client_of(params: Message) -> Message:
    """Return what the client can do, as it says in its handshake or in each request."""
    return declared if options.handshake else params.get("_meta", {}).get(f"{PREFIX}clientCapabilities", {})


def begin(params: Message) -> Message:
    declared.update(params["capabilities"])
    return {"protocolVersion": "2025-11-25", "capabilities": capabilities(), "serverInfo": about()}


def discover(params: Message) -> Message:
    return cacheable({"supportedVersions": [MODERN], "capabilities": capabilities(), "serverInfo": about()})


def about() -> Message:
    return {"name": options.name, "version": "1"}


ANSWERS: dict[str, Any] = {
    "tools/list": lambda _: cacheable({"tools": TOOLS}),
    "tools/call": call,
    "resources/list": lambda _: cacheable({"resources": []}),
    "resources/templates/list": lambda _: cacheable({"resourceTemplates": []}),
    "resources/read": read,
    "ping": lambda _: {},
    **({"initialize": begin} if options.handshake else {"server/discover": discover}),
}
if not options.plain:
    ANSWERS |= {
        "skills/list": list_skills,
        "skills/get": get_skill,
        "resources/directory/read": read_directory,
        "tasks/get": get_task,
        "tasks/cancel": cancel_task,
        "notes/count": lambda _: {"count": len(FILES), "of": options.name},
        "notes/find": lambda params: {"uri": params["uri"], "of": options.name},
        "notes/about": lambda params: {"tool": params["name"], "of": options.name},
    }
    ANSWERS |= {"tasks/list": list_tasks, "tasks/result": task_result} if options.handshake else {}
    ANSWERS |= {} if options.handshake else {"tasks/update": update_task}


def answer(message: Message) -> None:
    if options.log:
        with options.log.open("a") as file:
            file.write(json.dumps([message["method"], message.get("params", {})]) + "\n")
    try:
        if message["method"] not in ANSWERS:
            raise RefusedError(-32601, "Method not found")
        result = ANSWERS[message["method"]](message.get("params") or {})
    except RefusedError as refused:
        write({"id": message["id"], "error": refused.error})
        return
    stamp: Message = {} if options.handshake else {"resultType": "complete"}
    result = {**stamp, **result}
    if options.handshake:
        for key in ("ttlMs", "cacheScope"):
            result.pop(key, None)
    write({"id": message["id"], "result": result})


for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        waiting = coming[message["id"]]
        coming[message["id"]] = message
        waiting.set()
    elif "id" in message:
        threading.Thread(target=answer, args=(message,), daemon=True).start()
