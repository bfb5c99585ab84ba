"""Resume an approved call in a process that is killed; usage: killed_caller.py CONFIG APPROVAL before|after.

``before`` the approval is marked as used, or ``after`` that and before the tool runs.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from pegboard import Approval, Pegboard
from pegboard.core.access.approvals.approval import ApprovalStatus
from pegboard.ports import Adapters, AuditRecord
from pegboard.stores.sql import SqliteStore


class KilledStore(SqliteStore):
    when = "after"

    async def change_approval(
        self, approval: Approval, *, expected: ApprovalStatus, audit: Sequence[AuditRecord] = ()
    ) -> bool:
        if self.when == "after":
            assert await super().change_approval(approval, expected=expected, audit=audit)
        os.kill(os.getpid(), signal.SIGKILL)
        return False


async def main(config: Path, approval: str, when: str) -> None:
    store = KilledStore(config.with_name("state.db"))
    store.when = when
    async with Pegboard.open(config, adapters=Adapters(store=store)) as board:
        session = await board.session(agent="ada", session_id="thread")
        await session.resume(approval)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
