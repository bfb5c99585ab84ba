"""Kill daemon, proxy, server and command again and again while clients call, and count lost and repeated calls.

``python -m benchmarks daemon_kills [--times 200] [--seconds N]``. Two clients call over stdio and two by the command.
The four are killed in every order: each of the 24 orders is a row of four kills, and the rows are shuffled.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from benchmarks.own_daemon import DAEMON, PROGRAM, PROXY, SMALL_SERVER, OwnUser, own_user

LIMIT: Final = 120.0
"""How long an answer may take before it counts as lost, in seconds."""
KINDS: Final = {"daemon": DAEMON, "proxy": PROXY, "server": b"/small.py", "command": b"call\0small__say"}


class SteadyCaller(threading.Thread):
    """What makes one call after the other, each with a word of its own, and starts again where it is killed."""

    def __init__(self, number: int, user: OwnUser) -> None:
        super().__init__(daemon=True)
        self.number, self.user = number, user
        self.ending = threading.Event()
        self.answered: set[str] = set()
        self.failed: set[str] = set()
        self.cut: set[str] = set()
        self.longest = 0.0
        self.lost = 0
        self._words = 0

    def word(self) -> str:
        """Return a word that no call has had."""
        self._words += 1
        return f"{self.number}-{self._words}"

    def note(self, word: str, began: float, *, fine: bool) -> None:
        """Note that a call was answered."""
        self.longest = max(self.longest, time.monotonic() - began)
        (self.answered if fine else self.failed).add(word)


class CommandCaller(SteadyCaller):
    """A coding agent with a shell."""

    def run(self) -> None:
        """Call until it is to end."""
        while not self.ending.is_set():
            word, began = self.word(), time.monotonic()
            try:
                ran = self.user.run("call", "small__say", f"word={word}", timeout=LIMIT)
            except subprocess.TimeoutExpired:
                self.lost += 1
                continue
            if ran.returncode < 0:
                self.cut.add(word)
            else:
                self.note(word, began, fine=(ran.returncode, ran.stdout) == (0, "said\n"))


class StdioCaller(SteadyCaller):
    """A client over stdio."""

    def run(self) -> None:
        """Call until it is to end."""
        while not self.ending.is_set():
            pipe = subprocess.PIPE
            process = subprocess.Popen(
                [PROGRAM, "serve", "--stdio"], stdin=pipe, stdout=pipe, env=self.user.env, cwd=self.user.folder
            )
            with suppress(OSError, EOFError), process:
                try:
                    self._converse(process)
                finally:
                    process.kill()

    def _converse(self, process: subprocess.Popen[bytes]) -> None:
        about = {"name": f"client{self.number}", "version": "1"}
        self._ask(process, 0, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about)
        for number in itertools.count(1):
            if self.ending.is_set():
                return
            word, began = self.word(), time.monotonic()
            try:
                answer = self._ask(process, number, "tools/call", name="small__say", arguments={"word": word})
            except (OSError, EOFError):
                self.cut.add(word)
                raise
            self.note(word, began, fine=not answer.get("result", {"isError": True}).get("isError"))

    def _ask(self, process: subprocess.Popen[bytes], number: int, method: str, **params: Any) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
        process.stdin.write(line + b"\n")
        process.stdin.flush()
        timer = threading.Timer(LIMIT, self._give_up, [process])
        timer.start()
        try:
            while said := process.stdout.readline():
                message = json.loads(said)
                if message.get("id") == number and "method" not in message:
                    return message
        finally:
            timer.cancel()
        raise EOFError

    def _give_up(self, process: subprocess.Popen[bytes]) -> None:
        self.lost += 1
        process.kill()


def main(arguments: Sequence[str]) -> int:
    """Kill, and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks daemon_kills", description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so many, however often it was killed")
    given = parser.parse_args(arguments)
    with own_user(configuration, PEGBOARD_DAEMON_IDLE="5") as user:
        user.run("call", "small__say", "word=first")
        callers = [kind(number, user) for number, kind in enumerate(_CALLERS * 2)]
        for caller in callers:
            caller.start()
        killed = kill(user, callers, given)
        for caller in callers:
            caller.ending.set()
        for caller in callers:
            caller.join(LIMIT)
        limit = time.monotonic() + 60
        while any(user.processes(part) for part in KINDS.values()) and time.monotonic() < limit:
            time.sleep(0.1)
        return report(user, callers, killed)


def configuration(folder: Path) -> Mapping[str, Any]:
    """Return a configuration with one server, which writes down what it was asked to say."""
    return {
        "servers": {"small": {"command": sys.executable, "args": [str(SMALL_SERVER), str(folder / "said")]}},
        "agents": {"ada": {"tools": ["small"], "unloaded_call": "run"}},
    }


def kill(user: OwnUser, callers: list[SteadyCaller], given: argparse.Namespace) -> dict[str, int]:
    """Kill one after the other, each after at least one more answer; return how often each was."""
    chosen = random.Random(given.seed)
    killed, began = dict.fromkeys(KINDS, 0), time.monotonic()
    for kind in itertools.islice(orders(chosen), given.times):
        if time.monotonic() - began > given.seconds:
            break
        before = sum(len(caller.answered) for caller in callers)
        limit = time.monotonic() + LIMIT
        while sum(len(caller.answered) for caller in callers) == before and time.monotonic() < limit:
            time.sleep(0.01)
        time.sleep(chosen.random() * 0.05)
        while time.monotonic() < limit:
            if found := user.processes(KINDS[kind]):
                with suppress(ProcessLookupError):
                    os.kill(chosen.choice(found), signal.SIGKILL)
                    killed[kind] += 1
                    break
    return killed


def orders(chosen: random.Random) -> Iterator[str]:
    """Yield the kinds in every order, without end."""
    while True:
        rows = list(itertools.permutations(KINDS))
        chosen.shuffle(rows)
        yield from itertools.chain.from_iterable(rows)


def report(user: OwnUser, callers: list[SteadyCaller], killed: dict[str, int]) -> int:
    """Print what became of the calls; return 1 where one was lost, ran twice, or a process is left."""
    ran = (user.folder / "said").read_text().splitlines()
    answered = {word for caller in callers for word in caller.answered}
    left = {kind: found for kind, part in KINDS.items() if (found := len(user.processes(part)))}
    missing, twice, lost = len(answered - set(ran)), len(ran) - len(set(ran)), sum(each.lost for each in callers)
    print(f"killed: {sum(killed.values())} times, {killed}")
    print(f"answered {len(answered)}, with an error {sum(len(each.failed) for each in callers)}, ", end="")
    print(f"of killed callers {sum(len(each.cut) for each in callers)}")
    print(f"answered and did not run: {missing}; ran twice: {twice}; without an answer within {LIMIT:.0f} s: {lost}")
    longest = {kind.__name__: max(each.longest for each in callers if isinstance(each, kind)) for kind in _CALLERS}
    print(f"longest call, s: {', '.join(f'{name} {found:.2f}' for name, found in longest.items())}; left: {left}")
    return 1 if missing or twice or lost or left else 0


_CALLERS: Final = (StdioCaller, CommandCaller)
