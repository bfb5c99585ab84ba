"""What an operator reads of the approval that calls of a tool need: the rule, its place, what stands (A5, F5)."""

from __future__ import annotations

from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.core.access.approvals.approval import counting_approval
from pegboard.core.access.approvals.demands import ToolRules, rules_of
from pegboard.core.access.approvals.digests import binding_of
from pegboard.core.access.decisions import Reason
from pegboard.core.model.tools import Tool
from pegboard.errors import PegboardError


async def approval_reason(services: Services, snapshot: Snapshot, tool: Tool) -> Reason | None:
    """Return what calls of a tool need of a person in a session, None where they need nothing.

    Its code is ``needs_approval`` where every call is asked about, ``may_need_approval`` where that hangs on the
    arguments, and ``standing_approval`` where an operator has allowed them all.

    Raises ``StoreError`` where the approvals cannot be read.
    """
    plugin = snapshot.permissions.world.catalog.plugins[tool.plugin]
    spec = services.loader.specs.get(tool.plugin)
    if spec is None:
        return None
    rules = rules_of(plugin, spec, tool, services.pins.claims_of(plugin.name))
    if rules is None:
        return None
    places = (spec.approve_places.get(name) for name in rules.names)
    where = next((place for place in places if place is not None), plugin.place)
    standing = await _standing(services, snapshot, tool, rules)
    if standing is not None:
        return Reason(code="standing_approval", text=standing, where=where)
    if rules.demand is not None:
        text = f"A person approves every call of it first: {rules.demand.reason}."
        return Reason(code="needs_approval", text=text, where=where)
    what = ", ".join(f"'{argument}'" for argument in rules.patterns)
    depends = f"its {'argument' if len(rules.patterns) == 1 else 'arguments'} {what}" if what else "its arguments"
    text = f"Whether a person approves a call of it first depends on {depends}."
    return Reason(code="may_need_approval", text=text, where=where)


async def _standing(services: Services, snapshot: Snapshot, tool: Tool, rules: ToolRules) -> str | None:
    """Return who has allowed all calls of a tool, and for how long, where that counts now."""
    store, spec = services.store, services.loader.specs[tool.plugin]
    variant = snapshot.permissions.entries.of_tool(tool).key
    try:
        fingerprint = services.loader.source_of(spec).fingerprint(spec)
    except PegboardError:
        return None
    binding = binding_of(
        await store.digest_key(),
        snapshot.info.key,
        tool,
        "",
        rules.in_force,
        variant,
        fingerprint,
        later=services.pins.later_digest(tool),
    )
    found = counting_approval(binding, await store.approvals_for(binding), store.clock())
    if found is None or found.status != "allowed" or found.lasts == "once":
        return None
    lasts = "in this session" if found.lasts == "session" else "of this agent for this principal"
    return f"Every call of it {lasts} runs unasked: '{found.by}' has allowed it."
