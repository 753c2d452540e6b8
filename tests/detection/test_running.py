"""Many items under way at once: what is saved, what fails, what stops a run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from spanlab.base.errors import BudgetError, NotFoundError, SpanlabError, UsageError
from spanlab.detection import (
    Detector,
    DetectorResult,
    DetectorSpec,
    LocalDetector,
    as_detector,
    spec_of,
)
from spanlab.detection.building import detector
from spanlab.detection.ensemble import Ensemble, EnsembleVote
from spanlab.detection.request import RunRequest, check
from spanlab.detection.run import DatasetRun, ItemBatch, unfinished_positions
from spanlab.schema import (
    LABEL_SETS,
    Annotation,
    AnnotatorKind,
    Item,
    Passage,
    Record,
    Span,
    SpanLabel,
    Status,
)
from spanlab.schema.progress import FailedItem
from spanlab.storage import Store


@dataclass
class Asking:
    """A detector that waits a moment, finds a passage, and marks the first letter."""

    name: str = "asking"
    broken: Sequence[str] = ()
    calls: int | None = None  # after so many the budget is spent
    seconds: float = 0.001
    under_way: int = 0
    busiest: int = 0
    seen: list[str] = field(default_factory=list)

    async def detect(self, item: Item) -> DetectorResult:
        if self.calls is not None and len(self.seen) >= self.calls:
            raise BudgetError("the budget of calls is used up")
        self.seen.append(item.id)
        self.under_way += 1
        self.busiest = max(self.busiest, self.under_way)
        await asyncio.sleep(self.seconds)
        self.under_way -= 1
        if item.id in self.broken:
            raise SpanlabError(f"cannot read {item.id}")
        said = Annotation(
            annotator=self.name, kind=AnnotatorKind.DETECTOR, spans=(Span.of(item.answer, 0, 1),)
        )
        found = item.model_copy(update={"passages": (Passage(text=f"about {item.id}"),)})
        return DetectorResult(said, found)


@dataclass
class Simple:
    """A detector that asks no model."""

    name: str = "simple"

    def annotate(self, item: Item) -> Annotation:
        return Annotation(annotator=self.name, kind=AnnotatorKind.DETECTOR)


@pytest.fixture
def store(store: Store) -> Store:
    store.import_records("d", records(40))
    return store


def records(count: int) -> list[Record]:
    return [
        Record(item=Item(id=f"i{n}", lang="en", question="Which?", answer=f"Number {n} it is."))
        for n in range(count)
    ]


def run(
    store: Store,
    *workers: Detector | LocalDetector,
    positions: Sequence[int] = range(40),
    at_once: int = 8,
    votes: Sequence[EnsembleVote] = (),
    retry_failed: bool = True,
    given_up: Sequence[str] = (),
) -> DatasetRun:
    async def go() -> DatasetRun:
        job = ItemBatch("d", positions, retry_failed, given_up)
        ensemble = Ensemble([as_detector(each) for each in workers], votes, at_once)
        made = DatasetRun(store, ensemble, job, at_once)
        await made.finish()
        return made

    return asyncio.run(go())


def states(store: Store, name: str) -> list[Status | None]:
    said = [record.by(name) for record in store.records("d")]
    return [None if each is None else each.status for each in said]


def test_every_item_is_annotated_once_with_what_was_found_for_it(store: Store) -> None:
    asking = Asking()
    done = run(store, asking)
    assert (done.done, done.failed, done.stopped) == (40, 0, None)
    assert sorted(asking.seen) == sorted(f"i{n}" for n in range(40))
    assert states(store, "asking") == [Status.DONE] * 40
    assert store.record("d", "i7").item.passages == (Passage(text="about i7"),)


def test_no_more_items_are_under_way_than_there_are_slots(store: Store) -> None:
    asking = Asking()
    run(store, asking, at_once=5)
    assert asking.busiest == 5


def test_one_failure_is_one_items_failure_and_is_retried_alone(store: Store) -> None:
    """A failed judgement is a state with a reason, and the others go on."""
    done = run(store, Asking(broken=["i3", "i9"]))
    assert (done.done, done.failed) == (40, 2)
    assert sorted(done.failures, key=lambda failure: failure.item_id) == [
        FailedItem("i3", "asking", "cannot read i3"),
        FailedItem("i9", "asking", "cannot read i9"),
    ]
    again = Asking()
    run(store, again)
    assert sorted(again.seen) == ["i3", "i9"]
    assert states(store, "asking") == [Status.DONE] * 40


def test_what_failed_in_the_same_work_before_is_not_asked_again(store: Store) -> None:
    run(store, Asking(broken=["i3", "i9"]))
    again = Asking()
    run(store, again, given_up=["i3"])
    assert again.seen == ["i9"]
    third = Asking()
    run(store, third, retry_failed=False)
    assert third.seen == []


def test_an_unforeseen_error_ends_no_run(store: Store) -> None:
    class Odd(Asking):
        async def detect(self, item: Item) -> DetectorResult:
            raise KeyError("tag")

    done = run(store, Odd(name="odd"), positions=[0, 1])
    assert done.failed == 2
    said = store.record("d", "i0").by("odd")
    assert said is not None
    assert said.note == "KeyError: 'tag'"


def test_what_cannot_be_stored_fails_its_item_and_no_other(store: Store) -> None:
    class Careless(Asking):
        async def detect(self, item: Item) -> DetectorResult:
            finding = await super().detect(item)
            said = finding.annotation.model_copy(update={"spans": (Span.of("xyz", 0, 1),)})
            if item.id == "i3":  # quotes what is not there
                return DetectorResult(said, item)
            if item.id == "i9":  # has judged another answer than the one that is stored
                return DetectorResult(said, item.model_copy(update={"answer": "xyz"}))
            return finding

    done = run(store, Careless())
    assert (done.done, done.failed) == (40, 2)
    assert states(store, "asking").count(Status.DONE) == 38


@pytest.mark.system("offline")
@pytest.mark.parametrize(
    ("own", "stored"),
    [(None, "wrong number"), ((), None), (LABEL_SETS["RAGTruth"], None)],
    ids=["usual", "none", "others"],
)
def test_a_dataset_with_labels_of_its_own_gets_none_of_the_usual(
    store: Store, own: tuple[SpanLabel, ...] | None, stored: str | None
) -> None:
    if own is not None:
        store.change_settings("d", lambda now: now.model_copy(update={"labels": own}))
    tall = Passage(text="The tower is 58 metres tall.")
    item = Item(id="tall", lang="en", answer="The tower is 85 metres tall.", passages=(tall,))
    store.import_records("d", [Record(item=item)])
    run(store, detector("offline"), positions=[40])
    annotation = store.record("d", "tall").by("offline")
    assert annotation is not None
    assert {span.label for span in annotation.spans if "85" in span.text} == {stored}


@pytest.mark.parametrize("replaced", [False, True], ids=["deleted", "replaced"])
def test_a_dataset_that_goes_while_it_is_annotated_takes_nothing_of_another(
    store: Store, replaced: bool
) -> None:
    """Items go with their dataset, and there may be another one of that name at once.

    Without one the run ends and names it. With one, what was judged before is another's: an item of
    that id is failed with the reason, and stays open for a retry. Later items are read as they are.
    """

    class Late(Asking):
        async def detect(self, item: Item) -> DetectorResult:
            finding = await super().detect(item)
            if item.id == "i0":
                store.delete_dataset("d")
                if replaced:
                    others = [each.item.model_copy(update={"answer": "X."}) for each in records(40)]
                    store.import_records("d", [Record(item=each) for each in others])
            return finding

    if not replaced:
        with pytest.raises(NotFoundError, match="'d'"):
            run(store, Late())
        return
    done = run(store, Late())
    assert done.failed > 0
    assert all("another answer" in failure.reason for failure in done.failures)
    for record in store.records("d"):
        said = record.by("asking")
        assert said is not None
        assert said.status is Status.FAILED or said.spans[0].text == "X"


def test_a_spent_budget_leaves_the_rest_not_annotated(store: Store) -> None:
    done = run(store, Asking(calls=10), at_once=4)
    assert done.done == 10
    assert done.stopped == "the budget of calls is used up"
    assert states(store, "asking").count(Status.DONE) == 10
    assert states(store, "asking").count(None) == 30


def test_detectors_that_ask_no_model_run_beside_those_that_do(store: Store) -> None:
    run(store, Asking(), Simple())
    assert states(store, "simple") == states(store, "asking") == [Status.DONE] * 40


def test_a_vote_is_cast_when_all_its_voters_have_come_to_an_end(store: Store) -> None:
    both = EnsembleVote("both", ("asking", "simple"))
    run(store, Asking(broken=["i1"]), Simple(), positions=[0, 1], votes=[both])
    voted = store.record("d", "i0").by("both")
    assert voted is not None
    assert [(span.start, span.end, span.prob) for span in voted.spans] == [(0, 1, 0.5)]
    without = store.record("d", "i1").by("both")
    assert without is not None
    assert (without.voters, without.note) == (("simple",), "did not vote: asking (failed)")
    run(store, Asking(), Simple(), positions=[0, 1], votes=[both])
    again = store.record("d", "i1").by("both")
    assert again is not None
    assert again.voters == ("asking", "simple")


def test_a_vote_that_most_voters_failed_fails_with_the_reasons(store: Store) -> None:
    vote = EnsembleVote("few", ("asking", "other", "simple"))
    three = (Asking(broken=["i0"]), Asking(name="other", broken=["i0"]), Simple())
    run(store, *three, positions=[0], votes=[vote])
    failed = store.record("d", "i0").by("few")
    assert failed is not None
    assert failed.status is Status.FAILED
    assert failed.note is not None
    assert failed.note.startswith("1 of 3 members finished, fewer than half: no vote (asking: ")


def test_a_run_ends_when_it_is_told_to_and_goes_on_where_it_was(store: Store) -> None:
    asking = Asking()

    async def go() -> DatasetRun:
        made = DatasetRun(
            store,
            Ensemble([asking]),
            ItemBatch("d", range(40)),
            4,
            lambda: "enough" if len(asking.seen) >= 12 else None,
        )
        await made.finish()
        return made

    stopped = asyncio.run(go())
    assert stopped.stopped == "enough"
    assert stopped.done == len(asking.seen) < 40
    rest = Asking()
    run(store, rest)
    assert sorted(asking.seen + rest.seen) == sorted(f"i{n}" for n in range(40))


def test_what_the_database_refuses_ends_the_run_with_its_reason(store: Store) -> None:
    gold = Annotation(annotator="asking", kind=AnnotatorKind.GOLD)
    store.save_annotations("d", [("i30", gold)])
    with pytest.raises(SpanlabError, match="asking"):
        run(store, Asking())


def test_calls_under_way_come_to_their_end_though_the_database_refuses(store: Store) -> None:
    gold = Annotation(annotator="asking", kind=AnnotatorKind.GOLD)
    store.save_annotations("d", [(f"i{n}", gold) for n in range(8)])
    asking = Asking(seconds=0.4)
    with pytest.raises(SpanlabError, match="asking"):
        run(store, asking)
    assert len(asking.seen) < 40
    assert asking.under_way == 0  # they are paid: their answers are in the cache by now


def test_what_is_left_is_what_any_annotator_has_not_finished(store: Store) -> None:
    run(store, Asking(broken=["i4"]), positions=range(10))
    run(store, Simple(), positions=range(5))
    specs = (DetectorSpec(detector="asking"), DetectorSpec(detector="simple"))
    request = RunRequest(dataset="d", detectors=specs)

    def left(**changes: object) -> list[int]:
        found = unfinished_positions(store, request.model_copy(update=changes))
        return [int(position) for position in found]

    assert left() == [4, *range(5, 40)]
    assert left(retry_failed=False) == list(range(5, 40))
    assert left(limit=2) == [4, 5]
    assert left(items=("i20", "i1", "i4")) == [4, 20]
    assert left(detectors=specs[:1]) == [4, *range(10, 40)]
    with pytest.raises(NotFoundError, match="i99"):
        left(items=("i99",))


@pytest.mark.system("offline")
@pytest.mark.system("ucsc")
def test_a_request_is_refused_before_anything_is_done(store: Store) -> None:
    run(store, Simple(name="offline"), positions=[0])
    check(store, RunRequest.of(dataset="d", detectors=[spec_of("offline")]))
    with pytest.raises(UsageError, match="ucsc-extract"):
        check(store, RunRequest.of(dataset="d", detectors=[DetectorSpec(detector="ucsc-extrac")]))
    with pytest.raises(UsageError, match="'offline' is a detector"):
        check(
            store, RunRequest.of(dataset="d", detectors=[spec_of("ucsc-extract")], vote="offline")
        )
    with pytest.raises(UsageError, match="already exists"):
        RunRequest.of(dataset="d", detectors=[spec_of("ucsc-extract"), spec_of("ucsc-extract")])
    with pytest.raises(NotFoundError, match="nowhere"):
        check(store, RunRequest.of(dataset="nowhere", detectors=[spec_of("offline")]))


@pytest.mark.system("ucsc")
def test_an_ensemble_is_its_members_and_their_vote() -> None:
    request = RunRequest.of(dataset="d", detectors=[spec_of("ucsc")])
    assert len(request.specs) == 5
    assert request.votes == (EnsembleVote("ucsc", tuple(spec.signs for spec in request.specs)),)
    assert request.annotators == (*(spec.signs for spec in request.specs), "ucsc")
    assert RunRequest.model_validate(request.model_dump(mode="json")) == request


@pytest.mark.system("offline")
@pytest.mark.system("ucsc")
def test_concurrency_is_that_of_a_network_or_of_a_processor() -> None:
    for name, at_once in (("offline", 1), ("ucsc-extract", 32)):
        assert RunRequest(dataset="d", detectors=(spec_of(name),)).at_once == at_once
    assert RunRequest(dataset="d", detectors=(spec_of("offline"),), concurrency=2).at_once == 2
