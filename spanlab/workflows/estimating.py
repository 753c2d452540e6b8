"""What a run of detectors will come to, before it starts: items, calls, tokens, money."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from spanlab.detectors.registry import DETECTORS
from spanlab.detectors.spec import DetectorSpec
from spanlab.errors import UsageError
from spanlab.lm import ModelChoice, count_tokens
from spanlab.retrievers import RetrieverSpec
from spanlab.schema import Item
from spanlab.workflows.running import unfinished_positions
from spanlab.workflows.runs import RunRequest

if TYPE_CHECKING:
    from spanlab.storage import Store

_SAMPLE = 200  # items that stand for all of them
_INSTRUCTION = 450  # tokens of an instruction with the form of the answer
_THINKING = 400  # tokens that a model thinks in, if it is asked to
_PASSAGE = 220  # tokens of a passage that is still to be found
_FACT = 14  # tokens of an answer that make one fact
_MOST_FACTS = 40
_ROUNDS = 2  # calls that check a fact


@dataclass(frozen=True)
class RunEstimate:
    """An upper estimate, not a bill: caches make it less.

    ``sampled`` of ``items`` were looked at. ``cost`` is in US dollars; None if it is unknown,
    because the models in ``unpriced`` have no price.
    """

    items: int
    sampled: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    unpriced: tuple[str, ...] = ()


class _Call(NamedTuple):
    """So many calls of one model; tokens are of all of them together."""

    model: ModelChoice | None
    number: int
    asked: int
    answered: int


@dataclass
class _Sums:
    calls: int = 0
    asked: int = 0
    answered: int = 0
    cost: float = 0.0
    unpriced: dict[str, None] = field(default_factory=dict)

    def add(self, call: _Call) -> None:
        self.calls += call.number
        self.asked += call.asked
        self.answered += call.answered
        if call.model is None or call.model.price is None:
            self.unpriced["a model" if call.model is None else call.model.model] = None
        else:
            self.cost += call.model.price.of(call.asked, 0, call.answered)


def estimate(store: Store, request: RunRequest) -> RunEstimate:
    """Estimate what a run will come to, from a sample of the items it leaves to be done.

    Args:
        store: the annotation database.
        request: what is asked for.

    Returns:
        The estimate; all zeros if nothing is left to do, or no detector asks a model.

    Raises:
        NotFoundError: there is no such dataset, or an item named in the request is not in it.
    """
    todo = unfinished_positions(store, request)
    step = max(len(todo) / _SAMPLE, 1.0)
    places = [int(todo[int(at * step)]) for at in range(min(len(todo), _SAMPLE))]
    sums = _Sums()
    items = [record.item for record in store.records_at(request.dataset, places)] if places else []
    for item in items:
        for call in _calls(item, request.specs):
            sums.add(call)
    share = len(todo) / len(items) if items else 0.0
    return RunEstimate(
        items=len(todo),
        sampled=len(items),
        calls=round(sums.calls * share),
        input_tokens=round(sums.asked * share),
        output_tokens=round(sums.answered * share),
        cost=None if sums.unpriced else sums.cost * share,
        unpriced=tuple(sums.unpriced),
    )


def _calls(item: Item, specs: Sequence[DetectorSpec]) -> Iterator[_Call]:
    asking = [spec for spec in specs if spec.detector not in DETECTORS]
    retrievers = {spec.retriever for spec in asking if spec.retriever is not None}
    for retriever in retrievers:  # what one detector fetched, the others read
        yield from _retrieving(item, retriever)
    for spec in asking:
        size = _Size.of(item, spec)
        yield from _DETECTING[spec.detector](size, _model(spec), spec.reasoning)


class _Size(NamedTuple):
    """Tokens of what a prompt shows of an item."""

    passages: int
    question: int
    answer: int

    @classmethod
    def of(cls, item: Item, spec: DetectorSpec) -> _Size:
        read = sum(count_tokens(passage.text) for passage in item.passages)
        if spec.retriever is not None and not _fetched(item, spec.retriever):
            read += spec.retriever.k * _PASSAGE
        return cls(
            min(read, spec.context // 4), count_tokens(item.question), count_tokens(item.answer)
        )

    @property
    def whole(self) -> int:
        """All of it, with the instruction."""
        return _INSTRUCTION + self.passages + self.question + self.answer


def _extract(size: _Size, model: ModelChoice | None, reasoning: bool) -> Iterable[_Call]:
    yield _Call(model, 1, size.whole, 60 + size.answer // 2 + reasoning * _THINKING)


def _revise(size: _Size, model: ModelChoice | None, reasoning: bool) -> Iterable[_Call]:
    yield _Call(model, 1, size.whole, 20 + size.answer + reasoning * _THINKING)


def _graph(size: _Size, model: ModelChoice | None, reasoning: bool) -> Iterable[_Call]:
    facts = min(max(size.answer // _FACT, 1), _MOST_FACTS)
    if size.passages:
        asked = _INSTRUCTION + size.passages + size.question
        yield _Call(model, 1, asked, min(size.passages, 2000))
    yield _Call(model, 1, _INSTRUCTION + size.question + size.answer, 50 + 3 * size.answer)
    checks = facts * (_ROUNDS if size.passages else 1)
    seen = _INSTRUCTION + size.question + min(size.passages, 600)
    yield _Call(model, checks, checks * seen, checks * (80 + reasoning * _THINKING))
    wrong = -(-facts // 3)
    yield _Call(model, wrong, wrong * (_INSTRUCTION + size.question + size.answer), wrong * 30)


_DETECTING = {"ucsc-extract": _extract, "ucsc-revise": _revise, "ucsc-kg": _graph}


def _retrieving(item: Item, retriever: RetrieverSpec) -> Iterator[_Call]:
    if retriever.kind == "given" or _fetched(item, retriever):
        return
    question, answer = count_tokens(item.question), count_tokens(item.answer)
    queries = 1
    if retriever.queries == "claims":
        queries = min(max(answer // (2 * _FACT), 1), 10)
        yield _Call(retriever.writer, 1, _INSTRUCTION + question + answer, 50 + answer)
    if retriever.translate:
        yield _Call(retriever.writer, queries, queries * (_INSTRUCTION + question), queries * 30)
    if retriever.kind == "web":
        yield _Call(retriever.model, queries, queries * (50 + question), queries * 400)


def _fetched(item: Item, retriever: RetrieverSpec) -> bool:
    """Say whether the item seems to have what such a retriever finds."""
    return any(each.retriever.startswith(retriever.kind) for each in item.retrievals)


def _model(spec: DetectorSpec) -> ModelChoice | None:
    if spec.model is not None:
        return spec.model
    try:
        return ModelChoice.read(role=spec.detector)
    except UsageError:
        return None
