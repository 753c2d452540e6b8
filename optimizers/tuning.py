"""One optimisation from labelled items to a program with held-out scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import dspy

from optimizers.examples import LabelledItem, fingerprint
from optimizers.held_out import DataFold, FoldScores, folds, halves, held_out, transferred
from optimizers.metrics import ScoredAnswer
from optimizers.request import PromptSearch
from optimizers.strategies import SearchRound, strategy
from optimizers.subjects import TuningSubject
from optimizers.watching import (
    OnEvent,
    SearchRemark,
    SearchWatcher,
    StoppableMeter,
)
from spanlab.lm import predicting, translate
from spanlab.programs import program_state
from spanlab.runtime import quiet
from spanlab.schema import HeldOut, Stage, TunedPredictor, TunedProgram
from spanlab.scorers import JudgedClaim


@dataclass(frozen=True)
class PromptTuner:
    """Runs a search with given models; the same answers of the models give the same program.

    Attributes:
        request: what to do.
        subject: what is tuned, and how right its answers are.
        task_lm: runs the detector's prompts.
        prompt_lm: writes new ones.
        stopper: counts the calls of both, and ends the search.
        on_event: told every trial and remark as it happens, from any thread.
        dataset: name of the dataset, for the program's card.
        begun: prompts of the program that the search begins from; those that it does not tune stay.
    """

    request: PromptSearch
    subject: TuningSubject
    task_lm: dspy.LM
    prompt_lm: dspy.LM
    stopper: StoppableMeter
    on_event: OnEvent
    dataset: str
    begun: Mapping[str, TunedPredictor] = field(default_factory=dict)

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
        parts = self.parts(examples)
        scores = [self.fold(number, part) for number, part in enumerate(parts, start=1)]
        return self.finish(examples, scores)

    def parts(self, examples: Sequence[LabelledItem]) -> tuple[DataFold, ...]:
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
            return (DataFold(seen, own),) if own else ()
        parts = folds(seen, request.folds, request.seed)
        return tuple(
            DataFold(part.seen, tuple(e for e in part.held_out if e.item.lang == request.target))
            for part in parts
        )

    def fold(self, number: int, part: DataFold) -> FoldScores:
        """Search on what a fold has seen, and score both prompts on what it holds out.

        Args:
            number: 1 for the first fold.
            part: its items.

        Raises:
            SpanlabError: the search cannot go on; says why.
        """
        self.on_event(
            SearchRemark(
                text=f"fold {number}: searching on {len(part.seen)} {self.request.unit}, "
                f"{len(part.held_out)} held out"
            )
        )
        tuned = self._search(part.seen, fold=number)
        if not part.held_out:
            return FoldScores()
        programs: tuple[tuple[Stage, dspy.Module], ...] = (
            ("baseline", self.subject.program),
            ("held-out", tuned),
        )
        before, after = (
            self._scores(program, part.held_out, self._watcher(len(part.held_out), number, stage))
            for stage, program in programs
        )
        return FoldScores(
            ids=tuple(example.item.id for example in part.held_out),
            languages=tuple(example.item.lang for example in part.held_out),
            before=tuple(score for score, _ in before),
            after=tuple(score for score, _ in after),
            judged_before=self._claims_judged(part.held_out, before),
            judged_after=self._claims_judged(part.held_out, after),
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
        held = held_out(scores, unit) if any(score.ids for score in scores) else None
        if request.target is not None:
            examples, _ = transferred(examples, request.target, request.transfer)
        self.on_event(SearchRemark(text=f"searching on all {len(examples)} {unit}"))
        tuned = self._search(examples, fold=0)
        if held is not None and held.is_macro_f1:
            self.on_event(SearchRemark(text=_macro_f1(held)))
        if held is not None and not held.better:
            text = f"the tuned prompt does not beat the untuned one on held-out {unit}"
            self.on_event(SearchRemark(text=text))
        return self._program(tuned, examples, held)

    def _scores(
        self, program: dspy.Module, examples: Sequence[LabelledItem], watcher: SearchWatcher
    ) -> list[tuple[float, dspy.Prediction]]:
        """Return the metric and the prediction of each; what the program fails on scores 0."""
        judged = self._judge(examples)
        evaluate = dspy.Evaluate(
            devset=[self.subject.example(example) for example in examples],
            metric=lambda example, prediction: judged(example, prediction).score,
            num_threads=self.request.threads,
            max_errors=len(examples) + 1,
            display_progress=False,
        )
        with quiet(), predicting(self.task_lm), dspy.context(callbacks=[watcher]):
            results = evaluate(program).results
        self._check()
        return [(float(score), prediction) for _, prediction, score in results]

    def _search(self, seen: Sequence[LabelledItem], *, fold: int) -> dspy.Module:
        learn, choose = (
            tuple(self.subject.example(example) for example in half)
            for half in halves(seen, self.request.seed)
        )
        watcher = self._watcher(len(choose), fold)
        work = SearchRound(
            request=self.request,
            program=self.subject.program.deepcopy(),
            learn=learn,
            choose=choose,
            has_answers=all(example.labels() for example in learn),
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

    def _watcher(self, items: int, fold: int, stage: Stage = "search") -> SearchWatcher:
        return SearchWatcher(self.stopper, self.on_event, items, fold, stage)

    def _check(self) -> None:
        if self.stopper.reason is not None:
            raise self.stopper.reason

    def _judge(
        self, examples: Sequence[LabelledItem]
    ) -> Callable[[dspy.Example, dspy.Prediction], ScoredAnswer]:
        """Return the metric on these; an example names which it is, several may read alike."""
        by_key = {example.key: example for example in examples}

        def judged(example: dspy.Example, prediction: dspy.Prediction) -> ScoredAnswer:
            return self.subject.judge(by_key[example.dspy_key], prediction)

        return judged

    def _claims_judged(
        self, examples: Sequence[LabelledItem], scored: Sequence[tuple[float, dspy.Prediction]]
    ) -> tuple[JudgedClaim, ...]:
        """Return the verdicts on held-out claims or steps, none where one failed; else nothing."""
        if self.request.unit not in {"claims", "steps"}:
            return ()
        return tuple(
            JudgedClaim(example.item.id, example.part.verdict, prediction.get("verdict"))
            for example, (_, prediction) in zip(examples, scored, strict=True)
            if example.part is not None
        )

    def _program(
        self, tuned: dspy.Module, examples: Sequence[LabelledItem], held: HeldOut | None
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
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            parent=request.detector.program,
            search_score=None if score is None else round(float(score) / 100, 6),
            held_out=held,
            predictors={**self.begun, **program_state(tuned)},
        )


def _macro_f1(held: HeldOut) -> str:
    return (
        "trials were scored by the share of right verdicts (accuracy); on held-out "
        f"{held.unit} the macro F1 of the untuned prompt is {held.baseline.mean:.3f}, "
        f"of the tuned one {held.tuned.mean:.3f}"
    )
