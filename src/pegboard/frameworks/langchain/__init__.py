"""LangChain and LangGraph: a middleware that gives an agent the tools of a session, again before every model call.

``create_agent(model, middleware=[SessionTools(session)])`` is all that an agent needs. A call that a person
approves is an ``interrupt()`` inside it: with a checkpointer it outlives the process, and is answered by
``Command(resume=…)``.
"""

from __future__ import annotations

from pegboard.frameworks.versions import warn_if_untested

warn_if_untested("langchain")
try:
    from pegboard.frameworks.langchain.delegation import delegate_to
    from pegboard.frameworks.langchain.session_tools import SessionTools
except ImportError as error:
    from pegboard.support.installed import install_line

    raise ImportError(f"LangChain is missing. Install it: {install_line(extra='langchain')}") from error

__all__ = ["SessionTools", "delegate_to"]
