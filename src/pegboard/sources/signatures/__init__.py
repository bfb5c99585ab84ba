"""Python functions as tools: schemas from signatures, construction from overrides, calls and results."""

from pegboard.sources.signatures.constructed import ConstructedPlugins
from pegboard.sources.signatures.docs import summary
from pegboard.sources.signatures.functions import Described, described
from pegboard.sources.signatures.instances import Instances
from pegboard.sources.signatures.modules import ModulesBeside
from pegboard.sources.signatures.parameters import (
    Parameters,
    construct,
    parameters_of,
)
from pegboard.sources.signatures.plugins import Built, as_tools, built
from pegboard.sources.signatures.results import as_result, failure, given_up, image_type, run
from pegboard.sources.signatures.threads import end_free_threads, in_thread

__all__ = [
    "Built",
    "ConstructedPlugins",
    "Described",
    "Instances",
    "ModulesBeside",
    "Parameters",
    "as_result",
    "as_tools",
    "built",
    "construct",
    "described",
    "end_free_threads",
    "failure",
    "given_up",
    "image_type",
    "in_thread",
    "parameters_of",
    "run",
    "summary",
]
