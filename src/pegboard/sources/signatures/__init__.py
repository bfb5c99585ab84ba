"""Python functions as tools: schemas from signatures, construction from overrides, calls and results."""

from pegboard.sources.signatures.annotations import adapter_for
from pegboard.sources.signatures.constructed import (
    Built,
    LocalPlugin,
    WithoutHooks,
    blocks,
    called,
    given_up,
    run,
)
from pegboard.sources.signatures.distributions import distribution_of, is_installed
from pegboard.sources.signatures.functions import described, summary, without_fields
from pegboard.sources.signatures.instances import HookedSource, Instances, LocalSource, Making, began_anew
from pegboard.sources.signatures.modules import ModulesBeside
from pegboard.sources.signatures.parameters import (
    Parameters,
    construct,
    parameters_of,
    refused_override,
)
from pegboard.sources.signatures.plugins import (
    Adopt,
    adopted,
    built,
    constructs,
    nothing_adopted,
)
from pegboard.sources.signatures.results import as_result, failure, image_type
from pegboard.support.threads import end_free_threads, in_thread, run_here

__all__ = [
    "Adopt",
    "Built",
    "HookedSource",
    "Instances",
    "LocalPlugin",
    "LocalSource",
    "Making",
    "ModulesBeside",
    "Parameters",
    "WithoutHooks",
    "adapter_for",
    "adopted",
    "as_result",
    "began_anew",
    "blocks",
    "built",
    "called",
    "construct",
    "constructs",
    "described",
    "distribution_of",
    "end_free_threads",
    "failure",
    "given_up",
    "image_type",
    "in_thread",
    "is_installed",
    "nothing_adopted",
    "parameters_of",
    "refused_override",
    "run",
    "run_here",
    "summary",
    "without_fields",
]
