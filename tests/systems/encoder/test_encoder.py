"""The detector `encoder` on networks whose probabilities are known by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
import tiny_encoders as tiny
from onnxruntime.quantization import quantize_dynamic

from spanlab.base.processes import networks
from spanlab.base.runtime import wait
from spanlab.detection import DetectorSpec, build, detector
from spanlab.networks.classifier import loaded
from spanlab.schema import Annotation, Item, Passage, Status
from spanlab.systems.encoder.detector import format_of


def item(answer: str, *passages: str, question: str = "when ?", lang: str = "en") -> Item:
    texts = tuple(Passage(text=text) for text in passages)
    return Item(id="i", lang=lang, question=question, answer=answer, passages=texts)


def said_by(folder: Path, one: Item, **options: Any) -> Annotation:
    spec = DetectorSpec(detector="encoder", options={"model": str(folder), **options})
    return wait(build(spec).detect(one)).annotation


def test_a_word_is_marked_where_its_token_is_doubted(tmp_path: Path) -> None:
    found = said_by(tiny.write(tmp_path), item("the tower was built in 1984 .", "the tower"))
    (span,) = found.spans
    assert (span.start, span.end, span.text, span.prob) == (23, 27, "1984", 0.9)
    assert [(hard.start, hard.end) for hard in found.hard or ()] == [(23, 27)]
    assert found.status is Status.DONE
    assert found.note is None


def test_a_network_in_eight_bits_says_what_it_said_in_32(tmp_path: Path) -> None:
    tokenizer = tiny.word_piece()
    folder = tiny.write(tmp_path, tiny.multiplied(tokenizer, ["1984"]), tokenizer)
    quantize_dynamic(folder / "model.onnx", folder / "model_int8.onnx")
    kinds = {each.op_type for each in onnx.load(folder / "model_int8.onnx").graph.node}
    assert "MatMulInteger" in kinds
    one = item("the tower was built in 1984 .", "the tower")
    (exact,) = said_by(folder, one).spans
    (rounded,) = said_by(folder, one, weights="model_int8.onnx").spans
    assert exact.text == rounded.text == "1984"
    assert rounded.prob == pytest.approx(exact.prob, abs=0.01)


def test_the_trace_says_which_checkpoint_read_what(tmp_path: Path) -> None:
    found = said_by(tiny.write(tmp_path / "KR--tiny"), item("the tower", "iron"))
    (remark,) = found.trace
    assert remark.model_dump()["text"].startswith("checkpoint KR/tiny, model.onnx with SHA-256 ")
    assert "Briefly answer the following question:\n{question}\n" in remark.model_dump()["text"]


def test_a_word_of_several_tokens_is_as_probable_as_the_mean_of_its_characters(
    tmp_path: Path,
) -> None:
    """`ab12` is a, ##b, ##1, ##2, of which the last two are doubted: (.1 + .1 + .9 + .9) / 4."""
    tokenizer = tiny.word_piece()
    folder = tiny.write(tmp_path, tiny.table(tokenizer, ["##1", "##2"]), tokenizer)
    found = said_by(folder, item("ab12 the", "iron"), floor=0.5)
    assert [(span.text, span.prob) for span in found.spans] == [("ab12", 0.5)]


def test_neighbours_of_one_band_are_one_span(tmp_path: Path) -> None:
    """In `1984 tower a1 .` the word a1 has .5, and the threshold .6 parts it from the others."""
    tokenizer = tiny.word_piece()
    folder = tiny.write(tmp_path, tiny.table(tokenizer, ["1984", "tower", "##1"]), tokenizer)
    found = said_by(folder, item("is 1984 tower a1 .", "iron"), threshold=0.6, floor=0.3)
    assert [(span.text, span.prob) for span in found.spans] == [("1984 tower", 0.9), ("a1", 0.5)]
    assert [(hard.start, hard.end) for hard in found.hard or ()] == [(3, 13)]


def test_an_answer_without_doubts_is_done_without_spans(tmp_path: Path) -> None:
    folder = tiny.write(tmp_path)
    for answer in ("the tower .", "", " \n "):
        found = said_by(folder, item(answer, "iron"))
        assert (found.status, found.spans, found.hard) == (Status.DONE, (), ())


def test_without_passages_the_annotation_says_so(tmp_path: Path) -> None:
    assert "no passages" in (said_by(tiny.write(tmp_path), item("the tower")).note or "")


@pytest.mark.parametrize(
    ("windows", "probs"), [("any", [("1889", 0.9)]), ("mean", [("iron", 0.633), ("1889", 0.9)])]
)
def test_a_token_is_supported_if_any_window_supports_it_or_by_their_mean(
    tmp_path: Path, windows: str, probs: list[tuple[str, float]]
) -> None:
    """`iron` stands in one of three windows: 1 - .9, or 1 - (.9 + .1 + .1) / 3 in the mean."""
    folder = tiny.write(tmp_path, tiny.copied())
    passage = "iron " + "tower " * 42
    one = item("iron tower 1889", passage, question="")
    found = said_by(folder, one, format="pair", window=24, windows=windows, floor=0.5)
    assert [(span.text, span.prob) for span in found.spans] == probs
    assert "3 windows" in str(found.trace[-1].model_dump()["text"])


def loads_so_far() -> int:
    return loaded.cache_info().misses


def test_detectors_share_a_network_until_its_file_changes(tmp_path: Path) -> None:
    def loads() -> int:
        detector(DetectorSpec(detector="encoder", options={"model": str(tmp_path)}))
        return networks().run(9, loads_so_far)

    tiny.write(tmp_path)
    first = loads()
    assert loads() == first
    tiny.write(tmp_path, tiny.copied())
    assert loads() == first + 1


def test_passages_of_an_own_template_are_numbered_where_that_is_asked_for() -> None:
    made = format_of("pair", "{question}:\n{passages}", "{number}) ")
    assert made.render("who", ["Ada.", "{question}"]) == "who:\n1) Ada.\n2) {question}"
