"""What the class and the name of a model of Agno say of its provider."""

from __future__ import annotations

from typing import Final

from agno.models.base import Model

from pegboard.core.model.delivery import Host, without_native
from pegboard.core.model.model_hosts import host_for
from pegboard.wire.acceptable_schemas import SchemaProvider, provider_of

_FORMS: Final = {
    "agno.models.anthropic": "anthropic",
    "agno.models.openai.responses": "responses",
    "agno.models.openai.open_responses": "responses",
    "agno.models.openai": "chat",
}
"""The form in which the models of a module are asked."""


def host_of_model(model: Model) -> Host | None:
    """Return the host for a model of Agno's own providers, whose list of tools has to stay as it is (D4); else None."""
    theirs = any(kind.__module__.startswith("agno.models.") and kind is not Model for kind in type(model).__mro__)
    return without_native(host_for(str(model.id))) if theirs else None


def provider_of_model(model: Model) -> SchemaProvider:
    """Return whose rules the schemas of a model's requests keep."""
    modules = [kind.__module__ for kind in type(model).__mro__]
    forms = (form for module in modules for part, form in _FORMS.items() if module.startswith(part))
    return provider_of(next(forms, ""), str(model.id))
