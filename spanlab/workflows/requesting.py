"""The request for a run, and whether it can be met, before anything is queued."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from spanlab.detectors import Spec, entry_of
from spanlab.errors import UsageError
from spanlab.options import option, problem
from spanlab.schema import AnnotatorKind, Name, Status
from spanlab.workflows.choosing import DetectorSelection, specifications
from spanlab.workflows.datasets import summary_of
from spanlab.workflows.runs import CONCURRENCY, RunLimits, RunRequest

if TYPE_CHECKING:
    from spanlab.storage import Store


_PAGE = 1000  # ids read at once


class RunOptions(RunLimits, DetectorSelection):
    """What people set of a run: the detectors, how much they do, and what it may come to."""

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
        help="Those on which one of these detectors failed before.",
        group="Limits",
    )
    again: bool = option(
        False,
        title="Again",
        help="Also what is done, and also if a job under way does the same.",
        sides=("command", "python"),
    )


def requested(
    store: Store, dataset: str, options: RunOptions, environ: Mapping[str, str] = os.environ
) -> RunRequest:
    """Return the request that options amount to.

    Args:
        store: the annotation database, asked for the items that failed.
        dataset: its name.
        options: what was set.
        environ: names models and endpoints where the options do not.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: something is missing or cannot be meant so; says what would be right.
    """
    limits = {name: getattr(options, name) for name in RunLimits.model_fields}
    request = request_of(
        dataset,
        specifications(options, environ),
        items=options.items or None,
        again=options.again or bool(options.items),
        **limits,
    )
    return _of_failed(store, request) if options.only_failed else request


def request_of(dataset: str, detectors: Sequence[Spec], **options: object) -> RunRequest:
    """Return the request for a run.

    Args:
        dataset: its name.
        detectors: what to run.
        **options: further fields of ``RunRequest``; None leaves a field to its default. Detectors
            that ask no model compute, one item at once if nobody says how many, unless they are
            quicker with many.

    Raises:
        UsageError: the fields do not go together.
    """
    given = {name: value for name, value in options.items() if value is not None}
    fields = {"dataset": dataset, "detectors": tuple(detectors), **given}
    try:
        request = RunRequest.model_validate(fields)
    except ValidationError as error:
        raise UsageError(problem(error)) from None
    if "concurrency" in given:
        return request
    usual = usual_concurrency(each.detector for each in request.specs)
    return request.model_copy(update={"concurrency": usual})


def check_without_dataset(options: RunLimits) -> None:
    """Refuse what only a run over a dataset can do, for files and for records in memory.

    Raises:
        UsageError: names the option, and what would be right.
    """
    instead = {"vote": "for files: spanlab vote", "again": "files are annotated anew each time"}
    for name in ("vote", "rate", "items", "again", "only_failed"):
        if getattr(options, name, None):
            flag = f"--{name.replace('items', 'item').replace('_', '-')}"
            raise UsageError(
                f"{flag} is for a dataset: {instead.get(name, 'import the files first')}"
            )


def usual_concurrency(detectors: Iterable[str]) -> int:
    """Return how many items are under way at once if nobody says how many.

    Args:
        detectors: names of detectors and ensembles.
    """
    entries = (entry_of(name) for name in detectors)
    return CONCURRENCY if any(each.asks_models or each.batches for each in entries) else 1


def check(store: Store, request: RunRequest) -> None:
    """Check a run's dataset, detectors and names.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: no detector is called like that, or somebody else in the dataset has a name
            under which the run would sign.
    """
    for spec in request.specs:
        entry_of(spec.detector)  # says so if there is none
    votes = {vote.name for vote in request.votes}
    kinds = {each.name: each.kind for each in summary_of(store, request.dataset).annotators}
    for name in request.annotators:
        ours = AnnotatorKind.VOTE if name in votes else AnnotatorKind.DETECTOR
        if kinds.get(name, ours) is not ours:
            raise UsageError(
                f"{name!r} is a {kinds[name]} in {request.dataset!r}: sign with another name"
            )


def _of_failed(store: Store, request: RunRequest) -> RunRequest:
    failed: dict[str, None] = {}
    for spec in request.specs:
        failed |= dict.fromkeys(_failed_ids(store, request.dataset, spec.signs))
    if not failed:
        raise UsageError("none of these detectors failed on an item of this dataset")
    return request.model_copy(update={"items": tuple(failed)})


def _failed_ids(store: Store, dataset: str, annotator: str) -> list[str]:
    from spanlab.schema import QueueQuery

    query = QueueQuery(reviewer=annotator, status=Status.FAILED, limit=_PAGE)
    page = store.page(dataset, query)
    ids = [row.item_id for row in page.rows]
    while page.next is not None:
        page = store.page(dataset, replace(query, after=page.next))
        ids += [row.item_id for row in page.rows]
    return ids
