"""The training data of an optimisation: labelled items or parts of them, and whose labels count."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, Self

from spanlab.base.errors import UsageError
from spanlab.base.fields import FrozenModel
from spanlab.base.options import OptionModel, option
from spanlab.schema import Annotation, AnnotatorKind, Item, Name, Record, Status
from spanlab.scoring.verdicts import by_text
from spanlab.text.extents import Extent, intersection, length
from spanlab.text.labels import ItemLabels, hard_of, labels_of, vote

LabelKind = Literal["gold", "reviewed", "vote"]


class LabelSource(OptionModel):
    """Whose labels count as gold labels.

    - ``gold``: the dataset's gold labels.
    - ``reviewed``: what persons have finished; of several on one item, or named, their vote.
    - ``vote``: the vote of the named annotators, whatever their kind.
    """

    kind: LabelKind = option(
        "gold",
        title="Reference labels",
        help="Reference labels: gold, those of people's reviews, or a vote.",
        flags="--labels",
        titles={
            "gold": "Gold labels of the dataset",
            "reviewed": "What people have reviewed",
            "vote": "A vote of annotators",
        },
    )
    annotators: tuple[Name, ...] = option(
        (),
        title="Annotators",
        help="Whose labels, for reviewed and vote: names, separated by commas.",
        commas=True,
    )

    def __str__(self) -> str:
        names = ", ".join(self.annotators)
        return f"{self.kind} ({names})" if names else self.kind


class PartLabel(FrozenModel):
    """A part of the item ``id``, and its gold label.

    That is a claim with its verdict; a step, whose ``number`` counts from 1, with its type of error
    or ``RIGHT``; or the question with its right answers, a line each.
    """

    id: str
    text: str
    verdict: str
    number: int = 0

    @property
    def name(self) -> str:
        """What names the part in a detector's input: the number of a step, or the text."""
        return str(self.number) if self.number else self.text


@dataclass(frozen=True)
class LabelledItem:
    """An item with its gold labels; or with one labelled part, and no labels of its own."""

    item: Item
    labels: ItemLabels
    part: PartLabel | None = None

    @classmethod
    def of(cls, item: Item, label: ItemLabels | PartLabel) -> Self:
        """Return the item with its labels, or with one of its parts."""
        if isinstance(label, ItemLabels):
            return cls(item, label)
        no_labels = ItemLabels(item.id, item.lang, soft=(), hard=(), length=len(item.answer))
        return cls(item, no_labels, label)

    @property
    def label(self) -> ItemLabels | PartLabel:
        """What ``of`` was given."""
        return self.part or self.labels

    @property
    def key(self) -> str:
        """A key that no other labelled item has: the item's id, with the part's number and text."""
        part = self.part
        return f"{self.item.id}\n{part.number}\n{part.text}" if part else self.item.id


class TargetSpan(FrozenModel):
    """A hard gold span as a detector should quote it.

    ``prob`` is the mean of the soft labels over its characters, as in UCSC's training targets.
    """

    start: int
    end: int
    text: str
    prob: float


def labelled_items(records: Iterable[Record], source: LabelSource) -> Iterator[LabelledItem]:
    """Yield the items that the source has labels for; the others are passed over.

    Raises:
        UsageError: a vote names nobody.
    """
    check_source(source)
    for record in records:
        labels = _labels(record, source)
        if labels is not None:
            yield LabelledItem(record.item, labels)


def labelled_claims(records: Iterable[Record], source: LabelSource) -> Iterator[LabelledItem]:
    """Yield the claims that the source has verdicts for.

    Claims with the same text are one; of several verdicts on it the most frequent counts, and a
    claim with a tie is passed over.

    Raises:
        UsageError: a vote names nobody.
    """
    check_source(source)
    for record in records:
        verdicts: dict[str, Counter[str]] = defaultdict(Counter)
        texts: dict[str, str] = {}
        for annotation in sources_of(record, source):
            for plain, claim in by_text(annotation.claims).items():
                if claim.verdict is not None:
                    verdicts[plain][claim.verdict] += 1
                    texts.setdefault(plain, claim.text)
        for plain, counts in verdicts.items():
            if verdict := majority(counts):
                label = PartLabel(id=record.item.id, text=texts[plain], verdict=verdict)
                yield LabelledItem.of(record.item, label)


def target_spans(labels: ItemLabels, answer: str) -> tuple[TargetSpan, ...]:
    """Return the quotes that a perfect extractor would give, in the order of the answer.

    Source: Huang et al. 2025, training targets: the text of each hard span, with the
    length-weighted mean of the soft labels as its probability.

    Returns:
        One target per hard span; empty if nothing is wrong.
    """
    return tuple(
        TargetSpan(
            start=extent.start,
            end=extent.end,
            text=answer[extent.start : extent.end],
            prob=_mean(labels, extent),
        )
        for extent in labels.hard
    )


def fingerprint(examples: Iterable[LabelledItem]) -> str:
    """Return 64 hexadecimal digits that change with any item, answer or label, not with order."""
    lines = sorted(
        repr((example.item.id, example.item.question, example.item.answer, *_label_key(example)))
        for example in examples
    )
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def _label_key(example: LabelledItem) -> tuple[object, ...]:
    if example.part is not None:
        return (example.part.number, example.part.text, example.part.verdict)
    return (example.labels.soft, example.labels.hard)


def majority(counts: Counter[str]) -> str | None:
    """Return the most frequent value; None for a tie, or if there is none."""
    first, second = [*counts.most_common(2), ("", 0), ("", 0)][:2]
    return first[0] if first[1] > second[1] else None


def check_source(source: LabelSource) -> None:
    """Refuse a vote of nobody.

    Raises:
        UsageError: a vote names nobody.
    """
    if source.kind == "vote" and not source.annotators:
        raise UsageError("a vote of annotators needs their names")


def sources_of(record: Record, source: LabelSource) -> list[Annotation]:
    """Return the finished annotations that a source counts; of gold labels the first."""
    finished = [annotation for annotation in record.annotations if annotation.status is Status.DONE]
    if source.kind == "gold":
        return [annotation for annotation in finished if annotation.kind is AnnotatorKind.GOLD][:1]
    return [annotation for annotation in finished if _votes(annotation, source)]


def _labels(record: Record, source: LabelSource) -> ItemLabels | None:
    voters = sources_of(record, source)
    if not voters:
        return None
    if source.kind == "gold":
        return labels_of(record, voters[0].annotator)
    voted = vote(record.item, voters)
    with_vote = Record(item=record.item, annotations=(voted,))
    raters = tuple(tuple(hard_of(voter)) for voter in voters)
    vote_labels = labels_of(with_vote, voted.annotator)
    return replace(vote_labels, raters=raters)


def _votes(annotation: Annotation, source: LabelSource) -> bool:
    if source.annotators:
        return annotation.annotator in source.annotators
    return annotation.kind is AnnotatorKind.PERSON


def _mean(labels: ItemLabels, extent: Extent) -> float:
    marked = sum(
        soft.prob * length(intersection([extent], [Extent(soft.start, soft.end)]))
        for soft in labels.soft
    )
    return marked / (extent.end - extent.start)
