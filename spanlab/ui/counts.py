"""How far each annotator is, as bars with the figures beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from spanlab.output.figures import counted
from spanlab.output.wording import progress_in_words
from spanlab.schema import AnnotatorKind, AnnotatorSummary, DatasetSummary, Status
from spanlab.schema.progress import PlanProgress
from spanlab.ui.dots import DONE, FAILED, NEUTRAL

_KINDS = {
    AnnotatorKind.PERSON: "person",
    AnnotatorKind.DETECTOR: "detector",
    AnnotatorKind.VOTE: "vote",
    AnnotatorKind.GOLD: "gold labels",
}
GROUPS = {
    AnnotatorKind.PERSON: "People",
    AnnotatorKind.DETECTOR: "Detectors",
    AnnotatorKind.VOTE: "Votes",
    AnnotatorKind.GOLD: "Gold",
}
FEW = 3  # of a group that are shown at first
# Told apart by pattern as well as by colour; translucent, so that they suit light and dark.
_STYLE = (
    """<style>
.counts.bounded { max-height: 15.5rem; overflow-y: auto; }
.counts .others { grid-column: 1 / -1; }
.counts .others summary { cursor: pointer; opacity: .8; }
.counts .others .counts { margin-top: .3rem; }
.counts { display: grid; grid-template-columns: minmax(7rem, max-content) minmax(8rem, 1fr)
  max-content; gap: .4rem .9rem; align-items: center; font-size: .875rem; margin: .1rem 0 .3rem; }
.counts .who { overflow-wrap: anywhere; max-width: 16rem; line-height: 1.25; }
.counts .kind, .counts .rest { opacity: .7; }
.counts .bar { display: flex; height: .7rem; border-radius: .35rem; overflow: hidden;
  background: rgba(128, 132, 149, .22); }
.counts .bar i { display: block; min-width: 2px; }
.counts .done { background: DONE; }
.counts .skipped {
  background: repeating-linear-gradient(90deg, NEUTRAL 0 3px, transparent 3px 6px); }
.counts .failed {
  background: repeating-linear-gradient(135deg, FAILED 0 4px, transparent 4px 7px); }
.counts .figures { font-variant-numeric: tabular-nums; }
@media (max-width: 640px) {
  .counts { grid-template-columns: minmax(0, 1fr) auto; grid-auto-flow: dense; gap: .2rem .6rem; }
  .counts.bounded { max-height: 24rem; }
  .counts .bar { grid-column: 1 / -1; margin-bottom: .3rem; }
}
</style>""".replace("DONE", DONE)
    .replace("NEUTRAL", NEUTRAL)
    .replace("FAILED", FAILED)
)


def sort_by_kind(annotators: Iterable[AnnotatorSummary]) -> list[AnnotatorSummary]:
    """Return gold labels, votes, detectors, people; in each group who has done most items first."""
    kinds = list(reversed(GROUPS))
    return sorted(
        annotators, key=lambda annotator: (kinds.index(annotator.kind), *by_items(annotator))
    )


def by_items(annotator: AnnotatorSummary) -> tuple[int, str]:
    """Return the sorting key that puts who has done most items first, then goes by name."""
    return -annotator.counts.get(Status.DONE, 0), annotator.name.casefold()


def counts_html(
    summary: DatasetSummary,
    annotators: Iterable[AnnotatorSummary],
    plan: PlanProgress | None = None,
) -> str:
    """Return bars of how far annotators of a dataset are, as HTML; every name in it is escaped.

    Of each group the first three have a bar, the others are summed up and can be unfolded. People
    whom a ``plan`` knows are as far as they are with their part of it, the others with all items.
    """
    parts = []
    for kind, members in groupby(sort_by_kind(annotators), key=lambda annotator: annotator.kind):
        bars = [_make_bar(annotator, summary, plan) for annotator in members]
        rows = [_row_html(bar) for bar in bars]
        n_shown = len(rows) if len(rows) <= FEW + 1 else FEW  # a sum of one is no shorter
        parts += rows[:n_shown]
        if rows[n_shown:]:
            parts.append(_fold_rows(kind, bars[n_shown:], rows[n_shown:]))
    return f"{_STYLE}<div class='counts bounded' role='list' tabindex='0'>{''.join(parts)}</div>"


def add_assigned(
    annotators: Sequence[AnnotatorSummary], plan: PlanProgress | None
) -> list[AnnotatorSummary]:
    """Return the annotators, and those people of a plan who have not begun yet."""
    begun_names = {annotator.name for annotator in annotators}
    people = () if plan is None else plan.people
    new = [AnnotatorSummary(person.annotator, AnnotatorKind.PERSON, {}) for person in people]
    return [*annotators, *(annotator for annotator in new if annotator.name not in begun_names)]


@dataclass(frozen=True)
class _Bar:
    """How far one annotator is with ``total`` items."""

    annotator: AnnotatorSummary
    counts: Mapping[Status, int]
    total: int
    words: str


def _make_bar(
    annotator: AnnotatorSummary, summary: DatasetSummary, plan: PlanProgress | None
) -> _Bar:
    person = (
        plan.of(annotator.name)
        if plan is not None and annotator.kind is AnnotatorKind.PERSON
        else None
    )
    if person is None:
        words = _counts_in_words(annotator, summary.n_items)
        return _Bar(annotator, annotator.counts, summary.n_items, words)
    total = person.assigned
    if total is None:
        return _Bar(
            annotator, {Status.DONE: person.beyond}, summary.n_items, progress_in_words(person)
        )
    counts = {Status.DONE: person.done, Status.SKIPPED: person.skipped}
    return _Bar(annotator, counts, total, progress_in_words(person))


def _fold_rows(kind: AnnotatorKind, bars: Sequence[_Bar], rows: Sequence[str]) -> str:
    done = [bar.counts.get(Status.DONE, 0) for bar in bars]
    totals = {bar.total for bar in bars}
    least, most = min(done), max(done)
    numbers = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    of_total = f" of {totals.pop():,}" if len(totals) == 1 else ""
    return (
        "<div class='others' role='listitem'><details>"
        f"<summary>{len(rows):,} more {GROUPS[kind].lower()}, each {numbers}{of_total} done"
        f"</summary><div class='counts' role='list'>{''.join(rows)}</div>"
        "</details></div>"
    )


def _counts_in_words(annotator: AnnotatorSummary, n_items: int) -> str:
    """Say how many items are in each state, such as "52 of 56 done · 1 failed · 1 draft"."""
    counts, drafts = annotator.counts, annotator.drafts
    untouched = counts.get(Status.NOT_ANNOTATED, 0) - drafts
    parts = [f"{counts.get(Status.DONE, 0):,} of {n_items:,} done"]
    parts += [
        f"{counts[status]:,} {status}"
        for status in (Status.FAILED, Status.SKIPPED)
        if counts.get(status)
    ]
    parts += [counted(drafts, "draft")] * bool(drafts)
    parts += [f"{untouched:,} not annotated"] * bool(untouched)
    return " · ".join(parts)


def kind_in_words(kind: AnnotatorKind) -> str:
    """Return what sort of annotator this is, in a word or two."""
    return _KINDS[kind]


def kind_beside(name: str, kind: AnnotatorKind) -> str:
    """Return the sort of annotator to write beside its name; empty if the name says it."""
    words = kind_in_words(kind)
    return "" if name in words.split() else words


def _row_html(bar: _Bar) -> str:
    name = escape(bar.annotator.name)
    kind = kind_beside(bar.annotator.name, bar.annotator.kind)
    segments = "".join(
        f"<i class='{status.value}' style='width:{100 * bar.counts[status] / bar.total:.3f}%'></i>"
        for status in (Status.DONE, Status.FAILED, Status.SKIPPED)
        if bar.counts.get(status) and bar.total
    )
    head, _, further_counts = bar.words.partition(" · ")
    further_html = f" <span class='rest'>· {further_counts}</span>" if further_counts else ""
    return (
        "<div class='row' role='listitem' style='display:contents'>"
        f"<span class='who'>{name} <span class='kind'>{kind}</span></span>"
        f"<span class='bar' aria-hidden='true' title='{bar.words}'>{segments}</span>"
        f"<span class='figures'>{head}{further_html}</span></div>"
    )
