"""What Agno's functions become: schemas that take what Agno takes, descriptions, annotations, marks."""

import json
import subprocess
import sys
import textwrap

import pytest
from without_packages import said_without

from pegboard.arguments import SchemaValidator
from pegboard.core.model.tools import CallResult, Confirmation, Tool
from pegboard.ports import CallContext
from pegboard.sources.agno import AgnoSource, AgnoToolkits
from pegboard.sources.registry import registered_plugins
from pegboard.support.installed import install_hint

NESTED = {
    "pandas/create_pandas_dataframe": {
        "dataframe_name": "d",
        "create_using_function": "DataFrame",
        "function_parameters": {"data": {"a": [1, 2]}},
    },
    "api/make_request": {"endpoint": "x", "method": "POST", "params": {"q": 1}, "json_data": {"a": {"b": [1, None]}}},
    "visualization/create_bar_chart": {"data": [{"city": "Oslo", "sum": 3}]},
    "visualization/create_line_chart": {"data": [{"city": "Oslo", "sum": 3}]},
    "visualization/create_pie_chart": {"data": [{"city": "Oslo", "sum": 3}]},
}
ASKING = """
    from agno.tools import Toolkit, tool

    @tool(requires_user_input=True, user_input_fields=["code"])
    def pay(amount: int, code: str = "0", note: str = "") -> str:
        '''Pay an amount.

        Args:
            amount: How much.
            code: What the bank sent.
        '''
        return f"{amount} with {code}"

    @tool(requires_user_input=True)
    def sign(name: str) -> str:
        '''Sign with a name.'''
        return name

    @tool(external_execution=True)
    def fly(where: str) -> str:
        '''Fly somewhere.'''
        return where

    @tool(requires_confirmation=True, annotations={"destructiveHint": False})
    def post(text: str) -> str:
        '''Post a text.'''
        return text

    @tool(annotations={"readOnlyHint": True})
    def look() -> str:
        '''Look around.'''
        return "a room"

    class Desk(Toolkit):
        '''What a desk does.'''

        def __init__(self, greeting: str = "hello"):
            super().__init__(name="desk", tools=[pay, sign, fly, post, look, self.greet])
            self.greeting = greeting

        def greet(self) -> str:
            '''Greet.'''
            return self.greeting

    def made(greeting: str) -> Desk:
        return Desk(greeting)

    READY = Desk("moin")
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    """Some toolkits make folders where they are constructed."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
async def agno():
    source = AgnoSource()
    yield source
    await source.aclose()


@pytest.fixture
def desk(workshop):
    workshop.source = type(workshop.source)(adopt=AgnoToolkits().adopt)
    workshop.write("desk_toolkit.py", ASKING)
    return workshop


async def tools_of(agno: AgnoSource, plugin: str, overrides: dict | None = None) -> dict[str, Tool]:
    manifest = await agno.describe(registered_plugins()[plugin], overrides or {})
    return {tool.name: tool for tool in manifest.tools}


def text(result: CallResult) -> str:
    return result.content[0]["text"]


@pytest.mark.parametrize("name", NESTED)
async def test_x2_what_agno_takes_fits_the_schema(agno, name):
    """X2: an object without properties stands for anything; what is text is still no number."""
    plugin, _, function = name.partition("/")
    tool = (await tools_of(agno, plugin))[function]
    assert await SchemaValidator().problems(tool, NESTED[name]) == []
    assert await SchemaValidator().problems(tool, dict.fromkeys(NESTED[name], 5))


async def test_the_description_is_what_people_wrote_not_that_of_the_asynchronous_twin(agno):
    tools = await tools_of(agno, "workspace")
    assert tools["delete_file"].description == "Delete a file from the workspace. Refuses to delete directories."
    assert not [tool.name for tool in tools.values() if tool.description.startswith(("Async", "async"))]


async def test_t13_what_agno_marks_for_confirmation_is_kept_and_counts_as_destructive(agno):
    tools = await tools_of(agno, "workspace")
    marked = {tool.name for tool in tools.values() if tool.confirmation == Confirmation(kind="confirm")}
    assert marked == {"write_file", "edit_file", "move_file", "delete_file", "run_command"}
    assert dict(tools["delete_file"].annotations) == {"readOnlyHint": False, "destructiveHint": True}
    assert not tools["read_file"].annotations
    asked = await tools_of(agno, "shell", {"requires_confirmation_tools": ["run_shell_command"]})
    assert asked["run_shell_command"].confirmation == Confirmation(kind="confirm")


async def test_t13_each_of_agnos_three_flags_is_kept(desk):
    """T13: with the fields that a person fills in taken from what the model gives."""
    tools = {tool.name: tool for tool in (await desk.describe("desk_toolkit:Desk")).tools}
    assert tools["fly"].confirmation == Confirmation(kind="external")
    assert tools["post"].annotations == {"readOnlyHint": False, "destructiveHint": False}
    assert tools["look"].annotations == {"readOnlyHint": True}
    pay = tools["pay"]
    assert list(pay.input_schema["properties"]) == ["amount", "note"]
    assert pay.input_schema["required"] == ["amount"]
    code = {"type": "string", "description": "What the bank sent."}
    form = {"type": "object", "properties": {"code": code}}
    assert pay.confirmation == Confirmation(kind="user_input", fields=("code",), schema=form)
    assert tools["sign"].input_schema["properties"] == {}
    assert tools["sign"].confirmation == Confirmation(
        kind="user_input",
        fields=("name",),
        schema={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    )
    paid = await desk.call("desk_toolkit:Desk", "pay", {"amount": 3, "code": "77"})
    assert text(paid) == "3 with 77"


async def test_t10_a_toolkit_of_agno_named_with_python_lists_its_functions_alone(desk):
    """T10: its class, what a factory makes, and one that is there; not `register`, `connect` or `get_functions`."""
    names = ["pay", "sign", "fly", "post", "look", "greet"]
    made = await desk.describe("desk_toolkit:Desk", {"greeting": "hey"})
    assert ([tool.name for tool in made.tools], made.description) == (names, "What a desk does.")
    assert made.parameters["greeting"] == "string"
    assert text(await desk.call("desk_toolkit:Desk", "greet", overrides={"greeting": "hey"})) == "hey"
    factory = await desk.describe("desk_toolkit:made", {"greeting": "yo"})
    assert ([tool.name for tool in factory.tools], factory.parameters) == (names, {"greeting": "string"})
    assert text(await desk.call("desk_toolkit:made", "greet", overrides={"greeting": "yo"})) == "yo"
    assert text(await desk.call("desk_toolkit:READY", "greet")) == "moin"
    assert (await desk.refused("desk_toolkit:READY", {"greeting": "yo"})).message.startswith("plugin 'mine' takes no")
    shell = await desk.describe("agno.tools.shell:ShellTools")
    assert [tool.name for tool in shell.tools] == ["run_shell_command"]


async def test_schedules_and_memories_are_kept_in_a_file_and_belong_to_the_principal(tmp_path):
    """S1: what one principal stores, another one does not see; it survives the process."""
    file = tmp_path / "state" / "agno.db"
    ada, bob = CallContext(principal="ada", session="s"), CallContext(principal="bob", session="s")

    async def ask(who: CallContext, plugin: str, name: str, arguments: dict | None = None) -> dict:
        source = AgnoSource(AgnoToolkits(file))
        tool = (await tools_of(source, plugin))[name]
        answer = await source.call(registered_plugins()[plugin], {}, tool, arguments or {}, who)
        await source.aclose()
        assert not answer.is_error, text(answer)
        return json.loads(text(answer))

    job = {"name": "daily", "cron": "0 9 * * *", "endpoint": "/agents/a/runs", "payload": '{"message": "hi"}'}
    assert (await ask(ada, "scheduler", "create_schedule", job))["status"] == "created"
    await ask(ada, "memory", "add_memory", {"memory": "likes tea"})
    assert [item["name"] for item in (await ask(ada, "scheduler", "list_schedules"))["schedules"]] == ["daily"]
    assert (await ask(bob, "scheduler", "list_schedules"))["schedules"] == []
    assert [item["memory"] for item in await ask(ada, "memory", "get_memories")] == ["likes tea"]
    assert await ask(bob, "memory", "get_memories") == []
    assert file.stat().st_mode & 0o777 == 0o600


async def test_what_a_function_keeps_for_its_session_is_kept_for_that_session_alone(agno):
    """S1: the state of a session, as Agno's own agents have it."""
    think = (await tools_of(agno, "memory"))["think"]

    async def thought(session: str, thought: str) -> str:
        where = CallContext(principal="ada", agent="a", session=session)
        return text(await agno.call(registered_plugins()["memory"], {}, think, {"thought": thought}, where))

    await thought("one", "first")
    assert "- first\n" in f"{await thought('one', 'second')}\n"
    assert "first" not in await thought("two", "third")


async def test_p6_each_reason_stands_once_and_in_sentences(agno, monkeypatch, tmp_path):
    """P6: what a toolkit logs and raises of one cause is said once."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GITHUB_ACCESS_TOKEN", raising=False)
    reasons = {name: await reason(agno, name) for name in ("docker", "github", "spotify")}
    assert reasons["docker"].count("Docker socket not found") <= 1
    assert ";" not in reasons["docker"]
    assert reasons["github"] == (
        "plugin 'github' could not be constructed: GitHub access token is required. "
        "Set GITHUB_ACCESS_TOKEN in the environment or give 'access_token' inline: '- github: {access_token: …}'."
    )
    assert reasons["spotify"] == (
        "plugin 'spotify' needs the parameter 'access_token'. Give it inline: '- spotify: {access_token: …}'."
    )


async def reason(agno: AgnoSource, name: str) -> str:
    from pegboard.errors import ToolUnavailableError

    with pytest.raises(ToolUnavailableError) as caught:
        await agno.describe(registered_plugins()[name], {})
    return caught.value.text


MISSING = [
    (["psycopg"], "sql", {"db_url": "postgresql://localhost/analytics"}, ["psycopg[binary]"]),
    (["greenlet"], "scheduler", {}, ["greenlet"]),
    (["matplotlib"], "visualization", {}, ["matplotlib"]),
    (["boto3"], "aws_lambda", {}, ["boto3"]),
    (["arxiv", "pypdf"], "arxiv", {}, ["arxiv", "pypdf"]),
    (["pypdf"], "arxiv", {}, ["pypdf"]),
    (["boto3"], "aws_ses", {}, ["boto3"]),
]


def test_p6_the_install_line_names_all_that_is_missing(tmp_path):
    """P6: in one line, although Agno names one package at a time; and not what already exists."""
    said = said_without([(absent, plugin, overrides) for absent, plugin, overrides, _ in MISSING], tmp_path)
    assert said == [[install_hint(*packages)] for *_, packages in MISSING]


def test_p6_a_tool_that_a_toolkit_does_without_is_excluded_with_the_line_that_brings_it(tmp_path):
    """P6: Agno constructs the toolkit all the same, and only logs that a package is not there."""
    off = {"enable_query_csv_file": False}
    asked = [(["duckdb"], "csv", {}), (["duckdb"], "csv", off), (["pypdf"], "csv", {})]
    excluded, *none = said_without(asked, tmp_path)
    assert ([line.partition(":")[0] for line in excluded], none) == (["query_csv_file"], [[], []])
    assert install_hint("duckdb").rstrip(".") in excluded[0]


def test_without_agno_the_packaged_counterpart_stands_in_for_file(tmp_path):
    """P6: as it is; what only Agno's toolkit takes is answered with the line that installs it."""
    script = textwrap.dedent(
        """
        import asyncio, sys
        sys.modules["agno"] = None
        from pegboard.errors import ToolUnavailableError
        from pegboard.sources.agno import AgnoSource
        from pegboard.sources.registry import registered_plugins
        async def main():
            source, spec = AgnoSource(), registered_plugins()["file"]
            print(*(tool.name for tool in (await source.describe(spec, {})).tools))
            try:
                await source.describe(spec, {"base_dir": "."})
            except ToolUnavailableError as error:
                print(error.hint)
        asyncio.run(main())
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.splitlines() == [
        "file_info find_files list_files list_tree read_file",
        install_hint(extra="agno"),
    ]
