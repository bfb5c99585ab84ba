"""What the shared tests need of a framework: a driver that builds its agent and reports what the model got."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pegboard import Pegboard, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call that the model makes."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


def call(name: str, /, **arguments: Any) -> Call:
    return Call(name=name, arguments=arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """A structured answer of the model, in the way of the framework: a text, or a call of its own output tool."""

    value: Mapping[str, Any]


Answer = str | Call | Sequence[Call] | Final
"""What the model answers: a final text or object, a call, or several calls at once."""
Form = Literal["anthropic", "responses", "chat"]
Wish = Literal["structured", "usage", "deps", "again", "delegate", "login"]
Step = Answer | Callable[[], Awaitable[Answer]]
"""An answer; or what makes one once the model has been given its tools, so that something can change meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """What one call of the model carried.

    Attributes:
        tools: the names of the tools, in order.
        schemas: their parameters, by name.
        system: all text of the system: instructions, policy, hints, and what is behind the history.
        results: what the tools returned since the model's last call, as the model reads it, in order.
        required: whether the choice of tools has it call one.
    """

    tools: tuple[str, ...]
    schemas: Mapping[str, Mapping[str, Any]]
    system: str
    results: tuple[str, ...] = ()
    required: bool = False


class Script:
    """A model's answers in order, and what each of its calls carried; behind the last it answers "done"."""

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self.calls: list[ModelCall] = []

    async def answer(self, carried: ModelCall) -> str | Sequence[Call] | Final:
        self.calls.append(carried)
        step: Step = self._steps.pop(0) if self._steps else "done"
        answer = await step() if callable(step) else step
        return [answer] if isinstance(answer, Call) else answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a run of an agent came to.

    Attributes:
        calls: the model's calls, in order.
        answer: the final text, or empty where the run waits for an approval.
        output: the final object of an agent with structured output.
        requests: how many requests to models the framework's own usage counts for the run.
        pieces: the final text as it was streamed.
        waiting: the names of the tools whose calls wait for an approval, or a login.
        logins: the addresses of the logins that calls wait for.
    """

    calls: tuple[ModelCall, ...]
    answer: str = ""
    output: Mapping[str, Any] | None = None
    requests: int = 0
    pieces: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    logins: tuple[str, ...] = ()


class Talk(Protocol):
    """A conversation of a user with one agent over one session; it has its history.

    One with the framework's real client of a provider follows the script of the server, not the steps.
    """

    async def run(self, message: str, *steps: Step, stream: bool = False) -> Ran:
        """Return what came of a message that the model answers by these steps."""
        ...

    async def decide(self, *steps: Step, allow: bool, reason: str = "") -> Ran:
        """Return what came of the run that waits, once a person has decided in the terms of the framework."""
        ...

    async def summarise(self, text: str) -> None:
        """Let the history be a text of the user alone, as a host does that shortens it."""
        ...

    def stored(self) -> bytes:
        """Return what a program keeps of the conversation to go on with it in another process."""
        ...


class Driver(Protocol):
    """A framework.

    Attributes:
        name: what the test calls it.
        tools_change: at the next call of the model, or at the next run only.
        form: what its real client speaks to a provider.
        cannot: what the framework has no place for, each with the reason; its page in `docs/frameworks/` says the same.
    """

    @property
    def name(self) -> str: ...
    @property
    def tools_change(self) -> Literal["call", "run"]: ...
    @property
    def form(self) -> Form: ...
    @property
    def cannot(self) -> Mapping[Wish, str]: ...

    def talk(
        self,
        session: Session,
        *,
        deps: str | None = None,
        structured: bool = False,
        stored: bytes | None = None,
        url: str | None = None,
    ) -> Talk:
        """Return a conversation with a new agent over this session.

        Args:
            session: the session.
            deps: what the framework hands to the agent's own code in a run: dependencies, context.
            structured: whether the agent's answer is an object with the number ``count``, by a `Final` of the model.
            stored: the conversation so far, from another process; without it a new one begins.
            url: where a server of the driver's form listens, for the framework's real client; without it the
                framework's own test model follows the steps.
        """
        ...

    def delegate(self, board: Pegboard, *steps: Step) -> Script:
        """Let the framework's own agents run what is delegated on this board; their model follows the script.

        Their instructions name what they have of the run that delegates: ``For {deps}.``.
        """
        ...


async def in_turn(driver: Driver, talk: Talk, *steps: Answer) -> list[ModelCall]:
    """Return what the model's calls carried, one for each step and one more; in one run, or where needed a run each."""
    if driver.tools_change == "call":
        return list((await talk.run("Go on.", *steps)).calls)
    runs = [await talk.run("Go on.", step) for step in (*steps, "done")]
    return [ran.calls[0] for ran in runs]


def parts(body: Mapping[str, Any]) -> list[Any]:
    """Return the history of a request, in any form."""
    return list(body.get("messages") or body["input"])


def definitions_of(name: str, body: Mapping[str, Any]) -> int:
    """Return how often a request shows a model how to call a tool."""
    shown = [tool for tool in body.get("tools", ()) if not tool.get("defer_loading")]
    text = json.dumps([shown, parts(body)]).replace("\\", "")
    named = (f'"name": "{name}"', f'"name":"{name}"', f'"tool_name": "{name}"')
    calls = text.count(f'"name": "{name}", "input"')
    return sum(map(text.count, named)) - calls
