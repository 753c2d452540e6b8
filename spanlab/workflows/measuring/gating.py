"""A gate for other programs: whether a measured rate is too high, or higher than it was."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import numpy as np

from spanlab.errors import UsageError
from spanlab.results import Column, MeanInterval, ResultTable, columns_of, figure
from spanlab.scorers.powered import difference_interval, t_quantile
from spanlab.storage import Store
from spanlab.workflows.measuring.measurement import measure
from spanlab.workflows.measuring.sample import MeasuredItems, read_measured

__all__ = ["GateCheck", "GateResult", "check_gate", "write_reports"]

_COMMON: Final = 30  # reviewed questions from which a paired comparison is made
_CHANGED: Final = 10  # … that differ
_SUMMARY: Final = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True)
class GateCheck:
    """One condition: what was measured, what is allowed, whether it passed, and why."""

    name: str
    found: MeanInterval
    limit: float
    passed: bool
    why: str


@dataclass(frozen=True)
class GateResult:
    """What a gate says of a dataset."""

    dataset: str
    checks: tuple[GateCheck, ...]
    state: str

    @property
    def passed(self) -> bool:
        """Whether all conditions hold."""
        return all(check.passed for check in self.checks)

    def tables(self) -> tuple[ResultTable, ...]:
        """Return a row for each condition."""
        return (
            ResultTable(
                key="gate",
                title=f"Gate of {self.dataset}: {'passed' if self.passed else 'failed'}",
                columns=(
                    *columns_of("text", "Check"),
                    Column(key="found", title="Found", unit="score"),
                    Column(key="limit", title="Limit", unit="score"),
                    *columns_of("text", "Result", "Why"),
                ),
                rows=tuple(
                    (c.name, c.found, c.limit, "passed" if c.passed else "failed", c.why)
                    for c in self.checks
                ),
                remarks=(self.state,),
            ),
        )

    def figures(self) -> dict[str, Any]:
        """Return all figures."""
        checks = [{**asdict(c), "found": c.found.model_dump()} for c in self.checks]
        return {
            "dataset": self.dataset,
            "passed": self.passed,
            "checks": checks,
            "state": self.state,
        }


def check_gate(
    store: Store,
    dataset: str,
    *,
    max_rate: float | None = None,
    require_proof: bool = False,
    against: str | None = None,
) -> GateResult:
    """Check a measured rate.

    Args:
        store: the annotation database.
        dataset: a dataset with a measurement.
        max_rate: fails if the lower bound of the rate is above.
        require_proof: fails also unless the upper bound is below.
        against: another measured dataset; fails if the difference is shown to be above 0.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: nothing is asked for, or there is no measurement, or no review yet.
    """
    if max_rate is None and against is None:
        raise UsageError("say what to check: --max-rate .05, --against DATASET, or both")
    if require_proof and max_rate is None:
        raise UsageError("--require-proof needs the rate to be proven: --max-rate .05")
    found = measure(store, dataset)
    if found.rate.finite is None:
        raise UsageError(f"{dataset!r} has no reviews of its sample yet: {found.line}")
    checks = []
    if max_rate is not None:
        checks.append(_level(found.rate.finite, max_rate, require_proof=require_proof))
    if against is not None:
        checks.append(
            _change(read_measured(store, dataset), read_measured(store, against), against)
        )
    return GateResult(dataset, tuple(checks), found.line)


def _level(rate: MeanInterval, limit: float, *, require_proof: bool) -> GateCheck:
    above, below = rate.low > limit, rate.high < limit
    why = "shown to be above" if above else "shown to be below" if below else "not shown either way"
    passed = below if require_proof else not above
    return GateCheck(f"rate at most {figure(limit)}", rate, limit, passed, why)


def _change(new: MeasuredItems, old: MeasuredItems, against: str) -> GateCheck:
    if new.plan.unit != old.plan.unit:
        raise UsageError(f"one counts {new.plan.unit}, {against!r} counts {old.plan.unit}")
    found = _paired(new, old)
    how = "paired on common questions"
    if found is None:
        how = "of all items"
        rates = new.estimate(), old.estimate()
        if rates[0] is None or rates[1] is None:
            raise UsageError(f"{against!r} has no reviews of its sample yet")
        df = max(min(new.reviewed, old.reviewed) - 1, 2)
        mean, low, high = difference_interval(rates[0], rates[1], df=df)
        found = MeanInterval(mean=mean, low=low, high=high)
    worse = found.low > 0
    why = f"{'shown to be higher' if worse else 'not shown to be higher'}, {how}"
    return GateCheck(f"no higher than {against}", found, 0.0, not worse, why)


def _paired(new: MeasuredItems, old: MeasuredItems) -> MeanInterval | None:
    """Return the mean difference on questions that both have, None where few were reviewed.

    Samples of one seed have the same questions first; which ones are reviewed in both is chance.
    """
    even = new.plan.design == old.plan.design == "uniform" and new.plan.seed == old.plan.seed
    earlier = {item.key: (at, item) for at, item in enumerate(old.items)}
    if not even or new.plan.unit != "answers" or len(earlier) < len(old.items):
        return None
    common = [
        (at, item, *earlier[item.key]) for at, item in enumerate(new.items) if item.key in earlier
    ]
    if len({item.key for _, item, _, _ in common}) < len(common):
        return None
    known = np.array([item.f - was.f for _, item, _, was in common])
    pairs = [
        (item.y - was.y, item.f - was.f)
        for at, item, before, was in common
        if at < new.reviewed and before < old.reviewed
        if item.y is not None and was.y is not None
    ]
    d, g = np.array(pairs, dtype=float).reshape(-1, 2).T
    n = len(d)
    if n < _COMMON or np.count_nonzero(d) < _CHANGED:
        return None
    lam = float(np.clip(np.cov(d, g)[0, 1] / g.var(ddof=1), 0, None)) if g.var() else 0.0
    mean = float(d.mean() + lam * (known.mean() - g.mean()))
    spread = np.square(d - lam * g - (d - lam * g).mean()).sum() / (n - 2)
    half = t_quantile(n - 2) * float(np.sqrt(spread / n * (1 - n / len(known))))
    return MeanInterval(mean=mean, low=max(mean - half, -1), high=min(mean + half, 1))


def write_reports(result: GateResult, junit: Path | None) -> None:
    """Write JUnit XML if asked to, and Markdown where GitHub says where its step summary is."""
    if junit is not None:
        suite = ET.Element(
            "testsuite",
            name=f"spanlab gate {result.dataset}",
            tests=str(len(result.checks)),
            failures=str(sum(not check.passed for check in result.checks)),
        )
        for check in result.checks:
            case = ET.SubElement(suite, "testcase", classname="spanlab.gate", name=check.name)
            if not check.passed:
                ET.SubElement(case, "failure", message=_sentence(check))
        ET.ElementTree(suite).write(junit, encoding="utf-8", xml_declaration=True)
    if summary := os.environ.get(_SUMMARY):
        with Path(summary).open("a", encoding="utf-8") as stream:
            stream.write("\n".join(_markdown(result, result.checks)))


def _markdown(result: GateResult, checks: Sequence[GateCheck]) -> Iterable[str]:
    yield f"### Gate of {_cell(result.dataset)}: {'passed' if result.passed else 'failed'}\n"
    yield "| Check | Found | Result |"
    yield "| --- | --- | --- |"
    for check in checks:
        verdict = "passed" if check.passed else "**failed**"
        yield f"| {_cell(check.name)} | {_cell(_sentence(check))} | {verdict} |"
    yield f"\n{_cell(result.state)}\n"


def _sentence(check: GateCheck) -> str:
    found = check.found
    return f"{figure(found.mean)} [{figure(found.low)}, {figure(found.high)}]: {check.why}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
