"""Jobs from their submission to their end, with a real worker."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_encoders
from working_jobs import NOTHING, SECONDS, Process, fill, request, states, wait_until

from spanlab.base.errors import NotFoundError, UsageError
from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec
from spanlab.detection.request import RunRequest
from spanlab.jobs import Jobs, JobState, JobView, job_store
from spanlab.jobs.summary import progress_in_words, summary_of
from spanlab.jobs.views import KINDS
from spanlab.models import ModelChoice, TokenPrice
from spanlab.schema import Annotation, AnnotatorKind, Status
from spanlab.schema.progress import RunProgress
from spanlab.storage import Store
from spanlab.testing import ModelServer, fail, say, say_fields

Start = Callable[..., Process]


def test_a_job_is_queued_until_a_worker_does_it(
    settings: Settings, model: ModelServer, worker: Start
) -> None:
    fill(settings, 70)
    job_id = Jobs(settings).submit(request(model))
    waiting = Jobs(settings).find(job_id)
    assert (waiting.state, waiting.title) == (JobState.QUEUED, "ucsc-extract on d")
    assert waiting.progress.done == 0

    worker(settings)
    seen: list[JobView] = []
    done = Jobs(settings).store.wait(job_id, timeout=SECONDS, on_progress=seen.append)
    assert done.state is JobState.DONE
    assert (done.progress.done, done.progress.failed, done.progress.total) == (70, 0, 70)
    assert done.progress.usage.calls == 70
    assert done.started is not None
    assert done.ended is not None
    assert done.log[0].text == "w begins: 70 items in 3 parts"
    assert seen[-1] == done
    assert states(settings) == {Status.DONE: 70}
    assert model.busiest <= 8
    assert [view.id for view in Jobs(settings).list()] == [job_id]


def test_a_dataset_is_taken_up_where_a_detector_left_it(settings: Settings, worker: Start) -> None:
    fill(settings, 5)
    failed = Annotation(
        annotator="offline", kind=AnnotatorKind.DETECTOR, status=Status.FAILED, note="power cut"
    )
    with Store.open(settings) as store:
        store.save_annotations("d", [("i3", failed)])
    worker(settings)
    offline = DetectorSpec(detector="offline")
    first = RunRequest(dataset="d", detectors=(offline,), limit=2)
    for asked, done, left in (
        (first, 2, {Status.DONE: 2, Status.FAILED: 1, Status.NOT_ANNOTATED: 2}),
        (first.model_copy(update={"limit": None}), 3, {Status.DONE: 5}),
        (first.model_copy(update={"limit": None}), 0, {Status.DONE: 5}),
    ):
        view = Jobs(settings).store.wait(Jobs(settings).submit(asked), timeout=SECONDS)
        assert (view.state, view.progress.done) == (JobState.DONE, done)
        assert states(settings, "offline") == left


def test_failures_are_named_and_retried_alone(
    settings: Settings, model: ModelServer, worker: Start
) -> None:
    model.script(lambda ask: fail(400) if "Number 3 " in ask.text else say(NOTHING))
    fill(settings, 6)
    worker(settings)
    first = Jobs(settings).submit(request(model))
    done = Jobs(settings).store.wait(first, timeout=SECONDS)
    assert (done.state, done.progress.done, done.progress.failed) == (JobState.DONE, 6, 1)
    (failure,) = done.failures
    assert (failure.item_id, failure.detector) == ("i3", "ucsc-extract")
    assert failure.reason
    assert states(settings) == {Status.DONE: 5, Status.FAILED: 1}

    model.script(lambda ask: say(NOTHING))
    asked = model.count
    second = Jobs(settings).retry(first)
    done = Jobs(settings).store.wait(second, timeout=SECONDS)
    assert (done.progress.done, done.progress.failed) == (1, 0)
    assert model.count == asked + 1
    assert states(settings) == {Status.DONE: 6}


def test_a_job_is_paused_resumed_and_cancelled(
    settings: Settings, model: ModelServer, worker: Start
) -> None:
    model.latency = 0.4  # so much at work that it is not done before it is paused
    fill(settings, 80)
    worker(settings)
    job_id = Jobs(settings).submit(request(model))
    wait_until(lambda: model.count >= 16, "the first calls")
    Jobs(settings).pause(job_id)
    assert Jobs(settings).find(job_id).state is JobState.PAUSED
    with pytest.raises(UsageError, match="paused"):
        Jobs(settings).pause(job_id)

    Jobs(settings).resume(job_id)
    wait_until(lambda: model.count >= 32, "the calls after the pause")
    Jobs(settings).cancel(job_id)
    assert Jobs(settings).find(job_id).state is JobState.CANCELLED
    with pytest.raises(UsageError, match="cancelled"):
        Jobs(settings).cancel(job_id)

    Jobs(settings).resume(job_id)
    done = Jobs(settings).store.wait(job_id, timeout=SECONDS)
    assert (done.state, done.progress.done) == (JobState.DONE, 80)
    assert [line.text for line in done.log[1:]] == ["paused", "resumed", "cancelled", "resumed"]
    assert states(settings) == {Status.DONE: 80}
    assert set(Counter(model.fingerprints()).values()) == {1}


def test_a_stopped_job_is_listed_with_all_that_was_done_and_paid(
    where: Settings, model: ModelServer, worker: Start
) -> None:
    """Calls that are under way when it is stopped end after the job has told how far it is."""
    model.latency = 2.0  # longer than it takes to stop it
    fill(where, 48)
    worker(where)
    asked = request(model, concurrency=48)
    (spec,) = asked.specs
    assert spec.model is not None
    priced = spec.model.model_copy(update={"price": TokenPrice.parse("1000,1000,1000")})
    specs = (spec.model_copy(update={"model": priced}),)
    job_id = Jobs(where).submit(asked.model_copy(update={"detectors": specs}))
    wait_until(lambda: model.count == 48, "all calls to be under way")
    Jobs(where).cancel(job_id)

    def all_told() -> bool:
        return Jobs(where).find(job_id).progress.done == 48

    wait_until(all_told, "the answers to what was asked")
    (listed,) = Jobs(where).list()
    assert (listed.state, listed.progress.usage.calls) == (JobState.CANCELLED, 48)
    assert listed.progress == Jobs(where).find(job_id).progress
    assert states(where)[Status.DONE] == 48
    row = summary_of(listed)
    assert (row["Done"], row["Cost"][:1]) == ("48 of 48", "$")


def test_a_job_that_an_earlier_version_paused_is_paused_cancelled_and_resumed(
    settings: Settings, model: ModelServer
) -> None:
    fill(settings, 1)
    job_id = Jobs(settings).submit(request(model))
    Jobs(settings).pause(job_id)
    job_store.shared_job_store(settings).set_attributes(job_id, stop=None, wish="pause")
    assert Jobs(settings).find(job_id).state is JobState.PAUSED
    Jobs(settings).cancel(job_id)
    assert Jobs(settings).find(job_id).state is JobState.CANCELLED
    Jobs(settings).resume(job_id)
    assert Jobs(settings).find(job_id).state is JobState.QUEUED


def test_a_budget_ends_a_job_cleanly(settings: Settings, model: ModelServer, worker: Start) -> None:
    fill(settings, 100)
    worker(settings)
    job_id = Jobs(settings).submit(request(model, budget={"calls": 10}))
    done = Jobs(settings).store.wait(job_id, timeout=SECONDS)
    assert (done.state, done.progress.done, done.progress.failed) == (JobState.DONE, 10, 0)
    assert done.progress.stopped is not None
    assert "10 calls" in done.progress.stopped
    assert model.count == 10
    assert states(settings) == {Status.DONE: 10, Status.NOT_ANNOTATED: 90}


@pytest.mark.parametrize(
    ("where", "limit", "calls"),
    [
        pytest.param("settings", {"calls": 90}, 90, id="calls"),
        # Which limit it is, is a value in the database's table: one tells whether it counts.
        pytest.param("shared_settings", {"cost": 0.5}, 100, id="cost-postgresql"),
    ],
    indirect=["where"],
)
def test_workers_spend_one_budget_together(
    where: Settings, model: ModelServer, worker: Start, limit: dict[str, float], calls: int
) -> None:
    """One of them is killed midway; what it had spent stays spent when the job goes on."""
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    model.script(lambda ask: say(NOTHING, usage=usage))
    fill(where, 200)
    price = TokenPrice(input=200.0, cached=200.0, output=600.0)
    choice = ModelChoice(model="scripted", base_url=model.url, retries=0, price=price)
    spec = DetectorSpec(detector="ucsc-extract", model=choice)
    job_id = Jobs(where).submit(request(model, detectors=(spec,), budget=limit))
    first = worker(where, "first")
    wait_until(lambda: model.count >= 20, "some calls")
    first.kill()
    first.wait()
    worker(where, "second")
    worker(where, "third")
    done = Jobs(where).store.wait(job_id, timeout=SECONDS)
    assert done.state is JobState.DONE
    assert done.progress.stopped is not None
    assert "is used up" in done.progress.stopped
    assert calls - 20 <= model.count <= calls


def test_first_calls_do_not_pass_a_budget_of_money(
    settings: Settings, model: ModelServer, worker: Start
) -> None:
    """Nothing is known of a price before the first answer: the others wait for it."""
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    model.script(lambda ask: say(NOTHING, usage=usage) if ask.number else fail(500))
    fill(settings, 100)
    price = TokenPrice(input=200.0, cached=200.0, output=600.0)
    choice = ModelChoice(model="scripted", base_url=model.url, retries=0, price=price)
    spec = DetectorSpec(detector="ucsc-extract", model=choice)
    asked = request(model, detectors=(spec,), budget={"cost": 0.01}, concurrency=16)
    job_id = Jobs(settings).submit(asked)
    worker(settings)
    done = Jobs(settings).store.wait(job_id, timeout=SECONDS)
    assert done.progress.stopped is not None
    assert model.count == 1 + 2  # the one that failed cost nothing


def test_half_an_emoji_in_an_answer_is_replaced_and_breaks_nothing(
    where: Settings, model: ModelServer, worker: Start
) -> None:
    """Models that count bytes cut emojis in half; PostgreSQL refuses NUL in what jobs say, too."""
    raw = say_fields(parts=[{"text": "Number 1", "reason": "half \ud83d, \0", "probability": 0.9}])
    escaped = "[[ ## parts ## ]]\n" + r'[{"text": "Number 2 \ud83d", "reason": "\udc00"}]'
    replies = [say(NOTHING), raw, say(f"{escaped}\n\n[[ ## completed ## ]]"), fail(400, "\ud83d\0")]
    model.script(lambda ask: next(replies[n] for n in range(4) if f"Number {n} " in ask.text))
    fill(where, 4)
    worker(where)
    done = Jobs(where).store.wait(Jobs(where).submit(request(model)), timeout=SECONDS)
    assert (done.state, done.progress.done, done.progress.failed) == (JobState.DONE, 4, 1)
    assert "\ufffd" in done.failures[0].reason
    assert states(where) == {Status.DONE: 3, Status.FAILED: 1}
    with Store.open(where) as store:
        first, second = (store.record("d", f"i{n}").by("ucsc-extract") for n in (1, 2))
    assert first is not None
    assert second is not None
    found = [(span.text, span.note) for span in (*first.spans, *second.spans)]
    assert found == [("Number 1", "half \ufffd, \0"), ("Number 2", "\ufffd")]


def test_a_job_that_cannot_be_done_says_why(
    settings: Settings, model: ModelServer, worker: Start
) -> None:
    fill(settings, 3)
    wrong = request(model)
    (spec,) = wrong.specs
    tuned = wrong.model_copy(
        update={"detectors": (spec.model_copy(update={"program": "no-such-program"}),)}
    )
    job_id = Jobs(settings).submit(tuned)
    worker(settings)
    broken = Jobs(settings).store.wait(job_id, timeout=SECONDS)
    assert broken.state is JobState.FAILED
    assert broken.error is not None
    assert "no-such-program" in broken.error


def test_items_on_which_a_tokenizer_panics_fail_and_the_job_comes_to_its_end(
    settings: Settings, worker: Start, tmp_path: Path
) -> None:
    """A panic of Rust is no Exception, and would leave the job "queued" for ever."""
    folder = tiny_encoders.write(tmp_path / "model")
    tokenizer = folder / "tokenizer.json"
    rules = {"type": "FixedLength", "length": 0}
    tokenizer.write_text(json.dumps(json.loads(tokenizer.read_text()) | {"pre_tokenizer": rules}))
    fill(settings, 3)
    worker(settings)
    spec = DetectorSpec(detector="encoder", options={"model": str(folder)})
    job_id = Jobs(settings).submit(RunRequest(dataset="d", detectors=(spec,)))
    done = Jobs(settings).store.wait(job_id, timeout=SECONDS)
    assert (done.state, done.progress.done, done.progress.failed) == (JobState.DONE, 3, 3)
    assert "the tokenizer broke: PanicException" in done.failures[0].reason


def test_a_key_that_is_wrong_from_some_moment_on_ends_the_job_and_a_retry_goes_on(
    settings: Settings, model: ModelServer, worker: Start
) -> None:
    model.script(lambda ask: say(NOTHING) if ask.number < 40 else fail(401, "revoked"))
    fill(settings, 120)
    worker(settings)
    first = Jobs(settings).submit(request(model))
    failed = Jobs(settings).store.wait(first, timeout=SECONDS)
    assert failed.state is JobState.FAILED
    assert failed.error is not None
    assert "revoked" in failed.error
    assert failed.failures == ()
    assert states(settings) == {Status.DONE: 40, Status.NOT_ANNOTATED: 80}
    assert model.count < 40 + 2 * 8  # those that were under way

    model.script(lambda ask: say(NOTHING))
    done = Jobs(settings).store.wait(Jobs(settings).retry(first), timeout=SECONDS)
    assert (done.state, done.progress.done) == (JobState.DONE, 80)
    assert states(settings) == {Status.DONE: 120}


def test_a_wrong_request_is_refused_at_once(settings: Settings, model: ModelServer) -> None:
    with pytest.raises(NotFoundError, match="no dataset named 'd'"):
        Jobs(settings).submit(request(model))
    assert Jobs(settings).list() == []
    with pytest.raises(NotFoundError, match="there is no job 'abc'"):
        Jobs(settings).find("abc")


def test_jobs_are_listed_newest_first_page_by_page(settings: Settings, model: ModelServer) -> None:
    fill(settings, 1)
    ids = [Jobs(settings).submit(request(model), again=True) for _ in range(5)]
    pages = [Jobs(settings).list(2, page) for page in range(4)]
    assert [len(page) for page in pages] == [2, 2, 1, 0]
    assert {view.id for page in pages for view in page} == set(ids)
    assert Jobs(settings).find(ids[3][:7]).id == ids[3]


def test_a_job_of_a_kind_that_nobody_offers_any_more_is_listed_and_left_alone(
    settings: Settings, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(settings, 1)
    jobs = Jobs(settings)
    job_id = jobs.submit(request(model))
    monkeypatch.delitem(KINDS, "detect")
    (view,) = jobs.list()
    assert (view.kind, view.title) == ("spanlab.detect", "ucsc-extract on d")
    assert jobs.find(job_id[:7]).id == job_id
    jobs.store.report(job_id, RunProgress(total=1))
    assert progress_in_words(jobs.find(job_id)) == "0 of 1 item"
    with pytest.raises(UsageError, match=r"of the kind spanlab\.detect, which nothing here does"):
        jobs.resume(job_id)
    jobs.cancel(job_id)
    with pytest.raises(UsageError, match="which nothing here does"):
        jobs.retry(job_id)
    assert jobs.find(job_id).state is JobState.CANCELLED
