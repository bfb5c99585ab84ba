"""Errors of PostgreSQL as errors of a store: what is wrong and what to do, never a password (X5)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pegboard.errors import StoreBusyError, StoreError, StoreSchemaError, StoreUnavailableError, store_unavailable
from pegboard.support.installed import install_hint

if TYPE_CHECKING:
    import psycopg

    from pegboard.stores.sql.address import PostgresAddress

_LAST: Final = re.compile(r"(?:failed|error): (?!.*(?:failed|error): )(?P<why>[^\n]+)")
_GONE_CLASSES: Final = ("08", "57P")
"""What says that the connection, or the server, has gone away."""
_TOO_MANY: Final = "53300"
_BUSY: Final = ("55P03", "40001", "40P01")
_AGAIN: Final = ("40001", "40P01")


def runs_again(error: psycopg.Error) -> bool:
    """Return whether the transaction was undone for another one's sake, and works if it is tried again."""
    return error.sqlstate in _AGAIN


def require_packages() -> None:
    """Raise ``StoreError`` where what speaks to the server is not installed."""
    try:
        import psycopg
        import psycopg_pool
    except ImportError as error:
        raise StoreError(
            f"A store in PostgreSQL needs the package {error.name}, which cannot be loaded.",
            hint=install_hint(extra="postgres"),
        ) from error
    del psycopg, psycopg_pool


def unavailable_error(address: PostgresAddress, why: str) -> StoreUnavailableError:
    """Return the error that the server cannot be reached now."""
    return store_unavailable(address.shown, why)


def not_opened_error(error: psycopg.Error, address: PostgresAddress) -> StoreError:
    """Return why there is no connection; the server tells so in words alone."""
    text = str(error)
    if "password authentication failed" in text or "no password supplied" in text or "SASL" in text:
        return StoreError(
            f"{address.shown} refuses the user or the password.",
            hint="Correct them in `store:`; characters like @ / : # are written there as %40 %2F %3A %23.",
        )
    if "pg_hba.conf" in text:
        return StoreError(
            f"{address.shown} does not allow this user from this host (pg_hba.conf).",
            hint="Let an administrator of the server permit it, with encryption (`?sslmode=require`) or without.",
        )
    if re.search(r'database "[^"]*" does not exist', text):
        return StoreError(f"{address.shown}: there is no such database.", hint=_MAKE_DATABASE)
    if re.search(r'role "[^"]*" (does not exist|is not permitted)', text):
        return StoreError(f"{address.shown} does not know the user, or does not let it log in.", hint=_MAKE_DATABASE)
    if "unsupported startup parameter" in text:
        return StoreError(
            f"{address.shown}: the pooler in front of the server refuses an option of the address.",
            hint="Remove the part after '?' in `store:`.",
        )
    return unavailable_error(address, _reason(error))


_MAKE_DATABASE: Final = "Make it: CREATE ROLE … LOGIN PASSWORD '…'; CREATE DATABASE … OWNER … ENCODING 'UTF8'."


def error_of_database(error: psycopg.Error, address: PostgresAddress) -> StoreError:
    """Return the error that names the database, what is wrong with it and what to do."""
    import psycopg

    state = error.sqlstate or ""
    if state == _TOO_MANY or state.startswith(_GONE_CLASSES) or state == "25P03":
        return unavailable_error(address, _reason(error))
    if not state and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return unavailable_error(address, _reason(error))
    if state in _BUSY:
        return StoreBusyError(
            f"{address.shown} was kept locked by other writers.",
            hint="Find the transaction that holds it (pg_stat_activity) and end it.",
        )
    if state == "57014":
        return unavailable_error(address, "a statement was cancelled")
    return _error_of_state(error, state, address)


def _error_of_state(error: psycopg.Error, state: str, address: PostgresAddress) -> StoreError:
    match state:
        case "25006":
            return read_only(address)
        case "53100" | "53200":
            what = "the disk of the server is full" if state == "53100" else "the server has no memory left"
            return StoreError(f"{address.shown} cannot be written: {what}.", hint="Make room; nothing was changed.")
        case "42501":
            return no_rights(address)
        case "3F000" | "42P01" | "42703" | "42704":
            return StoreSchemaError(
                f"{address.shown}: tables of the schema '{address.schema}' are missing or of another version.",
                hint="Put a backup back, or drop the schema: the next start creates it again.",
            )
        case _:
            return StoreError(f"{address.shown} cannot be read or written ({_reason(error)}).")


def not_ours_error(address: PostgresAddress) -> StoreSchemaError:
    """Return the error that the schema has tables of another program, or of an earlier Pegboard."""
    moved = f'ALTER SCHEMA {address.quoted} RENAME TO {address.quoted[:-1]}_before"'
    return StoreSchemaError(
        f"{address.shown}: the schema '{address.schema}' is not a store of this Pegboard: another program or an earlier"
        " Pegboard made its tables.",
        hint=f"Move it away to start with an empty store ({moved}), or name another one: `?schema=NAME`.",
    )


def read_only(address: PostgresAddress) -> StoreError:
    """Return the error that nothing can be written."""
    return StoreError(
        f"{address.shown} is read-only: a standby, or a database or user with default_transaction_read_only.",
        hint="Point `store:` to the primary (`?target_session_attrs=read-write` finds it among several hosts).",
    )


def no_rights(address: PostgresAddress) -> StoreError:
    """Return the error that the user may not make, or not use, the tables."""
    return StoreError(
        f"{address.shown}: the user has no right to the schema '{address.schema}'.",
        hint=f"Let the owner of the database run: CREATE SCHEMA {address.quoted} AUTHORIZATION the_user.",
    )


def other_encoding(address: PostgresAddress, encoding: str) -> StoreError:
    """Return the error that the database does not hold every text."""
    return StoreError(
        f"{address.shown} has the encoding {encoding}; texts of all languages need UTF8.",
        hint="Make another database: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.",
    )


def _reason(error: psycopg.Error) -> str:
    """Return the last clause of what was said, in one line without the name of anyone."""
    if error.sqlstate and error.diag.message_primary:
        return _without_names(error.diag.message_primary)
    text = str(error).strip()
    found = _LAST.search(text)
    line = (found["why"] if found else text.partition("\n")[0]).strip().rstrip(".")
    return _without_names(line) or type(error).__name__


def _without_names(text: str) -> str:
    return re.sub(r'(user|role|password)s? "[^"]*"', r"\1", text)
