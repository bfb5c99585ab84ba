"""What the class and the name of a chat model of LangChain say of its provider."""

from __future__ import annotations

from typing import Any, Final

from langchain_core.language_models import BaseChatModel

from pegboard.core.model.delivery import Host, without_native
from pegboard.core.model.model_hosts import host_for
from pegboard.wire.acceptable_schemas import SchemaProvider, provider_of

_PROVIDERS: Final = {"langchain_anthropic": "anthropic", "langchain_openai": "chat"}
_FAKES: Final = "langchain_core.language_models.fake_chat_models"


def host_of_model(model: BaseChatModel | None) -> Host | None:
    """Return the host for the model of a run; None for one that is for tests, and so without a cache (D4)."""
    if model is None or any(kind.__module__ == _FAKES for kind in type(model).__mro__):
        return None
    return without_native(host_for(":".join(_form_and_name(model))))


def provider_of_model(model: BaseChatModel | None) -> SchemaProvider:
    """Return whose rules the schemas of a run keep."""
    return "any" if model is None else provider_of(*_form_and_name(model))


def _form_and_name(model: BaseChatModel) -> tuple[str, str]:
    """Return the form in which a model is asked, where it is known, and the name of the model."""
    known: Any = model
    form = _PROVIDERS.get(type(model).__module__.partition(".")[0], "")
    if form == "chat" and getattr(known, "use_responses_api", None):
        form = "responses"
    return form, str(getattr(known, "model_name", None) or getattr(known, "model", ""))
