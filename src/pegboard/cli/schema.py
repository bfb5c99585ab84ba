"""`pegboard schema`: the JSON Schema of a configuration, for editors."""

from __future__ import annotations

from pegboard.cli.common import Options, run_guarded
from pegboard.cli.exit_codes import DONE
from pegboard.cli.options import JsonOption
from pegboard.cli.rendering import Printer
from pegboard.config.schema.json_schema import schema as json_schema

EXAMPLE = "pegboard schema > pegboard.schema.json"


def schema(as_json: JsonOption = False) -> int:  # noqa: ARG001
    """Print the JSON Schema of pegboard.yaml, for editors."""
    return run_guarded(Options(), _schema)


async def _schema(printer: Printer) -> int:
    printer.document(json_schema())
    return DONE
