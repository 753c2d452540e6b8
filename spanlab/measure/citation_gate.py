"""A gate on how well the answers of a dataset cite; see ``citation_rates``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spanlab.base.errors import UsageError
from spanlab.measure.gating import GateCheck, GateResult, GateSubject
from spanlab.measure.rate_tally import rates
from spanlab.measure.rates import ALL
from spanlab.output.figures import percent
from spanlab.output.tables import MeanInterval
from spanlab.storage import Store


def check_citations(store: Store, subject: GateSubject, limits: Mapping[str, float]) -> GateResult:
    """Check citations as those whose labels count for rates have marked them.

    Args:
        store: the annotation database.
        subject: a dataset; if it names an annotator, that one's marks count.
        limits: by "recall" and "precision", below which the whole interval must not be.

    Raises:
        NotFoundError: there is no such dataset or annotator.
        UsageError: it is not clear whose labels count, there are none, nothing is cited, or a group
            is asked for.
    """
    if subject.group is not None:
        raise UsageError("--group is for rates: limits of citations are for the whole dataset")
    names = () if subject.annotator is None else (subject.annotator,)
    report = rates(store, subject.dataset, ALL, names)
    state = f"Citations as {', '.join(report.annotators)} marked them."
    (group,) = report.groups
    found = {} if group.citations is None else group.citations._asdict()
    return GateResult(subject.dataset, tuple(_checks(subject.dataset, found, limits)), state)


def _checks(
    dataset: str, found: Mapping[str, MeanInterval | None], limits: Mapping[str, float]
) -> Iterator[GateCheck]:
    for name, limit in limits.items():
        interval = found.get(name)
        if interval is None:
            raise UsageError(f"no answer of {dataset!r} that counts here cites anything")
        below, above = interval.high < limit, interval.low > limit
        side = "below" if below else "above" if above else ""
        why = f"significantly {side}" if side else "neither significantly above nor below"
        title = f"citation {name} at least {percent(limit)}"
        yield GateCheck(title, found=interval, limit=limit, passed=not below, why=why)
