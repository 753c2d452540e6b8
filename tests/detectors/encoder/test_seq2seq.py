"""A text becomes a text by a sequence-to-sequence checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_encoders as tiny

from spanlab.detectors.common.seq2seq import Rewriter
from spanlab.errors import InputError

WRITTEN = "when was the tower built ?"


def test_a_checkpoint_writes_until_its_end_or_its_limit(tmp_path: Path) -> None:
    made = Rewriter.load(str(tiny.write_rewriter(tmp_path, WRITTEN)))
    assert made.rewrite("question: the tower was built in 1984 .") == WRITTEN
    assert made.rewrite("the tower", most=3) == "when was the"
    with pytest.raises(InputError, match="the text has 602 tokens, and the model reads 512"):
        made.rewrite("tower " * 600)


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "no decoder": (lambda at: (at / "decoder_model.onnx").unlink(), "no decoder"),
    "no encoder": (lambda at: (at / "encoder_model.onnx").unlink(), "no ONNX model"),
    "a decoder twice": (
        lambda at: (at / "encoder_model.onnx").write_bytes(
            (at / "decoder_model.onnx").read_bytes()
        ),
        "no encoder or decoder",
    ),
    "no end": (
        lambda at: (at / "config.json").write_text('{"decoder_start_token_id": 0}'),
        "begins and ends with",
    ),
    "pickle": (lambda at: (at / "x.pkl").write_bytes(b"."), "holds a pickle"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_checkpoint_that_cannot_be_used_is_refused(name: str, tmp_path: Path) -> None:
    spoil, message = WRONG[name]
    folder = tiny.write_rewriter(tmp_path, WRITTEN)
    spoil(folder)
    with pytest.raises(InputError, match=message):
        Rewriter.load(str(folder))
