"""How far each annotator is, as bars with the figures beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby

from spanlab.schema import Kind, Status
from spanlab.workflows.managing import AnnotatorSummary, DatasetSummary

_WORDS = {
    Status.DONE: "done",
    Status.FAILED: "failed",
    Status.SKIPPED: "skipped",
    Status.NOT_ANNOTATED: "not annotated",
}
_KINDS = {
    Kind.PERSON: "person",
    Kind.DETECTOR: "detector",
    Kind.VOTE: "vote",
    Kind.GOLD: "gold labels",
}
GROUPS = {
    Kind.PERSON: "People",
    Kind.DETECTOR: "Detectors",
    Kind.VOTE: "Votes",
    Kind.GOLD: "Gold",
}
FEW = 3  # of a group that are shown at first
# Told apart by pattern as well as by colour; translucent, so that they suit light and dark.
_STYLE = """<style>
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
.counts .done { background: #3b8bd1; }
.counts .skipped { background: repeating-linear-gradient(90deg, #8a8fa3 0 3px, #8a8fa333 3px 6px); }
.counts .failed { background: repeating-linear-gradient(135deg, #e5484d 0 4px, #f2a0a3 4px 7px); }
.counts .figures { font-variant-numeric: tabular-nums; }
@media (max-width: 640px) {
  .counts { grid-template-columns: 1fr; gap: .2rem; }
  .counts .who { max-width: none; }
  .counts .figures { margin-bottom: .5rem; }
}
</style>"""


def in_groups(annotators: Iterable[AnnotatorSummary]) -> list[AnnotatorSummary]:
    """Return gold labels, votes, detectors, people; in each group who has done most items first."""
    kinds = list(reversed(GROUPS))
    return sorted(annotators, key=lambda who: (kinds.index(who.kind), *by_items(who)))


def by_items(who: AnnotatorSummary) -> tuple[int, str]:
    """Return the sorting key that puts who has done most items first, then goes by name."""
    return -who.counts.get(Status.DONE, 0), who.name.casefold()


def counts_html(summary: DatasetSummary, annotators: Iterable[AnnotatorSummary]) -> str:
    """Return bars of how far annotators of a dataset are, as HTML; every name in it is escaped.

    Of each group the first three have a bar, the others are summed up and can be unfolded.
    """
    parts = []
    for kind, members in groupby(in_groups(annotators), key=lambda who: who.kind):
        rows = [(who, _row(who, summary.n_items)) for who in members]
        few = len(rows) if len(rows) <= FEW + 1 else FEW  # a sum of one is no shorter
        parts += [row for _, row in rows[:few]]
        if rows[few:]:
            parts.append(_others(kind, rows[few:], summary.n_items))
    return f"{_STYLE}<div class='counts bounded' role='list' tabindex='0'>{''.join(parts)}</div>"


def _others(kind: Kind, rows: Sequence[tuple[AnnotatorSummary, str]], n_items: int) -> str:
    done = [who.counts.get(Status.DONE, 0) for who, _ in rows]
    least, most = min(done), max(done)
    each = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    return (
        "<div class='others' role='listitem'><details>"
        f"<summary>{len(rows):,} more {GROUPS[kind].lower()}, each {each} of {n_items:,} done"
        f"</summary><div class='counts' role='list'>{''.join(row for _, row in rows)}</div>"
        "</details></div>"
    )


def counts_in_words(counts: Mapping[Status, int], n_items: int) -> str:
    """Say how many items are in each state, such as "52 of 56 done · 1 failed"."""
    parts = [f"{counts.get(Status.DONE, 0):,} of {n_items:,} done"]
    parts += [
        f"{counts[status]:,} {_WORDS[status]}"
        for status in (Status.FAILED, Status.SKIPPED, Status.NOT_ANNOTATED)
        if counts.get(status)
    ]
    return " · ".join(parts)


def kind_in_words(kind: Kind) -> str:
    """Return what sort of annotator this is, in a word or two."""
    return _KINDS[kind]


def kind_beside(name: str, kind: Kind) -> str:
    """Return the sort of annotator to write beside its name; empty if the name says it."""
    words = kind_in_words(kind)
    return "" if name in words.split() else words


def _row(annotator: AnnotatorSummary, n_items: int) -> str:
    name, counts = escape(annotator.name), annotator.counts
    words = counts_in_words(counts, n_items)
    kind = kind_beside(annotator.name, annotator.kind)
    segments = "".join(
        f"<i class='{status.value}' style='width:{100 * counts[status] / n_items:.3f}%'></i>"
        for status in (Status.DONE, Status.FAILED, Status.SKIPPED)
        if counts.get(status) and n_items
    )
    head, _, rest = words.partition(" · ")
    more = f" <span class='rest'>· {rest}</span>" if rest else ""
    return (
        "<div class='row' role='listitem' style='display:contents'>"
        f"<span class='who'>{name} <span class='kind'>{kind}</span></span>"
        f"<span class='bar' aria-hidden='true' title='{words}'>{segments}</span>"
        f"<span class='figures'>{head}{more}</span></div>"
    )
