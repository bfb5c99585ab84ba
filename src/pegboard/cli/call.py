"""`pegboard call TOOL JSON`: run one tool as an agent would."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

import typer

from pegboard.cli.common import Options, discover, guarded, open_session, run
from pegboard.cli.exit_codes import of_call
from pegboard.cli.options import on_session
from pegboard.cli.rendering import Given, Printer
from pegboard.errors import UsageError

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.core.model.tools import JsonObject
    from pegboard.core.state.call_plans import CallAnswer

EXAMPLE = 'pegboard call git__git_log \'{"repo_path": "."}\''
QUOTING = 'Write an object in single quotes: \'{"name": "value"}\', or - to read it from standard input.'


@on_session
def call(
    options: Options,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The name of the tool.")],
    arguments: Annotated[str, typer.Argument(metavar="JSON", help="Its arguments, or - for standard input.")] = "{}",
) -> int:
    """Run one tool as the agent would."""
    try:
        parsed = parse_arguments(sys.stdin.read() if arguments == "-" else arguments)
    except UsageError as error:
        return guarded(options, _raising(error))

    async def called(board: Pegboard, printer: Printer) -> int:
        board.services.awaiting_login.by_command = True
        on = await open_session(board, options)

        async def progress(done: float, total: float | None, message: str | None) -> None:
            of = f"/{total:g}" if total is not None else ""
            printer.note(f"{done:g}{of} {message or ''}".rstrip())

        await discover(board, printer, (await on.snapshot()).permissions, about=[tool])
        with printer.working(f"Calling {tool}"):
            answer = await on.call(tool, parsed, progress=progress)
            if answer.status == "not_loaded" and not answer.reason:  # it is loaded now: that was one request (D2)
                answer = await on.call(tool, parsed, progress=progress)
        return _show(answer, printer)

    return run(options, called, calls=True)


def _raising(error: UsageError) -> Any:
    async def raised(printer: Printer) -> NoReturn:  # noqa: ARG001
        raise error

    return raised


def parse_arguments(text: str) -> dict[str, Any]:
    """Return the arguments of a call; raises ``UsageError`` that says where the text is no JSON object."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise UsageError(
            f"The arguments are not valid JSON at {where}: {error.msg}.", code="bad_arguments", hint=QUOTING
        ) from None
    except (ValueError, RecursionError) as error:
        why = "they are nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UsageError(f"The arguments are not valid JSON: {why}.", code="bad_arguments", hint=QUOTING) from None
    if not isinstance(value, dict):
        raise UsageError(
            f"The arguments are {_KINDS[type(value)]}, not a JSON object.", code="bad_arguments", hint=QUOTING
        )
    return cast("dict[str, Any]", value)


_KINDS = {
    list: "an array",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _show(answer: CallAnswer, printer: Printer) -> int:
    result = answer.result
    fine = answer.status == "ok" and not result.is_error
    if printer.as_json:
        printer.document(
            {
                "status": answer.status,
                "is_error": result.is_error,
                "content": Given(result.content),
                "structured": Given(result.structured),
                "message": answer.message,
            }
        )
        return of_call(answer)
    for block in result.content:
        printer.show(_block(block))
    if not result.content and result.structured is not None:
        printer.show(json.dumps(result.structured, indent=2, ensure_ascii=False, default=str))
    if not fine:
        shown = {block.get("text") for block in result.content}
        again = f": {answer.message}" if answer.message and answer.message not in shown else ""
        printer.note(f"pegboard: {answer.status}{again}")
    return of_call(answer)


def _block(block: JsonObject) -> str:
    """Return a content block as people see it; what is not text is named with its size."""
    kind = str(block.get("type", "content"))
    if kind == "text":
        return str(block.get("text", ""))
    resource = block.get("resource")
    content = cast("JsonObject", resource) if isinstance(resource, Mapping) else block
    if isinstance(content.get("text"), str):
        return content["text"]
    data = content.get("data") or content.get("blob") or ""
    size = f", {len(str(data)) * 3 // 4} bytes" if data else ""
    label = " ".join(str(content[key]) for key in ("mimeType", "uri", "name") if content.get(key))
    return f"[{kind}{f' {label}' if label else ''}{size}]"
