"""The address of a PostgreSQL database as parameters of a connection, and as it may be shown (X5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from pegboard.core.model.addresses import split_store
from pegboard.core.model.postgres_addresses import postgres_parts

SCHEMA: Final = "pegboard"
"""The schema that the tables are in where the address names no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresAddress:
    """A database, and the schema of it that the tables are in.

    ``shown`` has neither the user nor the password, ``parameters`` are those of libpq.
    """

    shown: str
    schema: str = SCHEMA
    parameters: dict[str, str] = field(repr=False)

    @property
    def quoted(self) -> str:
        """Return the schema as it is in a statement."""
        return '"' + self.schema.replace('"', '""') + '"'

    @property
    def number(self) -> int:
        """Return the number of the schema's locks: those of other schemas, and of other programs, have others."""
        digest = blake2b(f"pegboard {self.schema}".encode(), digest_size=7).digest()
        return int.from_bytes(digest, "big")

    @property
    def channel(self) -> str:
        """Return the channel that changes are told on: a name of the database, not of the schema."""
        return f"pegboard_{self.number:x}"


def address_of(url: str) -> PostgresAddress:
    """Return the address that a URL which :func:`store_fault` accepts means."""
    parts = postgres_parts(split_store(url)[1])
    given = dict(parts.options)
    schema = given.pop("schema", SCHEMA)
    own = {"user": parts.user, "password": parts.password, "host": parts.hosts, "port": parts.ports}
    parameters = {name: value for name, value in own.items() if value}
    parameters |= {"dbname": parts.database, "application_name": "pegboard", "client_encoding": "UTF8"} | given
    host = parts.hosts or given.get("host") or "localhost"
    port = parts.ports or given.get("port") or ""
    where = ",".join(hosts) if len(hosts := host.split(",")) > 1 else host + (f":{port}" if port else "")
    return PostgresAddress(shown=f"postgresql://{where}/{parts.database}", schema=schema, parameters=parameters)
