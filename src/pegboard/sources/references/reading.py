"""Read the values that a server's settings name, and fill them in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from pegboard.core.model.references import ByReference, Reference, references_in
from pegboard.core.model.specs import HTTP_SPACE, ServerSpec
from pegboard.core.model.tools import Frozen
from pegboard.errors import StoreError, ToolUnavailableError
from pegboard.ports.sealed import SealedStore
from pegboard.sources.references.value_text import PATIENCE

Learn = Callable[[str, str], None]
"""Take what a value was read from, and the value, to mask it from then on (X5)."""
Read = Callable[[Reference], Awaitable[str]]


async def fill_references(spec: ServerSpec, learn: Learn, store: SealedStore | None = None) -> ServerSpec:
    """Return a server with the values of its references in their place, all read at once, each once.

    ``learn`` gets each value before anything can repeat it. ``store`` has the sealed ones.

    Raises:
        ToolUnavailableError: a value cannot be read, or cannot stand where it is to stand; it is not in the message.
    """
    wanted = references_in(spec.references)
    reading = [asyncio.create_task(_value(one, store)) for one in wanted]
    try:
        values = dict(zip(wanted, await asyncio.gather(*reading), strict=True))
    finally:
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
    for one, value in values.items():
        learn(one.text, value)
    return _with_texts(
        spec, {(text.part, text.key): _check_value(text, text.filled(values)) for text in spec.references}
    )


def _with_texts(spec: ServerSpec, texts: dict[tuple[str, str | int], str]) -> ServerSpec:
    """Return a server with these texts in place of its own, in the order of its own."""
    return replace(
        spec,
        args=tuple(texts.get(("args", number), text) for number, text in enumerate(spec.args)),
        env=Frozen({name: texts.get(("env", name), text) for name, text in spec.env.items()}),
        headers=Frozen({name: texts.get(("headers", name), text) for name, text in spec.headers.items()}),
        url=texts.get(("url", ""), spec.url or "") if spec.url is not None else None,
        references=(),
    )


def _check_value(text: ByReference, value: str) -> str:
    """Return a text that may stand where it is to stand; what refuses it later would repeat it."""
    names = ", ".join(one.text for one in text.references)
    if text.part in ("headers", "url"):
        value = value.strip(HTTP_SPACE)
    if "\0" in value:
        raise ToolUnavailableError(f"the value of {names} has a zero byte in it", hint="Store it as plain text.")
    if text.part in ("headers", "url") and not (value.isascii() and value.isprintable()):
        what = f"the header '{text.key}'" if text.part == "headers" else "`url`"
        raise ToolUnavailableError(
            f"the value of {names} cannot be used in {what}: it has line breaks or characters that are not ASCII",
            hint="Store the value alone, in one line.",
        )
    if text.part == "url" and not value.lower().startswith(("http://", "https://")):
        raise ToolUnavailableError(
            f"the url with the value of {names} does not begin with http:// or https://", hint="Correct that value."
        )
    return value


async def _value(reference: Reference, store: SealedStore | None) -> str:
    """Return the value that a reference stands for; raises ``ToolUnavailableError``."""
    sealed = reference.scheme == "secret"
    value = await (_value_from_store(reference, store) if sealed else _READ[reference.scheme](reference))
    if not value:
        raise ToolUnavailableError(f"the value of {reference.text} is empty", hint="Store a value there.")
    return value


async def _value_from_keyring(reference: Reference) -> str:
    from pegboard.sources.references.keyring_values import value_of
    from pegboard.sources.signatures import run_in_thread
    from pegboard.system_keyring import KeyringError

    try:
        async with asyncio.timeout(PATIENCE):
            value = await run_in_thread(value_of, reference.target)
    except TimeoutError:
        raise ToolUnavailableError(
            f"the keyring did not give {reference.text} within {PATIENCE:g} s",
            hint="Unlock the keyring, then try again.",
        ) from None
    except KeyringError as error:
        raise ToolUnavailableError(f"{reference.text} cannot be read: {error.message}", hint=error.hint) from None
    if value is None:
        raise ToolUnavailableError(
            f"{reference.text} has no value", hint=f"Run `pegboard secret set {reference.target}`."
        )
    return value


async def _value_from_store(reference: Reference, store: SealedStore | None) -> str:
    hint = f"Run `pegboard secret set {reference.target}`, or add the server again in the console."
    try:
        known = await store.sealed("secret", reference.target) if store is not None else None
    except StoreError as error:
        raise ToolUnavailableError(f"{reference.text} cannot be read: {error.message}", hint=error.hint) from None
    if known is None:
        raise ToolUnavailableError(f"{reference.text} has no value in the store", hint=hint)
    if known.text is None:
        raise ToolUnavailableError(f"{reference.text} was sealed with another key than the store has now", hint=hint)
    return known.text


async def _value_from_file(reference: Reference) -> str:
    from pegboard.sources.references.file_text import text_of
    from pegboard.sources.signatures import run_in_thread

    try:
        async with asyncio.timeout(PATIENCE):
            return await run_in_thread(text_of, reference.path, reference.text)
    except TimeoutError:
        raise ToolUnavailableError(
            f"the file of {reference.text} could not be read within {PATIENCE:g} s",
            hint="Check its disk.",
        ) from None


async def _value_from_onepassword(reference: Reference) -> str:
    from pegboard.sources.references.command_output import output_of

    hint = "Install the command-line tool of 1Password, and sign in with `op signin`."
    arguments = ("op", "read", f"op://{reference.target}")
    return await output_of(arguments, reference, hint=hint, within=PATIENCE)


async def _value_from_command(reference: Reference) -> str:
    from pegboard.core.model.references import words
    from pegboard.sources.references.command_output import output_of

    return await output_of(words(reference.target), reference, hint="", within=PATIENCE)


_READ: Final[dict[str, Read]] = {
    "keyring": _value_from_keyring,
    "op": _value_from_onepassword,
    "file": _value_from_file,
    "cmd": _value_from_command,
}
