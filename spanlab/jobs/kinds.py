"""The kinds of job there are: each is one DBOS workflow that lives in a module of its own.

A kind's module registers its workflows with DBOS when it is imported, which a worker does before
it starts. The workflow takes one JSON object, the job's request, and ends with its result.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Literal

Kind = Literal["detect", "optimise"]


@dataclass(frozen=True)
class JobKind:
    """A kind of job: the name of its workflow and the module that has it."""

    workflow: str
    module: str


KINDS: dict[Kind, JobKind] = {
    "detect": JobKind("spanlab.detect", "spanlab.jobs.detection"),
    "optimise": JobKind("spanlab.optimise", "spanlab.jobs.optimisation"),
}


def kind_of(workflow: str) -> Kind:
    """Return the kind of job that a workflow name stands for.

    Raises:
        KeyError: no kind has this workflow.
    """
    return {each.workflow: kind for kind, each in KINDS.items()}[workflow]


def load() -> None:
    """Import the modules of all kinds, so that DBOS knows their workflows."""
    for each in KINDS.values():
        import_module(each.module)
