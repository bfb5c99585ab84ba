"""Run tests in workers that are forked once everything is imported and collected: ``pytest --workers 4``.

Importing and collecting takes as long as some hundred tests, and is done once. A worker is given its next few tests
when it has run the last ones: many at first, single ones at the end, so that all workers end together. What came of
each test goes back to the first process, which reports it. A worker that dies fails the test that it ran, and another
takes its place.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any

import pytest

SHARE = 8
"""A worker is given this part of what would be its share of the tests that are left."""
MOST_TOGETHER = 30
"""So many tests more than that a worker is given where they are of the same file."""
OF_FIRST_PROCESS = ("terminalreporter", "lfplugin", "nfplugin", "stepwiseplugin")
"""The plugins that report, or write what is kept for the next run."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--workers", type=int, default=0, help="run the tests in so many forked processes")


class Hooks:
    """What another plugin may add to a worker."""

    def pytest_worker_started(self, config: pytest.Config) -> None:
        """Run at the start of each worker, in it."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add what other plugins may do in a worker."""
    pluginmanager.add_hookspecs(Hooks)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in workers, where that is asked; what cannot be run is for pytest itself to say."""
    options = session.config.option
    if not options.workers or options.collectonly or session.testsfailed:
        return None
    return Run(session).run(min(options.workers, len(session.items)))


class Run:
    """One run of the tests, as the first process sees it."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._left = deque(range(len(session.items)))
        self._given: dict[Connection, deque[int]] = {}
        self._processes: dict[Connection, int] = {}

    def run(self, workers: int) -> bool:
        """Run all tests; return True, in a worker as well."""
        session = self._session
        for _ in range(workers):
            if (worker := self._fork()) is not None:
                return worker.run()
        while self._given:
            for connection in wait(list(self._given)):
                assert isinstance(connection, Connection)
                try:
                    what, *values = connection.recv()
                except (EOFError, ConnectionError):
                    if self._has_died(connection) and (worker := self._fork()) is not None:
                        return worker.run()
                else:
                    self._take(connection, what, values)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    def _fork(self) -> Worker | None:
        """Start a worker; return it where this is its process."""
        here, there = Pipe()
        process = os.fork()
        if not process:
            for connection in (here, *self._given):
                connection.close()
            return Worker(self._session, there)
        there.close()
        self._processes[here], self._given[here] = process, deque()
        return None

    def _take(self, connection: Connection, what: str, values: list[Any]) -> None:
        config, given = self._session.config, self._given[connection]
        match what:
            case "next":
                self._give(connection)
            case "reported":
                report = config.hook.pytest_report_from_serializable(config=config, data=values[0])
                config.hook.pytest_runtest_logreport(report=report)
            case "ended":
                item = self._session.items[given.popleft()]
                config.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
            case "warned":
                text, filename, line, when, nodeid, location = values
                message = warnings.WarningMessage(UserWarning(text), UserWarning, filename, line)
                config.hook.pytest_warning_recorded.call_historic(
                    kwargs={"warning_message": message, "when": when, "nodeid": nodeid, "location": location}
                )
            case _:
                raise ValueError(what)

    def _give(self, connection: Connection) -> None:
        """Send a worker its next tests, none where there are no more."""
        if self._session.shouldfail or self._session.shouldstop:
            self._left.clear()
        most = max(1, len(self._left) // (SHARE * len(self._given)))
        numbers = [self._left.popleft() for _ in range(min(most, len(self._left)))]
        for _ in range(len(self._left)):
            if not self._go_together(numbers[-1], self._left[0], len(numbers) - most):
                break
            numbers.append(self._left.popleft())
        self._given[connection].extend(numbers)
        connection.send(numbers)

    def _go_together(self, number: int, following: int, more: int) -> bool:
        """Return whether two tests of one file go to one worker: what is made for a file is made once, mostly.

        A document is one program, all of which goes to one worker.
        """
        item, next_item = self._session.items[number], self._session.items[following]
        return item.path == next_item.path and (more < MOST_TOGETHER or not isinstance(item, pytest.Function))

    def _has_died(self, connection: Connection) -> bool:
        """Return whether a worker has ended before its tests had; the one that it ran has failed then."""
        given = self._given.pop(connection)
        connection.close()
        _, status = os.waitpid(self._processes.pop(connection), 0)
        if not given or self._session.shouldfail or self._session.shouldstop:
            return False
        item = self._session.items[given.popleft()]
        self._left.extendleft(reversed(given))
        text = f"The worker ended within this test, with the status {os.waitstatus_to_exitcode(status)}."
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
        item.config.hook.pytest_runtest_logreport(report=report)
        return True


class Worker:
    """A worker, in its own process: a plugin that sends what is reported."""

    def __init__(self, session: pytest.Session, connection: Connection) -> None:
        self._session = session
        self._connection = connection
        self._is_running = False

    def run(self) -> bool:
        """Run the tests that this worker is given; return True when there are no more."""
        session, config = self._session, self._session.config
        for name in OF_FIRST_PROCESS:
            config.pluginmanager.unregister(name=name) if config.pluginmanager.has_plugin(name) else None
        capturing: Any = config.pluginmanager.getplugin("capturemanager")
        if capturing is not None:  # the files into which this process writes are those of the first process
            capturing.stop_global_capturing()
            capturing.start_global_capturing()
            capturing.suspend_global_capture()
        config.pluginmanager.register(self)  # which tells it of every warning before
        self._is_running = True
        config.hook.pytest_worker_started(config=config)
        numbers = self._numbers()
        number = next(numbers, None)
        while number is not None:
            following = next(numbers, None)
            next_item = None if following is None else session.items[following]
            config.hook.pytest_runtest_protocol(item=session.items[number], nextitem=next_item)
            self._connection.send(("ended",))
            if session.shouldfail or session.shouldstop:
                break
            number = following
        return True

    def _numbers(self) -> Iterator[int]:
        while True:
            self._connection.send(("next",))
            numbers = self._connection.recv()
            if not numbers:
                return
            yield from numbers

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send what came of a part of a test."""
        config = self._session.config
        self._connection.send(("reported", config.hook.pytest_report_to_serializable(config=config, report=report)))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: object
    ) -> None:
        """Send a warning."""
        warned = warning_message
        if self._is_running:
            values = str(warned.message), warned.filename, warned.lineno, when, nodeid, location
            self._connection.send(("warned", *values))

    def pytest_unconfigure(self) -> None:
        """Say that all is done."""
        self._connection.close()
