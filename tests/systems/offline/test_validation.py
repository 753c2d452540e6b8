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
    own, _closed, other, none, _made = card.scores
    for trivial in (mark_all, mark_none):
        baseline = score((gold, trivial(gold)) for gold in golds).macro
        for found in (own, none):
            assert found.iou.low > baseline.iou.high
            assert found.corr.low > baseline.corr.high
    # What passages say gains less on these answers than the interval is wide, as the guide says;
    # those of another item do no more harm than none.
    assert own.iou.mean > none.iou.mean
    assert none.iou.mean - other.iou.mean < 0.01


def test_it_reaches_what_was_asked_of_it() -> None:
    card = ModelCard.model_validate_json(SHIPPED.with_suffix(".json").read_text(encoding="utf-8"))
    own, closed_book, other, none, _ = card.scores
    assert own.iou.mean >= 0.54
    assert own.corr.mean >= 0.55
    assert closed_book.iou.mean >= 0.56
    assert closed_book.corr.mean >= 0.58
    assert other.iou.mean >= 0.537
    assert none.iou.mean >= 0.53
    assert none.corr.mean >= 0.55


def test_its_probabilities_are_shares_of_annotators_where_answers_are_made_from_passages() -> None:
    """People of other languages mark other shares, of which nothing is learnt by language."""
    card = ModelCard.model_validate_json(SHIPPED.with_suffix(".json").read_text(encoding="utf-8"))
    *asked, made = card.scores
    assert made.calibration_errors["en"] <= 0.08
    for scores in asked:
        errors = scores.calibration_errors.values()
        assert sum(errors) / len(errors) <= 0.15
