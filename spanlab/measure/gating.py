"""Comparisons of rates of two groups or datasets, and a gate for other programs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np

from spanlab.base.errors import SpanlabError, UsageError
from spanlab.base.fields import check_share
from spanlab.base.redaction import visible
from spanlab.measure.powered import difference_interval, paired_interval
from spanlab.measure.sample import MeasuredItems, check_plan, interval_of, read_measured, shown_rate
from spanlab.output.figures import percent
from spanlab.output.tables import (
    Cell,
    Column,
    MeanInterval,
    ResultTable,
    Unit,
    column_of,
    figures_of,
    table_of,
    write_cell,
)
from spanlab.storage import Store
from spanlab.storage.datasets import summary_of

_COMMON: Final = 30  # reviewed questions from which a paired comparison is made


class MeasuredSide(NamedTuple):
    """One side of a comparison: measured items, or one group of them."""

    items: MeasuredItems
    group: str | None = None


class RateChange(NamedTuple):
    """A rate minus another one, and on how many common questions; 0 for all items of both.

    ``repeated`` says that these are not compared one by one as they have several answers, of which
    some are not reviewed.
    """

    difference: MeanInterval
    questions: int = 0
    repeated: bool = False

    @property
    def how(self) -> str:
        """How the two were compared, in words."""
        if self.questions:
            return f"paired on {self.questions:,} common questions"
        why = "; paired once all answers to their common questions are reviewed"
        return f"of all items{why if self.repeated else ''}"


def compare_rates(
    new: MeasuredSide, old: MeasuredSide, *, comparisons: int = 1, like: bool = False
) -> RateChange | None:
    """Return the difference of two rates, with a 95 % interval.

    Args:
        new: the rate that the other one is taken from.
        old: the other one, which may be another group of the same items.
        comparisons: how many are made together; their intervals hold together (Bonferroni).
        like: whether the interval is for answers like these, not for these as they were marked.

    Returns:
        On common questions where enough of these are reviewed; None without reviews of both.
    """
    answers = [_by_question(side) for side in (new, old)]
    paired = _compare_on_common((new, old), answers, comparisons, like)
    if paired is not None:
        return paired
    rates = [side.items.estimate(side.group, like=like) for side in (new, old)]
    if rates[0] is None or rates[1] is None:
        return None
    df = max(min(len(side.items.chosen(side.group)) for side in (new, old)) - 1, 2)
    mean, low, high = difference_interval(rates[0], rates[1], comparisons=comparisons, df=df)
    common = answers[0].keys() & answers[1].keys()
    repeated = len(common) >= _COMMON and any(len(of[key]) > 1 for of in answers for key in common)
    return RateChange(MeanInterval(mean=mean, low=low, high=high), repeated=repeated)


def _compare_on_common(
    sides: tuple[MeasuredSide, MeasuredSide],
    answers: Sequence[Mapping[str, Sequence[int]]],
    comparisons: int,
    like: bool,
) -> RateChange | None:
    """Compare on the questions that both have, each with all of its answers.

    Samples of one seed have the same questions first; which ones are reviewed in both is chance.
    Of a question with several answers, that depends on how many they are: such questions count
    where everything is reviewed.
    """
    plans = [side.items.plan for side in sides]
    if plans[0].seed != plans[1].seed or not all(plan.is_even for plan in plans):
        return None
    done = [
        {key for key, at in by_question.items() if chosen.issuperset(at)}
        for by_question, chosen in zip(answers, map(_counted, sides), strict=True)
    ]
    common = [key for key in answers[0] if key in answers[1]]
    if not done[0].intersection(done[1]).issuperset(common):
        common = [key for key in common if len(answers[0][key]) == len(answers[1][key]) == 1]
    in_both = np.array([key in done[0] and key in done[1] for key in common], dtype=bool)
    if in_both.sum() < _COMMON:
        return None
    a, b = (
        {
            name: np.array([column[by_question[key]].sum() for key in common])
            for name, column in side.items.columns.items()
        }
        for side, by_question in zip(sides, answers, strict=True)
    )
    mean, low, high = paired_interval(a, b, in_both, comparisons, superpopulation=like)
    return RateChange(MeanInterval(mean=mean, low=low, high=high), int(in_both.sum()))


def _counted(side: MeasuredSide) -> set[int]:
    return set(side.items.chosen(side.group).tolist())


def _by_question(side: MeasuredSide) -> dict[str, list[int]]:
    """Return the positions of a side's answers to each question."""
    by_question: dict[str, list[int]] = {}
    for at in np.flatnonzero(side.items.inside(side.group)).tolist():
        by_question.setdefault(side.items.items[at].key, []).append(at)
    return by_question


_SUMMARY: Final = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True)
class GateCheck:
    """One condition: what was measured, what is allowed, whether it passed, and why.

    What was measured is a share, or points: the difference of two.
    """

    name: str
    found: MeanInterval
    limit: float
    passed: bool
    why: str
    unit: Unit = "share"

    def written(self, cell: Cell) -> str:
        """Return what was measured, or the limit, in the check's unit."""
        text = write_cell(cell, Column(key="cell", title="", unit=self.unit))
        return f"{text} points" if self.unit == "points" else text


@dataclass(frozen=True)
class GateResult:
    """The result of a gate: its conditions, and whether they hold."""

    dataset: str
    checks: tuple[GateCheck, ...]
    state: str

    @property
    def passed(self) -> bool:
        """Whether all conditions hold."""
        return all(check.passed for check in self.checks)

    def tables(self) -> tuple[ResultTable, ...]:
        """Return a row for each condition."""
        gate = table_of(
            "gate",
            f"Gate of {self.dataset}: {'passed' if self.passed else 'failed'}",
            self.checks,
            (column_of("text", "Check"), lambda check: check.name),
            (column_of("text", "Found"), lambda check: check.written(shown_rate(check.found))),
            (column_of("text", "Limit"), lambda check: check.written(check.limit)),
            (column_of("text", "Result"), lambda check: "passed" if check.passed else "failed"),
            (column_of("text", "Why"), lambda check: check.why),
            remarks=(self.state,),
        )
        return (gate,)

    def figures(self) -> dict[str, Any]:
        """Return all figures."""
        return figures_of(
            dataset=self.dataset, passed=self.passed, checks=self.checks, state=self.state
        )


class GateSubject(NamedTuple):
    """What a gate checks: a dataset, whose marks count, and one group of it (None for all)."""

    dataset: str
    annotator: str | None = None
    group: str | None = None


def check_gate(
    store: Store,
    subject: GateSubject,
    *,
    max_rate: float | None = None,
    require_proof: bool = False,
    against: str | None = None,
) -> GateResult:
    """Check a measured rate.

    Args:
        store: the annotation database.
        subject: a dataset with a measurement.
        max_rate: fails if the lower bound of the rate is above.
        require_proof: fails also unless the upper bound is below.
        against: another group of the dataset, or another measured dataset; fails if the difference
            is shown to be above 0.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: nothing is asked for, ``max_rate`` is no share, something is compared with
            itself, or there is no measurement, no review yet or no such group.
    """
    if max_rate is None and against is None:
        raise UsageError(
            "say what to check: --max-rate .05, --against DATASET or MODEL, or both, or "
            "--min-citation-recall .8, --min-citation-precision .8"
        )
    if require_proof and max_rate is None:
        raise UsageError("--require-proof needs the rate to be proven: --max-rate .05")
    dataset, items = subject.dataset, _items(store, subject.dataset, subject.annotator)
    if subject.group is not None and subject.group not in items.groups:
        groups = ", ".join(items.groups) or "none: its plan has no --by"
        raise UsageError(f"{dataset!r} has no group {subject.group!r}; available: {groups}")
    sides = None if against is None else _find_sides(store, items, subject, against)
    group = subject.group if sides is None else sides[0].group
    rate = interval_of(items.estimate(group))
    if rate is None:
        of_group = f", group {group!r}" if group else ""
        raise UsageError(f"the gate needs reviews of {dataset!r}{of_group}. {items.line}")
    checks = []
    if max_rate is not None:
        check_share("max_rate", max_rate)
        checks.append(_check_level(rate, max_rate, require_proof=require_proof))
    if sides is not None and against is not None:
        new, old = sides
        checks.append(check_change(new, old, against))
    return GateResult(f"{dataset}: {group}" if group else dataset, tuple(checks), items.line)


def _items(store: Store, dataset: str, annotator: str | None) -> MeasuredItems:
    """Return a dataset's sample, with the marks of another detector than the plan's if named."""
    plan = summary_of(store, dataset).settings.measurement
    if plan is not None and annotator not in {None, plan.annotator}:
        if plan.design == "uncertainty":
            raise UsageError(
                f"the sample of {dataset!r} follows the uncertainty of {plan.annotator!r}: measure "
                f"{annotator!r} with another design"
            )
        plan = plan.model_copy(update={"annotator": annotator})
        check_plan(store, dataset, plan)
    return read_measured(store, dataset, plan)


def _find_sides(
    store: Store, items: MeasuredItems, subject: GateSubject, against: str
) -> tuple[MeasuredSide, MeasuredSide]:
    group, groups = subject.group, items.groups
    if against == (subject.dataset if group is None else group):
        raise UsageError(f"{against!r} cannot be compared with itself")
    if against in groups:
        other_groups = [value for value in groups if value != against]
        if group is None and len(other_groups) != 1:
            raise UsageError(f"say which is compared with {against!r}: --group, one of {groups}")
        return MeasuredSide(items, group or other_groups[0]), MeasuredSide(items, against)
    return MeasuredSide(items, group), MeasuredSide(_items(store, against, None))


def _check_level(rate: MeanInterval, limit: float, *, require_proof: bool) -> GateCheck:
    above, below = rate.low > limit, rate.high < limit
    side = "above" if above else "below" if below else ""
    why = f"significantly {side}" if side else "neither significantly above nor below"
    passed = below if require_proof else not above
    name = f"rate of these answers at most {percent(limit)}"
    return GateCheck(name, found=rate, limit=limit, passed=passed, why=why + _about(rate))


def _about(found: MeanInterval) -> str:
    whole = "; all answers were reviewed: no uncertainty from sampling"
    return "" if found is shown_rate(found) else whole


def check_change(new: MeasuredSide, old: MeasuredSide, against: str) -> GateCheck:
    """Check that answers like these are not shown to be hallucinated more often than others.

    Two models are compared, not the two samples: of these one is always higher.

    Raises:
        UsageError: they count different things, or one has no reviews.
    """
    units = new.items.plan.unit, old.items.plan.unit
    if units[0] != units[1]:
        raise UsageError(f"one counts {units[0]}, {against!r} counts {units[1]}")
    change = compare_rates(new, old, like=True)
    if change is None:
        raise UsageError(f"{against!r} has no reviews of its sample yet")
    worse = change.difference.low > 0
    shown = "shown to be higher" if worse else "not shown to be higher"
    why = f"{shown} for future answers, {change.how}"
    name = f"no higher than {against}"
    passed = not worse
    return GateCheck(
        name, found=change.difference, limit=0.0, passed=passed, why=why, unit="points"
    )


def write_reports(result: GateResult, junit: Path | None) -> None:
    """Write a gate's result as JUnit XML, and as Markdown into the step summary of GitHub.

    Args:
        result: the result.
        junit: the file for JUnit XML; None writes none. The step summary is written where the
            environment names its file.
    """
    if junit is not None:
        cases = [
            (check.name, "" if check.passed else "failure", _sentence(check))
            for check in result.checks
        ]
        _write_junit(junit, result.dataset, cases)
    _write_summary(_markdown(result, result.checks))


@contextmanager
def errors_reported(dataset: str, junit: Path | None) -> Iterator[None]:
    """Write why a gate cannot be checked where its result would be, see ``write_reports``.

    Raises:
        UsageError: it cannot, for whatever reason: its exit status is none of a rate too high.
    """
    try:
        yield
    except SpanlabError as error:
        if junit is not None:
            _write_junit(junit, dataset, [("gate", "error", str(error))])
        _write_summary([f"### Gate of {_cell(dataset)}: not checked\n", f"{_cell(str(error))}\n"])
        raise UsageError(str(error)) from error


def _write_summary(lines: Iterable[str]) -> None:
    if summary := os.environ.get(_SUMMARY):
        with Path(summary).open("a", encoding="utf-8") as stream:
            stream.write("\n".join(lines))


def _write_junit(junit: Path, dataset: str, cases: Sequence[tuple[str, str, str]]) -> None:
    """Write cases: their names, and tag and message of what is wrong; no tag for nothing."""
    tags = [tag for _, tag, _ in cases]
    suite = ET.Element("testsuite", name=visible(f"spanlab gate {dataset}"), tests=str(len(cases)))
    suite.attrib |= {f"{tag}s": str(tags.count(tag)) for tag in ("failure", "error")}
    for name, tag, message in cases:
        case = ET.SubElement(suite, "testcase", classname="spanlab.gate", name=visible(name))
        if tag:
            ET.SubElement(case, tag, message=visible(message))
    ET.ElementTree(suite).write(junit, encoding="utf-8", xml_declaration=True)


def _markdown(result: GateResult, checks: Sequence[GateCheck]) -> Iterable[str]:
    yield f"### Gate of {_cell(result.dataset)}: {'passed' if result.passed else 'failed'}\n"
    yield "| Check | Found | Result |"
    yield "| --- | --- | --- |"
    for check in checks:
        verdict = "passed" if check.passed else "**failed**"
        yield f"| {_cell(check.name)} | {_cell(_sentence(check))} | {verdict} |"
    yield f"\n{_cell(result.state)}\n"


def _sentence(check: GateCheck) -> str:
    return f"{check.written(shown_rate(check.found))}: {check.why}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
