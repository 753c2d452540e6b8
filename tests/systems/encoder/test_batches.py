"""Items go through a network many at once; what comes out is the same as one by one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_encoders as tiny
from hypothesis import given, settings
from hypothesis import strategies as st

from spanlab.base.runtime import wait
from spanlab.detection import DetectorResult, DetectorSpec, build, detector
from spanlab.networks.classifier import OnnxClassifier
from spanlab.networks.tokenizing import TokenWindow
from spanlab.schema import Annotation, Item, Passage, Status
from spanlab.systems.encoder.detector import EncoderDetector


def items(count: int) -> list[Item]:
    passages = (Passage(text="the tower was built by eiffel"),)
    answers = ("the tower of 1984 " * (1 + number % 7) for number in range(count))
    return [
        Item(id=str(number), lang="en", answer=answer, passages=passages)
        for number, answer in enumerate(answers)
    ]


def spec(folder: Path, **options: Any) -> DetectorSpec:
    return DetectorSpec(detector="encoder", options={"model": str(folder), **options})


def loaded(folder: Path, **options: Any) -> EncoderDetector:
    found = detector(spec(folder, **options))
    assert isinstance(found, EncoderDetector)
    return found


async def _together(made: Any, these: list[Item]) -> list[DetectorResult]:
    return list(await asyncio.gather(*map(made.detect, these)))


def test_what_is_asked_for_at_once_is_found_as_one_by_one(tmp_path: Path) -> None:
    folder, these = tiny.write(tmp_path, tiny.copied()), items(50)
    together = wait(_together(build(spec(folder, batch=8)), these))
    alone = loaded(folder, batch=1)
    assert [each.annotation.spans for each in together] == [
        alone.annotate(each).spans for each in these
    ]
    assert [each.item.id for each in together] == [each.id for each in these]


def test_a_batch_is_bounded_by_rows_and_tokens_and_holds_rows_of_about_one_length(
    tmp_path: Path,
) -> None:
    asked: list[tuple[int, int]] = []

    class Counting:
        def run(self, _names: list[str], given: dict[str, Any]) -> list[Any]:
            rows, width = given["input_ids"].shape
            asked.append((rows, width))
            return [np.zeros((rows, width, 2), np.float32)]

    network = OnnxClassifier(
        Counting(),
        tmp_path,
        "tokens",
        {"input_ids": np.int64, "attention_mask": np.int64},
        "logits",
        ("a", "b"),
        0,
    )
    rows = [
        TokenWindow([1] * (1 + number % 64 * 16), [0] * (1 + number % 64 * 16), {})
        for number in range(640)
    ]
    rated = network.rate(rows, 32)
    assert [len(each) for each in rated] == [len(row.ids) for row in rows]
    assert max(count for count, _ in asked) <= 32
    assert max(count * width for count, width in asked) <= 16_384
    filled = sum(count * width for count, width in asked)
    assert filled < 1.1 * sum(len(row.ids) for row in rows)


def test_without_a_mask_only_rows_of_one_length_are_together(tmp_path: Path) -> None:
    seen: list[int] = []

    class Unmasked:
        def run(self, _names: list[str], given: dict[str, Any]) -> list[Any]:
            assert set(given) == {"input_ids"}
            assert (given["input_ids"] == 7).all()
            seen.append(len(given["input_ids"]))
            return [np.zeros((*given["input_ids"].shape, 2), np.float32)]

    network = OnnxClassifier(
        Unmasked(), tmp_path, "tokens", {"input_ids": np.int64}, "logits", ("a", "b"), 0
    )
    network.rate([TokenWindow([7] * size, [0] * size, {}) for size in (3, 5, 3, 5, 3)], 32)
    assert seen == [2, 3]


def test_an_item_that_cannot_be_read_fails_alone(tmp_path: Path) -> None:
    folder = tiny.write(tmp_path, max_position_embeddings=64)
    good, *_ = items(1)
    asked = good.model_copy(update={"id": "long", "question": "who built the tower ? " * 40})
    found = wait(_together(build(spec(folder)), [good, asked, good]))
    assert [each.annotation.status for each in found] == [Status.DONE, Status.FAILED, Status.DONE]
    assert "no room is left for passages and answer" in (found[1].annotation.note or "")


@pytest.mark.parametrize("window", [40, 64])
def test_windows_find_what_the_model_finds_without_them(window: int, tmp_path: Path) -> None:
    """This network supports a token by what stands anywhere in the passages, so both agree."""
    folder = tiny.write(tmp_path, tiny.copied())
    whole, windowed = (
        loaded(folder, format="pair", window=size, floor=0.5) for size in (0, window)
    )
    words = st.lists(st.sampled_from(tiny.WORDS), min_size=1, max_size=60).map(" ".join)

    @settings(max_examples=10)
    @given(
        st.lists(words, min_size=1, max_size=3), st.lists(st.sampled_from(tiny.WORDS), max_size=12)
    )
    def agree(passages: list[str], answer: list[str]) -> None:
        texts = tuple(Passage(text=text) for text in passages)
        one = Item(id="i", lang="en", answer=" ".join(answer), passages=texts)
        assert marks(windowed.annotate(one)) == marks(whole.annotate(one))

    agree()


def marks(said: Annotation) -> list[tuple[int, int, float]]:
    return [(span.start, span.end, span.prob) for span in said.spans]


def test_a_long_answer_is_read_in_pieces_and_the_trace_says_so(tmp_path: Path) -> None:
    folder = tiny.write(tmp_path)
    answer = "the tower is tall . " * 40 + "it was built in 1984 ."
    one = Item(id="i", lang="en", answer=answer, passages=(Passage(text="iron " * 60),))
    said = loaded(folder, format="pair", window=64, floor=0.8).annotate(one)
    assert [(span.text, span.start) for span in said.spans] == [("1984", answer.index("1984"))]
    assert "the answer was read in" in said.trace[-1].model_dump()["text"]
