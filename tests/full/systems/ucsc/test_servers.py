"""Whatever a server makes of an answer: the spans meant, or a failed item with its cause."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from failing import Failing, cause, towers
from gold_answers import GoldAnswers

import spanlab
from spanlab import formats as datasets
from spanlab.base.errors import SpanlabError
from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec, build
from spanlab.models import Meter, ModelChoice
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Status
from spanlab.testing import MODES, ModelServer
from spanlab.text.extents import Extent, intersection, length
from spanlab.text.labels import hard_of

DETECTORS = ("ucsc-extract", "ucsc-kg", "ucsc-revise")
SHOWN = ("sample-en-7", "sample-zh-1", "sample-ar-4")


@pytest.fixture(scope="module")
def records(samples: Path) -> list[Record]:
    """Samples with gold spans, in three scripts."""
    known = {record.item.id: record for record in datasets.read(samples)}
    return [known[name] for name in SHOWN]


@pytest.fixture(scope="module")
def gold(records: list[Record]) -> Iterator[ModelServer]:
    """A server that means the gold spans."""
    with ModelServer(GoldAnswers(records), keep=False) as server:
        yield server


Said = Callable[[str, str], list[Annotation | SpanlabError]]


@pytest.fixture
def said(
    gold: ModelServer, records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Said:
    """What a detector says of the samples when the server is in a mode."""
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    settings = Settings(home=tmp_path, database_url="sqlite://")

    def run(detector: str, mode: str) -> list[Annotation | SpanlabError]:
        gold.mode = mode
        choice = ModelChoice(model=f"m-{mode}", base_url=gold.url, retries=0)
        built = build(DetectorSpec(detector=detector, model=choice), Meter(), settings)

        async def one(item: Item) -> Annotation | SpanlabError:
            try:
                return (await built.detect(item)).annotation
            except SpanlabError as error:
                return error

        async def everything() -> list[Annotation | SpanlabError]:
            return await asyncio.gather(*(one(record.item) for record in records))

        return asyncio.run(everything())

    return run


def iou(one: Sequence[Extent], other: Sequence[Extent]) -> float:
    shared = length(intersection(one, other))
    return shared / (length(one) + length(other) - shared)


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_ends_in_the_spans_that_were_meant_or_in_a_failure(
    mode: str, said: Said, records: list[Record]
) -> None:
    words = MODES[mode].fails_with
    for detector in DETECTORS:
        for record, found in zip(records, said(detector, mode), strict=True):
            meant = next(each for each in record.annotations if each.kind is AnnotatorKind.GOLD)
            failed = isinstance(found, SpanlabError) or found.status is Status.FAILED
            if words:
                note = str(found) if isinstance(found, SpanlabError) else found.note
                assert failed, (detector, record.item.id)
                assert words in (note or ""), detector
            else:
                assert isinstance(found, Annotation)
                assert found.status is Status.DONE, (detector, found.note)
                assert iou(hard_of(found), hard_of(meant)) >= 0.9, (detector, record.item.id)


def test_a_run_with_failures_of_every_kind_ends_with_every_item_done_or_failed_with_its_cause(
    model_server: ModelServer,
) -> None:
    model_server.script(Failing())
    with pytest.warns(UserWarning, match="of 120 records failed"):
        done = spanlab.annotate(towers(120), "ucsc-extract", concurrency=64)
    for number, record in enumerate(done):
        (said,) = record.annotations
        words = cause(number)
        assert said.status is (Status.FAILED if words else Status.DONE), said.note
        assert words in (said.note or "")
        assert [span.text for span in said.spans] == ([] if words else ["1989"])
