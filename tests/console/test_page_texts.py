"""What pages say of things that went wrong, as they are rendered."""

import html
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pegboard import Pegboard
from pegboard.core.model.tools import CallResult
from pegboard.operators.counting import CatalogCounting
from pegboard.operators.sessions import describe_session
from pegboard.testing import Adapters, Canned, FakeSource

from .addresses import Visitor, visitor
from .programs import serving

ROOT = "root-root-root-root-root"
FAILED = CallResult(content=({"type": "text", "text": "division by zero <b>"},), is_error=True)


@asynccontextmanager
async def shown(
    plugins: dict[str, Any], *, agent: dict[str, Any] | None = None, **servers: Any
) -> AsyncIterator[tuple[Pegboard, Visitor]]:
    """Open the console over servers that are doubles, for an operator of every agent; the agent has all of them."""
    config = {
        "store": "memory:",
        "servers": {name: {"command": sys.executable, **servers.get(name, {})} for name in plugins},
        "agents": {"assistant": agent or {"tools": [*plugins]}},
        "tokens": {"root": {"token": ROOT, "agents": ["*"], "console": True}},
    }
    async with Pegboard.open(config, adapters=Adapters(sources=[FakeSource(plugins)])) as board:
        await board.ready(*plugins)
        async with serving(board) as (app, access), visitor(app, access, ROOT) as root:
            yield board, root


async def text(root: Visitor, address: str) -> str:
    """Return what is to be read on a page, without its elements."""
    page = (await root.client.get(address)).text
    return " ".join(html.unescape(re.sub(r"<wbr>|</?b>|</?bdi>", "", page)).replace("><", "> <").split())


async def test_a_failed_call_is_red_with_its_outcome_first_and_its_error() -> None:
    """X4: on the page of its session and in the audit; one that ran is green, one that was denied says so."""
    async with shown({"sums": {"divide": Canned(results=[FAILED]), "add": 3}}) as (board, root):
        for principal in ("ada", "bob"):
            session = await board.session(agent="assistant", session_id="s", principal=principal)
            await session.call("sums__divide", {})
            await session.call("sums__add", {})
            for address in (f"/console/session?principal={principal}&agent=assistant&session=s", "/console/activity"):
                page = (await root.client.get(address)).text
                found = re.findall(r"<(?:tr|li) .*?</(?:tr|li)>", page, re.DOTALL)
                rows = [row for row in found if "sums/" in row.replace("<wbr>", "")]
                failed, ran = (next(row for row in rows if name in row and "chip" in row) for name in ("divide", "add"))
                assert re.findall(r'<span class="chip (\w+)">(.*?)</span>', failed) == [("bad", "error")]
                assert "division by zero &lt;b&gt;" in failed
                assert re.findall(r'<span class="chip (\w+)">(.*?)</span>', ran) == [("good", "ok")]


SESSION = "/console/session?principal=ada&agent=assistant&session=s"


async def test_what_costs_more_than_listing_everything_is_said_in_words() -> None:
    """F4: of one tool the meta-tools beside it cost more than it does; no one has to read a sign."""
    async with shown({"sums": {"add": 3}}, agent={"dialect": "pegboard", "discoverable": ["*"]}) as (board, root):
        session = await board.session(agent="assistant", session_id="s", principal="ada")
        costs = (await session.surface()).tokens
        assert costs.saved is not None
        more = f"{-costs.saved:,}"
        assert costs.saved < 0
        assert f"<dt>Extra tokens</dt> <dd> <strong>{more}</strong>" in await text(root, SESSION)
        listed = await text(root, "/console/sessions")
        assert f'<span title="Listing everything would have cost less">{more} more<' in listed
        bill = await text(root, "/console/cost")
        assert f"<dt>Extra tokens</dt> <dd> <strong>{more}</strong>" in bill
        for page in (listed, bill, await text(root, SESSION)):
            assert f"-{more}" not in page


async def test_a_preview_and_the_page_of_a_session_say_which_tokens_they_count() -> None:
    """F4: with texts and without them, so that no one takes one figure for the other."""
    agent = {"dialect": "pegboard", "tools": ["sums"], "discoverable": ["*"]}
    async with shown({"sums": {"add": 3}, "more": {"take": 1}}, agent=agent) as (board, root):
        session = await board.session(agent="assistant", session_id="s", principal="ada")
        costs = (await session.surface()).tokens
        assert costs.text > 0
        assert f"<dt>Tokens loaded</dt> <dd> <strong>{costs.total:,}</strong>" in await text(root, SESSION)
        preview = await text(root, "/console/switch?agent=assistant&name=sums&value=off")
        (before,) = re.findall(r"([\d,]+) → 0 tokens of loaded tools", preview)
        found = await describe_session(board.services, CatalogCounting(board.services), session.key)
        assert found is not None
        assert before == str(sum(tool.tokens for tool in found.loaded if tool.plugin == "sums"))
        together = await text(root, "/console/access/set?kind=switch&name=sums&value=off")
        assert re.findall(r"([\d,]+) → 0 tokens of loaded tools, without meta-tools and texts", together) == [before]
        sums = board.services.prices([one for one in await board.tools("assistant") if one.plugin == "sums"])
        await board.permissions.set("assistant", "add", False)
        assert f"{sums:,} tokens" in await text(root, "/console/agent?agent=assistant")


async def test_a_rule_that_counts_for_nothing_stands_on_the_page_of_its_server() -> None:
    """G10, T10: and among what needs attention, which every page counts."""
    misspelt = {"approve": {"divde": "always"}}
    async with shown({"sums": {"divide": 1}, "fine": {"add": 3}}, sums=misspelt) as (_, root):
        assert '<span class="count">1<span class="unseen"> needs attention<' in await text(root, "/console/sessions")
        server = await text(root, "/console/server?name=sums")
        assert "'approve' names 'divde', which is not one of its tools. It is ignored." in server
        assert "It counts for nothing" not in await text(root, "/console/server?name=fine")
