"""`pegboard surface --client`: what cannot be read is one clear error."""

from pathlib import Path

import pytest
from command_support import Run


@pytest.mark.parametrize(
    ("client", "code", "words"), [("nope", 2, "not a known client"), ("cursor", 1, "not valid JSON")]
)
def test_an_unknown_client_or_a_broken_file_of_one_is_one_line(
    run: Run, folder: Path, client: str, code: int, words: str
) -> None:
    path = folder / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text("{bad")
    ran = run("surface", "--client", client)
    assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1)
    assert words in ran.err
