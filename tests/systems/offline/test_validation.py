"""What the shipped model's card says of it, against what marking everything or nothing gets."""

from __future__ import annotations

from pathlib import Path

from spanlab.formats import ReadOptions, read
from spanlab.scoring.report import score
from spanlab.scoring.spans import mark_all, mark_none
from spanlab.systems.offline.model import SHIPPED
from spanlab.systems.offline.own_labels import ModelCard
from spanlab.text.labels import labels_of


def test_cross_validated_it_beats_marking_everything_and_marking_nothing(shared: Path) -> None:
    card = ModelCard.model_validate_json(SHIPPED.with_suffix(".json").read_text(encoding="utf-8"))
    options = ReadOptions(on_warning=lambda message: None)
    files = sorted((shared / "mushroom" / "val").glob("*.jsonl"))
    golds = [labels_of(record, "gold") for file in files for record in read(file, options)]
    assert sum(card.items.values()) == len(golds)
    own, other, none = card.scores
    for trivial in (mark_all, mark_none):
        baseline = score((gold, trivial(gold)) for gold in golds).macro
        for found in (own, none):
            assert found.iou.low > baseline.iou.high
            assert found.corr.low > baseline.corr.high
    # What the passages say helps, and those of another item do no more harm than none.
    assert own.iou.mean - none.iou.mean >= 0.03
    assert none.iou.mean - other.iou.mean < 0.01


def test_it_reaches_what_was_asked_of_it() -> None:
    card = ModelCard.model_validate_json(SHIPPED.with_suffix(".json").read_text(encoding="utf-8"))
    own, _, none = card.scores
    assert own.iou.mean >= 0.55
    assert own.corr.mean >= 0.57
    assert none.iou.mean >= 0.53
    assert none.corr.mean >= 0.54


def test_its_probabilities_are_shares_of_annotators() -> None:
    """In Hindi one answer that repeats itself is 29 % of all characters."""
    card = ModelCard.model_validate_json(SHIPPED.with_suffix(".json").read_text(encoding="utf-8"))
    for scores in card.scores:
        errors = dict(scores.calibration_errors)
        assert errors.pop("hi") < 0.25
        assert max(errors.values()) <= 0.08
