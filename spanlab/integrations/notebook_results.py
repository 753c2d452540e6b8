"""Functions for notebooks on records in memory: scores, rates, frames, pictures."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from spanlab.base.errors import InputError, UsageError
from spanlab.data.report import write_report
from spanlab.formats.known.analysis_table import table_rows
from spanlab.integrations.keywords import python_door
from spanlab.measure.rate_tally import RateTally, default_annotators
from spanlab.measure.rates import RateReport
from spanlab.output.tables import ResultTable, ResultViews
from spanlab.schema import AnnotatorKind, Record
from spanlab.scoring.annotator_tables import reference_of
from spanlab.scoring.annotators import DatasetComparison, compare_records
from spanlab.scoring.comparison import MeanDifference, ReportComparison
from spanlab.scoring.files import (
    ScoreEvaluation,
    SpanMetric,
    difference_table,
    evaluate,
    right_table,
)
from spanlab.text.labels import ItemLabels, labels_of

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray


LabelPairs: TypeAlias = list[tuple[ItemLabels, ItemLabels]]


@python_door
def score(
    records: Iterable[Record],
    annotator: str,
    against: str = "gold",
    *,
    metrics: Sequence[SpanMetric | str] = (),
) -> ScoreEvaluation:
    """Score one annotator of the records against another.

    Args:
        records: records that both have annotated.
        annotator: whose annotations are scored.
        against: whose annotations are right; "gold" also gold labels of another name.
        metrics: further ones: functions of an item's right labels and the scored ones
            (``spanlab.text.labels.ItemLabels``, offsets in characters) that return a number, or
            names of entry points ``spanlab.metrics``.

    Returns:
        Scores with 95 % intervals: of spans by language and macro (``.macro``) where both mark
        places, of whole answers (``.answers``) in any case; ``.to_pandas()`` has the first table.

    Raises:
        InputError: there are no records, or one lacks either annotation.
        UsageError: no installed package has a metric of this name.
    """
    return evaluate(_pairs(records, annotator, against), metrics=metrics)


def records_alone(records: Iterable[Record]) -> Iterator[Record]:
    """Yield records, one at a time.

    Raises:
        UsageError: they are none, such as rows or the columns of a frame.
    """
    for record in records:
        if not isinstance(record, Record):
            raise UsageError(
                f"expected records, found {type(records).__name__} with {type(record).__name__}; "
                "make records of it first: records = spanlab.load(…)"
            )
        yield record


def _pairs(records: Iterable[Record], annotator: str, against: str) -> LabelPairs:
    items = list(records_alone(records))
    if not items:
        raise InputError("there are no records to score")
    if against == "gold" and against not in (kinds := kinds_of(items)):
        against = reference_of(kinds) or against
    return [(labels_of(record, against), labels_of(record, annotator)) for record in items]


@dataclass(frozen=True)
class AnnotatorComparison(ResultViews):
    """Two annotators against the same reference, paired by item.

    ``differences`` are of the spans of items in which all three mark places, None without any;
    ``answers`` is of the share of all ``n`` answers that are judged right.
    """

    a: str
    b: str
    against: str
    differences: ReportComparison | None
    answers: MeanDifference
    n: int

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the differences by language and macro, with 95 % intervals and p-values."""
        title = f"{self.a} minus {self.b} against {self.against}, paired"
        answers = right_table(self.answers, self.n, title)
        if self.differences is None:
            return (answers,)
        return (difference_table(self.differences, title), answers)

    def figures(self) -> dict[str, Any]:
        """Return all figures."""
        spans = {} if self.differences is None else self.differences.model_dump()
        return {**spans, "answers": self.answers.model_dump()}


@python_door
def compare(
    records: Iterable[Record], annotator: str, other: str, *, against: str = "gold"
) -> AnnotatorComparison:
    """Compare two annotators on the same items: how much better one is, with p-values.

    Of marked places these are differences of IoU and Corr, of whole answers of the share of those
    that are judged right.

    Args:
        records: records that all three have annotated.
        annotator: whose scores are looked at.
        other: whose scores are subtracted.
        against: whose annotations are right.

    Returns:
        Differences of scores in [-1, 1] by language and macro, with 95 % intervals.

    Raises:
        InputError: there are no records, or one lacks an annotation.
    """
    items = list(records_alone(records))
    a, b = (_pairs(items, name, against) for name in (annotator, other))
    found = evaluate(a, against=b)
    assert found.answers_against is not None  # both have all items
    return AnnotatorComparison(
        annotator, other, against, found.against, found.answers_against, len(items)
    )


@python_door
def agreement(
    records: Iterable[Record], annotators: Sequence[str] | None = None
) -> DatasetComparison:
    """Return how far annotators agree: Krippendorff's alpha over characters, and all pairs.

    Args:
        records: each item once.
        annotators: whom to compare; None for all.

    Raises:
        UsageError: nobody has annotated a record under one of these names.
    """
    items = list(records_alone(records))
    kinds = kinds_of(items, annotators)
    return compare_records(items, kinds)


@python_door
def rates(
    records: Iterable[Record], by: str = "lang", annotators: Sequence[str] | None = None
) -> RateReport:
    """Return how often answers are hallucinated, by a field of the items.

    Args:
        records: each item once.
        by: "lang", "model", or a path into ``meta`` such as "meta.topic".
        annotators: whose labels count; None for gold labels, and people where an item has none;
            else the only vote or detector. Marks of a detector are reported as such, not as a
            rate.

    Raises:
        UsageError: it is not clear whose labels count, or nobody has finished an item.
    """
    items = list(records_alone(records))
    kinds = kinds_of(items)
    names = tuple(kinds_of(items, annotators)) if annotators else default_annotators(kinds)
    if not names:
        names_known = ", ".join(kinds) or "none yet"
        raise UsageError(f"say whose labels count: annotators=[…]; available: {names_known}")
    tally = RateTally(by, kinds, names)
    for record in items:
        tally.add(record)
    if not tally.values:
        raise UsageError(f"{', '.join(names)} has finished no item")
    return tally.result()


def kinds_of(
    records: Iterable[Record], names: Sequence[str] | None = None
) -> dict[str, AnnotatorKind]:
    """Return the kinds of those who annotated records, or of those named alone.

    Raises:
        UsageError: nobody has annotated a record under one of these names.
    """
    kinds = {
        annotation.annotator: annotation.kind
        for record in records
        for annotation in record.annotations
    }
    names = [names] if isinstance(names, str) else names
    for name in names or ():
        if name not in kinds:
            raise UsageError(f"no annotator named {name!r}; available: {', '.join(kinds)}")
    return kinds if names is None else {name: kinds[name] for name in names}


def to_pandas(records: Iterable[Record]) -> pd.DataFrame:
    """Return a frame with a row for each item and annotator, as CSV and parquet have them.

    Passages, spans and claims are lists of dicts; ``meta`` is JSON. An item that nobody has
    annotated has a row without an annotator.

    Args:
        records: what to show, possibly none.
    """
    import pandas as pd

    return pd.DataFrame([row for record in records_alone(records) for row in table_rows(record)])


def to_arrays(records: Iterable[Record], annotator: str) -> list[NDArray[np.float64]]:
    """Return each character's probability of being hallucinated, in [0, 1].

    Args:
        records: records that the annotator has finished.
        annotator: whose labels.

    Returns:
        An array for each record, as long as its answer has characters.

    Raises:
        InputError: the annotator has not finished one of them, or calls an answer hallucinated
            without a place.
    """
    arrays = []
    for record in records_alone(records):
        array, labels = np.zeros(len(record.item.answer)), labels_of(record, annotator)
        if labels.verdict.hallucinated and not labels.verdict.is_placed:
            raise InputError(
                f"{annotator!r} calls the answer of {record.item.id!r} hallucinated and marks no "
                "place in it, so its characters have no probability",
                expected="records without it, or the verdicts: record.by(…).hallucinated",
            )
        for start, end, prob in labels.soft:
            array[start:end] = prob
        arrays.append(array)
    return arrays


@dataclass(frozen=True)
class HtmlPage:
    """A page of HTML: shown in a notebook, written by ``save``."""

    html: str

    def save(self, path: str | Path) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        height = "width: 100%; height: 30rem; border: 0"
        return f"<iframe sandbox srcdoc='{escape(self.html)}' style='{height}'></iframe>"


@python_door
def plot(*records: Record | Iterable[Record]) -> HtmlPage:
    """Return answers with the marks of all annotators, their evidence and passages, as a page.

    Args:
        records: what to show, such as ``records[0]`` or ``records[:20]``.
    """
    stream = io.BytesIO()
    shown = ([each] if isinstance(each, Record) else records_alone(each) for each in records)
    write_report(chain.from_iterable(shown), stream, "spanlab")
    return HtmlPage(stream.getvalue().decode())
