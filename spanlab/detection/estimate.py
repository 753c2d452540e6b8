"""Calls, tokens and money that a run will take, and what detectors ask for one item, at most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

from spanlab.base.errors import UsageError
from spanlab.detection.entry import INSTRUCTION, DetectorEntry, PromptSize, asks_models, entry_of
from spanlab.detection.request import RunRequest
from spanlab.detection.run import unfinished_positions
from spanlab.detection.spec import DetectorSpec, spec_of, specs_in
from spanlab.models import ModelChoice, count_tokens
from spanlab.output.figures import counted
from spanlab.schema import Item
from spanlab.search.spec import RetrieverSpec
from spanlab.storage import Store

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
        """Return the sum of two estimates."""
        is_priced = self.cost is not None and other.cost is not None
        names = ("items", "sampled", "calls", "input_tokens", "output_tokens", "searches")
        return RunEstimate(
            **{name: getattr(self, name) + getattr(other, name) for name in names},
            cost=(self.cost or 0.0) + (other.cost or 0.0) if is_priced else None,
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
        request: the request for the run.

    Returns:
        The estimate; all zeros if nothing is left to do, or no detector asks a model.

    Raises:
        NotFoundError: there is no such dataset, or an item named in the request is not in it.
        UsageError: no detector is called like one of the request.
    """
    todo = unfinished_positions(store, request)
    step = max(len(todo) / _SAMPLE, 1.0)
    asking = any(asks_models(spec.detector) for spec in request.specs)
    n_sampled = min(len(todo), _SAMPLE) if asking else 0
    places = [int(todo[int(at * step)]) for at in range(n_sampled)]
    items = [record.item for record in store.records_at(request.dataset, places)] if places else []
    return estimate_items(items, len(todo), request.specs)


def estimate_items(items: Sequence[Item], total: int, specs: Sequence[DetectorSpec]) -> RunEstimate:
    """Estimate the model calls of detectors on ``total`` items, from a sample of them.

    Args:
        items: the sample.
        total: number of all items.
        specs: the detectors.

    Raises:
        UsageError: no detector is called like one of these.
    """
    sums = _CallSums()
    for item in items:
        for call in demands_of(item, specs):
            sums.add(call)
    n_sampled = len(items) or 1

    def scaled(number: int) -> int:  # an upper bound stays one
        return ceil(number * total / n_sampled)

    return RunEstimate(
        items=total,
        sampled=len(items),
        calls=scaled(sums.calls),
        input_tokens=scaled(sums.asked),
        output_tokens=scaled(sums.answered),
        cost=None if sums.unpriced else sums.cost * total / n_sampled,
        unpriced=tuple(sums.unpriced),
        searches=scaled(sums.searches),
    )


_PASSAGE = 220  # tokens of a passage that is still to be found
_CLAIM = 28  # tokens of an answer that make one claim
_MOST_CLAIMS = 8  # of an answer, that are searched for
_TYPICAL = PromptSize(passages=600, question=20, answer=150)  # tokens of an answer of 110 words


class ModelDemand(NamedTuple):
    """Calls of one model (None: nothing names it); the tokens are those of all calls together.

    With ``searches`` it is searches of a search service instead, ``price`` dollars each.
    """

    model: ModelChoice | None
    number: int
    asked: int
    answered: int
    searches: int = 0
    price: float = 0.0

    def cost(self, shown: int = 1) -> float | None:
        """Return US dollars, None where no price is known; inputs are ``shown`` times as long."""
        if self.searches:
            return self.searches * self.price
        if self.model is None or self.model.price is None:
            return None
        return self.model.price.of(self.asked * shown, 0, self.answered)


def typical_cost(entry: DetectorEntry) -> str:
    """Say what a detector costs at most for an answer of 110 words with 450 words of passages."""
    spec = spec_of(entry.name)
    specs = specs_in(spec)
    calls = [
        call for member in specs for call in entry_of(member.detector).estimate(_TYPICAL, member)
    ]
    number = sum(call.number for call in calls)
    tokens = sum(call.number * (call.asked + call.answered) for call in calls)
    searches = sum(entry_of(member.detector).searches(_TYPICAL, member) for member in specs)
    if not number:
        return "no model call"
    words = f"up to {counted(number, 'model call')}, {ceil(tokens / 1000) * 1000:,} tokens"
    return f"{words}, {searches:,} searches" if searches else words


def demands_of(item: Item, specs: Sequence[DetectorSpec]) -> Iterator[ModelDemand]:
    """Yield the most calls that detectors make for an item, with those of their retrievers.

    Raises:
        UsageError: no detector is called like one of these.
    """
    asking = [spec for spec in specs if entry_of(spec.detector).asks_models]
    retrievers = {spec.retriever for spec in asking if spec.retriever is not None}
    for retriever in retrievers:  # what one detector fetched, the others read
        yield from retriever_demands(item, retriever)
    for spec in asking:
        # A question without an answer is for the detector's generator; the detector reads nothing.
        if item.answer or not entry_of(spec.detector).generator_prompts:
            yield from detector_demands(item, spec)


def detector_demands(item: Item, spec: DetectorSpec) -> Iterator[ModelDemand]:
    """Yield the most calls and searches that a detector makes for an item by itself.

    Those for the item's passages are not among them: they are its retriever's.

    Raises:
        UsageError: no detector is called so.
    """
    size, entry = _size(item, spec), entry_of(spec.detector)
    for calls in entry.estimate(size, spec):
        model, number = _model(spec, calls.role), calls.number
        yield ModelDemand(model, number, number * calls.asked, number * calls.answered)
    if spec.retriever is not None:
        yield from _search_demands(item, spec.retriever, entry.searches(size, spec))


def retriever_demands(item: Item, retriever: RetrieverSpec) -> Iterator[ModelDemand]:
    """Yield the most calls that a retriever makes for an item; none if it has its passages."""
    if retriever.kind == "given" or _seems_fetched(item, retriever):
        return
    question, answer = count_tokens(item.question), count_tokens(item.answer)
    queries = _queries(item, retriever)
    if retriever.queries == "claims":
        yield ModelDemand(retriever.writer, 1, INSTRUCTION + question + answer, 50 + answer)
    yield from _search_demands(item, retriever, queries)


def _search_demands(item: Item, retriever: RetrieverSpec, queries: int) -> Iterator[ModelDemand]:
    """Yield the calls and searches for a number of queries, with their translation."""
    if retriever.kind == "given" or not queries:
        return
    question = count_tokens(item.question)
    if retriever.translate:
        yield ModelDemand(
            retriever.writer, queries, queries * (INSTRUCTION + question), queries * 30
        )
    if retriever.kind == "web":
        yield ModelDemand(retriever.model, queries, queries * (50 + question), queries * 400)
    elif retriever.kind == "search":
        price = retriever.price()
        yield ModelDemand(None, number=0, asked=0, answered=0, searches=queries, price=price)


def _size(item: Item, spec: DetectorSpec) -> PromptSize:
    read = sum(count_tokens(passage.text) for passage in item.passages)
    source = spec.retriever
    if source is not None and source.kind != "given" and not _seems_fetched(item, source):
        read += _queries(item, source) * source.k * _PASSAGE
    passages = min(read, spec.context // 4)
    return PromptSize(passages, count_tokens(item.question), count_tokens(item.answer))


def _queries(item: Item, retriever: RetrieverSpec) -> int:
    """Return how many searches an item takes."""
    if retriever.kind == "given" or retriever.queries == "question":
        return 1
    return min(max(count_tokens(item.answer) // _CLAIM, 1), _MOST_CLAIMS)


def _seems_fetched(item: Item, retriever: RetrieverSpec) -> bool:
    """Say whether the item seems to have the passages of such a retriever already."""
    of_the_item = (retrieval for retrieval in item.retrievals if retrieval.query is None)
    return any(demand.retriever.startswith(retriever.kind) for demand in of_the_item)


def _model(spec: DetectorSpec, role: str) -> ModelChoice | None:
    try:
        return spec.choice(role)
    except UsageError:
        return None
