"""The adapters for other programs for tests.

`make test-peers` runs them within the real programs. Here each has a stand-in with the part of its
public base class that an adapter touches, as deepeval 4.3, ragas 0.3.1 and inspect-ai 0.3.285 have
it, so that a change of ours is noticed without these.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from guide_blocks import of_section

import spanlab
from spanlab.base.errors import SpanlabError, UsageError
from spanlab.integrations.promptfoo_assertion import get_assert
from spanlab.integrations.verdicts import judge
from spanlab.testing import UngroundedError, assert_grounded

pytestmark = pytest.mark.system("offline")

ASKED = "When was the Eiffel Tower built?"
WRONG = "The Eiffel Tower was completed in 1989."
RIGHT = "The Eiffel Tower was completed in 1889."
REASON = f"offline marks 10.3 % of the answer, most likely “1989”; closest: “{RIGHT}”"
SCORE = 1 - len("1989") / len(WRONG)


class BaseMetric:
    """DeepEval's."""

    threshold: float | None = None
    score: float | None = None
    error: str | None = None

    def is_successful(self) -> bool | None:
        return None if self.threshold is None else (self.score or 0) >= self.threshold


class MetricType(Enum):
    """That of RAGAS."""

    SINGLE_TURN = "single_turn"


@dataclass
class SingleTurnMetric:
    """That of RAGAS."""

    name: str = ""


def scorer(metrics: list[object]) -> Callable[[Any], Any]:
    """Inspect's decorator, which registers a function."""
    return lambda function: function


STAND_INS: dict[str, dict[str, object]] = {
    "deepeval.metrics": {"BaseMetric": BaseMetric},
    "deepeval.test_case": {"LLMTestCase": object},
    "ragas.dataset_schema": {"SingleTurnSample": object},
    "ragas.metrics.base": {"MetricType": MetricType, "SingleTurnMetric": SingleTurnMetric},
    "inspect_ai.scorer": {
        "Score": SimpleNamespace,
        "Scorer": object,
        "Target": object,
        "mean": object,
        "scorer": scorer,
        "stderr": object,
    },
    "inspect_ai.solver": {"TaskState": object},
}


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Import an adapter among the stand-ins."""
    for name, members in STAND_INS.items():
        for around in [name.split(".")[0], name.rpartition(".")[0], name]:
            monkeypatch.setitem(sys.modules, around, sys.modules.get(around) or ModuleType(around))
        vars(sys.modules[name]).update(members)

    def imported(name: str) -> ModuleType:
        module = import_module(f"spanlab.integrations.{name}")
        del sys.modules[module.__name__]  # others may want it with the real program
        return module

    return imported


def test_a_verdict_has_the_share_that_is_not_marked_and_the_worst_span() -> None:
    verdict = judge(WRONG, RIGHT, ASKED)
    assert (verdict.score, verdict.reason) == (SCORE, REASON)
    assert [span["text"] for span in verdict.spans] == ["1989"]
    assert (judge(RIGHT, RIGHT).score, judge(RIGHT, RIGHT).reason) == (1, "offline marks nothing")
    assert judge(WRONG, None).score < SCORE


def test_the_guide_shows_the_reason_that_there_is() -> None:
    """That DeepEval, RAGAS and promptfoo print it is checked by ``make test-peers``."""
    assert f"{REASON}\n" in of_section("integrations", "In your tests")


def test_a_detector_that_fails_gives_no_score() -> None:
    def broken(_: spanlab.Item) -> list[tuple[int, int]]:
        raise ValueError("no such word")

    with pytest.raises(SpanlabError, match=r"broken could not check it: .*no such word"):
        judge(WRONG, RIGHT, detector=broken)


@pytest.mark.parametrize(
    "context",
    [
        {"vars": {"question": ASKED, "context": RIGHT}},
        {"vars": {"query": ASKED}, "metadata": {"documents": [{"text": RIGHT}]}},
        {"vars": {"found": [RIGHT]}, "config": {"passages": "found", "detector": "offline"}},
    ],
)
def test_promptfoo_gets_a_result_from_variables_or_what_the_provider_found(
    context: dict[str, Any],
) -> None:
    result = get_assert(WRONG, context)
    assert (result["pass"], result["score"]) == (False, SCORE)
    assert "most likely “1989”" in result["reason"]
    context["config"] = {**context.get("config", {}), "threshold": 0.8}
    assert get_assert(WRONG, context)["pass"] is True


def test_promptfoo_is_told_which_variables_there_are() -> None:
    with pytest.raises(
        UsageError, match="no variable 'passages' has the passages; available: a, b"
    ):
        get_assert(WRONG, {"vars": {"a": "", "b": ""}})


def test_a_metric_of_deepeval_takes_the_retrieval_context(
    adapter: Callable[[str], ModuleType],
) -> None:
    metric = adapter("deepeval_metric").GroundedMetric(threshold=1)
    case = SimpleNamespace(input=ASKED, actual_output=WRONG, retrieval_context=[RIGHT])
    assert metric.measure(case, _show_indicator=False) == SCORE
    assert (metric.reason, metric.success) == (REASON, False)
    found = SimpleNamespace(context=RIGHT, source="a page")  # its RetrievedContextData
    case = SimpleNamespace(input=ASKED, actual_output=RIGHT, retrieval_context=[found])
    assert asyncio.run(metric.a_measure(case)) == 1
    assert (metric.success, metric.spans) == (True, [])


def test_a_metric_of_ragas_keeps_reasons_beside_the_scores(
    adapter: Callable[[str], ModuleType],
) -> None:
    metric = adapter("ragas_metric").Grounded(options={"lang": "en"})
    sample = SimpleNamespace(user_input=ASKED, response=WRONG, retrieved_contexts=[RIGHT])
    assert asyncio.run(metric._single_turn_ascore(sample, None)) == SCORE
    assert metric.reasons == {WRONG: REASON}
    assert metric.name == "grounded"


def test_a_scorer_of_inspect_reads_the_metadata_of_the_sample(
    adapter: Callable[[str], ModuleType],
) -> None:
    score = adapter("inspect_scorer").grounded()
    state = SimpleNamespace(
        metadata={"passages": [RIGHT]},
        output=SimpleNamespace(completion=WRONG),
        input_text=ASKED,
        sample_id="s1",
    )
    scored = asyncio.run(score(state, None))
    assert (scored.value, scored.explanation, scored.answer) == (SCORE, REASON, WRONG)
    assert [span["text"] for span in scored.metadata["spans"]] == ["1989"]
    state.output.completion = ""
    scored = asyncio.run(score(state, None))
    assert (scored.value, scored.explanation) == (0.0, "there is no answer to judge")
    state.metadata = {"docs": []}
    with pytest.raises(UsageError, match="sample s1: no metadata 'passages'; available: docs"):
        asyncio.run(score(state, None))


def test_reasoning_before_an_answer_makes_no_share_of_it_smaller() -> None:
    thoughts = f"<think>{'Was it 1789? ' * 100}</think>"
    assert judge(thoughts + WRONG, [RIGHT], ASKED) == judge(WRONG, [RIGHT], ASKED)
    with pytest.raises(UngroundedError, match="more than 10"):
        assert_grounded(thoughts + WRONG, [RIGHT], question=ASKED)


@pytest.mark.parametrize("door", ["pytest", "deepeval", "promptfoo"])
@pytest.mark.parametrize(
    ("limit", "said"),
    [
        pytest.param(10, r"share from 0 to 1, not 10: 0\.1 for 10 %", id="per cent"),
        pytest.param(-0.1, r"share from 0 to 1, not -0\.1$", id="negative"),
        pytest.param(float("nan"), "share from 0 to 1, not nan$", id="not a number"),
        pytest.param("10 %", "share from 0 to 1, not '10 %'$", id="text"),
    ],
)
def test_a_limit_is_a_share(
    adapter: Callable[[str], ModuleType], door: str, limit: Any, said: str
) -> None:
    name = "at_most" if door == "pytest" else "threshold"
    with pytest.raises(UsageError, match=f"^{name} is a {said}"):
        if door == "pytest":
            assert_grounded(WRONG, RIGHT, at_most=limit)
        elif door == "deepeval":
            adapter("deepeval_metric").GroundedMetric(threshold=limit)
        else:
            context = {"vars": {"context": RIGHT}, "config": {"threshold": limit}}
            adapter("promptfoo_assertion").get_assert(WRONG, context)


@pytest.mark.parametrize("check", [assert_grounded, judge, spanlab.check])
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param("", "there is no answer to check", id="empty"),
        pytest.param(" \n", "there is no answer to check", id="blank"),
        pytest.param(None, "the answer has to be a text, not NoneType", id="none"),
    ],
)
def test_an_answer_that_is_none_is_refused(
    check: Callable[[Any, str], object], answer: Any, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        check(answer, RIGHT)
    with pytest.raises(UsageError, match=said):
        spanlab.detect(answer, passages=[RIGHT])
