"""What adapters share: one run of an agent over a session, for frameworks that know nothing of what comes and goes."""

from pegboard.frameworks.runs.decisions import (
    about_login,
    answer_allowed_call,
    record_decision,
    type_of_field,
    waits_since_before,
)
from pegboard.frameworks.runs.request_tools import (
    arguments_of,
    chosen_tool,
    fit_list,
    function_of,
    load_chosen,
    loaded_outside_list,
    own_arguments,
    prefix_of,
    reject_tools,
    rejected_of,
    tool_for,
    tool_to_choose,
    why_misnamed_call,
)
from pegboard.frameworks.runs.results import FILE_LIMIT, data_url, text_and_media
from pegboard.frameworks.runs.session_run import SessionRun, StepRequest
from pegboard.frameworks.runs.sessions import AnySession, SessionFunction, in_event_loop, worker_of
from pegboard.frameworks.runs.turns import ReportedUsage, end_turns
from pegboard.frameworks.runs.twins import make_twin
from pegboard.frameworks.runs.warnings import warn_once

__all__ = [
    "FILE_LIMIT",
    "AnySession",
    "ReportedUsage",
    "SessionFunction",
    "SessionRun",
    "StepRequest",
    "about_login",
    "answer_allowed_call",
    "arguments_of",
    "chosen_tool",
    "data_url",
    "end_turns",
    "fit_list",
    "function_of",
    "in_event_loop",
    "load_chosen",
    "loaded_outside_list",
    "make_twin",
    "own_arguments",
    "prefix_of",
    "record_decision",
    "reject_tools",
    "rejected_of",
    "text_and_media",
    "tool_for",
    "tool_to_choose",
    "type_of_field",
    "waits_since_before",
    "warn_once",
    "why_misnamed_call",
    "worker_of",
]
