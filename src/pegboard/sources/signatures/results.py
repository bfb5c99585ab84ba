"""What functions return and raise, in MCP's shapes."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final, cast

from pegboard.core.model.tools import CallResult, JsonObject, text_result
from pegboard.ports.framework_runs import FRAMEWORK_RUN
from pegboard.support.encodable import encodable, encodable_text

MOST_ERRORS: Final = 10
"""So many exceptions of a group are reported."""
MOST_ROWS: Final = 100
"""So many rows of a table are shown."""
MOST_ITEMS: Final = 1_000
"""So many elements of an array are shown, and at least one along its first axis."""
_LONG: Final = 1_000_000
"""A text or bytes longer than this are made a result beside the event loop."""
_DEEPEST: Final = 4
"""Down to which level of a result pictures are looked for."""

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_DRAWINGS: Final = ("_repr_png_", "_repr_jpeg_", "_repr_mimebundle_")
"""Methods with which objects draw themselves in notebooks."""
_OF_MCP: Final = frozenset({"text", "image", "audio", "resource", "resource_link"})
_TO_MCP: Final = ("to_image_content", "to_audio_content")
"""Methods with which the helpers of MCP's SDK make blocks of themselves."""


def as_result(value: Any) -> CallResult:
    """Return a value in MCP's shapes.

    Text stays text and None is empty text. Pictures are image blocks, wherever they stand: bytes, buffers, and
    objects that draw themselves. Other bytes are embedded resources. Everything else is JSON text, objects
    also structured content; of a table or an array too large to be shown, the text says how much is.
    """
    match value:
        case CallResult():
            return value
        case None:
            return text_result("")
        case str():
            return text_result(value if value.isascii() else encodable_text(value))
        case list() | tuple():
            items = list(cast("list[Any]", value))
            blocks = [_block(item) for item in items[:MOST_ITEMS]]
            return _result_of_list(items, blocks) if any(blocks) else _json_result(value)
        case io.StringIO():
            return as_result(value.getvalue())
        case _:
            block = _block(value)
            return _json_result(value) if block is None else CallResult(content=(block,))


def image_type(data: bytes) -> str | None:
    """Return the media type of an image by its first bytes, or None."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)


def takes_time(value: object) -> bool:
    """Return whether a value is long, or has to be drawn, so that no event loop should make a result of it."""
    if isinstance(value, str | bytes):
        return len(value) > _LONG
    return _method(value, *_DRAWINGS, "savefig") is not None


def failure(error: BaseException) -> CallResult:
    """Return an error result with the exception's type and message, without a traceback; of a group those within.

    The run of a framework that is under way knows what was raised.
    """
    if (run := FRAMEWORK_RUN.get()) is not None:
        run.raised.append(error)
    return text_result(_errors(error), is_error=True)


def _errors(error: BaseException) -> str:
    within = list(islice(_single_errors(error), MOST_ERRORS + 1))
    lines = [_error_text(one) for one in within[:MOST_ERRORS]]
    if len(within) > MOST_ERRORS:
        lines.append("and more")
    return "\n".join(dict.fromkeys(lines))


def _single_errors(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, or those of a group and of the groups in it."""
    pending = [error]
    while pending:
        one = pending.pop()
        if isinstance(one, BaseExceptionGroup):
            group = cast("BaseExceptionGroup[BaseException]", one)
            pending += reversed(group.exceptions)
        else:
            yield one


def _error_text(error: BaseException) -> str:
    name = type(error).__name__
    try:
        text = str(error).strip()
    except Exception:  # an exception without a text of its own
        text = ""
    return f"{name}: {text}" if text else name


# -- blocks: pictures, sounds, files ----------------------------------------------------------------


def _result_of_list(items: list[Any], blocks: list[JsonObject | None]) -> CallResult:
    """Return the blocks of a list in their order; what stands between them as text or JSON."""
    content: list[JsonObject] = []
    for item, block in zip(items, blocks, strict=False):
        content.extend(as_result(item).content if block is None else (block,))
    content.extend(_json_result(items[len(blocks) :]).content if len(items) > len(blocks) else ())
    return CallResult(content=tuple(block for block in content if block.get("text") != ""))


def _block(value: Any) -> JsonObject | None:
    """Return the block of a picture, of bytes, or of what is a block of MCP's already; else None."""
    data = _bytes(value)
    if data is not None:
        return _binary(data)
    if type(value).__module__.partition(".")[0] in ("mcp", "mcp_types"):
        make = _method(value, *_TO_MCP)
        block = make() if make is not None else value
        if getattr(block, "type", None) in _OF_MCP and hasattr(block, "model_dump"):
            return cast("JsonObject", block.model_dump(mode="json", by_alias=True, exclude_none=True))
    match value:
        case {"type": "image", "data": str(), "mimeType": str(kind), **more} if kind.startswith("image/") and not more:
            return dict(cast("Mapping[str, Any]", value))
        case _:
            return None


def _bytes(value: Any) -> bytes | None:
    """Return what a value has as bytes: those of a buffer, or of a picture that an object draws."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, io.BytesIO):
        return value.getvalue()
    try:
        for name in _DRAWINGS:
            draw = _method(value, name)
            drawn = None if draw is None else _picture_in(draw())
            if isinstance(drawn, bytes) and image_type(drawn) is not None:
                return drawn
        if (save := _method(value, "savefig")) is not None:
            buffer = io.BytesIO()
            save(buffer, format="png")
            return buffer.getvalue() or None
    except Exception:  # whatever user code raises while it draws: it is shown as text
        return None
    return None


def _picture_in(drawn: object) -> object:
    """Return what an object has drawn; of a bundle of its forms the picture, which is there as base64."""
    forms = drawn[0] if isinstance(drawn, tuple) and drawn else drawn
    if not isinstance(forms, Mapping):
        return drawn
    known = cast("Mapping[str, Any]", forms)
    picture = known.get("image/png") or known.get("image/jpeg")
    return base64.b64decode(picture) if isinstance(picture, str) else picture


def _method(value: object, *names: str) -> Callable[..., Any] | None:
    """Return the first method of these names that the type of a value has."""
    found = next((name for name in names if callable(getattr(type(value), name, None))), None)
    return None if found is None else getattr(value, found)


def _binary(data: bytes) -> JsonObject:
    encoded = base64.b64encode(data).decode()
    kind = image_type(data)
    if kind is not None:
        return {"type": "image", "data": encoded, "mimeType": kind}
    resource = {"uri": "pegboard://result", "mimeType": "application/octet-stream", "blob": encoded}
    return {"type": "resource", "resource": resource}


# -- JSON -------------------------------------------------------------------------------------------


def _json_result(value: Any) -> CallResult:
    from pydantic_core import to_jsonable_python

    pictures: list[JsonObject] = []
    notes: list[str] = []

    def fallback(unknown: Any) -> Any:
        return _plain_data(unknown, notes)

    without = _without_pictures(value, pictures)
    jsonable = partial(to_jsonable_python, bytes_mode="base64", inf_nan_mode="strings", fallback=fallback)
    try:
        plain = jsonable(without)
    except UnicodeEncodeError:  # half a character in a key
        plain = jsonable(encodable(without))
    text = encodable_text(plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False))
    structured = dict(cast("Mapping[str, Any]", plain)) if isinstance(plain, dict) else None
    texts = ({"type": "text", "text": one} for one in (text, *dict.fromkeys(notes)))
    return CallResult(content=(*texts, *pictures), structured=structured)


def _without_pictures(value: Any, found: list[JsonObject], depth: int = 0) -> Any:
    """Return a value in which a picture is named by its place in ``found``."""
    if depth > _DEEPEST:
        return value
    if type(value) is dict:
        items = cast("dict[Any, Any]", value).items()
        return {key: _without_pictures(item, found, depth + 1) for key, item in items}
    if type(value) is list or type(value) is tuple:
        return [_without_pictures(item, found, depth + 1) for item in cast("list[Any]", value)]
    data = None if isinstance(value, str | int | float) else _bytes(value)
    if data is None or image_type(data) is None:
        return value
    found.append(_binary(data))
    return f"picture {len(found)}"


def _plain_data(value: Any, notes: list[str]) -> Any:
    """Return the data that an object of no JSON type stands for, else its text; ``notes`` take what is not shown."""
    try:
        if isinstance(value, BaseException):
            return _errors(value)
        for form in (_table, _array):
            if (found := form(value, notes)) is not None:
                return found
        if type(value).__name__ == "NAType":  # what pandas has for a value that is missing
            return None
        if _method(value, "keys") is not None and _method(value, "__getitem__") is not None:
            return {key: value[key] for key in value.keys()}  # noqa: SIM118 - a row of a database is no mapping
        return str(value)
    except Exception as error:  # whatever the methods of an object raise
        return f"<{type(value).__name__}: {_error_text(error)}>"


def _table(value: Any, notes: list[str]) -> Any:
    """Return the first rows of a table of pandas, Polars or Arrow, each column named once; None for what is none."""
    rows: list[Any]
    if _method(value, "to_frame") is not None and hasattr(value, "iloc"):  # a column of pandas, with its index
        if _is_counted(value):
            return _array(value.to_numpy(), notes)
        value = value.reset_index()
    if _method(value, "itertuples") is not None:
        shown = value.iloc[:MOST_ROWS]
        shown = shown if _is_counted(value) else shown.reset_index()
        columns, rows = list(shown.columns), list(shown.itertuples(index=False, name=None))
    elif _method(value, "iter_rows") is not None and hasattr(value, "columns"):
        columns, rows = list(value.columns), list(islice(value.iter_rows(), MOST_ROWS))
    elif _method(value, "to_pylist") is not None and hasattr(value, "column_names"):
        columns, rows = list(value.column_names), [[*row.values()] for row in value.slice(0, MOST_ROWS).to_pylist()]
    else:
        return None
    if len(value) > len(rows):
        notes.append(f"The table is cut: {len(rows):,} of its {len(value):,} rows are shown.")
    return {"columns": columns, "rows": rows}


def _is_counted(value: Any) -> bool:
    """Return whether the index of something of pandas only counts its rows."""
    return type(value.index).__name__ == "RangeIndex"


def _array(value: Any, notes: list[str]) -> Any:
    """Return the elements of an array of numbers, a scalar as its number; None for what is none."""
    to_list = _method(value, "tolist", "to_list")
    if to_list is None or not isinstance(getattr(value, "shape", None), tuple):
        return None
    shape = cast("tuple[int, ...]", tuple(value.shape))
    if not shape:
        return to_list()
    within = 1
    for size in shape[1:]:
        within *= size
    most = max(1, MOST_ITEMS // max(1, within))
    if shape[0] <= most:
        return to_list()
    notes.append(f"The array is cut: {most:,} of {shape[0]:,} along its first axis are shown.")
    return value[:most].tolist()
