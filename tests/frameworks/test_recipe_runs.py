"""What `make recipes` installs and runs is what docs/recipes.md says; the suite itself installs no clients."""

from recipe_runs import DOCUMENT, RECIPES, recipes


def test_every_recipe_is_installed_and_run_by_the_lines_of_its_section() -> None:
    found = recipes(DOCUMENT.read_text("utf-8"))
    assert [recipe.name for recipe in found] == [
        "Any MCP client",
        "Claude Agent SDK",
        "Vercel AI SDK",
        "LangChain's MCP client",
    ]
    programs = {path.name for path in RECIPES.iterdir() if path.suffix in (".py", ".mjs")}
    assert {name for name in programs if any(name in recipe.runs for recipe in found)} == programs
    assert all(recipe.installs for recipe in found if "examples/recipes" in recipe.runs)
