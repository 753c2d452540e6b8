"""Code in answers: what passages show of commands, options and names, and what they do not."""

from __future__ import annotations

from pathlib import Path

from spanlab.detection import detector
from spanlab.formats import ReadOptions, read
from spanlab.text.extents import iou
from spanlab.text.labels import hard_of, labels_of


def test_it_finds_what_was_made_up_in_answers_about_tools(samples: Path) -> None:
    """Characters of 150 answers, a third of them right; as prose they had IoU .15."""
    ious = []
    for record in read(samples.with_name("code_answers.jsonl"), ReadOptions()):
        annotation = detector("offline").annotate(record.item)
        annotation.check(record.item)
        ious.append(iou(labels_of(record, "gold").hard, hard_of(annotation)))
    assert len(ious) == 150
    assert sum(ious) / len(ious) >= 0.75
