"""What prompts are tuned on: whole answers, claims, and the parts of items that systems bring.

Rooms and packages offer a ``TuningUnit`` under "subjects", with the metrics that score it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from optimizers.examples import LabelledItem, LabelSource, labelled_claims, labelled_items
from optimizers.metrics import ANSWER_TARGETS, ScoredAnswer, judge_verdict
from spanlab.base.errors import UsageError
from spanlab.base.inbound import brought, offered
from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec
from spanlab.detection.entry import DetectorEntry
from spanlab.models import Meter
from spanlab.schema import Record, Unit
from spanlab.scoring.spans import METRICS

_KIND = "subjects"


@dataclass(frozen=True)
class TuningUnit:
    """A part of items that prompts are tuned on.

    Attributes:
        labelled: yields the parts that a source has labels for.
        missing: what there is none of, where there is none; ``{labels}`` is the source.
        metrics: the metrics that score it, the usual one first, and what they are called on the
            screen.
        scored: what they score, in words.
        judge: scores a part by what is right, what was said of it (None for nothing), and why. Of
            verdicts the score of a trial is the share of right ones (accuracy), and macro F1 is
            what those held out are compared by. None for the spans of whole answers.
        also: units that a detector which is tuned on this one can be tuned on, too.
        build: makes the object whose predictors are tuned (a ``PartDetector``), given a detector's
            specification, a meter and the settings; None for the detector itself.
    """

    labelled: Callable[[Iterable[Record], LabelSource], Iterator[LabelledItem]]
    missing: str
    metrics: Mapping[str, str]
    scored: str
    judge: Callable[[str, str | None, str], ScoredAnswer] | None = judge_verdict
    also: tuple[Unit, ...] = ()
    build: Callable[[DetectorSpec, Meter, Settings], object] | None = None

    @property
    def are_verdicts(self) -> bool:
        """Whether a part is either right or wrong."""
        return self.judge is judge_verdict


ITEMS = TuningUnit(
    labelled_items,
    "no item has finished {labels} labels",
    {
        **{key.replace("_", "-"): metric.title for key, metric in METRICS.items()},
        "iou+corr": "mean of IoU and Corr",
        "all": "mean of IoU, Corr and MaxIoU",
        **ANSWER_TARGETS,
    },
    "the spans of answers",
    judge=None,
)
CLAIMS = TuningUnit(
    labelled_claims,
    "no item has claims with {labels} verdicts",
    {"verdict-f1": "macro F1 of verdicts on claims"},
    "verdicts on claims",
)


@cache
def units() -> Mapping[Unit, TuningUnit]:
    """Return all units by name, whole items first; one of a broken package is left out."""
    found = dict[Unit, TuningUnit]()
    for name in sorted(offered(_KIND), key=lambda name: name != "items"):
        with suppress(UsageError):  # who asks for it by name is told
            found[name] = brought(_KIND, name)
    return found


def unit_of(metric: str) -> Unit:
    """Return the name of the unit that a metric scores."""
    return next((name for name, unit in units().items() if metric in unit.metrics), "items")


def metrics_for(tuned: DetectorEntry) -> tuple[str, ...]:
    """Return what a detector can be tuned for, the usual metric first.

    Raises:
        UsageError: nobody offers what it is tuned on.
    """
    name = "items" if tuned.tuned_on == "spans" else tuned.tuned_on
    unit = units().get(name) or brought(_KIND, name)
    others = (units()[other] for other in unit.also if other in units())
    return tuple(metric for each in (unit, *others) for metric in each.metrics)


def check_metric(metric: str, tuned: DetectorEntry | None = None) -> None:
    """Check that a metric exists and scores what a detector is tuned on.

    Args:
        metric: its name.
        tuned: the detector; None checks the name alone.

    Raises:
        UsageError: says which metrics would be right.
    """
    known = [name for unit in units().values() for name in unit.metrics]
    if metric not in known:
        raise UsageError(f"no metric named {metric!r}; available: {', '.join(known)}")
    if tuned is not None and metric not in (fitting := metrics_for(tuned)):
        scored = units()[unit_of(metric)].scored
        usual = units()[unit_of(fitting[0])].scored
        raise UsageError(
            f"the metric {metric!r} scores {scored}, and {tuned.name!r} is tuned on {usual} "
            f"(its metrics: {', '.join(fitting)})"
        )
