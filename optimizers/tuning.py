"""One optimisation from labelled items to a program with held-out scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean
from typing import TYPE_CHECKING

import dspy

from optimizers.examples import Fold, Labelled, fingerprint, folds, halves, targets
from optimizers.metrics import Judgement, judge
from optimizers.request import Search
from optimizers.strategies import Round, quiet, strategy
from optimizers.watching import (
    Event,
    OnEvent,
    Remark,
    Stage,
    Stopper,
    Trial,
    Watcher,
)
from spanlab.detectors.programs import program_state
from spanlab.labels import Labels, flatten, hard_of
from spanlab.lm import predicting
from spanlab.mappers import Quote
from spanlab.programs import HeldOut, Program, Score
from spanlab.schema import Annotation, Item, Status
from spanlab.scorers import mean_of, paired

if TYPE_CHECKING:
    from spanlab.detectors.base import Tunable

__all__ = ["Event", "OnEvent", "Remark", "Trial", "Tuner"]


_BASELINE: Stage = "baseline"
_HELD_OUT: Stage = "held-out"


@dataclass(frozen=True)
class Tuner:
    """Runs a search with given models; the same answers of the models give the same program.

    Attributes:
        request: what to do.
        detector: what is tuned.
        task_lm: runs the detector's prompts.
        prompt_lm: writes new ones.
        stopper: counts the calls of both, and ends the search.
        on_event: told every trial and remark as it happens, from any thread.
        dataset: name of the dataset, for the program's card.
    """

    request: Search
    detector: Tunable
    task_lm: dspy.LM
    prompt_lm: dspy.LM
    stopper: Stopper
    on_event: OnEvent
    dataset: str

    def run(self, examples: Sequence[Labelled]) -> Program:
        """Cross-validate, then search on all items.

        Args:
            examples: labelled items with their passages.

        Returns:
            The program found on all items, with the held-out scores of the folds' programs: what
            a search like this one is worth on items that it has not seen.

        Raises:
            UsageError: there are too few items.
            SpanlabError: the search cannot go on; says why.
        """
        parts = folds(examples, self.request.folds, self.request.seed) if self.request.folds else ()
        held_out = self._cross_validated(parts) if parts else None
        self.on_event(Remark(text=f"searching on all {len(examples)} items"))
        tuned = self._search(examples, fold=0)
        if held_out is not None and not held_out.better:
            self.on_event(
                Remark(text="the tuned prompt does not beat the untuned one on held-out items")
            )
        return self._program(tuned, examples, held_out)

    def _cross_validated(self, parts: Sequence[Fold]) -> HeldOut:
        before: dict[str, float] = {}
        after: dict[str, float] = {}
        langs: dict[str, str] = {}
        for number, part in enumerate(parts, start=1):
            self.on_event(
                Remark(
                    text=f"fold {number} of {len(parts)}: searching on {len(part.seen)} items, "
                    f"{len(part.held_out)} held out"
                )
            )
            tuned = self._search(part.seen, fold=number)
            ids = [each.item.id for each in part.held_out]
            langs.update((each.item.id, each.item.lang) for each in part.held_out)
            untuned = self.detector.program
            for scores, program, stage in (
                (before, untuned, _BASELINE),
                (after, tuned, _HELD_OUT),
            ):
                watcher = self._watcher(len(ids), number, stage)
                found = self._scores(program, part.held_out, watcher)
                scores.update(zip(ids, found, strict=True))
        return held_out(before, after, langs, len(parts))

    def _scores(
        self, program: dspy.Module, examples: Sequence[Labelled], watcher: Watcher
    ) -> list[float]:
        """Return the metric of each item; one that the program fails on scores 0."""
        judged = self._judge(examples)
        evaluate = dspy.Evaluate(
            devset=[self._example(each) for each in examples],
            metric=lambda example, prediction: judged(example, prediction).score,
            num_threads=self.request.threads,
            max_errors=len(examples) + 1,
            display_progress=False,
        )
        with quiet(), predicting(self.task_lm), dspy.context(callbacks=[watcher]):
            results = evaluate(program).results
        self._check()
        return [float(score) for _, _, score in results]

    def _search(self, seen: Sequence[Labelled], *, fold: int) -> dspy.Module:
        learn, choose = (
            tuple(self._example(each) for each in half) for half in halves(seen, self.request.seed)
        )
        watcher = self._watcher(len(choose), fold)
        work = Round(
            request=self.request,
            program=self.detector.program.deepcopy(),
            learn=learn,
            choose=choose,
            has_answers=all(each.labels() for each in learn),
            judged=self._judge(seen),
            task_lm=self.task_lm,
            prompt_lm=self.prompt_lm,
        )
        with predicting(self.task_lm), dspy.context(callbacks=[watcher]):
            try:
                tuned = strategy(self.request.strategy)(work)
            except Exception:
                self._check()  # its reason says more than what the search made of it
                raise
        self._check()
        return tuned

    def _watcher(self, items: int, fold: int, stage: Stage = "search") -> Watcher:
        return Watcher(self.stopper, self.on_event, items, fold, stage)

    def _check(self) -> None:
        if self.stopper.reason is not None:
            raise self.stopper.reason

    def _example(self, each: Labelled) -> dspy.Example:
        inputs = self.detector.inputs(each.item)
        quotes = [
            Quote(target.text, target.prob) for target in targets(each.labels, each.item.answer)
        ]
        answers = self.detector.expected(each.item, quotes)
        return dspy.Example(**inputs, **answers).with_inputs(*inputs)

    def _judge(
        self, examples: Sequence[Labelled]
    ) -> Callable[[dspy.Example, dspy.Prediction], Judgement]:
        """Return the metric on these items; the examples themselves hold only what prompts show."""
        known = {tuple(self.detector.inputs(each.item).values()): each for each in examples}

        def judged(example: dspy.Example, prediction: dspy.Prediction) -> Judgement:
            each = known[tuple(example.inputs().values())]
            found = labels(each.item, self.detector.mark(each.item, prediction))
            return judge(each.labels, found, each.item.answer, self.request.metric)

        return judged

    def _program(
        self, tuned: dspy.Module, examples: Sequence[Labelled], held: HeldOut | None
    ) -> Program:
        request = self.request
        prompt_model = request.prompt_model
        score = getattr(tuned, "score", None)
        return Program(
            name=request.name,
            detector=request.detector.detector,
            strategy=request.strategy,
            metric=request.metric,
            task_model=self.task_lm.model.removeprefix("openai/"),
            prompt_model=prompt_model.model
            if prompt_model
            else self.task_lm.model.removeprefix("openai/"),
            dataset=self.dataset,
            labels=str(request.labels),
            languages=tuple(sorted({each.item.lang for each in examples})),
            items=len(examples),
            fingerprint=fingerprint(examples),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            parent=request.detector.program,
            search_score=None if score is None else round(float(score) / 100, 6),
            held_out=held,
            predictors=program_state(tuned),
        )


def labels(item: Item, annotation: Annotation) -> Labels:
    """Return what an annotation marks, for a scorer; a failed one marks nothing."""
    done = annotation.status is Status.DONE
    return Labels(
        id=item.id,
        lang=item.lang,
        soft=tuple(flatten(annotation.spans)) if done else (),
        hard=tuple(hard_of(annotation)) if done else (),
        length=len(item.answer),
    )


def held_out(
    before: dict[str, float], after: dict[str, float], langs: dict[str, str], count: int
) -> HeldOut:
    """Compare the untuned and the tuned prompt on the items that each fold held out.

    Args:
        before: metric of the untuned prompt by item id.
        after: metric of the tuned one, for the same items.
        langs: language by item id.
        count: number of folds.
    """
    ids = sorted(before)
    was, now = [before[each] for each in ids], [after[each] for each in ids]
    difference = paired(now, was)
    by_language = defaultdict(list)
    for each in ids:
        by_language[langs[each]].append(each)
    return HeldOut(
        items=len(ids),
        folds=count,
        baseline=Score(**mean_of(was).model_dump()),
        tuned=Score(**mean_of(now).model_dump()),
        difference=Score(mean=difference.difference, low=difference.low, high=difference.high),
        p=difference.p,
        languages={
            lang: (fmean(before[each] for each in some), fmean(after[each] for each in some))
            for lang, some in sorted(by_language.items())
        },
    )
