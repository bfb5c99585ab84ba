import asyncio
import base64
import sys
import threading

from pegboard.core.model.tools import CallResult, Confirmation
from pegboard.sources.stdout import reserved_stdout


def text(result: CallResult) -> str:
    return result.content[0]["text"]


async def test_t8_marks_and_configuration_add_requirements_policy_and_annotations(workshop):
    workshop.write(
        "marked_l.py",
        """
        from pegboard.marks import tool
        @tool(read_only=True, title="Look", requires=["geo/locate"], needs=["LOOK_KEY"], policy="Look twice.")
        def look() -> str: return ""
        def leap() -> str: return ""
        def quiet() -> str: return ""
        quiet.__pegboard__ = {"default_on": False}
        """,
    )
    manifest = await workshop.describe(
        "marked_l", requires={"leap": ("look", "other/thing")}, policy={"leap": "Land."}, needs={"leap": ("LEGS",)}
    )
    look, leap, quiet = manifest.tools
    assert look.read_only
    assert look.annotations["title"] == "Look"
    assert (look.requires, look.needs, look.policy) == (("geo/locate",), ("LOOK_KEY",), "Look twice.")
    assert (leap.requires, leap.needs, leap.policy) == (("mine/look", "other/thing"), ("LEGS",), "Land.")
    assert (look.default_on, quiet.default_on) == (True, False)
    error = await workshop.refused("marked_l", policy={"leep": "x"})
    assert "'policy' names 'leep'" in error.message
    assert "Did you mean 'leap'?" in error.hint


async def test_t13_a_mark_says_what_a_person_does_first(workshop):
    workshop.write(
        "asking_u.py",
        """
        from pegboard.marks import tool
        @tool(requires_confirmation=True)
        def drop(path: str) -> str: return path
        @tool(user_input_fields=["code"])
        def pay(amount: int, code: str) -> str: return f"{amount} with {code}"
        @tool(external_execution=True)
        def sign(text: str) -> str: return text
        """,
    )
    drop, pay, sign = (await workshop.describe("asking_u")).tools
    assert drop.confirmation == Confirmation(kind="confirm")
    assert sign.confirmation == Confirmation(kind="external")
    assert list(pay.input_schema["properties"]) == pay.input_schema["required"] == ["amount"]
    form = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
    assert pay.confirmation == Confirmation(kind="user_input", fields=("code",), schema=form)
    assert text(await workshop.call("asking_u", "pay", {"amount": 3, "code": "x"})) == "3 with x"


async def test_t13_a_field_that_a_person_fills_in_has_to_be_a_parameter(workshop):
    workshop.write(
        "asking_v.py",
        """
        from pegboard.marks import tool
        @tool(user_input_fields=["cod"])
        def pay(amount: int, code: str) -> str: return ""
        """,
    )
    error = await workshop.refused("asking_v")
    assert error.message == (
        "function 'pay' cannot be a tool: a person is to fill in 'cod', which is not one of its parameters."
    )


async def test_t10_a_guard_sees_principal_and_arguments_and_nothing_runs(workshop):
    workshop.write(
        "guarded_m.py",
        """
        from pegboard.marks import tool
        ran = []
        def only_alice(principal, arguments):
            return None if arguments["path"] != "/etc" else f"{principal} may not write there"
        @tool(guard=only_alice)
        def write(path: str) -> str:
            ran.append(path)
            return "ok"
        """,
    )
    refused = await workshop.call("guarded_m", "write", {"path": "/etc"})
    assert refused.is_error
    assert "alice may not write there" in text(refused)
    assert refused.meta["pegboard/refused_by"] == "guard"
    assert text(await workshop.call("guarded_m", "write", {"path": "/tmp"})) == "ok"
    assert sys.modules["guarded_m"].ran == ["/tmp"]


async def test_results_take_the_shapes_of_mcp(workshop):
    workshop.write(
        "results_n.py",
        """
        from __future__ import annotations
        from dataclasses import dataclass
        from pydantic import BaseModel
        @dataclass
        class Spot:
            x: int
        class Model(BaseModel):
            name: str
        def words() -> str: return "plain"
        def nothing() -> None: ...
        def mapping(): return {"a": [1, {"b": None}]}
        def listing(): return [1, "ü"]
        def number() -> float: return 1.5
        def spot() -> Spot: return Spot(2)
        def model() -> Model: return Model(name="n")
        def picture() -> bytes: return b"\\x89PNG\\r\\n\\x1a\\n123"
        def blob() -> bytes: return b"\\x00\\x01"
        def parts():
            yield "a"
            yield "b"
        async def later(): return {"later": True}
        async def stream():
            yield {"n": 1}
            yield {"n": 2}
        """,
    )

    async def of(name: str) -> CallResult:
        return await workshop.call("results_n", name)

    assert text(await of("words")) == "plain"
    assert text(await of("nothing")) == ""
    assert (await of("mapping")).structured == {"a": [1, {"b": None}]}
    assert text(await of("listing")) == '[1, "ü"]'
    assert text(await of("number")) == "1.5"
    assert (await of("spot")).structured == {"x": 2}
    assert text(await of("model")) == '{"name": "n"}'
    image = (await of("picture")).content[0]
    assert (image["type"], image["mimeType"]) == ("image", "image/png")
    assert base64.b64decode(image["data"]).endswith(b"123")
    assert (await of("blob")).content[0]["resource"]["blob"] == "AAE="
    assert text(await of("parts")) == "ab"
    assert (await of("later")).structured == {"later": True}
    assert text(await of("stream")) == '[{"n": 1}, {"n": 2}]'
    outputs = {t.name: t.output_schema for t in (await workshop.describe("results_n")).tools}
    assert outputs["spot"]["properties"] == {"x": {"type": "integer"}}
    assert outputs["model"] is not None
    assert outputs["mapping"] is None


async def test_what_a_tool_raises_is_an_error_result_without_a_traceback(workshop):
    workshop.write(
        "broken_o.py", "import sys\ndef fail(): raise LookupError('no such row')\ndef leave(): sys.exit(3)\n"
    )
    result = await workshop.call("broken_o", "fail")
    assert result.is_error
    assert text(result) == "LookupError: no such row"
    assert text(await workshop.call("broken_o", "leave")) == "SystemExit: 3"


async def test_blocking_functions_run_beside_each_other_and_off_the_loop(workshop):
    workshop.write(
        "blocking_p.py",
        "import threading\nbarrier = threading.Barrier(2, timeout=20)\n"
        "def meet() -> bool:\n    barrier.wait()\n    return threading.current_thread() is threading.main_thread()\n",
    )
    results = await asyncio.gather(*(workshop.call("blocking_p", "meet") for _ in range(2)))
    assert [text(r) for r in results] == ["false", "false"]
    assert threading.current_thread() is threading.main_thread()


async def test_what_a_plugin_prints_stays_off_a_standard_output_that_carries_results(workshop, capsys):
    """G1: a command reserves it; a library leaves the streams of its host alone."""
    workshop.write(
        "noisy_q.py",
        "print('imported')\nclass Noisy:\n    def __init__(self): print('constructed')\n"
        "    def shout(self): print('called')\n    async def hum(self): print('hummed')\n",
    )
    before = sys.stdout
    with reserved_stdout():
        await workshop.call("noisy_q:Noisy", "shout")
        await workshop.call("noisy_q:Noisy", "hum")
        print("mine")
    assert sys.stdout is before
    out, err = capsys.readouterr()
    assert out == "mine\n"
    assert err.split() == ["imported", "constructed", "called", "hummed"]
    await workshop.call("noisy_q:Noisy", "shout")
    assert capsys.readouterr() == ("called\n", "")


async def test_an_instance_is_made_once_for_equal_overrides(workshop):
    workshop.write(
        "once_r.py",
        "class Once:\n    made = 0\n    def __init__(self, size: int = 0): Once.made += 1\n"
        "    def count(self): return Once.made\n",
    )
    spec = workshop.spec("once_r:Once")
    await asyncio.gather(*(workshop.source.describe(spec, {"size": 1}) for _ in range(5)))
    assert text(await workshop.call("once_r:Once", "count", overrides={"size": 1})) == "1"
    assert text(await workshop.call("once_r:Once", "count", overrides={"size": 2})) == "2"
