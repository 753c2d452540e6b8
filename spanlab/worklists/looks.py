"""Who has seen other people's marks of an item, where reviewers may see them at all."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime

from sqlalchemy import and_, select

from spanlab.output.figures import counted
from spanlab.schema import AnnotatorKind, DatasetSummary, Permission, Status
from spanlab.storage import Store
from spanlab.storage.engine import insert_new
from spanlab.storage.items import position_of
from spanlab.storage.tables import annotated, annotators, items, looks, operations

_AT = {
    "dataset_id": looks.c.dataset_id,
    "position": looks.c.position,
    "annotator_id": annotators.c.id,
}


def note_look(store: Store, dataset: str, item_id: str, reviewer: str) -> None:
    """Store that a person sees what others marked in an item; the first time counts."""
    with store.reading(dataset, reviewer) as (connection, row, sight):
        position = position_of(connection, row, item_id, sight)
        at = {"dataset_id": row.id, "position": position, "reviewer": reviewer}
        noted = select(looks.c.at).where(*(looks.c[name] == value for name, value in at.items()))
        if connection.execute(noted).first() is not None:
            return
    with store.reviewing(dataset, reviewer) as (connection, _):
        now = datetime.now(UTC).isoformat()
        connection.execute(insert_new(connection, looks), at | {"at": now})


def looked_at(store: Store, dataset: str) -> frozenset[tuple[str, str]]:
    """Return which reviews were finished or changed after looking, by item id and reviewer.

    That is no mark of anybody: whoever may read the dataset may know it.
    """
    author = and_(
        annotators.c.dataset_id == looks.c.dataset_id, annotators.c.name == looks.c.reviewer
    )
    of_review, of_log = (
        and_(*(table.c[name] == value for name, value in _AT.items()))
        for table in (annotated, operations)
    )
    of_item = [items.c[name] == looks.c[name] for name in ("dataset_id", "position")]
    pairs = (
        select(items.c.item_id, looks.c.reviewer)
        .join(items, and_(*of_item))
        .join(annotators, author)
        .join(annotated, of_review)
        .join(operations, of_log)
        .where(operations.c.at >= looks.c.at, annotated.c.status == Status.DONE.value)
    )
    store.require(Permission.READ, dataset)
    with store.reading(dataset) as (connection, row, _):
        rows = connection.execute(pairs.where(looks.c.dataset_id == row.id))
        return frozenset((item_id, reviewer) for item_id, reviewer in rows)


def looks_in_words(
    store: Store,
    summary: DatasetSummary,
    people: Iterable[str],
    reviews: Collection[tuple[str, str]] | None = None,
) -> tuple[str, ...]:
    """Say how many reviews were made after looking at other people's marks.

    Args:
        store: the annotation database.
        summary: the dataset; nothing is said where its reviewers never have the choice, nor to who
            may not read what others said.
        people: whose reviews count.
        reviews: those that count, by item id and person; None for all that these people finished.
    """
    if not store.may(Permission.READ, summary.name):
        return ()
    named = set(people) & set(summary.names_of(AnnotatorKind.PERSON))
    after = {(item, person) for item, person in looked_at(store, summary.name) if person in named}
    if reviews is None:
        done = (a.counts.get(Status.DONE, 0) for a in summary.annotators if a.name in named)
        n_reviews, n_looks = sum(done), len(after)
    else:
        n_reviews, n_looks = len(reviews), len(after & set(reviews))
    if not n_reviews or (summary.settings.is_blind and not n_looks):
        return ()
    return (
        f"Of {counted(n_reviews, 'review')} by people, {n_looks:,} "
        f"{'was' if n_looks == 1 else 'were'} made after looking at other people's marks, as far "
        "as this was recorded.",
    )
