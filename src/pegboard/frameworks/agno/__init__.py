"""Agno: an agent or a team that has the tools of a session, again before every model call.

Agno fixes the tools of a run before its loop, so these go around it. The agent gets one function that stands for its
session; a twin of its model puts into each request what the session has then, and lets the session answer every call.
The loop, the history and the answer stay Agno's: one run, one model, and what is loaded is there at the next request.
"""

from __future__ import annotations

from pegboard.frameworks.versions import warn_if_untested

warn_if_untested("agno")
try:
    from pegboard.frameworks.agno.configured_agents import agno_agent
    from pegboard.frameworks.agno.delegation import delegate_to
    from pegboard.frameworks.agno.equipping import equip
except ImportError as error:
    from pegboard.support.installed import install_line

    raise ImportError(f"Agno is missing. Install it: {install_line(extra='agno')}") from error

__all__ = ["agno_agent", "delegate_to", "equip"]
