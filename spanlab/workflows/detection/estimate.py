"""Calls, tokens and money that a run will take."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spanlab.detectors.costs import ModelDemand, asked_of
from spanlab.detectors.spec import DetectorSpec
from spanlab.storage import Store
from spanlab.workflows.detection.dataset_run import unfinished_positions
from spanlab.workflows.detection.request import RunRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spanlab.schema import Item


_SAMPLE = 200  # items from which the estimate is made


@dataclass(frozen=True)
class RunEstimate:
    """An upper estimate, not a bill: caches make it less.

    ``sampled`` of ``items`` were looked at. ``cost`` is in US dollars; None if it is unknown,
    because the models in ``unpriced`` have no price. ``searches`` are those of search services.
    """

    items: int
    sampled: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    unpriced: tuple[str, ...] = ()
    searches: int = 0

    def __add__(self, other: RunEstimate) -> RunEstimate:
        """Return what both come to together."""
        known = self.cost is not None and other.cost is not None
        names = ("items", "sampled", "calls", "input_tokens", "output_tokens", "searches")
        return RunEstimate(
            **{name: getattr(self, name) + getattr(other, name) for name in names},
            cost=(self.cost or 0.0) + (other.cost or 0.0) if known else None,
            unpriced=tuple(dict.fromkeys((*self.unpriced, *other.unpriced))),
        )


@dataclass
class _CallSums:
    calls: int = 0
    asked: int = 0
    answered: int = 0
    searches: int = 0
    cost: float = 0.0
    unpriced: dict[str, None] = field(default_factory=dict)

    def add(self, call: ModelDemand) -> None:
        self.calls += call.number
        self.asked += call.asked
        self.answered += call.answered
        self.searches += call.searches
        cost = call.cost()
        if cost is None:
            self.unpriced["a model" if call.model is None else call.model.model] = None
        else:
            self.cost += cost


def estimate(store: Store, request: RunRequest) -> RunEstimate:
    """Estimate items, calls, searches, tokens and cost, from a sample of the items left to do.

    Args:
        store: the annotation database.
        request: what is asked for.

    Returns:
        The estimate; all zeros if nothing is left to do, or no detector asks a model.

    Raises:
        NotFoundError: there is no such dataset, or an item named in the request is not in it.
        UsageError: no detector is called like one of the request.
    """
    todo = unfinished_positions(store, request)
    step = max(len(todo) / _SAMPLE, 1.0)
    places = [int(todo[int(at * step)]) for at in range(min(len(todo), _SAMPLE))]
    items = [record.item for record in store.records_at(request.dataset, places)] if places else []
    return estimate_items(items, len(todo), request.specs)


def estimate_items(items: Sequence[Item], total: int, specs: Sequence[DetectorSpec]) -> RunEstimate:
    """Estimate what detectors ask of models for ``total`` items, from some of them.

    Raises:
        UsageError: no detector is called like one of these.
    """
    sums = _CallSums()
    for item in items:
        for call in asked_of(item, specs):
            sums.add(call)
    share = total / len(items) if items else 0.0
    return RunEstimate(
        items=total,
        sampled=len(items),
        calls=round(sums.calls * share),
        input_tokens=round(sums.asked * share),
        output_tokens=round(sums.answered * share),
        cost=None if sums.unpriced else sums.cost * share,
        unpriced=tuple(sums.unpriced),
        searches=round(sums.searches * share),
    )
