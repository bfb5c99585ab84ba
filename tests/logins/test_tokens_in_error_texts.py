"""A server that repeats what it was sent leaves no token of a login behind (G11, X5)."""

import logging
from pathlib import Path
from typing import Any

import pytest

from authorization.site import LoginSite
from logins.conftest import Person
from logins.test_library_logins import account_of, logged_in, session_of
from pegboard import Pegboard
from pegboard.operators.audit import AuditQuery, audit


async def repeated(board: Pegboard, principal: str) -> str:
    """Return what the server answers of a call whose error repeats its headers."""
    session = await session_of(board, principal)
    assert (await session.load("linear")).status == "ok"
    answer = await session.call("linear__echo", {"repeat": True})
    assert answer.result is not None, answer.message
    assert answer.result.is_error
    return str(answer.result.content)


async def written_by(board: Pegboard) -> str:
    """Return the audit trail as operators see it."""
    page = await audit(board.services, AuditQuery())
    return "\n".join(map(repr, page.lines))


def stored_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.glob("pegboard.db*"))


async def test_g11_x5_a_server_that_repeats_the_header_of_two_users_leaves_neither_token_in_the_audit_trail(
    configuration: dict[str, Any], person: Person, site: LoginSite, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """G11, X5: also after the tokens were renewed, and in the first call of another process."""
    caplog.set_level(logging.DEBUG, "pegboard")
    async with Pegboard.open(configuration) as board:
        await logged_in(board, person)
        await logged_in(board, person, "bob", "ben")
        shown = [await repeated(board, "ada"), await repeated(board, "bob")]
        site.expire()
        shown += [await repeated(board, "ada"), await repeated(board, "bob")]
        first = await written_by(board)
    async with Pegboard.open(configuration) as board:
        shown += [await repeated(board, "bob"), await repeated(board, "ada")]
        assert account_of(await (await session_of(board, "bob")).call("linear__whoami", {})) == "ben"
        second = await written_by(board)
    tokens = [one for one in site.secrets if one.startswith(("access", "refresh"))]
    live = [one for one in tokens if any(one in text for text in shown)]
    assert len(live) >= 4, "the server did repeat what it was sent"
    assert first.count("no such entry") == 4
    assert second.count("no such entry") == 6
    stored = stored_in(tmp_path)
    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert [one for one in tokens if one in first or one in second or one in logged or one.encode() in stored] == []
