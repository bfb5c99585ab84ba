"""Who may ask for JSON, and what becomes of requests that do not fit."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pegboard import Pegboard
from pegboard.console.app import ConsoleApp

from .programs import ORIGIN, Program, serving

SWITCHES = "/api/agents/mailer/switches"
OFF = {"name": "post", "value": False}
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("bearer", "status"),
    [(None, 401), ("eve-eve-eve-eve-eve-eve", 403), ("unknown", 401), ("", 401), ("\u00e9", 401)],
)
async def test_without_a_token_of_an_operator_there_is_nothing(
    app: ConsoleApp, ada: Program, bearer: str | None, status: int
) -> None:
    """G2: also for someone whose token opens the gateway, which is no wrong one (S7)."""
    headers = {b"authorization": f"Bearer {bearer}".encode()} if bearer is not None else {}
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ORIGIN, headers=headers) as client:
        for address in ("/api/agents", "/api/openapi.json", "/api/nowhere", "/api"):
            response = await client.get(address)
            assert (response.status_code, response.json()["error"]["code"]) == (status, "operator_required")
            assert ("www-authenticate" in response.headers) == (status == 401)
        assert (await client.put(SWITCHES, json=OFF)).status_code == status
    assert (await ada.ask("GET", SWITCHES))["rows"][0]["on"] is True


async def test_a_browser_that_signed_in_changes_something_only_with_what_its_page_was_given(mailer: Pegboard) -> None:
    async with serving(mailer) as (app, access):
        cookie = access.with_token("ada-ada-ada-ada-ada-ada")
        sign_in = access.signed_in(cookie)
        assert cookie is not None
        assert sign_in is not None
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url=ORIGIN) as browser:
            browser.cookies.set("pegboard_console_8321", cookie)
            assert (await browser.get(SWITCHES)).status_code == 200
            for headers in ({}, {"x-csrf-token": "guessed"}, {"x-csrf-token": sign_in.csrf, "origin": "http://evil"}):
                refused = await browser.put(SWITCHES, json=OFF, headers=headers)
                assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
            assert (await browser.get(SWITCHES)).json()["rows"][0]["on"] is True
            assert (await browser.get(SWITCHES, headers={"origin": "http://127.0.0.1:1"})).status_code == 403
            own = {"x-csrf-token": sign_in.csrf, "origin": ORIGIN}
            assert (await browser.put(SWITCHES, json=OFF, headers=own)).status_code == 200
            form = {"csrf": sign_in.csrf, "name": "post", "value": "true"}
            assert (await browser.put(SWITCHES, data=form)).json()["error"]["code"] == "not_json"


async def test_no_other_site_may_read_an_answer(ada: Program) -> None:
    """No answer has a header that lets another origin read it, and asking for one changes nothing."""
    asked = {"origin": "http://evil", "access-control-request-method": "PUT"}
    response = await ada.client.options(SWITCHES, headers=asked)
    assert (response.status_code, response.headers["allow"]) == (204, "GET, PUT, HEAD, OPTIONS")
    assert [name for name in response.headers if name.startswith("access-control")] == []
    assert response.headers["x-content-type-options"] == "nosniff"


async def test_methods_that_an_address_does_not_have(ada: Program) -> None:
    assert (await ada.client.head("/api/agents")).status_code == 200
    response = await ada.client.delete(SWITCHES)
    assert response.json()["error"]["code"] == "method_not_allowed"
    assert sorted(response.headers["allow"].split(", ")) == ["GET", "HEAD", "OPTIONS", "PUT"]
    assert (await ada.refused("GET", "/api/nowhere", 404))[0] == "not_found"


UNFIT: list[tuple[bytes, int, str, str]] = [
    (b"", 400, "bad_json", "Expecting value"),
    (b'{"name":', 400, "bad_json", "line 1 column 9"),
    (b"\xff\xfe", 400, "bad_json", "it is not UTF-8"),
    (b"[" * 100_000, 400, "bad_json", "it is nested too deeply"),
    (b'{"name":"post","value":' + b"[" * 500 + b"]" * 500 + b"}", 400, "bad_json", "recursion limit"),
    (b'{"name":"post","name":"mail","value":false}', 400, "bad_json", "`name` is given twice"),
    (b'{"name":"post","value":NaN}', 400, "bad_json", "NaN is not a JSON number"),
    (b'{"name":"post","value":1e999}', 400, "bad_json", "a number is too large"),
    (b'{"name":"post","value":' + b"9" * 5000 + b"}", 400, "bad_json", "4300 digits"),
    (b'{"name":"\\ud800","value":false}', 400, "bad_json", "hex escape"),
    (b"[]", 422, "bad_request", "`body` should be an object"),
    (b"{}", 422, "bad_request", "`name` is missing; `value` is missing"),
    (
        b'{"name":1,"value":"off"}',
        422,
        "bad_request",
        "`name` should be a valid string; `value` should be a valid b",
    ),
    (
        b'{"name":"post","value":false,"expected":"x"}',
        422,
        "bad_request",
        "`expected` should be a valid boolean or",
    ),
    (b'{"name":"post","value":false,"valeu":1}', 422, "bad_request", "`valeu` is not known here"),
    (json.dumps({f"<{n}>" * 100: 0 for n in range(99)}).encode(), 422, "bad_request", "; and 96 more."),
    (b" " * 300_000, 413, "body_too_large", "The body has 300,000 bytes; at most 262,144 are allowed."),
]


async def test_a_body_that_does_not_fit_gets_one_error_and_changes_nothing(ada: Program) -> None:
    for body, status, code, part in UNFIT:
        refused = await ada.refused("PUT", SWITCHES, status, content=body, headers=JSON)
        assert (refused[0], part in refused[1]) == (code, True), refused
        assert len(refused[1]) < 1000
        assert refused[2]
        assert (await ada.ask("GET", SWITCHES))["rows"][0]["on"] is True


@pytest.mark.parametrize("headers", [{}, {"content-type": "text/plain"}, {"content-type": "application/jsonx"}])
async def test_a_body_says_that_it_is_json(ada: Program, headers: dict[str, Any]) -> None:
    content = json.dumps(OFF).encode()
    code, message, _ = await ada.refused("PUT", SWITCHES, 415, content=content, headers=headers)
    assert (code, message) == ("not_json", "A body here is JSON: its Content-Type is application/json.")
    utf8 = {"content-type": "Application/JSON; charset=utf-8"}
    assert (await ada.ask("PUT", SWITCHES, content=content, headers=utf8))["value"] is False


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("agnet=mailer", "`agnet` is not known here."),
        ("limit=many", "`limit` should be a valid integer"),
        ("agent=mailer&agent=other", "`agent` is given twice."),
    ],
)
async def test_a_query_that_does_not_fit_gets_one_error(ada: Program, query: str, part: str) -> None:
    code, message, hint = await ada.refused("GET", f"/api/approvals?{query}", 422)
    assert (code, part in message, bool(hint)) == ("bad_request", True, True), message


HOSTILE = """
from pegboard import tool


@tool(title="half \\ud800 \\u202e</script>")
def odd() -> str:
    return ""


odd.__doc__ = "</script>" * 111_111
"""


async def test_a_megabyte_of_markup_and_half_characters_come_as_json(tmp_path: Path) -> None:
    """Whatever a plugin's texts hold, the answer is JSON in ASCII that fits its document."""
    (tmp_path / "odd_tools.py").write_text(HOSTILE)
    config = {"plugins": {"odd": {"python": "odd_tools"}}, "agents": {"default": {"tools": ["odd"]}}}
    (tmp_path / "pegboard.json").write_text(json.dumps({"store": "memory:", **config}))
    async with Pegboard.open(tmp_path / "pegboard.json") as board, serving(board) as (app, access):
        cookie = access.with_code(access.codes.new())
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url=ORIGIN) as browser:
            browser.cookies.set("pegboard_console_8321", cookie or "")
            response = await browser.get("/api/agents/default/switches/members?kind=plugin&name=odd")
            (row,) = response.json()["rows"]
            assert response.text.isascii()
            assert (row["label"], len(row["description"])) == ("half \ud800 \u202e</script>", 999_999)
            search = await browser.get("/api/search", params={"agent": "default", "query": "odd"})
            assert search.status_code == 200


async def test_a_store_that_is_gone_is_said_in_one_sentence(ada: Program, mailer: Pegboard) -> None:
    await mailer.services.store.aclose()
    for method, address, options in (
        ("GET", "/api/audit", {}),
        ("GET", "/api/audit/export", {}),
        ("GET", "/api/sessions", {}),
        ("PUT", SWITCHES, {"json": OFF}),
    ):
        code, message, _ = await ada.refused(method, address, 503, **options)
        assert (code, message.endswith("is not open.")) == ("store_failed", True), message
