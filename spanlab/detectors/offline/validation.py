"""Cross-validation: models that were not trained on the items they are measured on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spanlab.detectors.offline.model import OfflineModel
from spanlab.detectors.offline.training import Progress, Recipe, train_offline
from spanlab.schema import Item, Record

_LONG = re.compile(r"[A-Za-z0-9]{5,}")
_FEWEST = 10  # such words, from which on two items can be compared
_SAME = 0.5  # share of them that two items on one subject have in common


class FoldModel(NamedTuple):
    """A model, and the records that it was not trained on."""

    model: OfflineModel
    held_out: list[Record]


def folds(
    records: Sequence[Record],
    count: int,
    *,
    annotator: str = "gold",
    recipe: Recipe | None = None,
    on_progress: Progress = lambda task, done, total: None,
) -> Iterator[FoldModel]:
    """Train on all folds but one, for each fold in turn.

    Items on one subject, asked in several languages, are held out together, with everything that
    training makes of an item: its background words and the answers made from its passages. There
    are ``count`` folds, 2 or more; one without items is left out. The other arguments and errors
    are those of ``train_offline``.
    """
    subject = subjects([record.item for record in records])
    names = sorted(set(subject.values()), key=lambda name: hashlib.sha256(name.encode()).digest())
    number = {name: at % count for at, name in enumerate(names)}
    for fold in range(count):
        held_out = [r for r in records if number[subject[r.item.id]] == fold]
        if not held_out:
            continue
        seen = [r for r in records if number[subject[r.item.id]] != fold]

        def report(task: str, done: int, total: int, fold: int = fold) -> None:
            on_progress(f"fold {fold + 1} of {count}, {task}", done, total)

        model = train_offline(seen, annotator=annotator, recipe=recipe, on_progress=report)
        yield FoldModel(model, held_out)


def subjects(items: Sequence[Item]) -> dict[str, str]:
    """Return the subject of each item by item id, named by the id of one of the items on it.

    Two items of different languages are on one subject if most long Latin words and numbers of
    the passages of one are in those of the other (retrieved through English, say).
    """
    words = {
        item.id: {word for p in item.passages for word in _LONG.findall(p.text)} for item in items
    }
    subject = {item.id: item.id for item in items}
    for number, one in enumerate(items):
        for other in items[:number]:
            if one.lang == other.lang or subject[one.id] == subject[other.id]:
                continue
            fewest = min(len(words[one.id]), len(words[other.id]))
            shared = len(words[one.id] & words[other.id])
            if fewest >= _FEWEST and shared > _SAME * fewest:
                old, new = subject[one.id], subject[other.id]
                subject = {id_: new if name == old else name for id_, name in subject.items()}
    return subject
