"""Verdicts by a classifier of pairs of texts, with probabilities known by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import tiny_encoders as tiny
from detector_cases import Make

from spanlab.base.runtime import wait
from spanlab.detection import DetectorSpec, build
from spanlab.schema import Annotation, Item, Passage
from spanlab.testing import ModelServer

ITEM = Item(
    id="i",
    lang="en",
    answer="the tower is tall .\nit is not iron .\nparis stands by the river .",
    passages=(
        Passage(text="the tower is tall ."),
        Passage(text="paris is not iron by the tower ."),
    ),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tokenizer = tiny.word_piece()
    return tiny.write(tmp_path / "nli", tiny.entailed(tokenizer), tokenizer, tiny.NLI_LABELS)


def said_by(folder: Path, one: Item = ITEM, **options: Any) -> Annotation:
    spec = DetectorSpec(detector="encoder-nli", options={"model": str(folder), **options})
    return wait(build(spec).detect(one)).annotation


def test_every_sentence_gets_a_verdict_and_what_is_not_supported_is_marked(folder: Path) -> None:
    """Not all tokens of the second sentence are in the passages ("it" is not), and it denies."""
    said = said_by(folder)
    assert [claim.text for claim in said.claims] == [
        "the tower is tall .",
        "it is not iron .",
        "paris stands by the river .",
    ]
    assert [claim.verdict for claim in said.claims] == ["supported", "refuted", "not-supported"]
    sure = round(tiny.ENTAILED, 3)  # of the contradiction, too: its logits are 3, 0 and -3
    unsure = round(1 - math.exp(-3) / (2 * math.exp(-3) + 1), 3)
    assert [claim.prob for claim in said.claims] == [sure, sure, unsure]
    assert [(span.text, span.prob) for span in said.spans] == [
        ("it is not iron .", sure),
        ("paris stands by the river .", unsure),
    ]
    assert said.claims[0].evidence[0].stance == "supports"
    assert said.claims[0].evidence[0].text == "the tower is tall ."


def test_what_is_neither_supported_nor_refuted_may_be_not_enough_evidence(folder: Path) -> None:
    said = said_by(folder, neutral="not-enough-evidence")
    assert said.claims[2].verdict == "not-enough-evidence"
    assert [span.text for span in said.spans] == ["it is not iron ."]


@pytest.mark.parametrize(("best", "verdict"), [(1, "supported"), (3, "not-supported")])
def test_the_best_windows_decide(folder: Path, best: int, verdict: str) -> None:
    """The sentence stands in the first of several windows: the maximum finds it, a mean may not."""
    text = "the tower is tall . " + "iron of paris " * 30
    one = ITEM.model_copy(
        update={"answer": "the tower is tall .", "passages": (Passage(text=text),)}
    )
    said = said_by(folder, one, window=40, best=best)
    assert said.claims[0].verdict == verdict
    assert "windows" in (said.claims[0].note or "")


def test_a_threshold_may_be_set(folder: Path) -> None:
    assert said_by(folder, threshold=0.99).claims[0].verdict == "not-supported"


def test_an_answer_without_passages_is_not_supported_and_the_note_says_why(folder: Path) -> None:
    one = ITEM.model_copy(update={"passages": (), "answer": "the tower ."})
    said = said_by(folder, one)
    assert "no passages were given" in (said.note or "")
    assert said.claims[0].verdict == "not-supported"


def test_a_model_takes_claims_out_and_the_classifier_judges_them(
    folder: Path, make: Make, model_server: ModelServer
) -> None:
    """With the whole answer as one claim, the model only names the words that are wrong."""
    found = wait(
        make("encoder-nli-claims", options={"model": str(folder), "claims": "answer"}).detect(
            ITEM.model_copy(update={"answer": "the tower is tall ."})
        )
    )
    (claim,) = found.annotation.claims
    assert (claim.verdict, claim.note) == ("supported", "support 0.95, contradiction 0.00")
    assert not model_server.requests
