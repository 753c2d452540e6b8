"""At which stage of a process errors came in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean
from typing import Any, NamedTuple

from spanlab.base.errors import UsageError
from spanlab.output.figures import percent, sampling_alone
from spanlab.output.tables import (
    Chart,
    Column,
    MeanInterval,
    ResultTable,
    columns_of,
    figures_of,
    several,
)
from spanlab.schema import (
    HALLUCINATED,
    Annotation,
    AnnotatorKind,
    Claim,
    DatasetSummary,
    Item,
    SharedProcess,
)
from spanlab.schema.stages import stages_of
from spanlab.scoring.agreement import StageAgreement, stage_agreement, stage_shares
from spanlab.scoring.report import mean_of
from spanlab.scoring.verdicts import by_text
from spanlab.storage import Store
from spanlab.storage.datasets import check_annotators, summary_of, with_progress

_REPORT_EVERY = 100
_GOLD = (
    Column(key="known", title="Stage in gold", unit="count"),
    Column(
        key="found",
        title="Named as in gold",
        unit="share",
        about="Share of the errors whose stage the gold labels name, of which it names the stage.",
    ),
)


@dataclass(frozen=True)
class RunStages:
    """The errors that one annotator found.

    ``claims`` is the number of those that it calls wrong, ``undetermined`` of these the number
    whose stage cannot be told. ``shares`` are the stages' of the others, empty if there are none.
    ``found`` is the share of errors whose stage gold labels name that it names, too, with an
    interval over these ``known`` errors; None without gold stages. Of an error for which it names
    several stages, the gold one among them is enough (the paper's §3.2 names them all).
    """

    annotator: str
    claims: int
    undetermined: int
    shares: Mapping[str, MeanInterval]
    known: int = 0
    found: MeanInterval | None = None

    @property
    def told(self) -> int:
        """The number of errors whose stage is known."""
        return self.claims - self.undetermined


class StagePair(NamedTuple):
    """Two annotators, each with errors whose stage is known, and how alike these are spread."""

    a: str
    b: str
    agreement: StageAgreement


@dataclass(frozen=True)
class ErrorStages:
    """The errors of a dataset by stage; ``stages`` are in the order of the processes.

    ``remarks`` say what the intervals of the shares do not, in sentences.
    """

    stages: tuple[str, ...]
    runs: tuple[RunStages, ...]
    pairs: tuple[StagePair, ...]
    remarks: tuple[str, ...] = ()

    @property
    def sentence(self) -> str | None:
        """At which stage most errors were introduced, by the run that tells most; None for none."""
        runs = [run for run in self.runs if run.shares]
        if not runs:
            return None
        run = max(runs, key=lambda run: run.told)
        stage, share = max(run.shares.items(), key=lambda entry: entry[1].mean)
        return (
            f"Most errors that {run.annotator} found were introduced at the stage {stage}: "
            f"{percent(share.mean)} of {run.told:,}."
        )

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the errors of each run, their shares by stage, and how alike runs are."""
        is_scored = any(run.found for run in self.runs)
        runs = ResultTable(
            key="error-runs",
            title="Errors found",
            columns=(
                *columns_of("text", "Run"),
                *columns_of("count", "Claims not supported", "Stage known"),
                *(_GOLD if is_scored else ()),
            ),
            rows=tuple(
                (
                    *(run.annotator, run.claims, run.told),
                    *((run.known, several(run.found, run.known)) if is_scored else ()),
                )
                for run in self.runs
            ),
        )
        tables = [runs, self._share_table(), self._pair_table()]
        return tuple(table for table in tables if table.rows)

    def figures(self) -> dict[str, Any]:
        """Return all figures."""
        pairs = [{"a": a, "b": b, **agreement._asdict()} for a, b, agreement in self.pairs]
        return figures_of(**vars(self) | {"pairs": pairs})

    def _share_table(self) -> ResultTable:
        return ResultTable(
            key="error-stages",
            title="Errors by stage, with 95 % intervals",
            columns=(*columns_of("text", "Stage", "Run"), *columns_of("share", "Share of errors")),
            rows=tuple(
                (stage, run.annotator, several(share, run.told))
                for run in self.runs
                for stage, share in run.shares.items()
            ),
            remarks=self.remarks,
            chart=Chart(kind="dots", x="share-of-errors", y="stage", group="run"),
        )

    def _pair_table(self) -> ResultTable:
        return ResultTable(
            key="error-stages-pairs",
            title="Two runs compared",
            columns=(
                *columns_of("text", "Run", "and"),
                Column(
                    key="divergence",
                    title="Divergence",
                    unit="score",
                    about="Jensen-Shannon divergence: 0 for equal shares, 1 where no stage is "
                    "common.",
                ),
                Column(
                    key="spearman",
                    title="Spearman",
                    unit="difference",
                    about="Correlation of the order of the stages.",
                ),
            ),
            rows=tuple(
                (a, b, agreement.divergence, agreement.correlation)
                for a, b, agreement in self.pairs
            ),
        )


@dataclass
class _StageCounts:
    """Counts of stages and errors over the records that were read so far."""

    wrong: dict[str, list[tuple[str, ...]]] = field(default_factory=lambda: defaultdict(list))
    named: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))  # of gold's
    places: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    processes: set[str] = field(default_factory=set)

    def add_stages(self, item: Item) -> None:
        """Note where the stages of a process stand, roots left out: nothing came in there."""
        if isinstance(item.process, SharedProcess):
            if item.process.id in self.processes:
                return
            self.processes.add(item.process.id)
        stages = stages_of(item)
        names = list(stages.sizes) if stages else []
        for index, name in enumerate(names[1:], start=1):
            self.places[name].append(index / len(names))

    def add_claims(self, annotation: Annotation, gold: Mapping[str, Claim]) -> None:
        """Note the errors that an annotator found, and which of gold's stages it names."""
        self.wrong[annotation.annotator] += _wrong(annotation)
        claims = by_text(annotation.claims)
        for text, claim in gold.items():
            if claim.error_stages:
                stages = claims[text].error_stages if text in claims else ()
                self.named[annotation.annotator].append(
                    not set(stages).isdisjoint(claim.error_stages)
                )

    def order(self) -> tuple[str, ...]:
        """Return the stages, earliest first, as they stand on average."""
        stages = {stage for claims in self.wrong.values() for claim in claims for stage in claim}
        for stage in stages:
            self.places.setdefault(stage, [1.0])
        return tuple(sorted(self.places, key=lambda stage: (fmean(self.places[stage]), stage)))


def error_stages(
    store: Store,
    dataset: str,
    annotators: Sequence[str] = (),
    on_progress: Callable[[int], None] | None = None,
) -> ErrorStages:
    """Count the errors of answers by the stage at which they came in, and score what gold names.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        annotators: whose claims are counted; by default every detector's that judged any.
        on_progress: called now and then with the number of items read.

    Raises:
        NotFoundError: the dataset, or an annotator of it, does not exist.
        UsageError: none of them has judged a claim.
    """
    summary = summary_of(store, dataset)
    names = tuple(annotators) or judges(summary)
    check_annotators(summary, names)
    counts, judged = _StageCounts(), set[str]()
    golds = summary.names_of(AnnotatorKind.GOLD)
    read = tuple(dict.fromkeys((*names, *golds)))
    records = store.records(dataset, annotators=read) if names else iter(())
    for record in with_progress(records, on_progress, _REPORT_EVERY):
        counts.add_stages(record.item)
        gold = by_text(claim for a in record.finished if a.annotator in golds for claim in a.claims)
        for annotation in record.finished:
            if annotation.annotator in names and annotation.claims:
                judged.add(annotation.annotator)
                counts.add_claims(annotation, {} if annotation.annotator in golds else gold)
    if not judged:
        raise UsageError(f"no claim of {dataset!r} is judged by {', '.join(names) or 'a detector'}")
    stages = counts.order()
    runs = tuple(_run(name, counts, stages) for name in names if name in judged)
    detectors = [run.annotator for run in runs if run.annotator in judges(summary) and run.shares]
    remarks = (sampling_alone(detectors),) if detectors else ()
    return ErrorStages(stages, runs, tuple(_pairs(runs, stages)), remarks)


def judges(summary: DatasetSummary) -> tuple[str, ...]:
    """Return the detectors of a dataset, any of which may have judged claims."""
    return tuple(summary.names_of(AnnotatorKind.DETECTOR))


def _wrong(annotation: Annotation) -> list[tuple[str, ...]]:
    return [claim.error_stages for claim in annotation.claims if claim.verdict in HALLUCINATED]


def _run(name: str, counts: _StageCounts, stages: Sequence[str]) -> RunStages:
    wrong, named = counts.wrong[name], counts.named[name]
    staged = [claim for claim in wrong if claim]
    shares = stage_shares(staged, stages) if staged else {}
    mean = mean_of(named) if named else None
    return RunStages(
        name, len(wrong), len(wrong) - len(staged), shares=shares, known=len(named), found=mean
    )


def _pairs(runs: Sequence[RunStages], stages: Sequence[str]) -> Iterable[StagePair]:
    for a, b in combinations([run for run in runs if run.shares], 2):
        shares_a, shares_b = ([run.shares[stage].mean for stage in stages] for run in (a, b))
        yield StagePair(a.annotator, b.annotator, stage_agreement(shares_a, shares_b))
