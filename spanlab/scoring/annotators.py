"""Annotators of a dataset against each other and against a reference such as the gold labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, Literal

import numpy as np

from spanlab.output.figures import percent
from spanlab.output.tables import ResultTable, ResultViews
from spanlab.schema import (
    AnnotatorKind,
    DatasetSettings,
    LearntAnswers,
    QueueCursor,
    QueuePage,
    QueueQuery,
    Record,
)
from spanlab.scoring.agreement import (
    AgreementReport,
    ItemMarks,
    agreement,
    alpha_interval,
    edge_share,
    pairwise_ious,
    rated,
)
from spanlab.scoring.annotator_tables import AgreedOn, ScoredAnnotator, alpha_table
from spanlab.scoring.answer_scores import AnswerComparison, AnswerTally
from spanlab.scoring.calibration import (
    AnnotatorCalibration,
    CalibrationTally,
    Confusion,
    ConfusionSums,
)
from spanlab.scoring.files import more_means, package_metrics
from spanlab.scoring.raters import ALPHAS, MATCHED, QuestionAgreement, ResponseTally
from spanlab.scoring.report import score
from spanlab.scoring.spans import ItemScore, mark_all, mark_none, score_item
from spanlab.scoring.verdicts import ClaimComparison, ClaimTally
from spanlab.storage import Store
from spanlab.storage.datasets import (
    check_annotators,
    summary_of,
    with_progress,
)
from spanlab.text.extents import Extent
from spanlab.text.labels import ItemLabels, labels_in, labels_of
from spanlab.worklists import paging
from spanlab.worklists.looks import looks_in_words

EVERYTHING = "mark everything"
NOTHING = "mark nothing"
Order = Literal["disagreement", "import"]
_PEOPLE = (AnnotatorKind.PERSON,)
_INDEPENDENT = (AnnotatorKind.PERSON, AnnotatorKind.DETECTOR)
_LOOKED_AT = 500  # items among which analyses look for their data
_REPORT_EVERY = 100  # items between two calls of `on_progress`


@dataclass(frozen=True)
class DatasetComparison(ResultViews):
    """The comparison of a dataset's annotators on ``looked_at`` of its ``n_items`` items.

    ``scores`` holds the annotators in the order in which they came, then the two baselines; it is
    empty without a reference. Each is scored on the items that both it and the reference have
    finished, the baselines on all that the reference has finished (``n_reference``).
    ``kinds`` are the annotators and ``marks`` what they mark, from which agreement is measured when
    it is asked for. ``scores`` are of spans, on items where both mark places; ``answers`` are the
    scores and agreement of verdicts on whole answers. ``labels`` has those that give labels where
    the reference does. ``responses`` are what annotators agree on of what the dataset asks.
    ``remarks`` say whose marks on which answers are set aside.
    """

    n_items: int
    looked_at: int
    reference: str | None
    n_reference: int
    scores: tuple[ScoredAnnotator, ...]
    kinds: Mapping[str, AnnotatorKind]
    marks: Sequence[ItemMarks]
    claims: ClaimComparison
    answers: AnswerComparison
    labels: Mapping[str, Confusion]
    calibrations: tuple[AnnotatorCalibration, ...]
    responses: tuple[QuestionAgreement, ...] = ()
    remarks: tuple[str, ...] = ()

    @cached_property
    def everybody(self) -> AgreementReport:
        """Agreement of all annotators, the reference and votes included, with all their pairs."""
        return agreement(self.marks)

    @property
    def judges(self) -> str:
        """What ``independent`` is of: people and detectors, or detectors alone."""
        people = AnnotatorKind.PERSON in self.kinds.values()
        return "people and detectors" if people else "detectors"

    @cached_property
    def persons(self) -> AgreementReport:
        """Agreement of persons; without pairs."""
        return self._agreement(*_PEOPLE)

    @cached_property
    def independent(self) -> AgreementReport:
        """Agreement of persons and detectors, who copied no labels of each other; no pairs."""
        return self._agreement(*_INDEPENDENT)

    def tables(self) -> tuple[ResultTable, ...]:
        """Return Krippendorff's alpha of people, and of people and detectors."""
        persons = {row.lang: row for row in self.persons.languages}
        lines: list[tuple[str, AgreedOn | None, AgreedOn | None]] = [
            (
                "characters",
                alpha_interval(self._marks_of(*_PEOPLE)) or self.persons,
                alpha_interval(self._marks_of(*_INDEPENDENT)) or self.independent,
            ),
            *(
                (f"characters, {row.lang}", persons.get(row.lang), row)
                for row in self.independent.languages
            ),
            ("whole answers", self.answers.persons, self.answers.independent),
            ("verdicts on claims", self.claims.persons, self.claims.independent),
            *(
                (response.line, response.persons, response.independent)
                for response in self.responses
            ),
        ]
        spans = any(response.of_spans for response in self.responses)
        remarks = (*((ALPHAS,) if self.responses else ()), *((MATCHED,) if spans else ()))
        edges, apart = edge_share(self._marks_of(*_PEOPLE)), ""
        if edges is not None:
            apart = (
                f"Of the characters that people mark differently {percent(edges)} are edges of "
                "marks that they have in common; the others are marks of something else."
            )
        told = (*self.remarks, *filter(None, (apart,)), *remarks)
        return (alpha_table(lines, told, without_people=self.judges == "detectors"),)

    def figures(self) -> dict[str, Any]:
        """Return the figures of agreement, those of all pairs included."""
        groups = {
            name: {
                "characters": spans.model_dump(exclude={"pairs"}),
                "answers": answers._asdict(),
                "verdicts": {"n": verdicts.n, "alpha": verdicts.alpha},
            }
            for name, spans, answers, verdicts in (
                ("people", self.persons, self.answers.persons, self.claims.persons),
                (
                    "people and detectors",
                    self.independent,
                    self.answers.independent,
                    self.claims.independent,
                ),
            )
        }
        pairs = [pair.model_dump() for pair in self.everybody.pairs]
        questions = {
            response.question.name: {
                "of": "spans" if response.of_spans else "answers",
                "kind": response.question.kind,
                "people": asdict(response.persons),
                "people and detectors": asdict(response.independent),
            }
            for response in self.responses
        }
        for name, kinds in (("people", _PEOPLE), ("people and detectors", _INDEPENDENT)):
            found = alpha_interval(self._marks_of(*kinds))
            groups[name]["characters"]["interval"] = found and [found.low, found.high]
        return {"alpha": groups, "pairs": pairs, **({"questions": questions} if questions else {})}

    def _agreement(self, *kinds: AnnotatorKind) -> AgreementReport:
        return agreement(self._marks_of(*kinds), with_pairs=False)

    def _marks_of(self, *kinds: AnnotatorKind) -> list[ItemMarks]:
        names = {name for name, kind in self.kinds.items() if kind in kinds}
        return [
            replace(item, marks={name: item.marks[name] for name in item.marks if name in names})
            for item in self.marks
        ]


def compare_dataset(
    store: Store,
    dataset: str,
    *,
    reference: str | None = None,
    limit: int | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> DatasetComparison:
    """Compare the annotators of a dataset.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        reference: the annotator that counts as right; None (or one that has finished no item)
            gives no scores.
        limit: look at no more items than this, spread evenly over the dataset; None for all.
        on_progress: called now and then with the number of items read.

    Raises:
        NotFoundError: the dataset, or the reference in it, does not exist.
    """
    summary = summary_of(store, dataset)
    check_annotators(summary, [] if reference is None else [reference])
    records = with_progress(sample_records(store, dataset, limit), on_progress, _REPORT_EVERY)
    kinds = summary.kinds
    learnt = LearntAnswers(summary.settings)
    comparison = compare_records(map(learnt.set_aside, records), kinds, reference, summary.settings)
    remarks = (*learnt.remarks, *looks_in_words(store, summary, kinds))
    return replace(comparison, n_items=summary.n_items, remarks=remarks)


def compare_records(
    records: Iterable[Record],
    kinds: dict[str, AnnotatorKind],
    reference: str | None = None,
    settings: DatasetSettings | None = None,
) -> DatasetComparison:
    """Compare annotators on a stream of records, each item once, taken as the whole dataset.

    Args:
        records: read once; of each the characters that annotators mark are kept.
        kinds: the annotators to compare, in the order in which to name them.
        reference: the annotator that counts as right, one of ``kinds``; None for none.
        settings: what the dataset asks; None for nothing.
    """
    pairs: dict[str, list[tuple[ItemLabels, ItemLabels]]] = {name: [] for name in kinds}
    golds: list[ItemLabels] = []
    n_reference = 0
    marks: list[ItemMarks] = []
    claims, labels = ClaimTally(kinds, reference), ConfusionSums(reference)
    answers = AnswerTally(kinds, reference)
    calibrations = CalibrationTally(kinds)
    responses = ResponseTally(kinds, settings or DatasetSettings())
    for record in records:
        marked = rated(record, kinds)
        marks.append(marked)
        claims.add(record)
        answers.add(record)
        labels.add(record, marked.marks)
        calibrations.add(record)
        responses.add(record)
        n_reference += any(one.annotator == reference for one in record.finished)
        if reference is None or reference not in marked.marks:
            continue
        golds.append(labels_of(record, reference))
        for name, pair in _pairs(record, reference, marked.marks).items():
            pairs[name].append(pair)
    return DatasetComparison(
        n_items=len(marks),
        looked_at=len(marks),
        reference=reference,
        n_reference=n_reference,
        scores=tuple(_scores(pairs, golds, kinds)),
        kinds=kinds,
        marks=marks,
        claims=claims.result(),
        answers=answers.result(),
        labels=labels.result(),
        calibrations=calibrations.result(),
        responses=responses.result(),
    )


def analyses_with_data(
    store: Store, dataset: str, analyses: Mapping[str, Callable[[Record], bool]]
) -> frozenset[str]:
    """Return the names of the analyses that have something to show.

    Only the first items are looked at, as those of a dataset are mostly of one kind.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        analyses: by name, whether a record has something to show.

    Raises:
        NotFoundError: there is no such dataset.
    """
    present = set[str]()
    for record in islice(store.records(dataset), _LOOKED_AT):
        present |= {name for name, is_in in analyses.items() if is_in(record)}
        if len(present) == len(analyses):
            break
    return frozenset(present)


def sample_records(store: Store, dataset: str, limit: int | None = None) -> Iterator[Record]:
    """Yield the records of a dataset, or ``limit`` of them in even steps if it has more.

    Even steps keep the shares of languages, as files are mostly imported one after the other.

    Raises:
        NotFoundError: there is no such dataset.
    """
    n_items = summary_of(store, dataset).n_items
    if limit is None or n_items <= limit:
        yield from store.records(dataset)
        return
    for index in range(limit):
        place = index * n_items // limit
        query = QueueQuery(reviewer="", after=QueueCursor(place - 1), limit=1)
        for row in paging.page(store, dataset, query).rows:
            yield store.record(dataset, row.item_id)


def item_scores(record: Record, reference: str) -> dict[str, ItemScore]:
    """Return the scores of all that finished an item, by annotator, without the reference itself.

    Empty if the reference has not finished the item.
    """
    marked = rated(record, [annotation.annotator for annotation in record.annotations]).marks
    pairs = _pairs(record, reference, marked)
    return {name: score_item(gold, predicted) for name, (gold, predicted) in pairs.items()}


def list_items(
    store: Store,
    dataset: str,
    *,
    order: Order = "disagreement",
    lang: str | None = None,
    after: QueueCursor | None = None,
    before: QueueCursor | None = None,
) -> QueuePage:
    """Return up to 25 items of a dataset ``after`` or ``before`` a place, of one ``lang`` or any.

    By disagreement the highest comes first, and items without one last.

    Raises:
        NotFoundError: there is no such dataset.
    """
    query = QueueQuery(reviewer="", order=order, lang=lang, after=after, before=before, limit=25)
    return paging.page(store, dataset, query)


def open_record(store: Store, dataset: str, item_id: str) -> Record:
    """Return an item with all its annotations.

    Raises:
        NotFoundError: there is no such dataset or item.
    """
    return store.record(dataset, item_id)


def neighbour_item(
    store: Store, dataset: str, item_id: str, step: int, *, order: Order, lang: str | None = None
) -> str | None:
    """Return the id of the item after (``step`` 1) or before (-1) an item, None at the end."""
    return paging.neighbour(
        store, dataset, QueueQuery(reviewer="", order=order, lang=lang), item_id, step
    )


def _pairs(
    record: Record, reference: str, marks: Mapping[str, Sequence[Extent]]
) -> dict[str, tuple[ItemLabels, ItemLabels]]:
    """Return gold and prediction of all others that finished an item, by annotator.

    Of the people, gold has the one closest to the prediction, which is all that MaxIoU needs; a
    person's is taken with the other people. ``marks`` are what those who finished the item mark.
    """
    finished = {a.annotator: a for a in record.annotations if a.annotator in marks}
    if reference not in finished:
        return {}
    gold = labels_in(record.item, finished.pop(reference))
    hard = [tuple(marks[name]) for name in finished]
    ious = pairwise_ious(hard)
    ious[:, [annotation.kind is not AnnotatorKind.PERSON for annotation in finished.values()]] = -1
    np.fill_diagonal(ious, -1)
    pairs = {}
    for (name, annotation), extents, row in zip(finished.items(), hard, ious, strict=True):
        closest = int(row.argmax())
        raters = (hard[closest],) if row[closest] >= 0 else ()
        predicted = labels_in(record.item, annotation, hard=extents)
        pairs[name] = (replace(gold, raters=raters), predicted)
    return pairs


def _scores(
    pairs: dict[str, list[tuple[ItemLabels, ItemLabels]]],
    golds: Sequence[ItemLabels],
    kinds: dict[str, AnnotatorKind],
) -> Iterator[ScoredAnnotator]:
    baselines = {EVERYTHING: mark_all, NOTHING: mark_none}
    metrics, _ = package_metrics()
    marked = {name: [(gold, mark(gold)) for gold in golds] for name, mark in baselines.items()}
    for name, compared in [*pairs.items(), *marked.items()]:
        if compared:
            means = more_means(compared, metrics)
            macro = {
                metric: mean_by_language["macro"] for metric, mean_by_language in means.items()
            }
            yield ScoredAnnotator(name, kinds.get(name), score(compared), macro)
