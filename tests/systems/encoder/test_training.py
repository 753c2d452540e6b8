"""Labels of tokens, by hand; what needs torch is in ``tests/full/systems/encoder``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tiny_encoders as tiny
from tokenizers import Tokenizer

from spanlab.networks.tokenizing import CheckpointTokenizer
from spanlab.schema import Item, Passage
from spanlab.systems.encoder.calibration import LabelledItem
from spanlab.systems.encoder.detector import FORMATS, read_item
from spanlab.systems.encoder.training import training_rows
from spanlab.text.labels import SoftLabel


def tokenizing(tmp_path: Path, tokenizer: Tokenizer, limit: int) -> CheckpointTokenizer:
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return CheckpointTokenizer.of(tmp_path / "tokenizer.json", limit, None)


def test_a_token_is_labelled_with_the_share_of_people_who_marked_its_characters(
    tmp_path: Path,
) -> None:
    """An emoji of two UTF-16 units stands before; "in " is marked up to the middle of "tower"."""
    answer = "🗼 the tower in 1984"
    item = Item(id="i", lang="en", answer=answer, passages=(Passage(text="paris"),))
    start = answer.index("tower")
    labelled = LabelledItem(item, (SoftLabel(start, start + 2, 0.5), SoftLabel(15, 19, 0.75)))
    pieces = read_item(tokenizing(tmp_path, tiny.word_piece(), 512), FORMATS["pair"], item)
    assert isinstance(pieces, list)
    (row,) = training_rows(labelled, pieces)
    assert len(row.ids) == len(row.types) == len(row.shares)
    assert row.weight == 1
    (read,) = pieces[0].rows
    learnt = {
        answer[place.start : place.end]: row.shares[at].item() for at, place in read.places.items()
    }
    assert learnt == pytest.approx({"🗼": 0, "the": 0, "tower": 0.2, "in": 0, "1984": 0.75})
    assert np.isnan(np.delete(row.shares, list(read.places))).all()  # "paris" is not learnt


def test_spaces_of_a_token_do_not_dilute_it_and_windows_weigh_one_together(tmp_path: Path) -> None:
    """A byte-level " t" is marked as its "t" is; the passage takes several windows of 24 tokens."""
    answer = "a te"
    item = Item(id="i", lang="en", answer=answer, passages=(Passage(text="x" * 60),))
    labelled = LabelledItem(item, (SoftLabel(2, 4, 1.0),))
    pieces = read_item(tokenizing(tmp_path, tiny.byte_level(), 24), FORMATS["pair"], item)
    assert isinstance(pieces, list)
    rows = training_rows(labelled, pieces)
    assert len(rows) > 2
    assert sum(row.weight for row in rows) == pytest.approx(1)
    for row in rows:
        assert row.shares[~np.isnan(row.shares)].tolist() == [0, 1, 1]
