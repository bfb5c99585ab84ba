"""Follow docs/tutorial.md in an empty folder: write its files, run its commands, compare what they print."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sdk_servers import pegboard_command
from terminals import Terminal

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED_FILE = re.compile(r"# ([\w.-]+)\n")
ELLIPSIS = "…"
PORT = "8321"
SERVING = re.compile(r"http://127\.0\.0\.1:(\d+)/mcp")


def pattern(shown: str) -> re.Pattern[str]:
    """Return what an output has to match: a line `…` is any number of lines, `…` at the end of one its rest."""
    lines = [line.rstrip() for line in shown.splitlines()]
    parts = [
        r"(?:.*\n)*?" if line == ELLIPSIS else re.escape(line.removesuffix(ELLIPSIS).rstrip()) + rest(line) + r"\n"
        for line in lines
    ]
    return re.compile("".join(parts))


def rest(line: str) -> str:
    return r".*" if line.endswith(ELLIPSIS) else r"[ ]*"


@dataclass
class Reader:
    """A reader of the tutorial: an empty folder, a terminal, and a gateway in another one.

    ``asked`` is whether the next command may ask at the terminal; the others are forked off what has imported them.
    """

    folder: Path
    environment: dict[str, str]
    port: str = PORT
    gateway: subprocess.Popen[str] | None = None
    asked: bool = True
    ran: list[str] = field(default_factory=list)

    def write(self, text: str) -> None:
        named = NAMED_FILE.match(text)
        assert named is not None, f"this block does not say its file: {text[:60]}"
        (self.folder / named[1]).write_text(text.replace(PORT, self.port), encoding="utf-8")
        self.asked = True

    def run(self, command: str, shown: str) -> None:
        self.ran.append(command)
        arguments = [part.replace(PORT, self.port) for part in shlex.split(command)]
        printed = self.serve(arguments, shown) if arguments[:2] == ["pegboard", "serve"] else self.finish(arguments)
        assert pattern(shown).fullmatch(printed.replace(self.port, PORT)), f"$ {command}\n{printed}"

    def finish(self, arguments: list[str]) -> str:
        program, *words = arguments
        command = arguments
        if program == "pegboard" and not self.asked and not {"accept", "set"}.intersection(words):
            command = pegboard_command(*words)
        self.asked = False
        with Terminal("y") as terminal:
            done = subprocess.run(
                command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=60,
                start_new_session=True, preexec_fn=terminal.controls(),
            )  # fmt: skip
        assert done.returncode in (0, 1, 3), done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout or done.stderr

    def serve(self, arguments: list[str], shown: str) -> str:
        """Leave the gateway running on a port that the system chooses; returns what it prints."""
        self.gateway = subprocess.Popen(
            [*arguments, "--port", "0"],
            cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.gateway.stderr is not None
        printed = "".join(self.gateway.stderr.readline() for _ in shown.splitlines())
        address = SERVING.search(printed)
        assert address is not None, printed
        self.port = address[1]
        return printed

    def stop(self) -> int:
        """Stop the gateway with Ctrl-C; returns its exit code."""
        assert self.gateway is not None
        self.gateway.send_signal(signal.SIGINT)
        self.gateway.communicate(timeout=30)
        return self.gateway.returncode


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PEGBOARD_", "COV_"))}
    outside = {"XDG_CONFIG_HOME": str(tmp_path / "user"), "HOME": str(tmp_path / "home")}
    folder = tmp_path / "agent"
    folder.mkdir()
    apart = {"PATH": path, "COLUMNS": "100", "PEGBOARD_DAEMON": "0"}
    following = Reader(folder=folder, environment={**kept, **outside, **apart})
    yield following
    if following.gateway is not None and following.gateway.poll() is None:
        following.gateway.kill()
        following.gateway.communicate()


def examples(block: str) -> Iterator[tuple[str, str]]:
    for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = example.partition("\n")
        yield command, shown


@pytest.mark.timeout(300)
def test_a_reader_of_the_tutorial_sees_what_it_shows(reader: Reader) -> None:
    """G1, P2, P9, S2, T10, X4: from an empty folder to a gateway, each command as it stands."""
    for language, text in BLOCK.findall(DOCUMENT.read_text("utf-8")):
        if language == "console":
            for command, shown in examples(text):
                reader.run(command, shown)
        else:
            reader.write(text)
    assert reader.stop() == 0
    assert {command.split()[0] for command in reader.ran} == {"pegboard", "python"}
    assert len(reader.ran) > 20
    assert (reader.folder / "notes" / "shopping.txt").read_text() == "milk, bread: 5.30"
