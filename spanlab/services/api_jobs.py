"""Detections of many answers at once for the JSON API: each is a durable job on its own dataset."""

from __future__ import annotations

from secrets import token_hex
from typing import Annotated, Final

from pydantic import Field

from spanlab import jobs
from spanlab.errors import NotFoundError, UsageError
from spanlab.fields import Frozen
from spanlab.jobs import JobState, JobView
from spanlab.redaction import redact
from spanlab.schema import Kind, Record
from spanlab.services.offers import Answer, DetectionReply, DetectorName, Offers, reply_of
from spanlab.settings import Settings
from spanlab.storage import DatasetSummary, Store
from spanlab.workflows.requesting import request_of

MOST: Final = 100  # results of a page
_OPEN: Final = 100  # jobs that may be under way
_DATASET: Final = "api-"  # before a job's id: what its dataset is called


class JobRequest(Frozen):
    """Answers to look for hallucinated spans in; without ``detector`` by the first one offered."""

    answers: Annotated[tuple[Answer, ...], Field(min_length=1, max_length=10_000)]
    detector: DetectorName | None = None


class ApiJob(Frozen):
    """How far a job is: ``done`` answers of ``total``, ``failed`` of these without a result."""

    id: str
    state: JobState
    done: int
    failed: int
    total: int
    error: str | None = None


class JobResults(Frozen):
    """Results in the order of the answers, null where there is none yet.

    ``next`` is where the next page starts, null after the last one.
    """

    results: tuple[DetectionReply | None, ...]
    next: int | None = None


class ApiJobs:
    """The jobs that were started through the API, and no others.

    They lie in the database, so that they outlive the process, any worker may do them, and people
    can review what was found: a job's dataset is called ``api-`` and its id.

    Args:
        store: the annotation database.
        offers: whose detectors work.
        settings: which database the jobs are in; None reads the environment.
    """

    def __init__(self, store: Store, offers: Offers, settings: Settings | None = None) -> None:
        self._store, self._offers, self._settings = store, offers, settings

    def start(self, asked: JobRequest) -> ApiJob:
        """Queue a job.

        Raises:
            UsageError: the detector is not offered, or too many jobs are under way.
        """
        spec = self._offers.spec(asked.detector)
        if sum(not view.is_over for view in jobs.jobs(_OPEN, settings=self._settings)) >= _OPEN:
            raise UsageError(f"{_OPEN} jobs are under way: wait until one has ended")
        job_id = token_hex(8)
        dataset = _DATASET + job_id
        items = (each.item(str(number)) for number, each in enumerate(asked.answers))
        self._store.import_records(dataset, (Record(item=item) for item in items))
        jobs.submit_detection(request_of(dataset, [spec]), self._settings, job_id)
        return self.get(job_id)

    def get(self, job_id: str) -> ApiJob:
        """Return how far a job is.

        Raises:
            NotFoundError: the API has no such job.
        """
        dataset = self._dataset(job_id)
        return _shown(jobs.job(job_id, self._settings), dataset)

    def newest(self) -> tuple[ApiJob, ...]:
        """Return the jobs that are not forgotten, the newest first, a hundred at most."""
        datasets = {each.name: each for each in self._store.datasets()}
        views = jobs.jobs(MOST, settings=self._settings)
        return tuple(
            _shown(view, datasets[_DATASET + view.id])
            for view in views
            if _DATASET + view.id in datasets
        )

    def results(self, job_id: str, start: int = 0) -> JobResults:
        """Return a page of what was found so far.

        Raises:
            NotFoundError: the API has no such job.
        """
        dataset = self._dataset(job_id)
        stop = min(start + MOST, dataset.n_items)
        records = self._store.records_at(dataset.name, range(start, stop))
        return JobResults(
            results=tuple(map(_found, records)), next=stop if stop < dataset.n_items else None
        )

    def stop(self, job_id: str) -> None:
        """End a job; one that is over is forgotten, with its answers and results.

        Raises:
            NotFoundError: the API has no such job.
        """
        dataset = self._dataset(job_id)
        if jobs.job(job_id, self._settings).is_over:
            self._store.delete_dataset(dataset.name)
        else:
            jobs.cancel(job_id, self._settings)

    def _dataset(self, job_id: str) -> DatasetSummary:
        name = _DATASET + job_id
        found = next((each for each in self._store.datasets() if each.name == name), None)
        if found is None:
            raise NotFoundError(f"there is no job {job_id!r}")
        return found


def _shown(view: JobView, dataset: DatasetSummary) -> ApiJob:
    return ApiJob(
        id=view.id,
        state=view.state,
        done=view.progress.done,
        failed=view.progress.failed,
        total=dataset.n_items,
        error=None if view.error is None else redact(view.error),
    )


def _found(record: Record) -> DetectionReply | None:
    said = next((each for each in record.annotations if each.kind is Kind.DETECTOR), None)
    return None if said is None else reply_of(said, record.item)
