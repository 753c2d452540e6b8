"""What a detector is, and what it is built with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pydantic import JsonValue

from spanlab.base.errors import SpanlabError
from spanlab.base.fields import storable
from spanlab.schema import Annotation, AnnotatorKind, Item, Status

if TYPE_CHECKING:
    import dspy

    from spanlab.detection.memory import EvidenceMemory, MemoryChoice
    from spanlab.detection.spec import DetectorSpec
    from spanlab.models import Meter
    from spanlab.models.model import LanguageModel
    from spanlab.schema import TunedPredictor
    from spanlab.search.base import Retriever
    from spanlab.search.pages import PageReader
    from spanlab.text.quotes import ModelQuote
    from spanlab.tools.mcp_servers import ServerState


_REASON = 500  # characters of a reason that are kept with an item


@dataclass(frozen=True)
class DetectorResult:
    """What a detector found.

    ``item`` is the item with the passages that were retrieved for it, to which the annotations'
    evidence points. ``members`` are the annotations that ``annotation`` was voted from; empty for
    a detector that is no ensemble.
    """

    annotation: Annotation
    item: Item
    members: tuple[Annotation, ...] = ()

    @property
    def annotations(self) -> tuple[Annotation, ...]:
        """Everything to keep: the members' annotations, then the annotation itself."""
        return (*self.members, self.annotation)


class Detector(Protocol):
    """Finds hallucinated spans; it keeps no state between items, many of which may be under way."""

    @property
    def name(self) -> str:
        """The name that it signs its annotations with."""
        ...

    async def detect(self, item: Item) -> DetectorResult:
        """Mark what is likely hallucinated in the item's answer.

        Args:
            item: question, answer, passages and what was retrieved before.

        Returns:
            A done annotation (without spans if it found nothing), or a failed one that says why;
            its trace tells what was asked, read and decided until then. The item has what was
            retrieved meanwhile.

        Raises:
            BudgetError: the run's budget is used up.
            ConfigurationError: key, address or name of the model is wrong.
        """
        ...


@runtime_checkable
class LocalDetector(Protocol):
    """A detector that computes and asks nobody; ``as_detector`` makes it a Detector."""

    @property
    def name(self) -> str:
        """The name that it signs its annotations with."""
        ...

    def annotate(self, item: Item) -> Annotation:
        """Mark what is likely hallucinated in the item's answer; see ``Detector.detect``."""
        ...


@runtime_checkable
class BatchDetector(LocalDetector, Protocol):
    """A local detector that is quicker with many items at once; it uses all processors itself."""

    @property
    def batch(self) -> int:
        """How many items it takes at once."""
        ...

    def annotate_all(self, items: Sequence[Item]) -> Sequence[Annotation]:
        """Annotate items, in their order; what breaks on one may break on all of them."""
        ...


@runtime_checkable
class Tunable(Protocol):
    """A detector whose prompts an optimiser can tune.

    ``program`` are the model's steps alone, without retrieval and mapping: a module with named
    predictors. It is called with ``inputs(item)``, and ``mark(item, prediction)`` maps what it
    returned to the annotation that its metric scores.
    """

    @property
    def name(self) -> str:
        """The name that it signs its annotations with."""
        ...

    @property
    def program(self) -> dspy.Module:
        """The module to tune; the detector uses it as it is, so tune a copy."""
        ...

    def inputs(self, item: Item) -> Mapping[str, str]:
        """Return what the program is called with for an item; all values are text."""
        ...

    def mark(self, item: Item, prediction: dspy.Prediction) -> Annotation:
        """Return the annotation that what the program said of ``item`` amounts to."""
        ...

    def expected(self, item: Item, quotes: Sequence[ModelQuote]) -> Mapping[str, object]:
        """Return the output fields that a perfect program gives, for labelled demonstrations.

        Args:
            item: a labelled item.
            quotes: its gold spans in order, with their probability.

        Returns:
            Values by field name; empty where labels do not say what the fields should hold.
        """
        ...


def failed(name: str, error: BaseException) -> Annotation:
    """Return the annotation of a detector that broke on an item, with the reason."""
    reason = str(error) if isinstance(error, SpanlabError) else f"{type(error).__name__}: {error}"
    return Annotation(
        annotator=name,
        kind=AnnotatorKind.DETECTOR,
        status=Status.FAILED,
        note=storable((reason or type(error).__name__)[:_REASON]),
    )


@dataclass(frozen=True)
class DetectorKit:
    """What a detector works with: its choices, and what was built from them.

    ``models`` are language models by the roles of the detector's entry, the main one first; none
    for a detector without roles, or where the model counts that dspy is configured with.
    ``prompts`` are those of a tuned program; None keeps the detector's own. ``pages`` reads web
    pages, for detectors whose entry says that they do. ``memory`` opens the memory of evidence,
    ``tools`` asks the servers that are named for theirs.
    """

    spec: DetectorSpec
    retriever: Retriever
    models: Mapping[str, LanguageModel]
    meter: Meter
    prompts: Mapping[str, TunedPredictor] | None = None
    pages: PageReader | None = None
    memory: Callable[[MemoryChoice], EvidenceMemory] | None = None
    tools: Callable[[str], Awaitable[Sequence[ServerState]]] | None = None

    def lm(self, role: str | None = None) -> dspy.LM:
        """Return the language model of a role; that of the main role for None or any other."""
        if not self.models:
            import dspy

            return dspy.settings.lm
        main = next(iter(self.models.values()))
        return main if role is None else self.models.get(role, main)

    def window(self, role: str) -> int | None:
        """Return the tokens that a role's model takes, prompt and answer; None if not known."""
        return self.models[role].window if role in self.models else None

    def asked(self, model: str) -> dict[str, JsonValue]:
        """Return how a model of this name is asked; an option that only some roles have by role."""
        roles = {role: lm.options for role, lm in self.models.items() if lm.model == model}
        thinking: dict[str, JsonValue] = {"thinking": True} if self.spec.reasoning else {}
        shared_options: dict[str, JsonValue] = {}
        for role, options in roles.items():
            for name, value in options.items():
                shared = all(chosen.get(name) == value for chosen in roles.values())
                shared_options[name if shared else f"{role}.{name}"] = value
        return shared_options | (thinking if roles else {})

    def __deepcopy__(self, memo: object) -> DetectorKit:
        """Return itself: the copy of a detector asks the same model, under the same meter."""
        return self
