"""Show that Pegboard holds no framework back: what resolves alone resolves beside the built wheel, in the same version.

A framework with an adapter is asked for beside the extra of that adapter, whose range has to have its newest version.

``make newest`` asks the index that pip is configured with, for the packages named here and no others, and installs
nothing.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

FRAMEWORKS: Mapping[tuple[str, ...], str] = {
    ("strands-agents",): "",
    ("crewai",): "",
    ("langchain", "langgraph"): "[langchain]",
    ("openai-agents",): "[openai-agents]",
    ("google-adk",): "",
    ("agent-framework",): "",
    ("agno",): "[agno]",
    ("pydantic-ai",): "[pydantic-ai]",
    ("llama-index-core",): "",
    ("smolagents",): "",
}
"""The packages of each framework, and the extra of its adapter where it has one."""
UV = (sys.executable, str(Path(__file__).with_name("uv.py")))
COMPILE = (
    "pip",
    "compile",
    "--quiet",
    "--no-header",
    "--no-annotate",
    "--no-emit-index-url",
    "--python-version",
    "3.11",
)
NONE = "does not resolve"


def resolved(wanted: Sequence[str]) -> Mapping[str, str]:
    """Return the version of each package that these resolve to on the oldest Python; empty where they do not."""
    done = subprocess.run(
        [*UV, *COMPILE, "-"], input="\n".join(wanted), capture_output=True, text=True, check=False, timeout=600
    )
    if done.returncode:
        print(done.stderr.strip(), file=sys.stderr)
        return {}
    return dict(versions(done.stdout))


def versions(pins: str) -> Iterator[tuple[str, str]]:
    """Yield name and version of each line of a list of pins."""
    for line in pins.splitlines():
        name, found, version = line.partition("==")
        if found:
            yield name, version.partition(";")[0].strip()


def at_least(names: Sequence[str], found: Mapping[str, str]) -> list[str]:
    """Return the packages in the versions that they resolve to alone, or newer ones.

    Without that a resolver may give way: where an index has a newer `pydantic-ai-slim` than the `pydantic-ai` that pins
    it, the extra takes the newest of the one, and the release of the other is one from before it pinned anything.
    """
    return [f"{name}>={found[name]}" if name in found else name for name in names]


def row(names: Sequence[str], alone: Mapping[str, str], beside: Mapping[str, str]) -> tuple[str, str, str, bool]:
    """Return the names, their versions alone and beside Pegboard, and whether these are the same."""
    both = [" ".join(found.get(name, NONE) for name in names) for found in (alone, beside)]
    return " ".join(names), both[0], both[1], both[0] == both[1] and NONE not in both[0]


def main(wheel: str) -> int:
    """Print the table; return 1 where a framework is held back."""
    place = Path(wheel).resolve().as_uri()
    print(f"{'framework':20} {'alone':18} {'beside':30} {'in'}")
    held = 0
    for names, extra in FRAMEWORKS.items():
        pegboard = f"pegboard-slim{extra}"
        found = resolved(names)
        name, alone, beside, same = row(names, found, resolved([*at_least(names, found), f"{pegboard} @ {place}"]))
        print(f"{name:20} {alone:18} {pegboard:30} {beside:18} {'' if same else 'held back'}".rstrip(), flush=True)
        held += not same
    return 1 if held else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
