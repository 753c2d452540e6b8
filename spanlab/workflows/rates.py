"""How often answers are hallucinated, by model or by any other field of the items."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Final, NamedTuple, TypeAlias

from spanlab.errors import UsageError
from spanlab.labels import hard_of, intersection
from spanlab.schema import HALLUCINATED, Annotation, Interval, Item, Kind, Record, Status
from spanlab.scorers import Difference, MeanInterval, mean_of, paired
from spanlab.storage import DatasetSummary, Store
from spanlab.workflows.lookup import check_annotators, summary_of
from spanlab.workflows.progress import reported

__all__ = ["Group", "MeanInterval", "Measures", "Pairing", "Rates", "fields_of", "rates", "usual"]

MOST_GROUPS: Final = 200  # groups that a table can show
_MOST_PAIRS: Final = 12  # groups up to which every two are compared
_REPORT_EVERY: Final = 100
NOTHING_THERE: Final = "(none)"
LABEL: Final = "label"
_Values: TypeAlias = Callable[[Record], Iterable[tuple[str, Record]]]  # by value, what counts


class Measures(NamedTuple):
    """Rates of some items, each 0 for an answer without hallucination.

    ``answers`` is the share of answers with one, ``characters`` the share of characters, ``spans``
    their number per 1,000 characters, ``claims`` the share of claims; None where nobody judged
    claims.
    """

    answers: MeanInterval
    characters: MeanInterval
    spans: MeanInterval
    claims: MeanInterval | None


@dataclass(frozen=True)
class Group:
    """The items of one value of the field; ``labels`` are the shares of answers by label."""

    value: str
    n: int
    rates: Measures
    labels: Mapping[str, float]


class Pairing(NamedTuple):
    """Two groups on the ``n`` questions that both answered: rate of ``a`` minus rate of ``b``."""

    a: str
    b: str
    n: int
    characters: Difference


@dataclass(frozen=True)
class Rates:
    """Rates by group, the lowest share of characters first.

    ``annotators`` are those whose labels were counted; ``unlabelled`` is the number of items that
    none of them has finished.
    """

    field: str
    annotators: tuple[str, ...]
    groups: tuple[Group, ...]
    pairs: tuple[Pairing, ...]
    unlabelled: int


class _Counted(NamedTuple):
    """What the annotators say of one item, on average."""

    question: tuple[str, str]
    answers: float
    characters: float
    spans: float
    claims: float | None
    labels: frozenset[str]


def rates(
    store: Store,
    dataset: str,
    field: str,
    annotators: Sequence[str] = (),
    on_progress: Callable[[int], None] | None = None,
) -> Rates:
    """Count hallucinations by a field of the items.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        field: "lang", a path into the items' meta such as "meta.model_id", or "label": then a
            group has all items, and of their spans those with its label.
        annotators: whose labels count, the mean of several; by default the gold labels, else all
            people, else the only vote, else the only detector.
        on_progress: called now and then with the number of items read.

    Raises:
        NotFoundError: the dataset, or an annotator of it, does not exist.
        UsageError: it is not clear whose labels count, nobody has finished an item, or the field
            is none, is in no item or has too many values.
    """
    summary = summary_of(store, dataset)
    names = tuple(annotators) or usual(summary)
    if not names:
        known = ", ".join(each.name for each in summary.annotators) or "none yet"
        raise UsageError(f"say whose labels count; {dataset!r} has the annotators: {known}")
    check_annotators(summary, names)
    values = _by_label(store.labels(dataset)) if field == LABEL else _by_field(field)
    groups: dict[str, list[_Counted]] = defaultdict(list)
    unlabelled = 0
    for record in reported(store.records(dataset), on_progress, _REPORT_EVERY):
        if _counted(record, names) is None:
            unlabelled += 1
            continue
        for value, part in values(record):
            counted = _counted(part, names)
            if counted is not None:
                groups[value].append(counted)
        if len(groups) > MOST_GROUPS:
            raise UsageError(f"{field} has more than {MOST_GROUPS} values: choose another field")
    if not groups:
        lacking = "given a label in" if field == LABEL else "finished no item of"
        raise UsageError(f"{', '.join(names)} has {lacking} {dataset!r}")
    if set(groups) == {NOTHING_THERE}:
        raise UsageError(f"no item of {dataset!r} has {field}; it has: {_fields(store, dataset)}")
    found = [_group(value, counted) for value, counted in groups.items()]
    found.sort(key=lambda group: (group.rates.characters.mean, group.value))
    pairs = _pairs(groups) if len(groups) <= _MOST_PAIRS and field != LABEL else ()
    return Rates(field, names, tuple(found), tuple(pairs), unlabelled)


def usual(summary: DatasetSummary) -> tuple[str, ...]:
    """Return whose labels count unless people say so: the gold labels, else all people, ….

    Returns:
        … else the only vote or the only detector; empty where that is not clear.
    """
    for kind, single in (
        (Kind.GOLD, True),
        (Kind.PERSON, False),
        (Kind.VOTE, True),
        (Kind.DETECTOR, True),
    ):
        names = tuple(each.name for each in summary.annotators if each.kind is kind)
        if names and (not single or len(names) == 1):
            return names
    return ()


def fields_of(store: Store, dataset: str) -> tuple[str, ...]:
    """Return the fields by which a dataset's items can be grouped, as its first item has them."""
    first = next(iter(store.records(dataset)), None)
    labels = (LABEL,) if store.labels(dataset) else ()
    return ("lang", *(() if first is None else _paths(first.item.meta, "meta")), *labels)


def _by_label(labels: Sequence[str]) -> _Values:
    """Return what parts a record into the spans of each label."""

    def parts(record: Record) -> Iterable[tuple[str, Record]]:
        for label in labels:
            said = tuple(_only(each, label) for each in record.annotations)
            yield label, record.model_copy(update={"annotations": said})

    return parts


def _only(annotation: Annotation, label: str) -> Annotation:
    spans = tuple(span for span in annotation.spans if span.label == label)
    hard = intersection(hard_of(annotation), spans)
    kept = tuple(Interval(start=start, end=end) for start, end in hard)
    return annotation.model_copy(update={"spans": spans, "hard": kept, "claims": ()})


def _by_field(field: str) -> _Values:
    read = _reader(field)
    return lambda record: [(read(record.item), record)]


def _reader(field: str) -> Callable[[Item], str]:
    if field == "lang":
        return lambda item: item.lang
    head, *path = field.split(".")
    if head != "meta" or not path:
        raise UsageError(
            f"no field {field!r} to group by: it is lang, label or a path such as meta.model"
        )

    def read(item: Item) -> str:
        value: object = item.meta
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return NOTHING_THERE if value is None else text.strip() or NOTHING_THERE

    return read


def _paths(meta: Mapping[str, object], head: str) -> Iterable[str]:
    for name, value in meta.items():
        if isinstance(value, dict):
            yield from _paths(value, f"{head}.{name}")
        elif isinstance(value, str | int | bool):
            yield f"{head}.{name}"


def _fields(store: Store, dataset: str) -> str:
    return ", ".join(fields_of(store, dataset))


def _counted(record: Record, names: Sequence[str]) -> _Counted | None:
    item = record.item
    found = [record.by(name) for name in names]
    done = [each for each in found if each is not None and each.status is Status.DONE]
    if not done:
        return None
    length = max(len(item.answer), 1)
    marked = [hard_of(each) for each in done]
    claims = [_claims(each) for each in done if each.claims]
    return _Counted(
        question=(item.lang, item.question),
        answers=fmean(bool(each) for each in marked),
        characters=fmean(sum(end - start for start, end in each) / length for each in marked),
        spans=fmean(1000 * len(each) / length for each in marked),
        claims=fmean(claims) if claims else None,
        labels=frozenset(span.label for each in done for span in each.spans if span.label),
    )


def _claims(annotation: Annotation) -> float:
    return fmean(claim.verdict in HALLUCINATED for claim in annotation.claims)


def _group(value: str, counted: Sequence[_Counted]) -> Group:
    claims = [each.claims for each in counted if each.claims is not None]
    labels = Counter(label for each in counted for label in each.labels)
    return Group(
        value=value,
        n=len(counted),
        rates=Measures(
            mean_of([each.answers for each in counted]),
            mean_of([each.characters for each in counted]),
            mean_of([each.spans for each in counted]),
            mean_of(claims) if claims else None,
        ),
        labels={label: count / len(counted) for label, count in labels.most_common()},
    )


def _pairs(groups: Mapping[str, Sequence[_Counted]]) -> Iterable[Pairing]:
    """Yield the comparisons of groups on questions that both answered, at least two of them."""
    means: dict[str, dict[tuple[str, str], float]] = {}
    for value, counted in groups.items():
        asked: dict[tuple[str, str], list[float]] = defaultdict(list)
        for each in counted:
            if each.question[1]:
                asked[each.question].append(each.characters)
        means[value] = {question: fmean(shares) for question, shares in asked.items()}
    for a, b in combinations(sorted(groups), 2):
        both = [question for question in means[a] if question in means[b]]
        if len(both) > 1:
            difference = paired([means[a][q] for q in both], [means[b][q] for q in both])
            yield Pairing(a, b, len(both), difference)
