"""What goes to a model at a step, and what a client reads once (F1, F2)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from pegboard.board.meta_tools import (
    dialect_of,
    hint_form,
    hints_to_show,
    meta_tools,
    runnable_host_tools,
    session_hints,
    starting_meta_tools,
)
from pegboard.board.observability.metrics import SentTexts
from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo
from pegboard.board.snapshot import Snapshot, UnfocusedSurface, view_of
from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.model.delivery import Host
from pegboard.core.model.tools import EMPTY, JsonObject, Tool
from pegboard.core.state.active_tools import loadable
from pegboard.core.state.requirements import unknown_plugins, usable
from pegboard.core.state.sessions import DEFAULT, ShownHints, State
from pegboard.core.surface import policy
from pegboard.core.surface.definitions import definitions_ahead
from pegboard.core.surface.focus import MESSAGE, Directive, directive, members, overlay, parse_answer, rules
from pegboard.core.surface.hints import hints_since
from pegboard.core.surface.policy import HookedPolicy, Written
from pegboard.core.surface.surfaces import Costs, Focus, Surface, resolve, suffix
from pegboard.errors import UsageError
from pegboard.ports import FocusRules

log = logging.getLogger("pegboard")


def checked_message(message: object) -> str | None:
    """Return the user's message; raises ``UsageError`` for what is neither a text nor None."""
    if message is None or isinstance(message, str):
        return message
    raise UsageError(
        f"The message is of the type '{type(message).__name__}', not a text.",
        hint="It is the text that the user wrote, or None.",
    )


async def surface(services: Services, snapshot: Snapshot, message: str | None, *, loaded: bool) -> Surface:
    """Return what goes to the model at this step; without ``loaded`` the part that no load changes."""
    info = snapshot.info
    shown = session_hints(services, info, snapshot.permissions, snapshot.state) if _is_hinted(info) else None
    rendered = await _known_or_rendered(services, snapshot, shown, loaded=loaded)
    focus = await _focus_of(services, snapshot.permissions, rendered, message) if loaded else None
    _note_policy(snapshot, rendered.policy)
    services.metrics.count_surface(info.key, rendered)
    services.live.note(info)
    return rendered if focus is None else replace(rendered, focus=focus)


async def surface_to_come(services: Services, snapshot: Snapshot) -> Surface:
    """Return what would go to the model next, for whoever only looks: nothing of it counts as shown."""
    info = snapshot.info
    shown = hints_to_show(services, info, snapshot.permissions, snapshot.state) if _is_hinted(info) else None
    return await _render_surface(services, snapshot, shown, loaded=True)


def _is_hinted(info: SessionInfo) -> bool:
    """Return whether a surface has hints: over MCP meta-tools have them, and without an id nothing can be loaded."""
    return info.stable and not info.host.calls_through


async def _known_or_rendered(
    services: Services, snapshot: Snapshot, shown: ShownHints | None, *, loaded: bool
) -> Surface:
    """Return a surface with its texts: the newest of the session as long as all that it was made of is the same.

    What hooks write is asked for again each time, since one that failed may not fail again.
    """
    permissions, state = snapshot.permissions, snapshot.state
    if policy.has_hooks(permissions):
        return await _render_surface(services, snapshot, shown, loaded=loaded)
    made_of = (
        permissions,
        state,
        snapshot.info,
        shown,
        runnable_host_tools(services, permissions),
        services.masker.forms,
    )
    known = snapshot.rendered.get(loaded)
    if known is None or known.made_of != made_of:
        rendered = await _render_surface(services, snapshot, shown, loaded=loaded)
        known = snapshot.rendered[loaded] = UnfocusedSurface(made_of=made_of, surface=rendered)
    return known.surface


async def _render_surface(services: Services, snapshot: Snapshot, shown: ShownHints | None, *, loaded: bool) -> Surface:
    """Return a surface with its texts; over MCP hints stand in the meta-tools (None)."""
    info, permissions, state = snapshot.info, snapshot.permissions, snapshot.state
    found = resolve(
        permissions,
        state,
        session=info.key.session if info.stable else None,
        meta=meta_tools(services, info, view_of(services, snapshot)),
        host_tools=runnable_host_tools(services, permissions),
        fixed=info.host.list_is_fixed,
    )
    rendered = replace(
        found,
        hints=shown.lines if shown is not None else (),
        suffix=await _suffix(services, snapshot, found, shown) if loaded else "",
        ahead=definitions_ahead(found.anticipated) if loaded and info.host.list_is_fixed else "",
        policy=await _initial(services, permissions, state),
    )
    return replace(rendered, count=lambda: _costs(services, permissions, rendered))


async def _initial(services: Services, permissions: CompiledPermissions, state: State) -> str:
    """Return the policy of what is loaded from the start, without secrets."""
    if policy.hooked_at_start(permissions, state):
        return await initial_policy(services, permissions, state)
    return policy.without_secrets(services.masker, permissions, policy.initial(permissions, state))


async def _suffix(services: Services, snapshot: Snapshot, found: Surface, shown: ShownHints | None) -> str:
    """Return what follows the history: what is loaded, what has become known since the hints, and policy.

    The policy is that of what joined ahead of being asked for in this turn (T6).
    """
    permissions, state = snapshot.permissions, snapshot.state
    ahead = await later_policy(services, permissions, state, found.anticipated) if found.anticipated else ""
    since = "\n".join(_lines_of_news(services, snapshot, shown)) if shown is not None else ""
    texts = (
        suffix(permissions, state, revealed=snapshot.info.host.reveals),
        f"Also available now:\n{since}" if since else "",
        ahead,
    )
    return "\n\n".join(text for text in texts if text)


def _lines_of_news(services: Services, snapshot: Snapshot, shown: ShownHints) -> tuple[str, ...]:
    """Return the lines on what the hints of the session do not know; over MCP they know everything (F2)."""
    info, permissions, state = snapshot.info, snapshot.permissions, snapshot.state
    form = hint_form(services, permissions, info.host)
    return hints_since(permissions, shown, services.counter.count, state=state, form=form)


def sent_texts(rendered: Surface) -> SentTexts:
    """Return the tools of a surface, and the texts that go with them."""
    texts = (*rendered.hints, rendered.suffix, rendered.ahead, rendered.policy)
    return tuple([loaded.tool for loaded in rendered.tools]), tuple([text for text in texts if text])


@once_per_permissions
def sent_at_start(permissions: CompiledPermissions, services: Services, host: Host, stable: bool) -> SentTexts:
    """Return what is sent of an agent to a client that calls through, as long as nothing is loaded (G4)."""
    meta = starting_meta_tools(services, permissions, host, stable=stable)
    found = resolve(
        permissions,
        DEFAULT,
        session=None,
        meta=meta,
        host_tools=runnable_host_tools(services, permissions),
        fixed=host.list_is_fixed,
    )
    text = policy.without_secrets(services.masker, permissions, policy.initial(permissions, DEFAULT))
    return sent_texts(replace(found, policy=text))


def _costs(services: Services, permissions: CompiledPermissions, rendered: Surface) -> Costs:
    """Return what a surface costs, with a real tokenizer, against everything that the agent may use (F4)."""
    tools = services.prices(loaded.tool for loaded in rendered.tools)
    count = services.counter.count
    text = services.prices.texts(rendered.hints) + sum(
        count(t) for t in (rendered.suffix, rendered.ahead, rendered.policy) if t
    )
    catalog, unknown = _catalog_tokens(permissions, services), unknown_plugins(permissions)
    total = tools + text
    saved = None if unknown else catalog - total
    return Costs(tools=tools, text=text, total=total, catalog=catalog, saved=saved, unknown=unknown)


@once_per_permissions
def _catalog_tokens(permissions: CompiledPermissions, services: Services) -> int:
    return services.prices(usable(permissions))


async def instructions(services: Services, snapshot: Snapshot) -> str:
    """Return what a client reads once: how to find more tools, and the policy of what is loaded (F2, T6)."""
    permissions = snapshot.permissions
    initial = await _initial(services, permissions, snapshot.state)
    _note_policy(snapshot, initial)
    if not (snapshot.info.stable and loadable(permissions)):
        return initial
    names = [tool.wire for tool in dialect_of(services, permissions).tools(view_of(services, snapshot))]
    how = (
        f"More tools than are listed can be had. Use {', '.join(names)} to find and load them, "
        "then call them by name or through call_tool."
    )
    return f"{how}\n\n{initial}" if initial else how


def _note_policy(snapshot: Snapshot, policy: str) -> None:
    """Note which policy a client that calls through had first: it reads instructions only when it connects."""
    if snapshot.info.host.calls_through and snapshot.info.conversation.policy is None:
        snapshot.info.conversation.policy = policy


async def changed_policy(services: Services, snapshot: Snapshot) -> str:
    """Return, once, the policy of what is loaded from the start where a client was given another (T6, P4)."""
    given = snapshot.info.conversation.policy
    if given is None:
        return ""
    now = await _initial(services, snapshot.permissions, snapshot.state)
    if now == given:
        return ""
    snapshot.info.conversation.policy = now
    return f"{_NEW_POLICY}\n{now}" if now else _NO_POLICY


_NEW_POLICY: Final = "The rules for the tools that are loaded from the start have changed. Now they are:"
_NO_POLICY: Final = "The rules for the tools that are loaded from the start no longer apply."


async def _focus_of(
    services: Services, permissions: CompiledPermissions, surface: Surface, message: str | None
) -> Focus | None:
    """Return the focus that a message asks for by the rules of the toolkits, or None (F3)."""
    if message is None or services.focus is None:
        return None
    bounded = message[:MESSAGE]
    asked = [
        await _focus_of_rule(services, services.focus, permissions, surface, toolkit, rule, bounded)
        for toolkit, rule in rules(permissions)
    ]
    return overlay(surface, (one for one in asked if one is not None))


async def _focus_of_rule(
    services: Services,
    judge: FocusRules,
    permissions: CompiledPermissions,
    surface: Surface,
    toolkit: str,
    rule: JsonObject,
    message: str,
) -> Directive | None:
    hook: Any = rule.get("python")
    if hook is None:
        if not judge.matches(rule["when"], message):
            return None
        return directive(permissions, toolkit, rule.get("tools", ()), rule.get("choice", "auto"))
    own = members(permissions, toolkit)
    visible = [loaded.tool.wire for loaded in surface.tools if loaded.tool.id in own]
    try:
        answer = parse_answer(await judge.ask(hook, message, visible))
    except Exception as error:  # a hook's own code may raise anything
        why = services.masker.text(f"{type(error).__name__}: {error}")
        log.warning("the focus hook %s of toolkit %s was skipped: %s", hook, toolkit, why)
        return None
    return directive(permissions, toolkit, *answer) if answer is not None else None


# -- hooks of toolkits write their policy texts, each for the members that are visible (T6)


PATIENCE: Final = 2.0
"""How many seconds a hook may take, its import included."""


async def initial_policy(services: Services, permissions: CompiledPermissions, state: State) -> str:
    """Return the policy of what is loaded from the start, without secrets."""
    written = await _write_policies(services, permissions, policy.hooked_at_start(permissions, state))
    return policy.without_secrets(services.masker, permissions, policy.initial(permissions, state, written))


async def later_policy(
    services: Services, permissions: CompiledPermissions, state: State, tools: Iterable[Tool]
) -> str:
    """Return the policy that comes with these tools, without secrets."""
    added = tuple(tools)
    written = await _write_policies(services, permissions, policy.policies_needing_hooks(permissions, state, added))
    return policy.without_secrets(
        services.masker, permissions, policy.policy_of_added(permissions, state, added, written)
    )


async def _write_policies(
    services: Services, permissions: CompiledPermissions, asked: Iterable[HookedPolicy]
) -> Written:
    """Return what the hooks write; one that fails writes nothing, and is asked again the next time."""
    known, found = _hook_answers(permissions), dict[HookedPolicy, str]()
    for one in asked:
        text = known.get(one)
        if text is None:
            text = await _ask_hook(services, one)
            if text is not None:
                known[one] = text
        found[one] = text or ""
    return found or _NOTHING


_NOTHING: Final[Mapping[HookedPolicy, str]] = EMPTY  # type: ignore[assignment]


@once_per_permissions
def _hook_answers(permissions: CompiledPermissions) -> dict[HookedPolicy, str]:  # noqa: ARG001
    """Return what hooks have written so far: the same members have the same text, so that nothing moves (F1)."""
    return {}


async def _ask_hook(services: Services, one: HookedPolicy) -> str | None:
    if services.hooks is None:
        return None
    try:
        async with asyncio.timeout(PATIENCE):
            text = await services.hooks.ask(one.hook, list(one.members))
    except (Exception, SystemExit) as error:  # a hook's own code may raise anything
        why = services.masker.text(f"{type(error).__name__}: {error}")
        log.warning("the policy hook %s of toolkit %s was skipped: %s", one.hook, one.toolkit, why)
        return None
    if isinstance(text, str):
        return text[: policy.LIMIT]
    log.warning("the policy hook %s of toolkit %s answers no text: %s", one.hook, one.toolkit, type(text).__name__)
    return None
