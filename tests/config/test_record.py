"""What is kept of calls, as the configuration says it: at the top, of an agent, of a server or plugin (X4)."""

import pytest
from config_support import Writer

from pegboard.core.model.recording import EVERYTHING, Recording


def test_an_agent_says_more_than_the_top_and_a_server_narrows_both(writer: Writer) -> None:
    found = writer.loaded("""
        record: {results: 4kB, days: 30}
        servers:
          mail: {command: mail, record: {arguments: false}}
          git: {command: git}
        agents:
          plain: {tools: [mail]}
          open: {tools: [mail], record: {arguments: true, days: 2}}
    """)
    assert found.agents["plain"].record == Recording(results=4000, days=30)
    opened = found.agents["open"].record
    assert opened == Recording(arguments=True, results=4000, days=2)
    specs = found.specs
    assert specs["git"].record == EVERYTHING
    assert opened.within(specs["mail"].record) == Recording(results=4000, days=2)


def test_without_a_word_error_texts_are_kept_for_a_week_and_nothing_else(writer: Writer) -> None:
    found = writer.loaded("agents: {plain: {}}")
    assert found.agents["plain"].record == Recording(errors=True, arguments=False, results=0, days=7)


@pytest.mark.parametrize(
    ("written", "path", "message"),
    [
        ("{argument: true}", "record", "argument"),
        ("{arguments: 4kB}", "record.arguments", "expected true or false"),
        ("{results: 5MB}", "record.results", "at most 1,000kB"),
        ("{results: -1}", "record.results", "at least one byte"),
        ("{results: yes}", "record.results", "expected a size"),
        ("{days: 0}", "record.days", "from 1 to 366"),
        ("{days: 7d}", "record.days", "expected a whole number"),
        ("4kB", "record", ""),
    ],
)
def test_a_mistake_is_named_at_its_place(writer: Writer, written: str, path: str, message: str) -> None:
    (problem,) = writer.problems(f"record: {written}\nagents: {{plain: {{}}}}\n")
    assert problem.place is not None
    assert (problem.place.path, problem.place.line) == (path, 1)
    assert message in problem.message
