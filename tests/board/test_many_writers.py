import asyncio
import os
import sys
from pathlib import Path

from pegboard import Pegboard
from pegboard.core.state.sessions import DEFAULT

HERE = Path(__file__).parent
PROCESSES, SESSIONS = 4, 50
SECONDS = 30.0 if os.environ.get("PEGBOARD_LONG") else 1.5


async def hammer(config: Path, worker: int) -> list[str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(HERE / "hammer.py"), str(config), str(worker), str(SESSIONS), str(SECONDS)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode().splitlines()


async def test_fifty_sessions_hammered_by_four_processes_lose_nothing(tmp_path: Path):
    """S2, MR51: no lost update, no lock error that a user sees, no lease that no one holds."""
    (tmp_path / "kits.py").write_text("".join(f"def tool{i}() -> str:\n    return ''\n\n" for i in range(PROCESSES)))
    lines = ["plugins: {kits: {python: kits}}", "toolkits:"]
    lines += [f"  kit{i}: {{tools: [tool{i}]}}" for i in range(PROCESSES)]
    lines += [
        "agents:",
        f"  default: {{dialect: pegboard, allowed_toolkits: [{', '.join(f'kit{i}' for i in range(PROCESSES))}]}}",
    ]
    config = tmp_path / "pegboard.yaml"
    config.write_text("\n".join(lines))

    printed = await asyncio.gather(*(hammer(config, worker) for worker in range(PROCESSES)))

    said = [line.split(" ", 1) for lines in printed for line in lines]
    assert [text for kind, text in said if kind == "odd"] == []
    assert sum(int(text) for kind, text in said if kind == "done") > PROCESSES * SESSIONS
    kept = {tuple(text.split()) for kind, text in said if kind == "kept"}
    async with Pegboard.open(config) as board:
        found: set[tuple[str, str]] = set()
        for number in range(SESSIONS):
            session = await board.session(session_id=f"s{number}")
            state = (await session.snapshot()).state
            found |= {(f"s{number}", lease.subject.name) for lease in state.leases}
            assert (await board.services.store.load(session.key) is None) == (state == DEFAULT), (
                "S4: the default is not stored"
            )
        assert found == kept
