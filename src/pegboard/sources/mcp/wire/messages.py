"""Messages of the protocol as they stand on the wire. Imports the SDK: import late."""

from __future__ import annotations

from typing import Any, cast

from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse, jsonrpc_message_adapter
from pydantic_core import from_json

Message = dict[str, Any]


def by_model(data: bytes | str) -> JSONRPCMessage:
    """Return what the SDK makes of a message; raises ``ValidationError``."""
    return jsonrpc_message_adapter.validate_json(data, by_name=False)


def parsed(data: bytes) -> Message | None:
    """Return a message that is an object of JSON, or None."""
    try:
        message: object = from_json(data)
    except ValueError:
        return None
    return cast("Message", message) if type(message) is dict else None


def is_plain_answer(message: Message) -> bool:
    """Return whether a message is an answer exactly as the protocol has it."""
    if len(message) != 3 or message.get("jsonrpc") != "2.0" or "id" not in message:
        return False
    error: object = message.get("error")
    if type(error) is dict:
        error = cast("Message", error)
        return type(error.get("code")) is int and type(error.get("message")) is str
    return type(message.get("result")) is dict


def as_answer(message: JSONRPCMessage) -> Message | None:
    """Return what the SDK made of an answer, or None where it is none."""
    match message:
        case JSONRPCResponse():
            return {"id": message.id, "result": message.result}
        case JSONRPCError():
            return {"id": message.id, "error": message.error.model_dump()}
        case _:
            return None
