"""The request for a run: its options and limits, and checks that they can be met."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final, Self

from pydantic import Field, model_validator

from spanlab.base.errors import UsageError
from spanlab.base.options import option
from spanlab.detection import asks_models, build, entry_of, spec_of, specs_in
from spanlab.detection.common.label_options import OF_DATASET, as_text
from spanlab.detection.ensemble import Ensemble, EnsembleVote
from spanlab.detection.selection import DetectorSelection, repeat_detectors
from spanlab.detection.spec import DetectorSpec, EnsembleSpec, Spec
from spanlab.detection.specifications import specifications
from spanlab.models import Meter
from spanlab.output.notices import event_sender
from spanlab.schema import AnnotatorKind, Name, QueueQuery, Status, unique
from spanlab.schema.job_request import JobRequest
from spanlab.schema.usage import CallLimits

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from spanlab.base.settings import Settings
    from spanlab.storage import Store


CONCURRENCY = 32  # items annotated at once, unless a request says otherwise
AHEAD = 4  # times as many items are begun as are under way: a slow one holds up nobody behind it


class RunLimits(CallLimits):
    """The limits of a run: how many items, at what pace and at what cost."""

    limit: int | None = option(
        None,
        title="Maximum items",
        help="At most this many items.",
        group="Limits",
        placeholder="no limit",
        ge=1,
    )
    concurrency: int | None = option(
        None,
        title="Concurrent items",
        help="Items worked on at once (default 32). For offline: number of processes (default 1).",
        group="Limits",
        ge=1,
        le=1024,
    )
    vote: Name | None = option(
        None,
        title="Vote of these detectors (optional)",
        help="Also make a vote of these detectors, under this name: the share that marks each "
        "character.",
        group="Limits",
        placeholder="name of the vote",
    )
    events: bool = option(
        False,
        title="Send events",
        help="Send each result as an event gen_ai.evaluation.result to the collector of "
        "OpenTelemetry that OTEL_EXPORTER_OTLP_ENDPOINT names: scores, offsets and notes.",
        sides=("command", "python"),
    )


class RunRequest(JobRequest, RunLimits):
    """Which detectors are to annotate which items of a dataset.

    Of an ensemble every member annotates, and its vote is cast. ``vote`` names a vote of all
    detectors of the run. ``rate`` counts the calls of all workers and repeated attempts together;
    jobs keep it, runs that are none do not. ``dataset`` is empty for files and records in memory,
    whose runs are no jobs. ``retry_failed`` takes up items on which a detector failed before.
    ``items`` are the ids to do (None: all that are not finished); ``again`` does those also, and
    without ``items`` all that there are.
    """

    kind = "detect"
    dataset: Name = ""
    detectors: Annotated[tuple[Spec, ...], Field(min_length=1)]
    retry_failed: bool = True
    items: tuple[Name, ...] | None = None
    again: bool = False

    @model_validator(mode="after")
    def _everyone_signs_differently(self) -> Self:
        unique(self.annotators, "annotator")
        return self

    @property
    def title(self) -> str:
        """The detectors, and the dataset."""
        return f"{', '.join(spec.signs for spec in self.detectors)} on {self.dataset}"

    def prepared(self, settings: Settings) -> RunRequest:
        """Return the request if its dataset can be annotated so; see ``check``."""
        from spanlab.storage import Store  # with the database: files are run without

        with Store.open(settings) as store:
            check(store, self)
        return self.model_copy(update={"concurrency": self.at_once})

    @property
    def at_once(self) -> int:
        """How many items each worker has under way at once."""
        return self.concurrency or usual_concurrency(spec.detector for spec in self.specs)

    @property
    def specs(self) -> tuple[DetectorSpec, ...]:
        """The detectors, ensembles taken apart."""
        return tuple(detector for spec in self.detectors for detector in specs_in(spec))

    @property
    def votes(self) -> tuple[EnsembleVote, ...]:
        """The votes to cast: those of the ensembles, and the run's own."""
        votes = [
            EnsembleVote(spec.name, tuple(member.signs for member in spec.members))
            for spec in self.detectors
            if isinstance(spec, EnsembleSpec)
        ]
        if self.vote is not None:
            votes.append(EnsembleVote(self.vote, tuple(spec.signs for spec in self.specs)))
        return tuple(votes)

    @property
    def annotators(self) -> tuple[str, ...]:
        """The names under which a run stores annotations: detectors, then votes."""
        signed = (spec.signs for spec in self.specs)
        return (*signed, *(vote.name for vote in self.votes))


def ensemble_of(
    request: RunRequest, meter: Meter, settings: Settings, executor: Executor | None = None
) -> Ensemble:
    """Build the detectors of a request, which may load models and take seconds.

    Args:
        request: which detectors and votes, and how many at once.
        meter: counts the model calls and stops them at its budget.
        settings: where answers of models are cached and tuned prompts lie.
        executor: does the work of detectors that ask no model; None takes a thread.

    Raises:
        UsageError: a detector cannot be built as it was asked for.
    """
    built = [build(spec, meter, settings, executor) for spec in request.specs]
    report = event_sender() if request.events else None
    # Where nobody asks a model the executor bounds what is computed at once; it has more at hand.
    local = not any(asks_models(spec.detector) for spec in request.specs)
    at_once = AHEAD * request.at_once if local else request.at_once
    return Ensemble(built, request.votes, at_once, report)


_PAGE = 1000  # ids read at once


class RunOptions(RunLimits, DetectorSelection):
    """The options of a run that people set: detectors, items and limits."""

    items: tuple[Name, ...] = option(
        (),
        title="Only these items",
        help="Only this item of a dataset, also if it is finished. Repeatable.",
        flags="--item",
        sides=("command", "python"),
    )
    only_failed: bool = option(
        False,
        title="Only items that failed",
        help="Only items on which one of these detectors failed before.",
        group="Limits",
    )
    repeats: int = option(
        1,
        title="Runs",
        help="Run each detector this many times with different seeds, as NAME, NAME-2, …. A "
        "certificate then says how consistent it is.",
        sides=("command", "python"),
        ge=1,
        le=20,
    )
    again: bool = option(
        False,
        title="Again",
        help="Run finished items again, even if a running job does the same.",
        sides=("command", "python"),
    )


def request_with_options(
    store: Store, dataset: str, options: RunOptions, environ: Mapping[str, str] = os.environ
) -> RunRequest:
    """Return the request for a run with the given options.

    Args:
        store: the annotation database, asked for the items that failed.
        dataset: the dataset's name.
        options: the options that people set.
        environ: environment variables, which name models and endpoints where the options do not.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: something is missing or cannot be meant so; says what would be right.
    """
    from spanlab.detection.fits import options_with_fits  # with the database, as above

    own = dict(options.options)
    if own.get("labels") == OF_DATASET:
        own["labels"] = as_text(store.settings(dataset).labels)
    own = options_with_fits(store, dataset, _detectors_of(options.detectors), own)
    options = options.model_copy(update={"options": own})
    request = RunRequest.of(
        options,
        dataset=dataset,
        detectors=repeat_detectors(specifications(options, environ), options.repeats),
        items=options.items or None,
        again=options.again or bool(options.items),
    )
    return _only_failed_items(store, request) if options.only_failed else request


def _detectors_of(names: Iterable[str]) -> Iterable[str]:
    """Return detectors and the members of ensembles, each once."""
    return dict.fromkeys(spec.detector for name in names for spec in specs_in(spec_of(name)))


# Of these a run over files or records in memory has none; behind the flag of one that is set.
FOR_A_DATASET: Final = dict.fromkeys(
    ("vote", "rate", "items", "again", "only_failed", "repeats"),
    "is for a dataset: import the files first",
) | {
    "vote": "is for a dataset: for files: spanlab vote",
    "again": "is for a dataset: files are annotated again each time",
}


def usual_concurrency(detectors: Iterable[str]) -> int:
    """Return how many items are under way at once by default.

    That is 1 where no detector asks models or works in batches: these compute.

    Args:
        detectors: names of detectors and ensembles.
    """
    entries = (entry_of(name) for name in detectors)
    return CONCURRENCY if any(entry.asks_models or entry.batches for entry in entries) else 1


def check(store: Store, request: RunRequest) -> None:
    """Check a run's dataset, detectors and names.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: no detector is called like that, or somebody else in the dataset has a name
            under which the run would sign; or it is a version.
    """
    from spanlab.storage.datasets import summary_of  # with the database: files are run without

    for spec in request.specs:
        entry_of(spec.detector)  # says so if there is none
    votes = {vote.name for vote in request.votes}
    summary = summary_of(store, request.dataset)
    if summary.digest is not None:
        raise UsageError(f"{request.dataset!r} is a version, which never changes: duplicate it")
    kinds = summary.kinds
    for name in request.annotators:
        kind = AnnotatorKind.VOTE if name in votes else AnnotatorKind.DETECTOR
        if kinds.get(name, kind) is not kind:
            raise UsageError(
                f"{name!r} is a {kinds[name]} in {request.dataset!r}: sign with another name"
            )


def _only_failed_items(store: Store, request: RunRequest) -> RunRequest:
    failed: dict[str, None] = {}
    for spec in request.specs:
        failed |= dict.fromkeys(_failed_ids(store, request.dataset, spec.signs))
    if not failed:
        raise UsageError("none of these detectors failed on an item of this dataset")
    return request.model_copy(update={"items": tuple(failed)})


def _failed_ids(store: Store, dataset: str, annotator: str) -> list[str]:
    query = QueueQuery(reviewer=annotator, status=Status.FAILED, limit=_PAGE)
    from spanlab.worklists import paging  # which loads the database's library

    page = paging.page(store, dataset, query)
    ids = [row.item_id for row in page.rows]
    while page.next is not None:
        page = paging.page(store, dataset, replace(query, after=page.next))
        ids += [row.item_id for row in page.rows]
    return ids
