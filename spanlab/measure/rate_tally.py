"""Rates counted: answers by a field of their items, item by item, in bounded memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np

from spanlab.base.errors import UsageError
from spanlab.measure.citation_rates import CitationShares, citation_rates, citation_shares
from spanlab.measure.measurement import Measurement, measure
from spanlab.measure.rates import (
    LABEL,
    MOST_GROUPS,
    NOTHING_THERE,
    GroupRates,
    RateDifference,
    RateGroup,
    RateReport,
    fields_of,
    model_field,
    relations_by,
    values_of,
)
from spanlab.output.figures import counted, sampling_alone
from spanlab.output.tables import ONE_ITEM, MeanInterval
from spanlab.schema import (
    ADJUDICATED,
    HALLUCINATED,
    Annotation,
    AnnotatorKind,
    DatasetSettings,
    DatasetSummary,
    Record,
    Relations,
    Status,
    clusters,
    placed_in,
)
from spanlab.scoring.comparison import MeanDifference, holm, paired
from spanlab.scoring.intervals import count_rate
from spanlab.scoring.report import mean_of
from spanlab.storage import Store
from spanlab.storage.datasets import check_annotators, summary_of, with_progress
from spanlab.text.extents import intersection
from spanlab.text.labels import hard_of

_NO_COMMON: Final = (
    "No two of these answered two or more questions in common, as the column `question` has them: "
    "they are not compared."
)
_NO_RATE: Final = (
    "A detector's marks are not a hallucination rate; `spanlab measure` corrects them by reviews."
)
_UNEVEN: Final = (
    "Reviews went {where}: their mean is not a hallucination rate; `spanlab measure` gives one."
)
_WHERE: Final = {
    "uncertainty": "to where the detector is unsure",
    "length": "to long answers more often than to short ones",
}
_REFUTED: Final = (
    "{n} with claims that are called wrong, but without a mark or a verdict on the whole: they "
    "count as without hallucinations, but among claims."
)
_MOST_PAIRS: Final = 12  # groups up to which every two are compared
_REPORT_EVERY: Final = 100


class _ItemRates(NamedTuple):
    """The rates of one item, as means over its annotators: None where none of them marks places.

    ``is_called_right`` says that each called it right as a whole, and marked nothing.
    """

    question: tuple[str, str]
    relations: Relations
    length: int
    answers: float
    characters: float | None
    spans: float | None
    claims: float | None
    labels: Mapping[str, float]
    is_called_right: bool
    citations: CitationShares | None = None


def rates(
    store: Store,
    dataset: str,
    field: str,
    annotators: Sequence[str] = (),
    cluster: str | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> RateReport:
    """Count hallucinations by a field of the items, with those of a measurement beside them.

    Args and errors are those of ``count_rates``.
    """
    report = count_rates(store, dataset, field, annotators, cluster, on_progress)
    return add_measurement(report, measured_rate(store, summary_of(store, dataset)))


def count_rates(
    store: Store,
    dataset: str,
    field: str,
    annotators: Sequence[str] = (),
    cluster: str | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> RateReport:
    """Count hallucinations by a field of the items.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        field: "lang", "model", a path into the items' meta such as "meta.topic", or "label": then a
            group has all items, and of their spans those with its label.
        annotators: whose labels count, as ``counted_annotations``; by default those of
            ``default_annotators``.
        cluster: what answers have in common that are not independent, as ``relations_by`` has it.
        on_progress: called now and then with the number of items read.

    Raises:
        NotFoundError: the dataset, or an annotator of it, does not exist.
        UsageError: it is not clear whose labels count, nobody has finished an item, or the field
            is none, is in no item or has too many values.
    """
    summary = summary_of(store, dataset)
    kinds = summary.kinds
    names = tuple(annotators) or default_annotators(kinds, summary.settings)
    if not names:
        names_known = ", ".join(kinds) or "none yet"
        raise UsageError(f"say whose labels count; {dataset!r} has the annotators: {names_known}")
    check_annotators(summary, names)
    labels = store.labels(dataset) if field == LABEL else ()
    tally = RateTally(field, kinds, names, labels, cluster)
    for record in with_progress(store.records(dataset), on_progress, _REPORT_EVERY):
        tally.add(record)
        if len(tally.values) > MOST_GROUPS:
            raise UsageError(f"{field} has more than {MOST_GROUPS} values: choose another field")
    if not tally.values:
        lacking = "given no label in" if field == LABEL else "finished no item of"
        raise UsageError(f"{', '.join(names)} has {lacking} {dataset!r}")
    if tally.values == {NOTHING_THERE}:
        fields = ", ".join(fields_of(store, dataset))
        raise UsageError(f"no item of {dataset!r} has {field}; available: {fields}")
    return tally.result()


def add_measurement(report: RateReport, measured: Measurement | None) -> RateReport:
    """Return rates with the corrected ones of a measurement, unchanged without one.

    Those of groups are left out where these are of another field.
    """
    if measured is None:
        return report
    plan, remarks = measured.plan, report.remarks
    is_part = measured.rate.reviews < measured.rate.items
    if not report.is_raw and not plan.is_even and is_part:
        remarks = (_UNEVEN.format(where=_WHERE[plan.design]), *remarks)
    tables = measured.tables()
    if plan.by not in {None, report.field}:
        tables = (tables[0].model_copy(update={"rows": tables[0].rows[:1]}),)
    return replace(report, corrected=tables, remarks=remarks)


def measured_rate(store: Store, summary: DatasetSummary) -> Measurement | None:
    """Return the measurement of a dataset; None where it has none or no reviews."""
    if summary.settings.measurement is None:
        return None
    try:
        measured = measure(store, summary.name)
    except UsageError:  # what is measured was renamed or removed since: the page Measure tells
        return None
    return measured if measured.rate.finite else None


class RateTally:
    """Gathers rates item by item.

    Args:
        field: by which they are grouped, as for ``rates``.
        kinds: all annotators of the dataset.
        annotators: whose labels count, at least one of ``kinds``.
        labels: of the spans, where the field is "label".
        cluster: as for ``rates``.

    Raises:
        UsageError: there is no such field.
    """

    def __init__(
        self,
        field: str,
        kinds: Mapping[str, AnnotatorKind],
        annotators: Sequence[str],
        labels: Sequence[str] = (),
        cluster: str | None = None,
    ) -> None:
        self._field = field
        self._related = relations_by(cluster)
        self._kinds = kinds
        self._annotators = tuple(annotators)
        self._values = values_of(field, labels)
        self._groups: dict[str, list[_ItemRates]] = defaultdict(list)
        self._counted: set[str] = set()
        self._unlabelled = 0
        self._unplaced = 0
        self._are_wrong_unplaced = False
        self._refuted = 0

    @property
    def values(self) -> set[str]:
        """The values of the field that were met, of items that somebody has finished."""
        return set(self._groups)

    def add(self, record: Record) -> None:
        """Count one item."""
        annotations = counted_annotations(record, self._annotators)
        if not annotations:
            self._unlabelled += 1
            return
        self._counted.update(annotation.annotator for annotation in annotations)
        alone = [annotation for annotation in annotations if annotation.is_verdict_only]
        self._unplaced += len(alone) == len(annotations)
        self._refuted += any(
            not annotation.hallucinated
            and annotation.kind in {AnnotatorKind.GOLD, AnnotatorKind.PERSON}
            and any(claim.verdict in HALLUCINATED for claim in annotation.claims)
            for annotation in annotations
        )
        self._are_wrong_unplaced |= any(annotation.hallucinated for annotation in alone)
        for value, part in self._values(record):
            item_rates = _mean_rates(part, self._annotators, self._related(record))
            if item_rates is not None and self._field != LABEL:
                shares = citation_shares(part.item, annotations)
                item_rates = item_rates._replace(citations=shares)
            if item_rates is not None:
                self._groups[value].append(item_rates)

    def result(self) -> RateReport:
        """Return the rates of all records that were added."""
        self._settle()
        groups = [_group(value, counted) for value, counted in self._groups.items()]
        groups.sort(
            key=lambda group: ((group.rates.characters or group.rates.answers).mean, group.value)
        )
        paired_off = len(groups) <= _MOST_PAIRS and self._field != LABEL
        pairs = tuple(_pairs(self._groups)) if paired_off else ()
        of_models = model_field([f"item.{self._field}"]) is not None
        is_unpaired = of_models and paired_off and len(groups) > 1 and not pairs
        annotators = tuple(name for name in self._annotators if name in self._counted)
        machines = [name for name in annotators if self._is_machine(name)]
        return RateReport(
            field=self._field,
            annotators=annotators,
            groups=tuple(groups),
            pairs=pairs,
            unlabelled=self._unlabelled,
            unplaced=self._unplaced,
            is_raw=bool(machines),
            remarks=(
                *((f"{_NO_RATE} {sampling_alone(machines)}",) if machines else ()),
                *((ONE_ITEM,) if any(group.n == 1 for group in groups) else ()),
                *((_REFUTED.format(n=counted(self._refuted, "answer")),) if self._refuted else ()),
                *((_NO_COMMON,) if is_unpaired else ()),
                *(
                    f"{group.value}: {group.n:,} answers to {group.clusters:,} questions or "
                    "documents; the intervals count these."
                    for group in groups
                    if group.clusters < group.n
                ),
            ),
        )

    def all_items(self) -> RateGroup | None:
        """Return the rates of all items that were added, by any field but labels; None for none."""
        self._settle()
        items = [item for group in self._groups.values() for item in group]
        return _group("all", items) if items else None

    def _settle(self) -> None:
        """Have answers that are called right count as without marks, if marks have places.

        Where answers are called hallucinated without a place, people judge whole answers: then the
        others have no places either, and rates of what is left would be too low.
        """
        if self._are_wrong_unplaced:
            return
        self._unplaced = 0
        for items in self._groups.values():
            items[:] = [
                item._replace(characters=0.0, spans=0.0) if item.is_called_right else item
                for item in items
            ]

    def _is_machine(self, name: str) -> bool:
        """Say whether a detector marked; a vote is of detectors where there are no people."""
        kinds = set(self._kinds.values())
        by_detectors = AnnotatorKind.DETECTOR in kinds and AnnotatorKind.PERSON not in kinds
        return self._kinds[name] is AnnotatorKind.DETECTOR or (
            self._kinds[name] is AnnotatorKind.VOTE and by_detectors
        )


def default_annotators(
    kinds: Mapping[str, AnnotatorKind], settings: DatasetSettings | None = None
) -> tuple[str, ...]:
    """Return the annotators whose labels count by default.

    Args:
        kinds: the kind of each annotator, by name.
        settings: of the dataset: with a measurement or check items, those count whose reviews are
            measured, so that rates and measurement are of the same labels.

    Returns:
        The gold labels, of several the adjudicated ones, and all people, who count where an item
        has no gold labels; else the only vote, else the only detector; empty where there are
        several.
    """
    by_kind = {kind: tuple(name for name in kinds if kinds[name] is kind) for kind in AnnotatorKind}
    gold = by_kind[AnnotatorKind.GOLD]
    plan = settings and settings.measurement
    if people := by_kind[AnnotatorKind.PERSON]:
        if plan and (reviewers := tuple(name for name in plan.reviewers if name in kinds)):
            return reviewers
        if ADJUDICATED in gold or plan or (settings and settings.known):
            gold = tuple(name for name in gold if name == ADJUDICATED)
        return (*gold, *people) if len(gold) == 1 else people
    if ADJUDICATED in gold:
        gold = (ADJUDICATED,)
    for kind in (AnnotatorKind.GOLD, AnnotatorKind.VOTE, AnnotatorKind.DETECTOR):
        names = gold if kind is AnnotatorKind.GOLD else by_kind[kind]
        if len(names) == 1:
            return names
    return ()


def counted_annotations(record: Record, names: Sequence[str]) -> tuple[Annotation, ...]:
    """Return which finished annotations of an item count, of these annotators'.

    Gold labels count in place of people's; otherwise the mean of all is meant.
    """
    finished = tuple(a for a in map(record.by, names) if a is not None and a.status is Status.DONE)
    if not any(annotation.kind is AnnotatorKind.GOLD for annotation in finished):
        return finished
    return tuple(a for a in finished if a.kind is not AnnotatorKind.PERSON)


def _mean_rates(record: Record, names: Sequence[str], relations: Relations) -> _ItemRates | None:
    item = record.item
    finished = counted_annotations(record, names)
    if not finished:
        return None
    length = max(len(item.answer), 1)
    placed = placed_in(finished)
    marked = [hard_of(annotation) for annotation in placed]
    sizes = [sum(end - start for start, end in extents) / length for extents in marked]
    claims = [_claims(annotation) for annotation in finished if annotation.claims]
    labels = Counter(label for annotation in finished for label in sorted(_labels(annotation)))
    return _ItemRates(
        question=(item.lang, item.question),
        relations=relations,
        length=length,
        answers=fmean(bool(annotation.hallucinated) for annotation in finished),
        characters=fmean(sizes) if marked else None,
        spans=fmean(map(len, marked)) if marked else None,
        claims=fmean(claims) if claims else None,
        labels={label: count / len(finished) for label, count in labels.items()},
        is_called_right=not placed and not any(a.hallucinated for a in finished),
    )


def _labels(annotation: Annotation) -> set[str]:
    """Return the labels of what is marked; a span that is less than likely is no mark."""
    marked = hard_of(annotation)
    return {s.label for s in annotation.spans if s.label and intersection(marked, [s])}


def _claims(annotation: Annotation) -> float:
    return fmean(claim.verdict in HALLUCINATED for claim in annotation.claims)


def _group(value: str, counted: Sequence[_ItemRates]) -> RateGroup:
    labels = Counter[str]()
    for item_rates in counted:
        labels.update(item_rates.labels)  # shares of annotators, summed
    codes = clusters([item_rates.relations for item_rates in counted])

    def mean(values: Iterable[float | None]) -> MeanInterval | None:
        known = [(v, code) for v, code in zip(values, codes, strict=True) if v is not None]
        return mean_of(*zip(*known, strict=True)) if known else None

    return RateGroup(
        value=value,
        n=len(counted),
        clusters=len(set(codes)),
        rates=GroupRates(
            mean_of([item_rates.answers for item_rates in counted], codes),
            mean(item_rates.characters for item_rates in counted),
            _span_rate(counted, codes),
            mean(item_rates.claims for item_rates in counted),
        ),
        labels={label: count / len(counted) for label, count in labels.most_common()},
        citations=citation_rates([item_rates.citations for item_rates in counted], mean),
    )


def _span_rate(counted: Sequence[_ItemRates], codes: Sequence[int]) -> MeanInterval | None:
    """Return the spans per 1,000 characters of all answers together."""
    rows = [
        (item.spans, item.length, code)
        for item, code in zip(counted, codes, strict=True)
        if item.spans is not None
    ]
    if not rows:
        return None
    counts, lengths, of = (np.array(column) for column in zip(*rows, strict=True))
    # A span has a character at least.
    mean, low, high = (min(1000 * end, 1000.0) for end in count_rate(counts, lengths, of))
    return MeanInterval(mean=mean, low=low, high=high)


def _pairs(groups: Mapping[str, Sequence[_ItemRates]]) -> list[RateDifference]:
    """Return the comparisons of groups on questions that both answered, at least two of them.

    Their p are corrected by Holm for the number of comparisons.
    """
    every = [item for items in groups.values() for item in items]
    is_placed = any(item.characters is not None for item in every)
    measures = ("characters", "answers") if is_placed else ("answers",)
    rates = {
        value: {measure: _by_question(counted, measure) for measure in measures}
        for value, counted in groups.items()
    }
    couples: list[tuple[str, str, list[tuple[str, str]]]] = []
    for a, b in combinations(sorted(groups), 2):
        first, second = (rates[value][measures[0]] for value in (a, b))
        common = [question for question in first if question in second]
        if len(common) > 1:
            couples.append((a, b, common))
    found = {
        measure: _corrected(
            [
                paired(
                    [rates[a][measure][question] for question in common],
                    [rates[b][measure][question] for question in common],
                )
                for a, b, common in couples
            ]
        )
        for measure in measures
    }
    return [
        RateDifference(
            a, b, len(common), found["characters"][at] if is_placed else None, found["answers"][at]
        )
        for at, (a, b, common) in enumerate(couples)
    ]


def _by_question(counted: Sequence[_ItemRates], measure: str) -> dict[tuple[str, str], float]:
    """Return the mean rate of the answers to each question, of those that have one."""
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    for item_rates in counted:
        rate = getattr(item_rates, measure)
        if item_rates.question[1] and rate is not None:
            rates[item_rates.question].append(rate)
    return {question: fmean(shares) for question, shares in rates.items()}


def _corrected(differences: Sequence[MeanDifference]) -> list[MeanDifference]:
    p_values = holm([difference.p for difference in differences])
    return [
        difference.model_copy(update={"p": p})
        for difference, p in zip(differences, p_values, strict=True)
    ]
