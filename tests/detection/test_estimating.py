"""What a run will come to, before it starts."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from spanlab.base.errors import UsageError
from spanlab.detection import DetectorSpec
from spanlab.detection.estimate import RunEstimate, estimate
from spanlab.detection.request import RunOptions, RunRequest, request_with_options
from spanlab.schema import Annotation, AnnotatorKind, Item, Passage, Record, Retrieval
from spanlab.search.source import PassageSource
from spanlab.storage import Store

pytestmark = pytest.mark.system("ucsc")

HERE = {"SPANLAB_MODEL": "small", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}


def items(
    count: int,
    *,
    answer: str = "a" * 400,
    retrieved: str | None = None,
    query: str | None = None,
) -> list[Record]:
    """Items whose passage has 1,000 tokens, question 10 and answer 100, at 4 letters a token."""
    passages = (Passage(text="p" * 4000),)
    found = (
        () if retrieved is None else (Retrieval(retriever=retrieved, passages=(0,), query=query),)
    )
    return [
        Record(
            item=Item(
                id=f"i{number}", question="q" * 40, answer=answer, passages=passages,
                retrievals=found,
            )
        )
        for number in range(count)
    ]  # fmt: skip


def of(store: Store, dataset: str, options: RunOptions) -> RunEstimate:
    return estimate(store, request_with_options(store, dataset, options, HERE))


def test_one_call_an_item_with_instruction_passages_question_and_answer(
    store: Store,
) -> None:
    store.import_records("set", items(3))
    found = of(store, "set", RunOptions(detectors=("ucsc-extract",), price="1,1,10"))
    assert (found.items, found.sampled, found.calls) == (3, 3, 3)
    assert found.input_tokens == 3 * (450 + 1000 + 10 + 100)
    assert found.output_tokens == 3 * (30 + 50)
    # 4,680 tokens at a dollar a million and 240 at ten
    assert found.cost == pytest.approx(0.004680 + 0.002400)
    assert found.unpriced == ()


def test_without_a_price_the_cost_is_unknown_and_says_whose(store: Store) -> None:
    store.import_records("set", items(1))
    found = of(store, "set", RunOptions(detectors=("ucsc-revise",)))
    assert found.cost is None
    assert found.unpriced == ("small",)


def test_a_graph_takes_calls_for_each_fact(store: Store) -> None:
    store.import_records("set", items(1))
    # 100 tokens are 7 facts: a graph, the list of facts, 4 checks each, and the words of each
    assert of(store, "set", RunOptions(detectors=("ucsc-kg",))).calls == 1 + 1 + 4 * 7 + 7


@pytest.mark.system("safe")
def test_a_question_without_an_answer_has_no_steps_to_verify(store: Store) -> None:
    store.import_records("set", items(1))
    assert of(store, "set", RunOptions(detectors=("safe",))).calls == 3
    store.import_records("questions", items(1, answer=""))
    assert of(store, "questions", RunOptions(detectors=("safe",))).calls == 0


@pytest.mark.system("offline")
def test_what_is_done_or_needs_no_model_costs_nothing(store: Store) -> None:
    done = Annotation(annotator="ucsc-extract", kind=AnnotatorKind.DETECTOR)
    first, second = items(2)
    store.import_records("set", [Record(item=first.item, annotations=(done,)), second])
    assert of(store, "set", RunOptions(detectors=("ucsc-extract",))).items == 1
    found = of(store, "set", RunOptions(detectors=("offline",)))
    assert (found.items, found.calls, found.cost) == (2, 0, 0.0)


def test_a_search_is_paid_once_however_many_read_it_and_never_again(store: Store) -> None:
    store.import_records("new", items(1))
    store.import_records("known", items(1, retrieved="web:sonar-pro"))
    both, search = ("ucsc-extract", "ucsc-revise"), PassageSource(kind="web", model="sonar-pro")
    assert of(store, "new", RunOptions(detectors=both, passages=search)).calls == 1 + 2
    assert of(store, "known", RunOptions(detectors=both, passages=search)).calls == 2
    store.import_records("hopped", items(1, retrieved="web:sonar-pro", query="another question"))
    assert of(store, "hopped", RunOptions(detectors=both, passages=search)).calls == 1 + 2


def test_searches_are_estimated_with_their_price(store: Store) -> None:
    store.import_records("set", items(2))
    search = PassageSource(kind="brave")
    searched = RunOptions(detectors=("ucsc-extract",), price="0,0,0", passages=search)
    found = of(store, "set", searched)
    assert (found.calls, found.searches) == (2, 2)
    assert found.cost == pytest.approx(0.01)


@pytest.mark.system("papelo")
def test_searches_of_a_claim_are_estimated_beside_the_items_own(store: Store) -> None:
    """A claim, five questions, each searched for twice at most."""
    store.import_records("set", items(2))
    search = PassageSource(kind="brave")
    options: dict[str, JsonValue] = {"claims": "answer"}
    hunt = RunOptions(detectors=("papelo",), price="0,0,0", passages=search, options=options)
    assert of(store, "set", hunt).searches == 2 * (1 + 10)


def test_a_large_dataset_is_reckoned_from_a_sample(store: Store) -> None:
    store.import_records("set", items(1000))
    found = of(store, "set", RunOptions(detectors=("ucsc-extract",)))
    assert (found.items, found.sampled, found.calls) == (1000, 200, 1000)
    assert of(store, "set", RunOptions(detectors=("ucsc-extract",), limit=10)).items == 10


def test_a_detector_that_nobody_knows_is_said_to_be_unknown(store: Store) -> None:
    store.import_records("set", items(1))
    request = RunRequest(dataset="set", detectors=(DetectorSpec(detector="ucsc-gone"),))
    with pytest.raises(UsageError, match="no detector named 'ucsc-gone'"):
        estimate(store, request)


def test_an_ensemble_is_the_sum_of_its_members(store: Store) -> None:
    store.import_records("set", items(2))
    assert of(store, "set", RunOptions(detectors=("ucsc",))).calls == 10
