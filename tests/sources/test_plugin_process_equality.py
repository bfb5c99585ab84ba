"""What a plugin says and returns from a process of its own is what it says and returns in this one (A7).

Each plugin of the suites of Python plugins is brought in both ways here, and every manifest, result and error compared.
"""

import inspect
import os
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest

from pegboard.errors import PegboardError
from pegboard.sources.mcp import McpSource
from pegboard.sources.plugin_process.source import PluginProcessSource
from pegboard.sources.python import PythonSource
from sources import test_python, test_python_calls
from sources.conftest import Workshop

HERE_ALONE = {
    "test_a_constructor_that_failed_is_tried_again": "a test changes the module that it has imported itself",
    "test_an_instance_is_made_once_for_equal_overrides": "variants of a plugin count in one module",
    "test_modules_of_a_folder_stay_until_its_last_source_is_closed": "a source is closed, and used again",
}
"""Tests of what only a plugin of this process does, and what that is."""
OF_IMPORTS = {
    "test_whether_the_host_has_a_module_of_a_name_is_asked_once",
    "test_two_folders_with_modules_of_one_name_do_not_mix",
    "test_a_module_that_is_written_after_its_folder_was_listed_is_found",
    "test_a_module_that_the_host_imports_later_is_its_own",
    "test_a_module_beside_the_configuration_may_have_the_name_of_an_installed_one",
    "test_whoever_looks_through_the_import_path_meanwhile_misses_no_folder",
    "test_a_module_that_changes_the_import_path_has_changed_it",
}
"""Tests of how a module is found, which the process does with the code that they test."""
OF_MANIFESTS = {
    "test_all_names_the_tools_of_a_module",
    "test_parameters_are_described_in_three_docstring_styles",
    "test_star_arguments_are_left_out_and_keywords_let_more_through",
    "test_a_parameter_that_json_cannot_express_is_named",
    "test_a_factory_returns_the_tools",
    "test_a_function_is_one_tool_and_is_not_called_to_find_out",
    "test_lists_and_objects_can_be_named",
    "test_t13_a_field_that_a_person_fills_in_has_to_be_a_parameter",
}
"""Tests of how a manifest is made, which the process does with the code that they test; others compare manifests."""


def cases() -> Iterator[Any]:
    """Yield the tests of the suites, each with the first arguments that it is run with."""
    left_out = HERE_ALONE.keys() | OF_IMPORTS | OF_MANIFESTS
    for function in (each for suite in (test_python, test_python_calls) for each in vars(suite).values()):
        name = getattr(function, "__name__", "")
        if name.startswith("test_") and name not in left_out and "workshop" in inspect.signature(function).parameters:
            marks = [mark for mark in getattr(function, "pytestmark", ()) if mark.name == "parametrize"]
            argument, values = marks[0].args if marks else ("", [None])
            yield pytest.param(function, {argument: next(iter(values))} if argument else {}, id=name)


class BothWays:
    """Two sources: what one answers, the other has to answer as well."""

    def __init__(self) -> None:
        self._here = PythonSource()
        self._there = PluginProcessSource(McpSource(asks=False, idle_after=None), env=os.environ, apart=lambda _: True)

    async def describe(self, *given: Any) -> Any:
        return await self._same(self._here.describe(*given), self._there.describe(*given))

    async def call(self, *given: Any) -> Any:
        return await self._same(self._here.call(*given), self._there.call(*given))

    async def _same(self, here: Awaitable[Any], there: Awaitable[Any]) -> Any:
        expected, found = await _outcome(here), await _outcome(there)
        assert found == expected
        if isinstance(expected, tuple):
            raise expected[-1].error
        return expected

    async def aclose(self) -> None:
        await self._here.aclose()
        await self._there.aclose()


class _Any:
    """Something that is equal to everything: the error that is raised."""

    def __init__(self, error: PegboardError) -> None:
        self.error = error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Any)


async def _outcome(asked: Awaitable[Any]) -> Any:
    try:
        return await asked
    except PegboardError as error:
        return type(error), error.message, error.hint, _Any(error)


@pytest.mark.parametrize(("test", "given"), list(cases()))
async def test_a7_a_plugin_answers_from_a_process_of_its_own_as_it_does_here(test, given, tmp_path, request):
    workshop = Workshop(tmp_path)
    workshop.source = BothWays()  # type: ignore[assignment]
    wanted = inspect.signature(test).parameters.keys() - {"workshop", *given}
    try:
        await test(workshop=workshop, **given, **{each: request.getfixturevalue(each) for each in wanted})
    finally:
        await workshop.source.aclose()


def test_what_is_left_out_of_the_comparison_is_there():
    assert HERE_ALONE.keys() | OF_IMPORTS | OF_MANIFESTS <= {*vars(test_python), *vars(test_python_calls)}
