"""The offline detector on Mu-SHROOM's validation set, by spanlab's own readers and scorers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from spanlab.datasets import ReadOptions, read
from spanlab.detectors import detector
from spanlab.labels import Labels, labels_of
from spanlab.schema import Record
from spanlab.scorers import mark_all, mark_none, score

# Measured with this version, minus what a change of spaCy's tokenisers may move.
LEAST_IOU = 0.52
LEAST_CORR = 0.50


@pytest.fixture(scope="module")
def pairs(shared: Path) -> list[tuple[Labels, Labels]]:
    """Gold labels and the detector's, for every item with its retrieved context."""
    return [
        (labels_of(record, "gold"), labels_of(with_offline(record), "offline"))
        for record in records(shared)
    ]


def records(shared: Path) -> Iterator[Record]:
    for file in sorted((shared / "mushroom" / "val").glob("*.jsonl")):
        lang = file.name.split(".")[1].removesuffix("-val")
        contexts = shared / "mushroom" / "context" / f"{lang}-val.v2_perplexity-sonar-pro"
        yield from read(file, ReadOptions(contexts=contexts, on_warning=lambda _: None))


def with_offline(record: Record) -> Record:
    annotation = detector("offline").annotate(record.item)
    return Record(item=record.item, annotations=(*record.annotations, annotation))


def test_it_beats_marking_everything_and_marking_nothing(
    pairs: list[tuple[Labels, Labels]],
) -> None:
    found = score(pairs).macro
    for trivial in (mark_all, mark_none):
        baseline = score((gold, trivial(gold)) for gold, _ in pairs).macro
        assert found.iou.low > baseline.iou.high
        assert found.corr.low > baseline.corr.high


def test_it_reaches_what_its_constants_were_chosen_for(pairs: list[tuple[Labels, Labels]]) -> None:
    found = score(pairs).macro
    assert found.iou.mean > LEAST_IOU
    assert found.corr.mean > LEAST_CORR
