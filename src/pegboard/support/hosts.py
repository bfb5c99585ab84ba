"""Which machine a host is, by its name alone: nothing is resolved."""

from __future__ import annotations

import socket
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Return whether a host is this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("127.1"), is_loopback("api.localhost")
    (True, True, True, True)
    >>> is_loopback("0.0.0.0"), is_loopback("example.org"), is_loopback("")
    (False, False, False)
    """
    if host.lower() == "localhost" or host.lower().endswith(".localhost"):
        return True
    address = address_of(host)
    return address is not None and address.is_loopback


def address_of(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host is written as, or None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host))  # 127.1 and 2130706433 are this machine, too
    except (OSError, ValueError):
        return None
