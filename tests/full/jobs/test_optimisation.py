"""An optimisation survives its worker: the same program, and no cached answer asked for again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from gold_answers import GoldAnswers, better_when_asked
from paid import again_after_kills, killed, put_away_for_all, signed
from working_jobs import SECONDS, key_of, wait_until, working

from optimizers.request import Optimisation, PromptSearch
from spanlab.base.errors import UsageError
from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec
from spanlab.formats import read
from spanlab.jobs import Jobs, JobState, JobView
from spanlab.models import ModelChoice
from spanlab.models.programs import ProgramRegistry
from spanlab.schema import Record, SearchTrial
from spanlab.storage import Store
from spanlab.testing import ModelServer, caller_with

THREADS = 4


@pytest.fixture(scope="module")
def records(samples: Path) -> list[Record]:
    """Ten samples with gold labels."""
    return [record for record in read(samples) if record.item.lang == "en"]


@pytest.fixture
def gold(records: list[Record]) -> Iterator[ModelServer]:
    """A model that rewards good prompts, 10 ms after it was asked."""
    script = signed(GoldAnswers(records, noise=better_when_asked()))
    with ModelServer(script, latency=0.01) as served:
        yield served


def _settings(home: Path, url: str | None = None) -> Settings:
    home.mkdir(exist_ok=True)
    url = url or f"sqlite:///{home / 'spanlab.db'}"
    return Settings(home=home, database_url=url)


def _submit(settings: Settings, model: ModelServer, records: list[Record], **more: object) -> str:
    with Store.open(settings) as store:
        if not store.datasets():
            store.import_records("d", records)
    choice = ModelChoice(model="scripted", base_url=model.url, retries=0)
    spec = DetectorSpec(detector="ucsc-extract", model=choice)
    fields = {"name": "tuned", "detector": spec, "threads": THREADS, "auto": None, "trials": 4}
    search = PromptSearch.model_validate(fields | more)
    return Jobs(settings).submit(Optimisation(dataset="d", search=search))


def _undisturbed(home: Path, model: ModelServer, records: list[Record]) -> Settings:
    settings = _settings(home)
    job_id = _submit(settings, model, records)
    with working(settings, "w"):
        assert Jobs(settings).store.wait(job_id, timeout=SECONDS).state is JobState.DONE
    return settings


def _repeated(model: ModelServer) -> int:
    return sum(count - 1 for count in Counter(model.fingerprints()).values())


def _asked(model: ModelServer, count: int) -> bool:
    return model.count >= count


def test_a_killed_search_ends_with_the_program_of_an_undisturbed_one(
    tmp_path: Path, gold: ModelServer, records: list[Record]
) -> None:
    quiet = _undisturbed(tmp_path / "quiet", gold, records)
    calls, rolled_anew = gold.count, _repeated(gold)  # some prompts are rolled more than once
    gold.requests.clear()
    settings = _settings(tmp_path / "killed")
    job_id = _submit(settings, gold, records)
    kills = []
    for share in (0.3, 0.7):
        with working(settings, "w") as process:
            wait_until(partial(_asked, gold, calls + int(share * calls)), f"{share:.0%} of calls")
            kills.append(killed(process, settings.home, gold))
    with working(settings, "w"):
        done = Jobs(settings).store.wait(job_id, timeout=SECONDS)
    assert done.state is JobState.DONE, done.error
    undisturbed, survived = (
        ProgramRegistry(each.programs).load("tuned") for each in (quiet, settings)
    )
    assert survived.predictors == undisturbed.predictors
    assert survived.held_out == undisturbed.held_out
    again = again_after_kills(gold, kills, settings.home)
    assert again.known == 0
    assert len(again) <= len(kills) * THREADS  # what was under way at each kill
    assert _repeated(gold) <= rolled_anew + len(again)
    assert done.progress.done == done.progress.total == 19  # 3 searches of 5, and 2 × 2 folds


def test_a_search_that_another_host_takes_up_pays_for_nothing_again(
    tmp_path: Path, gold: ModelServer, records: list[Record], shared_settings: Settings
) -> None:
    quiet = _settings(tmp_path / "quiet")
    job_id = _submit(quiet, gold, records, folds=0)
    with working(quiet, "w"):
        assert Jobs(quiet).store.wait(job_id, timeout=SECONDS).state is JobState.DONE
    calls, once = gold.count, Counter(gold.fingerprints())
    gold.requests.clear()
    gold.latency = 0.1
    first, second = (
        _settings(tmp_path / name, shared_settings.database_url) for name in ("first", "second")
    )
    job_id = _submit(first, gold, records, folds=0)
    with working(first, "first") as process:
        wait_until(partial(_asked, gold, calls + calls // 2), "half of the calls")
        process.kill()
        process.wait()
        known = put_away_for_all(first)
    with working(second, "second"):
        done = Jobs(second).store.wait(job_id, timeout=SECONDS)
    assert done.state is JobState.DONE, done.error
    assert ProgramRegistry(second.programs).load("tuned").predictors == (
        ProgramRegistry(quiet.programs).load("tuned").predictors
    )
    # Whatever was put away before the kill is not asked again.
    told = [ask for ask in gold.requests if ask.number in known]
    after = [ask for ask in gold.requests if ask.caller == caller_with(key_of("second"))]
    assert len(told) > 10
    assert Counter(ask.fingerprint for ask in [*told, *after]) <= once


def test_a_search_is_paused_and_resumed_and_its_curve_tells_the_way(
    tmp_path: Path, gold: ModelServer, records: list[Record]
) -> None:
    settings = _settings(tmp_path / "home")
    job_id = _submit(settings, gold, records)
    with working(settings, "w"):

        def tried() -> bool:
            return len(_trials(Jobs(settings).find(job_id))) >= 2

        wait_until(tried, "two trials")
        Jobs(settings).pause(job_id)
        wait_until(
            lambda: Jobs(settings).find(job_id).state is JobState.PAUSED, "the search to pause"
        )

        def counted() -> bool:
            return Jobs(settings).list()[0].progress.usage.calls == gold.count

        wait_until(counted, "every call to be counted, also those since the last trial")
        Jobs(settings).resume(job_id)
        done = Jobs(settings).store.wait(job_id, timeout=SECONDS)
    assert done.state is JobState.DONE, done.error
    assert [(t.fold, t.stage) for t in _trials(done)] == [
        *[(fold, stage) for fold in (1, 2) for stage in (*["search"] * 5, "baseline", "held-out")],
        *[(0, "search")] * 5,
    ]
    assert done.search is not None
    assert done.search.program == "tuned"
    best = done.search.best
    assert best is not None
    assert best.fold == 0
    assert best.score == max(t.score for t in _trials(done) if t.fold == 0)
    assert "wrong words" in done.search.untuned["extract"].instruction
    assert done.progress.usage.calls > 0
    remarks = [line.text for line in done.log]
    assert "searching on all 10 items" not in remarks[:1]
    assert any(text.startswith("fold 2: searching on") for text in remarks)

    calls = gold.count
    with pytest.raises(UsageError, match="'tuned' exists"):  # before anything is paid
        _submit(settings, gold, records)
    assert gold.count == calls


def test_a_cancelled_search_can_be_retried(
    tmp_path: Path, gold: ModelServer, records: list[Record]
) -> None:
    settings = _settings(tmp_path / "home")
    first = _submit(settings, gold, records)
    Jobs(settings).cancel(first)
    again = Jobs(settings).find(Jobs(settings).retry(first))
    assert again.state is JobState.QUEUED
    asked = Jobs(settings).find(first).request
    assert Optimisation.model_validate(again.request) == Optimisation.model_validate(asked)


def _trials(view: JobView) -> tuple[SearchTrial, ...]:
    return () if view.search is None else view.search.trials
