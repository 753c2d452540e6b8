"""One optimisation from labelled items to a program with held-out scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean
from typing import TYPE_CHECKING

import dspy

from optimizers.curve import Stage, Trial
from optimizers.examples import Fold, Labelled, fingerprint, folds, halves, targets, transferred
from optimizers.metrics import ScoredAnswer, judge
from optimizers.request import Search
from optimizers.strategies import SearchRound, strategy
from optimizers.watching import (
    Event,
    OnEvent,
    Remark,
    Stopper,
    Watcher,
)
from spanlab.detectors.programs import program_state
from spanlab.fields import Frozen
from spanlab.labels import Labels, flatten, hard_of
from spanlab.lm import predicting, translate
from spanlab.mappers import Quote
from spanlab.programs import HeldOut, Program, Score
from spanlab.schema import Annotation, Item, Status
from spanlab.scorers import mean_of, paired
from spanlab.workflows.interpreter import quiet

if TYPE_CHECKING:
    from spanlab.detectors.base import Tunable

__all__ = ["Event", "OnEvent", "Remark", "Trial", "Tuner"]


class FoldScores(Frozen):
    """The metric of each item that a fold held out, under the untuned and the tuned prompt."""

    ids: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()


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
        parts = self.parts(examples)
        scores = [self.fold(number, each) for number, each in enumerate(parts, start=1)]
        return self.finish(examples, scores)

    def parts(self, examples: Sequence[Labelled]) -> tuple[Fold, ...]:
        """Return what is learnt from and what is held out, search by search; none for no folds.

        Of a search for one language only that language's items are held out; one that learns from
        the other languages has seen none of them, and is one part.

        Raises:
            UsageError: there are too few items.
        """
        request = self.request
        if not request.folds:
            return ()
        if request.target is None:
            return folds(examples, request.folds, request.seed)
        seen, own = transferred(examples, request.target, request.transfer)
        if request.transfer == "others":
            return (Fold(seen, own),) if own else ()
        parts = folds(seen, request.folds, request.seed)
        return tuple(
            Fold(part.seen, tuple(e for e in part.held_out if e.item.lang == request.target))
            for part in parts
        )

    def fold(self, number: int, part: Fold) -> FoldScores:
        """Search on what a fold has seen, and score both prompts on what it holds out.

        Args:
            number: 1 for the first fold.
            part: its items.

        Raises:
            SpanlabError: the search cannot go on; says why.
        """
        self.on_event(
            Remark(
                text=f"fold {number}: searching on {len(part.seen)} items, "
                f"{len(part.held_out)} held out"
            )
        )
        tuned = self._search(part.seen, fold=number)
        if not part.held_out:
            return FoldScores()
        programs: tuple[tuple[Stage, dspy.Module], ...] = (
            ("baseline", self.detector.program),
            ("held-out", tuned),
        )
        before, after = (
            self._scores(program, part.held_out, self._watcher(len(part.held_out), number, stage))
            for stage, program in programs
        )
        return FoldScores(
            ids=tuple(each.item.id for each in part.held_out),
            languages=tuple(each.item.lang for each in part.held_out),
            before=tuple(before),
            after=tuple(after),
        )

    def finish(self, examples: Sequence[Labelled], scores: Sequence[FoldScores]) -> Program:
        """Search on all items; ``scores`` are those of the folds, none if nothing was held out.

        Raises:
            SpanlabError: the search cannot go on; says why.
        """
        request = self.request
        held = held_out(scores) if any(each.ids for each in scores) else None
        if request.target is not None:
            examples, _ = transferred(examples, request.target, request.transfer)
        self.on_event(Remark(text=f"searching on all {len(examples)} items"))
        tuned = self._search(examples, fold=0)
        if held is not None and not held.better:
            self.on_event(
                Remark(text="the tuned prompt does not beat the untuned one on held-out items")
            )
        return self._program(tuned, examples, held)

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
        work = SearchRound(
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
            except Exception as error:
                self._check()  # its reason says more than what the search made of it
                raise translate(error) from error
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
        # Fields that begin with dspy_ stay out of prompts, demonstrations and summaries.
        example = dspy.Example(**inputs, **answers, dspy_item=each.item.id)
        return example.with_inputs(*inputs)

    def _judge(
        self, examples: Sequence[Labelled]
    ) -> Callable[[dspy.Example, dspy.Prediction], ScoredAnswer]:
        """Return the metric on these items; an example names its item, several may read alike."""
        known = {each.item.id: each for each in examples}

        def judged(example: dspy.Example, prediction: dspy.Prediction) -> ScoredAnswer:
            each = known[example.dspy_item]
            found = labels(each.item, self.detector.mark(each.item, prediction))
            return judge(each.labels, found, each.item.answer, self.request.metric)

        return judged

    def _program(
        self, tuned: dspy.Module, examples: Sequence[Labelled], held: HeldOut | None
    ) -> Program:
        request = self.request
        score, member = getattr(tuned, "score", None), request.detector.signs
        return Program(
            name=request.name,
            detector=request.detector.detector,
            member=None if member == request.detector.detector else member,
            strategy=request.strategy,
            metric=request.metric,
            task_model=self.task_lm.model.removeprefix("openai/"),
            prompt_model=self.prompt_lm.model.removeprefix("openai/"),
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


def held_out(folds: Sequence[FoldScores]) -> HeldOut:
    """Compare the untuned and the tuned prompt on the items that the folds held out."""
    rows = sorted(
        row
        for fold in folds
        for row in zip(fold.ids, fold.languages, fold.before, fold.after, strict=True)
    )
    was, now = [row[2] for row in rows], [row[3] for row in rows]
    difference = paired(now, was)
    by_language: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for _, lang, before, after in rows:
        by_language[lang].append((before, after))
    return HeldOut(
        items=len(rows),
        folds=len(folds),
        baseline=Score(**mean_of(was).model_dump()),
        tuned=Score(**mean_of(now).model_dump()),
        difference=Score(mean=difference.difference, low=difference.low, high=difference.high),
        p=difference.p,
        languages={
            lang: (fmean(before for before, _ in pairs), fmean(after for _, after in pairs))
            for lang, pairs in sorted(by_language.items())
        },
    )
