"""One optimisation from labelled items to a program with held-out scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import dspy

from optimizers.examples import LabelledItem, fingerprint
from optimizers.held_out import (
    DataFold,
    FoldScores,
    clusters_of,
    compare_folds,
    split_by_language,
    split_in_folds,
    split_in_halves,
)
from optimizers.metrics import ScoredAnswer
from optimizers.request import PromptSearch
from optimizers.strategies import SearchRound, search_function
from optimizers.subjects import TuningSubject
from optimizers.units import units
from optimizers.watching import (
    OnEvent,
    SearchRemark,
    SearchWatcher,
    StoppableMeter,
)
from spanlab.base.errors import UnparsableAnswerError
from spanlab.base.runtime import quiet
from spanlab.models import predicting, translate
from spanlab.models.programs import program_state
from spanlab.schema import HeldOut, Stage, TunedPredictor, TunedProgram, answer_hash
from spanlab.scoring.claims import JudgedClaim


@dataclass(frozen=True)
class PromptTuner:
    """Runs a search with given models; the same answers of the models give the same program.

    Attributes:
        request: which detector is tuned, on whose labels, for which metric.
        subject: the program to tune, with its inputs and its metric.
        task_lm: the model that runs the detector's prompts.
        prompt_lm: the model that writes new ones.
        stopper: counts the calls of both, and ends the search.
        on_event: called with every trial and remark as it happens, from any thread.
        dataset: name of the dataset, for the program's card.
        parent_predictors: prompts of the program that the search begins from; those that it does
            not tune stay.
    """

    request: PromptSearch
    subject: TuningSubject
    task_lm: dspy.LM
    prompt_lm: dspy.LM
    stopper: StoppableMeter
    on_event: OnEvent
    dataset: str
    parent_predictors: Mapping[str, TunedPredictor] = field(default_factory=dict)

    def run(self, examples: Sequence[LabelledItem]) -> TunedProgram:
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
        parts = self.split(examples)
        scores = [self.run_fold(number, part) for number, part in enumerate(parts, start=1)]
        return self.finish(examples, scores)

    def split(self, examples: Sequence[LabelledItem]) -> tuple[DataFold, ...]:
        """Split the items into folds, each with items to train on and items to hold out.

        Of a search for one language only that language's items are held out. One that trains on
        the other languages alone needs a single fold.

        Args:
            examples: labelled items with their passages.

        Returns:
            The folds; none if nothing is to be held out.

        Raises:
            UsageError: there are too few items.
        """
        request = self.request
        if not request.folds:
            return ()
        if request.target is None:
            return split_in_folds(examples, request.folds, request.seed, request.unit)
        training, in_language = split_by_language(examples, request.target, request.transfer)
        if request.transfer == "others":
            return (DataFold(training, in_language),) if in_language else ()
        parts = split_in_folds(training, request.folds, request.seed, request.unit)
        return tuple(
            DataFold(
                part.training, tuple(e for e in part.held_out if e.item.lang == request.target)
            )
            for part in parts
        )

    def run_fold(self, number: int, part: DataFold) -> FoldScores:
        """Search on a fold's training items, and score both prompts on its held-out items.

        Args:
            number: number of the fold, from 1.
            part: the items of the fold.

        Returns:
            The scores of each held-out item, before and after; empty if none is held out.

        Raises:
            SpanlabError: the search cannot go on; says why.
        """
        self.on_event(
            SearchRemark(
                text=f"fold {number}: searching on {len(part.training)} {self.request.unit}, "
                f"{len(part.held_out)} held out"
            )
        )
        tuned = self._search(part.training, fold=number)
        if not part.held_out:
            return FoldScores()
        programs: tuple[tuple[Stage, dspy.Module], ...] = (
            ("baseline", self.subject.program),
            ("held-out", tuned),
        )
        before, after = (
            self._score_each(
                program, part.held_out, self._watcher(len(part.held_out), number, stage)
            )
            for stage, program in programs
        )
        return FoldScores(
            ids=tuple(example.item.id for example in part.held_out),
            languages=tuple(example.item.lang for example in part.held_out),
            before=tuple(score for score, _ in before),
            after=tuple(score for score, _ in after),
            judged_before=self._judged_claims(part.held_out, before),
            judged_after=self._judged_claims(part.held_out, after),
        )

    def finish(
        self, examples: Sequence[LabelledItem], scores: Sequence[FoldScores]
    ) -> TunedProgram:
        """Search on all items; ``scores`` are those of the folds, none if nothing was held out.

        Raises:
            SpanlabError: the search cannot go on; says why.
        """
        request = self.request
        unit = request.unit
        comparison = None
        if any(score.ids for score in scores):
            comparison = compare_folds(scores, unit, clusters_of(examples))
        if request.target is not None:
            examples, _ = split_by_language(examples, request.target, request.transfer)
        self.on_event(SearchRemark(text=f"searching on all {len(examples)} {unit}"))
        tuned = self._search(examples, fold=0)
        if comparison is not None and comparison.is_macro_f1:
            self.on_event(SearchRemark(text=_macro_f1(comparison)))
        if comparison is not None and not comparison.better:
            text = f"the tuned prompt does not beat the untuned one on held-out {unit}"
            self.on_event(SearchRemark(text=text))
        return self._tuned_program(tuned, examples, comparison)

    def _score_each(
        self, program: dspy.Module, examples: Sequence[LabelledItem], watcher: SearchWatcher
    ) -> list[tuple[float, dspy.Prediction]]:
        """Return the score and the prediction of each example; one that fails scores 0."""
        judge = self._metric_on(examples)
        evaluate = dspy.Evaluate(
            devset=[self.subject.example(example) for example in examples],
            metric=lambda example, prediction: judge(example, prediction).score,
            num_threads=self.request.threads,
            max_errors=len(examples) + 1,
            display_progress=False,
        )
        with quiet(), predicting(self.task_lm), dspy.context(callbacks=[watcher]):
            results = evaluate(program).results
        self._raise_if_stopped()
        return [(float(score), prediction) for _, prediction, score in results]

    def _search(self, examples: Sequence[LabelledItem], *, fold: int) -> dspy.Module:
        learn, choose = (
            tuple(self.subject.example(example) for example in half)
            for half in split_in_halves(examples, self.request.seed)
        )
        watcher = self._watcher(len(choose), fold)
        search_round = SearchRound(
            request=self.request,
            program=self.subject.program.deepcopy(),
            learn=learn,
            choose=choose,
            has_answers=all(example.labels() for example in learn),
            judge=self._metric_on(examples),
            task_lm=self.task_lm,
            prompt_lm=self.prompt_lm,
        )
        with predicting(self.task_lm), dspy.context(callbacks=[watcher]):
            try:
                tuned = search_function(self.request.strategy)(search_round)
            except Exception as error:
                self._raise_if_stopped()  # its reason says more than what the search made of it
                raise translate(error) from error
        self._raise_if_stopped()
        return tuned

    def _watcher(self, items: int, fold: int, stage: Stage = "search") -> SearchWatcher:
        return SearchWatcher(self.stopper, self.on_event, choose=items, fold=fold, stage=stage)

    def _raise_if_stopped(self) -> None:
        if self.stopper.reason is not None:
            raise self.stopper.reason

    def _metric_on(
        self, examples: Sequence[LabelledItem]
    ) -> Callable[[dspy.Example, dspy.Prediction], ScoredAnswer]:
        """Return the metric of examples, which finds the gold labels by an example's key."""
        by_key = {example.key: example for example in examples}

        def judge(example: dspy.Example, prediction: dspy.Prediction) -> ScoredAnswer:
            try:
                scored = self.subject.judge(by_key[example.dspy_key], prediction)
            except UnparsableAnswerError as error:
                self.stopper.note_placed(error)
                raise
            self.stopper.note_placed(None)
            return scored

        return judge

    def _judged_claims(
        self, examples: Sequence[LabelledItem], scored: Sequence[tuple[float, dspy.Prediction]]
    ) -> tuple[JudgedClaim, ...]:
        """Return the verdicts on held-out claims or steps; nothing for other units."""
        if not units()[self.request.unit].are_verdicts:
            return ()
        return tuple(
            JudgedClaim(example.item.id, example.part.verdict, prediction.get("verdict"))
            for example, (_, prediction) in zip(examples, scored, strict=True)
            if example.part is not None
        )

    def _tuned_program(
        self, tuned: dspy.Module, examples: Sequence[LabelledItem], comparison: HeldOut | None
    ) -> TunedProgram:
        request = self.request
        score, member = getattr(tuned, "score", None), request.detector.signs
        return TunedProgram(
            name=request.name,
            detector=request.detector.detector,
            member=None if member == request.detector.detector else member,
            strategy=request.strategy,
            metric=request.metric,
            task_model=self.task_lm.model.removeprefix("openai/"),
            prompt_model=self.prompt_lm.model.removeprefix("openai/"),
            dataset=self.dataset,
            labels=str(request.labels),
            languages=tuple(sorted({example.item.lang for example in examples})),
            items=len({example.item.id for example in examples}),
            fingerprint=fingerprint(examples),
            learnt_from=tuple(sorted({answer_hash(example.item) for example in examples})),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            parent=request.detector.program,
            search_score=None if score is None else round(float(score) / 100, 6),
            held_out=comparison,
            predictors={**self.parent_predictors, **program_state(tuned)},
        )


def _macro_f1(comparison: HeldOut) -> str:
    return (
        "trials were scored by the share of right verdicts (accuracy); on held-out "
        f"{comparison.unit} the macro F1 of the untuned prompt is {comparison.baseline.mean:.3f}, "
        f"of the tuned one {comparison.tuned.mean:.3f}"
    )
