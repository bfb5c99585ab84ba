"""pydantic-ai: a capability that gives an agent the tools of a session, again before every model call.

``Agent(model, capabilities=[SessionTools(session)])`` is all that an agent needs. What a load adds reaches the
provider by the framework's own record of tools that joined; approvals are its deferred tool requests.
"""

from __future__ import annotations

from pegboard.frameworks.versions import warn_if_untested

warn_if_untested("pydantic-ai-slim")
try:
    from pegboard.frameworks.pydantic_ai.capability import SessionTools
    from pegboard.frameworks.pydantic_ai.delegation import delegate_to
except ImportError as error:
    from pegboard.support.installed import install_line

    raise ImportError(f"pydantic-ai is missing. Install it: {install_line(extra='pydantic-ai')}") from error

__all__ = ["SessionTools", "delegate_to"]
