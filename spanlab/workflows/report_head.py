"""The head of a report as HTML: when it was made, of how much, and what all its items come to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from spanlab.results import MeanInterval, counted, figure, percent
from spanlab.schema import Kind, Status
from spanlab.workflows.comparing import Agreement, Scored
from spanlab.workflows.overview import Overview
from spanlab.workflows.rates import Rates

_PEOPLE = 20  # whose scores are shown
_NAMED = 10  # people whose counts are shown one by one
_GROUPS = 50  # whose rates are shown
_KINDS = {Kind.GOLD: "gold labels", Kind.VOTE: "votes", Kind.DETECTOR: "detectors"}


def head_html(overview: Overview) -> str:
    """Return the figures of a report; every text of the data is escaped."""
    at = overview.at
    made = f"<time datetime='{at.isoformat(timespec='minutes')}'>{at:%Y-%m-%d %H:%M} UTC</time>"
    languages = ", ".join(
        f"{escape(lang)} {count:,}" for lang, count in sorted(overview.languages.items())
    )
    items = f"{counted(overview.n_items, 'item')} ({languages})" if languages else "no items"
    return (
        f"<p>Made on {made} of {items}.</p>\n"
        f"{_annotators(overview)}{_scores(overview.comparison.scores)}{_agreement(overview)}"
        f"{_labels(overview)}{_rates(overview.rates) if overview.rates else ''}"
    )


def _annotators(overview: Overview) -> str:
    kinds = overview.comparison.kinds
    people = [name for name in overview.states if kinds[name] is Kind.PERSON]
    rows = [
        (name, _counts([name], overview))
        for kind in (*_KINDS, Kind.PERSON)
        for name in overview.states
        if kinds[name] is kind and not (kind is Kind.PERSON and len(people) > _NAMED)
    ]
    if len(people) > _NAMED:
        rows.append((f"{len(people):,} people together", _counts(people, overview)))
    if not rows:
        return "<p>Nobody has annotated them yet.</p>\n"
    columns = ("Annotator", "Done", "Skipped", "Failed", "Not annotated")
    return _table("Items by annotator", columns, ((name, *counts) for name, counts in rows))


def _counts(names: Sequence[str], overview: Overview) -> tuple[str, ...]:
    states = (Status.DONE, Status.SKIPPED, Status.FAILED)
    counts = [sum(overview.states[name].get(state, 0) for name in names) for state in states]
    return tuple(f"{n:,}" for n in (*counts, len(names) * overview.n_items - sum(counts)))


def _scores(scores: Sequence[Scored]) -> str:
    """Return the table of scores; empty where there is nobody but the reference."""
    others = [one for one in scores if one.kind is not Kind.PERSON]
    people = [one for one in scores if one.kind is Kind.PERSON]
    if not any(one.kind for one in scores):
        return ""
    shown = [*_best_first(others), *_best_first(people)[:_PEOPLE]]
    rows = (
        (
            one.name,
            f"{one.report.macro.n:,}",
            *(
                _interval(mean, has_interval=one.report.macro.n > len(one.report.languages))
                for mean in (one.report.macro.iou, one.report.macro.corr, one.report.macro.f1)
            ),
        )
        for one in shown
    )
    title = "Scores against the gold labels, means over languages with 95 % intervals"
    if len(people) > _PEOPLE:
        title += f"; of {len(people):,} people the best {_PEOPLE}"
    return _table(title, ("Annotator", "Items", "IoU", "Corr", "F1"), rows)


def _best_first(scores: Sequence[Scored]) -> list[Scored]:
    return sorted(scores, key=lambda one: (-one.report.macro.iou.mean, one.name))


def _agreement(overview: Overview) -> str:
    groups = {
        "people": overview.comparison.persons,
        "people and detectors": overview.comparison.independent,
    }
    said = "; ".join(_alpha(name, found) for name, found in groups.items() if found.n)
    return f"<p>Agreement (Krippendorff's alpha over characters): {said}.</p>\n" if said else ""


def _alpha(name: str, found: Agreement) -> str:
    alpha = "undefined" if found.alpha is None else figure(found.alpha)
    return f"{name} {alpha} on {counted(found.n, 'item')}"


def _labels(overview: Overview) -> str:
    kinds = [kind for kind in (*_KINDS, Kind.PERSON) if any(kind is k for _, k in overview.labels)]
    totals: dict[str, int] = {}
    for (label, _), count in overview.labels.items():
        totals[label] = totals.get(label, 0) + count
    if not totals:
        return ""
    rows = (
        (label, *(f"{overview.labels.get((label, kind), 0):,}" for kind in kinds))
        for label in sorted(totals, key=lambda label: (-totals[label], label))
    )
    columns = ("Label", *(_KINDS.get(kind, "people").capitalize() for kind in kinds))
    return _table("Spans by label", columns, rows)


def _rates(rates: Rates) -> str:
    most = sorted(rates.groups, key=lambda group: -group.n)[:_GROUPS]
    groups = [group for group in rates.groups if group in most]
    has_claims = any(group.rates.claims for group in groups)
    rows = (
        (
            group.value,
            f"{group.n:,}",
            _share(group.rates.answers, group.n),
            _share(group.rates.characters, group.n),
            _interval(group.rates.spans, has_interval=group.n > 1, digits=1),
            *([_share(group.rates.claims, group.n)] if has_claims else []),
        )
        for group in groups
    )
    whose = ", ".join(rates.annotators[:5]) + (" and others" if len(rates.annotators) > 5 else "")
    title = f"Hallucinations by {rates.field} according to {whose}, with 95 % intervals"
    claims = ["Claims"] if has_claims else []
    columns = (rates.field, "Items", "Answers", "Characters", "Spans per 1,000", *claims)
    left_out = len(rates.groups) - len(groups)
    remarks = [*rates.remarks, *([f"{left_out:,} more with fewer items."] if left_out else [])]
    told = "".join(f"<p class='about'>{escape(remark)}</p>\n" for remark in remarks)
    return _table(title, columns, rows) + told


def _share(rate: MeanInterval | None, n: int) -> str:
    if rate is None:
        return "–"
    low, high = (figure(100 * end, 1) for end in (rate.low, rate.high))
    return f"{percent(rate.mean)} ({low} to {high})" if n > 1 else percent(rate.mean)


def _interval(mean: MeanInterval, *, has_interval: bool, digits: int = 3) -> str:
    value, low, high = (figure(end, digits) for end in (mean.mean, mean.low, mean.high))
    return f"{value} ({low} to {high})" if has_interval else value


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in columns)
    body = "".join(
        f"<tr><th scope='row' dir='auto'>{escape(name)}</th>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>\n"
        for name, *cells in rows
    )
    caption = f"<caption dir='auto'>{escape(title)}</caption>"
    return f"<table>{caption}\n<tr>{head}</tr>\n{body}</table>\n"
