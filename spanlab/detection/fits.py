"""What detectors learnt from reviews: kept with datasets, found by name, chosen for a run.

A detector that learns says in its entry which function learns (``DetectorEntry.fit``) and has an
option ``fitted``. Of a run over a dataset it is the dataset's own fit, unless the option names
another dataset's or an id, or "none". A specification has the id, so that it says exactly what a
detector computes with; the numbers are read from the database where the detector is built.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pkgutil import resolve_name
from typing import Any

from pydantic import JsonValue

from spanlab.base.errors import NotFoundError, UsageError
from spanlab.base.processes import ProcessPool
from spanlab.detection.common.fit_options import FITTED, NO_FIT
from spanlab.detection.entry import entries, entry_of
from spanlab.detection.mark_count import LEAST, MarkCount
from spanlab.output.figures import counted
from spanlab.output.tables import Column, MeanInterval, ResultTable, columns_of
from spanlab.schema import (
    AnnotatorKind,
    DatasetSettings,
    DatasetSummary,
    DetectorFit,
    Status,
)
from spanlab.schema.fits import FitFigure
from spanlab.storage import Store
from spanlab.storage.datasets import summary_of

_KEPT = 3  # fits of a detector: jobs that began with an earlier one still find it


def find_fit(name: str, detector: str) -> DetectorFit:
    """Return a fit from the database that the environment names.

    Raises:
        NotFoundError: there is none of this name.
    """
    with Store.open() as store:
        return fit_named(store, name, detector)


def fit_named(store: Store, name: str, detector: str) -> DetectorFit:
    """Return the fit of a detector that has this id, or that the dataset of this name uses.

    An id is looked for in every dataset: copies and renamed datasets keep it.

    Raises:
        NotFoundError: there is none.
    """
    datasets = {summary.name: summary.settings for summary in store.datasets(versions=True)}
    in_use = datasets[name].fit_in_use(detector) if name in datasets else None
    if in_use is not None:
        return in_use
    kept = [fit for settings in datasets.values() for fit in settings.fits if fit.numbers]
    found = next((fit for fit in kept if fit.id == name and fit.detector == detector), None)
    if found is not None:
        return found
    available = ", ".join(sorted({fit.id for fit in kept if fit.detector == detector}))
    raise NotFoundError(
        f"no fit of {detector!r} named {name!r}; available: "
        f"{available or 'none: spanlab fit DATASET makes one'}"
    )


def options_with_fits(
    store: Store, dataset: str | None, detectors: Iterable[str], options: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return the options of detectors with the ids of their fits.

    Args:
        store: the annotation database.
        dataset: over which they run, whose own fits they use by default; None for files.
        detectors: their names.
        options: those that people set, by "name" or "detector.name".

    Raises:
        NotFoundError: a fit that an option names is not there.
    """
    completed = dict(options)
    for name in filter(learns, detectors):
        own_key = f"{name}.{FITTED}"
        chosen = completed.get(own_key, completed.get(FITTED, ""))
        if chosen and chosen != NO_FIT:
            completed[own_key] = fit_named(store, str(chosen), name).id
        elif not chosen and dataset is not None:
            own = store.settings(dataset).fit_in_use(name)
            completed |= {own_key: own.id} if own else {}
    return completed


def learns(detector: str) -> bool:
    """Say whether a detector learns from reviews."""
    return entry_of(detector).fit is not None


def learn(
    store: Store,
    detector: str,
    dataset: str,
    *,
    annotators: tuple[str, ...] = (),
    on_progress: Callable[[str, int, int], None] = lambda task, done, total: None,
) -> DetectorFit:
    """Let a detector learn from a dataset's reviews; nothing is stored.

    Args:
        store: the annotation database.
        detector: one that learns.
        dataset: an existing dataset.
        annotators: whose labels; empty for all people, or gold labels if no person finished any.
        on_progress: called with the task, and how many of how many steps of it are done.

    Raises:
        NotFoundError: there is no such dataset or annotator.
        UsageError: the detector does not learn, or there are too few reviews.
    """
    place = entry_of(detector).fit
    if place is None:
        names = ", ".join(entry.name for entry in entries() if entry.fit)
        raise UsageError(f"{detector!r} does not learn from reviews; available: {names}")
    function: Any = resolve_name(place)
    fit: DetectorFit = function(store, dataset, annotators=annotators, on_progress=on_progress)
    return fit


def keep_fit(store: Store, dataset: str, fit: DetectorFit) -> None:
    """Store a fit with a dataset, whose runs use it from now on if it is in use.

    One that did not gain is kept without numbers, so that nobody is asked again before there are
    more reviews; an earlier fit then stays in use.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: it is a version.
    """

    def add(settings: DatasetSettings) -> DatasetSettings:
        of_others = [old for old in settings.fits if old.detector != fit.detector]
        earlier = [
            old.model_copy(update={"in_use": old.in_use and not fit.in_use})
            for old in settings.fits
            if old.detector == fit.detector and old.numbers and old.id != fit.id
        ]
        dropped = [old for old in earlier if not old.in_use][: -(_KEPT - 1)]
        kept = [old for old in earlier if old not in dropped]
        return settings.model_copy(update={"fits": (*of_others, *kept, fit)})

    store.change_settings(dataset, add)


def remove_fit(store: Store, dataset: str, detector: str) -> DetectorFit:
    """Take the fits of a detector from a dataset, and return the one that was in use or the last.

    Raises:
        NotFoundError: it has none.
    """
    own = [fit for fit in store.settings(dataset).fits if fit.detector == detector]
    if not own:
        raise NotFoundError(f"{dataset!r} has no fit of {detector!r}")

    def without(settings: DatasetSettings) -> DatasetSettings:
        others = tuple(fit for fit in settings.fits if fit.detector != detector)
        return settings.model_copy(update={"fits": others, "fit_every": 0})

    store.change_settings(dataset, without)
    return next((fit for fit in own if fit.in_use), own[-1])


def fit_every(store: Store, dataset: str, reviews: int) -> None:
    """Let detectors learn again after each so many further reviews of a dataset; 0 for never.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: it is a version.
    """
    store.change_settings(
        dataset, lambda settings: settings.model_copy(update={"fit_every": reviews})
    )


_FIGURES = {
    "iou": "IoU, mean over answers",
    "precision": "Precision, by characters",
    "auroc": "AUROC of answers",
    "right_marked": "Right answers that get a mark",
    "calibration_error": "Calibration error, by characters",
}


def fit_tables(fit: DetectorFit) -> tuple[ResultTable, ...]:
    """Return the figures of a fit on answers that it did not learn from, before and after."""
    report = fit.report
    figures: dict[str, FitFigure] = {name: getattr(report, name) for name in _FIGURES}
    return (
        ResultTable(
            key="fit",
            title=f"{fit.detector} on {counted(report.answers, 'held-out answer')} in "
            f"{counted(report.groups, 'group')}, cross-validated in {report.folds} folds",
            columns=(
                Column(key="figure", title="Figure"),
                *columns_of("score", "Before", "After"),
                Column(key="difference", title="Difference [95 % interval]", unit="difference"),
            ),
            rows=tuple(
                (title, figures[name].before, figures[name].after, _difference(figures[name]))
                for name, title in _FIGURES.items()
            ),
        ),
    )


def _difference(figure: FitFigure) -> MeanInterval | None:
    before, after, low, high = figure.before, figure.after, figure.low, figure.high
    if before is None or after is None or low is None or high is None:
        return None
    return MeanInterval(mean=after - before, low=low, high=high)


def fit_in_words(
    fit: DetectorFit, dataset: str, before: DetectorFit | None, *, is_kept: bool
) -> str:
    """Say whether a fit gains and what follows from that, in a sentence or two.

    Args:
        fit: the fit.
        dataset: what its dataset is called.
        before: the fit that was in use until then, None for none.
        is_kept: whether it was stored.
    """
    learnt_from = f"{counted(len(fit.learnt_from), 'answer')} by {', '.join(fit.annotators)}"
    if not fit.in_use:
        stays = f"; {before.id!r} stays in use" if before else ""
        return f"{fit.detector} gains nothing from {learnt_from}: nothing was changed{stays}"
    if not is_kept:
        return f"{fit.detector} would gain from {learnt_from}: nothing was changed (--dry-run)"
    return (
        f"{fit.detector} learnt from {learnt_from}. Runs over {dataset!r} now use {fit.id!r}: "
        f"spanlab annotate {dataset} --detector {fit.detector} --again"
    )


@dataclass(frozen=True)
class FitState:
    """How far a dataset is with the reviews that a detector can learn from.

    ``reviews`` are the answers that people finished, each person's counted; of gold labels those
    of one annotator where no person finished any. ``in_use`` is what runs use, ``latest`` the last
    try, which may have gained nothing.
    """

    detector: str
    reviews: int
    in_use: DetectorFit | None
    latest: DetectorFit | None
    least: int = LEAST

    @property
    def can_learn(self) -> bool:
        """Whether there may be enough reviews."""
        return self.reviews >= self.least

    @property
    def is_due(self) -> bool:
        """Whether there are 30 reviews that no fit has tried to learn from."""
        return self.reviews - (self.latest.reviews if self.latest else 0) >= self.least


def fit_state(summary: DatasetSummary, detector: str) -> FitState:
    """Return how far a dataset is with the reviews that a detector can learn from."""
    tried = [fit for fit in summary.settings.fits if fit.detector == detector]
    return FitState(
        detector=detector,
        reviews=reviews_of(summary),
        in_use=summary.settings.fit_in_use(detector),
        latest=max(tried, key=lambda fit: fit.made, default=None),
    )


def reviews_of(summary: DatasetSummary) -> int:
    """Return how many reviews people finished in a dataset, or else how many gold labels it has."""
    done = [(who.kind, who.counts.get(Status.DONE, 0)) for who in summary.annotators]
    people = sum(count for kind, count in done if kind is AnnotatorKind.PERSON)
    return people or max((count for kind, count in done if kind is AnnotatorKind.GOLD), default=0)


def learners(summary: DatasetSummary) -> tuple[str, ...]:
    """Return the detectors that have annotated a dataset and learn from reviews."""
    here = summary.names_of(AnnotatorKind.DETECTOR)
    return tuple(entry.name for entry in entries() if entry.fit and entry.name in here)


_begun: dict[tuple[str, str], int] = {}  # by dataset and detector: reviews when it last learnt


def learn_if_due(summary: DatasetSummary) -> None:
    """Let detectors learn again where as many reviews have come as ``fit_every`` says.

    A process of its own does it, so that nobody waits; runs that begin later use the result.
    """
    every = summary.settings.fit_every
    for detector in learners(summary) if every else ():
        state, place = fit_state(summary, detector), (summary.name, detector)
        before = max(state.latest.reviews if state.latest else 0, _begun.get(place, 0))
        if state.can_learn and state.reviews - before >= every:
            _begun[place] = state.reviews
            pool = ProcessPool(1)
            pool.submit(learn_and_keep, detector, summary.name)
            pool.shutdown(wait=False)


def learn_and_keep(detector: str, dataset: str) -> None:
    """Let a detector learn from a dataset's reviews and store the result; see ``learn``."""
    with Store.open() as store:
        keep_fit(store, dataset, learn(store, detector, dataset))


_LOOKED_AT = 500  # answers


def marked_remarks(store: Store, dataset: str, detectors: Collection[str]) -> tuple[str, ...]:
    """Return a sentence on each detector that learns, has no fit here and marks nearly all answers.

    That is more than 90 % of 30 answers or more; the first 500 that it has finished are looked at.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        detectors: their names.
    """
    summary = summary_of(store, dataset)
    remarks = []
    for name in learners(summary):
        if name not in detectors or summary.settings.fit_in_use(name):
            continue
        finished = (
            annotation
            for record in store.records(dataset, annotators=[name])
            if (annotation := record.by(name)) and annotation.status is Status.DONE
        )
        count = MarkCount()
        for annotation in islice(finished, _LOOKED_AT):
            count.add(annotation)
        remarks += [f"{name} {count.remark(dataset)}"] if count.is_nearly_all else []
    return tuple(remarks)
