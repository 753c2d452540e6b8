"""What a detector is handed of a claim that other programs send."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from spanlab.detection import DetectorResult
from spanlab.detection.selection import DetectorSelection
from spanlab.integrations.offers import ClaimRequest, ServiceOffers
from spanlab.schema import Annotation, AnnotatorKind, Item

GERMAN, ENGLISH = "Der Turm steht seit 1889 in Paris.", "The tower was finished in Paris in 1889."


@pytest.mark.system("mermaid")
@pytest.mark.parametrize(
    ("sent", "lang"),
    [
        pytest.param({"claim": GERMAN}, "de", id="its own"),
        pytest.param({"claim": "1889", "passages": [{"text": GERMAN}]}, "de", id="its passage's"),
        pytest.param({"claim": ENGLISH, "lang": "fr"}, "fr", id="stated"),
    ],
)
def test_a_claim_has_the_language_that_is_stated_else_its_own_or_its_passages_s(
    sent: dict[str, Any], lang: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[Item] = []

    class Judge:
        async def detect(self, item: Item) -> DetectorResult:
            judged.append(item)
            said = Annotation(annotator="mermaid", kind=AnnotatorKind.DETECTOR)
            return DetectorResult(said, item)

    offers = ServiceOffers(DetectorSelection(detectors=("mermaid",), model="m"))
    monkeypatch.setattr(offers, "_build", lambda _name, _whole: Judge())
    asyncio.run(offers.verify(ClaimRequest.model_validate(sent)))
    assert [item.lang for item in judged] == [lang]
