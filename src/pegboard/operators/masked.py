"""One mask over whatever operators are shown, and the one way back from a name that was shown (X5)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from functools import cache
from hashlib import blake2b
from secrets import token_bytes
from types import NoneType
from typing import Annotated, Any, Final, Literal, TypeVar, cast, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

from pegboard.board.services import Services
from pegboard.core.model.masking import MASK, Masker
from pegboard.errors import StoreError

T = TypeVar("T")

_VERBATIM: Final = object()
Verbatim = Annotated[str, _VERBATIM]
"""A place or a word of Pegboard's own, shown as it is."""
_NAME: Final = object()
Name = Annotated[str, _NAME]
"""The name of a thing: shown with marks for what is secret in it, and known by them when operators hand it back."""
_WITHOUT_TEXT: Final = frozenset({NoneType, bool, int, float})
_BEGINNING: Final = f"{MASK}~"
_DIGITS: Final = 10
_OWN_KEY: Final = token_bytes(32)
_KEYS: Final[WeakKeyDictionary[Services, bytes]] = WeakKeyDictionary()
_MARK: Final = re.compile(rf"{re.escape(_BEGINNING)}([0-9a-f]{{{_DIGITS}}})")
_SEALED: Final = re.compile(rf"{re.escape(_BEGINNING)}~((?:[0-9a-f]{{2}})+)~")
_TAG: Final = 8
"""Bytes of a digest in front of what is sealed."""
_END: Final = b"\x80"
_PADDED: Final = 16
"""What is sealed is as long as a multiple of this, so that its length says little."""


class ShownNames:
    """Names of things as operators are shown them, and what they mean when operators hand them back.

    Each secret in a name is replaced by a mark of its own, ``***~`` and a keyed digest, so that two names which differ
    in their secrets alone are told apart. No list has the userinfo of URLs: its mark is the userinfo itself, sealed.
    The marks stay the same over restarts, and in every process on the store.
    """

    __slots__ = ("_key", "forms", "masker")

    def __init__(self, masker: Masker, key: bytes = b"") -> None:
        """Make one.

        Args:
            key: that of the store for digests; nothing where no name is to be shown.
        """
        self.masker = masker
        self.forms = masker.forms
        self._key = key

    def shown(self, name: str) -> str:
        """Return a name with a mark in place of each secret, and of what looks like the beginning of a mark."""
        if not self.masker.forms and "://" not in name and _BEGINNING not in name:
            return name
        known = self._mark(_BEGINNING).join(self.mask_text(part) for part in name.split(_BEGINNING))
        return self.masker.userinfo(known, self._seal_userinfo)

    def mask_text(self, text: str) -> str:
        """Return a text of Pegboard's own or of the configuration with a mark in place of each secret."""
        return self.masker.replaced(text, self._mark)

    def meant(self, shown: str) -> str:
        """Return the name that is shown so; a text with marks in it means the same with secrets in their place."""
        if _BEGINNING not in shown:
            return shown
        by_mark = {self._mark(form): form for form in (*self.masker.forms, _BEGINNING)}
        known = _SEALED.sub(lambda found: self._open_userinfo(found[1]) or found[0], shown)
        return _MARK.sub(lambda found: by_mark.get(found[0], found[0]), known)

    def with_masker(self, masker: Masker) -> ShownNames:
        """Return how names are shown where something else is secret, with the same marks."""
        return ShownNames(masker, self._key)

    def is_like(self, other: ShownNames) -> bool:
        """Return whether each name is shown as the other shows it."""
        return self.forms is other.forms and self._key == other._key

    def _seal_userinfo(self, userinfo: str) -> str:
        if not self._key:
            return MASK
        plain = userinfo.encode(errors="surrogatepass") + _END
        plain += bytes(-len(plain) % _PADDED)
        tag = self._tag(plain)
        return f"{_BEGINNING}~{(tag + self._mix_with_stream(tag, plain)).hex()}~"

    def _open_userinfo(self, sealed: str) -> str | None:
        """Return the userinfo that was sealed with this key, else None."""
        found = bytes.fromhex(sealed)
        plain = self._mix_with_stream(found[:_TAG], found[_TAG:])
        if not self._key or self._tag(plain) != found[:_TAG]:
            return None
        return plain.rstrip(b"\0").removesuffix(_END).decode(errors="surrogatepass")

    def _tag(self, plain: bytes) -> bytes:
        return blake2b(plain, key=self._key, digest_size=_TAG, person=b"userinfo").digest()

    def _mix_with_stream(self, tag: bytes, text: bytes) -> bytes:
        """Return a text exclusive-ored with a stream that only who has the key can make."""
        blocks = range(0, len(text), 64)
        parts = (tag + at.to_bytes(8, "big") for at in blocks)
        stream = b"".join(blake2b(part, key=self._key, person=b"stream").digest() for part in parts)
        return bytes(one ^ other for one, other in zip(text, stream, strict=False))

    def _mark(self, secret: str) -> str:
        digest = blake2b(secret.encode(errors="surrogatepass"), key=self._key, digest_size=_DIGITS // 2)
        return f"{_BEGINNING}{digest.hexdigest()}"


async def shown_names(services: Services) -> ShownNames:
    """Return how names are shown under the configuration in force.

    Marks that are made while the store cannot be read end with the process, where it was not read before.
    """
    with suppress(StoreError):
        _KEYS[services] = await services.store.digest_key()
    return ShownNames(services.masker, _KEYS.setdefault(services, _OWN_KEY))


def marks_in(text: str) -> tuple[str, ...]:
    """Return what in a text looks like a mark."""
    return tuple(found[0] for pattern in (_MARK, _SEALED) for found in pattern.finditer(text))


def mask_value(value: T, names: ShownNames) -> T:
    """Return a value with every text in it masked, and every ``Name`` as it is shown.

    ``Verbatim`` fields and those of certain words stay. Tuples, lists, mappings and dataclasses are gone through; what
    has no secret in it is returned as it is.
    """
    return cast("T", _map_texts(value, names.masker.text, names.shown))


def mark_secrets(value: T, names: ShownNames) -> T:
    """Return a value with a mark of its own for each secret in its texts, so that two that differ stay different."""
    return cast("T", _map_texts(value, names.mask_text, names.mask_text))


def resolve_names(value: T, names: ShownNames) -> T:
    """Return a dataclass that operators have handed in, with what each ``Name`` in its fields means."""
    old = {name: getattr(value, name) for name in _names_of(type(value))}
    new = {name: _map_texts(item, names.meant, names.meant) for name, item in old.items()}
    return replace(value, **new) if new != old else value  # type: ignore[type-var]


def _map_texts(value: Any, text: Callable[[str], str], name: Callable[[str], str]) -> Any:
    match value:
        case str():
            return text(value)
        case tuple():
            return tuple(_map_texts(item, text, name) for item in cast("tuple[Any, ...]", value))
        case list():
            return [_map_texts(item, text, name) for item in cast("list[Any]", value)]
        case Mapping():
            return {key: _map_texts(item, text, name) for key, item in cast("Mapping[Any, Any]", value).items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            named = _names_of(type(value))
            old = {field: getattr(value, field) for field in texts_of(type(value))}
            new = {field: _map_texts(item, name if field in named else text, name) for field, item in old.items()}
            return replace(value, **new) if new != old else value
        case _:
            return value


@cache
def texts_of(kind: type) -> tuple[str, ...]:
    """Return the fields of a dataclass that may have a text in them which is masked."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(field.name for field in fields(kind) if _may_have_text(hints[field.name]))


@cache
def _names_of(kind: type) -> frozenset[str]:
    """Return the fields of a dataclass that are names, or tuples of names."""
    hints = get_type_hints(kind, include_extras=True)
    return frozenset(field.name for field in fields(kind) if _is_name(hints[field.name]))


def _is_name(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return _NAME in hint.__metadata__ or _is_name(get_args(hint)[0])
    return any(map(_is_name, get_args(hint)))


def _may_have_text(hint: Any) -> bool:
    if get_origin(hint) is Literal or hint in _WITHOUT_TEXT or hint is ...:
        return False
    if get_origin(hint) is Annotated:
        return _VERBATIM not in hint.__metadata__ and _may_have_text(get_args(hint)[0])
    parts = get_args(hint)
    return any(map(_may_have_text, parts)) if parts else not is_dataclass(hint) or bool(texts_of(cast("type", hint)))
