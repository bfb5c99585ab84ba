"""Confine this process, then become the program: ``python -I -S launcher.py POLICY COMMAND ARGUMENT…`` (A7).

The standard library alone, and as little of it as will do: every start of a confined plugin waits for it. What is
set here holds for the program and all that it starts, and nothing takes it back. POLICY is JSON: ``write``, ``read``,
``list_only`` and ``devices`` are paths without links, ``network`` is null or a list of TCP ports, ``token`` a file that
is touched where there is a network, so that gateways look who runs.

Landlock rules files, TCP ports, signals; the filter on system calls rules the sockets that Landlock knows nothing of,
what goes around either of them, and what a process may do to other processes of its user.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from typing import Any, Final, NamedTuple

FAILED: Final = 126
"""How this process exits where it cannot confine itself or start the program."""
PACKED: Final = "z:"
"""What a policy begins with that is compressed: one argument of a program has at most 128 kB."""
_OLDEST: Final = 3
"""The first Landlock that rules who may truncate a file; before, any readable file could be emptied."""
_OLDEST_WITH_PORTS: Final = 4

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF, _OPENAT2 = 444, 445, 446, 437
_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2
_ACTION_AVAILABLE: Final = 2
_CURRENT_FOLDER: Final = -100
_DROP_CAPABILITY, _LAST_CAPABILITY = 24, 63
_CAPABILITIES_VERSION: Final = 0x20080522
_KEPT: Final = sum(1 << each for each in (0, 1, 3, 4, 5, 6, 7, 10, 13))
"""What root keeps: to own files, to become another user, low ports, ping. Others look past the rules."""

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_SOCK, _MAKE_BLOCK, _TRUNCATE, _IOCTL = 1 << 6, 1 << 9, 1 << 11, 1 << 14, 1 << 15
_FIRST_RIGHTS: Final = (1 << 13) - 1
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_READS: Final = _EXECUTE | _READ_FILE | _READ_DIR
_NEVER: Final = _MAKE_CHAR | _MAKE_SOCK | _MAKE_BLOCK | _IOCTL
_DEVICES: Final = _READ_FILE | _WRITE_FILE | _TRUNCATE
_TCP: Final = 0b11
_SCOPES: Final = 0b11

_KILL, _ALLOW, _ERROR = 0x80000000, 0x7FFF0000, 0x00050000
_EPERM, _EACCES, _ENOSYS = 1, 13, 38
_LOAD, _AND, _RETURN, _EQUAL, _AT_LEAST, _ANY_OF = 0x20, 0x54, 0x06, 0x15, 0x35, 0x45
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16
_X32: Final = 0x40000000
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _SEQPACKET, _KIND = 1, 5, 0xF
_HIGHEST_PORT, _FILE_LOCKS = 65535, 10
_FAST_OPEN: Final = 0x20000000


class _MachineNumbers(NamedTuple):
    """The numbers of one kind of processor: its own, and those of its system calls.

    ``refused`` go around the rules: rings of requests that no filter sees, keys of the user, code in the kernel and its
    log, files by number, ports of the hardware. ``shared`` are memory, semaphores and queues by a number or name that
    every process of the user reaches. ``controls`` set the limits and the scheduling of the process that their first
    argument names, ``priorities`` the priority of the process that the second names where the first is this number.
    """

    audit: int
    socket: int
    socketpair: int
    sends: tuple[tuple[int, int], ...]
    refused: tuple[int, ...]
    shared: tuple[int, ...]
    controls: tuple[int, ...]
    priorities: tuple[tuple[int, int], ...]


_RINGS: Final = (425, 426, 427)
_UNKNOWN: Final = (435, 469)
"""What is answered as by a kernel that lacks it, since programs know what to do then: a process in a control group that
its maker names (`clone3`: the older call starts the others), attributes of a file by its path (`file_setattr`)."""
_MACHINES: Final = {
    "x86_64": _MachineNumbers(
        audit=0xC000003E,
        socket=41,
        socketpair=53,
        sends=((44, 3), (46, 2), (307, 3)),
        refused=(*_RINGS, 248, 249, 250, 175, 176, 313, 246, 320, 321, 298, 304, 172, 173, 103),
        shared=(29, 30, 31, 67, 64, 65, 66, 220, 68, 69, 70, 71, 240, 241),
        controls=(302, 203, 142, 144, 314),
        priorities=((141, 0), (251, 1)),
    ),
    "aarch64": _MachineNumbers(
        audit=0xC00000B7,
        socket=198,
        socketpair=199,
        sends=((206, 3), (211, 2), (269, 3)),
        refused=(*_RINGS, 217, 218, 219, 105, 106, 273, 104, 294, 280, 241, 265, 116),
        shared=(194, 196, 195, 197, 190, 193, 191, 192, 186, 189, 188, 187, 180, 181),
        controls=(261, 122, 118, 119, 274),
        priorities=((140, 0), (30, 1)),
    ),
}

_FilterStep = tuple[int, int, int, int]


def missing_support(network: tuple[int, ...] | None = None) -> str:
    """Return what this system lacks to confine a process, or nothing; it changes nothing.

    Args:
        network: the ports that are asked for, where they are.
    """
    if sys.platform != "linux":
        return "this system is not Linux"
    machine = os.uname().machine
    if machine not in _MACHINES:
        return f"there are no numbers of system calls for {machine}"
    version = _landlock()
    if version < 1:
        return "this kernel has no Landlock"
    oldest = _OLDEST_WITH_PORTS if network else _OLDEST
    if version < oldest:
        return f"Landlock of this kernel has version {version}, and {oldest} is needed"
    if _call(_seccomp_number(machine), _ACTION_AVAILABLE, 0, struct.pack("=I", _KILL)) != 0:
        return "this kernel has no filter on system calls (seccomp)"
    return ""


def confine(policy: dict[str, Any]) -> None:
    """Confine this process and all that it will start; raises ``OSError`` where something of it fails."""
    machine = _MACHINES[os.uname().machine]
    libc = _libc()
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise _failure("no_new_privs")
    _drop_capabilities(libc)
    if policy["network"] != []:
        _mark(libc, policy)
    _rule_files_and_ports(policy)
    steps = _filter_steps(machine, policy["network"])
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    held = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HP", len(steps), ctypes.addressof(held))
    if libc.prctl(_SET_SECCOMP, _FILTER, program, 0, 0) != 0:
        raise _failure("seccomp")


def _drop_capabilities(libc: Any) -> None:
    """Give up what lets root see into other processes and change the kernel, for the program too."""
    header = struct.pack("=Ii", _CAPABILITIES_VERSION, 0)
    held = ctypes.create_string_buffer(24)
    if libc.capget(header, held) != 0:
        raise _failure("capget")
    if not any(held.raw):
        return
    for each in range(_LAST_CAPABILITY + 1):
        if not _KEPT >> each & 1:
            libc.prctl(_DROP_CAPABILITY, each, 0, 0, 0)  # fails for what this kernel lacks; a user has none to drop
    low, high = _KEPT & 0xFFFFFFFF, _KEPT >> 32
    kept = [word & (low if index < 3 else high) for index, word in enumerate(struct.unpack("=6I", held.raw))]
    if libc.capset(header, struct.pack("=6I", *kept)) != 0:
        raise _failure("capset")


def _mark(libc: Any, policy: dict[str, Any]) -> None:
    """Let gateways see that this process could reach them: by a limit that means nothing else, and no one can raise.

    It is what is left of the ports above the highest one that it reaches. The file is touched once that is so.
    """
    left = _HIGHEST_PORT - max(policy["network"] or [_HIGHEST_PORT])
    if libc.setrlimit(_FILE_LOCKS, struct.pack("@2L", left, left)) != 0:
        raise _failure("setrlimit")
    os.utime(policy["token"])


def _rule_files_and_ports(policy: dict[str, Any]) -> None:
    version = _landlock()
    handled = _FIRST_RIGHTS | sum(1 << bit for bit, since in ((13, 2), (14, 3), (15, 5)) if version >= since)
    ports = policy["network"]
    net = _TCP if ports is not None and version >= _OLDEST_WITH_PORTS else 0
    size = 8 if version < 4 else 16 if version < 6 else 24
    attributes = struct.pack("=QQQ", handled, net, _SCOPES if version >= 6 else 0)[:size]
    ruleset = _call(_CREATE_RULESET, attributes, size, 0)
    if ruleset < 0:
        raise _failure("landlock_create_ruleset")
    kinds = (
        ("write", handled & ~_NEVER),
        ("read", _READS),
        ("list_only", _READ_DIR),
        ("devices", _DEVICES & handled),
    )
    for kind, rights in kinds:
        for path in policy[kind]:
            _grant_path(ruleset, path, rights)
    for port in ports or () if net else ():
        if _call(_ADD_RULE, ruleset, 2, struct.pack("=QQ", _TCP, port), 0) != 0:
            raise _failure(f"the rule for port {port}")
    if _call(_RESTRICT_SELF, ruleset, 0) != 0:
        raise _failure("landlock_restrict_self")
    os.close(ruleset)


def _grant_path(ruleset: int, path: str, rights: int) -> None:
    """Grant rights on a path and what is below it; one that is no longer there, or is a link by now, is passed over.

    The policy has paths without links: what was a folder then may since have been replaced by what it may not reach.
    """
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, 0x04)  # RESOLVE_NO_SYMLINKS
    handle = _call(_OPENAT2, _CURRENT_FOLDER, os.fsencode(path), how, len(how))
    if handle < 0:
        return
    try:
        if not os.path.isdir(f"/proc/self/fd/{handle}"):  # noqa: PTH112 - pathlib takes as long as all the rest
            rights &= _OF_FILES
        if rights and _call(_ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, handle), 0) != 0:
            raise _failure(f"the rule for {path}")
    finally:
        os.close(handle)


def _filter_steps(machine: _MachineNumbers, ports: list[int] | None) -> list[_FilterStep]:
    """Return the filter: which system calls come through, by their number and, for sockets, by their arguments."""
    steps = [
        _step(_LOAD, _MACHINE),
        _step(_EQUAL, machine.audit, 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER),
        _step(_AT_LEAST, _X32, 0, 1),
        _step(_RETURN, _ERROR | _ENOSYS),
    ]
    for number in (*machine.refused, *machine.shared):
        steps += _for_call(number, [_step(_RETURN, _ERROR | _EPERM)])
    for number in _UNKNOWN:
        steps += _for_call(number, [_step(_RETURN, _ERROR | _ENOSYS)])
    steps += _filter_for_itself(machine)
    pair = [
        *_allow_only(0, (_UNIX,)),
        *_allow_only(1, (_STREAM, _SEQPACKET), mask=_KIND),  # one of datagrams could be sent elsewhere
        _step(_RETURN, _ALLOW),
    ]
    steps += _for_call(machine.socketpair, pair)
    steps += _for_call(machine.socket, _sockets(ports))
    for number, flags in machine.sends if ports else ():
        fast = [
            _step(_LOAD, _ARGUMENTS + 8 * flags),
            _step(_ANY_OF, _FAST_OPEN, 0, 1),  # it connects without asking
            _step(_RETURN, _ERROR | _EACCES),
            _step(_RETURN, _ALLOW),
        ]
        steps += _for_call(number, fast)
    return [*steps, _step(_RETURN, _ALLOW)]


def _filter_for_itself(machine: _MachineNumbers) -> list[_FilterStep]:
    """Return what lets a process set its own limits, scheduling and priority, and those of no other.

    It has to name itself by 0: no filter knows the number of a process that is started later.
    """
    itself, steps = [_step(_RETURN, _ALLOW)], list[_FilterStep]()
    for number in machine.controls:
        steps += _for_call(number, [*_allow_only(0, (0,), error=_EPERM), *itself])
    for number, process in machine.priorities:
        steps += _for_call(
            number, [*_allow_only(0, (process,), error=_EPERM), *_allow_only(1, (0,), error=_EPERM), *itself]
        )
    return steps


def _sockets(ports: list[int] | None) -> list[_FilterStep]:
    """Return which sockets can be made: Internet ones, and where ports are named only TCP."""
    if ports is None:
        routes = [_step(_LOAD, _ARGUMENTS + 16), _step(_EQUAL, 0, 0, 1), _step(_RETURN, _ALLOW)]
        return [
            _step(_LOAD, _ARGUMENTS),
            _step(_EQUAL, _NETLINK, 0, len(routes)),
            *routes,
            *_allow_only(0, (_INET, _INET6)),
            _step(_RETURN, _ALLOW),
        ]
    if not ports:
        return [_step(_RETURN, _ERROR | _EACCES)]
    return [
        *_allow_only(0, (_INET, _INET6)),
        *_allow_only(1, (_STREAM,), mask=_KIND),
        *_allow_only(2, (0, 6)),  # other protocols have streams too, of which Landlock rules nothing
        _step(_RETURN, _ALLOW),
    ]


def _allow_only(argument: int, values: tuple[int, ...], *, mask: int = 0, error: int = _EACCES) -> list[_FilterStep]:
    """Return the steps that refuse a call unless an argument of it is one of these; they count as C's ints do."""
    loaded = [_step(_LOAD, _ARGUMENTS + 8 * argument), *([_step(_AND, mask)] if mask else [])]
    tests = [_step(_EQUAL, value, len(values) - index, 0) for index, value in enumerate(values)]
    return [*loaded, *tests, _step(_RETURN, _ERROR | error)]


def _for_call(number: int, steps: list[_FilterStep]) -> list[_FilterStep]:
    return [_step(_EQUAL, number, 0, len(steps)), *steps]


def _step(code: int, value: int, so: int = 0, otherwise: int = 0) -> _FilterStep:
    return (code, so, otherwise, value)


def _landlock() -> int:
    return _call(_CREATE_RULESET, None, 0, 1)


def _seccomp_number(machine: str) -> int:
    return 317 if machine == "x86_64" else 277


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call; whole numbers are passed as wide as a register."""
    passed = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    found: int = _libc().syscall(ctypes.c_long(number), *passed)
    return found


def _failure(what: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, f"{what}: {os.strerror(code)}")


def _read_policy(text: str) -> dict[str, Any]:
    import json

    if text.startswith(PACKED):
        import binascii
        import zlib

        text = zlib.decompress(binascii.a2b_base64(text.removeprefix(PACKED))).decode()
    return json.loads(text)


def main(arguments: list[str]) -> None:
    """Confine this process by the policy, the first argument, and become the program, the other ones."""
    text, command, *rest = arguments
    try:
        confine(_read_policy(text))
    except OSError as problem:
        sys.exit(_report_refusal(f"this process cannot be confined: {problem.strerror}"))
    try:
        os.execve(command, [command, *rest], os.environ)  # noqa: S606 - there is no shell on purpose
    except OSError as problem:
        sys.exit(_report_refusal(f"{command} cannot be started: {problem.strerror}"))


def _report_refusal(message: str) -> int:
    sys.stderr.write(f"pegboard: {message}\n")
    return FAILED


if __name__ == "__main__":
    main(sys.argv[1:])
