"""An optimisation finds the better prompt, says what it is worth, and why it cannot go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import pytest
from gold_answers import GoldAnswers, better_when_asked

from optimizers.estimates import SearchPlan, plan_search
from optimizers.examples import LabelledItem
from optimizers.held_out import DataFold
from optimizers.request import PromptSearch
from optimizers.tuning import PromptTuner
from optimizers.watching import MOST_UNPLACED, Event, SearchRemark, StoppableMeter
from spanlab.base.errors import (
    BudgetError,
    NoCreditError,
    SpanlabError,
    StoppedError,
    StoreError,
    UnavailableError,
    UnparsableAnswerError,
    UsageError,
    WrongKeyError,
)
from spanlab.formats import read
from spanlab.models import ModelChoice
from spanlab.schema import SearchTrial
from spanlab.schema.usage import Budget
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, fail, say, say_fields
from spanlab.text.extents import Extent
from spanlab.text.labels import ItemLabels, SoftLabel

pytestmark = pytest.mark.system("ucsc")

Ready = Callable[..., tuple[PromptTuner, list[Event]]]


def _trials(events: list[Event], stage: str = "search") -> list[SearchTrial]:
    return [each for each in events if isinstance(each, SearchTrial) and each.stage == stage]


def _stays_within_its_plan(
    tuner: PromptTuner, events: list[Event], examples: Sequence[LabelledItem]
) -> None:
    plan, usage = plan_search(tuner.request, len(examples)), tuner.stopper.usage
    most = plan.upper_bound([1] * len(examples)) + plan.prompt_calls
    assert most / 3 < usage.calls + usage.from_cache <= most
    assert sum(isinstance(event, SearchTrial) for event in events) <= plan.trials


def test_the_better_prompt_is_found_and_measured_on_items_it_has_not_seen(
    ready: Ready, gold: ModelServer, examples: list[LabelledItem]
) -> None:
    tuner, events = ready()
    program = tuner.run(examples)
    held_out = program.held_out
    assert held_out is not None
    assert held_out.better
    assert (held_out.items, held_out.folds) == (len(examples), 2)
    assert set(held_out.languages) == {"de", "en", "fr"}
    assert "short" in program.predictors["extract"].instruction.casefold()
    assert 0 < len(program.predictors["extract"].demos) <= 3
    searches = {fold: [t for t in _trials(events) if t.fold == fold] for fold in (0, 1, 2)}
    assert [[t.number for t in found] for found in searches.values()] == [[1, 2, 3, 4, 5]] * 3
    assert all(t.full and t.items == len(examples) // 2 for t in searches[0])
    assert max(t.score for t in searches[0]) == program.search_score
    assert program.task_model == program.prompt_model == "scripted-model"
    _stays_within_its_plan(tuner, events, examples)


def test_the_same_answers_give_the_same_program_and_none_is_asked_for_twice(
    ready: Ready, gold: ModelServer, examples: list[LabelledItem]
) -> None:
    first = ready(folds=0)[0].run(examples)
    asked = len(gold.requests)
    tuner, _ = ready(folds=0)
    assert tuner.run(examples).predictors == first.predictors
    assert len(gold.requests) == asked
    assert tuner.stopper.usage.calls == 0
    assert tuner.stopper.usage.from_cache > 0


def test_gepa_reflects_on_feedback_behind_the_same_interface(
    ready: Ready, gold: ModelServer, examples: list[LabelledItem]
) -> None:
    tuner, events = ready(strategy="gepa", folds=0, trials=2)
    program = tuner.run(examples)
    assert program.strategy == "gepa"
    assert set(program.predictors) == {"extract"}
    feedback = "".join(ask.text for ask in gold.requests)
    assert "Boundaries off:" in feedback or "Missed:" in feedback
    _stays_within_its_plan(tuner, events, examples)


def test_what_a_search_comes_to_at_most_is_on_the_heaviest_items() -> None:
    plan = SearchPlan(trials=3, evaluations=((2, 1), (1, 2), (1, 9)), prompt_calls=0)
    # Twice the heaviest, once the two heaviest, once all three there are: 2 * 5 + 7 + 8.
    assert plan.upper_bound([1, 5, 2]) == 25
    assert plan.upper_bound([]) == 0


def test_items_that_read_alike_are_judged_by_their_own_labels(
    ready: Ready, gold: ModelServer, examples: list[LabelledItem], samples: Path
) -> None:
    item, length = examples[0].item, len(examples[0].item.answer)
    right, wrong = (item.model_copy(update={"id": name}) for name in ("right", "wrong"))
    twins = (
        LabelledItem(
            right, ItemLabels(id="right", lang=item.lang, soft=(), hard=(), length=length)
        ),
        LabelledItem(
            wrong,
            ItemLabels(
                id="wrong",
                lang=item.lang,
                soft=(SoftLabel(0, length, 1.0),),
                hard=(Extent(0, length),),
                length=length,
            ),
        ),
    )
    nothing = say("[[ ## parts ## ]]\n[]\n\n[[ ## completed ## ]]")
    others = GoldAnswers(read(samples), noise=better_when_asked())
    gold.script(lambda ask: nothing if item.answer in ask.text else others(ask))
    tuner, _ = ready(trials=2)
    scores = tuner.run_fold(1, DataFold(tuple(examples[1:]), twins))
    assert dict(zip(scores.ids, scores.before, strict=True)) == {"right": 1.0, "wrong": 0.0}


def test_a_prompt_that_does_not_beat_the_old_one_is_said_not_to(
    ready: Ready, gold: ModelServer, examples: list[LabelledItem], samples: Path
) -> None:
    """A search that cannot find anything says so."""
    gold.script(GoldAnswers(read(samples), noise=0.5))  # whatever the prompt
    tuner, events = ready(trials=2)
    program = tuner.run(examples)
    assert program.held_out is not None
    assert not program.held_out.better
    assert program.held_out.difference.mean == 0
    remarks = [each.text for each in events if isinstance(each, SearchRemark)]
    assert remarks[-1] == "the tuned prompt does not beat the untuned one on held-out items"


@pytest.mark.parametrize(
    ("reply", "reason", "most"),
    [
        pytest.param(fail(401, "bad key"), WrongKeyError, 20, id="wrong-key"),
        pytest.param(fail(402, "pay"), NoCreditError, 20, id="no-credit"),
        pytest.param(fail(503, "busy"), UnavailableError, 60, id="unavailable"),
    ],
)
def test_a_search_that_cannot_go_on_says_why_and_soon(
    ready: Ready,
    model_server: ModelServer,
    examples: list[LabelledItem],
    reply: ScriptedReply,
    reason: type[SpanlabError],
    most: int,
) -> None:
    """An optimisation that would hang or do one trial says why."""
    model_server.script(lambda ask: reply)
    choice = ModelChoice(model="m", base_url=model_server.url, retries=0)
    spec = {"detector": "ucsc-extract", "model": choice}
    tuner, events = ready(detector=spec, prompt_model=choice)
    with pytest.raises(reason):
        tuner.run(examples)
    assert len(model_server.requests) < most
    assert _trials(events) == []


def test_an_answer_that_nobody_can_read_ends_the_search_with_that_reason(
    ready: Ready, model_server: ModelServer, examples: list[LabelledItem]
) -> None:
    """Broken answers of the prompt model end in a reason, not in a traceback."""
    model_server.script(lambda ask: say("I would rather not."))
    with pytest.raises(UnparsableAnswerError):
        ready(folds=0)[0].run(examples)


def test_replies_that_mark_nothing_of_their_answer_end_the_search(
    ready: Ready, model_server: ModelServer, samples: Path, examples: list[LabelledItem]
) -> None:
    right = GoldAnswers(read(samples))

    def reply(ask: ModelRequest) -> ScriptedReply:
        quotes = "[[ ## parts ## ]]" in ask.text
        return say_fields(parts=["Zzyzx Qwfp"]) if quotes else right(ask)

    model_server.script(reply)
    tuner, _ = ready(folds=0)
    with pytest.raises(UnparsableAnswerError, match="20 replies in a row mark nothing that is in"):
        tuner.run(examples)
    assert len(model_server.requests) < 100


def test_a_reply_that_marks_something_of_its_answer_lets_the_search_go_on(
    ready: Ready, model_server: ModelServer, samples: Path, examples: list[LabelledItem]
) -> None:
    right, numbers = GoldAnswers(read(samples)), count()

    def reply(ask: ModelRequest) -> ScriptedReply:
        quotes = "[[ ## parts ## ]]" in ask.text
        return say_fields(parts=["Zzyzx Qwfp"]) if quotes and next(numbers) % 3 else right(ask)

    model_server.script(reply)
    tuner, _ = ready(folds=0)
    tuner.run(examples)
    assert next(numbers) > 2 * MOST_UNPLACED


def test_a_spent_budget_ends_the_search(
    ready: Ready, gold: ModelServer, examples: list[LabelledItem]
) -> None:
    tuner, _ = ready(StoppableMeter(Budget(calls=30)))
    with pytest.raises(BudgetError, match="budget of 30 calls"):
        tuner.run(examples)
    assert len(gold.requests) == 30


def test_a_spent_budget_of_searches_ends_it_too(
    ready: Ready, gold: ModelServer, examples: list[LabelledItem]
) -> None:
    """Detectors may search for evidence: that they cannot any more is no answer to score."""
    stopper = StoppableMeter(Budget(searches=1))
    asyncio.run(stopper.admit("searches"))
    with pytest.raises(BudgetError):
        asyncio.run(stopper.admit("searches"))
    with pytest.raises(BudgetError, match="budget of 1 searches"):
        ready(stopper)[0].run(examples)
    assert gold.requests == []


def test_a_search_stops_when_it_is_told_to_and_goes_on_from_the_cache(
    ready: Ready, gold: ModelServer, examples: list[LabelledItem]
) -> None:
    stopper = StoppableMeter(should_stop=lambda: len(gold.requests) >= 40)
    with pytest.raises(StoppedError):
        ready(stopper, folds=0)[0].run(examples)
    asked = gold.fingerprints()
    assert len(asked) < 40 + 8  # those that other threads had under way
    ready(folds=0)[0].run(examples)
    assert not set(asked) & set(gold.fingerprints()[len(asked) :])


def test_a_search_whose_calls_get_no_turn_ends_with_the_reason(
    ready: Ready, gold: ModelServer, examples: list[LabelledItem]
) -> None:
    async def wait() -> None:
        if len(gold.requests) >= 20:
            raise StoreError("the jobs' database: gone")

    with pytest.raises(StoreError, match="gone"):
        ready(StoppableMeter(wait=wait), folds=0)[0].run(examples)
    assert 20 <= len(gold.requests) < 20 + 8  # those that other threads had under way


def test_every_attempt_takes_a_turn_also_those_after_an_error(
    ready: Ready, model_server: ModelServer, samples: Path, examples: list[LabelledItem]
) -> None:
    gold = GoldAnswers(read(samples), noise=better_when_asked())
    model_server.script(lambda ask: gold(ask) if ask.number % 3 else fail(503, retry_after=0.0))
    turns: list[int] = []

    async def wait() -> None:
        turns.append(1)

    ready(StoppableMeter(wait=wait), folds=0, trials=1)[0].run(examples)
    assert model_server.count >= 15
    assert len(turns) == model_server.count


def test_a_language_without_labels_learns_from_the_others(
    ready: Ready, gold: ModelServer, examples: list[LabelledItem]
) -> None:
    tuner, _ = ready(target="fr", transfer="others", trials=1)
    program = tuner.run(examples)
    own = [each for each in examples if each.item.lang == "fr"]
    assert program.held_out is not None
    assert program.held_out.items == len(own)
    assert set(program.held_out.languages) == {"fr"}
    assert program.languages == ("de", "en")


def test_what_makes_no_search_is_refused() -> None:
    spec = {"detector": "ucsc-extract"}
    with pytest.raises(ValueError, match="either auto"):
        PromptSearch(name="x", detector=spec, auto="light", trials=3)
    with pytest.raises(ValueError, match="one fold holds nothing out"):
        PromptSearch(name="x", detector=spec, folds=1)
    with pytest.raises(ValueError, match="no metric named 'bleu'"):
        PromptSearch(name="x", detector=spec, metric="bleu")


@pytest.mark.system("offline")
def test_a_detector_without_prompts_is_refused(ready: Ready, gold: ModelServer) -> None:
    with pytest.raises(UsageError, match="'offline' has no prompts of its own to tune"):
        ready(detector={"detector": "offline"})
