"""Why plugins cannot run now: the same reasons for operators and for `pegboard check` (P6)."""

from __future__ import annotations

from collections.abc import Container

from pegboard.core.model.tools import Plugin


def reasons(plugin: Plugin, *, without: Container[str] = ()) -> tuple[str, ...]:
    """Return why a plugin, or a tool of it, cannot run, as far as that is known of any session.

    Args:
        plugin: the plugin.
        without: the keys of variants of which something else is reported.
    """
    variants = (variant.unavailable for key, variant in plugin.variants.items() if key not in without)
    tools = (f"tool '{tool.name}': {tool.unavailable}" for tool in plugin.tools if tool.unavailable)
    return tuple(dict.fromkeys(filter(None, (*variants, *tools))))
