"""Python functions as tools: schemas from signatures, construction from overrides, calls and results."""

from pegboard.sources.signatures.annotations import adapter_for
from pegboard.sources.signatures.constructed import (
    BuiltPlugin,
    LocalPlugin,
    WithoutHooks,
    blocks,
    find_tool,
    is_abandoned,
    run_tool,
)
from pegboard.sources.signatures.distributions import distribution_of, is_installed
from pegboard.sources.signatures.functions import describe_function, summary, without_fields
from pegboard.sources.signatures.instances import HookedSource, Instances, LocalSource, PluginMaking, began_anew
from pegboard.sources.signatures.modules import ModulesBeside
from pegboard.sources.signatures.parameters import (
    Parameters,
    construct,
    parameters_of,
    refused_override,
)
from pegboard.sources.signatures.plugins import (
    Adopt,
    adopt_plugin,
    build_plugin,
    constructs,
    nothing_adopted,
)
from pegboard.sources.signatures.results import as_result, failure, image_type
from pegboard.support.threads import end_free_threads, run_here, run_in_thread

__all__ = [
    "Adopt",
    "BuiltPlugin",
    "HookedSource",
    "Instances",
    "LocalPlugin",
    "LocalSource",
    "ModulesBeside",
    "Parameters",
    "PluginMaking",
    "WithoutHooks",
    "adapter_for",
    "adopt_plugin",
    "as_result",
    "began_anew",
    "blocks",
    "build_plugin",
    "construct",
    "constructs",
    "describe_function",
    "distribution_of",
    "end_free_threads",
    "failure",
    "find_tool",
    "image_type",
    "is_abandoned",
    "is_installed",
    "nothing_adopted",
    "parameters_of",
    "refused_override",
    "run_here",
    "run_in_thread",
    "run_tool",
    "summary",
    "without_fields",
]
