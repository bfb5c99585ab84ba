"""Tools for the tests of frameworks; what has run is in `RAN`."""

from typing import Any, Literal

from pegboard import tool

RAN: list[str] = []
PICTURE = b"\x89PNG\r\n\x1a\n..."


class Notes:
    """Notes of a user."""

    def __init__(self, owner: str = "ada") -> None:
        self.owner = owner
        self.notes = ["milk"]

    def note_list(self) -> list[str]:
        """List the notes."""
        RAN.append("note_list")
        return [f"{self.owner}: {note}" for note in self.notes]

    def note_add(self, text: str, mark: Literal["new", "urgent"] = "new") -> str:
        """Add a note.

        Args:
            text: What to write down.
            mark: How it is marked.
        """
        RAN.append("note_add")
        self.notes.append(text)
        return f"{text} ({mark})"


class Sums:
    """Arithmetic."""

    def add_numbers(self, first: int, second: int) -> int:
        """Add two numbers."""
        RAN.append("add_numbers")
        return first + second


class Printer:
    """A printer."""

    def print_page(self, text: str) -> str:
        """Print a page."""
        RAN.append("print_page")
        raise RuntimeError("the printer is on fire")


class Pictures:
    """A painter."""

    def draw(self) -> bytes:
        """Draw a picture."""
        return PICTURE

    def measure_picture(self) -> dict[str, int]:
        """Return how large the picture is."""
        return {"width": 3, "height": 2}


class Shredder:
    """What is done with papers."""

    def shred(self, paper: str) -> str:
        """Shred a paper."""
        RAN.append("shred")
        return f"{paper} is shredded"

    @tool(user_input_fields=["signature"])
    def sign(self, paper: str, signature: str) -> str:
        """Sign a paper."""
        RAN.append("sign")
        return f"{paper} is signed by {signature}"

    @tool(external_execution=True)
    def post(self, paper: str) -> str:
        """Post a paper."""
        RAN.append("post")
        return f"{paper} is posted"


class Maps:
    """Maps."""

    def pin(self, at: tuple[float, float], größe: int = 1) -> str:  # noqa: PLC2401 - a name that providers do not take
        """Put a pin on the map."""
        RAN.append(f"pin {at} {größe}")
        return f"{größe} at {at}"

    def find_way(self, stops: list[tuple[float, float]], by: Literal["car", "train"] | None = None) -> str:
        RAN.append(f"find_way {stops} {by}")
        return f"{len(stops)} stops"

    find_way.__doc__ = f"Find the way past some stops. {'It takes what is open today. ' * 60}"


class Purse:
    """A purse."""

    def pay(self, to: str) -> str:
        """Pay someone."""
        RAN.append(f"pay {to}")
        return f"{to} is paid"


def repeat(
    self: str,
    name: str,
    input: dict[str, Any],  # noqa: A002
    arguments: dict[str, Any],
    parameters: dict[str, Any],
    args: list[str],
    kwargs: dict[str, Any],
    type: str,  # noqa: A002
    id: str,  # noqa: A002
    tool: str,
    session: str,
    agent: str,
    team: str,
    model: str,
    context: str,
    ctx: str,
    run_context: str,
    config: str,
    runtime: str,
    state: str,
    callbacks: str,
    fields: str,
    meta: str,
    parsed: str,
    parsed_arguments: str,
    parsed_output: str,
    nothing: str | None,
) -> dict[str, Any]:
    """Repeat what is given under names that frameworks and providers use themselves."""
    return dict(locals())


class Scroll:
    """A scroll."""

    def unroll(self) -> str:
        """Read all of the scroll."""
        return "x" * 50_000_000

    def engrave(self) -> bytes:
        """Return a picture that is as large."""
        return PICTURE + bytes(20_000_000)
