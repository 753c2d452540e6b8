"""Votes: the marks of several annotators become one annotation, in a dataset or over records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from spanlab.base.errors import UsageError
from spanlab.base.names import check_typed
from spanlab.schema import Annotation, AnnotatorKind, Record
from spanlab.scoring.reliability import rate_raters
from spanlab.storage import Store
from spanlab.storage.datasets import check_annotators, summary_of
from spanlab.text.labels import vote
from spanlab.worklists.looks import looks_in_words

Cleanup = Literal["none", "mushroom"]

_SAY_EVERY = 500  # votes between two calls of `on_progress`


def vote_dataset(  # noqa: PLR0913 - all choices of a vote, by name
    store: Store,
    dataset: str,
    annotators: Sequence[str],
    *,
    name: str = "vote",
    cleanup: Cleanup = "none",
    weighted: bool = False,
    on_progress: Callable[[int], None] | None = None,
    on_remark: Callable[[str], None] | None = None,
) -> int:
    """Let annotators of a dataset vote, and store the votes as annotations by ``name``.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        annotators: names of the voters, at least one; only finished annotations count.
        name: the vote's name; an earlier vote of that name is replaced.
        cleanup: "mushroom" trims as the SemEval-2025 task did.
        weighted: whether voters weigh as much as their marks can be relied on (see ``raters``);
            gold labels of the dataset are known answers.
        on_progress: called now and then with the number of votes so far; they are stored at the
            end, all at once.
        on_remark: called with what is to know of the voters' weights, and of whose marks they saw.

    Returns:
        How many items have a vote; items that none of the annotators finished have none.

    Raises:
        NotFoundError: the dataset, or one of the annotators in it, does not exist.
        StoreError: somebody who is no vote has this name.
        UsageError: no annotators were named, the vote would be one of its own voters, its name
            cannot name an annotator, or weights are asked for of voters with too few items.
    """
    check_typed(name, "a vote")
    names = list(dict.fromkeys(annotators))
    if not names:
        raise UsageError("a vote needs annotators, for example --annotators offline,anna")
    if name in names:
        raise UsageError(f"the vote {name!r} cannot be one of its own voters; give it another name")
    summary = summary_of(store, dataset)
    check_annotators(summary, names)
    weights, remarks = None, list(looks_in_words(store, summary, names))
    if weighted:
        known = [gold for gold in summary.names_of(AnnotatorKind.GOLD) if gold not in names]
        ratings = rate_raters(store.records(dataset, annotators=[*names, *known]), names)
        weights, remarks = ratings.weights, [*ratings.remarks, *remarks]
    if on_remark is not None:
        for remark in remarks:
            on_remark(remark)
    votes: list[tuple[str, str]] = []  # item ids with votes as JSON, which takes little memory
    for record in store.records(dataset, annotators=names):
        result = _vote(record, record.annotations, name, cleanup=cleanup, weights=weights)
        if result is not None:
            votes.append((record.item.id, result.model_dump_json(exclude_defaults=True)))
            if on_progress is not None and len(votes) % _SAY_EVERY == 0:
                on_progress(len(votes))
    # As a whole: half a vote of now and half a vote of before would be nobody's.
    pairs = ((item_id, Annotation.model_validate_json(text)) for item_id, text in votes)
    store.save_annotations(dataset, pairs, whole=True)
    if on_progress is not None and votes:
        on_progress(len(votes))
    return len(votes)


def vote_records(
    records: Iterable[Record],
    *,
    annotators: Sequence[str] | None = None,
    name: str = "vote",
    cleanup: Cleanup = "none",
) -> Iterator[Record]:
    """Add a vote to each record.

    Args:
        records: the records.
        annotators: names of the voters; None for all people in the record.
        name: the vote's name.
        cleanup: "mushroom" trims as the SemEval-2025 task did.

    Yields:
        Each record, with the vote where at least one of the annotators finished it.

    Raises:
        UsageError: the name cannot name an annotator, or somebody who is no vote has it.
    """
    check_typed(name, "a vote")
    for record in records:
        _check_free(record, name)
        voters = [
            a
            for a in record.annotations
            if (a.annotator in annotators if annotators else a.kind is AnnotatorKind.PERSON)
        ]
        result = _vote(record, voters, name, cleanup)
        yield record if result is None else _add_vote(record, result)


def _check_free(record: Record, name: str) -> None:
    existing = record.by(name)
    if existing is not None and existing.kind is not AnnotatorKind.VOTE:
        raise UsageError(
            f"item {record.item.id!r} has a {existing.kind} called {name!r}, which a vote would "
            "replace; give the vote another name"
        )


def _add_vote(record: Record, voted: Annotation) -> Record:
    others = (a for a in record.annotations if a.annotator != voted.annotator)
    return Record(item=record.item, annotations=(*others, voted))


def _vote(
    record: Record,
    voters: Sequence[Annotation],
    name: str,
    cleanup: Cleanup,
    weights: Mapping[str, float] | None = None,
) -> Annotation | None:
    if not any(annotation.status == "done" for annotation in voters):
        return None
    return vote(record.item, voters, name=name, weights=weights, cleanup=cleanup)
