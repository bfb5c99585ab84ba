"""What the address of a PostgreSQL database must look like, and its parts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

SCHEMES: Final = ("postgresql", "postgres")
OPTIONS: Final = frozenset({
    "channel_binding", "connect_timeout", "gssencmode", "host", "hostaddr", "krbsrvname", "load_balance_hosts",
    "passfile", "password", "port", "require_auth", "schema", "service", "sslcert", "sslcompression", "sslcrl",
    "sslkey", "sslmode", "sslnegotiation", "sslpassword", "sslrootcert", "target_session_attrs", "user",
})  # fmt: skip
"""What may stand behind '?': what libpq takes for a connection, and the schema of the tables."""
_SECRET: Final = ("password", "sslpassword")
_SCHEMA: Final = "[A-Za-z_][A-Za-z0-9_]{0,62}"
_WRONG_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresParts:
    """The parts of an address, decoded; several hosts stand with commas between them, and so do their ports."""

    user: str = ""
    password: str = field(default="", repr=False)
    hosts: str = ""
    ports: str = ""
    database: str = ""
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def postgres_fault(rest: str) -> str:
    """Return what is wrong with what is behind ``postgresql:``, or nothing; never what it is, it may be secret.

    >>> postgres_fault("//db/pegboard"), postgres_fault("//db:5432/pegboard?sslmode=require")
    ('', '')
    >>> postgres_fault("db/pegboard")
    'the host of a postgresql store comes after two slashes.'
    """
    if not rest.startswith("//"):
        return "the host of a postgresql store comes after two slashes."
    if "\0" in unquote(rest):
        return "the address of the postgresql store contains a NUL character."
    if _WRONG_PERCENT.search(rest):
        return "a '%' in the address of the postgresql store is written as %25."
    if "#" in rest:
        return "a '#' in the address of the postgresql store is written as %23."
    authority, _, path = rest[2:].partition("?")[0].partition("/")
    if "@" in path:
        return "a '/', '?' or '@' in the user or password of the postgresql store is written as %2F, %3F or %40."
    if not path or "/" in path:
        return "the postgresql store names no database: write it after the host."
    for host in authority.rpartition("@")[2].split(","):
        port = host.rpartition("]")[2].partition(":")[2] if host.startswith("[") else host.partition(":")[2]
        if port and not (port.isdecimal() and 0 < int(port) < 65_536):
            return "the port of the postgresql store is not a number from 1 to 65535."
    return _option_fault(rest)


def _option_fault(rest: str) -> str:
    for name, value in _options(rest):
        if name not in OPTIONS:
            known = name if re.fullmatch(r"[a-z_]{1,40}", name) else "…"
            return f"a postgresql store has no option '{known}' after '?'."
        if name == "schema" and not re.fullmatch(_SCHEMA, value):
            return "the schema of the postgresql store is a name of up to 63 letters, digits and underscores."
    return ""


def _options(rest: str) -> tuple[tuple[str, str], ...]:
    query = rest.partition("?")[2]
    pairs = (pair.partition("=") for pair in query.split("&") if pair)
    return tuple((unquote(name), unquote(value)) for name, _, value in pairs)


def postgres_parts(rest: str) -> PostgresParts:
    """Return the parts of what is behind ``postgresql:``, which :func:`postgres_fault` finds nothing wrong with.

    >>> parts = postgres_parts("//ada@[::1]:5433,db2/peg%20board?sslmode=require")
    >>> parts.hosts, parts.ports, parts.database, parts.options
    ('::1,db2', '5433,', 'peg board', (('sslmode', 'require'),))
    """
    authority, _, path = rest[2:].partition("?")[0].partition("/")
    login, _, places = authority.rpartition("@")
    user, _, password = login.partition(":")
    hosts: list[str] = []
    ports: list[str] = []
    for place in places.split(","):
        if place.startswith("["):
            host, _, port = place[1:].partition("]")
            port = port.removeprefix(":")
        else:
            host, _, port = place.partition(":")
        hosts.append(unquote(host))
        ports.append(port)
    return PostgresParts(
        user=unquote(user),
        password=unquote(password),
        hosts=",".join(hosts) if any(hosts) else "",
        ports=",".join(ports) if any(ports) else "",
        database=unquote(path),
        options=_options(rest),
    )


def without_login(rest: str) -> str:
    """Return what tells the database from others of what is behind ``postgresql:``: host, port, name, schema.

    >>> without_login("//ada:secret@db:5433/pegboard?sslmode=require&schema=mine")
    '//db:5433/pegboard?schema=mine'
    """
    parts = postgres_parts(rest)
    options = dict(parts.options)
    places = rest[2:].partition("?")[0].partition("/")[0].rpartition("@")[2]
    host, schema = options.get("host", ""), options.get("schema", "")
    asked = "&".join(f"{name}={value}" for name, value in (("host", host), ("schema", schema)) if value)
    return f"//{places}/{parts.database}{'?' if asked else ''}{asked}"


def secrets_of(rest: str) -> set[str]:
    """Return what must not be shown of what is behind ``postgresql:``, as it is written and as it is meant.

    >>> sorted(secrets_of("//ada:p%40ss@db/pegboard"))
    ['p%40ss', 'p@ss']
    """
    authority = rest.removeprefix("//").partition("?")[0].rpartition("@")[0]
    written = {authority.partition(":")[2]}
    for pair in rest.partition("?")[2].split("&"):
        name, _, value = pair.partition("=")
        if unquote(name) in _SECRET:
            written.add(value)
    return {text for one in written if one for text in (one, unquote(one))}
