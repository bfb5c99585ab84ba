"""A check of arguments in a process of its own, which can be ended."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any, Final

from pegboard.arguments import checking
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.errors import ToolUnavailableError

MOST_AT_ONCE: Final = 2
"""How many such processes there are at once."""
WAIT: Final = 30.0
"""After how many seconds such a process is ended, however little of a processor it had."""
_LIMIT: Final = 1024 * 1024
_LARGE: Final = "they do not fit the schema, which is too large for these arguments to find out where"


async def problems_elsewhere(tool: Tool, arguments: JsonObject) -> list[tuple[str, str]]:
    """Return each argument that does not fit, with what is wrong.

    Raises:
        ToolUnavailableError: The check takes too long, or there is no interpreter that can check.
    """
    asked = json.dumps({"schema": tool.input_schema, "arguments": arguments}).encode()
    if not sys.executable:
        raise _unchecked_error(tool, "there is no interpreter to check them with")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        checking.__file__,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment,
        limit=_LIMIT,
    )
    try:
        return await _read_answer(tool, child, asked)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


async def _read_answer(tool: Tool, child: asyncio.subprocess.Process, asked: bytes) -> list[tuple[str, str]]:
    first, texts, late = b"", list[Any](), False
    try:
        async with asyncio.timeout(WAIT):
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(asked)
            await child.stdin.drain()
            child.stdin.close()
            first = (await child.stdout.readline()).strip()
            if first == b"wrong":
                texts = json.loads(await child.stdout.readline() or "[]")
    except TimeoutError:
        late = True
    except (OSError, ValueError):
        pass  # it has ended in the middle of its answer
    if first == b"wrong" and not checking.took_too_many_steps(texts):
        return [(str(path), str(text)) for path, text in texts] or [("", _LARGE)]
    if first == b"fits":
        return []
    if texts:
        raise _unchecked_error(tool, "a pattern in it takes too many steps")
    if not late and await child.wait() > 0:
        raise _unchecked_error(tool, f"the process that checks them ended with {child.returncode}")
    raise _unchecked_error(tool, f"that takes more than {checking.MOST_SECONDS} s")


def _unchecked_error(tool: Tool, why: str) -> ToolUnavailableError:
    """Return the refusal of arguments that could not be checked."""
    return ToolUnavailableError(
        f"The arguments of '{tool.wire}' cannot be checked against its input schema: {why}. The tool was not called.",
        hint="Make the arguments smaller, or have the tool's schema made simpler.",
    )
