"""How many keys an item takes: the samples' suggestions, reviewed by keyboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import pytest
from driving import Desk

from spanlab import formats as datasets
from spanlab.schema import Annotation, AnnotatorKind, Record, Status

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]

# Keys per item: what Review took before one key could accept what is shown and be done, and what
# Label Studio's documented shortcuts take for the same.
BEFORE = {"accept all": 2, "reject one": 3, "fix a border": 3}
LABEL_STUDIO = {"accept all": 1, "reject one": 3, "fix a border": 5}


def test_an_item_of_the_samples_takes_no_more_keys_than_elsewhere(desk: Sit, samples: Path) -> None:
    records = [record for record in map(_suggested, datasets.read(samples)) if record][::5]
    here = desk(records)
    counts: dict[str, list[int]] = {result: [] for result in BEFORE}
    left: list[tuple[str, str, list[str]]] = []  # result, item, texts of its spans but for the fix
    for number, record in enumerate(records):
        result, spans = list(BEFORE)[number % 3], record.annotations[0].spans
        chosen = (number // 3) % len(spans)
        border = "Alt+[" if spans[chosen].start else "Alt+]"
        does = {"accept all": [], "reject one": ["x"], "fix a border": [border]}[result]
        keys = [*(["Tab"] * chosen if does else []), *does, "D"]
        here.wait_for(record.item.id)
        here.press(*keys)
        counts[result].append(len(keys))
        kept = [span.text for span in spans if not does or span is not spans[chosen]]
        left.append((result, record.item.id, kept))
    here.settle()
    for result, name, kept in left:
        assert here.state(name).status is Status.DONE
        texts = here.texts(name)
        moved = (Counter(texts) - Counter(kept)).total()
        assert moved == len(texts) - len(kept) == (result == "fix a border"), name
    medians = {result: median(each) for result, each in counts.items()}
    assert medians == {"accept all": 1, "reject one": 2, "fix a border": 2}
    for elsewhere in (BEFORE, LABEL_STUDIO):
        assert all(medians[result] <= keys for result, keys in elsewhere.items())


def _suggested(record: Record) -> Record | None:
    """A sample with what one of its annotators marked as a detector's suggestions, if there are."""
    said = record.by("synthetic-annotator-1")
    if said is None or not said.spans:
        return None
    return Record(
        item=record.item,
        annotations=(Annotation(annotator="one", kind=AnnotatorKind.DETECTOR, spans=said.spans),),
    )
