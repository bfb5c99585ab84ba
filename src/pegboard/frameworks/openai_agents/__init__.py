"""OpenAI Agents: an agent that has the tools of a session, again before every model call.

The SDK asks an agent for its tools at each step, and a tool for approval before its call; `equip` answers both from a
session. What the model is to know behind the history, and a call of a tool that it was not shown, go through a twin of
its model. The loop, the history and the state of a run stay the SDK's.
"""

from __future__ import annotations

from pegboard.frameworks.versions import warn_if_untested

warn_if_untested("openai-agents")
try:
    from pegboard.frameworks.openai_agents.delegation import delegate_to
    from pegboard.frameworks.openai_agents.equipping import equip
except ImportError as error:
    from pegboard.support.installed import install_line

    raise ImportError(f"OpenAI Agents is missing. Install it: {install_line(extra='openai-agents')}") from error

__all__ = ["delegate_to", "equip"]
