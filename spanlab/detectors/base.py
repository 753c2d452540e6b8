"""What every detector is: something with a name that annotates an item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from spanlab.errors import SpanlabError
from spanlab.schema import Annotation, Item, Kind, Status, storable

if TYPE_CHECKING:
    import dspy

    from spanlab.mappers import Quote

__all__ = ["BatchDetector", "Detector", "Finding", "LocalDetector", "Tunable", "failed"]

_REASON = 500  # characters of a reason that are kept with an item


@dataclass(frozen=True)
class Finding:
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

    async def detect(self, item: Item) -> Finding:
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
    """A detector that computes and asks nobody; ``spanlab.detectors.local`` makes it a Detector."""

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

    def expected(self, item: Item, quotes: Sequence[Quote]) -> Mapping[str, object]:
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
        kind=Kind.DETECTOR,
        status=Status.FAILED,
        note=storable((reason or type(error).__name__)[:_REASON]),
    )
