"""How often answers are hallucinated, by model or by any other field of the items."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from spanlab.base.errors import UsageError
from spanlab.measure.citation_rates import CitationGroup, CitationRates, citation_table
from spanlab.output.figures import counted, field_in_words
from spanlab.output.tables import (
    ITEMS,
    P_VALUE,
    Chart,
    Column,
    MeanInterval,
    ResultTable,
    ResultViews,
    Unit,
    column_of,
    figures_of,
    several,
    table_of,
)
from spanlab.schema import (
    Annotation,
    Interval,
    Item,
    Record,
    Relations,
    relations_in,
)
from spanlab.scoring.comparison import MeanDifference
from spanlab.scoring.files import difference_cells, unlike_p
from spanlab.storage import Store
from spanlab.text.extents import intersection
from spanlab.text.labels import hard_of

MOST_GROUPS: Final = 200  # groups that a table can show
_NAMED: Final = 5  # annotators in a title
_MEASURES: Final[Mapping[str, tuple[str, Unit, str]]] = {
    "characters": (
        "Share of an answer",
        "share",
        "Mean over the answers of the share of their characters that is hallucinated. Long "
        "answers weigh more in a rate per character.",
    ),
    "answers": ("Answers", "share", "Share of answers that are hallucinated, at least in part."),
    "spans": ("Spans per 1,000", "count", "Hallucinated spans per 1,000 characters of answer."),
    "claims": ("Claims", "share", "Share of claims with a verdict that counts as hallucinated."),
}
MEASURES: Final = {
    key: Column(key=key, title=title, unit=unit, digits=1, about=about)
    for key, (title, unit, about) in _MEASURES.items()
}


class GroupRates(NamedTuple):
    """Rates of some items, each 0 for an answer without hallucination.

    ``answers`` is the share of answers with one, ``characters`` the mean share of an answer's
    characters, ``spans`` their number per 1,000 characters: None where no annotation says more than
    whether an answer is hallucinated. ``claims`` is the share of claims; None where nobody judged
    claims.
    """

    answers: MeanInterval
    characters: MeanInterval | None
    spans: MeanInterval | None
    claims: MeanInterval | None


@dataclass(frozen=True)
class RateGroup:
    """The items of one value of the field; ``labels`` are the shares of answers by label.

    The ``n`` answers are in so many ``clusters``: those with one question, answer or document.
    ``citations`` says how well they cite and quote; None where none of them does.
    """

    value: str
    n: int
    clusters: int
    rates: GroupRates
    labels: Mapping[str, float]
    citations: CitationRates | None = None


class RateDifference(NamedTuple):
    """Two groups on the ``n`` questions that both answered: rate of ``a`` minus rate of ``b``.

    It is of ``answers``, and of ``characters`` where some annotation marks a place. ``n`` are those
    of characters then.
    """

    a: str
    b: str
    n: int
    characters: MeanDifference | None
    answers: MeanDifference

    @property
    def rate(self) -> MeanDifference:
        """The difference of characters, of answers where there is none."""
        return self.characters or self.answers


@dataclass(frozen=True)
class RateReport(ResultViews):
    """Rates by group, the lowest share of characters first.

    ``annotators`` are those whose labels were counted; ``unlabelled`` is the number of items that
    none of them has finished; of ``unplaced`` items nobody says more than whether the answer is
    hallucinated. ``remarks`` say what the intervals do not, in sentences. ``is_raw``
    says that detectors marked: then these are shares and no rates. ``corrected`` are the rates
    where a measurement of the dataset has them.
    """

    field: str
    annotators: tuple[str, ...]
    groups: tuple[RateGroup, ...]
    pairs: tuple[RateDifference, ...]
    unlabelled: int
    remarks: tuple[str, ...] = ()
    is_raw: bool = False
    corrected: tuple[ResultTable, ...] = ()
    unplaced: int = 0

    @property
    def measures(self) -> list[str]:
        """The rates, by key, that some group has."""
        return [key for key in MEASURES if any(getattr(group.rates, key) for group in self.groups)]

    def tables(self, measure: str = "characters") -> tuple[ResultTable, ...]:
        """Return the rates of each value, ``measure`` drawn, and paired comparisons."""
        names = ", ".join(self.annotators[:_NAMED])
        names += " and others" if len(self.annotators) > _NAMED else ""
        labels = dict.fromkeys(label for group in self.groups for label in group.labels)
        left_out = f"{self.unlabelled:,} items that nobody of these has finished are left out."
        n = sum(group.n for group in self.groups)
        unplaced = (
            f"{self.unplaced:,} of {counted(n, 'answer')} have a verdict and no marked place; "
            "rates of characters and spans are of the others."
        )
        if not any(group.rates.characters for group in self.groups):
            unplaced = "Nobody marked places: there are no rates of characters and spans."
        measure = measure if measure in self.measures else "answers"
        heading = f"Marked by {names}" if self.is_raw else "Hallucinations"
        by = "" if self.is_raw else f" according to {names}"
        rates = table_of(
            f"rates-{self.field}",
            f"{heading} by {field_in_words(self.field)}{by}, with 95 % intervals",
            self.groups,
            (Column(key="value", title=self.field), lambda group: group.value),
            (ITEMS, lambda group: group.n),
            *(
                (MEASURES[key], lambda group, of=key: several(getattr(group.rates, of), group.n))
                for key in self.measures
            ),
            *(
                (
                    column_of("share", f"Label {label}", f"label-{at}"),
                    lambda group, of=label: group.labels.get(of),
                )
                for at, label in enumerate(labels)
            ),
            remarks=(
                *self.remarks,
                *([left_out] if self.unlabelled else []),
                *([unplaced] if self.unplaced else []),
            ),
            chart=Chart(kind="dots", x=measure, y="value"),
        )
        pairs = [self._pair_table()] if self.pairs else []
        return (*self.corrected, rates, *self.citation_tables(), *pairs)

    def citation_tables(self) -> tuple[ResultTable, ...]:
        """Return how well the answers of each value cite and quote; none where none does."""
        groups = [
            CitationGroup(group.value, group.n, group.citations)
            for group in self.groups
            if group.citations is not None
        ]
        return citation_table(self.field, groups)

    def figures(self) -> dict[str, Any]:
        """Return all figures."""
        groups = [
            {
                "value": group.value,
                "n": group.n,
                "clusters": group.clusters,
                **group.rates._asdict(),
                "labels": group.labels,
                "citations": group.citations and group.citations._asdict(),
            }
            for group in self.groups
        ]
        pairs = [pair._asdict() for pair in self.pairs]
        corrected = [table.model_dump(include={"key", "title", "rows"}) for table in self.corrected]
        return figures_of(**vars(self) | {"groups": groups, "pairs": pairs, "corrected": corrected})

    def _pair_table(self) -> ResultTable:
        measures = ("characters", "answers") if self.pairs[0].characters else ("answers",)
        differences = [getattr(pair, key) for pair in self.pairs for key in measures]
        columns = [
            column
            for key in measures
            for column in (
                (
                    MEASURES[key].model_copy(
                        update={"unit": "points", "title": f"{MEASURES[key].title} (points)"}
                    ),
                    lambda pair, of=key: difference_cells(getattr(pair, of))[0],
                ),
                (
                    P_VALUE.model_copy(update={"key": f"p-{key}"}),
                    lambda pair, of=key: getattr(pair, of).p,
                ),
            )
        ]
        return table_of(
            f"rates-{self.field}-pairs",
            "On the same questions, paired",
            self.pairs,
            (column_of("text", "Value"), lambda pair: pair.a),
            (column_of("text", "minus"), lambda pair: pair.b),
            (column_of("count", "Common questions"), lambda pair: pair.n),
            *columns,
            remarks=(
                f"p by Holm's correction for {counted(len(self.pairs), 'comparison')}.",
                *unlike_p(differences),
            ),
        )


NOTHING_THERE: Final = "(none)"
LABEL: Final = "label"
ALL: Final = "all"  # no field: one group of all items
NO_CLUSTERS: Final = "none"
Values: TypeAlias = Callable[[Record], Iterable[tuple[str, Record]]]  # by value, what counts
_MODEL: Final = {"model", "modelid", "modelname", "llm", "generator"}  # letters of a field's name


def fields_of(store: Store, dataset: str) -> tuple[str, ...]:
    """Return the fields by which a dataset's items can be grouped, as its first item has them."""
    first = next(iter(store.records(dataset)), None)
    labels = (LABEL,) if store.labels(dataset) else ()
    return ("lang", *(() if first is None else _paths(first.item.meta, "meta")), *labels)


def model_field(fields: Sequence[str]) -> str | None:
    """Return the field that looks most like the name of the model that answered, None for none."""

    def unlike(field: str) -> int:
        above, last = (re.sub(r"[^a-z]", "", part) for part in field.casefold().split(".")[-2:])
        if last in _MODEL:
            return 0
        if above in _MODEL and last in {"name", "id"}:
            return 1
        return 2 if any(name in last for name in _MODEL) else 3

    shortest = min((field for field in fields if "." in field), key=unlike, default=None)
    return None if shortest is None or unlike(shortest) > 2 else shortest


def values_of(field: str, labels: Sequence[str] = ()) -> Values:
    """Return a function that divides a record by a field: its values, each with a part of it.

    Args:
        field: "lang", "model" (which answered, whatever it is called in the items' meta), a path
            into the meta such as "meta.topic", or "label".
        labels: of the spans, where the field is "label".

    Raises:
        UsageError: there is no such field.
    """
    return _by_label(labels) if field == LABEL else _by_field(field)


def relations_by(cluster: str | None) -> Callable[[Record], Relations]:
    """Return a function that says what an answer has in common with others.

    Args:
        cluster: a field, as in ``values_of``, whose values are what is common; "none" for nothing;
            None for the question, the answer and the passages.

    Raises:
        UsageError: there is no such field.
    """
    if cluster is None:
        return lambda record: relations_in(record.item)
    if cluster == NO_CLUSTERS:
        return lambda record: Relations()
    read = _by_field(cluster)
    return lambda record: Relations(hash(next(iter(read(record)))[0]))


def _by_label(labels: Sequence[str]) -> Values:
    """Return a function that divides a record into one for the spans of each label."""

    def parts(record: Record) -> Iterable[tuple[str, Record]]:
        placed = [a for a in record.annotations if not a.is_verdict_only]
        for label in labels:
            annotations = tuple(_only(annotation, label) for annotation in placed)
            yield label, record.model_copy(update={"annotations": annotations})

    return parts


def _only(annotation: Annotation, label: str) -> Annotation:
    spans = tuple(span for span in annotation.spans if span.label == label)
    hard = intersection(hard_of(annotation), spans)
    hard_intervals = tuple(Interval(start=start, end=end) for start, end in hard)
    kept = {"spans": spans, "hard": hard_intervals, "claims": (), "answer_hallucinated": None}
    return annotation.model_copy(update=kept)


def _by_field(field: str) -> Values:
    if field == ALL:
        return lambda record: [(ALL, record)]
    read = _reader(field)
    return lambda record: [(read(record.item), record)]


def _reader(field: str) -> Callable[[Item], str]:
    if field == "lang":
        return lambda item: item.lang
    if field == "model":
        return _model_of
    head, *path = field.split(".")
    if head != "meta" or not path:
        raise UsageError(
            f"no field {field!r} to group by: it is lang, label, model or a path such as meta.topic"
        )

    def read(item: Item) -> str:
        value: object = item.meta
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return NOTHING_THERE if value is None else text.strip() or NOTHING_THERE

    return read


def _model_of(item: Item) -> str:
    field = model_field(tuple(_paths(item.meta, "meta")))
    return NOTHING_THERE if field is None else _reader(field)(item)


def _paths(meta: Mapping[str, object], head: str) -> Iterable[str]:
    for name, value in meta.items():
        if isinstance(value, dict):
            yield from _paths(value, f"{head}.{name}")
        elif isinstance(value, str | int | bool):
            yield f"{head}.{name}"
