"""A provider of models on 127.0.0.1: it follows a script, refuses what real ones refuse, and keeps what it is sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from types import TracebackType
from typing import Any, Self, cast

from pegboard.testing.providers.anthropic_rules import anthropic_refusal
from pegboard.testing.providers.chat_rules import chat_refusal
from pegboard.testing.providers.gemini_rules import gemini_refusal
from pegboard.testing.providers.replies import ModelAnswer, ProviderRefusal, RawReply, form_of, response
from pegboard.testing.providers.responses_rules import responses_refusal

ScriptedModel = Callable[[Mapping[str, Any]], ModelAnswer]
"""What the model answers to the body of a request."""


def scripted_model(*answers: ModelAnswer) -> ScriptedModel:
    """Return a model that gives these answers in order, then "Done."."""
    left = list(answers)
    return lambda _: left.pop(0) if left else "Done."


class StrictProvider:
    """A provider in every form: Anthropic's Messages, OpenAI's Responses and Chat, Gemini's OpenAI form.

    ``with StrictProvider("Hello.") as provider:`` listens until the block is left; ``provider.url`` is what a client
    takes as its base (OpenAI's with ``/v1`` behind it). The form is that of the address; Chat Completions for a model
    whose name has ``gemini`` in it follow Gemini's rules.

    Attributes:
        url: the address.
        bodies: the requests, in order.
        headers: their headers, with names in lower case.
        refusals: what was refused by the rules, in order; a request that is refused takes nothing from the script.
    """

    def __init__(self, *answers: ModelAnswer, model: ScriptedModel | None = None) -> None:
        """Make a provider.

        Args:
            answers: what the model answers, in order, then "Done.".
            model: what answers instead, from the body of a request.
        """
        self.url = ""
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.refusals: list[ProviderRefusal] = []
        self._model = scripted_model(*answers) if model is None else model
        self._lock = threading.Lock()
        self._ids: set[str] = set()
        self._answers = 0

    def __enter__(self) -> Self:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named so by the base class
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                headers = {key.lower(): value for key, value in self.headers.items()}
                status, kind, data, lost = provider.answer(self.path, headers, body)
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data) + lost))
                self.end_headers()
                self.wfile.write(data)
                self.close_connection = self.close_connection or lost

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def answer(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> tuple[int, str, bytes, bool]:
        """Return the status, type and body of the answer to a request, which is kept; and whether its rest is lost."""
        form = form_of(path, body)
        with self._lock:
            self.bodies.append(body)
            self.headers.append(dict(headers))
            refused = self._refusal(form, headers, body)
            if refused is not None:
                self.refusals.append(refused)
            self._answers += 1
            number = self._answers
            said = self._model(body) if refused is None else refused
            status, kind, data = response(path, body, said, number)
            self._ids |= {f"{beginning}_{number}" for beginning in ("resp", "msg")}
        return status, kind, data, isinstance(said, RawReply) and said.lost

    def _refusal(self, form: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> ProviderRefusal | None:
        match form:
            case "anthropic":
                return anthropic_refusal(body, headers.get("anthropic-beta", ""))
            case "responses":
                return responses_refusal(body, self._ids)
            case "gemini":
                return gemini_refusal(body)
            case _:
                return chat_refusal(body)

    @property
    def prefixes(self) -> list[str]:
        """Return of each request what stands before the history, byte for byte: tools, then the system's text."""
        return [json.dumps([body.get(key) for key in ("tools", "system", "instructions")]) for body in self.bodies]

    @property
    def breaks(self) -> int:
        """Return how many requests had another prefix than the one before."""
        return sum(before != now for before, now in pairwise(self.prefixes))

    @property
    def rewritten(self) -> int:
        """Return how many requests do not begin with all of the one before them but its newest message."""
        cached = [_pieces(body) for body in self.bodies]
        return sum(later[: len(earlier) - 1] != earlier[:-1] for earlier, later in pairwise(cached))


def _pieces(body: Mapping[str, Any]) -> list[str]:
    """Return what a provider caches by, piece for piece: tools, system, messages; without the marks of where."""
    text = body.get("system") or body.get("instructions") or ""
    messages = body.get("messages") or body.get("input") or []
    return [json.dumps(_without_marks(piece)) for piece in (body.get("tools"), text, *messages)]


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        parts = cast("dict[str, Any]", value)
        return {key: _without_marks(one) for key, one in parts.items() if key != "cache_control"}
    return [_without_marks(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value
