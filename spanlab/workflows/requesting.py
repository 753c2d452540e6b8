"""The request for a run, and whether it can be met, before anything is queued."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from spanlab.detectors import Spec, entry_of
from spanlab.errors import UsageError
from spanlab.lm import Budget
from spanlab.schema import Kind, Status
from spanlab.workflows.choosing import Choice, specifications
from spanlab.workflows.lookup import summary_of
from spanlab.workflows.runs import CONCURRENCY, RunRequest

if TYPE_CHECKING:
    from spanlab.storage import Store


_PAGE = 1000  # ids read at once


@dataclass(frozen=True)
class RunForm:
    """The form of a run, filled in; see ``RunRequest`` and ``Budget``.

    ``only_failed`` takes up nothing but items that one of the detectors failed on. ``item`` is the
    id of the only one to do, also if the detectors have finished it.
    """

    dataset: str
    choice: Choice = field(default_factory=Choice)
    concurrency: int | None = None
    limit: int | None = None
    only_failed: bool = False
    budget_calls: int | None = None
    budget_tokens: int | None = None
    budget_cost: float | None = None
    budget_searches: int | None = None
    rate: float | None = None
    vote: str = ""
    item: str | None = None


def requested(store: Store, form: RunForm, environ: Mapping[str, str] = os.environ) -> RunRequest:
    """Return the request that a filled-in form amounts to.

    Args:
        store: the annotation database, asked for the items that failed.
        form: what was filled in.
        environ: names models and endpoints where the form does not.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: something is missing or cannot be meant so; says what would be right.
    """
    request = request_of(
        form.dataset,
        specifications(form.choice, environ),
        vote=form.vote.strip() or None,
        concurrency=form.concurrency,
        limit=form.limit,
        budget=budget_of(
            form.budget_calls, form.budget_cost, form.budget_tokens, form.budget_searches
        ),
        rate=form.rate,
        items=None if form.item is None else (form.item,),
        again=form.item is not None,
    )
    return _of_failed(store, request) if form.only_failed else request


def budget_of(
    calls: int | None,
    cost: float | None = None,
    tokens: int | None = None,
    searches: int | None = None,
) -> Budget | None:
    """Return the budget of model calls and searches; None without any limit."""
    budget = Budget(calls=calls, tokens=tokens, cost=cost, searches=searches)
    return None if budget == Budget() else budget


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


def usual_concurrency(detectors: Iterable[str]) -> int:
    """Return how many items are under way at once if nobody says how many.

    Args:
        detectors: names of detectors and ensembles.
    """
    entries = (entry_of(name) for name in detectors)
    return CONCURRENCY if any(each.asks_models or each.batches for each in entries) else 1


def problem(error: ValidationError) -> str:
    """Return in one clause what is wrong with a request, without its values."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


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
        ours = Kind.VOTE if name in votes else Kind.DETECTOR
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
