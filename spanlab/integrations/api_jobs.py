"""Detections of many answers at once for the JSON API: each is a durable job on its own dataset."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from secrets import token_hex
from threading import Lock
from typing import Annotated, Any, Final

from pydantic import Field, field_validator
from starlette.exceptions import HTTPException

from spanlab.base.errors import NotFoundError, UsageError
from spanlab.base.fields import FrozenModel
from spanlab.base.redaction import redact
from spanlab.base.settings import Settings
from spanlab.detection.request import RunRequest
from spanlab.integrations.offers import (
    DetectionReply,
    DetectorName,
    SentFields,
    ServiceOffers,
    SubmittedAnswer,
    reply_of,
)
from spanlab.jobs import Jobs, JobState, JobView
from spanlab.measure.rate_tally import rates
from spanlab.output.tables import flat_rows
from spanlab.schema import Actor, AnnotatorKind, Record
from spanlab.storage import Store, api_jobs
from spanlab.storage.api_jobs import StoredJob

MOST: Final = 100  # results of a page
RETRY: Final = {"Retry-After": "5"}  # seconds, of a request that may be sent again
_OPEN: Final = 100  # jobs that may be under way
_DATASET: Final = "api-"  # before a job's id: what its dataset is called at first
_ID: Final = re.compile("[0-9a-f]{16}(?:[0-9a-f]{16})?")  # the shorter ones are of earlier versions
_GONE: Final = "the answers and results of this job were deleted"
_KEPT: Final = "forgotten; people have worked on its answers, so that these stay with them"


class JobRequest(SentFields):
    """Answers to look for hallucinated spans in; without ``detector`` by the first one offered.

    An answer without an id is called by its place, from 0.
    """

    answers: Annotated[tuple[SubmittedAnswer, ...], Field(min_length=1, max_length=10_000)]
    detector: DetectorName | None = None

    @field_validator("answers")
    @classmethod
    def _ids_differ(cls, answers: tuple[SubmittedAnswer, ...]) -> tuple[SubmittedAnswer, ...]:
        ids = Counter(answer.id or str(number) for number, answer in enumerate(answers))
        if twice := [name for name, times in ids.items() if times > 1]:
            raise ValueError(f"two of them have the id {twice[0]!r}")
        return answers


class ApiJob(FrozenModel):
    """How far a job is: ``done`` answers of ``total``, ``failed`` of these without a result."""

    id: str
    state: JobState
    done: int
    failed: int
    total: int
    error: str | None = None


class JobResults(FrozenModel):
    """Results in the order of the answers, null where there is none yet.

    ``next`` is where the next page starts, null after the last one.
    """

    results: tuple[DetectionReply | None, ...]
    next: int | None = None


class JobTable(FrozenModel):
    """Figures under their title, a row with columns by name; remarks say what they do not."""

    title: str
    rows: list[dict[str, Any]]
    remarks: tuple[str, ...]


class JobRates(FrozenModel):
    """What was marked by language, which is no rate, and first the measured rate if there is one.

    ``is_raw`` says that there is none.
    """

    is_raw: bool
    tables: tuple[JobTable, ...]


class StopReply(FrozenModel):
    """What is left of a job that was forgotten."""

    kept: str


class ApiJobs:
    """The jobs that were started through the API, and no others.

    They lie in the database, so that they outlive the process, any worker may do them, and people
    can review what was found: each job owns the dataset that was made for it, whatever people call
    that. A job is what has a row in both databases, by its whole id.

    Args:
        store: the annotation database.
        offers: whose detectors work.
        settings: which database the jobs are in; None reads the environment.
    """

    def __init__(
        self, store: Store, offers: ServiceOffers, settings: Settings | None = None
    ) -> None:
        self.store, self._offers, self._jobs = store, offers, Jobs(settings)
        self._lock, self._starting = Lock(), set[str]()  # shared by those who act

    def acting_as(self, actor: Actor) -> ApiJobs:
        """Return the same jobs, of which an actor sees only what their roles allow."""
        bound = copy(self)
        bound.store = self.store.acting_as(actor)
        return bound

    def start(self, request: JobRequest) -> ApiJob:
        """Store the answers as a dataset of their own, and queue a job that detects in them.

        Raises:
            NotOfferedError: the detector is not offered.
            HTTPException: too many jobs are under way.
        """
        spec = self._offers.spec(request.detector)
        job_id = token_hex(16)
        with self._counted_as_starting(job_id):
            dataset = _DATASET + job_id
            items = (answer.item(str(number)) for number, answer in enumerate(request.answers))
            self.store.import_records(dataset, (Record(item=item) for item in items))
            api_jobs.enter(self.store, job_id, dataset)
            try:
                self._jobs.submit(RunRequest(dataset=dataset, detectors=(spec,)), job_id=job_id)
            except BaseException:
                api_jobs.forget(self.store, job_id)
                raise
        return self.get(job_id)

    @contextmanager
    def _counted_as_starting(self, job_id: str) -> Iterator[None]:
        """Count a job that is being started, and refuse it if too many are under way."""
        with self._lock:
            queued = api_jobs.find(self.store, self._jobs.store.under_way())
            if len(self._starting.union(each.id for each in queued)) >= _OPEN:
                words = f"{_OPEN} jobs are under way: wait until one has ended"
                raise HTTPException(429, words, RETRY)
            self._starting.add(job_id)
        try:
            yield
        finally:
            with self._lock:
                self._starting.discard(job_id)

    def get(self, job_id: str) -> ApiJob:
        """Return the state and progress of a job.

        Raises:
            NotFoundError: the API has no such job.
        """
        stored, view = self._job(job_id)
        return _api_job(stored, view)

    def newest(self) -> tuple[ApiJob, ...]:
        """Return the jobs that are not forgotten, the newest first, a hundred at most."""
        stored_jobs = api_jobs.find(self.store, limit=MOST)
        views = self._jobs.store.jobs_by_id([stored_job.id for stored_job in stored_jobs])
        return tuple(
            _api_job(stored_job, views[stored_job.id])
            for stored_job in stored_jobs
            if stored_job.id in views and _is_of_api(views[stored_job.id])
        )

    def results(self, job_id: str, start: int = 0) -> JobResults:
        """Return a page of results: what the detector found in at most 100 answers.

        Args:
            job_id: the job's id.
            start: number of the page's first answer, from 0.

        Raises:
            NotFoundError: the API has no such job, or its results were deleted.
        """
        stored, _ = self._job(job_id)
        stop = min(start + MOST, stored.total)
        try:
            records = self.store.records_at(stored.dataset or "", range(start, stop))
        except NotFoundError:  # its message names the datasets of others
            raise NotFoundError(_GONE) from None
        return JobResults(
            results=tuple(map(_reply, records)), next=stop if stop < stored.total else None
        )

    def rates(self, job_id: str) -> JobRates:
        """Return how much was marked so far, and the rate where people have measured it.

        Raises:
            NotFoundError: the API has no such job, or its results were deleted.
            HTTPException: nothing was found yet.
        """
        stored, view = self._job(job_id)
        if stored.dataset is None:
            raise NotFoundError(_GONE)
        (name,) = RunRequest.model_validate(view.request).annotators
        try:
            job_rates = rates(self.store, stored.dataset, "lang", [name])
        except (NotFoundError, UsageError) as error:  # its message names the dataset
            raise HTTPException(409, "nothing was found for this job yet") from error
        tables = [*job_rates.corrected, job_rates.tables()[-1 if not job_rates.pairs else -2]]
        of_dataset = f" of {stored.dataset}"  # a name that people may have given
        return JobRates(
            is_raw=not job_rates.corrected,
            tables=tuple(
                JobTable(
                    title=table.title.replace(of_dataset, ""),
                    rows=flat_rows(table),
                    remarks=table.remarks,
                )
                for table in tables
            ),
        )

    def stop(self, job_id: str) -> ApiJob | StopReply | None:
        """End a job; one that is over is forgotten, with its answers and results.

        What people have worked on stays with them, as a dataset of theirs.

        Returns:
            The job that is ended; what stays of one that is forgotten, None for nothing.

        Raises:
            NotFoundError: the API has no such job.
        """
        stored, view = self._job(job_id)
        if not view.is_over:
            with suppress(UsageError):  # it came to its end in this moment
                self._jobs.cancel(job_id)
            return self.get(job_id)
        if api_jobs.forget(self.store, job_id) and stored.dataset is not None:
            return StopReply(kept=_KEPT)
        return None

    def _job(self, job_id: str) -> tuple[StoredJob, JobView]:
        stored = _ID.fullmatch(job_id) and api_jobs.find(self.store, [job_id])
        view = self._jobs.store.jobs_by_id([job_id]).get(job_id) if stored else None
        if not stored or view is None or not _is_of_api(view):
            raise NotFoundError("there is no such job")
        return stored[0], view


def _is_of_api(view: JobView) -> bool:
    """Say whether a job was asked for by the API: people do not choose the ids of theirs."""
    return view.request is not None and view.request["dataset"] == _DATASET + view.id


def _api_job(stored: StoredJob, view: JobView) -> ApiJob:
    error = _GONE if stored.dataset is None else view.error
    return ApiJob(
        id=view.id,
        state=view.state,
        done=view.progress.done,
        failed=view.progress.failed,
        total=stored.total,
        error=None if error is None else redact(error),
    )


def _reply(record: Record) -> DetectionReply | None:
    annotation = next((a for a in record.annotations if a.kind is AnnotatorKind.DETECTOR), None)
    if annotation is None:
        return None
    return reply_of(annotation, record.item).model_copy(update={"id": record.item.id})
