"""What Pegboard relies on of other packages beyond their documented interface, so that a new release fails here first.

Each line names the part, and what of Pegboard rests on it: when one fails, read that first.
"""

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

from pegboard.support import mcp_constants

SOURCE = Path(__file__).resolve().parent.parent / "src" / "pegboard"


@dataclass(frozen=True)
class Part:
    """A part of another package: where it is looked for, what has to be there, and who rests on it."""

    package: str
    where: str
    text: str
    rests_on_it: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


def source_of(where: str) -> str:
    """Return the source of ``module`` or ``module:name`` or ``module:Class.method``."""
    module, _, name = where.partition(":")
    found: object = import_module(module)
    for step in name.split(".") if name else ():
        found = getattr(found, step)
    return inspect.getsource(found)  # type: ignore[arg-type]


STREAMABLE = "mcp.client.streamable_http"
TEXTS = [
    Part("mcp", "mcp.server.session:ServerSession", "self._connection =",
         "gateway/clients/handshake.py: the connection of a request, for lists, logs and questions"),
    Part("mcp", "mcp.server.session:ServerSession.send_request", "self._request_outbound if related is not None",
         "gateway/clients/sdk_stream.py: what is asked goes on the stream of its call, and its answer is not judged"),
    Part("mcp", "mcp.server.lowlevel.server:Server.get_request_handler", "self._request_handlers.get(method)",
         "gateway/handlers/server.py: one handler has whatever may be a request of an extension"),
    Part("mcp", "mcp.server.runner:ServerRunner._on_request", "call = self._compose_server_middleware(_inner)",
         "gateway/handlers/answers.py: a handler runs in the context of the middleware around it"),
    Part("mcp", "mcp.server.runner:ServerRunner._serialize", "_methods.serialize_server_result(",
         "gateway/handlers/answers.py: results are validated against models, which drop keys"),
    Part("mcp", "mcp.server.connection:Connection", "initialize_accepted",
         "gateway/clients/handshake.py: no call goes around the SDK before its handshake is done"),
    Part("mcp", "mcp.server.connection:Connection", "exit_stack",
         "gateway: what is kept for a connection is removed when it closes"),
    Part("mcp", "mcp.server.lowlevel.server:Server", "def server_info_stamp",
         "gateway/fast/tools_call.py: an answer names the server as the SDK does"),
    Part("mcp", "mcp.server.streamable_http_manager", "AuthenticatedUser",
         "gateway/http/asgi.py: a transport session answers nobody but its owner"),
    Part("mcp", "mcp.server.streamable_http_manager:StreamableHTTPSessionManager._handle_stateful_request",
         "http_transport = self._admit_session(requestor)",
         "gateway/replicas/sessions.py: the id of a transport session names its replica"),
    Part("mcp", "mcp.server.streamable_http_manager:StreamableHTTPSessionManager._admit_session",
         "self._server_instances[session_id] = http_transport",
         "gateway/replicas/sessions.py: a session is known by its id alone"),
    Part("mcp", "mcp.server.streamable_http_manager:StreamableHTTPSessionManager._admit_session",
         "self._session_owners[session_id] = requestor",
         "gateway/replicas/sessions.py: a session is known by its id alone"),
    Part("mcp", "mcp.shared.jsonrpc_dispatcher", 'self._read_stream, "last_context"',
         "sources/mcp/wire: a stream around the SDK's carries the context of the sender on"),
    Part("mcp", STREAMABLE, 'f"Failed to parse JSON response: {',
         "sources/mcp: an answer that is no message fails its call, not the connection"),
    Part("mcp", STREAMABLE, 'f"Failed to parse SSE message: {',
         "sources/mcp: an event that is no message fails its call, not the connection"),
    Part("mcp", STREAMABLE, 'f"SSE stream failed: {', "sources/mcp: an event over the limit is reported as that"),
    Part("mcp", STREAMABLE, '"SSE stream ended without a response"',
         "sources/mcp: a stream that breaks off is told from a refusal"),
    Part("mcp", STREAMABLE, '"SSE stream ended and reconnection attempts were exhausted"',
         "sources/mcp: a stream that breaks off is told from a refusal"),
    Part("httpx2", "httpx2._client:AsyncClient.__init__", "proxy_map = self._get_proxy_map(proxy, allow_env_proxies)",
         "sources/mcp/proxies.py: a proxy of the environment is made when an address needs it"),
    Part("httpx2", "httpx2._client:AsyncClient.__init__", "else self._init_proxy_transport(",
         "sources/mcp/proxies.py: a proxy of the environment is made when an address needs it"),
    Part("httpx2", "httpx2._utils:get_environment_proxies", "def get_environment_proxies() -> dict[str, str | None]:",
         "sources/mcp/proxies.py: which proxy is for which addresses"),
    Part("httpx2", "httpx2._sse", "Server-sent event exceeded the",
         "sources/mcp: an event over the limit is reported as that"),
    Part("agno", "agno.tools.function:Function._per_run_copy", "private_attr.get_default()",
         "frameworks/agno/: the copy of the session's function for a run knows nothing of another run"),
    Part("agno", "agno.agent._tools:determine_tools_for_model", "func._run_context = run_context",
         "frameworks/agno/: the session's function knows the run, its session and its user"),
    Part("agno", "agno.models.base:Model._format_tools", '{"type": "function", "function": tool.to_dict()}',
         "frameworks/agno/: the session's function is known again in the request"),
    Part("agno", "agno.models.base:Model.aresponse", "tools=_tool_dicts,",
         "frameworks/agno/: each request of a run has the list of its beginning, which the twin replaces"),
    Part("agno", "agno.models.base:Model._prepare_function_calls", "messages=messages, functions=functions",
         "frameworks/agno/: the calls of a batch are looked up where the twin adds the session's"),
    Part("agno", "agno.agent._tools:arun_tool", "skip_pause_check=True",
         "frameworks/agno/: a call that a person has approved does not make its run wait again"),
    Part("agents", "agents.run_internal.run_loop:run_single_turn", "all_tools=all_tools",
         "frameworks/openai_agents/: the list of a request is the one by which its answer's calls are looked up"),
    Part("agents", "agents.run_internal.run_loop:run_single_turn_streamed", "all_tools=all_tools",
         "frameworks/openai_agents/: the same, where an answer is streamed"),
    Part("agents", "agents.run_internal.run_loop:cleanup_models_after_run",
         "await model._cleanup_on_run_end(tool_use_tracker)",
         "frameworks/openai_agents/: the end of a run, whatever became of it"),
    Part("agents", "agents.models._run_context", "def get_model_run_owner",
         "frameworks/openai_agents/: which run a request is of, by what is handed in with its end"),
    Part("agents", "agents.run_internal.prompt_cache_key:_model_supports_default_prompt_cache_key",
         '"_supports_default_prompt_cache_key"',
         "frameworks/openai_agents/: a model that is named has the SDK's key for the provider's cache"),
    Part("agents", "agents.models.openai_chatcompletions:OpenAIChatCompletionsModel.stream_response",
         "response, stream = await self._fetch_response(",
         "frameworks/openai_agents/: why a completion has ended, which the SDK tells nobody"),
    Part("pydantic-ai-slim", "pydantic_ai.models:StreamedResponse.__aiter__", "return self._event_iterator",
         "frameworks/pydantic_ai/: a stream whose first event the framework has read hands it out again"),
    Part("uvicorn", "uvicorn.protocols.http.httptools_impl:HttpToolsProtocol.on_headers_complete",
         "self.cycle = RequestResponseCycle(", "gateway/http/connections.py: whether a request is in flight"),
    Part("uvicorn", "uvicorn.protocols.http.httptools_impl:HttpToolsProtocol.on_message_complete",
         "self.cycle.more_body = False", "gateway/http/connections.py: whether a body is there"),
    Part("uvicorn", "uvicorn.server:Server.serve", "with self.capture_signals():",
         "gateway/http/run.py: signals are left to whoever runs the gateway"),
    Part("uvicorn", "uvicorn.server:Server.on_tick", "self.should_exit", "gateway/http/run.py: it stops on request"),
    Part("uvicorn", "uvicorn.server:Server.startup", "self.started = True", "gateway/http/run.py: it is up"),
    Part("pydantic-ai-slim", "pydantic_ai._run_context:get_current_run_context", "_CURRENT_RUN_CONTEXT.get()",
         "sources/pydantic_ai_toolsets.py: a tool finds the run of the agent that calls it"),
    Part("agno", "agno.agent._tools", "func._run_context = run_context",
         "sources/agno/run_contexts.py: a function finds whose call it is where an agent of Agno puts it"),
]  # fmt: skip
NAMES = [
    ("mcp.shared.dispatcher", "coerce_request_id", "an id that is a number as text counts as the number"),
    ("mcp.shared.inbound", "ERROR_CODE_HTTP_STATUS", "the HTTP status of an error around the SDK is the SDK's"),
    ("mcp.shared.inbound", "encode_header_value", "headers of a call around the SDK are the SDK's"),
    ("mcp.shared.message", "ServerMessageMetadata", "a question goes out on the stream of its call"),
    ("mcp_types.methods", "validate_client_request", "an envelope around the SDK is judged by the SDK's models"),
    ("mcp_types.methods", "validate_server_result", "one bad tool is found by the SDK's models"),
    ("opentelemetry.trace", "ProxyTracerProvider", "a process that traces its requests is known by it"),
    ("atexit", "_run_exitfuncs", "the process of a plugin ends as its code wants, whatever threads still run"),
    ("httptools", "HttpResponseParser", "answers over HTTP are parsed around the SDK"),
]  # fmt: skip
CONSTANTS: dict[str, Callable[[], object]] = {
    "VERSION_KEY": lambda: import_module("mcp_types").PROTOCOL_VERSION_META_KEY,
    "CAPABILITIES_KEY": lambda: import_module("mcp_types").CLIENT_CAPABILITIES_META_KEY,
    "CLIENT_KEY": lambda: import_module("mcp_types").CLIENT_INFO_META_KEY,
    "SERVER_KEY": lambda: import_module("mcp_types").SERVER_INFO_META_KEY,
    "LOG_LEVEL_KEY": lambda: import_module("mcp_types").LOG_LEVEL_META_KEY,
    "SUBSCRIPTION_KEY": lambda: import_module("mcp.shared.subscriptions").SUBSCRIPTION_ID_META_KEY,
    "MODERN": lambda: import_module("mcp_types.version").LATEST_MODERN_VERSION,
    "HANDSHAKE_VERSIONS": lambda: frozenset(import_module("mcp_types.version").HANDSHAKE_PROTOCOL_VERSIONS),
    "INVALID_REQUEST": lambda: import_module("mcp_types").INVALID_REQUEST,
    "INVALID_PARAMS": lambda: import_module("mcp_types").INVALID_PARAMS,
    "INTERNAL_ERROR": lambda: import_module("mcp_types").INTERNAL_ERROR,
    "URL_ELICITATION_REQUIRED": lambda: import_module("mcp_types").URL_ELICITATION_REQUIRED,
}
OURS = {"META_PREFIX", "PEGBOARD_PREFIX", "SESSION_KEY", "TURN_KEY"}
NOT_IN_THE_SDK = {
    "SKILLS_EXTENSION",
    "TASKS_EXTENSION",
    "RELATED_TASK_KEY",
    "UI_EXTENSION",
    "UI_MIME_TYPE",
    "ALWAYS_LOAD_KEY",
}


@pytest.mark.parametrize("part", TEXTS, ids=str)
def test_a_part_that_is_relied_upon_is_there(part: Part) -> None:
    assert part.text in source_of(part.where), (
        f"{part.package} {version(part.package)} has no {part.text!r} in {part.where} any more. {part.rests_on_it}."
    )


@pytest.mark.parametrize(("module", "name", "why"), NAMES)
def test_an_undocumented_name_that_is_relied_upon_is_there(module: str, name: str, why: str) -> None:
    package = module.partition(".")[0].replace("_", "-")
    assert hasattr(import_module(module), name), f"{package} has no {module}.{name} any more: {why}."


def test_constants_of_the_protocol_are_those_of_the_sdk() -> None:
    """They stand in one module that needs no SDK; here they are compared, every one."""
    names = {name for name in vars(mcp_constants) if name.isupper()}
    assert names == CONSTANTS.keys() | OURS | NOT_IN_THE_SDK
    assert {name: getattr(mcp_constants, name) for name in CONSTANTS} == {n: find() for n, find in CONSTANTS.items()}
    assert all(value.startswith(mcp_constants.META_PREFIX) for n, value in vars(mcp_constants).items() if n in META)


META = {"VERSION_KEY", "CAPABILITIES_KEY", "CLIENT_KEY", "SERVER_KEY", "LOG_LEVEL_KEY", "SUBSCRIPTION_KEY"}


def test_reserved_keys_are_written_in_one_module() -> None:
    """Everywhere else they are names of :mod:`pegboard.support.mcp_constants`."""
    spelled = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in SOURCE.rglob("*.py")
        if path.name != "mcp_constants.py"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        and node.value.startswith(mcp_constants.META_PREFIX)
    ]  # fmt: skip
    assert spelled == []


def test_every_private_attribute_that_is_touched_is_named_here() -> None:
    """Whoever silences the linter for another package's private attribute adds a line above."""
    touched = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in sorted(SOURCE.rglob("*.py"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if "SLF001" in line and path.relative_to(SOURCE).parts[0] in ("gateway", "sources")
    ]
    assert [where.partition(":")[0] for where in touched] == [
        "gateway/clients/handshake.py",
        "gateway/clients/sdk_stream.py",
        "sources/plugin_process/child/serving.py",
        "sources/signatures/running_lines.py",
    ]
