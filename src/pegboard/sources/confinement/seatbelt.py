"""A policy as a profile of macOS's ``sandbox-exec``: text only, it has been run on no Mac."""

from __future__ import annotations

from collections.abc import Iterator

from pegboard.sources.confinement.policy import ConfinementPolicy


def profile(policy: ConfinementPolicy) -> str:
    """Return the profile: all is refused that is not allowed, children too."""
    return "\n".join(_lines(policy))


def _lines(policy: ConfinementPolicy) -> Iterator[str]:
    yield "(version 1)"
    yield "(deny default)"
    yield "(allow process-exec process-fork)"
    yield "(allow signal (target same-sandbox))"
    yield "(allow sysctl-read)"
    yield "(allow file-read-metadata)"
    yield '(allow file-read* (literal "/"))'
    yield from _rule("file-read*", "subpath", (*policy.read, *policy.write))
    yield from _rule("file-read*", "literal", policy.list_only)
    yield from _rule("file-read* file-write*", "literal", policy.devices)
    yield from _rule("file-write*", "subpath", policy.write)
    if policy.network is None:
        yield '(allow network-outbound (remote ip "*:*"))'
        yield '(allow network-outbound (literal "/private/var/run/mDNSResponder"))'
        yield '(allow network-bind network-inbound (local ip "*:*"))'
        yield '(allow mach-lookup (global-name "com.apple.SystemConfiguration.configd"))'
        yield '(allow mach-lookup (global-name "com.apple.trustd"))'
    for port in policy.network or ():
        yield f'(allow network-outbound (remote tcp "*:{port}"))'
        yield f'(allow network-bind network-inbound (local tcp "*:{port}"))'


def _rule(what: str, filter_: str, paths: tuple[str, ...]) -> Iterator[str]:
    if paths:
        yield f"(allow {what} {' '.join(f'({filter_} {_quote_path(path)})' for path in paths)})"


def _quote_path(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
