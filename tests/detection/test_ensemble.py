"""An ensemble: every member signs its own annotation, and their vote is one more."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from detector_cases import ANSWER, TOWER, detect
from gold_answers import GoldAnswers, Noise, by_prompt

from spanlab.base.errors import UsageError
from spanlab.base.settings import Settings
from spanlab.detection import (
    Detector,
    DetectorResult,
    DetectorSpec,
    EnsembleSpec,
    as_detector,
    build,
    spec_of,
)
from spanlab.detection.ensemble import Ensemble, EnsembleVote, tally
from spanlab.detection.selection import DetectorSelection
from spanlab.detection.specifications import specifications
from spanlab.formats import read
from spanlab.models import Meter, ModelChoice
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Status
from spanlab.scoring.report import score
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, caller_with, fail, say_fields
from spanlab.text.extents import length
from spanlab.text.labels import hard_of, labels_of

pytestmark = pytest.mark.system("ucsc")

NAMES = [
    "ucsc-1-llama-extract",
    "ucsc-2-o1-revise",
    "ucsc-3-gpt4o-extract-overlap",
    "ucsc-4-gpt4o-extract-any",
    "ucsc-5-gpt4o-mini-revise",
]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, database_url="sqlite://")


@pytest.fixture
def five(model_server: ModelServer, settings: Settings) -> Detector:
    """The shipped ensemble, its models all at the scripted server."""
    return build(spec_of("ucsc"), Meter(), settings)


def answers(ask: ModelRequest) -> ScriptedReply:
    """Quote the year, and correct it and the builder."""
    if "`[[ ## parts ## ]]`" in ask.text:
        return say_fields(parts=["1989"])
    revised = ANSWER.replace("1989", "1889").replace("Ada Smith", "Gustave Eiffel")
    return say_fields(reasoning="so it is", revised=revised)


class Panicking:
    """A detector of any kind, whose library is written in Rust and panics; pyo3 names it so."""

    name = "rusty"
    batch = 4

    def annotate(self, item: Item) -> Annotation:
        raise type("PanicException", (BaseException,), {})(f"index out of bounds: {item.id}")

    def annotate_all(self, items: Sequence[Item]) -> Sequence[Annotation]:
        return list(map(self.annotate, items))

    async def detect(self, item: Item) -> DetectorResult:
        return DetectorResult(self.annotate(item), item)


class Local:
    """One that takes a single item at a time."""

    name = "rusty"
    annotate = Panicking.annotate


@pytest.mark.parametrize("kind", ["awaited", "local", "batches"])
def test_a_panic_is_the_failure_of_its_item(kind: str) -> None:
    detectors: dict[str, Detector] = {
        "awaited": Panicking(),
        "local": as_detector(Local()),
        "batches": as_detector(Panicking()),
    }

    async def run() -> list[DetectorResult]:
        ensemble = Ensemble([detectors[kind]], [EnsembleVote("all", ("rusty",))])
        items = [Item(id=str(number), answer="a") for number in range(6)]
        return await asyncio.wait_for(asyncio.gather(*map(ensemble.detect, items)), 60)

    notes = [finding.members[0].note for finding in asyncio.run(run())]
    assert notes == [f"PanicException: index out of bounds: {number}" for number in range(6)]


def test_one_detector_serves_two_event_loops_at_once_from_its_one_thread() -> None:
    class Echo:
        name = "echo"

        def annotate(self, item: Item) -> Annotation:
            return Annotation(annotator="echo", kind=AnnotatorKind.DETECTOR, note=item.id)

    async def run(first: int) -> list[str | None]:
        items = [Item(id=str(number), answer="a") for number in range(first, first + 50)]
        return [each.annotation.note for each in await asyncio.gather(*map(echo.detect, items))]

    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(2) as loops:
        echo = as_detector(Echo(), one)
        notes = loops.map(lambda first: asyncio.run(run(first)), (0, 50))
        assert [note for half in notes for note in half] == [str(n) for n in range(100)]


def test_what_ends_a_program_in_a_detector_s_thread_ends_who_waits() -> None:
    class Leaving:
        name = "leaving"

        def annotate(self, item: Item) -> Annotation:
            sys.exit(3)

    with ThreadPoolExecutor(1) as one, pytest.raises(SystemExit):
        asyncio.run(as_detector(Leaving(), one).detect(Item(id="i", answer="a")))


def test_the_shipped_ensemble_has_the_paper_s_five_members() -> None:
    spec = spec_of("ucsc")
    assert isinstance(spec, EnsembleSpec)
    assert [member.signs for member in spec.members] == NAMES
    assert [(member.detector, member.model and member.model.model) for member in spec.members] == [
        ("ucsc-extract", "meta-llama/Llama-3.3-70B-Instruct"),
        ("ucsc-revise", "o1"),
        ("ucsc-extract", "gpt-4o"),
        ("ucsc-extract", "gpt-4o"),
        ("ucsc-revise", "gpt-4o-mini"),
    ]


def test_members_sign_their_own_annotations_and_the_vote_counts_them(
    model_server: ModelServer, five: Detector
) -> None:
    model_server.script(answers)
    finding = detect(five)
    assert [each.annotator for each in finding.annotations] == [*NAMES, "ucsc"]
    said = finding.annotation
    assert (said.kind, said.status, said.voters) == (AnnotatorKind.VOTE, Status.DONE, tuple(NAMES))
    year, *builder = said.spans
    assert (year.text, year.prob) == ("1989", 1.0), "all five"
    assert " ".join(span.text for span in builder) == "Ada Smith"
    assert {span.prob for span in builder} == {0.4}, "the two that revise"
    assert model_server.count == 5, "two members with one model do not share an answer"


def test_a_member_is_asked_at_its_own_provider_with_its_own_key(
    model_server: ModelServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Address and key are named by environment variables; without the address both are general."""
    model_server.script(answers)
    monkeypatch.setenv("SPANLAB_LLAMA_API_KEY", "sk-of-the-llama")
    general = caller_with(os.environ["OPENAI_API_KEY"])
    detect(build(spec_of("ucsc"), Meter(), settings))
    assert {ask.caller for ask in model_server.requests} == {general}
    with ModelServer(answers) as other:
        monkeypatch.setenv("SPANLAB_LLAMA_BASE_URL", other.url)
        detect(build(spec_of("ucsc"), Meter(), settings))
        (llama,) = other.requests
        assert llama.body["model"].startswith("meta-llama/")
        assert llama.caller == caller_with("sk-of-the-llama")
        assert len(model_server.requests) == 5, "the other members' answers are in the cache"
        (spec,) = specifications(DetectorSelection(detectors=("ucsc",), model="one for all"))
        assert isinstance(spec, EnsembleSpec)
        assert {each.model and each.model.host for each in spec.members} == {
            urlsplit(model_server.url).netloc
        }
    monkeypatch.setenv("SPANLAB_LLAMA_BASE_URL", "llama.example")
    with pytest.raises(UsageError, match="SPANLAB_LLAMA_BASE_URL"):
        specifications(DetectorSelection(detectors=("ucsc",)))


@pytest.mark.system("offline")
def test_a_detector_that_asks_no_model_can_be_a_member(
    model_server: ModelServer, settings: Settings
) -> None:
    model_server.script(answers)
    local = DetectorSpec(detector="offline", name="words")
    asking = DetectorSpec(detector="ucsc-extract")
    built = build(EnsembleSpec(name="both", members=(local, asking)), Meter(), settings)
    words, extract, both = detect(built).annotations
    assert [each.annotator for each in (words, extract, both)] == ["words", "ucsc-extract", "both"]
    assert words.status is Status.DONE
    assert both.voters == ("words", "ucsc-extract")
    assert model_server.count == 1


def test_a_member_that_fails_does_not_vote(model_server: ModelServer, five: Detector) -> None:
    model_server.script(
        lambda ask: fail(402, "empty") if "Llama" in ask.body["model"] else answers(ask)
    )
    finding = detect(five)
    assert finding.members[0].status is Status.FAILED
    assert finding.annotation.status is Status.DONE
    assert finding.annotation.voters == tuple(NAMES[1:])
    assert finding.annotation.note == "did not vote: ucsc-1-llama-extract (failed)"
    assert finding.annotation.spans[-1].prob == 0.5


def test_with_fewer_than_half_of_the_members_there_is_no_vote(
    model_server: ModelServer, five: Detector
) -> None:
    """A failed judgement is a state."""
    model_server.script(
        lambda ask: fail(402, "empty") if "4o" in ask.body["model"] else answers(ask)
    )
    said = detect(five).annotation
    assert (said.kind, said.status, said.spans) == (AnnotatorKind.VOTE, Status.FAILED, ())
    assert said.note is not None
    assert said.note.startswith("2 of 5 members finished, fewer than half: no vote")
    assert "ucsc-5-gpt4o-mini-revise: credits exhausted" in said.note


@pytest.mark.parametrize(
    ("done", "members", "votes"),
    [
        pytest.param(1, 1, True, id="one-of-one"),
        pytest.param(1, 2, True, id="just-half"),
        pytest.param(1, 3, False, id="a-third"),
        pytest.param(0, 2, False, id="nobody"),
    ],
)
def test_half_of_the_members_are_enough(done: int, members: int, votes: bool) -> None:
    said = [
        Annotation(annotator=f"m{number}", kind=AnnotatorKind.DETECTOR)
        if number < done
        else Annotation(
            annotator=f"m{number}", kind=AnnotatorKind.DETECTOR, status=Status.FAILED, note="broke"
        )
        for number in range(members)
    ]
    assert (tally("all", TOWER, said).status is Status.DONE) is votes


def test_members_are_replaced_by_a_file(
    model_server: ModelServer, settings: Settings, tmp_path: Path
) -> None:
    own = EnsembleSpec(
        name="anything",
        members=(
            DetectorSpec(detector="ucsc-extract", name="one", model=ModelChoice(model="a")),
            DetectorSpec(detector="ucsc-revise", name="two"),
        ),
    )
    path = tmp_path / "mine.json"
    path.write_text(own.model_dump_json(), encoding="utf-8")
    model_server.script(answers)
    (spec,) = specifications(DetectorSelection(detectors=("ucsc",), config=path))
    built = build(spec, Meter(), settings)
    finding = detect(built)
    assert [each.annotator for each in finding.annotations] == ["one", "two", "anything"]
    assert {ask.body["model"] for ask in model_server.requests} == {"a", "scripted-model"}


def test_one_model_can_take_every_member_s_place(
    model_server: ModelServer, settings: Settings
) -> None:
    model_server.script(answers)
    (spec,) = specifications(DetectorSelection(detectors=("ucsc",), model="mine"))
    built = build(spec, Meter(), settings)
    detect(built)
    assert {ask.body["model"] for ask in model_server.requests} == {"mine"}


def _wrong(record: Record) -> float:
    """Return the share of the answer that is wrong; the script's words for all of it are none."""
    return length(hard_of(record.annotations[0])) / len(record.item.answer)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_vote_of_noisy_members_correlates_better_than_the_best_of_them(
    lang: str, model_server: ModelServer, five: Detector, shared: Path
) -> None:
    """The direction that the paper reports; what answers here is gold with noise, no model."""
    path = shared / "mushroom" / "val" / f"mushroom.{lang}-val.v2.jsonl"
    with pytest.warns(UserWarning):
        records = [record for record in read(path) if 0 < _wrong(record) < 0.7][:24]
    noisy = GoldAnswers(records, noise=Noise.level(0.6), seed=3, member=by_prompt)
    model_server.script(noisy)

    async def all_at_once() -> list[Record]:
        slots = asyncio.Semaphore(8)

        async def one(item: Item) -> tuple[Annotation, ...]:
            async with slots:
                return (await five.detect(item)).annotations

        said = await asyncio.gather(*(one(record.item) for record in records))
        return [
            Record(item=record.item, annotations=(*record.annotations, *each))
            for record, each in zip(records, said, strict=True)
        ]

    annotated = asyncio.run(all_at_once())
    corr = {}
    for name in (*NAMES, "ucsc"):
        pairs = [(labels_of(each, "gold"), labels_of(each, name)) for each in annotated]
        corr[name] = score(pairs).macro.corr.mean
    assert corr["ucsc"] > max(corr[name] for name in NAMES), corr
