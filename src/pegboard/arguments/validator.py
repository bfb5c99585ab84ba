"""Check the arguments of a call against the tool's schema before anything runs (X2)."""

from __future__ import annotations

import asyncio
from typing import Final

from pegboard.arguments.checking import CompiledSchema, compile_schema, texts_of, took_too_many_steps
from pegboard.arguments.elsewhere import MOST_AT_ONCE, problems_elsewhere
from pegboard.arguments.work import SchemaWork
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import JsonObject, Tool

MOST_WORK: Final = 1_000_000
"""How much work a check may be where others wait for it; more is done in a process of its own."""
MOST_WORK_FOR_TEXTS: Final = 5_000
"""The same for finding what is wrong, which takes a thousand times as long where nothing fits."""
_LONGEST = 300


class _Known:
    """A schema that was seen before: its work, and itself compiled when it is first needed."""

    def __init__(self, schema: JsonObject) -> None:
        self.schema = schema
        self.work = SchemaWork(schema)
        self._compiled: list[CompiledSchema | None] = []

    @property
    def compiled(self) -> CompiledSchema | None:
        if not self._compiled:
            self._compiled.append(compile_schema(dict(self.schema)))
        return self._compiled[0]

    @property
    def checks_nothing(self) -> bool:
        """Return whether everything fits: the schema is not valid, which is not for the size of a pattern."""
        return self.compiled is None and not self.work.has_patterns


class SchemaValidator:
    """A check of arguments with validators that are compiled once for each schema.

    A schema that is itself not valid, or that points outside itself, checks nothing: the tool
    judges its arguments then. What may take long is checked in a process of its own, within a limit.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._elsewhere = asyncio.Semaphore(MOST_AT_ONCE)

    def fits(self, tool: Tool, arguments: JsonObject) -> bool:
        """Return whether arguments fit; False too where that takes long to see, or where they are not JSON."""
        known, instance = self._of(tool), _plain(arguments)
        if known.work.of(instance) > MOST_WORK:
            return False
        try:
            return known.checks_nothing or (known.compiled is not None and known.compiled.is_valid(instance))
        except (ValueError, RecursionError):
            return False

    async def problems(self, tool: Tool, arguments: JsonObject) -> list[str]:
        """Return one sentence per problem, naming the argument and what was expected.

        Raises:
            ToolUnavailableError: The schema takes too long to check these arguments against.
        """
        known, instance = self._of(tool), _plain(arguments)
        work = known.work.of(instance)
        try:
            if work <= MOST_WORK:
                compiled = known.compiled
                if known.checks_nothing or (compiled is not None and compiled.is_valid(instance)):
                    return []
                if compiled is not None and work <= MOST_WORK_FOR_TEXTS:
                    texts = texts_of(compiled, instance)
                    if not took_too_many_steps(texts):
                        return _sentences(texts)
            async with self._elsewhere:
                return _sentences(await problems_elsewhere(tool, instance))
        except (ValueError, TypeError, RecursionError) as error:  # a lone surrogate, a cycle, an object, too deep
            return [f"they are not JSON ({one_line(str(error), limit=_LONGEST)})"]

    def _of(self, tool: Tool) -> _Known:
        known = self._known.get(tool.wire)
        if known is None or known.schema is not tool.input_schema:
            known = self._known[tool.wire] = _Known(tool.input_schema)
        return known


def _plain(arguments: JsonObject) -> JsonObject:
    return arguments if isinstance(arguments, dict) else dict(arguments)


def _sentences(texts: list[tuple[str, str]]) -> list[str]:
    found: list[str] = []
    for path, message in texts:
        text = one_line(message, limit=_LONGEST)
        found.append(f"argument '{path}': {text}" if path else text)
    return found
