"""What is known of the model of an agent, and of what it can do."""

from __future__ import annotations

from typing import Any, Final

from pegboard.core.model.delivery import Host
from pegboard.frameworks import runs
from pegboard.wire.acceptable_schemas import SchemaProvider, provider_of

_FORMS: Final = {"OpenAIResponsesModel": "responses", "OpenAIChatCompletionsModel": "chat"}


def host_for_model(model: object) -> Host | None:
    """Return the host for the model of a run; None for one without a provider, and so without a cache (D4).

    The SDK's history has no place for definitions that join, so that the list stays, whatever the model takes.
    """
    known = model is None or isinstance(model, str) or isinstance(getattr(model, "model", None), str)
    return Host(delivery=("result",)) if known else None


def provider_of_model(model: object) -> SchemaProvider:
    """Return whose rules schemas keep: a name alone is asked in the form of Responses, as the SDK does."""
    name = model if isinstance(model, str) else getattr(model, "model", "") or ""
    form = "responses" if model is None or isinstance(model, str) else _FORMS.get(type(model).__name__, "")
    return provider_of(form, str(name))


def behind_twin(own: Any) -> Any:
    """Return what is behind the twin, which no type names."""
    return own


def warn_of_model() -> None:
    """Warn once that a model of a run takes the place of the agent's."""
    runs.warn_once(
        "RunConfig.model takes the place of the agent's model: what is loaded now does not stand behind the history, "
        "and a call of a tool that is not loaded ends the run. Give the model to the agent instead."
    )
