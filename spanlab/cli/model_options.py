"""Options of detectors that ask models: which model, which passages, how much it may cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanlab.errors import UsageError

if TYPE_CHECKING:
    from spanlab.detectors import DetectorSpec, Spec
    from spanlab.lm import Budget, ModelChoice
    from spanlab.retrievers import RetrieverSpec


class RetrieverKind(StrEnum):
    """Where passages come from."""

    GIVEN = "given"
    BM25 = "bm25"
    WEB = "web"
    SEARCH = "search"


Detectors = Annotated[
    list[str],
    typer.Option("--detector", help="Which detector, e.g. offline or ucsc-extract. Repeatable."),
]
Model = Annotated[
    str | None, typer.Option(help="The model that detectors ask (default: SPANLAB_MODEL).")
]
Retriever = Annotated[
    RetrieverKind | None, typer.Option(help="Where passages come from (default: given).")
]
Corpus = Annotated[
    Path | None, typer.Option(help="For --retriever bm25: what `spanlab index` has written.")
]
Claims = Annotated[
    bool, typer.Option("--claims", help="Search for each claim of the answer, not the question.")
]
English = Annotated[
    bool, typer.Option("--english", help="Put what is searched for into English first.")
]
Config = Annotated[
    Path | None, typer.Option(help="An ensemble of your own, as JSON, in place of ucsc's members.")
]
Program = Annotated[
    str | None, typer.Option(help="A tuned prompt of the registry; none: the detector's own.")
]
MaxCalls = Annotated[int | None, typer.Option(min=1, help="Stop after so many model calls.")]
MaxCost = Annotated[
    float | None, typer.Option(min=0.0, help="Stop when model calls cost so many US dollars.")
]

Rate = Annotated[
    float | None,
    typer.Option(help="At most so many model calls a minute, of all workers together."),
]


@dataclass(frozen=True)
class Asked:
    """What the options say; the same for all detectors of a run."""

    model: str | None = None
    retriever: str | None = None
    corpus: Path | None = None
    claims: bool = False
    english: bool = False
    config: Path | None = None
    program: str | None = None

    def specs(self, names: Sequence[str]) -> tuple[Spec, ...]:
        """Return the specifications that detectors' names and these options stand for.

        Raises:
            UsageError: no detector is called so, or an option does not fit.
            InputError: the configuration file is no ensemble.
        """
        return tuple(self._spec(name) for name in names)

    def _spec(self, name: str) -> Spec:
        from spanlab.detectors import EnsembleSpec, asks_models, spec_of

        spec = spec_of(name)
        if not asks_models(name):
            if self != Asked():
                raise UsageError(f"{name!r} asks no model: it takes no options of models")
            return spec
        if isinstance(spec, EnsembleSpec):
            chosen = EnsembleSpec.read(self.config) if self.config else spec
            members = tuple(
                member.model_copy(update=self._changes(member)) for member in chosen.members
            )
            return chosen.model_copy(update={"members": members})
        if self.config is not None:
            raise UsageError(f"--config is for an ensemble, such as ucsc, not for {name!r}")
        return spec.model_copy(update=self._changes(spec))

    def _changes(self, spec: DetectorSpec) -> dict[str, object]:
        # What the environment names now holds for the run, wherever its parts are worked on.
        open_choice = self.model is not None or spec.model is None
        changes: dict[str, object] = {
            "model": self._choice(spec.signs) if open_choice else None,
            "retriever": self._retriever(),
            "program": self.program,
        }
        return {name: value for name, value in changes.items() if value is not None}

    def _choice(self, role: str) -> ModelChoice:
        from spanlab.lm import ModelChoice

        return ModelChoice.read(model=self.model, role=role)

    def _retriever(self) -> RetrieverSpec | None:
        if self.retriever is None:
            if self.corpus is not None or self.claims or self.english:
                raise UsageError("--corpus, --claims and --english go with --retriever")
            return None
        from pydantic import ValidationError

        from spanlab.retrievers import retriever_spec

        try:
            return retriever_spec(
                {
                    "kind": self.retriever,
                    "corpus": self.corpus,
                    "queries": "claims" if self.claims else "question",
                    "translate": self.english,
                }
            )
        except ValidationError as error:
            reason = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
            raise UsageError(f"--retriever {self.retriever}: {reason}") from None


def chosen(model: str | None) -> ModelChoice | None:
    """Return the model of this name at the environment's endpoint, None for none."""
    if model is None:
        return None
    from spanlab.lm import ModelChoice

    return ModelChoice.read(model=model)


def budget(max_calls: int | None, max_cost: float | None) -> Budget | None:
    """Return the limits that options name, None if they name none."""
    if max_calls is None and max_cost is None:
        return None
    from spanlab.lm import Budget

    return Budget(calls=max_calls, cost=max_cost)
