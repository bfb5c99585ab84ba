"""`tools/prose.py`: how the documents are written, in figures."""

from pathlib import Path

import prose

PAGE = """# A title of words

Two sentences stand here. The second has `code` in it.

![badge](https://img.example/badge.svg)

| a cell | of a table |
|---|---|
| is no | paragraph |

```
pegboard measure
```

- An item is a paragraph.

![picture](docs/images/one.png)
"""


def test_paragraphs_are_counted_and_cells_and_code_are_not() -> None:
    assert list(prose.paragraphs(PAGE)) == [(10, 2), (5, 1)]


def test_words_before_the_first_command_and_the_line_of_the_first_picture() -> None:
    assert prose.before_first_command(PAGE) == 4 + 10 + 8
    assert prose.first_picture(PAGE) == PAGE.splitlines().index("![picture](docs/images/one.png)") + 1
    assert prose.first_picture("none") is None


def test_phrases_are_counted_as_whole_words_over_lines_and_cases(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("Nobody knows what\nis here; anybody does.")
    (tmp_path / "docs" / "page.md").write_text("nobody")
    assert prose.used(tmp_path, ["nobody", "what is", "body"]) == {"nobody": 2, "what is": 1, "body": 0}


def test_every_phrase_to_avoid_has_a_limit_that_the_project_keeps() -> None:
    limits = prose.allowed()
    assert limits
    over = {phrase: count for phrase, count in prose.used().items() if count > limits[phrase]}
    assert over == {}
