"""Who is told outside of the console what waits: what a message says, where it goes, what a bad one does not do."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from gateway.clients import edit, until
from pegboard import Pegboard
from pegboard.config.inspection import inspect
from pegboard.console.hooks.http_messenger import HttpMessenger, untaken
from pegboard.console.hooks.sender import ATTEMPTS, WAITING, HookSender
from pegboard.support.backoff import Backoff

from .programs import program, serving
from .sites import site
from .waiting_calls import CONFIG, asked, ran, set_up

SECRET = "s3cret-path-of-a-hook"
HOSTILE = "<!channel> *a*\u202egpj\nTitle: x"


@dataclass
class Receiver:
    """A real server that takes messages; ``answers`` are the statuses of the first ones, 200 those of the others."""

    answers: list[int] = field(default_factory=list)
    elsewhere: str = ""
    taken: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    hang: asyncio.Event | None = None

    async def take(self, request: Request) -> Response:
        self.taken.append((dict(request.headers), await request.body()))
        if self.hang is not None:
            await self.hang.wait()
        if self.elsewhere:
            return RedirectResponse(self.elsewhere, status_code=307)
        return Response(status_code=self.answers.pop(0) if self.answers else 200)

    @property
    def app(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self.take, methods=["POST"])])

    def documents(self) -> list[Any]:
        return [json.loads(body) for _, body in self.taken]


@dataclass(frozen=True)
class Telling:
    board: Pegboard
    sender: HookSender


def configured(folder: Path, url: str, more: str = "", top: str = "") -> Path:
    return set_up(folder, f'{CONFIG}{top}notify: [{{url: "{url}"{more}}}]\n')


@asynccontextmanager
async def telling(config: Path, *, timeout: float = 5.0, gather: float = 0.01, **env: str) -> AsyncIterator[Telling]:
    """Open a configuration and tell its hooks, without pauses worth waiting for."""
    async with Pegboard.open(config, watch=True, env=env) as board:
        sender = HookSender(
            board,
            HttpMessenger(timeout=timeout),
            lambda: "http://127.0.0.1:8321/console",
            pauses=lambda: Backoff(first=0.001, longest=0.001),
            look_every=0.05,
            gather=gather,
        )
        sender.start()
        try:
            yield Telling(board, sender)
        finally:
            await sender.aclose()


async def test_a_call_that_waits_is_told_with_a_link_and_without_its_arguments(tmp_path: Path) -> None:
    """A2: what the call would do is on its page only."""
    receiver = Receiver()
    async with site(receiver.app) as origin, telling(configured(tmp_path, f"{origin}/h")) as told:
        one = await asked(told.board, path="/home/ada/payroll")
        await until(lambda: len(receiver.taken) == 1)
        (document,) = receiver.documents()
        assert document["link"] == f"http://127.0.0.1:8321/console/approvals/{one.id}"
        assert (document["event"], document["tool"], document["agent"], document["principal"]) == (
            "approval", "delete_file", "default", "local",
        )  # fmt: skip
        assert "payroll" not in receiver.taken[0][1].decode()


async def test_arguments_are_sent_where_that_is_wanted_and_secrets_in_them_are_masked(tmp_path: Path) -> None:
    receiver = Receiver()
    async with site(receiver.app) as origin:
        config = configured(tmp_path, f"{origin}/${{HOOK}}", ", arguments: true")
        async with telling(config, HOOK=SECRET) as told:
            await asked(told.board, path=f"x {SECRET} y")
            await until(lambda: len(receiver.taken) == 1)
            assert receiver.documents()[0]["arguments"] == {"path": "x *** y"}


async def test_links_lead_to_where_people_reach_the_console(tmp_path: Path) -> None:
    receiver = Receiver()
    async with site(receiver.app) as origin:
        config = configured(tmp_path, f"{origin}/h", top="console_url: https://ops.example.org/console/\n")
        async with telling(config) as told:
            one = await asked(told.board)
            await until(lambda: len(receiver.taken) == 1)
            assert receiver.documents()[0]["link"] == f"https://ops.example.org/console/approvals/{one.id}"


@pytest.mark.parametrize("shape", ["ntfy", "slack"])
async def test_hostile_names_add_no_header_no_mention_and_no_line(tmp_path: Path, shape: str) -> None:
    receiver = Receiver()
    async with site(receiver.app) as origin:
        async with telling(configured(tmp_path, f"{origin}/h", f", shape: {shape}, arguments: true")) as told:
            session = await told.board.session(agent="default", session_id="s", principal="<!here> é")
            await session.call("delete_file", {"path": HOSTILE})
            await until(lambda: len(receiver.taken) == 1)
        headers, body = receiver.taken[0]
        text = body.decode()
        assert "\u202e" not in text
        if shape == "slack":
            assert "<!" not in json.loads(text)["text"]
            assert "&lt;!channel&gt; ∗a∗" in json.loads(text)["text"]
            assert "<http://127.0.0.1:8321/console/approvals/" in json.loads(text)["text"]
        else:
            assert headers["title"] == "delete_file waits for a person"
            assert headers["click"].startswith("http://127.0.0.1:8321/console/approvals/")
            assert len(text.splitlines()) == 2


async def test_a_title_that_is_not_ascii_is_a_header_that_ntfy_reads() -> None:
    from pegboard.console.hooks.messages import HookMessage, write_message
    from pegboard.core.model.hooks import Hook

    message = HookMessage(event="approval", title="löschen", text="t")
    _, headers = write_message(message, Hook(url="https://ntfy.sh/x", shape="ntfy"))
    assert base64.b64decode(headers["Title"].removeprefix("=?UTF-8?B?").removesuffix("?=")).decode() == "löschen"


async def test_a_redirect_is_not_followed_and_the_other_host_hears_nothing(tmp_path: Path) -> None:
    other = Receiver()
    async with site(other.app) as elsewhere:
        receiver = Receiver(elsewhere=f"{elsewhere}/stolen")
        async with site(receiver.app) as origin, telling(configured(tmp_path, f"{origin}/h")) as told:
            await asked(told.board)
            await until(lambda: len(receiver.taken) == ATTEMPTS)
            await until(lambda: bool(told.sender.faults()) and told.sender.faults()[0].dropped == 1)
            assert told.sender.faults()[0].why == "it answered with status 307, a redirect, which is not followed"
    assert other.taken == []


async def test_a_proxy_of_the_environment_hears_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy, receiver = Receiver(), Receiver()
    async with site(proxy.app) as through, site(receiver.app) as origin:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, through)
        async with telling(configured(tmp_path, f"{origin}/h")) as told:
            await asked(told.board)
            await until(lambda: len(receiver.taken) == 1)
    assert proxy.taken == []


async def test_a_message_is_tried_again_and_the_fault_goes_once_one_arrives(tmp_path: Path) -> None:
    receiver = Receiver(answers=[500, 503])
    async with site(receiver.app) as origin, telling(configured(tmp_path, f"{origin}/h")) as told:
        await asked(told.board)
        await until(lambda: len(receiver.taken) == 3)
        await until(lambda: not told.sender.faults(), 5)
        assert receiver.taken[0] == receiver.taken[2]


async def test_a_hook_that_hangs_delays_no_call_and_no_other_hook(tmp_path: Path) -> None:
    """A3: calls wait for a person, never for anyone who tells them."""
    hanging, receiver = Receiver(hang=asyncio.Event()), Receiver()
    async with site(hanging.app) as stuck, site(receiver.app) as origin:
        config = set_up(tmp_path, f'{CONFIG}notify: [{{url: "{stuck}/h"}}, {{url: "{origin}/h"}}]\n')
        async with telling(config, timeout=60.0) as told:
            one = await asked(told.board)
            await until(lambda: len(receiver.taken) == 1 and len(hanging.taken) == 1)
            await told.board.approvals.allow(one.id, by="ada")
            session = await told.board.session(agent="default", session_id="s")
            await session.call("delete_file", {"path": "a.txt"})
            assert ran(config) == ["deleted a.txt"]
            assert len(hanging.taken) == 1
        assert hanging.hang is not None
        hanging.hang.set()


async def test_a_hook_that_does_not_answer_in_time_is_given_up(tmp_path: Path) -> None:
    hanging = Receiver(hang=asyncio.Event())
    async with site(hanging.app) as stuck, telling(configured(tmp_path, f"{stuck}/h"), timeout=0.05) as told:
        await asked(told.board)
        await until(lambda: bool(told.sender.faults()) and told.sender.faults()[0].dropped == 1)
        assert hanging.hang is not None
        hanging.hang.set()


async def test_an_agent_that_asks_again_and_again_is_told_of_once_and_then_together(tmp_path: Path) -> None:
    """A3: 151 calls of a loop are two messages, and those of another agent have their own."""
    receiver = Receiver()
    async with site(receiver.app) as origin, telling(configured(tmp_path, f"{origin}/h"), gather=1.0) as told:
        for number in range(151):
            await asked(told.board, session=f"s{number}")
        await until(lambda: sum(one.get("calls", 1) for one in receiver.documents()) == 151)
        first, *others = receiver.documents()
        assert (first["tool"], len(others) < 10) == ("delete_file", True)
        assert others[0]["text"].endswith(f"wait for an answer: delete_file ({others[0]['calls']}).")
        assert others[0]["link"] == "http://127.0.0.1:8321/console/approvals"


async def test_of_too_many_messages_the_oldest_are_dropped(tmp_path: Path) -> None:
    hanging, agents = Receiver(hang=asyncio.Event()), range(WAITING + 3)
    async with site(hanging.app) as stuck:
        config = configured(tmp_path, f"{stuck}/h")
        edit(config, "agents:\n", "agents:\n" + "".join(f"  a{number}: {{tools: [files]}}\n" for number in agents))
        async with telling(config, timeout=60.0) as told:
            await _told_until_dropped(told, hanging)


async def _told_until_dropped(told: Telling, hanging: Receiver) -> None:
    for number in range(WAITING + 3):
        await asked(told.board, agent=f"a{number}")
    await until(lambda: len(hanging.taken) == 1 and bool(told.sender.faults()))
    dropped = told.sender.faults()[0].dropped
    assert dropped in (2, 3)
    assert hanging.hang is not None
    hanging.hang.set()
    await until(lambda: len(hanging.taken) == WAITING + 3 - dropped)
    await until(lambda: not told.sender.faults())


async def test_what_waited_before_a_restart_is_told_by_the_next_process(tmp_path: Path) -> None:
    receiver = Receiver()
    async with site(receiver.app) as origin:
        config = configured(tmp_path, f"{origin}/h")
        async with Pegboard.open(config) as board:
            one = await asked(board)
        async with telling(config):
            await until(lambda: len(receiver.taken) == 1)
        assert receiver.documents()[0]["id"] == one.id


async def test_of_several_processes_on_one_store_one_tells_what_all_of_them_see(tmp_path: Path) -> None:
    """G14: what each alone sees is still told, and what comes back, too."""
    receiver = Receiver()
    async with site(receiver.app) as origin:
        config = configured(tmp_path, f"{origin}/h")
        async with telling(config) as first, telling(config) as second:
            edit(config, "agents:", "agentz:")
            boards = first.board, second.board
            await until(lambda: all(board.configuration_state.refused for board in boards))
            await until(lambda: len(receiver.taken) == 1)
            await asked(second.board)
            await until(lambda: len(receiver.taken) == 2)
        assert [one["event"] for one in receiver.documents()] == ["attention", "approval"]


async def test_an_edit_moves_the_hook_and_a_refused_edit_is_told_once(tmp_path: Path) -> None:
    first, second = Receiver(), Receiver()

    def sent() -> list[dict[str, Any]]:
        """Return what the new address was sent; that the edit waits may reach it, too, once the edit counts."""
        return [one for one in second.documents() if one.get("kind") != "waiting"]

    async with site(first.app) as old, site(second.app) as new:
        config = configured(tmp_path, f"{old}/h")
        async with telling(config) as told:
            edit(config, f"{old}/h", f"{new}/h")
            await until(lambda: bool(told.board.waiting))
            await told.board.accept(by="ada")
            assert new in told.board.configuration.notify[0].url
            await asked(told.board)
            await until(lambda: len(sent()) == 1)
            edit(config, "agents:", "agentz:")
            await until(lambda: len(sent()) == 2)
            await asked(told.board, path="b.txt")
            await until(lambda: len(sent()) == 3)
        assert [one["event"] for one in sent()] == ["approval", "attention", "approval"]
        assert sent()[1]["kind"] == "refused_edit"
    assert first.taken == []


async def test_a_failing_hook_is_reported_on_the_start_page_and_its_secret_nowhere(tmp_path: Path) -> None:
    """X5: of the address of a hook only its host is shown."""
    receiver = Receiver(answers=[404] * ATTEMPTS)
    tokens = 'tokens: {root: {token: root-root-root-root-root, agents: ["*"], console: true}}\n'
    async with site(receiver.app) as origin:
        config = configured(tmp_path, f"{origin}/{SECRET}?key={SECRET}", top=tokens)
        async with telling(config) as told:
            await asked(told.board)
            await until(lambda: bool(told.sender.faults()) and told.sender.faults()[0].dropped == 1)
            async with serving(told.board, told.sender.faults) as (app, _), program(app, "root-" * 4 + "root") as root:
                items = (await root.ask("GET", "/api/attention"))["items"]
                (item,) = [item for item in items if item["kind"] == "hook"]
                assert item["text"].startswith(
                    f"Messages about waiting calls do not reach '{origin.removeprefix('http://')}'"
                )
                assert item["hint"] == "Messages given up: 1."
                page = (await root.client.get("/console")).text
                assert "do not reach" in page
                assert SECRET not in page
                assert SECRET not in json.dumps(items)
            assert SECRET not in repr(told.board.configuration.notify)
            assert SECRET not in told.board.services.masker.text(f"{origin}/{SECRET}?key={SECRET}")


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://example.org/h", "is neither https nor on this machine."),
        ("ftp://127.0.0.1/h", "is neither https nor on this machine."),
        ("https:///h", "is no address."),
        ("https://example.org/a b", "is no address."),
        ("https://exa\u0430mple.org/", "is no address."),
        ("https://[/", "is no address."),
    ],
)
def test_an_address_that_would_carry_secrets_in_the_open_is_refused(tmp_path: Path, url: str, text: str) -> None:
    config = configured(tmp_path, url)
    found, problems = inspect(config, registered={})
    assert found is None
    assert [problem.message for problem in problems if problem.severity == "error"] == [text]


def test_a_hook_without_an_address_is_refused(tmp_path: Path) -> None:
    config = set_up(tmp_path, f"{CONFIG}notify: [{{shape: slack}}]\n")
    found, problems = inspect(config, registered={})
    assert found is None
    assert "url" in str(problems[0])


async def test_check_sends_each_hook_a_message_that_says_nothing(tmp_path: Path) -> None:
    """A failing hook is a warning with its place, and its address stays secret."""
    good, bad = Receiver(), Receiver(answers=[404])
    async with site(good.app) as origin, site(bad.app) as wrong:
        hooks = f'notify: [{{url: "{origin}/h"}}, {{url: "{wrong}/{SECRET}"}}]\n'
        config = set_up(tmp_path, CONFIG + hooks)
        configuration, _ = inspect(config, registered={})
        assert configuration is not None
        messenger = HttpMessenger()
        (problem,) = await untaken(configuration.notify, messenger)
        await messenger.aclose()
        assert problem.code == "hook_failed"
        host = wrong.removeprefix("http://")
        assert problem.message == f"a message to '{host}' did not arrive: it answered with status 404."
        assert SECRET not in str(problem)
        assert good.documents() == [{"event": "test", "text": "This is a test: nothing waits.", "link": ""}]
